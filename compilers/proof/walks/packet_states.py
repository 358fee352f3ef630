"""Packet states: where packets are and how they came, without failures and with some.

A packet in transit is known by the arc that it came in by and its destination. The states that
occur without failures are those from which walks under failures start.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Generic, TypeVar

import numpy as np
from numpy.typing import NDArray

from compilers.proof.walks.forwarding import HOME, NOWHERE, Dead, Forwarding, Numbers, Towards
from compilers.tables.build import Build
from compilers.tables.walk import MOST_HOPS
from compilers.workers.shards import THIS_PROCESS, Workers, in_blocks, told

FAILURE_CELLS_AT_ONCE = 1 << 18
LEAST_BLOCKS = 4
"""Blocks of destinations below which another process costs more than it saves."""
ARRIVED, DROPPED, LOOPED = 0, 1, 2
Progress = Callable[[int, int], None]
Begun = Callable[[str, float], None]
"""Told what no certificate proves when its walk begins: a key of `compilers.estimates.WORKS`, and
the part of that which is to be done."""
T = TypeVar("T")


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
        marked = np.zeros(len(depth) * f.marks, np.bool_)
        for number, ways in enumerate(f.weighted):
            way = ways.take(row)
            into = f.end[way[way >= 0]] * width + column[way >= 0]
            if number >= f.first_marked:
                marked[into] = True
            else:
                depth[into] = 1
        ended, strays = cls._spread(towards, marked)
        weighted = np.count_nonzero(f.weighted.take(row, axis=1) >= 0, axis=0)
        # A host whose class has no weighted way follows the transit rule.
        none = (f.hosts[at] * width + column)[weighted == 0]
        cells = none
        for level in range(1, MOST_HOPS + 2):
            arc, column = np.divmod(cells, width)
            which, out = towards.ways_out(arc, column)
            arc, column = arc[which], column[which]
            home = arc // f.slots == towards.destinations[column]
            strays.append(cells[which[(out == NOWHERE) | ((out == HOME) != home)]])
            moving = out >= 0
            cells = f.end[out[moving]].astype(np.int64) * width + column[moving]
            depth[cells] = level
            depth[ended.get(level, [])] = level
            cells = np.flatnonzero(depth == level)
            if not len(cells) and level >= max(ended, default=0):
                break
        else:
            strays.append(cells)
        return cls(towards, depth, np.concatenate(strays), int(weighted.sum()))

    @staticmethod
    def _spread(
        towards: Towards, marked: NDArray[np.bool_]
    ) -> tuple[dict[int, Numbers], list[Numbers]]:
        """By links taken, the cells where marks are no more, and those of no way.

        Those that are not spread are in transit from where they are.
        """
        after, strays = dict[int, Numbers](), [np.zeros(0, np.int64)]
        ended, links = strays[0], 1
        while marked.any() or len(ended):
            found = towards.spread(marked)
            after[links] = np.concatenate((ended, found.others))
            strays.append(found.stuck)
            ended, links = found.ended, links + 1
            marked = np.zeros_like(marked)
            marked[found.kept] = True
        return after, strays

    def told_apart(self, failures: int) -> Reached:
        """Of states that `failures` dead elements cannot tell apart, those after the most links.

        Switches tell ways in apart that their class names, and hosts. Of the other ways into a
        switch, as many stay as elements fail, those that packets can have taken most links to: the
        way out is down, so one of them is up, and its packets do what those of all others do.
        """
        f, width = self.towards.forwarding, len(self.towards.destinations)
        shape = f.switches, f.slots, width
        depth = np.full(len(self.depth) + 1, NOWHERE, np.int8)
        depth[:-1] = self.depth
        kept = np.full_like(depth, NOWHERE)
        place = np.arange(f.switches * width) % width

        def keep(cell: Numbers) -> None:
            kept[cell] = np.maximum(kept[cell], depth[cell])
            depth[cell] = NOWHERE

        keep((f.hosts[:, None] * width + np.arange(width)).ravel())
        for ways in (f.order, f.bounce):
            for way in ways:
                arc = way.take(self.towards.rows).astype(np.int64)
                keep(np.where(arc >= 0, arc * width + place, len(self.depth)))
        first = np.arange(f.switches)[:, None] * f.slots * width + np.arange(width)
        for _ in range(failures):
            keep((depth[:-1].reshape(shape).argmax(axis=1) * width + first).ravel())
        return replace(self, depth=kept[:-1])


def packets(build: Build) -> int:
    """The number of packets to follow without failures: pairs times ports of a class."""
    ends = int(np.count_nonzero(build.topology.endpoints))
    return ends * ends * int(build.tables.classes.weight.shape[2])


@dataclass(frozen=True, slots=True)
class BlockWalk(Generic[T]):
    """What is made of the packet states without failures towards a block of destinations.

    look: at a block. forwarding: of the build, where it is made already.
    """

    look: Callable[[Build, Reached], T]
    forwarding: Forwarding | None = None

    def __call__(self, build: Build) -> Callable[[NDArray[np.int64]], T]:
        """What is made of each block of this build."""
        f = self.forwarding or Forwarding.of(build)
        ends = np.flatnonzero(build.topology.endpoints)
        return lambda block: self.look(build, Reached.of(Towards.of(f, block), ends))

    def over(
        self,
        build: Build,
        workers: Workers,
        progress: Progress | None,
        destinations: NDArray[np.int64] | None = None,
    ) -> Iterator[T]:
        """One value for each block, in order; no `destinations`: those of all hosts."""
        ends = np.flatnonzero(build.topology.endpoints)
        towards = ends if destinations is None else destinations
        cells = build.wiring.far.shape[0] * (build.wiring.far.shape[1] + 1)
        blocks = in_blocks(towards, max(1, FAILURE_CELLS_AT_ONCE // cells))
        yield from told(workers.over(self, build, blocks, least=LEAST_BLOCKS), blocks, progress)


def reachable(build: Build, f: Forwarding, progress: Progress | None = None) -> Iterator[Reached]:
    """The packet states without failures, one block of destinations at a time."""
    return BlockWalk(lambda _, reached: reached, f).over(build, THIS_PROCESS, progress)


@dataclass(frozen=True, slots=True, eq=False)
class Followed:
    """n packets that met failures: where they met the first, and what became of them.

    outcome: int8[n], ARRIVED, DROPPED or LOOPED. hops: int64[n], all links taken.
    """

    starts: PacketStates
    outcome: NDArray[np.int8]
    hops: Numbers

    @classmethod
    def of(cls, towards: Towards, packets: PacketStates) -> Followed:
        """Forward packets until they stop, 64 links at most."""
        f = towards.forwarding
        if f.every_hop:
            return cls._over_all_ways(towards, packets)
        outcome = np.full(len(packets.arc), LOOPED, np.int8)
        hops = packets.hops.astype(np.int64)
        left, arc = np.arange(len(hops)), packets.arc
        column, dead = packets.column, packets.dead
        for _ in range(MOST_HOPS):
            out = towards.way_out(arc, column, dead)
            outcome[left[out < 0]] = DROPPED
            outcome[left[towards.delivered(out, arc, column)]] = ARRIVED
            going = np.flatnonzero(out >= 0)
            left, arc = left[going], f.end[out[going]]
            if not len(left):
                break
            column, dead = column[going], tuple(part[going] for part in dead)
            hops[left] += 1
        return cls(packets, outcome, hops)

    @classmethod
    def _over_all_ways(cls, towards: Towards, packets: PacketStates) -> Followed:
        """The same where switches choose among ways: of each packet the worst that can be, and the
        most links.

        Packets that come in by one arc after as many links do the same from there on.
        """
        f = towards.forwarding
        outcome = np.full(len(packets.arc), ARRIVED, np.int8)
        hops = packets.hops.astype(np.int64)
        left, arc = np.arange(len(hops)), packets.arc
        for links in range(MOST_HOPS):
            at = packets.take(left)
            which, out = towards.ways_out(arc, at.column, at.dead)
            arc, column, left = arc[which], at.column[which], left[which]
            lost = (out < 0) & ~towards.delivered(out, arc, column)
            outcome[left[lost]] = DROPPED
            going = np.flatnonzero(out >= 0)
            state = np.unique(left[going] * len(f.end) + f.end[out[going]])
            left, arc = np.divmod(state, len(f.end))
            if not len(left):
                break
            hops[left] = packets.hops[left] + links + 1
        outcome[left] = LOOPED
        return cls(packets, outcome, hops)


def losers(reached: Reached, sources: NDArray[np.bool_], lost: PacketStates) -> Numbers:
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
        ways = f.weighted.take(row, axis=1) == way
        if f.marks:
            keys += _marked_losers(towards, sources, lost, way)
            ways[f.first_marked :] &= ~towards.spreads(lost.arc // f.slots, lost.column)
        chosen &= ways.any(axis=0)
        keys.append(_key(f, width, lost.take(chosen), before[chosen]))

        which, slot = np.nonzero(np.ones((len(way), f.slots), np.bool_))
        again = lost.take(which)
        arc = before[which] * f.slots + slot
        chooses = np.flatnonzero(f.weighted.take(row, axis=1).max(axis=0) >= 0)
        weighted_host = (slot == f.slots - 1) & np.isin(which, chooses)
        comes = reached.depth[arc * width + again.column] >= 0
        comes &= ~weighted_host & ~f.down(arc, again.dead)
        kept = np.flatnonzero(comes)
        packet, out = towards.ways_out(arc[kept], again.column[kept])
        kept = kept[packet[out == way[which[kept[packet]]]]]
        again = again.take(kept)
        cell = (again.case * len(f.end) + arc[kept]) * width + again.column
        _, first = np.unique(cell, return_index=True)
        again = again.take(first)
        lost = PacketStates(arc[kept][first], again.column, again.case, again.dead, again.hops)
    return np.unique(np.concatenate(keys)) if keys else np.zeros(0, np.int64)


def _marked_losers(
    towards: Towards, sources: NDArray[np.bool_], lost: PacketStates, way: Numbers
) -> list[Numbers]:
    """Pairs, as `losers` has them, whose marked packets are spread over these last ways."""
    f, width = towards.forwarding, len(towards.destinations)
    keys: list[Numbers] = []
    transit = ~towards.spreads(lost.arc // f.slots, lost.column)  # a mark has no effect there
    while len(way):
        before = way // f.slots
        which, slot = np.nonzero(np.ones((len(way), f.slots), np.bool_))
        again, arc = lost.take(which), before[which] * f.slots + slot
        link = way[which] % f.slots
        comes = (f.onward[arc, link >> 3] >> (link & 7).astype(np.uint8) & 1).astype(np.bool_)
        comes &= towards.spreads(before[which], again.column) & ~f.down(arc, again.dead)
        if not keys:
            comes &= transit[which] | ~towards.keeps(before[which], again.column)
        else:
            comes &= towards.keeps(before[which], again.column)
        lost, way = again.take(comes), f.end[arc[comes]]
        source = way // f.slots
        sent = sources[source] & (source != towards.destinations[lost.column])
        row = towards.row(source, lost.column)
        sent &= (f.weighted[f.first_marked :].take(row, axis=1) == way).any(axis=0)
        keys.append(_key(f, width, lost.take(sent), source[sent]))
    return keys


def _key(f: Forwarding, width: int, packets: PacketStates, source: Numbers) -> Numbers:
    return (packets.case * f.switches + source) * width + packets.column
