"""The loads of links before and after a change: failed elements, repaired tables, or both.

Most pairs of switches keep their paths. The other pairs are searched backwards (`link_crossings`)
from the links and the rows that changed. Their packets are followed forwards, before and after the
change, if a changed decision concerns them. So only differences of shares are computed.
`compilers.evaluation.damaged_loads` computes guarantees under failures from these.

Letters in the loops: p a program, s, t and u switches, c an egress class, k a link, d the number of
a destination. An *arc* is link k of switch s, by the number s·K + k.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from compilers.forwarding.link_crossings import Pairs, Towards, collect
from compilers.forwarding.link_shares import Hops, LinkShares
from compilers.forwarding.machine_code import for_packets, inlined_loop, loop
from compilers.forwarding.rule import DELIVER, Array, Program, spreads
from compilers.tables.fib import MOST_HOPS

Numbers = NDArray[np.int64]
Reals = NDArray[np.float64]
SAME = 1e-12
"""The largest difference of two shares that count as equal."""

LOST_PART = 1e-9
"""The smallest part of a pair's packets that counts as lost."""


class FabricState(NamedTuple):
    """The tables of all switches and the failed elements, which decide the paths of packets."""

    program: Program
    """The tables in links."""
    hops: Hops
    """The links by which packets leave, while some elements are down."""
    egress: Array
    """int16[D, S], the class of each switch for each destination."""
    ends: Array
    """int64[D], the destinations."""


class Stack(NamedTuple):
    """The packets in transit that are still to be followed."""

    at: Array
    """int64[n], the switch of each."""
    ingress: Array
    """int64[n], its ingress link."""
    hops: Array
    """int64[n], how many links it has crossed."""
    part: Array
    """float64[n], the part of the pair's packets that it stands for."""


class PairLoads(NamedTuple):
    """The shares that one pair sends over each arc before and after, while it is followed."""

    before: Array
    """float64[S·K], by arc."""
    after: Array
    """float64[S·K], by arc."""
    touched: Array
    """int64[2·S·K], the arcs that the pair crosses before or after; some occur twice."""


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
    def room(cls, entries: int) -> ChangedShares:
        """Room for so many shares."""
        source, destination = np.empty((2, entries), np.int16)
        return cls(np.empty(entries, np.int32), source, destination, np.empty(entries))


@loop
def follow(
    state: FabricState, s: int, d: int, load: Array, touched: Array, n: int, stack: Stack
) -> int:
    """Follow the packets of hosts at switch s to destination d, and add them to the loads of arcs.

    Args:
        state: decides the paths.
        s: the switch.
        d: the destination.
        load: a column of `PairLoads`.
        touched: of `PairLoads`.
        n: how many arcs are in `touched`.
        stack: room.

    Returns:
        How many arcs are in `touched` now.
    """
    p, hops, links = state.program, state.hops, state.program.far.shape[1]
    c = state.egress[d, s]
    for k in range(links if c >= 0 else 0):
        part = hops.host[s, c, k]
        if part == 0:
            continue
        n = cross(s * links + k, part, load, touched, n)
        t, far_ingress, marked = p.far[s, k], p.far_link[s, k], 0.0
        if len(hops.marked) > 0 and spreads(p, state.egress[d, t]):
            marked = hops.marked[s, c, k]
        n = send_on(state, t, far_ingress, d, marked, part - marked, load, touched, n, stack)
    return n


@loop
def send_on(
    state: FabricState,
    s: int,
    ingress: int,
    d: int,
    marked: float,
    plain: float,
    load: Array,
    touched: Array,
    n: int,
    stack: Stack,
) -> int:
    """Follow packets from the switch behind their first link on; returns as `follow` does.

    Args:
        state: decides the paths.
        s: the switch behind the first link.
        ingress: the ingress link there.
        d: the destination.
        marked: the part of the pair's packets that the switch spreads.
        plain: the part that it forwards as in transit.
        load: a column of `PairLoads`.
        touched: of `PairLoads`.
        n: how many arcs are in `touched`.
        stack: room.
    """
    p, links = state.program, state.program.far.shape[1]
    part = marked * state.hops.onward[s, ingress] if marked > 0 else 0.0
    for k in range(links if part > 0 else 0):
        if p.onward[s, ingress, k] and state.hops.up[s, k]:
            n = cross(s * links + k, part, load, touched, n)
            t, far_ingress = p.far[s, k], p.far_link[s, k]
            n = pass_on(state, t, far_ingress, d, 2, part, load, touched, n, stack)
    if plain > 0:
        n = pass_on(state, s, ingress, d, 1, plain, load, touched, n, stack)
    return n


