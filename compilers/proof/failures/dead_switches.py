"""Packets to a switch that is down: the links that they load until their TTL ends.

Its neighbours cannot tell it from a dead link, and repair: the packet goes around among them. A
switch that sends a packet elsewhere than to the destination, its neighbour, halves the TTL
(`compilers.tables.intermediate_form.Classes`), so it does not go around for long.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from compilers.forwarding.many_packets import ManyPackets
from compilers.forwarding.rule import MARKED, PLAIN
from compilers.forwarding.walks import Numbers
from compilers.tables.build import Build
from compilers.tables.build_parts import towards
from compilers.tables.fib import MOST_HOPS

Reals = NDArray[np.float64]
PATHS_AT_ONCE = 1 << 20
FOLLOWED_UP_TO = 1 << 18
"""The most packets that are followed; where there are more, those of some pairs by chance."""
DOWN_OF_A_KIND = 2


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
    hops = ManyPackets.of(towards(build, down))
    step = max(1, PATHS_AT_ONCE // (len(sources) * hops.program.shares.shape[2]))
    blocks = (down[first : first + step] for first in range(0, len(down), step))
    packets, most, links = zip(*(links_taken(hops, some, sources) for some in blocks), strict=True)
    return DeadSwitchTraffic(max(most), sum(links) / max(1, sum(packets)), len(down))


def _pairs(build: Build, seed: int) -> tuple[Numbers, Numbers]:
    """int64[D] and int64[n], ascending: the switches that are down, and the sources of packets."""
    ends = np.flatnonzero(build.topology.endpoints)
    choices = build.tables.classes.weight.shape[2]
    if build.marks:  # each is spread over links again
        choices *= build.wiring.far.shape[1]
    if len(ends) ** 2 * choices <= FOLLOWED_UP_TO:
        return ends, ends
    mixed = np.random.default_rng(seed).permutation(ends)
    kind = build.topology.kind[mixed]
    down = np.concatenate([mixed[kind == k][:DOWN_OF_A_KIND] for k in np.unique(kind)])
    return np.sort(down), np.sort(mixed[: max(2, FOLLOWED_UP_TO // (len(down) * choices))])


class LinksTaken(NamedTuple):
    """Packets of hosts, the links that one takes at most, and those that all take together."""

    packets: int
    most: int
    links: float


def links_taken(hops: ManyPackets, down: Numbers, sources: Numbers) -> LinksTaken:
    """The links that packets of hosts at `sources` take to switches that are down.

    A packet for each link that hosts may choose, and for each that marked ones are spread over;
    parts of one where switches on the way share it over several links. down: int64[D], each for the
    packets to it.
    """
    p, egress, width = hops.program, hops.walks.egress(down), len(down)
    dead, spreads = (p.cables + down)[:, None], hops.spreads(egress)
    source, column = np.nonzero(sources[:, None] != down)
    arc, tag = hops.host(sources[source]), np.full(len(source), PLAIN)
    ttl: Numbers = np.full(len(source), MOST_HOPS)
    count: Reals = np.ones(len(source))
    sent, most, links = float(len(source)), 0, 0.0
    for taken in range(MOST_HOPS):
        which, out, marked = hops.after(egress, down, arc, column, tag, dead)
        several = np.bincount(which, minlength=len(arc))
        chooses = (arc % hops.slots == hops.slots - 1) | (tag == MARKED)
        more = float((count * (several - 1))[chooses].sum())
        sent, links = sent + more, links + more * taken
        count = (count / np.where(chooses, 1, several))[which]
        # Towards its neighbour a switch halves the TTL, unless hosts' packets may go elsewhere.
        at, ahead = arc[which] // hops.slots, column[which]
        number = egress[ahead, at]
        minimal = at * hops.slots + p.order[at, number, 0]
        shared = chooses[which] & (p.shares[at, number] == (out % hops.slots)[:, None]).any(axis=1)
        shared |= tag[which] == MARKED
        direct = hops.ends[minimal] == down[ahead]
        left = (ttl[which] - 1) >> (direct & (out != minimal) & ~shared)
        kept = (out >= 0) & (ttl[which] > 1)
        if not kept.any():
            break
        arc, ahead, count, left = hops.end[out[kept]], ahead[kept], count[kept], left[kept]
        most, links = taken + 1, links + float(count.sum())
        tag = np.where(spreads[ahead, arc // hops.slots], marked[kept], PLAIN)
        cell = ((arc.astype(np.int64) * 2 + tag) * width + ahead) * (MOST_HOPS + 1) + left
        cell, place = np.unique(cell, return_inverse=True)
        count = np.bincount(place, count, len(cell)).astype(np.float64)
        cell, ttl = np.divmod(cell, MOST_HOPS + 1)
        cell, column = np.divmod(cell, width)
        arc, tag = np.divmod(cell, 2)
    return LinksTaken(round(sent), most, links)
