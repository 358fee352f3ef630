"""Builds proved state by state: what holds towards each destination (`state_proof`)."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, fields
from math import isqrt
from os import sched_getaffinity
from typing import Any

import numpy as np
from numpy.typing import NDArray

from compilers.forwarding.machine_code import for_packets
from compilers.forwarding.program import egress_classes, program_of
from compilers.forwarding.rule import DELIVER, DROP, Program
from compilers.forwarding.walks import Progress, packets
from compilers.proof.local.state_proof import CASES, MOST, SEVERAL, cases_of_classes, prove_states
from compilers.proof.soundness.port_use import PortUse, bits, packed_alternates
from compilers.routing.marked_spread import fewest_onward
from compilers.tables.build import Build
from compilers.tables.build_parts import classes_of, switch_blocks
from compilers.tables.fib import Fib
from compilers.tables.packed_alternates import AlternateWeights, counts

PROVED = ("link", "node")
AT_ONCE = 256
"""Destinations that are proved together: the tables of a switch are looked up for all of them."""
Bits = NDArray[np.bool_]
Numbers = NDArray[np.int64]


@dataclass(frozen=True, slots=True, eq=False)
class LocalProof:
    """What is proved of D destinations, all switches with hosts.

    delivers: bool[D], every packet of hosts arrives while all is up, over a minimal path if it
    takes no alternate. repaired, stretch, hops: by kind of failure. bool[D]: that, and nothing is
    lost; int64[D]: no repair adds more links; int64[D]: no packet that meets one takes more.
    longest: int64[D], the links of the longest path. paths: int64[D], ports that hosts may choose.
    hop_counts: int64[D, MOST], pairs by links. Where all destinations are proved at once, the first
    has these two of all.
    """

    destinations: Numbers
    delivers: Bits
    repaired: dict[str, Bits]
    stretch: dict[str, Numbers]
    hops: dict[str, Numbers]
    longest: Numbers
    paths: Numbers
    hop_counts: Numbers

    @classmethod
    def of_all(
        cls, paths: int, hop_counts: tuple[int, ...], longest: int, stretch: dict[str, Numbers]
    ) -> LocalProof:
        """What is proved of all switches at once, each with hosts.

        Args:
            paths: ports that hosts may choose, over all pairs.
            hop_counts: of the S(S - 1) pairs, by links.
            longest: no path has more links.
            stretch: int64[S] by kind of failure.
        """
        order = len(next(iter(stretch.values()))) if stretch else isqrt(sum(hop_counts)) + 1
        first = np.zeros((order, 1 + MOST), np.int64)
        first[0, : 1 + len(hop_counts)] = paths, *hop_counts
        all_of, most = np.ones(order, np.bool_), np.full(order, longest)
        return cls(
            np.arange(order),
            all_of,
            dict.fromkeys(stretch, all_of),
            stretch,
            {kind: longest + links for kind, links in stretch.items()},
            most,
            first[:, 0],
            first[:, 1:],
        )

    @property
    def open(self) -> Numbers:
        """The destinations of which something is not proved, which may yet hold."""
        holds: Bits = np.logical_and.reduce([self.delivers, *self.repaired.values()])
        return self.destinations[~holds]


@dataclass(frozen=True, slots=True, eq=False)
class ClassStates:
    """What switches do by class, as `state_proof` asks it; arguments of that name."""

    p: Program
    only: NDArray[np.int16]
    sharing: NDArray[np.uint8]
    marks: bool
    cases: NDArray[np.int16]
    turn: NDArray[np.int16]
    words: Numbers
    ends: Bits
    used: Bits

    @classmethod
    def of(cls, build: Build, kinds: Bits) -> ClassStates:
        """Ask the rule about all classes of a build, and make no array of all its alternates."""
        classes, wiring = build.tables.classes, build.wiring
        switches, links = wiring.far.shape
        number = classes.port.shape[1]
        p = program_of(build, shares=False)
        shape = switches, number
        shares, only = np.zeros(shape, np.int16), np.full(shape, -1, np.int16)
        sets = np.zeros((*shape, (links + 7) // 8), np.uint8)
        use = PortUse.of(wiring)
        for some in switch_blocks(build):
            found = sharing(classes_of(build, some), use.part(some), p.order[some, :, 0])
            sets[some], shares[some] = found
            links_of = counts(sets[some])
            only[some][links_of > 1] = SEVERAL
            single = np.nonzero(links_of == 1)
            only[some][single] = np.unpackbits(sets[some][single], axis=1).argmax(axis=1)
        cases, turn = np.empty((*shape, CASES, 2), np.int16), np.empty(shape, np.int16)
        words = np.empty(shape, np.int64)
        ask = for_packets(packets(build), cases_of_classes)
        ask(p, shares, only, kinds, cases, turn, words)
        ends = build.topology.endpoints.copy()
        used = ends | (wiring.far >= 0).any(axis=1)
        marks = build.forwarding.marks
        return cls(p, only, sets, marks, cases, turn, words, ends, used)

    @property
    def arguments(self) -> tuple[Any, ...]:
        """The first arguments of `prove_states`."""
        return tuple(getattr(self, part.name) for part in fields(self))


def sharing(
    build: Build, use: PortUse, minimal: NDArray[np.int16]
) -> tuple[NDArray[np.uint8], Numbers]:
    """uint8[n, C, B], int64[n, C]: the links with a share of hosts' packets, and how many shares.

    The minimal port may be among the alternates, too, and has two then.
    """
    c, links = build.tables.classes, build.wiring.far.shape[1]
    if isinstance(c.weight, AlternateWeights) and (spread := packed_alternates(build, use)):
        weight = c.weight.packed.weight
        found = spread.links & (-(weight[..., 1] > 0).astype(np.int8)).view(np.uint8)[..., None]
        count = np.minimum(counts(spread.links), counts(c.weight.packed.links))
        count = count * (weight[..., 1] > 0).astype(np.int64)
        main = weight[..., 0] > 0
    else:
        found = np.zeros((*c.port.shape, (links + 7) // 8), np.uint8)
        alternate, weight = use.links(np.asarray(c.alternate)), np.asarray(c.weight)
        shared = (alternate >= 0) & (weight[..., 1:] > 0)
        count, (s, k, n) = np.count_nonzero(shared, axis=2), np.nonzero(shared)
        byte, bit = bits(alternate[s, k, n])
        np.bitwise_or.at(found, (s, k, byte), bit)
        main = weight[..., 0] > 0
    main &= minimal >= 0
    s, k = np.nonzero(main)
    byte, bit = bits(minimal[s, k])
    found[s, k, byte] |= bit
    return found, count + main


@dataclass(frozen=True, slots=True, eq=False)
class Columns:
    """The classes of S switches for destinations that are proved together, each with its own row.

    fib: of the tables. ends: int64[D], all destinations.
    """

    fib: Fib
    build: Build
    ends: Numbers

    @property
    def blocks(self) -> int:
        """How many blocks there are."""
        return -(-len(self.ends) // AT_ONCE)

    def block(self, number: int) -> tuple[Any, ...]:
        """The places of some destinations, and near, row, egress and base of them."""
        first = number * AT_ONCE
        some = slice(first, min(first + AT_ONCE, len(self.ends)))
        egress = egress_classes(self.build, self.ends[some], self.fib).T
        every = np.arange(len(egress), dtype=np.int32)
        return some, every, every, np.ascontiguousarray(egress), np.full(len(every), -1, np.int16)


@dataclass(frozen=True, slots=True, eq=False)
class GroupColumns:
    """The classes of switches for groups of k destinations, most of which serve all k alike.

    Consecutive destinations have one aggregate, and k consecutive switches the same prefixes. rows:
    int16[G, R, k], the classes of each such group of switches by row. by_prefix, first: the rows of
    each prefix, of all groups, as flat places in `Routes.prefix`.
    """

    aggregate: NDArray[np.int32]
    rows: NDArray[np.int16]
    by_prefix: NDArray[np.intp]
    first: NDArray[np.intp]

    @classmethod
    def of(cls, build: Build) -> GroupColumns | None:
        """Those of a build; None: its destinations have no such aggregates."""
        routes = build.tables.routes
        groups, width = routes.prefix.shape
        switches = len(routes.egress)
        k = switches // groups
        if groups * k != switches or k == 1 or not build.topology.endpoints.all():
            return None
        aggregate = routes.aggregate.reshape(groups, k)
        if aggregate[0, 0] < 0 or (aggregate != aggregate[:, :1]).any():
            return None
        rows = np.empty((groups, width, k), np.int16)
        number = class_numbers(routes.egress, build.tables.classes.port.shape[1])
        for x in range(groups):
            rows[x] = number[np.asarray(routes.egress[x * k : (x + 1) * k])].T
        prefix = np.asarray(routes.prefix).ravel()
        by_prefix = np.argsort(prefix, kind="stable")
        first = np.searchsorted(prefix[by_prefix], np.arange(int(prefix.max()) + 2))
        return cls(aggregate[:, 0], rows.reshape(groups * width, k), by_prefix, first)

    @property
    def blocks(self) -> int:
        """How many groups there are."""
        return len(self.aggregate)

    def _of(self, prefix: int) -> NDArray[np.intp]:
        """The rows of a prefix."""
        some = slice(0, 0)
        if 0 <= prefix < len(self.first) - 1:
            some = slice(self.first[prefix], self.first[prefix + 1])
        return self.by_prefix[some]

    def block(self, number: int) -> tuple[Any, ...]:
        """As `Columns.block`, for a group."""
        groups, k = len(self.aggregate), self.rows.shape[1]
        width = len(self.rows) // groups
        base = np.full((groups, k), DROP, np.int16)
        whole = self._of(int(self.aggregate[number]))
        base[whole // width] = self.rows[whole]
        single = [self._of(d) for d in range(number * k, (number + 1) * k)]
        sets = np.unique(np.concatenate(single) // width)
        egress = np.repeat(base[sets][:, :, None], k, axis=2)
        for j, rows in enumerate(single):
            given, at = self.rows[rows], np.searchsorted(sets, rows // width)
            egress[at, :, j] = np.where(given == DROP, egress[at, :, j], given)
        near = (sets[:, None] * k + np.arange(k)).ravel().astype(np.int32)
        row = np.full(groups * k, -1, np.int32)
        row[near] = np.arange(len(near))
        some = slice(number * k, (number + 1) * k)
        return some, near, row, np.ascontiguousarray(egress.reshape(-1, k)), base.ravel()


def class_numbers(egress: Any, classes: int) -> NDArray[np.int16]:
    """int16[n]: the class of each value of `Routes.egress`; DELIVER and DROP."""
    last = np.iinfo(egress.dtype).max
    number = np.full(int(last) + 1, DROP, np.int16)
    number[: min(classes, last - 1)] = np.arange(min(classes, last - 1))
    number[last] = DELIVER
    return number


def columns_of(build: Build) -> Columns | GroupColumns:
    """The columns of a build, by groups where there are some."""
    if found := GroupColumns.of(build):
        return found
    fib = Fib.of(build.tables, build.wiring.cables())
    return Columns(fib, build, np.flatnonzero(build.topology.endpoints))


def provable(build: Build) -> bool:
    """Whether states can be proved by themselves; else all is to be walked."""
    far = np.sort(build.wiring.far, axis=1)
    twice = (far[:, 1:] == far[:, :-1]) & (far[:, 1:] >= 0)
    if build.forwarding.every_hop or twice.any():
        return False
    return not build.forwarding.marks or fewest_onward(build.wiring) > 1


def local_proof(
    build: Build, kinds: tuple[str, ...], progress: Progress | None = None
) -> LocalProof:
    """Prove what holds towards all destinations.

    Args:
        build: sound cables and prefixes (`build_soundness.walkable`), and `provable`.
        kinds: of failures, of `link` and `node`.
        progress: called with destinations done and all.
    """
    asked = np.array([kind in kinds for kind in PROVED])
    states = ClassStates.of(build, asked)
    ends = np.flatnonzero(build.topology.endpoints)
    prove: Callable[..., None] = for_packets(packets(build), prove_states)
    columns = columns_of(build)
    count = len(ends)
    delivers, repaired = np.ones(count, np.bool_), np.ones((count, 2), np.bool_)
    stretch, hops = np.zeros((count, 2), np.int64), np.zeros((count, MOST), np.int64)
    longest, paths = np.zeros(count, np.int64), np.zeros(count, np.int64)

    def judge(number: int) -> int:
        some, *tables = columns.block(number)
        found = (each[some] for each in (delivers, repaired, stretch, longest, paths, hops))
        prove(*states.arguments, ends[some], *tables, asked, *found)
        return int(some.stop)

    with ThreadPoolExecutor(len(sched_getaffinity(0))) as pool:
        for done in pool.map(judge, range(columns.blocks)):
            if progress:
                progress(min(done, count), count)
    judged = [(n, kind) for n, kind in enumerate(PROVED) if kind in kinds]
    return LocalProof(
        ends,
        delivers,
        {kind: repaired[:, n] & delivers for n, kind in judged},
        {kind: stretch[:, n] for n, kind in judged},
        {kind: longest + stretch[:, n] for n, kind in judged},
        longest,
        paths,
        hops,
    )