@inlined_loop
def next_hop(state: FabricState, s: int, ingress: int, d: int) -> int:
    """The only link by which packets in transit leave; below 0 where they are dropped."""
    c = state.egress[d, s]
    return int(state.hops.transit[s, c, ingress, 0]) if c >= 0 else -1


@inlined_loop
def pass_on(
    state: FabricState,
    s: int,
    ingress: int,
    d: int,
    crossed: int,
    part: float,
    load: Array,
    touched: Array,
    n: int,
    stack: Stack,
) -> int:
    """Follow packets in transit; returns as `follow` does.

    Args:
        state: decides the paths.
        s: the switch that the packets are in.
        ingress: their ingress link.
        d: their destination.
        crossed: how many links they have crossed.
        part: the part of the pair's packets that they are.
        load: a column of `PairLoads`.
        touched: of `PairLoads`.
        n: how many arcs are in `touched`.
        stack: room.
    """
    if state.hops.transit.shape[3] > 1:
        return int(pass_on_all(state, s, ingress, d, crossed, part, load, touched, n, stack))
    p, links = state.program, state.program.far.shape[1]
    for _ in range(crossed, MOST_HOPS + 1):
        k = next_hop(state, s, ingress, d)
        if k < 0:
            break
        n = cross(s * links + k, part, load, touched, n)
        s, ingress = p.far[s, k], p.far_link[s, k]
    return n


@loop
def pass_on_all(
    state: FabricState,
    s: int,
    ingress: int,
    d: int,
    crossed: int,
    part: float,
    load: Array,
    touched: Array,
    n: int,
    stack: Stack,
) -> int:
    """Follow packets in transit over all their paths, where paths are shared at every hop.

    The arguments are those of `pass_on`.
    """
    p, transit, links = state.program, state.hops.transit, state.program.far.shape[1]
    stack.at[0], stack.ingress[0], stack.hops[0], stack.part[0] = s, ingress, crossed, part
    waiting = 1
    while waiting > 0:
        waiting -= 1
        s, ingress, hops = stack.at[waiting], stack.ingress[waiting], stack.hops[waiting]
        c, number = state.egress[d, s], 0
        if c < 0:
            continue
        for i in range(transit.shape[3]):
            number += transit[s, c, ingress, i] >= 0
        for i in range(number):
            k, share = transit[s, c, ingress, i], stack.part[waiting] / number
            n = cross(s * links + k, share, load, touched, n)
            if hops >= MOST_HOPS:
                continue
            last = waiting + number - 1 - i
            stack.at[last], stack.ingress[last] = p.far[s, k], p.far_link[s, k]
            stack.hops[last], stack.part[last] = hops + 1, share
        if hops < MOST_HOPS:
            waiting += number
    return n


@inlined_loop
def cross(arc: int, share: float, load: Array, touched: Array, n: int) -> int:
    """Add a share to the load of an arc, and the arc to the n that are touched if it is new."""
    if load[arc] == 0:
        touched[n] = arc
        n += 1
    load[arc] += share
    return n


@loop
def host_packets_differ(before: FabricState, after: FabricState, s: int, d: int) -> bool:
    """Whether packets of the hosts of switch s leave by other links or in other shares."""
    c, class_after = before.egress[d, s], after.egress[d, s]
    if c < 0 or class_after < 0:
        return bool(c != class_after)
    for k in range(before.hops.host.shape[2]):
        if before.hops.host[s, c, k] != after.hops.host[s, class_after, k]:
            return True
        if len(before.hops.marked) > 0 and (
            before.hops.marked[s, c, k] != after.hops.marked[s, class_after, k]
        ):
            return True
    return False


