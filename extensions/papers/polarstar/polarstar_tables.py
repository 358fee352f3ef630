"""The tables of PolarStar: Expanding the Horizon of Diameter-3 Networks (Lakhotia et al., 2024).

Each function with the parameter `_quick` reproduces a table and returns its rows and claims as
`Evidence`; `polarstar_paper` lists them: `networks` (Table 1, marks of families of networks),
`supernodes` (Table 2), and `configurations` (Table 3).

The marks of Table 1 rank families in two columns, scalability and stability. How a family *grows*
is measured for both: the most routers that one of its networks has with switches of a radix or
less. The *step* from a radix to the next is by how much ln(routers / radix^diameter) changes there.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from math import log
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from compilers.evaluation.analysis.distances import distribution
from compilers.topology.families import build_topology, family_named
from compilers.topology.field import prime_power
from compilers.topology.labelled_graph import Topology
from compilers.topology.layout import layout
from compilers.topology.supernodes import Supernode, cayley, exists, supernode
from extensions.papers.exhibit import Evidence, PaperClaim
from extensions.papers.graphs import (
    bijection_of_r1,
    involution_of_rstar,
    is_vertex_transitive,
)
from extensions.papers.paper_tables import table_evidence
from extensions.papers.polarstar.polarstar_structure import READ_RSTAR

NO, HALF, FULL = range(3)
"""The marks of Table 1, in ascending order."""
MARKS = ("no", "half", "full")
"""The marks in words, by their numbers."""
RADIXES = range(8, 129)
"""The radixes over which the growth of a family is measured."""
LARGEST_RADIX = 64
"""The largest radix of the networks whose routers are counted for scalability."""


# Table 1: the marks of families of networks


@dataclass(frozen=True, slots=True)
class PrintedMarks:
    """A row of Table 1: a family, one small member of it, and the printed marks.

    A mark is `NO`, `HALF` or `FULL`.
    """

    family: str
    """The family of the topology."""
    parameters: Mapping[str, int | str | None]
    """The parameters of the small member, as in a spec."""
    direct: int
    """The mark for a direct network."""
    scalability: int
    """The mark for scalability."""
    stable: int
    """The mark for a stable design space."""
    low_diameter: int
    """The mark for low diameter."""
    bundled: int
    """The mark for bundlability."""
    module_size: int = 0
    """Routers of a module in the order of their numbers, 0 where there is no such module."""


SMALL_POLARSTAR: Mapping[str, int | str | None] = {
    "q": 3,
    "supernode": "inductive-quad",
    "degree": 3,
}
"""The parameters of the small PolarStar, whose supernodes have 8 routers."""
COMPARED = {
    "Fat-tree": PrintedMarks(
        "fat-tree",
        {"k": 4, "pods": 4},
        direct=NO,
        scalability=FULL,
        stable=FULL,
        low_diameter=NO,
        bundled=FULL,
    ),
    "PolarFly": PrintedMarks(
        "polarfly",
        {"q": 7},
        direct=FULL,
        scalability=NO,
        stable=HALF,
        low_diameter=FULL,
        bundled=FULL,
    ),
    "Slim Fly": PrintedMarks(
        "slimfly",
        {"q": 5},
        direct=FULL,
        scalability=NO,
        stable=HALF,
        low_diameter=FULL,
        bundled=FULL,
        module_size=5,
    ),
    "3-D HyperX": PrintedMarks(
        "hyperx",
        {"sides": "4x4x4"},
        direct=FULL,
        scalability=HALF,
        stable=FULL,
        low_diameter=FULL,
        bundled=FULL,
        module_size=16,
    ),
    "Dragonfly": PrintedMarks(
        "dragonfly",
        {"h": 2},
        direct=FULL,
        scalability=FULL,
        stable=FULL,
        low_diameter=FULL,
        bundled=HALF,
        module_size=4,
    ),
    "Bundlefly": PrintedMarks(
        "bundlefly",
        {"q": 3, "degree": 2},
        direct=FULL,
        scalability=FULL,
        stable=HALF,
        low_diameter=FULL,
        bundled=FULL,
        module_size=5,
    ),
    "Megafly": PrintedMarks(
        "megafly",
        {"h": 3, "a": 6},
        direct=NO,
        scalability=FULL,
        stable=FULL,
        low_diameter=FULL,
        bundled=HALF,
        module_size=6,
    ),
    "Spectralfly": PrintedMarks(
        "spectralfly",
        {"p": 11, "q": 7},
        direct=FULL,
        scalability=HALF,
        stable=HALF,
        low_diameter=FULL,
        bundled=HALF,
    ),
    "PolarStar": PrintedMarks(
        "polarstar",
        SMALL_POLARSTAR,
        direct=FULL,
        scalability=FULL,
        stable=FULL,
        low_diameter=FULL,
        bundled=FULL,
        module_size=8,
    ),
}
"""Table 1. Its columns, one of them without a heading in some editions: direct, scalability, stable
design space, low diameter, bundlability."""

ROUTERS = "largest of radix 64 or less"
"""The quantity by which scalability is ranked."""
STEPS = "largest step from a radix to the next"
"""The quantity by which stable design spaces are ranked."""
READ_AS = {
    ROUTERS: "Scalability is read as the most routers of radix 64 or less.",
    STEPS: "Stable is read as: small steps of ln(N over the radix to the power of the diameter)"
    " where N is the most routers of a radix or less, the largest step over radixes 8 to 128. The"
    " diameter is 2 of PolarFly and Slim Fly, 3 of the others.",
}
"""How the marks that rank networks are read, by the quantity."""
FAT_TREE = "Fat-tree"
"""The network that the claims on ranks leave out: by §2.3 it grows by levels, too."""
TREE_DIAMETER = 4
"""The diameter of a fat tree of three levels."""
GROWING_LIKE_DIAMETER_2 = ("polarfly", "slimfly", "fat-tree")
"""The families whose routers grow with the square of the radix: two have diameter 2, and by §2.3
fat trees of three levels scale like these. Those of other families grow with the third power."""
NO_MODULES = "It has no adjacent modules, whose links §2 counts."
"""Why bundlability is not computed."""
FEW_RADIXES = "Of p = 11, q = 7. By §2.3 it has diameter 3 for few radixes: 20 of 8 to 128."
"""How the claim on Spectralfly's diameter is read."""


