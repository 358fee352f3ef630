"""Packets to a switch that is down: the links that they load until their TTL ends.

Its neighbours cannot tell it from a dead link, and repair: the packet goes around among them. A
switch that sends a packet elsewhere than to the destination, its neighbour, halves the TTL
(`compilers.tables.intermediate_form.Classes`), so it does not go around for long.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from compilers.proof.walks import few_destinations
from compilers.proof.walks.forwarding import Forwarding, Numbers, Towards
from compilers.tables.build import Build
from compilers.tables.walk import MOST_HOPS

WAYS_AT_ONCE = 1 << 20
FOLLOWED_UP_TO = 1 << 18
"""The most packets that are followed; where there are more, those of some pairs by chance."""
DOWN_OF_A_KIND = 2
TTLS = MOST_HOPS + 1
"""As many as a packet with a TTL of 64 can come to have, 0 included."""


@dataclass(frozen=True, slots=True)
class DeadSwitchTraffic:
    """Links that packets of hosts take which are sent to a switch that is down, with TTL 64.

    most: of any that was followed. mean: over these. switches: that were down, one at a time; fewer
    than there are where pairs were chosen by chance. Where switches cannot halve the TTL, it is 63.
    """

    most: int
    mean: float
    switches: int


def dead_switch_traffic(build: Build, seed: int = 1) -> DeadSwitchTraffic:
    """Follow the packets of hosts to each switch while that one is down; to some, if they are many.

    Args:
        build: its tables deliver every pair.
        seed: chooses the switches, of each kind of vertices, and the sources.
    """
    down, sources = _pairs(build, seed)
    f = Forwarding.of(few_destinations.towards(build, down))
    step = max(1, WAYS_AT_ONCE // (len(sources) * len(f.weighted)))
    most, packets, links = 0, 0, 0.0
    for first in range(0, len(down), step):
        sent, taken = links_taken(Towards.of(f, down[first : first + step]), sources)
        most, packets, links = max(most, len(taken)), packets + sent, links + sum(taken)
    return DeadSwitchTraffic(most, links / packets if packets else 0.0, len(down))


def _pairs(build: Build, seed: int) -> tuple[Numbers, Numbers]:
    """int64[D] and int64[n], ascending: the switches that are down, and the sources of packets."""
    ends = np.flatnonzero(build.topology.endpoints)
    ways = build.tables.classes.weight.shape[2]
    if build.marks:  # each is spread over links again
        ways *= build.wiring.far.shape[1]
    if len(ends) ** 2 * ways <= FOLLOWED_UP_TO:
        return ends, ends
    mixed = np.random.default_rng(seed).permutation(ends)
    kind = build.topology.kind[mixed]
    down = np.concatenate([mixed[kind == k][:DOWN_OF_A_KIND] for k in np.unique(kind)])
    return np.sort(down), np.sort(mixed[: max(2, FOLLOWED_UP_TO // (len(down) * ways))])


def links_taken(towards: Towards, sources: Numbers) -> tuple[int, list[float]]:
    """How many packets hosts of `sources` send, a way each, and how many take a 1st, a 2nd link, …

    All destinations are down, each for the packets to it. Parts of a packet where switches on the
    way share it over several ways.
    """
    entering, waiting, marked = _from_hosts(towards, sources)
    cell, count = _merged(np.concatenate((entering, _forwarded(towards, waiting)[1])))
    taken: list[float] = []
    ended = _spread(towards, marked)
    sent = len(entering) + len(waiting) + sum(map(len, ended))
    while (len(cell) or ended) and len(taken) < MOST_HOPS - 1:
        taken.append(float(count.sum()) + sum(map(len, ended)))
        going, cell = _forwarded(towards, cell)
        more = ended.pop(0) if ended else marked[:0]
        parts = np.bincount(going, minlength=len(count))[going]
        ones = np.ones(len(more))
        cell, count = _merged(
            np.concatenate((cell, more)), np.concatenate((count[going] / parts, ones))
        )
    return sent, taken


def _spread(towards: Towards, marked: Numbers) -> list[Numbers]:
    """The cells of packets whose marks have ended after 2, 3, … links, each once for every way."""
    f, width = towards.forwarding, len(towards.destinations)
    ended: list[Numbers] = []
    while len(marked):
        place, ttl = np.divmod(marked, TTLS)
        arc, column = np.divmod(place, width)
        through = towards.spreads(arc // f.slots, column)
        if ended:
            ended[-1] = np.concatenate((ended[-1], marked[~through]))
        which, out = towards.onward(arc, column)
        after = (f.end[out].astype(np.int64) * width + column[which]) * TTLS + ttl[which] - 1
        kept = towards.keeps(arc[which] // f.slots, column[which])
        ended.append(after[~kept])
        marked = after[kept]
    return ended


def _from_hosts(towards: Towards, sources: Numbers) -> tuple[Numbers, Numbers, Numbers]:
    """Cells of packets that have crossed their first link, and of those that their switch repairs.

    And of those that have crossed it marked, and will be spread.

    A cell is (arc·D + column)·T + TTL, T = 65: the arc that a packet came in by, its destination.
    """
    f, width = towards.forwarding, len(towards.destinations)
    source, column = np.nonzero(sources[:, None] != towards.destinations)
    at = sources[source]
    ways = f.weighted.take(towards.row(at, column), axis=1)
    up = (ways >= 0) & (f.end.take(ways, mode="wrap") // f.slots != towards.destinations[column])
    way, packet = np.nonzero(up)
    into = f.end[ways[up]]
    entered = (into.astype(np.int64) * width + column[packet]) * TTLS + MOST_HOPS - 1
    marked = (way >= f.first_marked) & towards.spreads(into // f.slots, column[packet])
    none = ~up.any(axis=0)
    waiting = f.hosts[at[none]] * width + column[none]
    return entered[~marked], waiting * TTLS + MOST_HOPS, entered[marked]


def _forwarded(towards: Towards, cell: Numbers) -> tuple[Numbers, Numbers]:
    """The packets that a switch sends on, int64[m], which of the given ones, and their cells.

    Once for each way that they may take.
    """
    f, width = towards.forwarding, len(towards.destinations)
    place, ttl = np.divmod(cell, TTLS)
    arc, column = np.divmod(place, width)
    destination = towards.destinations[column]
    which, out = towards.ways_out(arc, column, (f.links + destination,))
    minimal = f.order[0].take(towards.row(arc // f.slots, column))
    direct = f.end.take(minimal, mode="wrap") // f.slots == destination
    left = (ttl[which] - 1) >> (direct[which] & (out != minimal[which]))
    kept = np.flatnonzero((out >= 0) & (ttl[which] > 1))
    going, into = which[kept], f.end[out[kept]].astype(np.int64)
    return going, (into * width + column[going]) * TTLS + left[kept]


def _merged(cell: Numbers, count: Numbers | None = None) -> tuple[Numbers, Numbers]:
    """The distinct cells, and how many packets are in each."""
    distinct, which = np.unique(cell, return_inverse=True)
    return distinct, np.bincount(which, count, len(distinct))
