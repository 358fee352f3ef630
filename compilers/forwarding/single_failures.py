"""Follow all packets of hosts, and all that meet one failed link or switch, by tabulated next hops.

The input is a program and its tabulation (`tabulation.tabulate`). For each destination this module
computes:

- without failures: how many paths hosts may choose, and the links of the longest path;
- under a failure of one link or one switch: the links of the longest path, and the most links that
  a failure adds to a path;
- whether any packet is lost.

It is the fast walk of `verify`; `Walks.follow_single_failures` calls `walk_paths`. All packets to
one destination that are in the same switch, and came in by links that the switch treats alike, are
one *state*. The *ingress place* of a state stands for these links (`tabulation`). A packet that
meets a failed element travelled up to there as without failures. So each state without failures,
with its next link or its next switch down, is a case, and each case has one path. For example, if
packets in switch s go to v next, one case is that the link from s to v is down, and another that v
is down. In both cases `follow_detour` follows a packet from s to its end.

Where any packet is lost, the destination is only marked as SUSPECT. The slower loops of
`failure_sets` then count the losses exactly.

Letters in the loops: p the program, s and t switches, v the next switch of a packet, c an egress
class, k a link, d the destination, b the buffers, `count` how many states are reached so far, and
`hop` a packed next hop (`tabulation`).
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from compilers.forwarding.machine_code import inlined_loop, loop
from compilers.forwarding.rule import DELIVER, DROP, Array, Program, marks, spreads
from compilers.forwarding.tabulation import (
    FROM_HOST,
    FROM_OTHER,
    NAMED,
    SEVERAL,
    WHILE_DOWN,
    WITHOUT_FAILURE,
    Tabulation,
    ingress_of,
    place_of,
    switch_of,
)
from compilers.tables.fib import MOST_HOPS

ENDLESS, ELSEWHERE = -5, -4
"""In place of a number of links, as DROP: the packet is forwarded for ever; it is delivered at
another switch."""

(
    PATH_COUNT,
    LONGEST_PATH,
    SUSPECT,
    LONGEST_AFTER_LINK,
    ADDED_BY_LINK,
    LONGEST_AFTER_NODE,
    ADDED_BY_NODE,
) = range(7)
"""Columns of what `walk_paths` writes for a destination.

