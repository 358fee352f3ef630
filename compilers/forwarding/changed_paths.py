"""The loads of links before and after a change: failed elements, repaired tables, or both.

What comes in is a fabric before the change (`IntactPaths`) and after it (`FabricState`). A *share*
is the part of a pair's packets that crosses a link. What goes out are the shares that have changed
(`ChangedShares`). `compilers.evaluation.damaged_loads` computes guarantees from them.

Most pairs of switches keep their paths. The pairs that may take other paths are searched backwards,
from the links and the rows that changed (`link_crossings`). Their packets are then followed
forwards, before the change and after it.

In the loops, `part` is the share that is followed at the moment, and `marked` and `plain` are its
parts with and without a mark. Letters: p a program, s, t and u switches, c an egress class, k a
link, d the number of a destination. An *arc* is link k of switch s. Its number is s·K + k, which
the loops call `arc`.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from compilers.forwarding.link_crossings import CrossingPairs, DestinationClasses, collect_pairs
from compilers.forwarding.link_shares import EQUAL_SHARES, LinkShares, NextHopTable
from compilers.forwarding.machine_code import for_packets, inlined_loop, loop
from compilers.forwarding.rule import DELIVER, Array, Program, spreads
from compilers.tables.fib import MOST_HOPS

Numbers = NDArray[np.int64]
Reals = NDArray[np.float64]
LOST_PART = 1e-9
"""The smallest part of a pair's packets that counts as lost: more than the error of sums."""

FEWEST_ENTRIES, ENTRIES_A_PAIR = 1 << 14, 64
"""How many changed shares there is room for at the first try: at least, and for each pair. If that
is not enough, the pairs are followed once more, with enough room."""

UNKNOWN, SAME_PATH, OTHER_PATH = -1, 0, 1
"""Answers of `path_differs` to the question: do packets that have crossed an arc take another path
to their destination after the change? UNKNOWN: nobody has asked yet."""


class FabricState(NamedTuple):
    """The tables of all switches and the failed elements, which decide the paths of packets."""

    program: Program
    """The tables in links."""
    next_hops: NextHopTable
    """The links by which packets leave, while some elements are down."""
    egress_class: Array
    """int16[D, S], the class of each switch for each destination."""
    destinations: Array
    """int64[D], the switch of each destination."""


class Stack(NamedTuple):
    """The packets in transit that are still to be followed, where one packet has several paths."""

    switch: Array
    """int64[n], the switch that each packet is in."""
    ingress: Array
    """int64[n], its ingress link there."""
    links: Array
    """int64[n], how many links it has crossed."""
    share: Array
    """float64[n], the part of the pair's packets that it stands for."""


class PairLoad(NamedTuple):
    """The shares of one pair on all arcs, while its packets are followed."""

    share: Array
    """float64[S·K], the part of the pair's packets that crosses each arc."""
    crossed_arcs: Array
    """int64[2·S·K], the arcs that the pair crosses before or after the change; some occur twice.
    The loads before and after share this array."""
    crossed_count: Array
    """int64[1], how many arcs there are in `crossed_arcs`; of both loads together."""
    stack: Stack
    """A buffer for packets in transit."""


class ChangedShares(NamedTuple):
    """The shares that differ, n in all, sorted by destination and then by source."""

    arc: Array
    """int32[n], the arc."""
    source: Array
    """int16[n], the switch that sends."""
    destination: Array
    """int16[n], the number of the destination."""
    growth: Array
    """float64[n], the growth of the share of the pair's packets that cross the arc; below 0 where
    the share has fallen."""

    @classmethod
    def with_capacity(cls, entries: int) -> ChangedShares:
        """Uninitialised arrays of so many entries."""
        source, destination = np.empty((2, entries), np.int16)
        return cls(np.empty(entries, np.int32), source, destination, np.empty(entries))


@inlined_loop
def add_share(load: PairLoad, arc: int, share: float) -> None:
    """Add a share to an arc, which is noted as crossed if it had none."""
    if load.share[arc] == 0:
        load.crossed_arcs[load.crossed_count[0]] = arc
        load.crossed_count[0] += 1
    load.share[arc] += share


@loop
def follow_hosts(state: FabricState, s: int, d: int, load: PairLoad) -> None:
    """Follow the packets of hosts at switch s to destination d, and add their shares to a load."""
    p, table, most_links = state.program, state.next_hops, state.program.far.shape[1]
    c = state.egress_class[d, s]
    for k in range(most_links if c >= 0 else 0):
        part = table.host_share[s, c, k]
        if part == 0:
            continue
        add_share(load, s * most_links + k, part)
        t, t_ingress, marked = p.far[s, k], p.far_link[s, k], 0.0
        if len(table.marked_share) > 0 and spreads(p, state.egress_class[d, t]):
            marked = table.marked_share[s, c, k]
        follow_second_switch(state, t, t_ingress, d, marked, part - marked, load)


