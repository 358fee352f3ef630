"""Walks under failures: the way of every packet while links or switches are down.

No controller acts. A packet goes its usual way until it meets a failure, so the walks start at
every cable that is down, with the packets that would cross it: for each destination, one for each
way of coming to the near end. From there the forwarding rule is followed, a link at a time.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import combinations

import numpy as np
from numpy.typing import NDArray

from compilers.proof.disconnected import disconnected
from compilers.proof.forwarding import HOME, NOWHERE, Dead, Forwarding, Numbers, Towards
from compilers.tables.build import Build
from compilers.tables.walk import MOST_HOPS

FAILURE_CELLS_AT_ONCE = 1 << 18
LOSS_EXAMPLES = 10
FAILURE_KINDS = ("link", "node", "2")
SAMPLE = 1000
ARRIVED, DROPPED, LOOPED = 0, 1, 2
Progress = Callable[[int, int], None]


@dataclass(frozen=True, slots=True)
class FailureLoss:
    """A pair of switches that loses packets while `failed` is down."""

    failed: str
    source: int
    destination: int


@dataclass(frozen=True, slots=True)
class FailureReport:
    """The effect of all failures of one kind on the pairs of switches that are left.

    kind: "link", "node" or "2" (any two links or nodes). cases: how many were tried, of
    `all_cases`. lost_pairs: over all cases, the pairs that lose packets on some way that their
    source may choose. looped: those whose packets are still forwarded after 64 links. max_hops: the
    longest path delivered, in links. stretch: the most links that a repair adds to a packet's path.
    losses: the first few lost pairs. cut_off: the lost pairs that no path joins any more, counted
    if the build promises to repair.
    """

    kind: str
    cases: int
    all_cases: int
    lost_pairs: int
    looped: int
    max_hops: int
    stretch: int
    losses: tuple[FailureLoss, ...]
    cut_off: int = 0


@dataclass(frozen=True, slots=True, eq=False)
class PacketStates:
    """n packets: the arc each came in by, the column of its destination, its case.

    dead: the failures of its case. hops: the most links that it can have taken so far.
    """

    arc: Numbers
    column: Numbers
    case: Numbers
    dead: Dead
    hops: Numbers

    def take(self, which: Numbers) -> PacketStates:
        """The packets with these indices or under this mask."""
        dead = tuple(part[which] for part in self.dead)
        return PacketStates(
            self.arc[which], self.column[which], self.case[which], dead, self.hops[which]
        )


@dataclass(frozen=True, slots=True, eq=False)
class Reached:
    """All packet states that occur without failures, towards D destinations.

    depth: int8[S·L·D], the most links that a packet for a column can have taken when it comes in by
    an arc; NOWHERE if no packet does. strays: cells of depth whose packet is not delivered. ways:
    the number of ports that hosts may choose, over all pairs.
    """

    towards: Towards
    depth: NDArray[np.int8]
    strays: NDArray[np.int64]
    ways: int

    @classmethod
    def of(cls, towards: Towards, sources: NDArray[np.int64]) -> Reached:
        """Follow every packet that hosts of `sources` can send, over every way it may take."""
        f, width = towards.forwarding, len(towards.destinations)
        depth = np.full(len(f.end) * width, NOWHERE, np.int8)
        source, column = np.nonzero(sources[:, None] != towards.destinations)
        at = sources[source]
        depth[f.hosts[at] * width + column] = 0
        row = towards.row(at, column)
        for ways in f.weighted:
            way = ways.take(row)
            depth[f.end[way[way >= 0]] * width + column[way >= 0]] = 1
        weighted = np.count_nonzero(f.weighted.take(row, axis=1) >= 0, axis=0)
        # A host whose class has no weighted way follows the transit rule.
        none = (f.hosts[at] * width + column)[weighted == 0]
        cells = np.concatenate((np.flatnonzero(depth == 1), none))
        strays = []
        for level in range(2, MOST_HOPS + 2):
            arc, column = np.divmod(cells, width)
            out = towards.way_out(arc, column)
            home = arc // f.slots == towards.destinations[column]
            strays.append(cells[(out == NOWHERE) | ((out == HOME) != home)])
            moving = out >= 0
            if not moving.any():
                break
            cells = f.end[out[moving]].astype(np.int64) * width + column[moving]
            depth[cells] = level
            cells = np.unique(cells)
        else:
            strays.append(cells)
        return cls(towards, depth, np.concatenate(strays), int(weighted.sum()))


def walk_failures(
    build: Build, kind: str, sample: int = SAMPLE, seed: int = 1, progress: Progress | None = None
) -> FailureReport:
    """Try every failure of a kind; of two at once, at most a sample.

    Args:
        build: its tables and wiring are walked.
        kind: one of `FAILURE_KINDS`.
        sample: the most cases of "2" to try.
        seed: of the sample.
        progress: called with destinations done and all.
    """
    f = Forwarding.of(build)
    cases, all_cases = _cases(f, kind, sample, seed)
    tally = _Tally(build, f, cases)
    for reached in reachable(build, f, progress):
        for packets in _starts(reached, cases):
            tally.add(reached, packets)
    return tally.report(kind, all_cases)


def reachable(build: Build, f: Forwarding, progress: Progress | None) -> Iterator[Reached]:
    """The packet states without failures, one block of destinations at a time."""
    ends = np.flatnonzero(build.topology.endpoints)
    step = max(1, FAILURE_CELLS_AT_ONCE // len(f.end))
    for first in range(0, len(ends), step):
        yield Reached.of(Towards.of(f, ends[first : first + step]), ends)
        if progress:
            progress(min(first + step, len(ends)), len(ends))


def _cases(f: Forwarding, kind: str, sample: int, seed: int) -> tuple[Numbers, int]:
    """int64[n, F], the dead elements of each case (`Forwarding.element`), and the count of all."""
    nodes = f.links + np.flatnonzero((f.end.reshape(f.switches, -1) >= 0).any(axis=1))
    if kind != "2":
        cases = np.arange(f.links) if kind == "link" else nodes
        return cases[:, None], len(cases)
    elements = np.concatenate((np.arange(f.links), nodes))
    parts = len(elements)
    all_cases = parts * (parts - 1) // 2
    if all_cases <= sample:
        return np.array(list(combinations(elements.tolist(), 2))), all_cases
    random = np.random.default_rng(seed)
    chosen: set[tuple[int, int]] = set()
    while len(chosen) < sample:
        one, other = sorted(random.integers(parts, size=2).tolist())
        if one != other:
            chosen.add((one, other))
    return elements[np.array(sorted(chosen))], all_cases


def _starts(reached: Reached, cases: Numbers) -> Iterator[PacketStates]:
    """The packets that meet a failure, one group of cases at a time."""
    towards, parts = reached.towards, cases.shape[1]
    f = towards.forwarding
    arc, column, hops, out = _crossing(reached, parts)
    group = len(cases) if parts == 1 else max(1, (f.links + f.switches) // 4)
    for first in range(0, len(cases), group):
        which, case = _meeting(f, out, cases[first : first + group])
        if not len(which):
            continue
        packets = PacketStates(
            arc=arc[which],
            column=column[which],
            case=case + first,
            dead=tuple(cases[case + first].T),
            hops=hops[which],
        )
        yield packets.take(_left(towards, packets))


def _crossing(reached: Reached, parts: int) -> tuple[Numbers, Numbers, Numbers, Numbers]:
    """Every packet and its way out: arc, column, hops and way, int[n] each.

    Packets from hosts with more than `parts` ways are left out: one of the ways is always up, and
    the packets on it are followed anyway.
    """
    towards = reached.towards
    f, width = towards.forwarding, len(towards.destinations)
    cells = np.flatnonzero(reached.depth >= 0)
    arc, column = np.divmod(cells, width)
    hops, from_host = reached.depth[cells], np.flatnonzero(arc % f.slots == f.slots - 1)
    ways = f.weighted.take(towards.row(arc[from_host] // f.slots, column[from_host]), axis=1)
    count = np.count_nonzero(ways >= 0, axis=0)
    taken, host = np.nonzero((ways >= 0) & (count <= parts))
    chooses = np.zeros(len(arc), np.bool_)
    chooses[from_host[count > 0]] = True
    transit = np.flatnonzero(~chooses)
    which = np.concatenate((transit, from_host[host]))
    out = towards.way_out(arc[transit], column[transit])
    return arc[which], column[which], hops[which], np.concatenate((out, ways[taken, host]))


def _meeting(f: Forwarding, out: Numbers, cases: Numbers) -> tuple[Numbers, Numbers]:
    """int64[n] twice: the indices of ways out that are down, and the case in which each is."""
    parts = f.links + f.switches
    by_part = np.argsort(cases.ravel(), kind="stable")
    count = np.bincount(cases.ravel(), minlength=parts)
    start = np.cumsum(count) - count
    found = []
    for element in f.element:
        part = element[out]
        which = np.repeat(np.arange(len(out)), count[part])
        ahead = np.cumsum(count[part]) - count[part]
        place = np.arange(len(which)) - ahead[which] + start[part[which]]
        found.append((which, by_part[place] // cases.shape[1]))
    which, case = (np.concatenate(part) for part in zip(*found, strict=True))
    return which, case


def _left(towards: Towards, packets: PacketStates) -> NDArray[np.bool_]:
    """bool[n]: packets whose ends and last link are up, and that a host cannot send another way."""
    f = towards.forwarding
    at = packets.arc // f.slots
    left = ~f.down(packets.arc, packets.dead)
    for part in packets.dead:
        left &= part != f.links + at
        left &= part != f.links + towards.destinations[packets.column]
    hosts = np.flatnonzero(packets.arc % f.slots == f.slots - 1)
    for ways in f.weighted:
        way = ways.take(towards.row(at[hosts], packets.column[hosts]))
        down = f.down(way, tuple(part[hosts] for part in packets.dead))
        left[hosts] &= (way < 0) | down
    return left


def _follow(towards: Towards, packets: PacketStates) -> tuple[NDArray[np.int8], Numbers]:
    """int8[n], int64[n]: ARRIVED, DROPPED or LOOPED, and the total of links taken."""
    f = towards.forwarding
    outcome = np.full(len(packets.arc), LOOPED, np.int8)
    hops = packets.hops.astype(np.int64)
    left, arc = np.arange(len(hops)), packets.arc
    column, dead = packets.column, packets.dead
    for _ in range(MOST_HOPS):
        out = towards.way_out(arc, column, dead)
        home = (out == HOME) & (arc // f.slots == towards.destinations[column])
        outcome[left[out < 0]] = DROPPED
        outcome[left[home]] = ARRIVED
        going = np.flatnonzero(out >= 0)
        left, arc = left[going], f.end[out[going]]
        if not len(left):
            break
        column, dead = column[going], tuple(part[going] for part in dead)
        hops[left] += 1
    return outcome, hops


def _losers(reached: Reached, sources: NDArray[np.bool_], lost: PacketStates) -> Numbers:
    """int64[n]: (case·S + source)·D + column of the pairs whose packets can be among `lost`.

    It goes back over the ways that packets can have come, a link at a time.
    """
    towards = reached.towards
    f, width = towards.forwarding, len(towards.destinations)
    keys: list[Numbers] = []
    while len(lost.arc):
        host = lost.arc % f.slots == f.slots - 1
        keys.append(_key(f, width, lost.take(host), lost.arc[host] // f.slots))
        lost = lost.take(~host)
        way = f.end[lost.arc]
        before = way // f.slots
        row = towards.row(before, lost.column)
        chosen = sources[before] & (before != towards.destinations[lost.column])
        chosen &= (f.weighted.take(row, axis=1) == way).any(axis=0)
        keys.append(_key(f, width, lost.take(chosen), before[chosen]))

        which, slot = np.nonzero(np.ones((len(way), f.slots), np.bool_))
        again = lost.take(which)
        arc = before[which] * f.slots + slot
        chooses = np.flatnonzero(f.weighted.take(row, axis=1).max(axis=0) >= 0)
        weighted_host = (slot == f.slots - 1) & np.isin(which, chooses)
        comes = reached.depth[arc * width + again.column] >= 0
        comes &= ~weighted_host & ~f.down(arc, again.dead)
        kept = np.flatnonzero(comes)
        kept = kept[towards.way_out(arc[kept], again.column[kept]) == way[which[kept]]]
        again = again.take(kept)
        cell = (again.case * len(f.end) + arc[kept]) * width + again.column
        _, first = np.unique(cell, return_index=True)
        again = again.take(first)
        lost = PacketStates(arc[kept][first], again.column, again.case, again.dead, again.hops)
    return np.unique(np.concatenate(keys)) if keys else np.zeros(0, np.int64)


def _key(f: Forwarding, width: int, packets: PacketStates, source: Numbers) -> Numbers:
    return (packets.case * f.switches + source) * width + packets.column


class _Tally:
    """Counts over all cases."""

    def __init__(self, build: Build, f: Forwarding, cases: Numbers) -> None:
        self.build, self.f, self.cases = build, f, cases
        self.lost_pairs = self.looped = self.max_hops = self.stretch = self.cut_off = 0
        self.losses: list[FailureLoss] = []

    def add(self, reached: Reached, packets: PacketStates) -> None:
        """Follow packets and count the outcomes."""
        towards = reached.towards
        outcome, hops = _follow(towards, packets)
        arrived = outcome == ARRIVED
        if arrived.any():
            usual = self.f.walker.hops(towards.destinations)
            at = packets.arc[arrived] // self.f.slots
            added = hops[arrived] - packets.hops[arrived] - usual[at, packets.column[arrived]]
            self.max_hops = max(self.max_hops, int(hops[arrived].max()))
            self.stretch = max(self.stretch, int(added.max()))
        if arrived.all():
            return
        ends = self.build.topology.endpoints
        lost = _losers(reached, ends, packets.take(~arrived))
        looping = outcome == LOOPED
        self.looped += len(_losers(reached, ends, packets.take(looping))) if looping.any() else 0
        self.lost_pairs += len(lost)
        if self.build.protect != "none":
            before, column = np.divmod(lost, len(towards.destinations))
            pairs = (*np.divmod(before, self.f.switches), towards.destinations[column])
            self.cut_off += disconnected(self.build.topology.graph, self.f, self.cases, *pairs)
        for key in lost[: LOSS_EXAMPLES - len(self.losses)].tolist():
            before, column = divmod(key, len(towards.destinations))
            case, source = divmod(before, self.f.switches)
            destination = int(towards.destinations[column])
            self.losses.append(FailureLoss(self._name(case), source, destination))

    def _name(self, case: int) -> str:
        """The names of the nodes and links that fail in a case."""
        return " and ".join(element_name(self.build, self.f, p) for p in self.cases[case].tolist())

    def report(self, kind: str, all_cases: int) -> FailureReport:
        """The report on all cases."""
        return FailureReport(
            kind=kind,
            cases=len(self.cases),
            all_cases=all_cases,
            lost_pairs=self.lost_pairs,
            looped=self.looped,
            max_hops=self.max_hops,
            stretch=self.stretch,
            losses=tuple(self.losses),
            cut_off=self.cut_off,
        )


def element_name(build: Build, f: Forwarding, element: int) -> str:
    """The name of a number of `Forwarding.element`: a node's name, or `A-B` for a link."""
    names = build.wiring.names
    if element >= f.links:
        return names[element - f.links]
    one, other = f.ends(element)
    return f"{names[one]}-{names[other]}"
