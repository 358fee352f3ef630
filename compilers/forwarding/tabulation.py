"""The next hops of every switch, egress class and ingress link, computed once by asking the rule.

What comes in is a program (`rule.Program`). What goes out is a `Tabulation`. What a switch does
with a packet depends on the destination only through the egress class, and one failed link or
switch takes one link from a switch. So a walk under any single failure needs only two next hops:
the usual one, and the one that is taken while the usual one is down. `single_failures` and
`many_packets` read them from the table instead of asking the rule for each packet.

Paths that are shared at every hop are not tabulated: there a packet in transit has several next
hops.

A next hop is *packed* into one number: the switch, and the ingress link there. In these files a
variable `hop` holds such a number.

Letters in the loops: p the program, s a switch, c an egress class, k a link.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from compilers.forwarding.machine_code import inlined_loop, loop
from compilers.forwarding.rule import DROP, HOST, OTHER, Array, Program, transit

FROM_HOST, FROM_OTHER, NAMED = 0, 1, 2
"""Ingress places of a class, which tell how a packet came in.

FROM_HOST: from a host. FROM_OTHER: by a link that the class does not name. NAMED + i: by the link
at index i of `Program.order`.
"""
LINK_BITS = 12
"""A packed next hop has its switch, and in this many low bits the ingress link there."""
LINK_MASK = (1 << LINK_BITS) - 1
"""The bits of the ingress link."""
WITHOUT_FAILURE, WHILE_DOWN = 0, 1
"""Indices in the last axis of `Tabulation.next_hop`: the next hop without failures, and the one
that is taken while it is down."""
SEVERAL = -3
"""In place of a next hop: hosts choose among several shares. DROP is -2."""


class Tabulation(NamedTuple):
    """The next hops of S switches with C classes, K links and P protecting links a class."""

    next_hop: Array
    """int32[S, C, NAMED + 1 + P, 2], by ingress place the next hop WITHOUT_FAILURE, and the one
    WHILE_DOWN; DROP or SEVERAL in place of a next hop."""
    shared: Array
    """bool[S, C, K], the links that packets of hosts may take."""
    share_count: Array
    """int16[S, C], how many links packets of hosts may take."""


@inlined_loop
def packed_hop(p: Program, s: int, k: int) -> int:
    """The next hop by link k of switch s, packed."""
    return int(p.far[s, k] << LINK_BITS | p.far_link[s, k])


@inlined_loop
def switch_of(hop: Any) -> Any:
    """The switch of a next hop, or those of an array; negative for DROP and SEVERAL."""
    return hop >> LINK_BITS


@inlined_loop
def ingress_of(hop: Any) -> Any:
    """The link by which packets come in at the switch of a next hop, or those of an array."""
    return hop & LINK_MASK


@loop
def write_shares(p: Program, s: int, c: int, shared: Array, share_count: Array) -> int:
    """Write the links that packets of hosts may take; returns the last one, DROP if there is none.

    Args:
        p: the program.
        s: the switch.
        c: the egress class.
        shared: of `Tabulation`.
        share_count: of `Tabulation`.
    """
    last = DROP
    for share in p.shares[s, c]:
        if share >= 0:
            last = share
            shared[s, c, share] = True
            share_count[s, c] += 1
    return int(last)


@loop
def tabulate(p: Program) -> Tabulation:
    """Ask the rule for the next hop of every switch, class and ingress place."""
    switches, classes, named = p.order.shape
    next_hop = np.full((switches, classes, NAMED + named, 2), DROP, np.int32)
    shared = np.zeros((switches, classes, p.far.shape[1]), np.bool_)
    share_count = np.zeros((switches, classes), np.int16)
    failed = np.empty(1, np.int64)
    for s in range(switches):
        for c in range(classes):
            for place in range(NAMED + named):
                ingress = HOST
                if place == FROM_OTHER:
                    ingress = OTHER
                elif place >= NAMED:
                    ingress = p.order[s, c, place - NAMED]
                    if ingress < 0:
                        continue
                usual = transit(p, s, ingress, c, failed[:0])
                if place == FROM_HOST:
                    share = write_shares(p, s, c, shared, share_count)
                    if share_count[s, c] > 1:
                        next_hop[s, c, place, WITHOUT_FAILURE] = SEVERAL
                        next_hop[s, c, place, WHILE_DOWN] = SEVERAL
                        continue
                    if share >= 0:  # a host's only share goes before the rule of transit
                        usual = share
                if usual < 0:
                    continue
                next_hop[s, c, place, WITHOUT_FAILURE] = packed_hop(p, s, usual)
                failed[0] = p.cable[s, usual]
                while_down = transit(p, s, ingress, c, failed)
                if while_down >= 0:
                    next_hop[s, c, place, WHILE_DOWN] = packed_hop(p, s, while_down)
    return Tabulation(next_hop, shared, share_count)


@loop
def minimal_next(p: Program) -> Array:
    """int32[S, C + 2]: the switch at the far end of each class's minimal link; DROP for none.

    The last two columns are read with the indices DROP = -2 and DELIVER = -1, which stand in place
    of a class. They hold DROP, and the switch itself.
    """
    switches, classes, _ = p.order.shape
    table = np.full((switches, classes + 2), DROP, np.int32)
    for s in range(switches):
        table[s, classes + 1] = s
        for c in range(classes):
            if p.order[s, c, 0] >= 0:
                table[s, c] = p.far[s, p.order[s, c, 0]]
    return table


@loop
def place_of(order: Array, s: int, c: int, ingress: int) -> int:
    """The ingress place of a packet in transit of class c at switch s, by its ingress link."""
    if c >= 0:
        for i in range(order.shape[2]):
            if order[s, c, i] == ingress:
                return NAMED + i
    return FROM_OTHER