class _Growth(NamedTuple):
    """How the networks of a family grow with the radix of their switches."""

    routers: int
    """The most routers of a network of radix `LARGEST_RADIX` or less."""
    largest_step: float
    """The largest step of ln(routers / radix^power) from a radix to the next."""


@dataclass(frozen=True, slots=True, eq=False)
class _MeasuredFamily:
    """What is measured for a row of Table 1; all but the growth is of the small member."""

    is_direct: bool
    """Whether each router has hosts."""
    diameter: int
    """The diameter."""
    growth: _Growth
    """How the family grows."""
    bundles: NDArray[np.int64]
    """int64[B], how many links join each two adjacent modules; empty where there are no modules."""

    @classmethod
    def of(cls, printed: PrintedMarks) -> _MeasuredFamily:
        """Measure a family and its small member."""
        topology = build_topology(printed.family, printed.parameters)
        power = 2 if printed.family in GROWING_LIKE_DIAMETER_2 else 3
        return cls(
            is_direct=bool(topology.endpoints.all()),
            diameter=distribution(topology).diameter or 0,
            growth=_growth(printed.family, power),
            bundles=_bundles(topology, printed.module_size),
        )


def networks(_quick: bool) -> Evidence:
    """Table 1: what its marks mean, measured; marks that rank are compared as an order."""
    measured_by_name = {name: _MeasuredFamily.of(printed) for name, printed in COMPARED.items()}
    rows, claims = [], list[PaperClaim]()
    for name, measured in measured_by_name.items():
        routers, step = measured.growth
        fewest_links = int(measured.bundles.min()) if measured.bundles.size else "–"
        rows.append(
            (name, measured.is_direct, routers, round(step, 3), measured.diameter, fewest_links)
        )
        claims += _member_claims(name, measured)
    routers_by_name = {name: measured.growth.routers for name, measured in measured_by_name.items()}
    steps = {name: measured.growth.largest_step for name, measured in measured_by_name.items()}
    claims += _tree_claims(routers_by_name[FAT_TREE], steps)
    claims += _rank_claims(ROUTERS, routers_by_name, "scalability")
    # Of steps the smaller ones are better, so the networks are ranked by the negative step.
    negative_steps = {name: -step for name, step in steps.items()}
    claims += _rank_claims(STEPS, negative_steps, "stable")
    heads = ("network", "direct", "routers, radix 64", "step", "diameter", "links of a bundle")
    members = "; ".join(map(_member, COMPARED))
    setup = (
        f"Directness, diameter and bundles are of one small member each: {members}.",
        *READ_AS.values(),
        f"The step of {FAT_TREE} in the table is with the square of the radix.",
    )
    return Evidence(tuple(claims), columns=heads, rows=tuple(rows), setup=setup)


