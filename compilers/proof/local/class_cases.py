"""What switches do with the packets of each egress class, tabulated as a few *cases* a class.

An egress class is a forwarding equivalence class of a switch, with an ordered list of next links:
the *minimal link* first, which is on a shortest path, then those of fast reroute. Packets of hosts
are balanced over the *balanced links* of the class (its ECMP next hops). A case is a pair: the link
that is down, or none, and the next link that packets take then. As a class names few links, few
cases cover all ingress links and all failures of one link or one switch.

For example, a class has the minimal link 3 and then link 5, and hosts use link 3 only. It has two
cases. First, link 3 is down, and packets take link 5. While nothing is down, packets that came in
by link 3 take link 5, too: they take the same link as in the first case, so that case covers them.
Second, link 5 is down, and packets that came in by link 3 go back over link 3.

`class_states` makes the `ClassStates` of a build. For that it calls `tabulate_classes`, which asks
the forwarding rule (`compilers.forwarding.rule`) once for each case. `state_proof` then proves from
the cases that packets arrive, and follows packets only where they do not suffice.

Letters in the loops: p the forwarding program, s a switch, k one of its links, c an egress class of
the switch, t a neighbour of a neighbour.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from compilers.forwarding.machine_code import inlined_loop, loop
from compilers.forwarding.rule import HOST, OTHER, Array, Program, transit

CASES = 4
"""The most cases of a class."""
DOWN, NEXT_LINK = 0, 1
"""Columns of a case: the link that is down, and the link that packets take then."""
NONE, SEVERAL = -1, -2
"""In place of a link: there is no link; there is more than one."""
LOST, END = -5, -6
"""In place of the next link of a case: packets have none and are lost; here the list ends. No other
special value, here or in `compilers.forwarding.rule`, is the same number."""
CAME_BY_MINIMAL = 1 << 12
"""Added to the next link of a case in which packets came in by the minimal link (`came_by_minimal`,
`link_taken`). No switch has as many links.

These packets come from the neighbour behind the minimal link. No packet comes from there if this
neighbour is the destination, so `state_proof` leaves the case out then.
"""

# `ClassStates.summary` has five values in the bits of one number:
#   bits  0 to 12   how many choices packets of hosts have
#   bit  13         whether the class is clear
#   bit  14         whether packets of hosts may take a detour
#   bits 15 to 27   the number of the minimal link at its far end
#   bits 28 and up  the switch at that far end, or NONE
CHOICES_MASK = (1 << 13) - 1
CLEAR_BIT = 1 << 13
DETOURS_BIT = 1 << 14
FAR_LINK_SHIFT = 15
FAR_LINK_MASK = (1 << 13) - 1
"""The bits of the link's number, after the shift."""
FAR_SWITCH_SHIFT = 28

LINK, NODE = 0, 1
"""Kinds of failures, as indexes of `may_fail`: one link is down, or one switch."""


class ClassStates(NamedTuple):
    """What S switches with K links do with packets of their C egress classes."""

    program: Program
    """The tables of all switches, without `shares`."""
    sole_link: Array
    """int16[S, C], the only balanced link, which all packets of hosts take: NONE if there is no
    balanced link, SEVERAL if there is more than one."""
    balanced_links: Array
    """uint8[S, C, B], one bit for each balanced link, the highest bit for the first link."""
    marks: bool
    """Whether the ingress switch marks packets of hosts, so that the next switch sends them over
    any of its links but some."""
    cases: Array
    """int16[S, C, CASES, 2], the cases, with the columns DOWN and NEXT_LINK. DOWN is NONE while all
    links are up. NEXT_LINK is a link, perhaps with CAME_BY_MINIMAL added, or LOST, or END."""
    bounce_link: Array
    """int16[S, C], the link that packets take if they came in by the minimal link and all links are
    up; negative if they have none."""
    summary: Array
    """int64[S, C], five values of a class in one number, as they are looked up together. The
    functions `choice_count` to `far_switch` read them, of one summary or of an array of summaries.

    A class is *clear* if in every case packets have a next link, and the switch u behind the next
    link has no cable to the switch v behind the link that is down. Then a minimal path from u that
    is not longer than the minimal path from this switch cannot meet v, which may be down: it could
    meet v only right after u. So the proof need not follow that path. A *detour* is any other link
    than the minimal one.
    """
    has_hosts: Array
    """bool[S], the switches with hosts."""
    in_use: Array
    """bool[S], the switches with hosts, and those with a cable."""