@loop
def follow_second_switch(
    state: FabricState,
    s: int,
    ingress: int,
    d: int,
    marked: float,
    plain: float,
    load: PairLoad,
) -> None:
    """Follow packets from the switch behind their first link to their destination.

    Args:
        state: decides the paths.
        s: the switch behind the first link.
        ingress: the ingress link there.
        d: the destination.
        marked: the part of the pair's packets that the switch spreads.
        plain: the part that it forwards as in transit.
        load: added to.
    """
    p, most_links = state.program, state.program.far.shape[1]
    part = marked * state.next_hops.spread_share[s, ingress] if marked > 0 else 0.0
    for k in range(most_links if part > 0 else 0):
        if p.onward[s, ingress, k] and state.next_hops.is_up[s, k]:
            add_share(load, s * most_links + k, part)
            follow_transit(state, p.far[s, k], p.far_link[s, k], d, 2, part, load)
    if plain > 0:
        follow_transit(state, s, ingress, d, 1, plain, load)


@inlined_loop
def next_hop(state: FabricState, s: int, ingress: int, d: int) -> int:
    """The only link by which packets in transit leave; below 0 where they are dropped."""
    c = state.egress_class[d, s]
    return int(state.next_hops.transit_links[s, c, ingress, 0]) if c >= 0 else -1


@inlined_loop
def follow_transit(
    state: FabricState, s: int, ingress: int, d: int, crossed: int, part: float, load: PairLoad
) -> None:
    """Follow packets in transit to their destination.

    Args:
        state: decides the paths.
        s: the switch that the packets are in.
        ingress: their ingress link.
        d: their destination.
        crossed: how many links they have crossed.
        part: the part of the pair's packets that they are.
        load: added to.
    """
    if state.next_hops.transit_links.shape[3] > 1:
        follow_every_path(state, s, ingress, d, crossed, part, load)
        return
    p, most_links = state.program, state.program.far.shape[1]
    for _ in range(crossed, MOST_HOPS + 1):
        k = next_hop(state, s, ingress, d)
        if k < 0:
            break
        add_share(load, s * most_links + k, part)
        s, ingress = p.far[s, k], p.far_link[s, k]


@loop
def follow_every_path(
    state: FabricState, s: int, ingress: int, d: int, crossed: int, part: float, load: PairLoad
) -> None:
    """Follow packets in transit over all their paths, where paths are shared at every hop.

    The arguments are those of `follow_transit`.
    """
    p, transit, most_links = (
        state.program,
        state.next_hops.transit_links,
        state.program.far.shape[1],
    )
    stack = load.stack
    # The packet on top of the stack is replaced by a packet for each of its next hops.
    stack.switch[0], stack.ingress[0], stack.links[0], stack.share[0] = s, ingress, crossed, part
    waiting = 1
    while waiting > 0:
        waiting -= 1
        s, ingress, links = stack.switch[waiting], stack.ingress[waiting], stack.links[waiting]
        c, next_hops = state.egress_class[d, s], 0
        if c < 0:
            continue
        for i in range(transit.shape[3]):
            next_hops += transit[s, c, ingress, i] >= 0
        for i in range(next_hops):
            k, share = transit[s, c, ingress, i], stack.share[waiting] / next_hops
            add_share(load, s * most_links + k, share)
            if links >= MOST_HOPS:
                continue
            # From the top down: the place of the packet itself, which is still read, comes last.
            last = waiting + next_hops - 1 - i
            stack.switch[last], stack.ingress[last] = p.far[s, k], p.far_link[s, k]
            stack.links[last], stack.share[last] = links + 1, share
        if links < MOST_HOPS:
            waiting += next_hops


@loop
def host_packets_differ(before: FabricState, after: FabricState, s: int, d: int) -> bool:
    """Whether packets of the hosts of switch s leave by other links or in other shares."""
    c, class_after = before.egress_class[d, s], after.egress_class[d, s]
    if c < 0 or class_after < 0:
        return bool(c != class_after)
    for k in range(before.next_hops.host_share.shape[2]):
        if before.next_hops.host_share[s, c, k] != after.next_hops.host_share[s, class_after, k]:
            return True
        if len(before.next_hops.marked_share) > 0 and (
            before.next_hops.marked_share[s, c, k]
            != after.next_hops.marked_share[s, class_after, k]
        ):
            return True
    return False


