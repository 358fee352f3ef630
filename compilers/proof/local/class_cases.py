"""What a switch does with the packets of an egress class, tabulated for all ingress links.

A class names few links, so few pairs (link that is down, link taken then) say all of it. The rule
itself (`compilers.forwarding.rule`) is asked once for each of them.

Letters in the loops: s a switch, k one of its links, c an egress class of the switch.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from compilers.forwarding.machine_code import loop
from compilers.forwarding.rule import HOST, OTHER, Array, Program, transit

CASES, FAILS, END = 4, -1, -2
"""Cases that a class has at most; instead of a link taken: there is none; after the last case."""
NONE, SEVERAL = -1, -2
TURNED = 1 << 12
"""Added to the link taken by packets that came in by the minimal link. Such a packet comes from the
neighbour behind that link, so the case does not arise where the neighbour is the destination."""
SHARES, CLEAR, DETOURS = (1 << 13) - 1, 1 << 13, 1 << 14
LINKS, BACK, NEXT = (1 << 13) - 1, 15, 28
"""Parts of `ClassStates.summary`."""
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
    """int16[S, C, CASES, 2], the link that is down, NONE while all are up, and the link taken then.
    """
    u_turn: Array
    """int16[S, C], the link taken by packets that came in by the minimal link."""
    summary: Array
    """int64[S, C], what is looked up of a class for each destination, in bits.

    SHARES: how many links have a share. CLEAR: there is always a link to take, and the switches
    behind it and behind the link that is down are not joined. DETOURS: hosts may take another link
    than the minimal one. From BACK on: the number of the minimal link at its far end. From NEXT on:
    the switch at the far end.
    """
    has_hosts: Array
    """bool[S], the switches with hosts."""
    in_use: Array
    """bool[S], the switches with hosts, and those with a cable."""


@loop
def tabulate_classes(states: ClassStates, share_counts: Array, kinds: Array) -> None:
    """Ask the rule about all egress classes, and write `cases`, `u_turn` and `summary`.

    Args:
        states: with the fields that are not written here.
        share_counts: int16[S, C], how many shares packets of hosts have.
        kinds: bool[2], whether links and switches may be down.
    """
    p = states.program
    switches, classes, _ = p.order.shape
    links = p.far.shape[1]
    dead = np.empty(1, np.int64)
    link_to = np.full(switches, NONE, np.int16)
    joined = np.zeros((links, links), np.bool_)
    for s in range(switches):
        if kinds[NODE]:
            join_neighbours(p, s, link_to, joined)
        for c in range(classes):
            minimal = p.order[s, c, 0]
            states.u_turn[s, c] = NONE
            if minimal >= 0:
                states.u_turn[s, c] = transit(p, s, minimal, c, dead[:0])
            count = enter_cases(states, s, c, kinds, dead)
            clear = minimal >= 0 and cases_are_clear(states.cases[s, c], count, joined)
            states.summary[s, c] = summarised(states, s, c, int(share_counts[s, c]), clear)


@loop
def join_neighbours(p: Program, s: int, link_to: Array, joined: Array) -> None:
    """Write which neighbours of a switch are joined by a link.

    link_to: int16[S], NONE everywhere before and after. joined: bool[K, K], written, by the links
    to both neighbours.
    """
    links = p.far.shape[1]
    joined[:] = False
    for k in range(links):
        if p.far[s, k] >= 0:
            link_to[p.far[s, k]] = k
    for k in range(links):
        if p.far[s, k] >= 0:
            for further in p.far[p.far[s, k]]:
                if further >= 0 and link_to[further] >= 0:
                    joined[k, link_to[further]] = True
    for k in range(links):
        if p.far[s, k] >= 0:
            link_to[p.far[s, k]] = NONE


@loop
def ingress_at(p: Program, s: int, c: int, place: int) -> int:
    """The ingress at a place in the list HOST, OTHER, and the links that a class names; or NONE."""
    if place == 0:
        return HOST
    if place == 1:
        return OTHER
    return int(p.order[s, c, place - 2])


@loop
def enter_cases(states: ClassStates, s: int, c: int, kinds: Array, dead: Array) -> int:
    """Write the cases of a class for all ingress links; how many of them there are.

    A class with more than CASES has one that fails in their place, so its states are always
    followed. dead: int64[1], any.
    """
    p, cases, count = states.program, states.cases[s, c], 0
    for place in range(p.order.shape[2] + 2):
        came = ingress_at(p, s, c, place)
        # With several links, another one is up, and leads to a state that is proved.
        if came == NONE or (came == HOST and states.sole_link[s, c] == SEVERAL):
            continue
        taken = transit(p, s, came, c, dead[:0])
        if came == HOST and states.sole_link[s, c] >= 0:
            taken = states.sole_link[s, c]
        turned = TURNED if came == p.order[s, c, 0] else 0
        if taken != p.order[s, c, 0] or taken < 0:
            count = enter_case(cases, count, NONE, taken, turned)
        if (kinds[LINK] or kinds[NODE]) and taken >= 0 and taken != came:
            dead[0] = p.cable[s, taken]
            count = enter_case(cases, count, taken, transit(p, s, came, c, dead), turned)
    if count > CASES:
        cases[0, 0], cases[0, 1] = NONE, FAILS
        count = 1
    if count < CASES:
        cases[count, 1] = END
    return count


@loop
def enter_case(cases: Array, count: int, down: int, taken: int, turned: int) -> int:
    """Add a case unless a case that has to avoid as much has the same link; how many there are."""
    for i in range(min(count, CASES)):
        same = cases[i, 1] == taken or cases[i, 1] == taken + turned
        if taken >= 0 and same and (cases[i, 0] == down or down == NONE):
            return count
    if count < CASES:
        cases[count, 0], cases[count, 1] = down, taken + turned if taken >= 0 else FAILS
    return count + 1


@loop
def cases_are_clear(cases: Array, count: int, joined: Array) -> bool:
    """Whether all cases take a link that leads to no neighbour of the switch behind the dead link.

    joined: of `join_neighbours`.
    """
    for i in range(count):
        down, taken = cases[i, 0], cases[i, 1]
        if taken < 0 or (down >= 0 and joined[down, taken & (TURNED - 1)]):
            return False
    return True


@loop
def summarised(states: ClassStates, s: int, c: int, shares: int, clear: bool) -> int:
    """The bits of `ClassStates.summary` for a class."""
    p = states.program
    minimal, sole = p.order[s, c, 0], states.sole_link[s, c]
    summary = shares | (CLEAR if clear else 0)
    if sole != NONE and sole != minimal:
        summary |= DETOURS
    if minimal >= 0:
        far, back = int(p.far[s, minimal]), int(p.far_link[s, minimal])
        return summary | far << NEXT | back << BACK
    return summary | NONE << NEXT