@inlined_loop
def choice_count(summary: Any) -> Any:
    """How many choices packets of hosts have, from the summary of their class.

    There is one for each balanced link. The minimal link counts twice if it is among the
    alternates, too: packets choose among entries of the class, and this link then has two entries,
    each with a weight.
    """
    return summary & CHOICES_MASK


@inlined_loop
def is_clear(summary: Any) -> Any:
    """Whether the class is clear: no case of it needs a look at its path."""
    return summary & CLEAR_BIT > 0


@inlined_loop
def has_detours(summary: Any) -> Any:
    """Whether packets of hosts may take another link than the minimal one."""
    return summary & DETOURS_BIT > 0


@inlined_loop
def link_at_far_end(summary: Any) -> Any:
    """The number that the minimal link has at its far end."""
    return summary >> FAR_LINK_SHIFT & FAR_LINK_MASK


@inlined_loop
def far_switch(summary: Any) -> Any:
    """The switch behind the minimal link, or NONE."""
    return summary >> FAR_SWITCH_SHIFT


@inlined_loop
def came_by_minimal(next_link: Any) -> Any:
    """Whether a case is that of packets that came in by the minimal link, from its next link."""
    return next_link >= CAME_BY_MINIMAL


@inlined_loop
def link_taken(next_link: Any) -> Any:
    """The link that packets take in a case that is not LOST, without CAME_BY_MINIMAL."""
    return next_link & (CAME_BY_MINIMAL - 1)


@loop
def tabulate_classes(
    p: Program, sole_link: Array, choice_counts: Array, may_fail: Array
) -> tuple[Array, Array, Array]:
    """Ask the forwarding rule about all egress classes.

    Args:
        p: the tables of all switches.
        sole_link: int16[S, C], as in `ClassStates`.
        choice_counts: int16[S, C], how many choices packets of hosts have.
        may_fail: bool[2], whether links and whether switches may be down.

    Returns:
        The arrays `cases`, `bounce_link` and `summary` of `ClassStates`.
    """
    switches, classes, _ = p.order.shape
    most_links = p.far.shape[1]
    failed = np.empty(1, np.int64)
    link_to = np.full(switches, NONE, np.int16)
    joined = np.zeros((most_links, most_links), np.bool_)
    cases = np.empty((switches, classes, CASES, 2), np.int16)
    bounce_link = np.full((switches, classes), NONE, np.int16)
    summary = np.empty((switches, classes), np.int64)
    for s in range(switches):
        if may_fail[NODE]:
            write_joined(p, s, link_to, joined)
        for c in range(classes):
            minimal, sole = p.order[s, c, 0], sole_link[s, c]
            if minimal >= 0:
                bounce_link[s, c] = transit(p, s, minimal, c, failed[:0])
            count = write_cases(p, s, c, sole, may_fail, failed, cases[s, c])
            clear = minimal >= 0 and cases_are_clear(cases[s, c], count, joined)
            summary[s, c] = class_summary(p, s, c, sole, int(choice_counts[s, c]), clear)
    return cases, bounce_link, summary


@loop
def write_joined(p: Program, s: int, link_to: Array, joined: Array) -> None:
    """Write which neighbours of a switch are joined by a cable.

    Args:
        p: the tables of all switches.
        s: the switch.
        link_to: int16[S], scratch: NONE in all places, before and after the call.
        joined: bool[K, K], written: whether the neighbours behind two links of s are joined.
    """
    most_links = p.far.shape[1]
    joined[:] = False
    for k in range(most_links):
        if p.far[s, k] >= 0:
            link_to[p.far[s, k]] = k
    for k in range(most_links):
        if p.far[s, k] >= 0:
            for t in p.far[p.far[s, k]]:
                if t >= 0 and link_to[t] >= 0:
                    joined[k, link_to[t]] = True
    for k in range(most_links):
        if p.far[s, k] >= 0:
            link_to[p.far[s, k]] = NONE


@loop
def ingress_at(p: Program, s: int, c: int, index: int) -> int:
    """The ingress with an index in the list of those between which a class makes a difference.

    The list is HOST, OTHER (any link that the class does not name), and then the links that the
    class names, the minimal link first; NONE beyond these.
    """
    if index == 0:
        return HOST
    if index == 1:
        return OTHER
    return int(p.order[s, c, index - 2])