@inlined_loop
def known_answer(answers: Array, arc: int, d: int) -> int:
    """The answer of `path_differs` for an arc and a destination, or UNKNOWN.

    An entry of `answers` is 2d + answer for the last destination d that was asked for. Destinations
    come in ascending order, so an entry below 2d is of an earlier one, and nothing has to be
    cleared between destinations.
    """
    answer = answers[arc] - 2 * d
    return int(answer) if answer >= 0 else UNKNOWN


@inlined_loop
def store_answer(answers: Array, arc: int, d: int, answer: int) -> None:
    """Store an answer for `known_answer`."""
    answers[arc] = 2 * d + answer


@loop
def path_differs(before: FabricState, after: FabricState, arc: int, d: int, answers: Array) -> bool:
    """Whether packets in transit that have crossed an arc take another path from there on.

    Args:
        before: the state before the change.
        after: the state after it.
        arc: the arc that the packets have crossed.
        d: their destination.
        answers: int64[S·K], the answers so far (`known_answer`); written for all arcs of the path.
    """
    if before.next_hops.transit_links.shape[3] > 1:
        return True
    p, most_links = before.program, before.program.far.shape[1]
    path_arc, links, answer = arc, 0, SAME_PATH
    # Follow the path to its end, or to an arc whose answer is known, or to the first other link.
    while True:
        if known_answer(answers, path_arc, d) != UNKNOWN:
            answer = known_answer(answers, path_arc, d)
            break
        s, k = path_arc // most_links, path_arc % most_links
        t, ingress = p.far[s, k], p.far_link[s, k]
        k = next_hop(before, t, ingress, d)
        if links > MOST_HOPS or k != next_hop(after, t, ingress, d):
            answer = OTHER_PATH
            break
        if k < 0:
            break
        path_arc, links = t * most_links + k, links + 1
    # The answer holds for all arcs up to there.
    path_arc = arc
    for _ in range(links + 1):
        store_answer(answers, path_arc, d, answer)
        s, k = path_arc // most_links, path_arc % most_links
        t = p.far[s, k]
        k = next_hop(before, t, p.far_link[s, k], d)
        if k < 0:
            break
        path_arc = t * most_links + k
    return answer == OTHER_PATH


@loop
def follow_pair(
    before: FabricState,
    after: FabricState,
    s: int,
    d: int,
    load_before: PairLoad,
    load_after: PairLoad,
    answers: Array,
) -> None:
    """Follow the packets of a pair over the paths that differ, before and after a change.

    Args:
        before: the state before the change.
        after: the state after it.
        s: the switch that sends.
        d: the destination.
        load_before: written.
        load_after: written.
        answers: as in `path_differs`.
    """
    if host_packets_differ(before, after, s, d):
        follow_hosts(before, s, d, load_before)
        follow_hosts(after, s, d, load_after)
        return
    most_links, c = before.program.far.shape[1], before.egress_class[d, s]
    for k in range(most_links if c >= 0 else 0):
        if before.next_hops.host_share[s, c, k] != 0:
            follow_behind_first_link(before, after, s, k, d, load_before, load_after, answers)


@inlined_loop
def follow_behind_first_link(
    before: FabricState,
    after: FabricState,
    s: int,
    k: int,
    d: int,
    load_before: PairLoad,
    load_after: PairLoad,
    answers: Array,
) -> None:
    """Follow packets of a pair that leave by the same first link, over the paths that then differ.

    Args:
        before: the state before the change.
        after: the state after it.
        s: the switch that sends.
        k: its link, by which the same share of packets leaves before and after.
        d: the destination.
        load_before: written.
        load_after: written.
        answers: as in `path_differs`.
    """
    p, table, most_links = before.program, before.next_hops, before.program.far.shape[1]
    c = before.egress_class[d, s]
    part, t, t_ingress = table.host_share[s, c, k], p.far[s, k], p.far_link[s, k]
    marked, marked_after = 0.0, 0.0
    if len(table.marked_share) > 0:
        marked = table.marked_share[s, c, k] if spreads(p, before.egress_class[d, t]) else 0.0
        marked_after = table.marked_share[s, c, k] if spreads(p, after.egress_class[d, t]) else 0.0
    plain, spread_share = part - marked, table.spread_share[t, t_ingress] if marked > 0 else 0.0
    spread_differs = marked > 0 and spread_share != after.next_hops.spread_share[t, t_ingress]
    if marked != marked_after or spread_differs:
        # The second switch spreads other packets, or spreads them over more or fewer links.
        plain_after = part - marked_after
        follow_second_switch(before, t, t_ingress, d, marked, plain, load_before)
        follow_second_switch(after, t, t_ingress, d, marked_after, plain_after, load_after)
        return
    # Marked packets are spread over the same links, and plain packets are in transit.
    for onward in range(most_links if marked > 0 else 0):
        arc, spread_part = t * most_links + onward, marked * spread_share
        # An answer that is known already costs no call.
        is_same = known_answer(answers, arc, d) == SAME_PATH
        if not p.onward[t, t_ingress, onward] or is_same:
            continue
        if path_differs(before, after, arc, d, answers):
            u, u_ingress = p.far[t, onward], p.far_link[t, onward]
            follow_transit(before, u, u_ingress, d, 2, spread_part, load_before)
            follow_transit(after, u, u_ingress, d, 2, spread_part, load_after)
    if plain > 0 and path_differs(before, after, s * most_links + k, d, answers):
        follow_transit(before, t, t_ingress, d, 1, plain, load_before)
        follow_transit(after, t, t_ingress, d, 1, plain, load_after)