def _member_claims(name: str, measured: _MeasuredFamily) -> Iterator[PaperClaim]:
    """Yield the claims on the marks that a small member can show."""
    printed, member = COMPARED[name], _member(name)
    yield PaperClaim(
        statement=f"{member}: direct",
        printed=float(printed.direct > NO),
        computed=float(measured.is_direct),
    )
    yield PaperClaim(
        statement=f"{member}: diameter up to 3",
        printed=float(printed.low_diameter > NO),
        computed=float(measured.diameter <= 3),
        interpretation=FEW_RADIXES if name == "Spectralfly" else "",
    )
    mark, bundles = MARKS[printed.bundled], measured.bundles
    says = f"{member}: links between adjacent modules, {mark} mark"
    if not bundles.size:
        yield PaperClaim(
            statement=f"{name}: bundlability, {mark} mark",
            printed=None,
            computed=None,
            reason=NO_MODULES,
        )
    elif printed.bundled == FULL:
        yield PaperClaim(
            statement=f"{says}, fewest", printed=2, computed=int(bundles.min()), relation=">="
        )
    else:
        yield PaperClaim(statement=f"{says}, most", printed=1, computed=int(bundles.max()))


def _tree_claims(routers: int, steps: Mapping[str, float]) -> Iterator[PaperClaim]:
    """Yield the claims on Fat-tree's marks that rank, which are not computed.

    Args:
        routers: the most routers of a fat tree of three levels of radix 64 or less.
        steps: the largest step of each network.
    """
    yield PaperClaim(
        statement=f"{FAT_TREE}: scalability, full mark",
        printed=None,
        computed=None,
        reason="By §2.3 more levels add to its scale. Of three levels it has"
        f" {routers:,} routers of radix 64.",
    )
    # The mark depends on the power of the radix by which the routers are divided.
    by_diameter = _growth(COMPARED[FAT_TREE].family, TREE_DIAMETER).largest_step
    least_of_half = min(step for name, step in steps.items() if COMPARED[name].stable == HALF)
    yield PaperClaim(
        statement=f"{FAT_TREE}: stable, full mark",
        printed=None,
        computed=None,
        reason=f"Of three levels its largest step is {steps[FAT_TREE]:.3f} with the square of the"
        f" radix, as by §2.3 they scale like diameter 2. It is {by_diameter:.3f} with the power 4,"
        f" its diameter. Half marks have {least_of_half:.3f} or more, which is between them.",
    )


