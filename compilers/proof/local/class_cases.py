"""All that switches do with the packets of an egress class, as a few *cases* for each class.

A case is a link that is down and the link that packets take then. A class names few links, so few
cases say what happens for all ingress links and all failures of one link or one switch. The local
proof (`state_proof`) is made of these cases instead of packets. The rule itself
(`compilers.forwarding.rule`) is asked once for each case.

Letters in the loops: s a switch, k one of its links, c an egress class of the switch.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from compilers.forwarding.machine_code import inlined_loop, loop
from compilers.forwarding.rule import HOST, OTHER, Array, Program, transit

CASES = 4
"""The most cases of a class."""
FAILS, END = -1, -2
"""In place of the link that packets take: there is none; there is no such case, nor another."""
NONE, SEVERAL = -1, -2
"""In place of a link: there is none; there are several."""
TURNED = 1 << 12
"""Added to the link that packets take if they came in by the minimal link. Such a packet comes from
the neighbour behind that link, so the case does not arise where this neighbour is the destination.
"""
SHARES, CLEAR, DETOURS = (1 << 13) - 1, 1 << 13, 1 << 14
LINKS, BACK, NEXT = (1 << 13) - 1, 15, 28
"""The bits of `ClassStates.summary`; `share_count` and the functions after it read them."""
LINK, NODE = 0, 1
"""Kinds of failures, as places in `kinds`."""


class ClassStates(NamedTuple):
    """What S switches with K links do with packets of their C egress classes."""

    program: Program
    """What the switches hold, without shares."""
    sole_link: Array
    """int16[S, C], the link that all packets of hosts take: NONE if no link has a share, SEVERAL if
    more than one has."""
    shared_links: Array
    """uint8[S, C, B], one bit for each link with a share, the highest bit for the first link."""
    marks: bool
    """Whether packets of hosts are marked, and spread by the next switch."""
    cases: Array
    """int16[S, C, CASES, 2], the cases: the link that is down, or NONE while all are up; and the
    link that packets take then."""
    u_turn: Array
    """int16[S, C], the link that packets take if they came in by the minimal link."""
    summary: Array
    """int64[S, C], five values of a class in one number, as they are looked up together.

    In the bits SHARES: how many links have a share. CLEAR: in all cases there is a link to take,
    and no cable joins the switch behind it to the switch behind the link that is down. DETOURS:
    hosts may take another link than the minimal one. From BACK on: the number of the minimal link
    at its far end. From NEXT on: the switch at the far end, or NONE.
    """
    has_hosts: Array
    """bool[S], the switches with hosts."""
    in_use: Array
    """bool[S], the switches with hosts, and those with a cable."""


@inlined_loop
def share_count(summary: int) -> int:
    """How many links of a class have a share, from its summary."""
    return summary & SHARES


@inlined_loop
def is_clear(summary: int) -> bool:
    """Whether a class is clear, from its summary (`ClassStates.summary`)."""
    return summary & CLEAR > 0


@inlined_loop
def has_detours(summary: int) -> bool:
    """Whether hosts may take another link than the minimal one, from the summary of the class."""
    return summary & DETOURS > 0


@inlined_loop
def link_at_far_end(summary: int) -> int:
    """The number of the minimal link at its far end, from the summary of the class."""
    return summary >> BACK & LINKS


@inlined_loop
def far_switch(summary: int) -> int:
    """The switch behind the minimal link, or NONE, from the summary of the class."""
    return summary >> NEXT


@loop
def tabulate_classes(states: ClassStates, share_counts: Array, kinds: Array) -> None:
    """Ask the rule about all egress classes, and write `cases`, `u_turn` and `summary`.

    Args:
        states: all other fields are filled.
        share_counts: int16[S, C], how many shares packets of hosts have.
        kinds: bool[2], whether links and whether switches may be down.
    """
    p = states.program
    switches, classes, _ = p.order.shape
    links = p.far.shape[1]
    failed = np.empty(1, np.int64)
    link_to = np.full(switches, NONE, np.int16)
    joined = np.zeros((links, links), np.bool_)
    for s in range(switches):
        if kinds[NODE]:
            join_neighbours(p, s, link_to, joined)
        for c in range(classes):
            minimal = p.order[s, c, 0]
            states.u_turn[s, c] = NONE
            if minimal >= 0:
                states.u_turn[s, c] = transit(p, s, minimal, c, failed[:0])
            count = enter_cases(states, s, c, kinds, failed)
            clear = minimal >= 0 and cases_are_clear(states.cases[s, c], count, joined)
            states.summary[s, c] = summarised(states, s, c, int(share_counts[s, c]), clear)


@loop
def join_neighbours(p: Program, s: int, link_to: Array, joined: Array) -> None:
    """Write which neighbours of a switch are joined by a cable.

    Args:
        p: what switches hold.
        s: the switch.
        link_to: int16[S], NONE for each, and so it is left.
        joined: bool[K, K], written: by the links of s to both neighbours.
    """
    links = p.far.shape[1]
    joined[:] = False
    for k in range(links):
        if p.far[s, k] >= 0:
            link_to[p.far[s, k]] = k
    for k in range(links):
        if p.far[s, k] >= 0:
            for t in p.far[p.far[s, k]]:
                if t >= 0 and link_to[t] >= 0:
                    joined[k, link_to[t]] = True
    for k in range(links):
        if p.far[s, k] >= 0:
            link_to[p.far[s, k]] = NONE


@loop
def ingress_at(p: Program, s: int, c: int, place: int) -> int:
    """The ingress at a place of the list HOST, OTHER, and then the links that a class names.

    NONE where the class names fewer links.
    """
    if place == 0:
        return HOST
    if place == 1:
        return OTHER
    return int(p.order[s, c, place - 2])


@loop
def enter_cases(states: ClassStates, s: int, c: int, kinds: Array, failed: Array) -> int:
    """Write the cases of a class for all ingress links.

    A class with more than CASES cases gets one that fails in place of them. So the cases never
    prove its states, and these are followed instead.

    Args:
        states: its cases are written.
        s: the switch.
        c: the class.
        kinds: bool[2], whether links and whether switches may be down.
        failed: int64[1], overwritten.

    Returns:
        How many cases there are.
    """
    p, cases, count = states.program, states.cases[s, c], 0
    for place in range(p.order.shape[2] + 2):
        ingress = ingress_at(p, s, c, place)
        # A host's packet with several links finds another one that is up. It leads to a state of
        # the next switch, which is proved there.
        if ingress == NONE or (ingress == HOST and states.sole_link[s, c] == SEVERAL):
            continue
        next_link = transit(p, s, ingress, c, failed[:0])
        if ingress == HOST and states.sole_link[s, c] >= 0:
            next_link = states.sole_link[s, c]
        turned = TURNED if ingress == p.order[s, c, 0] else 0
        if next_link != p.order[s, c, 0] or next_link < 0:
            count = enter_case(cases, count, NONE, next_link, turned)
        if (kinds[LINK] or kinds[NODE]) and next_link >= 0 and next_link != ingress:
            failed[0] = p.cable[s, next_link]
            count = enter_case(cases, count, next_link, transit(p, s, ingress, c, failed), turned)
    if count > CASES:
        cases[0, 0], cases[0, 1] = NONE, FAILS
        count = 1
    if count < CASES:
        cases[count, 1] = END
    return count


@loop
def enter_case(cases: Array, count: int, down: int, next_link: int, turned: int) -> int:
    """Add a case, unless an earlier one implies it: packets take the same link there, and the same
    link is down (or, in the new case, none is).

    Args:
        cases: int16[CASES, 2], written.
        count: how many cases there are.
        down: the link that is down, or NONE.
        next_link: the link that packets take, or a negative number.
        turned: TURNED if the packets came in by the minimal link, else 0.

    Returns:
        How many cases there are now, also those without room.
    """
    for i in range(min(count, CASES)):
        same = cases[i, 1] == next_link or cases[i, 1] == next_link + turned
        if next_link >= 0 and same and (cases[i, 0] == down or down == NONE):
            return count
    if count < CASES:
        cases[count, 0], cases[count, 1] = down, next_link + turned if next_link >= 0 else FAILS
    return count + 1


@loop
def cases_are_clear(cases: Array, count: int, joined: Array) -> bool:
    """Whether each case has a link to take, to a switch that is not joined to the one behind the
    link that is down.

    Args:
        cases: int16[CASES, 2].
        count: how many cases there are.
        joined: of `join_neighbours`.
    """
    for i in range(count):
        down, next_link = cases[i, 0], cases[i, 1]
        if next_link < 0 or (down >= 0 and joined[down, next_link & (TURNED - 1)]):
            return False
    return True


@loop
def summarised(states: ClassStates, s: int, c: int, shares: int, clear: bool) -> int:
    """The value of `ClassStates.summary` for a class.

    Args:
        states: with the program and `sole_link`.
        s: the switch.
        c: the class.
        shares: how many links have a share.
        clear: of `cases_are_clear`.
    """
    p = states.program
    minimal, sole = p.order[s, c, 0], states.sole_link[s, c]
    summary = shares | (CLEAR if clear else 0)
    if sole != NONE and sole != minimal:
        summary |= DETOURS
    if minimal >= 0:
        far, back = int(p.far[s, minimal]), int(p.far_link[s, minimal])
        return summary | far << NEXT | back << BACK
    return summary | NONE << NEXT