@loop
def write_cases(
    p: Program, s: int, c: int, sole: int, may_fail: Array, failed: Array, cases: Array
) -> int:
    """Write the cases of a class for all ingress links.

    A class with more than CASES cases gets a single case with LOST instead, as if its packets were
    lost. `state_proof` cannot prove anything from it, and follows the packets of this class.

    Args:
        p: the tables of all switches.
        s: the switch.
        c: the class.
        sole: its only balanced link, or NONE, or SEVERAL.
        may_fail: bool[2], whether links and whether switches may be down.
        failed: int64[1], scratch.
        cases: int16[CASES, 2], written.

    Returns:
        How many cases were written.
    """
    count = 0
    for index in range(p.order.shape[2] + 2):
        ingress = ingress_at(p, s, c, index)
        # A packet of a host that has several links takes one that is up. What the switch behind it
        # does with the packet is proved by the cases of that switch.
        if ingress == NONE or (ingress == HOST and sole == SEVERAL):
            continue
        next_link = transit(p, s, ingress, c, failed[:0])
        if ingress == HOST and sole >= 0:
            next_link = sole
        added = CAME_BY_MINIMAL if ingress == p.order[s, c, 0] else 0
        # Nothing is down. Packets that take the minimal link then need no case: that minimal paths
        # arrive is proved before (`minimal_paths`).
        if next_link != p.order[s, c, 0] or next_link < 0:
            count = add_case(cases, count, NONE, next_link, added)
        # The next link is down.
        if (may_fail[LINK] or may_fail[NODE]) and next_link >= 0 and next_link != ingress:
            # This switch acts in the same way whether the neighbour or the cable to it is down.
            failed[0] = p.cable[s, next_link]
            count = add_case(cases, count, next_link, transit(p, s, ingress, c, failed), added)
    if count > CASES:
        cases[0, DOWN], cases[0, NEXT_LINK] = NONE, LOST
        count = 1
    if count < CASES:
        cases[count, NEXT_LINK] = END
    return count


@loop
def add_case(cases: Array, count: int, down: int, next_link: int, added: int) -> int:
    """Add a case, unless an earlier case implies it.

    An earlier case implies the new one if packets take the same next link in both, and if the same
    link is down in both, or no link in the new one.

    Args:
        cases: int16[CASES, 2], written.
        count: how many cases there are.
        down: the link that is down, or NONE.
        next_link: the link that packets take; negative if they have none.
        added: what is added to it: CAME_BY_MINIMAL if packets came in by the minimal link, else 0.

    Returns:
        How many cases there are now, including those beyond CASES, which are not written.
    """
    for i in range(min(count, CASES)):
        same_link = cases[i, NEXT_LINK] == next_link or cases[i, NEXT_LINK] == next_link + added
        if next_link >= 0 and same_link and (cases[i, DOWN] == down or down == NONE):
            return count
    if count < CASES:
        cases[count, DOWN] = down
        cases[count, NEXT_LINK] = next_link + added if next_link >= 0 else LOST
    return count + 1


@loop
def cases_are_clear(cases: Array, count: int, joined: Array) -> bool:
    """Whether the cases of a class make it clear (`ClassStates.summary`).

    Each case must have a next link. No cable may join the switch at its far end to the switch at
    the far end of the link that is down.

    Args:
        cases: int16[CASES, 2].
        count: how many cases there are.
        joined: bool[K, K], by `write_joined`.
    """
    for i in range(count):
        down, next_link = cases[i, DOWN], cases[i, NEXT_LINK]
        if next_link < 0 or (down >= 0 and joined[down, link_taken(next_link)]):
            return False
    return True


@loop
def class_summary(p: Program, s: int, c: int, sole: int, choices: int, clear: bool) -> int:
    """The value of `ClassStates.summary` for a class.

    Args:
        p: the tables of all switches.
        s: the switch.
        c: the class.
        sole: its only balanced link, or NONE, or SEVERAL.
        choices: how many choices packets of hosts have.
        clear: whether the class is clear (`cases_are_clear`).
    """
    minimal = p.order[s, c, 0]
    summary = choices | (CLEAR_BIT if clear else 0)
    if sole != NONE and sole != minimal:
        summary |= DETOURS_BIT
    if minimal >= 0:
        switch, link = int(p.far[s, minimal]), int(p.far_link[s, minimal])
        return summary | switch << FAR_SWITCH_SHIFT | link << FAR_LINK_SHIFT
    return summary | NONE << FAR_SWITCH_SHIFT