- PATH_COUNT: the paths that hosts may choose.
- LONGEST_PATH: the links of the longest path.
- SUSPECT: whether a packet is lost.
- LONGEST_AFTER_LINK: the longest path of a packet that met a failed link.
- ADDED_BY_LINK: the most links that a failed link adds to a path.
- LONGEST_AFTER_NODE, ADDED_BY_NODE: the same for failed switches.
"""
COLUMNS = 7
"""The number of these columns."""
LINK_DOWN, NODE_DOWN = False, True
"""What `follow_detour` takes down: the next link of a packet, or the next switch."""


class StateLayout(NamedTuple):
    """How a state is packed into one number: switch << bits | ingress place (`packed_state`)."""

    bits: int
    """The number of bits of a place."""
    marked_from: int
    """The place of marked packets that came by link 0, the first after the places of `tabulation`.
    The places of marked packets that came by other links follow, in the order of links."""

    def states(self, switches: int) -> int:
        """The number of states of so many switches."""
        return switches << self.bits


class Buffers(NamedTuple):
    """Arrays that `walk_paths` reuses for each destination, made once for a block of them."""

    depth: Array
    """int8[states], the most links after which packets come to a state; -1: none come."""
    reached: Array
    """int32[states], the states that packets come to, in the order in which they were reached."""
    current_states: Array
    """int32[states], the states whose packets are moved by a link now."""
    later_states: Array
    """int32[states], the states whose packets are moved next."""
    minimal_hops: Array
    """int8[S], the links of the minimal path from each switch."""
    next_switch: Array
    """int32[S], the next switch on the minimal path."""
    is_spreader: Array
    """bool[S], whether a switch spreads marked packets in this round."""
    spreaders: Array
    """int32[S], the switches that spread marked packets in this round."""
    is_egress_link: Array
    """bool[S, K], the links by which marked packets leave in this round."""


class HostPackets(NamedTuple):
    """What hosts send to a destination, up to the first link."""

    state_count: int
    """How many states the packets come to."""
    path_count: int
    """How many paths hosts may choose."""
    lost_count: int
    """How many switches lose the packets of their own hosts."""


class FollowedPackets(NamedTuple):
    """The outcome for the packets to a destination that met no failure."""

    state_count: int
    """How many states they come to."""
    max_hops: int
    """The links of the longest path."""
    lost_count: int
    """In how many states packets are lost, or still forwarded after `MOST_HOPS` links."""


class Detour(NamedTuple):
    """The way of a packet around a failure."""

    links_or_fault: int
    """Its number of links; DROP or ENDLESS if the packet does not arrive."""
    meets_again: bool
    """Whether the packet would come to the next switch of its usual path again."""


def layout_of(program: Program) -> StateLayout:
    """The layout of the states of a program."""
    marked_from = program.order.shape[2] + NAMED
    places = marked_from + (program.far.shape[1] if marks(program) else 0)
    return StateLayout(max(1, (places - 1).bit_length()), marked_from)


def buffers_for(program: Program, layout: StateLayout) -> Buffers:
    """Buffers for walks of a program."""
    switches, most_links = program.far.shape
    states = layout.states(switches)
    return Buffers(
        depth=np.full(states, -1, np.int8),
        reached=np.empty(states, np.int32),
        current_states=np.empty(states, np.int32),
        later_states=np.empty(states, np.int32),
        minimal_hops=np.empty(switches, np.int8),
        next_switch=np.empty(switches, np.int32),
        is_spreader=np.zeros(switches, np.bool_),
        spreaders=np.empty(switches, np.int32),
        is_egress_link=np.zeros((switches, most_links), np.bool_),
    )


@inlined_loop
def packed_state(layout: StateLayout, s: int, place: int) -> int:
    """The state of packets in switch s with an ingress place there."""
    return (s << layout.bits) + place


@inlined_loop
def switch_and_place(layout: StateLayout, state: int) -> tuple[int, int]:
    """The switch and the ingress place of a state."""
    return state >> layout.bits, state & ((1 << layout.bits) - 1)


@loop
def write_minimal_hops(d: int, next_switch: Array, minimal_hops: Array) -> None:
    """Write the number of links of every switch's minimal path to d.

    Args:
        d: the destination.
        next_switch: int32[S], the switch at the far end of the minimal link of each; or DROP.
        minimal_hops: int8[S], written: the links; DROP, ENDLESS or ELSEWHERE where the path does
            not end at d.
    """
    delivers = next_switch[d] == d
    for s in range(len(minimal_hops)):
        t = next_switch[s]
        # Most paths have one link or two: these need no loop.
        if delivers and t == d:
            minimal_hops[s] = s != d
            continue
        if delivers and t >= 0 and next_switch[t] == d:
            minimal_hops[s] = 2
            continue
        t, links = s, 0
        while links <= MOST_HOPS and next_switch[t] != t and next_switch[t] >= 0:
            t, links = next_switch[t], links + 1
        if links > MOST_HOPS:
            minimal_hops[s] = ENDLESS
        elif next_switch[t] < 0:
            minimal_hops[s] = DROP
        else:
            minimal_hops[s] = links if t == d else ELSEWHERE


@loop
def follow_detour(
    order: Array,
    next_hop: Array,
    egress: Array,
    d: int,
    s: int,
    place: int,
    v: int,
    node_fails: bool,
) -> Detour:
    """Follow a packet from s to d while the next switch v, or the link from s to v, is down.

    Args:
        order: of `Program`.
        next_hop: of `Tabulation`.
        egress: int16[S], the class of each switch for d.
        d: the destination.
        s: the switch that the packet is in.
        place: its ingress place there.
        v: the next switch on its path without failures.
        node_fails: whether v is down; else the link is down.
    """
    t, c, times_met = s, egress[s], 0
    for links in range(MOST_HOPS):
        if c < 0:
            arrives = c == DELIVER and t == d
            return Detour(links if arrives else DROP, times_met > 1)
        hop = next_hop[t, c, place, WITHOUT_FAILURE]
        u = switch_of(hop)
        if u == v:
            times_met += 1
            if node_fails or t == s:
                hop = next_hop[t, c, place, WHILE_DOWN]
        elif u == s and t == v and not node_fails:  # the failed link, from its other end
            hop = next_hop[t, c, place, WHILE_DOWN]
        if hop < 0:
            return Detour(DROP, times_met > 1)
        t = switch_of(hop)
        c = egress[t]
        place = place_of(order, t, c, ingress_of(hop))
    return Detour(ENDLESS, times_met > 1)


@inlined_loop
def state_in_transit(order: Array, layout: StateLayout, egress: Array, t: int, ingress: int) -> int:
    """The state of packets that come in at switch t from another switch, without a mark.

    Args:
        order: of `Program`.
        layout: of the states.
        egress: int16[S], the class of each switch for the destination.
        t: the switch.
        ingress: the link by which they come in.
    """
    return packed_state(layout, t, place_of(order, t, egress[t], ingress))


@loop
def add_state(depth: Array, reached: Array, count: int, state: int, links: int) -> int:
    """Note that packets come to a state after so many links; returns the number of states."""
    if depth[state] < 0:
        reached[count] = state
        count += 1
    depth[state] = max(depth[state], links)
    return count


@loop
def move_packets(
    depth: Array,
    reached: Array,
    count: int,
    later: Array,
    later_count: int,
    state: int,
    links: int,
) -> tuple[int, int]:
    """Note that packets come to a state, and that they move on from it in the next round.

    They move on only if they took more links than earlier ones, as `depth` has the longest path.

    Returns:
        How many states are reached, and how many wait in `later`.
    """
    if depth[state] < 0:
        reached[count] = state
        count += 1
    if depth[state] < links:
        depth[state], later[later_count] = links, state
        later_count += 1
    return count, later_count


@loop
def host_sends(
    p: Program, shared: Array, egress: Array, has_hosts: Array, d: int, s: int, ingress: int
) -> bool:
    """Whether a packet of a neighbour's host can come to switch s by an ingress link.

    Args:
        p: what switches hold.
        shared: of `Tabulation`.
        egress: int16[S], the class of each switch for d.
        has_hosts: bool[S], the switches with hosts.
        d: the destination.
        s: the switch.
        ingress: its link to the neighbour.
    """
    neighbour = p.far[s, ingress]
    if neighbour < 0 or neighbour == d or not has_hosts[neighbour] or egress[neighbour] < 0:
        return False
    return bool(shared[neighbour, egress[neighbour], p.far_link[s, ingress]])


@loop
def write_states_of_one_hop(
    p: Program,
    tabulation: Tabulation,
    layout: StateLayout,
    egress: Array,
    s: int,
    b: Buffers,
    count: int,
) -> int:
    """Note the states of hosts' packets that have one next hop at switch s.

    The packets in the switch are a state of their own, as they may meet a failure there.

    Returns:
        How many states are reached.
    """
    c = egress[s]
    hop = tabulation.next_hop[s, c, FROM_HOST, WITHOUT_FAILURE]
    count = add_state(b.depth, b.reached, count, packed_state(layout, s, FROM_HOST), 0)
    if tabulation.share_count[s, c] == 0 and hop >= 0:  # no share: they leave as packets in transit
        state = state_in_transit(p.order, layout, egress, switch_of(hop), ingress_of(hop))
        count = add_state(b.depth, b.reached, count, state, 1)
    return count


@loop
def write_states_by_shares(
    p: Program, layout: StateLayout, egress: Array, s: int, has_marks: bool, b: Buffers, count: int
) -> int:
    """Note the states that hosts' packets of switch s come to by each of their shares.

    Returns:
        How many states are reached.
    """
    for i in range(p.shares.shape[2]):
        k = p.shares[s, egress[s], i]
        if k < 0:
            continue
        t, ingress = p.far[s, k], p.far_link[s, k]
        if has_marks and i > 0 and spreads(p, egress[t]):
            state = packed_state(layout, t, layout.marked_from + ingress)
        else:
            state = state_in_transit(p.order, layout, egress, t, ingress)
        count = add_state(b.depth, b.reached, count, state, 1)
    return count


@loop
def write_states_by_ingress(
    p: Program,
    shared: Array,
    layout: StateLayout,
    egress: Array,
    has_hosts: Array,
    d: int,
    s: int,
    b: Buffers,
    count: int,
) -> int:
    """Note the ingress places of switch s by which neighbours send packets of their hosts.

    This gives the same states as `write_states_by_shares` of all neighbours. Where classes have
    many alternates, it is quicker to go through the ingress places of a switch than through its
    shares.

    Returns:
        How many states are reached.
    """
    c = egress[s]
    if c >= 0:
        for i in range(p.order.shape[2]):
            ingress = p.order[s, c, i]
            state = packed_state(layout, s, NAMED + i)
            if (
                ingress >= 0
                and b.depth[state] < 0
                and host_sends(p, shared, egress, has_hosts, d, s, ingress)
            ):
                count = add_state(b.depth, b.reached, count, state, 1)
    for ingress in range(p.far.shape[1]):
        if (
            host_sends(p, shared, egress, has_hosts, d, s, ingress)
            and place_of(p.order, s, c, ingress) == FROM_OTHER
        ):
            # One link that the class does not name stands for all of them.
            state = packed_state(layout, s, FROM_OTHER)
            return add_state(b.depth, b.reached, count, state, 1)
    return count


@loop
def leave_hosts(
    p: Program,
    tabulation: Tabulation,
    layout: StateLayout,
    has_hosts: Array,
    egress: Array,
    d: int,
    b: Buffers,
) -> HostPackets:
    """Send the packets of all hosts to d over their first links."""
    count, paths, lost = 0, 0, 0
    has_marks = marks(p)
    by_shares = has_marks or p.shares.shape[2] <= 2  # with at most one alternate this is quicker
    for s in range(len(has_hosts)):
        c = egress[s]
        if has_hosts[s] and s != d:
            if c < 0:
                lost += 1
            else:
                paths += tabulation.share_count[s, c]
                hop = tabulation.next_hop[s, c, FROM_HOST, WITHOUT_FAILURE]
                if hop != SEVERAL:  # hosts have one next hop, or none
                    count = write_states_of_one_hop(p, tabulation, layout, egress, s, b, count)
                    if hop < 0:
                        lost += 1
                if by_shares:
                    count = write_states_by_shares(p, layout, egress, s, has_marks, b, count)
        if not by_shares:
            count = write_states_by_ingress(
                p, tabulation.shared, layout, egress, has_hosts, d, s, b, count
            )
    return HostPackets(count, paths, lost)


@loop
def add_onward(p: Program, s: int, ingress: int, leaves: Array) -> bool:
    """Add the links by which marked packets leave switch s; returns whether there are any."""
    any_link = False
    for k in range(p.far.shape[1]):
        if p.onward[s, ingress, k]:
            leaves[s, k], any_link = True, True
    return any_link


@loop
def send_marked(
    p: Program,
    layout: StateLayout,
    egress: Array,
    b: Buffers,
    spreader_count: int,
    count: int,
    later: Array,
    later_count: int,
    links: int,
) -> tuple[int, int]:
    """Send the marked packets of some switches over the links of `Buffers.is_egress_link`, and
    clear these.

    Args:
        p: what switches hold.
        layout: of the states.
        egress: int16[S], the class of each switch for the destination.
        b: the first `spreader_count` entries of its `spreaders` are the switches.
        spreader_count: how many these are.
        count: how many states are reached.
        later: int32, the states from which packets move on in the next round.
        later_count: how many these are.
        links: how many links the packets took, with this one.

    Returns:
        How many states are reached, and how many wait in `later`.
    """
    for i in range(spreader_count):
        s = b.spreaders[i]
        b.is_spreader[s] = False
        for k in range(p.far.shape[1]):
            if b.is_egress_link[s, k]:
                b.is_egress_link[s, k] = False
                t = p.far[s, k]
                state = state_in_transit(p.order, layout, egress, t, p.far_link[s, k])
                count, later_count = move_packets(
                    b.depth, b.reached, count, later, later_count, state, links
                )
    return count, later_count


@loop
def follow_without_failures(
    p: Program,
    next_hop: Array,
    layout: StateLayout,
    egress: Array,
    d: int,
    b: Buffers,
    count: int,
) -> FollowedPackets:
    """Follow packets from the end of their first link to the end of their path, a link a round.

    Args:
        p: what switches hold.
        next_hop: of `Tabulation`.
        layout: of the states.
        egress: int16[S], the class of each switch for d.
        d: the destination.
        b: with the states after `leave_hosts`.
        count: how many these are.
    """
    lost, longest, links, later_count = 0, 0, 1, 0
    current, later = b.current_states, b.later_states
    for i in range(count):
        if b.depth[b.reached[i]] == 1:  # else the packets are in their first switch
            later[later_count] = b.reached[i]
            later_count += 1
    while later_count and links < MOST_HOPS:
        current, later = later, current
        links += 1
        moving, later_count, spreader_count = later_count, 0, 0
        for i in range(moving):
            s, place = switch_and_place(layout, current[i])
            c = egress[s]
            if c < 0:  # the path ends here
                lost += c != DELIVER or s != d
                longest = max(longest, links - 1)
                continue
            if place >= layout.marked_from:
                # The marked packets of a switch leave together below, once for all ingress links.
                if not b.is_spreader[s]:
                    b.is_spreader[s], b.spreaders[spreader_count] = True, s
                    spreader_count += 1
                lost += not add_onward(p, s, place - layout.marked_from, b.is_egress_link)
                continue
            hop = next_hop[s, c, place, WITHOUT_FAILURE]
            if hop < 0 or s == d:
                lost += 1
                continue
            state = state_in_transit(p.order, layout, egress, switch_of(hop), ingress_of(hop))
            count, later_count = move_packets(
                b.depth, b.reached, count, later, later_count, state, links
            )
        count, later_count = send_marked(
            p, layout, egress, b, spreader_count, count, later, later_count, links
        )
    return FollowedPackets(count, longest, lost + later_count)


@loop
def meet_failures(
    p: Program,
    next_hop: Array,
    layout: StateLayout,
    egress: Array,
    d: int,
    link_fails: bool,
    node_fails: bool,
    b: Buffers,
    count: int,
    figures: Array,
) -> bool:
    """Let the next link of every state fail, or the next switch; returns whether a packet is lost.

    Args:
        p: what switches hold.
        next_hop: of `Tabulation`.
        layout: of the states.
        egress: int16[S], the class of each switch for d.
        d: the destination.
        link_fails: whether links fail.
        node_fails: whether switches fail.
        b: with the states after `follow_without_failures`.
        count: how many these are.
        figures: int64[COLUMNS], raised: the columns from LONGEST_AFTER_LINK on.
    """
    lost = False
    for state in b.reached[:count]:
        s, place = switch_and_place(layout, state)
        c = egress[s]
        if c < 0 or place >= layout.marked_from:
            continue  # another link is up for marked packets
        hop = next_hop[s, c, place, WITHOUT_FAILURE]
        if hop < 0:
            continue
        v = switch_of(hop)
        if place >= NAMED and p.order[s, c, place - NAMED] == p.far_link[v, ingress_of(hop)]:
            continue  # it goes back over its ingress link, which was up when it came
        depth, minimal = b.depth[state], b.minimal_hops[s]
        detour = follow_detour(p.order, next_hop, egress, d, s, place, v, LINK_DOWN)
        if link_fails:
            lost |= raise_lengths(
                figures, LONGEST_AFTER_LINK, depth, detour.links_or_fault, minimal
            )
        if node_fails and v != d:
            # A packet that would come to v once has the same detour if v is down.
            if detour.meets_again:
                detour = follow_detour(p.order, next_hop, egress, d, s, place, v, NODE_DOWN)
            lost |= raise_lengths(
                figures, LONGEST_AFTER_NODE, depth, detour.links_or_fault, minimal
            )
    return lost


@loop
def raise_lengths(figures: Array, column: int, depth: int, links: int, minimal: int) -> bool:
    """Raise the longest path in a column, and the added links in the next one.

    Args:
        figures: int64[COLUMNS], raised.
        column: LONGEST_AFTER_LINK or LONGEST_AFTER_NODE.
        depth: the links up to the failure.
        links: the links from there on; negative if the packet is lost.
        minimal: the links of the minimal path from there on.

    Returns:
        Whether the packet is lost.
    """
    if links < 0:
        return True
    figures[column] = max(figures[column], depth + links)
    figures[column + 1] = max(figures[column + 1], links - minimal)
    return False


@loop
def walk_paths(
    p: Program,
    tabulation: Tabulation,
    minimal_far: Array,
    has_hosts: Array,
    layout: StateLayout,
    link_fails: bool,
    node_fails: bool,
    egresses: Array,
    destinations: Array,
    b: Buffers,
    figures: Array,
) -> None:
    """Follow all packets of hosts to some destinations.

    Args:
        p: what switches hold; not `every_hop`.
        tabulation: of p.
        minimal_far: int32[S, C + 2], of `minimal_next`.
        has_hosts: bool[S], the switches with hosts.
        layout: of the states.
        link_fails: whether links fail, one at a time.
        node_fails: whether switches fail, one at a time.
        egresses: int16[D, S], of `egress_classes`.
        destinations: int64[D].
        b: buffers with -1 for each `depth`, and so they are left.
        figures: int64[D, COLUMNS], all 0; written.
    """
    for j in range(len(destinations)):
        d, egress = destinations[j], egresses[j]
        for s in range(len(has_hosts)):
            b.next_switch[s] = minimal_far[s, egress[s]]
        write_minimal_hops(d, b.next_switch, b.minimal_hops)
        of_hosts = leave_hosts(p, tabulation, layout, has_hosts, egress, d, b)
        followed = follow_without_failures(
            p, tabulation.next_hop, layout, egress, d, b, of_hosts.state_count
        )
        suspect = of_hosts.lost_count + followed.lost_count > 0
        if (link_fails or node_fails) and not suspect:
            suspect = meet_failures(
                p,
                tabulation.next_hop,
                layout,
                egress,
                d,
                link_fails,
                node_fails,
                b,
                followed.state_count,
                figures[j],
            )
        figures[j, PATH_COUNT], figures[j, LONGEST_PATH] = of_hosts.path_count, followed.max_hops
        figures[j, SUSPECT] = suspect
        for state in b.reached[: followed.state_count]:
            b.depth[state] = -1
