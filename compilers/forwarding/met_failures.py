"""Packets that meet failures: the elements of their next hop, and their paths without these.

Walks under failures call these functions (`failure_sets`, `pairs_of_failures`). A packet *meets*
failures where its next links are down, or where a host's packet has no share that is up (a share is
a link that packets of hosts may take). Up to there it travelled as without failures. So a walk
takes each state without failures, asks `write_next_elements` which elements can fail there, and
calls `longest_path` to go on from there with these elements down.

A *state* is all that the rule asks about a packet whose destination is known: the switch that it
is in, its ingress link there, and its tag (none or marked). States are numbers (`packet_states`).
An *element* is what can fail; cables have the numbers 0 to E - 1, and switch s has E + s, where E
is `Program.cable_count`.

Letters in the loops: p the program, s a switch, c its egress class for the destination d, k a link.
"""

from __future__ import annotations

import numpy as np

from compilers.forwarding.machine_code import inlined_loop, loop
from compilers.forwarding.packet_states import flood, packet_in, state_of
from compilers.forwarding.rule import (
    DELIVER,
    DROP,
    HOST,
    PLAIN,
    Array,
    Program,
    contains,
    is_up,
    next_links,
    transit,
)
from compilers.forwarding.single_failures import ENDLESS
from compilers.tables.fib import MOST_HOPS


@loop
def write_next_elements(
    p: Program,
    s: int,
    ingress: int,
    c: int,
    failures: int,
    no_failures: Array,
    next_elements: Array,
) -> int:
    """Write the elements that the next hops of a packet use without failures.

    Args:
        p: what switches hold.
        s: the switch that the packet is in.
        ingress: its ingress link.
        c: its egress class.
        failures: how many elements fail at once. For a host's packet with more shares than that,
            nothing is written, as one share is always up.
        no_failures: int64[0], no failed elements. The caller makes this array once, as it would be
            slow to make one for each packet.
        next_elements: int64[2·failures], written: for each next link the element of its cable, then
            the element of the switch at its far end.

    Returns:
        How many elements are written.
    """
    n = 0
    if ingress == HOST and c >= 0:
        for k in p.shares[s, c]:
            if k >= 0:
                if n == 2 * failures:
                    return 0
                next_elements[n], next_elements[n + 1] = p.cable[s, k], p.cable_count + p.far[s, k]
                n += 2
        if n:
            return n
    k = transit(p, s, ingress, c, no_failures)
    if k < 0:
        return 0
    next_elements[0], next_elements[1] = p.cable[s, k], p.cable_count + p.far[s, k]
    return 2


@loop
def meets_failures(p: Program, s: int, ingress: int, c: int, d: int, failed: Array) -> bool:
    """Whether a packet gets to switch s under these failures, and meets them there.

    It does if s, d and the ingress link are up, and none of the shares of a host's packet is.
    Earlier links of its path need no look: where one is down, the packet met the failures at an
    earlier state. A failed element has to be among those that `write_next_elements` wrote for the
    packet.

    Args:
        p: what switches hold.
        s: the switch that the packet is in.
        ingress: its ingress link; HOST for a packet of a host, which alone has shares.
        c: its egress class.
        d: its destination, which has to be up, too.
        failed: int64[n], the failed elements.
    """
    switch_element, destination_element = p.cable_count + s, p.cable_count + d
    for element in failed:
        if element == switch_element or element == destination_element:  # noqa: SIM109
            return False
    if ingress >= 0 and not is_up(p, s, ingress, failed):
        return False
    if ingress == HOST:  # `write_next_elements` named a link of it, so there is a class
        for k in p.shares[s, c]:
            if k >= 0 and is_up(p, s, k, failed):
                return False
    return True


@inlined_loop
def links_of_ended_path(ending: int, s: int, d: int, links: int) -> int:
    """The links of a path that ends in switch s, or DROP if its packet does not arrive at d.

    Args:
        ending: DELIVER or DROP, which the rule has there instead of a next link.
        s: the last switch.
        d: the destination.
        links: how many links the path has.
    """
    return links if ending == DELIVER and s == d else DROP


