"""The rule asked once for every switch, egress class and ingress: where packets come next.

What a switch does depends on the destination through the egress class alone. One failed link or
switch takes one link of a switch. So two answers, the next hop, and the next hop while that is
down, are all that a walk under any single failure needs. Not for paths that are shared at every
hop: there a packet in transit has several next hops.
"""

from __future__ import annotations

import numpy as np

from compilers.forwarding.machine_code import loop
from compilers.forwarding.rule import DROP, HOST, OTHER, Array, Program, transit

FROM_HOST, FROM_OTHER, NAMED = 0, 1, 2
"""Ingress places of a class: a host's port, a link that it does not name, and from NAMED on the
links of its `order`."""
LINK_BITS = 12
LINK_MASK = (1 << LINK_BITS) - 1
"""A next hop is a switch and its ingress link there: switch << LINK_BITS | link."""
SEVERAL = HOST
"""In place of a next hop: hosts choose among shares."""


@loop
def tabulate(p: Program) -> tuple[Array, Array, Array]:
    """The next hops of every switch, class and ingress place.

    Returns:
        step, int32[S, C, NAMED + 1 + P, 2]: the next hop, and the next hop while that is down;
        DROP, or SEVERAL. shared, bool[S, C, K]: the links that hosts may choose. number,
        int16[S, C]: how many these are.
    """
    switches, classes, named = p.order.shape
    step = np.full((switches, classes, named + NAMED, 2), DROP, np.int32)
    shared = np.zeros((switches, classes, p.far.shape[1]), np.bool_)
    number = np.zeros((switches, classes), np.int16)
    dead = np.empty(1, np.int64)
    for s in range(switches):
        for c in range(classes):
            for place in range(named + NAMED):
                came = HOST
                if place == FROM_OTHER:
                    came = OTHER
                elif place >= NAMED:
                    came = p.order[s, c, place - NAMED]
                    if came < 0:
                        continue
                k = transit(p, s, came, c, dead[:0])
                if place == FROM_HOST:
                    for share in p.shares[s, c]:
                        if share >= 0:
                            k = share
                            shared[s, c, share] = True
                            number[s, c] += 1
                    if number[s, c] > 1:
                        step[s, c, place, 0] = SEVERAL
                        step[s, c, place, 1] = SEVERAL
                        continue
                if k >= 0:
                    step[s, c, place, 0] = p.far[s, k] << LINK_BITS | p.far_link[s, k]
                    dead[0] = p.cable[s, k]
                    k = transit(p, s, came, c, dead)
                    if k >= 0:
                        step[s, c, place, 1] = p.far[s, k] << LINK_BITS | p.far_link[s, k]
    return step, shared, number


@loop
def minimal_next(p: Program) -> Array:
    """int32[S, C + 2]: the switch behind the minimal link of each class; DROP where there is none.

    The last two columns are for DROP and DELIVER in place of a class, whose numbers are -2 and -1:
    DROP, and the switch itself.
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
def place_of(order: Array, s: int, c: int, came: int) -> int:
    """The ingress place of a packet in transit, by its link."""
    if c >= 0:
        for i in range(order.shape[2]):
            if order[s, c, i] == came:
                return NAMED + i
    return FROM_OTHER
