"""Follow all packets of hosts under any sets of failures, and name the pairs that lose packets.

From a program and a list of cases, each a set of failed elements, this module computes for each
destination the paths without failures, the longest path of a packet that met failures, and exactly
which pairs of source and destination lose packets in which case.

It evaluates the forwarding rule (`rule.transit`, `rule.next_links`) for each packet. So it is
slower than `single_failures`, but can also follow paths that are shared at every hop, take down
several elements at once, and name the lost pairs. `Walks.follow_cases` calls `walk_cases`.

A *state* is all that the rule asks about a packet whose destination is known: the switch that it
is in, its ingress link there, and its tag (none or marked). States are numbers (`packet_states`).
An *element* is what can fail; cables have the numbers 0 to E - 1, and switch s has E + s.

`walk_cases` has three steps for a destination. `intact_paths` follows all packets without failures.
`packets_lost` takes each state that occurs, and follows its packets on under each case that they
meet there. `pairs_lost` goes back from lost packets to the hosts that sent them
(`losses_towards`).
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from compilers.forwarding.machine_code import loop
from compilers.forwarding.met_failures import (
    longest_path,
    meets_failures,
    representative_states,
    write_next_elements,
)
from compilers.forwarding.packet_states import (
    EACH_LINK,
    count_states,
    flood,
    packet_in,
    state_of,
    states_a_switch,
    write_host_states,
)
from compilers.forwarding.rule import (
    HOST,
    MARKED,
    Array,
    Program,
    contains,
    is_up,
    next_links,
)
from compilers.forwarding.single_failures import ENDLESS, write_minimal_hops

PATH_COUNT, LONGEST_PATH, LOST_STATES, LONGEST_AFTER_FAILURE, ADDED_LINKS = range(5)
"""Columns of the figures that `walk_cases` computes for a destination.

- PATH_COUNT: how many paths hosts may choose.
- LONGEST_PATH: the links of the longest of these paths.
- LOST_STATES: in how many states packets are lost without failures.
- LONGEST_AFTER_FAILURE: the links of the longest path of a packet that met a failure.
- ADDED_LINKS: the most links that failures add to a path.
"""
CASE, STATE, PREVIOUS, FOR_EVER = range(4)
"""Columns of lost packets, a row for each pair of a case and a state that loses packets.

The rows of a case are a linked list: `Scratch.last_row` has the last one, and each row the one
before it.

- CASE: the number of the case.
- STATE: the state in which packets met the failures.
- PREVIOUS: the previous row of the same case; -1: none.
- FOR_EVER: whether some of the packets are forwarded for ever.
"""
PAIR_CASE, PAIR_SOURCE, PAIR_COLUMN, PAIR_FOR_EVER = range(4)
"""Columns of the lost pairs that `walk_cases` returns.

