"""What work takes of memory and time, by formula from sizes, so that it is refused before it hurts.

`WORKS` is the one place where the cost of a verb is declared. Each formula is what an idle process
has, and a factor for each array that grows with the fabric; the factors are fitted to the peaks of
whole processes (`extensions.bench.scale_timings.run`) for PolarFly of q = 31 to 127 and for
PolarStar of 570 to 79,506 switches, rounded up (docs/how-to/install.md). Where a family computes
its rows (`compilers.tables.computed_array`), there are no stored ones to count.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from math import prod
from typing import TYPE_CHECKING

import numpy as np

from compilers.memory import GB, available
from compilers.spec.policy import LARGEST_SEARCH, constructs_classes
from compilers.tables.computed_array import STORED_CELLS
from compilers.tables.intermediate_form import empty_egress
from compilers.topology.families import (
    build_topology,
    check_topology,
    family_named,
    family_of,
    parameters,
)
from compilers.topology.family import Family
from compilers.topology.labelled_graph import Topology
from inventory.problems import Finding, InputError, KeyPath

if TYPE_CHECKING:  # pydantic is slow to import, and a build is read without it
    from compilers.spec.fabric_spec import FabricSpec
    from compilers.tables.build import Build

IDLE = 66 * 10**6
"""Bytes of a process that has imported what it needs, and done nothing."""


@dataclass(frozen=True, slots=True)
class Size:
    """A fabric in the values that cost follows from, by formula or as built.

    degree: the most links of a switch. graph: bytes while it is made. stored: bytes of the egress
    classes that are held, 0 where rows are computed. spread: whether there are alternates or
    repair. by_class: these are constructed for whole supernodes, three classes a link.
    shares: of all classes of a build. given: parameters of the family, as far as they are known.
    """

    family: Family
    switches: int
    degree: int = 0
    graph: int = 0
    stored: int = 0
    spread: bool = False
    by_class: bool = False
    shares: int = field(default=0, compare=False)
    given: Mapping[str, int | str] = field(default_factory=dict, compare=False)

    @property
    def ends(self) -> int:
        """Ends of links."""
        return self.switches * self.degree

    @classmethod
    def of_family(cls, family: str, given: Mapping[str, int | str | None]) -> Size:
        """The graph of a family, its parameters right; of one without algebra only the order."""
        known = {name: value for name, value in given.items() if value is not None}
        found = family_of(family)
        values = parameters(family, known)
        order, links = found.order(values), found.degree(values)
        if found.described:
            return cls(found, order)
        if links is None:
            graph = 64 * order * _most_links(known, order)
            return cls(found, order, graph=graph, given=values)
        graph = order * links * (12 if found.holds_edges else 5)
        return cls(found, order, links, graph, given=values)

    @classmethod
    def of_spec(cls, spec: FabricSpec) -> Size:
        """What compiling a spec makes."""
        family, values = spec.topology.family, spec.topology.parameters()
        size, q = cls.of_family(family, values), spec.topology.q or 0
        if not size.degree and size.switches <= LARGEST_SEARCH:
            size = cls.of_topology(build_topology(family, values))
        members = size.family.hierarchy(values)
        # In PolarStar a row for each member of the q + 2 near supernodes, one a supernode beyond.
        rows = size.switches
        if members > 1:
            rows = (q + 2) * members + size.switches // members - q - 2
        policy = spec.routing.policy(q, family)
        spread = policy.balances or policy.protects
        cells = size.switches * rows
        by_class = spread and constructs_classes(size.family, values, size.switches)
        computed = size.family.constructed or (members > 1 and (by_class or not spread))
        if computed and cells > STORED_CELLS:
            cells = 0
        kinds = empty_egress(0, 0, size.degree * (1 + spread + by_class)).itemsize
        return replace(size, stored=cells * kinds, spread=spread, by_class=by_class)

    @classmethod
    def of_topology(cls, topology: Topology) -> Size:
        """A graph that is there."""
        degree = int(topology.graph.degrees.max(initial=0))
        family, given = family_of(topology.family), topology.parameters
        return cls(family, topology.graph.order, degree, given=given)

    @classmethod
    def of_build(cls, build: Build) -> Size:
        """What a build holds."""
        egress, classes = build.tables.routes.egress, build.tables.classes
        family, parameters = family_of(build.topology.family), build.topology.parameters
        spread = bool(classes.alternate.shape[2] or classes.protection.shape[2])
        return cls(
            family,
            len(egress),
            build.wiring.port.shape[1],
            stored=egress.nbytes if isinstance(egress, np.ndarray) else 0,
            spread=spread,
            by_class=spread and constructs_classes(family, parameters, len(egress)),
            shares=prod(classes.weight.shape),
            given=parameters,
        )


def _most_links(values: Mapping[str, int | str], order: int) -> int:
    """The links of a switch, or a few more, from parameters of a family that is for comparison."""
    counts = {"degree": 1, "k": 1, "h": 3, "q": 2, "n": 2, "a": 2}
    known = [times * int(values[name]) for name, times in counts.items() if name in values]
    sides = re.findall("[0-9]+", str(values.get("sides", "")))
    return min(order, max([sum(map(int, sides)), *known], default=order))


@dataclass(frozen=True, slots=True)
class Work:
    """Something that a verb does.

    what: in messages. memory: bytes beyond `IDLE`. seconds: of one processor. instead: what else
    can be done.
    """

    what: str
    memory: Callable[[Size], float]
    seconds: Callable[[Size], float]
    instead: str


def _tables(size: Size) -> float:
    """Bytes of compiling and of proving state by state: for rows, for links, for paths."""
    links = 130
    if size.family.by_supernodes:
        links = 270 if size.stored else 90  # 71 at 627,570 switches
    rows = 2.3 * size.stored + links * size.ends
    paths = 7e7 + (3 if size.family.constructed else 60) * size.switches**2
    if size.by_class:
        paths = 7e7 + 300 * size.ends
    return rows + paths * size.spread


def _proof(size: Size) -> float:
    """Seconds of compiling and proving all pairs."""
    if size.by_class:
        return 1e-5 * size.ends
    if size.spread:
        return (3e-7 if size.family.constructed else 8e-7) * size.switches**2
    return 4e-8 * size.switches**2 if size.stored else 1e-6 * size.ends


def _walks(size: Size) -> float:
    """Seconds to walk every packet; with repair, under every failure of a link."""
    return 2e-8 * (size.degree if size.spread else 1) * size.switches**2


def _searched(size: Size) -> float:
    """Bytes of distances from 128 vertices at a time, which are more than two links apart."""
    return 24 * size.ends + 128 * size.switches * (17 + 9 * size.degree)


def _summed(size: Size) -> float:
    """Bytes of sums over neighbours for 128 sources at a time, and of the graph."""
    return 40 * size.ends + 25 * 1024 * size.switches


def _followed(size: Size) -> float:
    """Bytes of the paths of all classes and their shares, joined with the cables."""
    return 30 * size.shares + 160 * size.ends


def _over_pairs(seconds: float) -> Callable[[Size], float]:
    """Time that grows with switches times ends of links."""
    return lambda size: seconds * size.switches * size.ends


SCALES = ("q", "nodes", "h", "k", "n", "groups")
"""Parameters that a family grows with, the first of them that it has."""
WIDEST_GAP = 200
"""Numbers in a row that may be no member of a family: prime powers, degrees that do not fit."""
SMALLER = "take a smaller fabric, or a machine with more memory"
SHARED = "take a smaller fabric, or share it: `scheduler ADDRESS`"
WORKS: dict[str, Work] = {
    "topology": Work(
        "making the graph",
        lambda size: size.graph,
        lambda size: 2e-7 * size.ends,
        "write edges, which of polarfly needs no graph, or take a smaller one",
    ),
    "compile": Work(
        "compiling and proving",
        _tables,
        _proof,
        "lower q, or compile on a machine with more memory",
    ),
    "verify": Work(
        "proving",
        _tables,
        _proof,
        "leave failures out, `quick`, or share it: `scheduler ADDRESS`",
    ),
    "verify minimal": Work(
        "walking the minimal paths of every pair, which are not proved,",
        _tables,
        lambda size: 2e-8 * size.switches**2,
        "compile it anew, or share it: `scheduler ADDRESS`",
    ),
    "verify left": Work(
        "walking what the proof leaves open",
        _tables,
        _walks,
        "leave failures out, `quick`, or share it: `scheduler ADDRESS`",
    ),
    "verify walk": Work(
        "walking every packet",
        _tables,
        _walks,
        "prove it by local conditions: `method local`",
    ),
    "channels": Work(
        "counting channels",
        lambda size: 27 * size.switches**2,
        lambda size: 4e-7 * size.switches**2,
        "leave them out: `no_channels`",
    ),
    "throughput": Work(
        "following uniform traffic",
        lambda size: 85 * size.switches**2 + _followed(size),
        lambda size: (4e-7 + 9e-8 * size.degree * size.spread) * size.switches**2,
        "name a pattern of few flows, `pattern tornado`, or share it: `scheduler ADDRESS`",
    ),
    "throughput flows": Work(
        "following traffic",
        _followed,
        lambda size: 3e-7 * size.shares + 1.5e-7 * size.switches**2,
        "compile it with `balance: minimal`, or share it: `scheduler ADDRESS`",
    ),
    "simulate": Work(
        "simulating a load",
        lambda size: 80 * size.switches**2 + 4000 * size.ends,
        lambda size: 5e-3 * size.ends,
        "take a smaller fabric, or fewer hosts a switch: `hosts_per_node`",
    ),
    "render": Work(
        "rendering",
        lambda size: _tables(size),
        lambda size: 8e-6 * size.switches**2,
        "render some switches: `node NODE`, or share it: `scheduler ADDRESS`",
    ),
    "inventory export": Work(
        "writing the hardware",
        lambda size: size.graph + 250 * size.ends,
        lambda size: 4e-6 * size.ends,
        SMALLER,
    ),
    "draw": Work("a picture", lambda size: 80 * size.ends, lambda size: 2e-6 * size.ends, SMALLER),
    "draw load": Work(
        "loads of all links", lambda size: 100 * size.switches**2, _over_pairs(1e-8), SMALLER
    ),
    "analyse distances": Work(
        "distances of all pairs",
        _searched,
        lambda size: 3e-8 * size.switches * size.degree**2,
        SHARED,
    ),
    "analyse paths": Work("counts of all paths", _summed, _over_pairs(2e-8), SMALLER),
    "analyse load": Work("loads of all links", _summed, _over_pairs(3e-8), SHARED),
    "analyse bisection": Work(
        "a bisection", lambda size: 120 * size.ends, lambda size: 1e-5 * size.ends, SMALLER
    ),
    "analyse resilience": Work("links that fail", _searched, _over_pairs(1e-7), SHARED),
    "analyse expansion": Work("larger fabrics", _searched, _over_pairs(4e-7), SMALLER),
}


def throughput_work(patterns: Sequence[str]) -> str:
    """The key of `WORKS` of estimating throughput; no patterns: all."""
    uniform = not patterns or "uniform" in patterns
    return "throughput" if uniform else "throughput flows"


def need(work: str, size: Size) -> int:
    """Bytes that a process takes at its peak for a key of `WORKS`."""
    return IDLE + int(WORKS[work].memory(size))


def fits(size: Size, work: str) -> bool:
    """Whether memory can hold it."""
    return need(work, size) <= available()


def require(size: Size, *works: str) -> None:
    """Pass where memory can hold each of these works.

    Raises:
        InputError: it cannot; with what else can be done.
    """
    if problems := [each.problem() for work in works for each in _beyond(work, size, ())]:
        raise InputError(problems)


def require_graph(family: str, given: Mapping[str, int | str | None]) -> None:
    """Pass where memory can hold the graph of a family.

    Raises:
        InputError: it cannot, or its parameters are wrong.
    """
    if wrong := check_topology(family, given):
        raise InputError(wrong)
    require(Size.of_family(family, given), "topology")


def _largest(work: str, size: Size) -> str:
    """The largest fabric of a family that fits, as `q fits up to 127`; "" where none is found."""
    family, given = size.family.name, size.given
    name = next((name for name in SCALES if isinstance(given.get(name), int)), "")
    if not name or family_named(family) is None:
        return ""

    def fitting(value: int) -> bool:
        other = Size.of_family(family, {**given, name: value})
        part = other.switches / size.switches
        scaled = replace(
            size,
            switches=other.switches,
            degree=other.degree or size.degree,
            graph=other.graph,
            stored=int(size.stored * part**2),
            shares=int(size.shares * part),
        )
        return fits(scaled, work)

    low, high = 1, int(given[name])
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if fitting(middle) else (low, middle)
    for value in range(low, max(1, low - WIDEST_GAP), -1):
        if not check_topology(family, {**given, name: value}) and fitting(value):
            return f"here {name} fits up to {value}"
    return ""


def beyond_memory(spec: FabricSpec) -> Iterator[Finding]:
    """A fabric that memory cannot compile: what is needed and what is there."""
    yield from _beyond("compile", Size.of_spec(spec), ("topology", "q"))


def _beyond(work: str, size: Size, path: KeyPath) -> Iterator[Finding]:
    if not fits(size, work):
        needed, have, declared = need(work, size), available(), WORKS[work]
        taken = f"{declared.what}, {size.switches:,} switches, takes {needed / GB:,.1f} GB"
        required = f"a fabric that fits into memory: {taken}"
        todo = "; ".join(filter(None, (declared.instead, _largest(work, size))))
        yield Finding(path, required, f"{have / GB:,.1f} GB available", todo)


def long(work: str, size: Size, part: float = 1) -> str:
    """`about 18 minutes` for work that takes over a minute, or a part of it; "" for other."""
    minutes = WORKS[work].seconds(size) * part / 60
    if minutes < 1.5:
        return "" if minutes < 1 else "about a minute"
    return f"about {minutes:,.0f} minutes" if minutes < 120 else f"about {minutes / 60:,.0f} hours"