@loop
def stack_for(most_links: int) -> Stack:
    """A stack for the packets of one pair, in switches with at most so many links."""
    capacity = (MOST_HOPS + 2) * (most_links + 1)
    switch, ingress = np.empty(capacity, np.int64), np.empty(capacity, np.int64)
    links, part = np.empty(capacity, np.int64), np.empty(capacity, np.float64)
    return Stack(switch, ingress, links, part)


@loop
def write_changed_shares(
    before: FabricState,
    after: FabricState,
    source: Array,
    destination: Array,
    changed_shares: ChangedShares,
    arrived: Array,
) -> int:
    """Follow pairs before and after a change, and write where shares differ.

    Args:
        before: the state before the change.
        after: the state after it.
        source: int64[n], the switch of each pair.
        destination: int64[n], the number of its destination, ascending.
        changed_shares: written as far as it has entries.
        arrived: float64[n], written: the growth of the part of each pair that arrives.

    Returns:
        How many shares differ, which `changed_shares` needs entries for.
    """
    p, written = after.program, 0
    arcs, most_links = p.far.size, p.far.shape[1]
    answers = np.full(arcs, UNKNOWN, np.int64)
    crossed, crossed_count = np.empty(2 * arcs, np.int64), np.zeros(1, np.int64)
    load_before = PairLoad(np.zeros(arcs), crossed, crossed_count, stack_for(most_links))
    load_after = PairLoad(np.zeros(arcs), crossed, crossed_count, load_before.stack)
    for x in range(len(source)):
        s, d = source[x], destination[x]
        crossed_count[0] = 0
        follow_pair(before, after, s, d, load_before, load_after, answers)
        for arc in crossed[: crossed_count[0]]:
            growth = load_after.share[arc] - load_before.share[arc]
            load_before.share[arc], load_after.share[arc] = 0, 0
            if p.far[arc // most_links, arc % most_links] == after.destinations[d]:
                arrived[x] += growth
            if abs(growth) > EQUAL_SHARES:
                if written < len(changed_shares.arc):
                    changed_shares.arc[written], changed_shares.growth[written] = arc, growth
                    changed_shares.source[written], changed_shares.destination[written] = s, d
                written += 1
    return written


@loop
def flag_crossing_pairs(
    p: Program,
    leaving: LinkShares,
    destinations: DestinationClasses,
    arcs: Array,
    destinations_of_arc: Array,
    pairs: CrossingPairs,
    changed: Array,
) -> None:
    """Flag the pairs that cross some arcs on the way to the destinations given for each arc.

    Args:
        p: the tables in links.
        leaving: the shares by which packets leave.
        destinations: the destinations.
        arcs: int64[n, 2], the arcs, each as switch and link.
        destinations_of_arc: bool[n, D], the destinations of each arc.
        pairs: a buffer.
        changed: bool[S, D], written: True for these pairs.
    """
    for i in range(len(arcs)):
        pairs.entry_count[0] = 0
        collect_pairs(p, leaving, destinations, arcs[i, 0], arcs[i, 1], pairs)
        for x in range(pairs.entry_count[0]):
            if destinations_of_arc[i, pairs.destination[x]]:
                changed[pairs.source[x], pairs.destination[x]] = True


@loop
def flag_changed_rows(
    before: FabricState,
    after: FabricState,
    switches: Array,
    is_changed: Array,
    in_transit: Array,
    changed: Array,
) -> None:
    """Flag the packets whose next hop depends on changed rows or classes of some switches.

    Args:
        before: the state before the change.
        after: the state after it.
        switches: int64[n], the switches.
        is_changed: bool[n, C], the changed classes of each switch.
        in_transit: bool[n, K, D], written: True for the ingress links and destinations of packets
            in transit that depend on them.
        changed: bool[S, D], written: True for the pairs of switch and destination whose hosts'
            packets depend on them.
    """
    for i in range(len(switches)):
        s = switches[i]
        for d in range(len(before.egress_class)):
            c = before.egress_class[d, s]
            if c != after.egress_class[d, s]:
                # Where packets were delivered, s is d itself, and its hosts send none over links.
                in_transit[i, :, d], changed[s, d] = True, c != DELIVER
            elif c >= 0 and is_changed[i, c]:
                changed[s, d] = True
                for ingress in range(in_transit.shape[1]):
                    for m in range(before.next_hops.transit_links.shape[3]):
                        link_before = before.next_hops.transit_links[s, c, ingress, m]
                        if link_before != after.next_hops.transit_links[s, c, ingress, m]:
                            in_transit[i, ingress, d] = True


class ChangeEffect(NamedTuple):
    """The effect of a change on some pairs."""

    shares: ChangedShares
    """The shares that differ."""
    arrives: bool
    """Whether all packets of the pairs that arrived before still arrive."""


class IntactPaths(NamedTuple):
    """The paths of packets before a change, with which fabrics after a change are compared."""

    state: FabricState
    """The state before the change."""
    leaving: LinkShares
    """The shares by which packets leave in this state."""
    destinations: DestinationClasses
    """The destinations."""
    packets: int
    """How much there is to do, as `for_packets` counts it."""

    def changed_pairs(
        self, after: FabricState, arcs: Numbers, rows: Numbers, classes: Numbers
    ) -> NDArray[np.bool_]:
        """bool[S, D]: the pairs whose packets can take other paths.

        These are packets that cross one of the arcs, and packets whose next hop differs at one of
        the switches.

        Args:
            after: the state after the change.
            arcs: int64[n, 2], the arcs that are down, each as switch and link.
            rows: int64[m], the switches with changed rows.
            classes: int64[l, 2], the changed classes, each as switch and class.
        """
        p, most_links = self.state.program, self.state.program.far.shape[1]
        destination_count, switch_count = self.state.egress_class.shape
        changed = np.zeros((switch_count, destination_count), np.bool_)
        switches = np.union1d(rows, classes[:, 0])
        # bool[n, C], the changed classes of each of these switches.
        is_changed = np.zeros((len(switches), p.order.shape[1]), np.bool_)
        is_changed[np.searchsorted(switches, classes[:, 0]), classes[:, 1]] = True
        # bool[n, K, D], the ingress links and destinations of packets in transit there.
        in_transit = np.zeros((len(switches), most_links, destination_count), np.bool_)
        flag_rows = for_packets(self.packets, flag_changed_rows)
        flag_rows(self.state, after, switches, is_changed, in_transit, changed)
        # Packets in transit that come in by such a link have left its far end by that link.
        switch_index, ingress = np.nonzero(in_transit.any(axis=2) & (p.far[switches] >= 0))
        s = switches[switch_index]
        arcs_into = np.stack((p.far[s, ingress], p.far_link[s, ingress]), axis=1).astype(np.int64)
        every_destination = np.ones((len(arcs), destination_count), np.bool_)
        flag_pairs = for_packets(self.packets, flag_crossing_pairs)
        flag_pairs(
            p,
            self.leaving,
            self.destinations,
            np.concatenate((arcs, arcs_into)),
            np.concatenate((every_destination, in_transit[switch_index, ingress])),
            CrossingPairs.buffer(switch_count, destination_count, most_links),
            changed,
        )
        return changed

    def shares(self, after: FabricState, changed: NDArray[np.bool_]) -> ChangeEffect:
        """The shares that differ, of pairs that can take other paths.

        Args:
            after: the state after the change.
            changed: bool[S, D], these pairs.
        """
        destination, source = np.nonzero(changed.T)
        write = for_packets(self.packets, write_changed_shares)
        capacity = max(FEWEST_ENTRIES, ENTRIES_A_PAIR * len(source))
        while True:
            shares, arrived = ChangedShares.with_capacity(capacity), np.zeros(len(source))
            count = write(self.state, after, source, destination, shares, arrived)
            if count <= capacity:
                break
            capacity = count
        written = ChangedShares(*(column[:count] for column in shares))
        return ChangeEffect(written, arrives=bool((arrived > -LOST_PART).all()))