@loop
def differs_ahead(before: FabricState, after: FabricState, arc: int, d: int, ahead: Array) -> bool:
    """Whether packets in transit that have crossed an arc take another path from there on.

    Args:
        before: the state before the change.
        after: the state after it.
        arc: the arc that the packets have crossed.
        d: their destination.
        ahead: int64[S·K], written: 2d for arcs from which paths to d are the same, 2d + 1 where
            they differ; below 2d where that is not known.
    """
    if before.hops.transit.shape[3] > 1:
        return True
    p, links = before.program, before.program.far.shape[1]
    at, hops, answer = arc, 0, 0
    while True:
        if ahead[at] >= 2 * d:
            answer = ahead[at] - 2 * d
            break
        s, ingress = p.far[at // links, at % links], p.far_link[at // links, at % links]
        k = next_hop(before, s, ingress, d)
        if hops > MOST_HOPS or k != next_hop(after, s, ingress, d):
            answer = 1
            break
        if k < 0:
            break
        at, hops = s * links + k, hops + 1
    at = arc
    for _ in range(hops + 1):
        ahead[at] = 2 * d + answer
        s, ingress = p.far[at // links, at % links], p.far_link[at // links, at % links]
        k = next_hop(before, s, ingress, d)
        if k < 0:
            break
        at = s * links + k
    return answer == 1


@loop
def follow_changes(
    before: FabricState,
    after: FabricState,
    s: int,
    d: int,
    pair: PairLoads,
    ahead: Array,
    stack: Stack,
) -> int:
    """Follow the packets of a pair whose paths differ, before and after a change.

    Args:
        before: the state before the change.
        after: the state after it.
        s: the switch that sends.
        d: the destination.
        pair: written.
        ahead: as in `differs_ahead`.
        stack: room.

    Returns:
        How many arcs are written to `PairLoads.touched`.
    """
    touched, n = pair.touched, 0
    if host_packets_differ(before, after, s, d):
        n = follow(before, s, d, pair.before, touched, n, stack)
        return int(follow(after, s, d, pair.after, touched, n, stack))
    p, hops, links = before.program, before.hops, before.program.far.shape[1]
    c = before.egress[d, s]
    for k in range(links if c >= 0 else 0):
        part = hops.host[s, c, k]
        if part == 0:
            continue
        t, far_ingress, marked, marked_now = p.far[s, k], p.far_link[s, k], 0.0, 0.0
        if len(hops.marked) > 0:
            marked = hops.marked[s, c, k] if spreads(p, before.egress[d, t]) else 0.0
            marked_now = hops.marked[s, c, k] if spreads(p, after.egress[d, t]) else 0.0
        plain, share = part - marked, hops.onward[t, far_ingress] if marked > 0 else 0.0
        if marked != marked_now or (marked > 0 and share != after.hops.onward[t, far_ingress]):
            n = send_on(before, t, far_ingress, d, marked, plain, pair.before, touched, n, stack)
            n = send_on(
                after,
                t,
                far_ingress,
                d,
                marked_now,
                part - marked_now,
                pair.after,
                touched,
                n,
                stack,
            )
            continue
        for onward in range(links if marked > 0 else 0):
            arc, spread_part = t * links + onward, marked * share
            if not p.onward[t, far_ingress, onward] or ahead[arc] == 2 * d:  # a call takes longer
                continue
            if differs_ahead(before, after, arc, d, ahead):
                u, back = p.far[t, onward], p.far_link[t, onward]
                n = pass_on(before, u, back, d, 2, spread_part, pair.before, touched, n, stack)
                n = pass_on(after, u, back, d, 2, spread_part, pair.after, touched, n, stack)
        if plain > 0 and differs_ahead(before, after, s * links + k, d, ahead):
            n = pass_on(before, t, far_ingress, d, 1, plain, pair.before, touched, n, stack)
            n = pass_on(after, t, far_ingress, d, 1, plain, pair.after, touched, n, stack)
    return n


@loop
def stack_for(links: int) -> Stack:
    """Room for the packets of one pair, in switches with so many links."""
    room = (MOST_HOPS + 2) * (links + 1)
    at, ingress, hops = np.empty(room, np.int64), np.empty(room, np.int64), np.empty(room, np.int64)
    return Stack(at, ingress, hops, np.empty(room, np.float64))


@loop
def compare(
    before: FabricState,
    after: FabricState,
    source: Array,
    destination: Array,
    out: ChangedShares,
    arrived: Array,
) -> int:
    """Follow pairs before and after a change, and write where shares differ.

    Args:
        before: the state before the change.
        after: the state after it.
        source: int64[n], the switch of each pair.
        destination: int64[n], the number of its destination, ascending.
        out: written as far as there is room.
        arrived: float64[n], written: the growth of the part of each pair that arrives.

    Returns:
        How many shares differ, which `out` needs room for.
    """
    p, written = after.program, 0
    arcs, links = p.far.size, p.far.shape[1]
    stack, ahead = stack_for(links), np.full(arcs, -1, np.int64)
    pair = PairLoads(np.zeros(arcs), np.zeros(arcs), np.empty(2 * arcs, np.int64))
    for x in range(len(source)):
        s, d = source[x], destination[x]
        for i in range(follow_changes(before, after, s, d, pair, ahead, stack)):
            arc = pair.touched[i]
            growth = pair.after[arc] - pair.before[arc]
            pair.before[arc], pair.after[arc] = 0, 0
            if p.far[arc // links, arc % links] == after.ends[d]:
                arrived[x] += growth
            if abs(growth) > SAME:
                if written < len(out.arc):
                    out.arc[written], out.source[written], out.destination[written] = arc, s, d
                    out.growth[written] = growth
                written += 1
    return written


@loop
def mark_crossing(
    p: Program,
    out: LinkShares,
    towards: Towards,
    arcs: Array,
    flags: Array,
    pairs: Pairs,
    changed: Array,
) -> None:
    """Mark the pairs that cross some links to some destinations.

    Args:
        p: the tables in links.
        out: the shares by which packets leave.
        towards: the destinations.
        arcs: int64[n, 2], the arcs, each as switch and link.
        flags: bool[n, D], the destinations of each arc.
        pairs: room.
        changed: bool[S, D], written: the pairs.
    """
    for i in range(len(arcs)):
        pairs.number[0] = 0
        collect(p, out, towards, arcs[i, 0], arcs[i, 1], pairs)
        for x in range(pairs.number[0]):
            if flags[i, pairs.destination[x]]:
                changed[pairs.source[x], pairs.destination[x]] = True


@loop
def mark_rows(
    before: FabricState,
    after: FabricState,
    switches: Array,
    classes: Array,
    flags: Array,
    changed: Array,
) -> None:
    """Mark the packets that changed rows and classes of some switches concern.

    Args:
        before: the state before the change.
        after: the state after it.
        switches: int64[n], the switches.
        classes: bool[n, C], the changed classes of each switch.
        flags: bool[n, K, D], written: the ingress links and destinations of packets in transit.
        changed: bool[S, D], written: the pairs whose hosts' packets are concerned.
    """
    for i in range(len(switches)):
        s = switches[i]
        for d in range(len(before.egress)):
            c = before.egress[d, s]
            if c != after.egress[d, s]:
                flags[i, :, d], changed[s, d] = True, c != DELIVER
            elif c >= 0 and classes[i, c]:
                changed[s, d] = True
                for ingress in range(flags.shape[1]):
                    for m in range(before.hops.transit.shape[3]):
                        was = before.hops.transit[s, c, ingress, m]
                        if was != after.hops.transit[s, c, ingress, m]:
                            flags[i, ingress, d] = True


class Changed(NamedTuple):
    """The effect of a change on some pairs."""

    shares: ChangedShares
    """The shares that differ."""
    arrives: bool
    """Whether all of their packets that arrived before still arrive."""


class IntactPaths(NamedTuple):
    """The paths of packets before a change, with which fabrics after a change are compared."""

    state: FabricState
    """The state before the change."""
    out: LinkShares
    """The shares by which packets leave in this state."""
    towards: Towards
    """The destinations."""
    packets: int
    """How much there is to do, as `for_packets` counts it."""

    def changed_pairs(
        self, after: FabricState, arcs: Numbers, rows: Numbers, classes: Numbers
    ) -> NDArray[np.bool_]:
        """bool[S, D]: the pairs whose packets can take other paths.

        Args:
            after: the state after the change.
            arcs: int64[n, 2], the arcs that are down, each as switch and link.
            rows: int64[m], the switches with changed rows.
            classes: int64[l, 2], the changed classes, each as switch and class.
        """
        (ends, order), p = self.state.egress.shape, self.state.program
        changed, links = np.zeros((order, ends), np.bool_), p.far.shape[1]
        switches = np.union1d(rows, classes[:, 0])
        of_switch = np.zeros((len(switches), p.order.shape[1]), np.bool_)
        of_switch[np.searchsorted(switches, classes[:, 0]), classes[:, 1]] = True
        flags = np.zeros((len(switches), links, ends), np.bool_)
        for_packets(self.packets, mark_rows)(self.state, after, switches, of_switch, flags, changed)
        place, ingress = np.nonzero(flags.any(axis=2) & (p.far[switches] >= 0))
        s = switches[place]
        into = np.stack((p.far[s, ingress], p.far_link[s, ingress]), axis=1).astype(np.int64)
        changed_arcs = np.concatenate((arcs, into))
        changed_destinations = np.concatenate(
            (np.ones((len(arcs), ends), np.bool_), flags[place, ingress])
        )
        pairs = Pairs.room(order, ends, links)
        mark = for_packets(self.packets, mark_crossing)
        mark(p, self.out, self.towards, changed_arcs, changed_destinations, pairs, changed)
        return changed

    def shares(self, after: FabricState, changed: NDArray[np.bool_]) -> Changed:
        """The shares that differ, of pairs that can take other paths.

        Args:
            after: the state after the change.
            changed: bool[S, D], these pairs.
        """
        destination, source = np.nonzero(changed.T)
        compare_pairs = for_packets(self.packets, compare)
        room = max(1 << 14, 64 * len(source))
        while True:
            shares, arrived = ChangedShares.room(room), np.zeros(len(source))
            number = compare_pairs(self.state, after, source, destination, shares, arrived)
            if number <= room:
                break
            room = number
        cut = ChangedShares(*(column[:number] for column in shares))
        return Changed(cut, bool((arrived > -LOST_PART).all()))
