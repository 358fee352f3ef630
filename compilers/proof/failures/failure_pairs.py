"""Pairs of failures: the packets that meet two, of all links and switches.

A packet that meets one failure goes on under it. Each link that it takes then, and each switch that
it comes to, may be the second failure, unless it was used before. So pairs that no packet meets
cost nothing: at q = 9 there are 146,000, and a packet meets ten or so.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from compilers.proof.failures.failure_starts import counted, starts
from compilers.proof.walks.forwarding import Forwarding, Numbers
from compilers.proof.walks.packet_states import (
    ARRIVED,
    DROPPED,
    LOOPED,
    Followed,
    PacketStates,
    Reached,
)
from compilers.tables.walk import MOST_HOPS

UNMET_AT_ONCE = 1 << 20


def meeting_two(reached: Reached) -> Iterator[Followed]:
    """Packets that meet two failures; case a·M + b, a < b, of the M elements of `Forwarding`.

    Those that the first loses alone come once for each second one, and those that arrive without
    meeting a second once, as case a·M + a.
    """
    f = reached.towards.forwarding
    for met in starts(reached, np.arange(f.links + f.switches)[:, None]):
        yield from _SecondFailure(reached, met).each()
    yield from _hosts_of_two_ways(reached)


@dataclass(frozen=True, slots=True, eq=False)
class _SecondFailure:
    """Packets that met one failure, all elements as the second one."""

    reached: Reached
    met: PacketStates

    def each(self) -> Iterator[Followed]:
        """Forward the packets a link at a time, and those that fail there to their ends."""
        towards = self.reached.towards
        f, met = towards.forwarding, self.met
        left, arc, used = np.arange(len(met.arc)), met.arc, np.zeros((0, len(met.arc)), np.int32)
        for links in range(MOST_HOPS):
            packets = replace(met.take(left), arc=arc, hops=met.hops[left] + links)
            out = towards.way_out(arc, packets.column, packets.dead)
            home = towards.delivered(out, arc, packets.column)
            yield self._alone(left[home], ARRIVED, packets.hops[home])
            lost = (out < 0) & ~home
            yield from self._unmet(left[lost], DROPPED, used[:, lost])
            going = np.flatnonzero(out >= 0)
            left, out, used, packets = left[going], out[going], used[:, going], packets.take(going)
            if not len(left):
                return
            for element in f.element:
                second = element[out]
                fresh = np.flatnonzero(~_among(f, second, used))
                yield self._failing(left[fresh], packets.take(fresh), second[fresh])
            arc, used = f.end[out], np.concatenate((used, out[None]))
        yield from self._unmet(left, LOOPED, used)

    def _alone(self, which: Numbers, outcome: int, hops: Numbers) -> Followed:
        """Packets that meet no second failure."""
        packets = self._with(which, self.met.dead[0][which])
        return Followed(packets, np.full(len(which), outcome, np.int8), hops)

    def _failing(self, which: Numbers, packets: PacketStates, second: Numbers) -> Followed:
        """Packets, now at `packets`, that meet the second failure there."""
        begun = self._with(which, second)
        kept = np.flatnonzero(counted(self.reached.towards, begun))
        begun = begun.take(kept)
        there = replace(packets.take(kept), dead=begun.dead)
        return replace(Followed.of(self.reached.towards, there), starts=begun)

    def _unmet(self, which: Numbers, outcome: int, used: NDArray[np.int32]) -> Iterator[Followed]:
        """Packets that are lost without a second failure: lost under each that they do not use."""
        f = self.reached.towards.forwarding
        parts = f.links + f.switches
        seconds = np.flatnonzero(np.bincount(np.maximum(f.element, 0).ravel(), minlength=parts))
        step = max(1, UNMET_AT_ONCE // parts)
        for first in range(0, len(which), step):
            some = slice(first, first + step)
            origin = np.repeat(which[some], len(seconds))
            second = np.tile(seconds, len(which[some]))
            taken = np.repeat(used[:, some], len(seconds), axis=1)
            kept = ~_among(f, second, taken) & (second != self.met.dead[0][origin])
            begun = self._with(origin[kept], second[kept])
            begun = begun.take(counted(self.reached.towards, begun))
            yield Followed(begun, np.full(len(begun.arc), outcome, np.int8), begun.hops)

    def _with(self, which: Numbers, second: Numbers) -> PacketStates:
        """The packets where they met the first failure, and the second one with it."""
        f, met = self.reached.towards.forwarding, self.met.take(which)
        return _failed(f, met, met.dead[0], second)


def _failed(f: Forwarding, packets: PacketStates, one: Numbers, other: Numbers) -> PacketStates:
    """The packets with two elements dead, and the number of their case."""
    low, high = np.minimum(one, other).astype(np.int64), np.maximum(one, other)
    return replace(packets, case=low * (f.links + f.switches) + high, dead=(one, other))


def _among(f: Forwarding, second: Numbers, used: NDArray[np.int32]) -> NDArray[np.bool_]:
    """bool[n]: elements that any of the ways needs, int32[m, n]."""
    found = np.zeros(len(second), np.bool_)
    for way in used:
        for element in f.element:
            found |= element[way] == second
    return found


def _hosts_of_two_ways(reached: Reached) -> Iterator[Followed]:
    """Packets from hosts that may take two ways, both of which are down."""
    towards = reached.towards
    f, width = towards.forwarding, len(towards.destinations)
    source, column = np.nonzero(reached.depth.reshape(-1, f.slots, width)[:, -1] >= 0)
    ways = f.weighted.take(towards.row(source, column), axis=1)
    two = np.count_nonzero(ways >= 0, axis=0) == 2
    source, column, ways = source[two], column[two], -np.sort(-ways[:, two], axis=0)[:2]
    if not len(source):
        return
    arc = f.hosts[source]
    blank = PacketStates(arc, column, arc, (arc,), reached.depth[arc * width + column])
    for one in f.element:
        for other in f.element:
            packets = _failed(f, blank, one[ways[0]], other[ways[1]])
            packets = packets.take(counted(towards, packets))
            yield Followed.of(towards, packets)
