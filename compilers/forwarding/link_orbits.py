"""Links that are alike: symmetries of the tables move one to the other, and what crosses it.

A family names maps of its graph onto itself. The tables need not follow them: a repair port may be
the first of several. So every map is checked against the tables of the build: a packet that leaves
a switch has to leave the switch that this one moves to over the link that its link moves to, in the
same share. Only what packets can meet counts, where the rest of the tables does not move along.
What the worst traffic loads a link with is then the same for all links that the maps move to each
other, and one of them is looked at.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from compilers.forwarding.link_crossings import LinkCrossings
from compilers.forwarding.link_shares import LinkShares
from compilers.forwarding.machine_code import for_packets, loop
from compilers.forwarding.rule import Array, Program, spreads
from compilers.topology.families import family_named
from compilers.topology.labelled_graph import Topology

Numbers = NDArray[np.int64]
SAME = 1e-12
"""The difference of shares that are the same."""


def unlike_arcs(topology: Topology, crossings: LinkCrossings) -> Numbers:
    """int64[n]: the numbers of arcs of which no two are alike, and all others are like one."""
    family, arcs = family_named(topology.family), crossings.arcs
    maps = [] if family is None else family.symmetries(topology)
    group, (s, k) = np.arange(len(arcs)), arcs.T
    number = np.full(crossings.program.far.shape, -1)
    number[s, k] = group
    kept = Kept(crossings)
    for vertex in maps:
        if len(vertex) != len(number):
            break
        moved = Moved.of(crossings, vertex.astype(np.int64))
        if moved is None:
            continue
        joined = _joined(group, number[vertex[s], moved.link[s, k]])
        if (joined != group).any() and kept.by(moved):
            group = joined
    return np.unique(group)


def _joined(group: Numbers, onto: Numbers) -> Numbers:
    """Groups of which those of arcs and of what these move to are one."""
    while True:
        least = np.minimum(group, group[onto])
        np.minimum.at(least, onto, group)
        if (least == group).all():
            return group
        group = least[least]


class Met(NamedTuple):
    """The states that packets to one destination were followed to, and those to go on from."""

    seen: Array
    """bool[S, K], the ingress links by which they come to each switch."""
    switch: Array
    """int64[S·K], the switches of states to go on from."""
    came: Array
    """int64[S·K], the ingress links of these."""
    waiting: Array
    """int64[1], how many these are."""


@loop
def arrive(p: Program, s: int, link: int, met: Met) -> None:
    """Note that packets leave switch s by a link, and so come to the switch behind it."""
    t, came = p.far[s, link], p.far_link[s, link]
    if not met.seen[t, came]:
        met.seen[t, came] = True
        met.switch[met.waiting[0]], met.came[met.waiting[0]] = t, came
        met.waiting[0] += 1


@loop
def leave_hosts(p: Program, out: LinkShares, egress: Array, d: int, s: int, met: Met) -> None:
    """Follow packets of the hosts of switch s to destination d to where they are in transit."""
    c, links = egress[d, s], p.far.shape[1]
    for k in range(links):
        if out.host[s, c, k] == 0:
            continue
        t, came = p.far[s, k], p.far_link[s, k]
        marked = len(out.marked) > 0 and out.marked[s, c, k] > 0 and spreads(p, egress[d, t])
        if not marked or out.host[s, c, k] > out.marked[s, c, k]:
            arrive(p, s, k, met)
        for onward in range(links if marked else 0):
            if p.onward[t, came, onward]:
                arrive(p, t, onward, met)


@loop
def meet(
    p: Program, out: LinkShares, egress: Array, begins: Array, leaves: Array, states: Array
) -> None:
    """Mark the ingress links by which packets of each class come.

    Args:
        p: what switches hold.
        out: the shares by which packets leave.
        egress: int16[D, S], of the destinations.
        begins: int64[S·C·K + 1]: packets of class c that came to switch s by link i leave by the
            links from begins[(s·C + c)·K + i] to the next.
        leaves: int16[n], these links.
        states: bool[S, C, K], written.
    """
    (ends, switches), (links, classes) = egress.shape, (p.far.shape[1], out.host.shape[1])
    room = switches * links
    seen, waiting = np.zeros((switches, links), np.bool_), np.zeros(1, np.int64)
    met = Met(seen, np.empty(room, np.int64), np.empty(room, np.int64), waiting)
    for d in range(ends):
        seen[:] = False
        for s in range(switches):
            if egress[d, s] >= 0:
                leave_hosts(p, out, egress, d, s, met)
        while waiting[0] > 0:
            waiting[0] -= 1
            s, came = met.switch[waiting[0]], met.came[waiting[0]]
            c = egress[d, s]
            if c < 0:
                continue
            states[s, c, came] = True
            state = (s * classes + c) * links + came
            for e in range(begins[state], begins[state + 1]):
                arrive(p, s, leaves[e], met)


class Transit(NamedTuple):
    """By which links packets in transit leave, by their *state* (s·C + c)·K + i: the switch, the
    class, and the ingress link.
    """

    begins: Numbers
    """int64[S·C·K + 1], where the links of each state begin."""
    leaves: Array
    """int16[n], the links."""
    part: Array
    """float64[n], the share of each."""
    met: Array
    """bool[S·C·K], whether packets are ever in this state."""

    @classmethod
    def of(cls, crossings: LinkCrossings) -> Transit:
        """Sort the entries of shares by states, all of which may be met."""
        p, out = crossings.program, crossings.out
        (switches, links), classes = p.far.shape, out.host.shape[1]
        cell = np.repeat(np.arange(len(out.first) - 1), np.diff(out.first))
        s, k, c = cell // (links * classes), cell // classes % links, cell % classes
        state = (s * classes + c) * links + out.came
        begins = np.zeros(switches * classes * links + 1, np.int64)
        np.cumsum(np.bincount(state, minlength=len(begins) - 1), out=begins[1:])
        order = np.argsort(state, kind="stable")
        met = np.ones(len(begins) - 1, np.bool_)
        return cls(begins, k[order].astype(np.int16), out.part[order], met)

    def followed(self, crossings: LinkCrossings) -> Transit:
        """The same, with the states that packets are followed to."""
        p, out, towards = crossings.program, crossings.out, crossings.towards
        met = np.zeros((*out.host.shape[:2], p.far.shape[1]), np.bool_)
        follow = for_packets(crossings.packets, meet)
        follow(p, out, towards.egress, self.begins, self.leaves, met)
        return self._replace(met=met.ravel())


class Kept:
    """Whether tables follow maps. Packets are followed once a map asks for it."""

    def __init__(self, crossings: LinkCrossings) -> None:
        self.crossings = crossings
        self.transit = Transit.of(crossings)

    def by(self, moved: Moved) -> bool:
        """Whether all that packets can meet moves along with a map."""
        if not moved.keeps_hosts(self.crossings):
            return False
        if moved.keeps_transit(self.transit):
            return True
        if not self.transit.met.all():
            return False
        self.transit = self.transit.followed(self.crossings)
        return moved.keeps_transit(self.transit)


class Moved(NamedTuple):
    """Where a map moves switches, links and classes."""

    vertex: Numbers
    """int64[S], the switch that each moves to."""
    link: Numbers
    """int64[S, K], the link, of that switch, that each link of a switch moves to."""
    number: Numbers
    """int64[S, C], the class, of that switch, that each class moves to; -1 for one that no
    destination has."""

    @classmethod
    def of(cls, crossings: LinkCrossings, vertex: Numbers) -> Moved | None:
        """None where links or classes do not move together."""
        p, egress = crossings.program, crossings.towards.egress
        order = len(p.far)
        place = np.full((order, order), -1)
        there = p.far >= 0
        switch, link = np.nonzero(there)
        place[switch, p.far[switch, link]] = link
        moved = np.where(there, place[vertex[:, None], vertex[p.far]], -1)
        if (moved < 0)[there].any() or len(egress) != order:
            return None
        number = np.full((order, p.order.shape[1]), -1)
        s, after = np.arange(order), egress[vertex][:, vertex]
        known = egress >= 0
        number[np.broadcast_to(s, egress.shape)[known], egress[known]] = after[known]
        expected = np.where(known, number[s, egress], egress)
        return cls(vertex, moved, number) if (expected == after).all() else None

    def keeps_hosts(self, crossings: LinkCrossings) -> bool:
        """Whether packets of hosts, and marked ones, leave by the links that these move to."""
        p, out = crossings.program, crossings.out
        of_hosts = [out.host, *([out.marked] if len(out.marked) else [])]
        s, c = np.nonzero(self.number >= 0)
        there = p.far[s] >= 0
        at, by = self.vertex[s], self.number[s, c]
        columns = np.where(there, self.link[s], 0)
        for share in of_hosts:
            moved = np.where(there, share[at[:, None], by[:, None], columns], 0)
            if not np.allclose(moved, share[s, c], rtol=0, atol=SAME):
                return False
        return not len(out.marked) or self._onward_kept(p, c, by)

    def _onward_kept(self, p: Program, c: Numbers, by: Numbers) -> bool:
        """Whether classes c, which move to `by`, and their onward links are spread alike."""
        spread = np.array([spreads(p, number) for number in range(p.order.shape[1])])
        s, came, k = np.nonzero(p.onward)
        kept = p.onward[self.vertex[s], self.link[s, came], self.link[s, k]]
        return bool(kept.all() and (spread[c] == spread[by]).all())

    def keeps_transit(self, transit: Transit) -> bool:
        """Whether packets in the states that are met leave as those in the states moved to."""
        links = self.link.shape[1]
        state = np.flatnonzero(transit.met)
        s, c, came = state // links // self.number.shape[1], state // links, state % links
        c %= self.number.shape[1]
        at = self.vertex[s] * self.number.shape[1] + self.number[s, c]
        moved = at * links + self.link[s, came]
        count, after = np.diff(transit.begins)[[state, moved]]
        if (self.number[s, c] < 0).any() or (count != after).any():
            return False
        for number in range(int(count.max(initial=0))):
            some = count > number
            one = transit.begins[state[some]] + number
            link = self.link[s[some], transit.leaves[one]]
            first, found = transit.begins[moved[some]], np.zeros(len(one), np.bool_)
            for place in range(int(count.max())):
                other = first + np.minimum(place, count[some] - 1)
                same = np.abs(transit.part[one] - transit.part[other]) <= SAME
                found |= (transit.leaves[other] == link) & same
            if not found.all():
                return False
        return True
