"""All paths of hosts' packets while anything is down, by next hops that are tabulated once.

A next hop depends on the switch, the ingress link, the tag and the egress class, not on the packet.
So the rule is asked once for each of these, and all packets are then moved a link at a time.
"""

from __future__ import annotations

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
"""Packets that take as long to follow as one state to tabulate."""
STATES_AT_ONCE = 1 << 18


@dataclass(frozen=True, slots=True, eq=False)
class HostPaths:
    """m paths that packets of hosts may take, those of a pair of switches one after the other.

    pair: int64[m], ascending. part: float64[m], of the pair's packets. hops: int16[m], links, or a
    fault, of `FAULTS`. end: int64[m], the last switch. arcs: int32[H, m], the
    links that it leaves by, s·K + k; -1 where it has none. marked: bool[H, m], whether it leaves
    marked.
    """

    pair: Numbers
    part: NDArray[np.float64]
    hops: NDArray[np.int16]
    end: Numbers
    arcs: NDArray[np.int32]
    marked: NDArray[np.bool_]


@dataclass(frozen=True, eq=False)
class TabulatedHops:
    """The next hops of packets in every state: switch, ingress place, class, counted in this order.

    The ingress places of a switch are its K links, and HOST; where packets are marked then its
    links for marked packets, to destinations of the first side and to those of the second.

    walks: of the build. program: of its switches, as they are cabled now. begins: int64[states +
    1], where the next hops of each state begin in these: link, int16[m], or DROP; marked, bool[m],
    whether a packet leaves marked; part, float64[m], of the packets. released: of each switch and
    class the intermediate whose packets end their first leg here, as the link to it is down.
    """

    walks: Walks
    program: Program
    begins: Numbers
    link: NDArray[np.int16]
    marked: NDArray[np.bool_]
    part: NDArray[np.float64]
    released: NDArray[np.int32]

    @classmethod
    def of(cls, walks: Walks, program: Program, dead: Numbers) -> TabulatedHops:
        """Ask the rule for every state while these elements are down."""
        p, (switches, classes, _), links = program, program.order.shape, program.far.shape[1]
        weight = np.asarray(walks.build.tables.classes.weight)
        place = np.arange(1 + links * (2 if marks(p) else 1))
        came_marked = place > links
        came = np.where(place == links, HOST, np.where(came_marked, (place - 1) % links, place))
        count = np.zeros((switches, len(place), classes), np.int64)
        next_of = for_packets(count.size // STATES_A_CALL, next_of_packets)
        step = max(1, STATES_AT_ONCE // (len(place) * classes))
        found = []
        for first in range(0, switches, step):
            there = (p.far[first : first + step, np.maximum(came, 0)] >= 0) | (came == HOST)
            s, at, c = (x.ravel() for x in np.nonzero(there[..., None] & np.ones(classes, bool)))
            s += first
            tag = np.where(came_marked[at], MARKED, PLAIN)
            packets = np.stack((s, came[at], tag, c), axis=1)
            down = np.broadcast_to(dead, (len(s), len(dead)))
            number, onward = next_of(p, packets, np.ascontiguousarray(down))
            count[s, at, c] = number
            state = np.repeat(np.arange(len(s)), number)
            link, marked = onward[:, 0], onward[:, 1] == MARKED
            part = np.ones(len(link))
            if not p.every_hop:  # by the weights of their class's shares
                host = np.flatnonzero(came[at[state]] == HOST)
                rows = s[state[host]], c[state[host]]
                own = p.shares[rows] == link[host, None]
                own &= ((np.arange(own.shape[1]) > 0) & marks(p)) == marked[host, None]
                part[host] = weight[rows][np.arange(len(host)), own.argmax(axis=1)]
                part[host[~own.any(axis=1)]] = 0
            total = np.bincount(state, part, len(s))[state]
            part = np.divide(part, total, out=1 / number[state], where=total > 0)
            found.append((link.astype(np.int16), marked, part))
        begins = np.append(0, np.cumsum(count.ravel()))
        released = np.full((switches, classes), -1, np.int32)
        if walks.build.forwarding.intermediates and len(dead):
            for switch, row in np.argwhere(p.order[..., 0] >= 0).tolist():
                via = int(p.far[switch, p.order[switch, row, 0]])
                if via >= 0 and gives_up(p, switch, via, row, dead):
                    released[switch, row] = via
        link, marked, part = (np.concatenate(each) for each in zip(*found, strict=True))
        return cls(walks, program, begins, link, marked, part, released)

    @property
    def width(self) -> int:
        """About how many paths a pair has."""
        p = self.program
        several = p.shares.shape[2] * (p.far.shape[1] if marks(p) or p.every_hop else 1)
        return len(p.far) if self.walks.build.forwarding.intermediates else several

    def first_paths(self, source: Numbers, destination: Numbers) -> HostPaths:
        """From each pair of switches the path of the first links, which is over no intermediate."""
        return self._moved(source, destination, first=True)

    def paths(self, source: Numbers, destination: Numbers) -> HostPaths:
        """All paths from switches to others, int64[n] each, that of `first_paths` first."""
        if not self.walks.build.forwarding.intermediates:
            return self._moved(source, destination)
        vias = intermediates(self.walks.build)
        own = np.argsort(vias != source[:, None], axis=1, kind="stable")
        first, then = self.legs
        leg = (source[:, None] * len(vias) + own).ravel()
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
        """From every switch to every intermediate, and from every switch to every other."""
        every, vias = np.arange(len(self.program.far)), intermediates(self.walks.build)
        first = self._moved(np.repeat(every, len(vias)), np.tile(vias, len(every)), carried=True)
        then = self._moved(np.repeat(every, len(every)), np.tile(every, len(every)))
        return first, then

    def hops_over(self) -> tuple[NDArray[np.int16], NDArray[np.int16]]:
        """int16[S, S] twice: the fewest and the most links over whatever intermediate.

        A fault is fewer than any number of links.
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
        """int64[arcs] twice: the fewest and the most packets over whatever intermediates.

        packets: int64[S, S], from and to each switch.
        """
        first, then = self.legs
        switches, arcs = len(packets), self.program.far.size
        (ends, *legs) = (
            np.ascontiguousarray(x.T.reshape(switches, -1, *x.shape[:-1]), np.int32)
            for x in (np.where(first.hops < 0, -1, first.end), first.arcs, then.arcs)
        )
        least, most = np.zeros((2, arcs), np.int64)
        add = for_packets(int(np.count_nonzero(packets)) * ends.shape[1], bounds_over)
        add(legs[0], ends, legs[1], packets, least, most)
        return least, most

    def _moved(
        self,
        source: Numbers,
        destination: Numbers,
        *,
        carried: bool = False,
        first: bool = False,
    ) -> HostPaths:
        """Move packets of hosts to their ends; those that come by a link again go round for ever.

        carried: to intermediates, or to where these are given up. first: by the first links alone.
        """
        p, classes = self.program, self.program.order.shape[1]
        links = p.far.shape[1]
        places = (len(self.begins) - 1) // (len(p.far) * classes)
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
            faults = np.where(c == DELIVER, np.where(at == to, taken, MISDELIVERED), LOST)
            hops = np.where(ended, faults, hops).astype(np.int16)
            going &= ~ended
            if carried:
                given_up = going & (self.released[at, c] == to)
                hops[given_up] = taken
                going &= ~given_up
            if taken == MOST_HOPS or not going.any():
                break
            state = np.where(going, (at * places + place) * classes + c, 0)
            begin, count = self.begins[state], self.begins[state + 1] - self.begins[state]
            times = np.where(going & (not first), np.maximum(count, 1), 1)
            row = np.repeat(np.arange(len(pair)), times)
            nth = np.arange(len(row)) - np.repeat(np.cumsum(times) - times, times)
            go = going[row]
            hop = np.where(go & (count[row] > 0), begin[row] + nth, 0)
            link = np.where(go & (count[row] > 0), self.link[hop], DROP)
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
            place = np.where(going, p.far_link[at, link], 0) + tag * (1 + links)
            at = np.where(going, p.far[at, link], at)
        return HostPaths(pair, part, hops, at, arcs, marked)
