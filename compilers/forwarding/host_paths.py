"""All paths of hosts' packets between pairs of switches, with the part of the traffic on each.

Rehearsals predict with them what hosts measure while some links and switches are down. A next hop
depends on the switch, the ingress link, the tag and the egress class, not on the packet. So
`TabulatedHops.of` asks the rule once for each of these. `TabulatedHops.paths` then moves all
packets at once, a link a round; a packet with several next hops becomes several paths.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from compilers.forwarding.machine_code import for_packets
from compilers.forwarding.many_packets import bounds_over, next_of_packets
from compilers.forwarding.rule import DELIVER, DROP, HOST, MARKED, PLAIN, Program, gives_up, marks
from compilers.forwarding.walks import Numbers, Walks
from compilers.routing.intermediates import intermediates
from compilers.tables.fib import LOOPED, LOST, MISDELIVERED, MOST_HOPS

STATES_A_CALL = 4
"""How many states are tabulated in the time in which one packet is followed."""
STATES_AT_ONCE = 1 << 18
"""The most states that are tabulated at once."""


@dataclass(frozen=True, slots=True, eq=False)
class HostPaths:
    """The paths that packets of hosts may take, m in all, those of a pair of switches together."""

    pair: Numbers
    """int64[m], the number of the pair of switches, ascending."""
    part: NDArray[np.float64]
    """float64[m], the part of the pair's packets that takes this path."""
    hops: NDArray[np.int16]
    """int16[m], the links of the path, or a fault: a key of `FAULTS`."""
    end: Numbers
    """int64[m], the last switch."""
    arcs: NDArray[np.int32]
    """int32[H, m], the links of the path, s·K + k for link k of switch s; -1 after the last."""
    marked: NDArray[np.bool_]
    """bool[H, m], whether packets leave by that link with a mark."""


