"""What links carry before and after a change: failed elements, repaired tables, or both.

Most pairs of switches keep their paths. The others are asked for backwards (`link_crossings`), from
the links and the rows that changed. Then their packets are followed forwards, before and after.
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
"""The difference of shares that are the same."""


class Held(NamedTuple):
    """What decides where packets go."""

    program: Program
    """What switches hold."""
    hops: Hops
    """Where packets leave by it, where elements are down."""
    egress: Array
    """int16[D, S], the class of each switch for each destination."""
    ends: Array
    """int64[D], the destinations."""


class Stack(NamedTuple):
    """The packets in transit that are still to be followed."""

    at: Array
    """int64[n], the switch of each."""
    came: Array
    """int64[n], its ingress link."""
    hops: Array
    """int64[n], the links that it has crossed."""
    part: Array
    """float64[n], the part of the pair's packets."""


class PairLoads(NamedTuple):
    """What one pair sends over each link before and after, while it is followed."""

    before: Array
    """float64[S·K], by arc: s·K + k for link k of switch s."""
    after: Array
    """float64[S·K]."""
    touched: Array
    """int64[S·K], the arcs that it crosses before or after, and some twice."""


class ChangedShares(NamedTuple):
    """The shares that differ, n in all, those of a pair together and pairs in ascending order."""

    arc: Array
    """int64[n], the link, s·K + k for link k of switch s."""
    source: Array
    """int64[n], the switch that sends."""
    destination: Array
    """int64[n], the number of the destination."""
    before: Array
    """float64[n], the share of the pair's packets that crossed the link."""
    after: Array
    """float64[n], the share that crosses it now."""

    @classmethod
    def room(cls, entries: int) -> ChangedShares:
        """Room for so many."""
        arc, source, destination = np.zeros((3, entries), np.int64)
        return cls(arc, source, destination, np.zeros(entries), np.zeros(entries))


@loop
def follow(held: Held, s: int, d: int, load: Array, touched: Array, n: int, stack: Stack) -> int:
    """Follow what switch s sends to destination d, and add it to the load of links.

    Returns:
        n, the number of arcs that `touched` has before, plus those added.
    """
    p, hops, links = held.program, held.hops, held.program.far.shape[1]
    c = held.egress[d, s]
    for k in range(links if c >= 0 else 0):
        part = hops.host[s, c, k]
        if part == 0:
            continue
        n = cross(s * links + k, part, load, touched, n)
        t, came = p.far[s, k], p.far_link[s, k]
        if len(hops.marked) > 0 and spreads(p, held.egress[d, t]):
            spread = hops.marked[s, c, k] * hops.onward[t, came]
            for then in range(links if spread > 0 else 0):
                if p.onward[t, came, then] and hops.up[t, then]:
                    n = cross(t * links + then, spread, load, touched, n)
                    u, back = p.far[t, then], p.far_link[t, then]
                    n = pass_on(held, u, back, d, 2, spread, load, touched, n, stack)
            part -= hops.marked[s, c, k]
        if part > 0:
            n = pass_on(held, t, came, d, 1, part, load, touched, n, stack)
    return n