def _member(name: str) -> str:
    """The small member of a family that is measured, in words."""
    parameters = (f"{key}={value}" for key, value in COMPARED[name].parameters.items())
    return " ".join((name, *parameters))


def _growth(family: str, power: int) -> _Growth:
    """How the networks of a family grow over `RADIXES`.

    Args:
        family: the family.
        power: the power of the radix by which the routers are divided.
    """
    family_object = family_named(family)
    most_at_radix = dict[int, int]()  # the most routers of a network of this radix or less
    most = 0
    for radix in RADIXES:
        designs = family_object.designs(radix) if family_object else ()
        most_at_radix[radix] = most = max([most, *(design.nodes for design in designs)])
    efficiencies = [log(most / radix**power) for radix, most in most_at_radix.items() if most]
    steps = (abs(larger - smaller) for smaller, larger in pairwise(efficiencies))
    return _Growth(most_at_radix[LARGEST_RADIX], max(steps, default=0.0))


def _bundles(topology: Topology, module_size: int) -> NDArray[np.int64]:
    """int64[B], how many links join each two modules that are adjacent.

    Args:
        topology: the network.
        module_size: the routers of a module, 0 where there is no such module: then PolarFly's fans
            are the modules, and other networks have none.
    """
    edges = topology.graph.edges()
    if topology.family == "polarfly":
        modules_of_ends = layout(topology).rack[edges]
    elif module_size:
        modules_of_ends = edges // module_size
    else:
        return np.zeros(0, np.int64)
    modules = np.sort(modules_of_ends, axis=1)
    across = modules[modules[:, 0] != modules[:, 1]]
    counts: NDArray[np.int64] = np.unique(across, axis=0, return_counts=True)[1]
    return counts


def _rank_claims(quantity: str, values: Mapping[str, float], column: str) -> Iterator[PaperClaim]:
    """Yield the claims that networks with a fuller mark are above those with a lesser one.

    Fat-tree is left out (`FAT_TREE`).

    Args:
        quantity: what is ranked, a key of `READ_AS`.
        values: the quantity of each network.
        column: the field of `PrintedMarks` with the marks.
    """
    values_by_mark: dict[int, list[float]] = {}
    for name, value in values.items():
        if name != FAT_TREE:
            values_by_mark.setdefault(getattr(COMPARED[name], column), []).append(value)
    for lesser, fuller in pairwise(sorted(values_by_mark)):
        without = f" without {FAT_TREE}'s" if getattr(COMPARED[FAT_TREE], column) == fuller else ""
        says = f"{quantity}: {MARKS[fuller]} marks{without} above {MARKS[lesser]} ones"
        lower, upper = max(values_by_mark[lesser]), min(values_by_mark[fuller])
        yield PaperClaim.of_order(
            says=says,
            first=upper,
            relation=">",
            second=lower,
            interpretation=READ_AS[quantity],
        )


# Table 2: the supernodes


@dataclass(frozen=True, slots=True)
class PrintedSupernode:
    """A row of Table 2."""

    permitted: str
    """The degrees that the table permits, as it prints them."""
    order: Callable[[int], int | None]
    """The number of vertices for a degree; None where there is no such graph."""
    r1: bool
    """Whether it has Property R1."""
    rstar: bool
    """Whether it has Property R*."""
    symmetric: bool
    """Whether it is symmetric."""


