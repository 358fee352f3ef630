"""Follow all packets that meet two failures at once, for all pairs of links and switches.

`verify` proves with it that two failures lose nothing. A fabric of S switches and E links has
(E + S)² / 2 pairs of *elements* (what can fail: links by their numbers, then switches), but a pair
matters only to packets that meet both. So pairs are not tried one by one. For each *state* that
packets can be in (switch, ingress link and tag; `packet_states`), each element of the next hop is
the *first* failure. The packet is followed without that element. Each element that it uses then is
a *second* failure (`walk_second_failures`). All other second failures leave the packet's path as it
is, so one walk is enough for all of them.

`walk_pairs` writes for each destination whether packets are lost. `failure_sets` then counts the
lost packets exactly. `Walks.follow_pairs_of_failures` calls `walk_pairs`.

Letters in the loops: p the program, s and t switches, c an egress class, k a link, d a destination.
"""

from __future__ import annotations

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
    write_host_states,
)
from compilers.forwarding.rule import DELIVER, DROP, HOST, MARKED, Array, Program, contains, transit
from compilers.forwarding.single_failures import write_minimal_hops
from compilers.tables.fib import MOST_HOPS

LONGEST_AFTER_FAILURES, ADDED_LINKS, LOSES_PACKETS = range(3)
"""Columns of what `walk_pairs` writes for a destination.

- LONGEST_AFTER_FAILURES: the most links of a path that met two failures.
- ADDED_LINKS: the most links that two failures add to a path.
- LOSES_PACKETS: 1 if a packet is lost, else 0.
"""
COLUMNS = 3
"""The number of these columns."""
AT_ONCE = 2
"""How many elements fail at once."""
MOST_NEXT_ELEMENTS = 2 * AT_ONCE
"""The most elements that `write_next_elements` writes."""
MOST_SECONDS = 2 * MOST_HOPS + MOST_NEXT_ELEMENTS + 1
"""The most elements that `write_second_failures` writes."""


@loop
def has_uninvolved_element(p: Program, s: int, ingress: int, d: int, used: Array) -> bool:
    """Whether an element exists whose failure does not change the path of a packet at switch s.

    Such an element is none of those that the packet has just come by or uses from here on. In a
    small ring there is none.

    Args:
        p: what switches hold.
        s: the switch that the packet is in.
        ingress: its ingress link.
        d: its destination.
        used: int64[n], the elements that it uses from here on, and those that are down.
    """
    for element in range(p.cable_count + len(p.far)):
        t = element - p.cable_count
        if t in (s, d) or (t >= 0 and p.far[t, 0] < 0) or contains(used, element):
            continue
        if ingress < 0 or (element != p.cable[s, ingress] and t != p.far[s, ingress]):
            return True
    return False


@loop
def elements_used(
    p: Program, egress: Array, d: int, s: int, ingress: int, failed: Array, used: Array
) -> tuple[int, bool]:
    """Write the elements that a packet uses on its way while one is down.

    Args:
        p: what switches hold.
        egress: int16[S], the class of each switch for d.
        d: the destination.
        s: the switch that the packet is in.
        ingress: its ingress link.
        failed: int64[1], the element that is down.
        used: int64[2·MOST_HOPS], written: cables and switches in the order of the path.

    Returns:
        How many elements are written, and whether the packet arrives.
    """
    t, entry, count, k = s, ingress, 0, DROP
    while count < 2 * MOST_HOPS:
        k = transit(p, t, entry, egress[t], failed)
        if k < 0:
            break
        used[count], used[count + 1] = p.cable[t, k], p.cable_count + p.far[t, k]
        count += 2
        t, entry = p.far[t, k], p.far_link[t, k]
    return count, k == DELIVER and t == d


@loop
def write_second_failures(
    p: Program, egress: Array, d: int, s: int, ingress: int, first: int, seconds: Array
) -> tuple[int, bool]:
    """Write the second failures to try for a packet under a first failure.

    These are the elements of its path under the first failure, then the other elements of a host's
    shares. All other second failures leave the path as it is, so they have the effect of the first
    failure alone. If there are any, they are tried as one: `first` is its own second failure.

    Args:
        p: what switches hold.
        egress: int16[S], the class of each switch for d.
        d: its destination.
        s: the switch where it meets the first failure.
        ingress: its ingress link there.
        first: the element that fails first.
        seconds: int64[MOST_SECONDS], written.

    Returns:
        How many elements are written, and whether the packet arrives under the first failure alone.
    """
    first_only = np.empty(1, np.int64)
    first_only[0] = first
    count, arrives = elements_used(p, egress, d, s, ingress, first_only, seconds)
    if ingress == HOST:  # only where all its shares are down does a host's packet meet a failure
        no_failures, next_elements = np.empty(0, np.int64), np.empty(MOST_NEXT_ELEMENTS, np.int64)
        for x in range(
            write_next_elements(p, s, ingress, egress[s], AT_ONCE, no_failures, next_elements)
        ):
            if next_elements[x] != first:
                seconds[count] = next_elements[x]
                count += 1
    seconds[count] = first
    if has_uninvolved_element(p, s, ingress, d, seconds[: count + 1]):
        count += 1
    return count, arrives


