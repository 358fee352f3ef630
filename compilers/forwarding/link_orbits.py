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
from compilers.forwarding.rule import Array, Program, spreads
from compilers.topology.families import family_named
from compilers.topology.labelled_graph import Topology

Numbers = NDArray[np.int64]
CELLS = 1 << 20
"""Destinations, times links, that are in memory together."""
SAME = 1e-12
"""The difference of shares that are the same."""


def unlike_arcs(topology: Topology, crossings: LinkCrossings) -> Numbers:
    """int64[n]: the numbers of arcs of which no two are alike, and all others are like one."""
    return np.unique(like_arcs(topology, crossings))


def like_arcs(topology: Topology, crossings: LinkCrossings) -> Numbers:
    """int64[arcs]: for each arc the first of those that are like it."""
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
    return group


def _joined(group: Numbers, onto: Numbers) -> Numbers:
    """Groups of which those of arcs and of what these move to are one."""
    while True:
        least = np.minimum(group, group[onto])
        np.minimum.at(least, onto, group)
        if (least == group).all():
            return group
        group = least[least]


class Ingress(NamedTuple):
    """How packets of hosts come to the switches behind their first links, and on from there."""

    crossings: LinkCrossings
    """The tables."""
    behind: Numbers
    """int64[S·K], for link k of switch s, at s·K + k, the place of the same link at its far end."""
    there: NDArray[np.bool_]
    """bool[S·K], whether there is such a link."""

    @classmethod
    def of(cls, crossings: LinkCrossings) -> Ingress:
        """Turn links round."""
        p = crossings.program
        there = (p.far >= 0).ravel()
        behind = np.where(there, p.far.ravel().astype(np.int64) * p.far.shape[1], 0)
        return cls(crossings, behind + np.where(there, p.far_link.ravel(), 0), there)

    def behind_links(self, leaves: NDArray[np.bool_]) -> NDArray[np.bool_]:
        """bool[n, S, K], the ingress links by which packets come that leave by some links."""
        came = leaves.reshape(len(leaves), -1)[:, self.behind] & self.there
        return came.reshape(leaves.shape)

    def of_hosts(self, egress: Array) -> NDArray[np.bool_]:
        """bool[n, S, K]: the ingress links by which hosts' packets come without a mark.

        Args:
            egress: int16[n, S], the classes for n destinations.
        """
        p, out = self.crossings.program, self.crossings.out
        sends, s = (egress >= 0)[..., None], np.arange(len(p.far))
        leaves = (out.host[s, egress] > 0) & sends
        if not len(out.marked):
            return self.behind_links(leaves)
        spread = np.array([spreads(p, c) for c in range(out.host.shape[1])] + [False])
        # A negative class, which is the last place, leads to no switch that spreads.
        spreads_there = np.where(egress >= 0, spread[egress], False)[:, p.far]
        marked = (out.marked[s, egress] > 0) & sends & spreads_there
        plain = leaves & (~marked | (out.host[s, egress] > out.marked[s, egress]))
        onward = self.behind_links(marked).transpose(1, 0, 2).astype(np.float32)
        onward = onward @ p.onward.astype(np.float32)
        return self.behind_links(plain | (onward.transpose(1, 0, 2) > 0))


def states_met(crossings: LinkCrossings) -> NDArray[np.bool_]:
    """bool[S, C, K]: the switches, classes and ingress links that packets in transit meet."""
    egress, ingress = crossings.towards.egress, Ingress.of(crossings)
    met = np.zeros(crossings.hops.transit.shape[:3], np.bool_)
    step = max(1, CELLS // crossings.program.far.size)
    for begin in range(0, len(egress), step):
        some = egress[begin : begin + step]
        comes = ingress.of_hosts(some)
        seen = np.zeros(comes.shape, np.bool_)
        while comes.any():
            seen |= comes
            comes = ingress.behind_links(_leaving(crossings, comes, some, met)) & ~seen
    return met


def _leaving(
    crossings: LinkCrossings, comes: NDArray[np.bool_], egress: Array, met: NDArray[np.bool_]
) -> NDArray[np.bool_]:
    """bool[n, S, K]: the links by which packets for n destinations leave in transit.

    Args:
        crossings: the tables.
        comes: bool[n, S, K], the ingress links by which they come.
        egress: int16[n, S], the classes for the destinations.
        met: bool[S, C, K], written: where these packets are.
    """
    _, switches, links = comes.shape
    place = np.flatnonzero(comes)
    row = place // links
    c = egress.ravel()[row]
    place, row, c = place[c >= 0], row[c >= 0], c[c >= 0]
    transit, leaves = crossings.hops.transit, np.zeros(comes.shape, np.bool_)
    state = (row % switches * transit.shape[1] + c) * links + place % links
    met.ravel()[state] = True
    for link in transit.reshape(-1, transit.shape[3])[state].T:
        leaves.reshape(-1, links)[row[link >= 0], link[link >= 0]] = True
    return leaves


class Kept:
    """Whether tables follow maps. Packets are followed once a map asks for it."""

    def __init__(self, crossings: LinkCrossings) -> None:
        self.crossings = crossings
        self.met = np.ones(crossings.hops.transit.shape[:3], np.bool_)

    def by(self, moved: Moved) -> bool:
        """Whether all that packets can meet moves along with a map."""
        if not moved.keeps_hosts(self.crossings):
            return False
        if moved.keeps_transit(self.crossings, self.met):
            return True
        if not self.met.all():
            return False
        self.met = states_met(self.crossings)
        return moved.keeps_transit(self.crossings, self.met)


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

    def keeps_transit(self, crossings: LinkCrossings, met: NDArray[np.bool_]) -> bool:
        """Whether packets in transit leave as those do where they move to.

        Args:
            crossings: the tables.
            met: bool[S, C, K], the switches, classes and ingress links that count.
        """
        met = met & (self.link >= 0)[:, None]
        if met[self.number < 0].any():
            return False
        s, c, came = np.nonzero(met)
        transit, vertex = crossings.hops.transit, self.vertex[s]
        by = np.where(transit[s, c, came] >= 0, self.link[s[:, None], transit[s, c, came]], -1)
        moved = np.maximum(transit[vertex, self.number[s, c], self.link[s, came]], -1)
        return bool((np.sort(by, axis=1) == np.sort(moved, axis=1)).all())