DEGREES = range(2, 9)
"""The degrees of the supernodes that are built for Table 2."""
LEAST_ORDER = 4
"""The least order of supernodes whose properties are looked at: smaller ones do not differ."""
LARGEST_ORDER = 11
"""The largest order of supernodes whose symmetry and Property R1 are looked at, by search."""
LARGEST_ORDER_OF_RSTAR = 17
"""The largest order of which all involutions are searched for one with Property R*."""
OTHER_CAYLEY = (4, 7, 8, 11)
"""Orders with δ = 0 or -1 of Cayley supernodes, which are no Paley graphs. Those of degrees 2 to 8
that are the largest of a degree have δ = 1, and are Paley graphs."""
DEFINITIONS = {
    "R1": "The text has lost the definition of R1. Read as: by a bijection f any two vertices are"
    " joined, or are f(x) and f(y) of two that are joined.",
    "R*": READ_RSTAR,
    "symmetric": "Read as: an automorphism maps any vertex onto any other.",
}
"""How the properties of Table 2 are read."""
OUR_OWN = ("bdf",)
"""The supernodes that are built here by a construction of our own, of the printed orders."""
BUILT_FOR_TABLE_2 = (
    "The text does not describe the graphs of Bermond, Delorme and Farhi. Ours are by a"
    " construction of our own, for every degree and with 2d' vertices, as the table prints."
)
"""Why claims on the supernodes in `OUR_OWN` are no result, or are not computed."""


def _paley(d: int) -> int | None:
    """The order of the Paley graph of degree d, if there is one."""
    return 2 * d + 1 if d % 2 == 0 and prime_power(2 * d + 1) else None


def _cayley(d: int) -> int | None:
    """The largest order of a Cayley supernode of degree d, if there is one."""
    for delta in (1, 0, -1):  # the order k = 2d + δ is congruent to δ modulo 4
        k = 2 * d + delta
        if prime_power(k) and (k - delta) % 4 == 0:
            return k
    return None


SUPERNODES = {
    "inductive-quad": PrintedSupernode(
        permitted="0 or 3 (mod 4)",
        order=lambda d: 2 * d + 2 if d % 4 in (0, 3) else None,
        r1=False,
        rstar=True,
        symmetric=False,
    ),
    "paley": PrintedSupernode(
        permitted="even, 2d' + 1 a prime power", order=_paley, r1=True, rstar=False, symmetric=True
    ),
    "bdf": PrintedSupernode(
        permitted="all", order=lambda d: 2 * d, r1=False, rstar=True, symmetric=False
    ),
    "cayley": PrintedSupernode(
        permitted="2d' + δ a prime power", order=_cayley, r1=True, rstar=False, symmetric=True
    ),
    "complete": PrintedSupernode(
        permitted="all", order=lambda d: d + 1, r1=True, rstar=True, symmetric=True
    ),
}
"""Table 2."""


class PropertyCheck(NamedTuple):
    """A property of Table 2, and the supernodes of a kind in which it is looked for."""

    name: str
    """The name of the property, one of `DEFINITIONS`."""
    printed: bool
    """Whether the table prints that the kind has it."""
    holds: Callable[[Supernode], bool]
    """Whether a supernode has it."""
    members: list[Supernode]
    """The supernodes of the kind."""


def supernodes(_quick: bool) -> Evidence:
    """Table 2: orders, permitted degrees and properties of the small supernodes of each kind."""
    claims, rows = list[PaperClaim](), []
    for kind, printed in SUPERNODES.items():
        degrees = [d for d in DEGREES if exists(kind, d)]
        claims += _order_claims(kind, printed, degrees)
        marks = []
        for check in _property_checks(kind, printed, degrees):
            has_property = {node.order: check.holds(node) for node in check.members}
            claims.append(_property_claim(kind, check, has_property))
            marks.append("yes" if all(has_property.values()) else "no")
        rows.append((kind, printed.permitted, degrees[-1], printed.order(degrees[-1]), *marks))
    heads = ("supernode", "permitted d'", "such as", "order", "R1", "R*", "symmetric")
    setup = (f"bdf: {BUILT_FOR_TABLE_2}",)
    return Evidence(tuple(claims), columns=heads, rows=tuple(rows), setup=setup)