@loop
def walk_second_failures(
    p: Program,
    egress: Array,
    d: int,
    state: int,
    first: int,
    depth: Array,
    minimal_hops: Array,
    visited: Array,
    reached: Array,
    figures: Array,
) -> None:
    """Follow the packets of a state under a first failure, with each second failure.

    The arrays are no fields of a tuple: with those, the machine code took a tenth longer.

    Args:
        p: what switches hold.
        egress: int16[S], the class of each switch for d.
        d: the destination.
        state: the state in which the packets meet the first failure.
        first: the element that fails first.
        depth: int8 by state, of `flood` without failures.
        minimal_hops: int8[S], the links of minimal paths.
        visited: int8 by state, -1 for each before and after the call.
        reached: scratch, int32, as long as there are states.
        figures: int64[COLUMNS], raised.
    """
    failed, seconds = np.empty(AT_ONCE, np.int64), np.empty(MOST_SECONDS, np.int64)
    failed[0] = first
    s, ingress, _ = packet_in(p, state)
    c = egress[s]
    count, arrives = write_second_failures(p, egress, d, s, ingress, first, seconds)
    if not arrives and meets_failures(p, s, ingress, c, d, failed[:1]):
        figures[LOSES_PACKETS] = 1
    for second in seconds[:count]:
        failed[1] = second
        if not meets_failures(p, s, ingress, c, d, failed):
            continue
        links = longest_path(p, egress, s, ingress, d, failed, EACH_LINK, visited, reached)
        if links >= 0:
            figures[LONGEST_AFTER_FAILURES] = max(
                figures[LONGEST_AFTER_FAILURES], depth[state] + links
            )
            figures[ADDED_LINKS] = max(figures[ADDED_LINKS], links - minimal_hops[s])
        else:
            figures[LOSES_PACKETS] = 1


@loop
def walk_pairs(
    p: Program,
    has_hosts: Array,
    egresses: Array,
    destinations: Array,
    minimal_far: Array,
    figures: Array,
) -> None:
    """Follow all packets of hosts to some destinations that meet two failures.

    Args:
        p: what switches hold; not `every_hop`.
        has_hosts: bool[S], the switches with hosts.
        egresses: int16[D, S], of `egress_classes`.
        destinations: int64[D].
        minimal_far: int32[S, C + 2], of `minimal_next`.
        figures: int64[D, COLUMNS], all 0; written.
    """
    switches, all_states = len(p.far), count_states(p)
    # Without failures: by state the most links of a path to it; and the states that occur.
    depth, states = np.full(all_states, -1, np.int8), np.empty(all_states, np.int32)
    # The same for `longest_path`, under failures.
    visited, reached = np.full(all_states, -1, np.int8), np.empty(all_states, np.int32)
    # By switch the links of its minimal path, and the next switch on it.
    minimal_hops, next_switch = np.empty(switches, np.int8), np.empty(switches, np.int32)
    no_failures, next_elements = np.empty(0, np.int64), np.empty(MOST_NEXT_ELEMENTS, np.int64)
    for j in range(len(destinations)):
        d, egress = destinations[j], egresses[j]
        for s in range(switches):
            next_switch[s] = minimal_far[s, egress[s]]
        write_minimal_hops(d, next_switch, minimal_hops)
        count, _ = write_host_states(p, has_hosts, egress, d, depth, states)
        count = flood(p, egress, d, no_failures, EACH_LINK, depth, states, count).state_count
        for state in representative_states(p, egress, depth, states[:count], AT_ONCE):
            s, ingress, tag = packet_in(p, state)
            if tag == MARKED:
                continue  # more links than can fail at once are up for marked packets
            for x in range(
                write_next_elements(p, s, ingress, egress[s], AT_ONCE, no_failures, next_elements)
            ):
                walk_second_failures(
                    p,
                    egress,
                    d,
                    state,
                    next_elements[x],
                    depth,
                    minimal_hops,
                    visited,
                    reached,
                    figures[j],
                )
        for state in states[:count]:
            depth[state] = -1