@loop
def longest_path(
    p: Program,
    egress: Array,
    s: int,
    ingress: int,
    d: int,
    failed: Array,
    each_link: bool,
    depth: Array,
    reached: Array,
) -> int:
    """Count the links of the longest path of a packet to d, from where it met a failure.

    Args:
        p: what switches hold.
        egress: int16[S], the class of each switch for d.
        s: the switch where the packet met the failure.
        ingress: its ingress link there.
        d: the destination.
        failed: int64[n], the failed elements.
        each_link: whether each ingress link has a state of its own, as in `state_of`.
        depth: a buffer, int8 by state; -1 for each before and after the call.
        reached: a buffer, int32, as long as there are states.

    Returns:
        The number of links; DROP or ENDLESS if any path ends so.
    """
    if p.every_hop:
        return int(
            longest_of_all_paths(p, egress, s, ingress, d, failed, each_link, depth, reached)
        )
    for links in range(MOST_HOPS):
        k = transit(p, s, ingress, egress[s], failed)
        if k < 0:
            return int(links_of_ended_path(k, s, d, links))
        s, ingress = p.far[s, k], p.far_link[s, k]
    return ENDLESS


@loop
def longest_of_all_paths(
    p: Program,
    egress: Array,
    s: int,
    ingress: int,
    d: int,
    failed: Array,
    each_link: bool,
    depth: Array,
    reached: Array,
) -> int:
    """Follow packets over all their paths, where paths are shared at every hop.

    Up to the first switch with several next links they have one path. The arguments and the result
    are those of `longest_path`.
    """
    most_links = p.far.shape[1]
    link, tags = np.empty(most_links + 1, np.int64), np.empty(most_links + 1, np.int64)
    for links in range(MOST_HOPS):
        choices = next_links(p, s, ingress, PLAIN, egress[s], failed, link, tags)
        if choices > 1:  # from here on there are many paths
            reached[0] = state_of(p, s, ingress, PLAIN, egress[s], each_link)
            depth[reached[0]] = 0
            outcome = flood(p, egress, d, failed, each_link, depth, reached, 1)
            for state in reached[: outcome.state_count]:
                depth[state] = -1
            if outcome.is_endless:
                return ENDLESS
            return DROP if outcome.lost_count else links + outcome.max_hops
        k = link[0]
        if k < 0:
            return int(links_of_ended_path(k, s, d, links))
        s, ingress = p.far[s, k], p.far_link[s, k]
    return ENDLESS


@loop
def representative_states(
    p: Program, egress: Array, depth: Array, reached: Array, failures: int
) -> Array:
    """Pick states that are enough for all sets of F failures, those after most links first.

    An egress class *names* the links in its rows of `Program.order` and `Program.bounce`. A switch
    treats packets in transit alike if they came in by links that the class does not name. F of
    these ingress links represent all of them: one of the F failures is on the next link, so at most
    F - 1 are on ingress links, and one of F representatives is always up.

    Args:
        p: what switches hold.
        egress: int16[S], the class of each switch for the destination.
        depth: int8 by state, of `flood`.
        reached: int32[n], the states that occur.
        failures: F, how many elements fail at once.

    Returns:
        int32[m], the representative states.
    """
    representatives, count = np.empty(len(reached), np.int32), 0
    unnamed = np.zeros(len(p.far), np.int32)  # by switch, how many unnamed links are represented
    longest = 0
    for state in reached:
        longest = max(longest, depth[state])
    # By depth, as numba would take longer to translate a sort than all else.
    for links in range(longest, -1, -1):
        for state in reached:
            if depth[state] != links:
                continue
            s, ingress, tag = packet_in(p, state)
            c = egress[s]
            in_transit = ingress >= 0 and c >= 0 and tag == PLAIN
            if (
                in_transit
                and not contains(p.order[s, c], ingress)
                and not contains(p.bounce[s, c], ingress)
            ):
                unnamed[s] += 1
                if unnamed[s] > failures:
                    continue
            representatives[count] = state
            count += 1
    return representatives[:count]
