"""Packets to a switch that is down: the links that they load until their TTL ends.

Its neighbours cannot tell it from a dead link, and repair: the packet goes around among them. A
switch that sends a packet elsewhere than to the destination, its neighbour, halves the TTL
(`compilers.tables.intermediate_form.Classes`), so it does not go around for long.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from compilers.proof.forwarding import Forwarding, Numbers, Towards
from compilers.tables.build import Build
from compilers.tables.walk import MOST_HOPS

WAYS_AT_ONCE = 1 << 20
TTLS = MOST_HOPS + 1
"""As many as a packet with a TTL of 64 can come to have, 0 included."""


@dataclass(frozen=True, slots=True)
class DeadSwitchTraffic:
    """Links that packets of hosts take which are sent to a switch that is down, with TTL 64.

    most: of any. mean: over all pairs and ways. Where switches cannot halve the TTL, it is 63.
    """

    most: int
    mean: float


def dead_switch_traffic(build: Build) -> DeadSwitchTraffic:
    """Follow the packets of all hosts to each switch, while that one is down."""
    f, ends = Forwarding.of(build), np.flatnonzero(build.topology.endpoints)
    step = max(1, WAYS_AT_ONCE // (len(ends) * len(f.weighted)))
    most = packets = links = 0
    for first in range(0, len(ends), step):
        sent, taken = links_taken(Towards.of(f, ends[first : first + step]), ends)
        most, packets, links = max(most, len(taken)), packets + sent, links + sum(taken)
    return DeadSwitchTraffic(most, links / packets if packets else 0.0)


def links_taken(towards: Towards, sources: Numbers) -> tuple[int, list[int]]:
    """How many packets hosts of `sources` send, a way each, and how many take a 1st, a 2nd link, …

    All destinations are down, each for the packets to it.
    """
    entering, waiting = _from_hosts(towards, sources)
    cell, count = _merged(np.concatenate((entering, _forwarded(towards, waiting)[1])))
    taken: list[int] = []
    while len(cell) and len(taken) < MOST_HOPS - 1:
        taken.append(int(count.sum()))
        going, cell = _forwarded(towards, cell)
        cell, count = _merged(cell, count[going])
    return len(entering) + len(waiting), taken


def _from_hosts(towards: Towards, sources: Numbers) -> tuple[Numbers, Numbers]:
    """Cells of packets that have crossed their first link, and of those that their switch repairs.

    A cell is (arc·D + column)·T + TTL, T = 65: the arc that a packet came in by, its destination.
    """
    f, width = towards.forwarding, len(towards.destinations)
    source, column = np.nonzero(sources[:, None] != towards.destinations)
    at = sources[source]
    ways = f.weighted.take(towards.row(at, column), axis=1)
    up = (ways >= 0) & (f.end.take(ways, mode="wrap") // f.slots != towards.destinations[column])
    entered = f.end[ways[up]].astype(np.int64) * width + column[np.nonzero(up)[1]]
    none = ~up.any(axis=0)
    waiting = f.hosts[at[none]] * width + column[none]
    return entered * TTLS + MOST_HOPS - 1, waiting * TTLS + MOST_HOPS


def _forwarded(towards: Towards, cell: Numbers) -> tuple[Numbers, Numbers]:
    """The packets that a switch sends on, int64[m], which of the given ones, and their cells."""
    f, width = towards.forwarding, len(towards.destinations)
    place, ttl = np.divmod(cell, TTLS)
    arc, column = np.divmod(place, width)
    destination = towards.destinations[column]
    out = towards.way_out(arc, column, (f.links + destination,))
    minimal = f.order[0].take(towards.row(arc // f.slots, column))
    direct = f.end.take(minimal, mode="wrap") // f.slots == destination
    ttl = (ttl - 1) >> (direct & (out != minimal))
    going = np.flatnonzero((out >= 0) & (cell % TTLS > 1))
    return going, (f.end[out[going]].astype(np.int64) * width + column[going]) * TTLS + ttl[going]


def _merged(cell: Numbers, count: Numbers | None = None) -> tuple[Numbers, Numbers]:
    """The distinct cells, and how many packets are in each."""
    distinct, which = np.unique(cell, return_inverse=True)
    return distinct, np.bincount(which, count, len(distinct)).astype(np.int64)
