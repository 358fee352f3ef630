"""Bounds of the packets on each arc, where packets go over intermediates that are not known.

What comes in are the paths of both legs: from every switch to every intermediate, and from every
switch to every switch. What goes out are the fewest and the most packets that each arc carries,
whatever intermediates are drawn. `host_paths` calls `add_packet_bounds`.

An *arc* is a directed link, as one number. Letters in the loops: s and d the switches of a pair, v
the number of an intermediate, n how many arcs of a path are written so far.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from compilers.forwarding.machine_code import loop
from compilers.forwarding.rule import Array

PATH_END = -1
"""Fills the arcs of a leg after its last one."""
LOST_ON_LEG = -1
"""In place of the switch where a first leg ends: the packet is lost on it."""


class ArcCounts(NamedTuple):
    """The crossings of each arc by the paths of one pair of switches over its intermediates."""

    path_count: Array
    """int64[arcs], the number of intermediates whose path crosses the arc."""
    by_current_path: Array
    """int64[arcs], how many times the current path crosses it; 0 between paths."""
    fewest_crossings: Array
    """int64[arcs], the fewest times that a path crosses it, of the paths that do."""
    most_crossings: Array
    """int64[arcs], the most times that a path crosses it."""
    crossed: Array
    """int64[arcs], the arcs with `path_count` above 0, in its first entries."""


@loop
def write_path(first_leg: Array, second_legs: Array, end: int, d: int, path: Array) -> int:
    """Write the arcs of a path over an intermediate; returns how many there are.

    Args:
        first_leg: int32[H], the arcs of the first leg; PATH_END after the last.
        second_legs: int32[S, S, H'], the arcs of second legs, in the same form.
        end: the switch where the first leg ends, or LOST_ON_LEG.
        d: the destination.
        path: int64[H + H'], written.
    """
    n = 0
    for arc in first_leg:
        if arc != PATH_END:
            path[n] = arc
            n += 1
    if end != LOST_ON_LEG:
        for arc in second_legs[end, d]:
            if arc != PATH_END:
                path[n] = arc
                n += 1
    return n


@loop
def count_path(path: Array, counts: ArcCounts, crossed_count: int) -> int:
    """Add a path, int64[n], to the counts of its arcs.

    Args:
        path: the arcs of the path; an arc that is crossed twice occurs twice.
        counts: added to.
        crossed_count: how many arcs are in `ArcCounts.crossed`.

    Returns:
        How many arcs are there now.
    """
    for arc in path:
        counts.by_current_path[arc] += 1
    for arc in path:
        times = counts.by_current_path[arc]
        if times:  # at an arc's second place in the path the count is 0 already
            counts.by_current_path[arc] = 0
            if counts.path_count[arc] == 0:
                counts.crossed[crossed_count] = arc
                counts.fewest_crossings[arc], counts.most_crossings[arc] = times, times
                crossed_count += 1
            counts.path_count[arc] += 1
            counts.fewest_crossings[arc] = min(counts.fewest_crossings[arc], times)
            counts.most_crossings[arc] = max(counts.most_crossings[arc], times)
    return crossed_count


@loop
def add_packet_bounds(
    first_legs: Array,
    ends: Array,
    second_legs: Array,
    packets: Array,
    fewest: Array,
    most: Array,
) -> None:
    """Add the fewest and the most packets that each arc carries, whatever intermediates they take.

    A packet from s to d goes over one of V intermediates, and it is not known over which. An arc on
    the paths over all intermediates carries it in any case; an arc on some of them may carry it.

    Args:
        first_legs: int32[S, V, H], the arcs of the first leg from each switch to each intermediate;
            PATH_END after the last.
        ends: int32[S, V], the switch where each first leg ends, or LOST_ON_LEG.
        second_legs: int32[S, S, H'], the arcs of the second legs, in the same form.
        packets: int64[S, S], the number of packets from each switch to each switch.
        fewest: int64[arcs], added to.
        most: int64[arcs], added to.
    """
    switches, intermediates, _ = first_legs.shape
    path = np.empty(first_legs.shape[2] + second_legs.shape[2], np.int64)
    arcs = len(most)
    counts = ArcCounts(
        path_count=np.zeros(arcs, np.int64),
        by_current_path=np.zeros(arcs, np.int64),
        fewest_crossings=np.zeros(arcs, np.int64),
        most_crossings=np.zeros(arcs, np.int64),
        crossed=np.empty(arcs, np.int64),
    )
    for s in range(switches):
        for d in range(switches):
            if packets[s, d] == 0:
                continue
            crossed_count = 0
            for v in range(intermediates):
                n = write_path(first_legs[s, v], second_legs, ends[s, v], d, path)
                crossed_count = count_path(path[:n], counts, crossed_count)
            for arc in counts.crossed[:crossed_count]:
                most[arc] += packets[s, d] * counts.most_crossings[arc]
                if counts.path_count[arc] == intermediates:
                    fewest[arc] += packets[s, d] * counts.fewest_crossings[arc]
                counts.path_count[arc] = 0