def _order_claims(
    kind: str, printed: PrintedSupernode, degrees: Sequence[int]
) -> Iterator[PaperClaim]:
    """Yield the claims on the permitted degrees, and on the order at each degree that is built."""
    is_ours = kind in OUR_OWN
    reason = BUILT_FOR_TABLE_2 if is_ours else ""
    differing = sum((printed.order(d) is not None) != exists(kind, d) for d in DEGREES)
    says = f"{kind}: degrees of 2 to 8 that are permitted by the table or by ours alone"
    yield PaperClaim(statement=says, printed=0, computed=differing, is_input=is_ours, reason=reason)
    for d in degrees:
        order = printed.order(d) or 0
        says = f"{kind}, d' = {d}: order"
        built = supernode(kind, d).order
        yield PaperClaim(
            statement=says, printed=order, computed=built, is_input=is_ours, reason=reason
        )


def _property_checks(
    kind: str, printed: PrintedSupernode, degrees: Sequence[int]
) -> tuple[PropertyCheck, ...]:
    """The properties of a kind, with its members that are small enough for each."""
    members = [supernode(kind, d) for d in degrees]
    if kind == "cayley":
        members = sorted([*members, *map(cayley, OTHER_CAYLEY)], key=lambda node: node.order)
    small = [node for node in members if LEAST_ORDER <= node.order <= LARGEST_ORDER]
    searched = [node for node in members if LEAST_ORDER <= node.order <= LARGEST_ORDER_OF_RSTAR]
    return (
        PropertyCheck("R1", printed.r1, has_r1, small),
        PropertyCheck("R*", printed.rstar, has_rstar, searched),
        PropertyCheck("symmetric", printed.symmetric, _is_symmetric, small),
    )


def _property_claim(
    kind: str, check: PropertyCheck, has_property: Mapping[int, bool]
) -> PaperClaim:
    """The claim on a property of a kind, given by order whether each member has it."""
    orders = ", ".join(map(str, has_property))
    claim = PaperClaim(
        statement=f"{kind}: {check.name}, members of {orders} vertices",
        printed=float(check.printed),
        computed=float(all(has_property.values())),
        interpretation=" ".join(_readings(check.name, has_property)),
    )
    return _as_of_other_graphs(claim, has_property) if kind in OUR_OWN else claim


def _as_of_other_graphs(claim: PaperClaim, has_property: Mapping[int, bool]) -> PaperClaim:
    """The claim on a property of graphs that are built by a construction of our own: not computed.

    Args:
        claim: the claim as it would be of the paper's graphs.
        has_property: whether ours have the property, by the order.
    """
    with_it = ", ".join(str(order) for order, has in has_property.items() if has)
    which = f"Those of {with_it} vertices have it." if with_it else "None has it."
    why = f"{BUILT_FOR_TABLE_2} {which}"
    return replace(claim, computed=None, reason=why)


def _readings(name: str, has_property: Mapping[int, bool]) -> Iterator[str]:
    """Yield how a property is read, and which members have it if not all or none do.

    Args:
        name: the name of the property.
        has_property: whether the member has it, by the order of the member.
    """
    yield DEFINITIONS[name]
    if len({*has_property.values()}) > 1:
        with_it, without_it = (
            ", ".join(str(order) for order, has in has_property.items() if has == holds)
            for holds in (True, False)
        )
        yield (
            f"Read as of every member: of {with_it} vertices it has it, of {without_it} it"
            " has not, by a search of all maps."
        )


def has_r1(node: Supernode) -> bool:
    """Property R1 by any bijection f: two members are joined, or are images of two that are."""
    return bijection_of_r1(node.adjacency()) is not None


def has_rstar(node: Supernode) -> bool:
    """Property R* by any involution f: its own, or else by search."""
    return node.involution or involution_of_rstar(node.adjacency()) is not None


def _is_symmetric(node: Supernode) -> bool:
    """Whether a supernode is vertex-transitive."""
    return is_vertex_transitive(node.adjacency())


def configurations(_quick: bool) -> Evidence:
    """Table 3: the routers, radixes and endpoints of the compared networks."""
    return table_evidence("polarstar-3")
