"""Starts of walks under failures: the packets that meet one, in given cases.

A packet goes its usual way until it meets a failure. So the walks start at every cable that is
down, with the packets that would cross it: for each destination, one for each way of coming to the
near end.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from compilers.proof.walks.forwarding import Forwarding, Numbers, Towards
from compilers.proof.walks.packet_states import PacketStates, Reached


def starts(reached: Reached, cases: Numbers) -> Iterator[PacketStates]:
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
        yield packets.take(counted(towards, packets))


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


def counted(towards: Towards, packets: PacketStates) -> NDArray[np.bool_]:
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