- PAIR_CASE: the number of the case.
- PAIR_SOURCE: the switch whose hosts send the packets.
- PAIR_COLUMN: the index of the destination among the destinations that are walked.
- PAIR_FOR_EVER: whether some of the packets are forwarded for ever.
"""
PAIR_COLUMNS = 4
"""The number of these columns."""
LOSS_CASE, LOSS_SOURCE, LOSS_FOR_EVER = range(3)
"""Columns of the pairs towards one destination: as PAIR_CASE, PAIR_SOURCE and PAIR_FOR_EVER."""
FIRST_ROWS = 64
"""How many rows of losses there is room for at first (`with_space`)."""


class FailureSets(NamedTuple):
    """Sets of failures."""

    failed: Array
    """int64[n, F], the failed elements of each case; E + S, which is no element, fills the row."""
    first_of_element: Array
    """int64[E + S + 1], where the cases with each element begin in `cases_of_element`: the elements
    of the cables first, then those of the switches."""
    cases_of_element: Array
    """int64[m], the numbers of the cases with element 0, then of the cases with element 1, …"""


class Scratch(NamedTuple):
    """Arrays in which a walk notes what it has reached, made once for all destinations."""

    depth: Array
    """int8 by state, the most links after which packets come to it without failures; -1: none
    come."""
    states: Array
    """int32, the states that occur without failures."""
    visited: Array
    """int8 by state, -1 between uses: which states were reached under failures, or going back."""
    reached: Array
    """int32, the states that `visited` marks."""
    minimal_hops: Array
    """int8[S], the links of the minimal path from each switch."""
    next_switch: Array
    """int32[S], the next switch on the minimal path."""
    next_elements: Array
    """int64, the elements that the next hops of a packet use, of `write_next_elements`."""
    last_stamp: Array
    """int64 by case, the stamp of the last state whose packets were followed in it.

    A stamp is a number for one state in one pass over the states of a destination. Stamps ascend,
    so that nothing has to be cleared. A case with the stamp of the current state has been followed
    from this state already."""
    last_row: Array
    """int64 by case, its last row in the array of lost packets, from which PREVIOUS leads to its
    other rows; -1: none."""


def scratch_for(p: Program, cases: FailureSets) -> Scratch:
    """The scratch arrays for walks of a program under these sets of failures."""
    switches, all_states = len(p.far), count_states(p)
    count, at_once = cases.failed.shape
    return Scratch(
        depth=np.full(all_states, -1, np.int8),
        states=np.empty(all_states, np.int32),
        visited=np.full(all_states, -1, np.int8),
        reached=np.empty(all_states, np.int32),
        minimal_hops=np.empty(switches, np.int8),
        next_switch=np.empty(switches, np.int32),
        next_elements=np.empty(2 * at_once + 2, np.int64),
        last_stamp=np.full(count, -1, np.int64),
        last_row=np.full(count, -1, np.int64),
    )


@loop
def with_space(rows: Array, count: int) -> Array:
    """Return the rows, or a longer copy of them if all `count` rows are in use."""
    if count < len(rows):
        return rows
    larger = np.empty((2 * len(rows), rows.shape[1]), rows.dtype)
    for row in range(len(rows)):
        for column in range(rows.shape[1]):
            larger[row, column] = rows[row, column]
    return larger


@loop
def edges_into(
    p: Program, egress: Array, d: int, each_link: bool, states: Array
) -> tuple[Array, Array]:
    """The moves of packets between states without failures, sorted by the state they lead to.

    Args:
        p: what switches hold.
        egress: int16[S], the class of each switch for d.
        d: the destination.
        each_link: as in `state_of`.
        states: int32[n], the states that occur.

    Returns:
        int64[all states + 2], where the edges into each state begin; and int32[m, 2]: the state
        that each edge leads from, and its link.
    """
    most_links = p.far.shape[1]
    link, tags = np.empty(most_links + 1, np.int64), np.empty(most_links + 1, np.int64)
    no_failures = np.empty(0, np.int64)
    begins = np.zeros(count_states(p) + 2, np.int64)
    edges = np.empty((0, 2), np.int32)
    # A counting sort in two rounds over the edges. The first counts the edges into state x in
    # begins[x + 2]. The cumulative sum makes begins[x + 1] the place of the first of these edges.
    # The second round writes the edges, and moves begins[x + 1] on by one for each. So in the end
    # begins[x + 1] is where the edges into x end, and those into x + 1 begin.
    for writes in (False, True):
        for state in states:
            s, ingress, tag = packet_in(p, state)
            for i in range(next_links(p, s, ingress, tag, egress[s], no_failures, link, tags)):
                k = link[i]
                if k < 0 or s == d:
                    continue
                t = p.far[s, k]
                next_state = state_of(p, t, p.far_link[s, k], tags[i], egress[t], each_link)
                if writes:
                    edge = begins[next_state + 1]
                    edges[edge, 0], edges[edge, 1] = state, k
                    begins[next_state + 1] += 1
                else:
                    begins[next_state + 2] += 1
        if not writes:
            begins = np.cumsum(begins)
            edges = np.empty((begins[-1], 2), np.int32)
    return begins, edges


@loop
def add_earlier(
    p: Program,
    failed: Array,
    begins: Array,
    edges: Array,
    visited: Array,
    states: Array,
    first: int,
    count: int,
    visited_value: int,
) -> int:
    """Add all states from which packets come to some states while elements are down.

    Args:
        p: what switches hold.
        failed: int64[n], the failed elements.
        begins: of `edges_into`.
        edges: of `edges_into`.
        visited: int8 by state, -1 for the states that are not in `states`.
        states: int32, the states to begin with are at the indices from `first` to `count` - 1;
            others are appended.
        first: the index of the first state to begin with.
        count: how many states there are.
        visited_value: written to `visited` for each state that is added; 0 or more.

    Returns:
        How many states there are now.
    """
    while first < count:
        state = states[first]
        first += 1
        for x in range(begins[state], begins[state + 1]):
            before, k = edges[x, 0], edges[x, 1]
            s = before // states_a_switch(p)
            if (
                visited[before] >= 0
                or contains(failed, p.cable_count + s)
                or not is_up(p, s, k, failed)
            ):
                continue
            visited[before], states[count] = visited_value, before
            count += 1
    return count


@loop
def intact_paths(
    p: Program,
    has_hosts: Array,
    egress: Array,
    d: int,
    minimal_far: Array,
    each_link: bool,
    scratch: Scratch,
    figures: Array,
) -> int:
    """Follow the packets of hosts to d without failures.

    Args:
        p: what switches hold.
        has_hosts: bool[S], the switches with hosts.
        egress: int16[S], the class of each switch for d.
        d: the destination.
        minimal_far: int32[S, C + 2], of `minimal_next`.
        each_link: as in `state_of`.
        scratch: its `depth` is -1 for all states before; its `depth`, `states`,
            `minimal_hops` and `next_switch` are written.
        figures: int64, written: PATH_COUNT, LONGEST_PATH, LOST_STATES.

    Returns:
        How many states occur.
    """
    no_failures = np.empty(0, np.int64)
    for s in range(len(p.far)):
        scratch.next_switch[s] = minimal_far[s, egress[s]]
    write_minimal_hops(d, scratch.next_switch, scratch.minimal_hops)
    count, figures[PATH_COUNT] = write_host_states(
        p, has_hosts, egress, d, scratch.depth, scratch.states
    )
    outcome = flood(p, egress, d, no_failures, each_link, scratch.depth, scratch.states, count)
    figures[LOST_STATES], figures[LONGEST_PATH] = outcome.lost_count, outcome.max_hops
    return outcome.state_count


@loop
def packets_lost(
    p: Program,
    egress: Array,
    d: int,
    cases: FailureSets,
    each_link: bool,
    states: Array,
    stamp: int,
    scratch: Scratch,
    figures: Array,
    longest: Array,
) -> Array:
    """Follow the packets of some states under all cases that they meet there.

    Args:
        p: what switches hold.
        egress: int16[S], the class of each switch for d.
        d: the destination.
        cases: the sets of failures.
        each_link: as in `state_of`.
        states: int32[n], the states.
        stamp: the stamp of the first state, see `Scratch.last_stamp`; the state at index i has
            `stamp` + i. It is larger than those of earlier calls, so that nothing has to be cleared
            between calls.
        scratch: filled by `intact_paths`; its `last_row` is -1 for all cases.
        figures: int64, raised: LONGEST_AFTER_FAILURE, ADDED_LINKS.
        longest: int64 by case, raised to the links of the longest path of a packet that met its
            failures.

    Returns:
        int64[m, 4], the states whose packets are lost, with the columns CASE to FOR_EVER. The last
        row of each case is in `Scratch.last_row`.
    """
    no_failures, at_once = np.empty(0, np.int64), cases.failed.shape[1]
    lost, count = np.empty((FIRST_ROWS, FOR_EVER + 1), np.int64), 0
    for i in range(len(states)):
        s, ingress, tag = packet_in(p, states[i])
        if tag == MARKED:
            continue
        element_count = write_next_elements(
            p, s, ingress, egress[s], at_once, no_failures, scratch.next_elements
        )
        for nth in range(element_count):
            element = scratch.next_elements[nth]
            for x in range(cases.first_of_element[element], cases.first_of_element[element + 1]):
                case = cases.cases_of_element[x]
                if scratch.last_stamp[case] == stamp + i:
                    continue  # a case with several elements that this packet needs
                scratch.last_stamp[case] = stamp + i
                failed = cases.failed[case]
                if not meets_failures(p, s, ingress, egress[s], d, failed):
                    continue
                links = longest_path(
                    p, egress, s, ingress, d, failed, each_link, scratch.visited, scratch.reached
                )
                if links >= 0:
                    whole_path = scratch.depth[states[i]] + links
                    longest[case] = max(longest[case], whole_path)
                    figures[LONGEST_AFTER_FAILURE] = max(figures[LONGEST_AFTER_FAILURE], whole_path)
                    figures[ADDED_LINKS] = max(
                        figures[ADDED_LINKS], links - scratch.minimal_hops[s]
                    )
                    continue
                lost = with_space(lost, count)
                lost[count, CASE], lost[count, STATE] = case, states[i]
                lost[count, PREVIOUS] = scratch.last_row[case]
                lost[count, FOR_EVER] = int(links == ENDLESS)
                scratch.last_row[case] = count
                count += 1
    return lost[:count]


@loop
def add_lost_states(lost: Array, last_row: int, for_ever: int, scratch: Scratch, count: int) -> int:
    """Add the states of a case whose packets are lost to `Scratch.reached`.

    Args:
        lost: int64[m, 4], of `packets_lost`.
        last_row: the last row of the case.
        for_ever: 1: only those whose packets are forwarded for ever; 0: all that are not reached
            yet.
        scratch: its `visited` and `reached` are written.
        count: how many states are reached already.

    Returns:
        How many states are reached now.
    """
    row = last_row
    while row >= 0:
        state = lost[row, STATE]
        if scratch.visited[state] < 0 and lost[row, FOR_EVER] >= for_ever:
            scratch.visited[state], scratch.reached[count] = for_ever, state
            count += 1
        row = lost[row, PREVIOUS]
    return count


@loop
def pairs_lost(
    p: Program,
    egress: Array,
    d: int,
    cases: FailureSets,
    each_link: bool,
    states: Array,
    lost: Array,
    scratch: Scratch,
) -> Array:
    """Go back from lost packets to the switches whose hosts sent them.

    Args:
        p: what switches hold.
        egress: int16[S], the class of each switch for d.
        d: the destination.
        cases: the sets of failures.
        each_link: as in `state_of`.
        states: int32[n], the states that occur without failures.
        lost: int64[m, 4], of `packets_lost`.
        scratch: as `packets_lost` left it.

    Returns:
        int64[m, 3], with the columns LOSS_CASE to LOSS_FOR_EVER.
    """
    begins, edges = edges_into(p, egress, d, each_link, states)
    pairs, count = np.empty((FIRST_ROWS, LOSS_FOR_EVER + 1), np.int64), 0
    for row in lost:
        if row[PREVIOUS] >= 0:  # this case was treated at its first row
            continue
        case, reached = row[CASE], 0
        # First the states from which packets are forwarded for ever, then those that drop them.
        for for_ever in (1, 0):
            first = reached
            reached = add_lost_states(lost, scratch.last_row[case], for_ever, scratch, reached)
            reached = add_earlier(
                p,
                cases.failed[case],
                begins,
                edges,
                scratch.visited,
                scratch.reached,
                first,
                reached,
                for_ever,
            )
            for state in scratch.reached[first:reached]:
                s, ingress, _ = packet_in(p, state)
                if ingress == HOST:
                    pairs = with_space(pairs, count)
                    pairs[count, LOSS_CASE], pairs[count, LOSS_SOURCE] = case, s
                    pairs[count, LOSS_FOR_EVER] = for_ever
                    count += 1
        for state in scratch.reached[:reached]:
            scratch.visited[state] = -1
    return pairs[:count]


@loop
def any_lost(
    p: Program,
    egress: Array,
    d: int,
    cases: FailureSets,
    states: Array,
    stamp: int,
    scratch: Scratch,
    figures: Array,
    longest: Array,
) -> bool:
    """Whether any case loses packets to d.

    A switch treats packets alike that came in by links that their class does not name. The ingress
    link matters only for naming the lost pairs. So only `representative_states` are followed.

    The arguments are those of `packets_lost`. `Scratch.last_row` is left as it was.
    """
    representatives = representative_states(p, egress, scratch.depth, states, cases.failed.shape[1])
    lost = packets_lost(
        p, egress, d, cases, EACH_LINK, representatives, stamp, scratch, figures, longest
    )
    for row in lost:
        scratch.last_row[row[CASE]] = -1
    return len(lost) > 0


@loop
def losses_towards(
    p: Program,
    egress: Array,
    d: int,
    cases: FailureSets,
    each_link: bool,
    states: Array,
    stamp: int,
    scratch: Scratch,
    figures: Array,
    longest: Array,
) -> Array:
    """The pairs towards d that lose packets in some case.

    The arguments are those of `packets_lost`; `states` are all that occur. The stamps from `stamp`
    on, two for each state of the program, are this destination's.

    Returns:
        int64[m, 3], with the columns LOSS_CASE to LOSS_FOR_EVER.
    """
    no_pairs = np.empty((0, LOSS_FOR_EVER + 1), np.int64)
    if not len(cases.failed):
        return no_pairs
    if each_link and not p.every_hop:
        if not any_lost(p, egress, d, cases, states, stamp, scratch, figures, longest):
            return no_pairs
        stamp += len(scratch.depth)
    lost = packets_lost(p, egress, d, cases, each_link, states, stamp, scratch, figures, longest)
    if not len(lost):
        return no_pairs
    pairs = pairs_lost(p, egress, d, cases, each_link, states, lost, scratch)
    for row in lost:
        scratch.last_row[row[CASE]] = -1
    return pairs


@loop
def walk_cases(
    p: Program,
    has_hosts: Array,
    egresses: Array,
    destinations: Array,
    minimal_far: Array,
    cases: FailureSets,
    scratch: Scratch,
    each_link: bool,
    figures: Array,
    longest: Array,
) -> Array:
    """Follow all packets of hosts to some destinations, without failures and under sets of them.

    Args:
        p: what switches hold.
        has_hosts: bool[S], the switches with hosts.
        egresses: int16[D, S], of `egress_classes`.
        destinations: int64[D].
        minimal_far: int32[S, C + 2], of `minimal_next`.
        cases: the sets of failures.
        scratch: of `scratch_for` these cases.
        each_link: as in `state_of`; True where two elements or more fail at once.
        figures: int64[D, 5], all 0; written, with the columns PATH_COUNT to ADDED_LINKS.
        longest: int64 by case, raised to the longest path of a packet that met its failures.

    Returns:
        int64[m, PAIR_COLUMNS]: the pairs that lose packets, with the columns PAIR_CASE to
        PAIR_FOR_EVER.
    """
    pairs, count = np.empty((FIRST_ROWS, PAIR_COLUMNS), np.int64), 0
    for j in range(len(destinations)):
        d, egress = destinations[j], egresses[j]
        occurring = intact_paths(
            p, has_hosts, egress, d, minimal_far, each_link, scratch, figures[j]
        )
        states = scratch.states[:occurring]
        # Each destination has two ranges of stamps, for `any_lost` and for `packets_lost`.
        stamp = 2 * j * len(scratch.depth)
        for case, s, for_ever in losses_towards(
            p, egress, d, cases, each_link, states, stamp, scratch, figures[j], longest
        ):
            pairs = with_space(pairs, count)
            pairs[count, PAIR_CASE], pairs[count, PAIR_SOURCE] = case, s
            pairs[count, PAIR_COLUMN], pairs[count, PAIR_FOR_EVER] = j, for_ever
            count += 1
        for state in states:
            scratch.depth[state] = -1
    return pairs[:count]