@inlined_loop
def pass_on(
    held: Held,
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
    """Follow packets in transit, as `follow` does.

    Args:
        held: what decides.
        s: the switch that they are in.
        ingress: their ingress link.
        d: their destination.
        crossed: the links that they have crossed.
        part: the part of the pair's packets.
        load: as in `PairLoads`.
        touched: as in `PairLoads`.
        n: the number of arcs in `touched`.
        stack: room.
    """
    p, transit, links = held.program, held.hops.transit, held.program.far.shape[1]
    stack.at[0], stack.came[0], stack.hops[0], stack.part[0] = s, ingress, crossed, part
    waiting = 1
    while waiting > 0:
        waiting -= 1
        t, came, hops = stack.at[waiting], stack.came[waiting], stack.hops[waiting]
        c, number = held.egress[d, t], 0
        if c < 0:
            continue
        for i in range(transit.shape[3]):
            number += transit[t, c, came, i] >= 0
        for i in range(number):
            k, share = transit[t, c, came, i], stack.part[waiting] / number
            n = cross(t * links + k, share, load, touched, n)
            if hops >= MOST_HOPS:
                continue
            last = waiting + number - 1 - i
            stack.at[last], stack.came[last] = p.far[t, k], p.far_link[t, k]
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
def compare(
    before: Held, after: Held, source: Array, destination: Array, out: ChangedShares, arrived: Array
) -> int:
    """Follow pairs before and after a change, and write where shares differ.

    Args:
        before: what decided.
        after: what decides now.
        source: int64[n], the switch of each pair.
        destination: int64[n], the number of its destination.
        out: written as far as there is room.
        arrived: float64[n], written: the part of each pair that comes to its destination now.

    Returns:
        For how many there has to be room.
    """
    p, written = after.program, 0
    arcs, links = p.far.size, p.far.shape[1]
    room = (MOST_HOPS + 2) * (links + 1)
    stack = Stack(
        np.empty(room, np.int64),
        np.empty(room, np.int64),
        np.empty(room, np.int64),
        np.empty(room, np.float64),
    )
    pair = PairLoads(np.zeros(arcs), np.zeros(arcs), np.empty(2 * arcs, np.int64))
    for x in range(len(source)):
        s, d = source[x], destination[x]
        n = follow(before, s, d, pair.before, pair.touched, 0, stack)
        n = follow(after, s, d, pair.after, pair.touched, n, stack)
        for i in range(n):
            arc = pair.touched[i]
            old, new = pair.before[arc], pair.after[arc]
            pair.before[arc], pair.after[arc] = 0, 0
            t, k = arc // links, arc % links
            if p.far[t, k] == after.ends[d]:
                arrived[x] += new
            if abs(new - old) > SAME:
                if written < len(out.arc):
                    out.arc[written], out.source[written], out.destination[written] = arc, s, d
                    out.before[written], out.after[written] = old, new
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
        p: what switches hold.
        out: their shares.
        towards: the destinations.
        arcs: int64[n, 2], the links.
        flags: bool[n, D], the destinations of each link.
        pairs: room.
        changed: bool[S, D], written.
    """
    for i in range(len(arcs)):
        pairs.number[0] = 0
        collect(p, out, towards, arcs[i, 0], arcs[i, 1], pairs)
        for x in range(pairs.number[0]):
            if flags[i, pairs.destination[x]]:
                changed[pairs.source[x], pairs.destination[x]] = True


@loop
def mark_rows(
    before: Held, after: Held, switches: Array, classes: Array, flags: Array, changed: Array
) -> None:
    """Mark where rows and classes of some switches decide otherwise.

    Args:
        before: what decided.
        after: what decides now.
        switches: int64[n], the switches.
        classes: bool[n, C], the classes of each that changed.
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
                for came in range(flags.shape[1]):
                    for m in range(before.hops.transit.shape[3]):
                        was = before.hops.transit[s, c, came, m]
                        if was != after.hops.transit[s, c, came, m]:
                            flags[i, came, d] = True


@loop
def add_maxima(order: Array, arc: Array, end: Array, gain: Array, rate: Array, sums: Array) -> None:
    """Add up, by link, the largest gain of each end times its rate.

    Args:
        order: int64[n], the entries in the order of their ends.
        arc: int64[n], the link of each entry.
        end: int64[n], its source or its destination.
        gain: float64[n], what it gains; below 0 counts nothing.
        rate: float64[ends], what each end sends or takes.
        sums: float64[arcs], added to.
    """
    last, best = np.full(len(sums), -1, np.int64), np.zeros(len(sums))
    for x in order:
        a, e = arc[x], end[x]
        if last[a] != e:
            last[a], best[a] = e, 0.0
        if gain[x] > best[a]:
            sums[a] += (gain[x] - best[a]) * rate[e]
            best[a] = gain[x]


class Changed(NamedTuple):
    """What differs after a change."""

    shares: ChangedShares
    """The shares that differ."""
    arrives: bool
    """Whether all packets of the pairs that are looked at arrive now."""


class IntactPaths(NamedTuple):
    """Who crosses links before a change; fabrics after a change are compared with it."""

    held: Held
    """What decided where packets go."""
    out: LinkShares
    """The shares by which packets left."""
    towards: Towards
    """The destinations."""
    packets: int
    """How much there is to do, as `for_packets` counts it."""

    def changed_pairs(
        self, after: Held, arcs: Numbers, rows: Numbers, classes: Numbers
    ) -> NDArray[np.bool_]:
        """bool[S, D]: the pairs whose packets can take other paths.

        Args:
            after: what decides now.
            arcs: int64[n, 2], the links that are down.
            rows: int64[m], the switches with rows that changed.
            classes: int64[l, 2], the classes that changed, each with its switch before it.
        """
        (ends, order), p = self.held.egress.shape, self.held.program
        changed, links = np.zeros((order, ends), np.bool_), p.far.shape[1]
        switches = np.union1d(rows, classes[:, 0])
        of_switch = np.zeros((len(switches), p.order.shape[1]), np.bool_)
        of_switch[np.searchsorted(switches, classes[:, 0]), classes[:, 1]] = True
        flags = np.zeros((len(switches), links, ends), np.bool_)
        for_packets(self.packets, mark_rows)(self.held, after, switches, of_switch, flags, changed)
        place, came = np.nonzero(flags.any(axis=2) & (p.far[switches] >= 0))
        s = switches[place]
        into = np.stack((p.far[s, came], p.far_link[s, came]), axis=1).astype(np.int64)
        asked = np.concatenate((arcs, into))
        wanted = np.concatenate((np.ones((len(arcs), ends), np.bool_), flags[place, came]))
        pairs = Pairs.room(order, ends, links)
        mark = for_packets(self.packets, mark_crossing)
        mark(p, self.out, self.towards, asked, wanted, pairs, changed)
        return changed

    def shares(self, after: Held, changed: NDArray[np.bool_]) -> Changed:
        """The shares that differ, of pairs that can take other paths.

        Args:
            after: what decides now.
            changed: bool[S, D], these pairs.
        """
        source, destination = np.nonzero(changed)
        follow_all = for_packets(self.packets, compare)
        room = max(1 << 14, 64 * len(source))
        while True:
            shares, arrived = ChangedShares.room(room), np.zeros(len(source))
            number = follow_all(self.held, after, source, destination, shares, arrived)
            if number <= room:
                break
            room = number
        cut = ChangedShares(*(column[:number] for column in shares))
        at_home = after.ends[destination] == source
        return Changed(cut, bool((at_home | (arrived > 1 - 1e-9)).all()))

    def gains(self, shares: ChangedShares, paid: Reals, sends: Reals, takes: Reals) -> Reals:
        """float64[S·K]: the most by which the bound of the load of each link grows.

        Args:
            shares: those that differ.
            paid: float64[n], what the bound before counts for the pair of each.
            sends: float64[S], what the hosts of each switch can send.
            takes: float64[D], what they can take.
        """
        gain, add = shares.after - paid, for_packets(self.packets, add_maxima)
        sums = np.zeros((2, self.held.program.far.size))
        add(np.arange(len(gain)), shares.arc, shares.source, gain, sends, sums[0])
        order = np.argsort(shares.destination.astype(np.int16), kind="stable")
        add(order, shares.arc, shares.destination, gain, takes, sums[1])
        return np.asarray(sums.min(axis=0), np.float64)