@dataclass(frozen=True, eq=False)
class TabulatedHops:
    """The next hops of packets in every state, with some elements down.

    A state is a switch, an ingress place and an egress class, numbered in this order. The ingress
    places of a switch are its K links, and hosts; where packets are marked, K more follow, for
    marked packets by ingress link.
    """

    walks: Walks
    """The build as a program."""
    program: Program
    """What switches hold, as they are cabled now."""
    begins: Numbers
    """int64[states + 1], where the next hops of each state begin in the three arrays below."""
    link: NDArray[np.int16]
    """int16[m], the link of a next hop, or DROP."""
    marked: NDArray[np.bool_]
    """bool[m], whether packets leave with a mark."""
    part: NDArray[np.float64]
    """float64[m], the part of the state's packets that takes the next hop."""
    released: NDArray[np.int32]
    """int32[S, C], the intermediate whose packets end their first leg here, as the link to it is
    down; -1 where there is none."""

    @classmethod
    def of(cls, walks: Walks, program: Program, dead: Numbers, times: int = 1) -> TabulatedHops:
        """Ask the rule for every state.

        Args:
            walks: of the build.
            program: what its switches hold, as they are cabled now.
            dead: int64[n], the failed elements.
            times: how often this is done, with other elements down: for machine code.
        """
        switches, states = len(program.far), _states_of_a_switch(program)
        next_of = for_packets(times * switches * states // STATES_A_CALL, next_of_packets)
        step = max(1, STATES_AT_ONCE // states)
        blocks = [
            _hops_of_switches(walks, program, dead, next_of, slice(first, first + step))
            for first in range(0, switches, step)
        ]
        count, link, marked, part = map(np.concatenate, zip(*blocks, strict=True))
        begins = np.append(0, np.cumsum(count))
        return cls(walks, program, begins, link, marked, part, _released(walks, program, dead))

    def with_switch(
        self, switch: int, walks: Walks, program: Program, dead: Numbers
    ) -> TabulatedHops:
        """The next hops where one switch holds something else; the rule is asked for its states.

        Args:
            switch: the switch.
            walks: of the other build.
            program: as in `of`, of the other build.
            dead: the same failed elements as here.
        """
        states = _states_of_a_switch(program)
        first, last = switch * states, (switch + 1) * states
        one = slice(switch, switch + 1)
        count, link, marked, part = _hops_of_switches(walks, program, dead, next_of_packets, one)
        counts = np.diff(self.begins)
        counts[first:last] = count
        before, after = self.begins[first], self.begins[last]
        link = np.concatenate((self.link[:before], link, self.link[after:]))
        marked = np.concatenate((self.marked[:before], marked, self.marked[after:]))
        part = np.concatenate((self.part[:before], part, self.part[after:]))
        begins = np.append(0, np.cumsum(counts))
        released = _released(walks, program, dead)
        return TabulatedHops(walks, program, begins, link, marked, part, released)

    @property
    def width(self) -> int:
        """About how many paths a pair of switches has."""
        p = self.program
        several = p.shares.shape[2] * (p.far.shape[1] if marks(p) or p.every_hop else 1)
        return len(p.far) if self.walks.build.forwarding.intermediates else several

    def first_paths(self, source: Numbers, destination: Numbers) -> HostPaths:
        """For each pair of switches the path of the first next hops, over no intermediate.

        source and destination: int64[n] each, switches.
        """
        return self._moved(source, destination, first=True)

    def paths(self, source: Numbers, destination: Numbers) -> HostPaths:
        """All paths of some pairs of switches; the first of each pair is that of `first_paths`.

        source and destination: int64[n] each, switches.
        """
        if not self.walks.build.forwarding.intermediates:
            return self._moved(source, destination)
        vias = intermediates(self.walks.build)
        # The source as its own intermediate comes first.
        by_source = np.argsort(vias != source[:, None], axis=1, kind="stable")
        first, then = self.legs
        leg = (source[:, None] * len(vias) + by_source).ravel()
        pair = np.repeat(np.arange(len(source)), len(vias))
        rest = first.end[leg] * len(self.program.far) + destination[pair]
        lost = first.hops[leg] < 0
        second = np.where(lost, -1, then.arcs[:, rest])
        total = (first.hops[leg] + then.hops[rest]).astype(np.int16)
        hops = np.where(
            lost, first.hops[leg], np.where(then.hops[rest] < 0, then.hops[rest], total)
        )
        end = np.where(lost, first.end[leg], then.end[rest])
        arcs = np.concatenate((first.arcs[:, leg], second.astype(np.int32)))
        part = np.full(len(pair), 1 / len(vias))
        return HostPaths(pair, part, hops, end, arcs, np.zeros_like(arcs, np.bool_))

    @cached_property
    def legs(self) -> tuple[HostPaths, HostPaths]:
        """The first legs, from every switch to every intermediate, and the second legs, from every
        switch to every switch.
        """
        every, vias = np.arange(len(self.program.far)), intermediates(self.walks.build)
        first = self._moved(np.repeat(every, len(vias)), np.tile(vias, len(every)), carried=True)
        then = self._moved(np.repeat(every, len(every)), np.tile(every, len(every)))
        return first, then

    def hops_over(self) -> tuple[NDArray[np.int16], NDArray[np.int16]]:
        """The fewest and the most links between switches, over whatever intermediate.

        Returns:
            int16[S, S] twice, by source and destination. A fault is negative, so it counts as
            fewer than any number of links.
        """
        first, then = self.legs
        switches = len(self.program.far)
        after, end = then.hops.reshape(switches, -1), first.end.reshape(switches, -1)
        fewest, most = np.full_like(after, 2 * MOST_HOPS), np.full_like(after, MISDELIVERED)
        for via, hops in enumerate(first.hops.reshape(switches, -1).T):
            rest = after[end[:, via]]
            total = np.where(rest < 0, rest, rest + hops[:, None])
            total = np.where(hops[:, None] < 0, hops[:, None], total)
            np.minimum(fewest, total, out=fewest)
            np.maximum(most, total, out=most)
        return fewest, most

    def bounds_over(self, packets: Numbers) -> tuple[Numbers, Numbers]:
        """The fewest and the most packets on each arc, whatever intermediates packets take.

        Args:
            packets: int64[S, S], the number of packets by source and destination.

        Returns:
            int64[S·K] twice.
        """
        first, then = self.legs
        switches, arcs = len(packets), self.program.far.size
        ends, first_arcs, then_arcs = (
            np.ascontiguousarray(x.T.reshape(switches, -1, *x.shape[:-1]), np.int32)
            for x in (np.where(first.hops < 0, -1, first.end), first.arcs, then.arcs)
        )
        least, most = np.zeros((2, arcs), np.int64)
        add = for_packets(int(np.count_nonzero(packets)) * ends.shape[1], bounds_over)
        add(first_arcs, ends, then_arcs, packets, least, most)
        return least, most

    def _moved(
        self,
        source: Numbers,
        destination: Numbers,
        *,
        carried: bool = False,
        first: bool = False,
    ) -> HostPaths:
        """Move packets of hosts along all their paths, a link a round, until all have ended.

        A packet that comes over a link again goes round for ever; where paths are shared at every
        hop its path is cut there.

        Args:
            source: int64[n], the switch where the packets of each pair begin.
            destination: int64[n], the switch that they are for.
            carried: whether they are on the way to an intermediate, and may be given up before it.
            first: whether only the first next hop of each state is taken.
        """
        p, links = self.program, self.program.far.shape[1]
        # A row for each path so far: its pair, switch, ingress place, part of the pair's packets,
        # links (LOOPED while it is not at its end), arcs, marks, and whether it goes on.
        pair, at = np.arange(len(source)), source
        place, part = np.full(len(source), links), np.ones(len(source))
        hops = np.full(len(source), LOOPED, np.int16)
        arcs = np.zeros((0, len(source)), np.int32)
        marked = np.zeros((0, len(source)), np.bool_)
        going = np.ones(len(source), np.bool_)
        for taken in range(MOST_HOPS + 1):
            to = destination[pair]
            c = self.walks.all_egress[to, at]
            ended = going & (c < 0)
            outcome = np.where(c == DELIVER, np.where(at == to, taken, MISDELIVERED), LOST)
            hops = np.where(ended, outcome, hops).astype(np.int16)
            going &= ~ended
            if carried:
                given_up = going & (self.released[at, c] == to)
                hops[given_up] = taken
                going &= ~given_up
            if taken == MOST_HOPS or not going.any():
                break
            row, hop = self._choices(at, place, c, going, first)
            go = going[row]
            link = np.where(hop >= 0, self.link[hop], DROP)
            pair, at, hops = pair[row], at[row], hops[row]
            part = part[row] * np.where(link >= 0, self.part[hop], 1)
            arcs, marked = arcs[:, row], marked[:, row]
            hops[go & (link < 0)] = LOST
            going = go & (link >= 0)
            arc = np.where(going, at * links + link, -1).astype(np.int32)
            if p.every_hop:
                going &= ~(arcs == arc).any(axis=0)
                arc[~going] = -1
            tag = going & self.marked[hop]
            arcs, marked = np.concatenate((arcs, arc[None])), np.concatenate((marked, tag[None]))
            place = np.where(going, p.far_link[at, link], 0) + np.where(tag, 1 + links, 0)
            at = np.where(going, p.far[at, link], at)
        return HostPaths(pair, part, hops, at, arcs, marked)

    def _choices(
        self,
        at: Numbers,
        place: Numbers,
        c: NDArray[np.int16],
        going: NDArray[np.bool_],
        first: bool,
    ) -> tuple[Numbers, Numbers]:
        """The next hops of some paths.

        Args:
            at: int64[n], the switch of each path.
            place: int64[n], its ingress place.
            c: int16[n], its egress class.
            going: bool[n], whether it goes on; a path that has ended stays as it is.
            first: whether only the first next hop is taken.

        Returns:
            int64[m] twice: the path that each longer path continues, ascending; and its next hop, a
            place in `link`; -1 where there is none.
        """
        classes = self.program.order.shape[1]
        places = (len(self.begins) - 1) // (len(self.program.far) * classes)
        state = np.where(going, (at * places + place) * classes + c, 0)
        begin, count = self.begins[state], self.begins[state + 1] - self.begins[state]
        times = np.where(going & (not first), np.maximum(count, 1), 1)
        row = np.repeat(np.arange(len(at)), times)
        nth = np.arange(len(row)) - np.repeat(np.cumsum(times) - times, times)
        return row, np.where(going[row] & (count[row] > 0), begin[row] + nth, -1)


def _states_of_a_switch(p: Program) -> int:
    """How many states a switch has: an ingress place and an egress class each."""
    links, classes = int(p.far.shape[1]), int(p.order.shape[1])
    return (1 + links * (2 if marks(p) else 1)) * classes


def _hops_of_switches(
    walks: Walks,
    p: Program,
    dead: Numbers,
    next_of: Callable[[Program, Numbers, Numbers], tuple[Numbers, Numbers]],
    switches: slice,
) -> tuple[Numbers, NDArray[np.int16], NDArray[np.bool_], NDArray[np.float64]]:
    """Ask the rule for the states of some switches.

    Args:
        walks: of the build.
        p: what its switches hold.
        dead: int64[n], the failed elements.
        next_of: `next_of_packets`, or its machine code.
        switches: the switches.

    Returns:
        How many next hops each state has, and of these the fields `link`, `marked` and `part` of
        `TabulatedHops`.
    """
    links, classes = p.far.shape[1], p.order.shape[1]
    place = np.arange(_states_of_a_switch(p) // classes)
    is_marked = place > links
    ingress = np.where(place == links, HOST, np.where(is_marked, (place - 1) % links, place))
    exists = (p.far[switches][:, np.maximum(ingress, 0)] >= 0) | (ingress == HOST)
    state = np.nonzero(exists[..., None] & np.ones(classes, bool))
    s, at, c = state[0] + switches.start, state[1], state[2]
    packets = np.stack((s, ingress[at], np.where(is_marked[at], MARKED, PLAIN), c), axis=1)
    down = np.ascontiguousarray(np.broadcast_to(dead, (len(s), len(dead))))
    number, hops = next_of(p, packets, down)
    count = np.zeros((*exists.shape, classes), np.int64)
    count[state] = number
    part = _parts(walks, p, packets, number, hops)
    return count.ravel(), hops[:, 0].astype(np.int16), hops[:, 1] == MARKED, part


def _parts(
    walks: Walks,
    p: Program,
    packets: Numbers,
    number: Numbers,
    hops: Numbers,
) -> NDArray[np.float64]:
    """The part of a state's packets that takes each of its next hops.

    Packets of hosts are divided by the weights of their class. In transit, and everywhere where
    paths are shared at every hop, all next hops have equal parts.

    Args:
        walks: of the build, which has the weights.
        p: what switches hold.
        packets: int64[n, 4], switch, ingress link, tag and egress class of each state.
        number: int64[n], how many next hops each state has.
        hops: int64[m, 2], link and tag of each next hop.
    """
    state = np.repeat(np.arange(len(packets)), number)
    link, marked = hops[:, 0], hops[:, 1] == MARKED
    part = np.ones(len(link))
    if not p.every_hop:
        weight = np.asarray(walks.build.tables.classes.weight)
        host = np.flatnonzero(packets[state, 1] == HOST)
        row = packets[state[host], 0], packets[state[host], 3]
        # bool[m, 1 + A], the share with this link; a link may be minimal and, marked, an alternate.
        share = p.shares[row] == link[host, None]
        share &= ((np.arange(share.shape[1]) > 0) & marks(p)) == marked[host, None]
        part[host] = weight[row][np.arange(len(host)), share.argmax(axis=1)]
        part[host[~share.any(axis=1)]] = 0
    total = np.bincount(state, part, len(packets))[state]
    equal: NDArray[np.float64] = 1 / number[state]
    return np.divide(part, total, out=equal, where=total > 0)


def _released(walks: Walks, p: Program, dead: Numbers) -> NDArray[np.int32]:
    """int32[S, C], of `TabulatedHops.released`, while some elements are down."""
    switches, classes, _ = p.order.shape
    released = np.full((switches, classes), -1, np.int32)
    if walks.build.forwarding.intermediates and len(dead):
        down = np.isin(p.cable, dead) | (np.isin(p.far, dead - p.cables) & (p.far >= 0))
        at = np.flatnonzero(down.any(axis=1))
        for place, c in np.argwhere(p.order[at, :, 0] >= 0).tolist():
            switch = int(at[place])
            via = int(p.far[switch, p.order[switch, c, 0]])
            if via >= 0 and gives_up(p, switch, via, c, dead):
                released[switch, c] = via
    return released
