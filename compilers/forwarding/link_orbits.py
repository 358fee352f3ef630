"""Orbits of links under the automorphisms of a graph that the tables of a build have, too.

What comes in are automorphisms of the graph, which its family names, and the tables of a build.
What goes out is the orbit of each link: the links that automorphisms map to it. The worst traffic
loads all links of an orbit equally, so that one representative of each orbit is enough for a
guarantee. `compilers.evaluation` calls `orbit_of_arc` and `orbit_representatives`.

The tables need not have an automorphism of the graph: a repair port may be the first of several. So
every automorphism is checked against the tables. If packets of a class leave a switch over a link,
then packets of the image class have to leave the image of the switch over the image of the link, in
the same share. Packets in transit are checked in all states, or else in those that occur. (A
*state* is a switch, an egress class and an ingress link.)

The *host links* of a class are those by which packets of hosts leave their switch. Where the
balance marks packets (`rule`), some leave with a mark: by the *marked links* of the class. The next
switch takes the mark off and spreads these packets over *onward links*, which depend on the ingress
link and not on the class. So their transit begins a switch later than that of plain packets. A link
may be both a plain and a marked one.

Letters in the loops: p the program, s a switch, k a link, c an egress class. An *arc* is a switch
and one of its links.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from compilers.forwarding.link_crossings import LinkCrossings
from compilers.forwarding.link_shares import EQUAL_SHARES
from compilers.forwarding.rule import Array, Program, spreads
from compilers.topology.families import family_named
from compilers.topology.labelled_graph import Topology

Numbers = NDArray[np.int64]
CELLS_AT_ONCE = 1 << 20
"""The most pairs of a destination and a link that are in memory together."""


def orbit_representatives(topology: Topology, crossings: LinkCrossings) -> Numbers:
    """int64[n]: the first arc of each orbit, by its row in `crossings.arcs`."""
    return np.unique(orbit_of_arc(topology, crossings))


def orbit_of_arc(topology: Topology, crossings: LinkCrossings) -> Numbers:
    """int64[arcs]: the orbit of each arc, named by its first arc, a row of `crossings.arcs`.

    Args:
        topology: its family names automorphisms of the graph.
        crossings: the tables.
    """
    family, arcs = family_named(topology.family), crossings.arcs
    automorphisms = [] if family is None else family.symmetries(topology)
    orbit, (s, k) = np.arange(len(arcs)), arcs.T
    # int64[S, K], the row of each switch and link in `arcs`.
    arc_at = np.full(crossings.program.far.shape, -1)
    arc_at[s, k] = orbit
    check = SymmetryCheck(crossings)
    for image_of_vertex in automorphisms:
        if len(image_of_vertex) != len(arc_at):
            break  # they are of a whole graph, which has another number of vertices
        moved = MovedTables.of(crossings, image_of_vertex.astype(np.int64))
        if moved is None:
            continue
        joined = _join_orbits(orbit, arc_at[moved.switch[s], moved.link[s, k]])
        if (joined != orbit).any() and check.holds_for(moved):
            orbit = joined
    return orbit


def _join_orbits(orbit: Numbers, image: Numbers) -> Numbers:
    """Join the orbit of each arc with the orbit of its image.

    For example, four arcs with the orbits (0, 1, 2, 3) and the images (1, 0, 3, 2) get the orbits
    (0, 0, 2, 2).

    Args:
        orbit: int64[arcs], the orbit of each arc, named by its first arc.
        image: int64[arcs], the image of each arc.
    """
    while True:
        # An arc and its image take the smaller of their two names; then each arc takes the name
        # that the arc it is named by has by now. This is repeated until no name changes.
        first_arc = np.minimum(orbit, orbit[image])
        np.minimum.at(first_arc, image, orbit)
        if (first_arc == orbit).all():
            return orbit
        orbit = first_arc[first_arc]


class IngressLinks(NamedTuple):
    """Turns links by which packets leave switches into the ingress links of the next switches."""

    crossings: LinkCrossings
    """The tables."""
    far_arc: Numbers
    """int64[S·K], for link k of switch s, at index s·K + k, the index of the same link at its far
    end."""
    exists: NDArray[np.bool_]
    """bool[S·K], whether there is such a link."""

    @classmethod
    def of(cls, crossings: LinkCrossings) -> IngressLinks:
        """Look up the far end of every link."""
        p = crossings.program
        exists = (p.far >= 0).ravel()
        first_arc = np.where(exists, p.far.ravel().astype(np.int64) * p.far.shape[1], 0)
        return cls(crossings, first_arc + np.where(exists, p.far_link.ravel(), 0), exists)

    def after_links(self, leaves: NDArray[np.bool_]) -> NDArray[np.bool_]:
        """bool[n, S, K]: the ingress links of packets that leave by some links, bool[n, S, K]."""
        ingress = leaves.reshape(len(leaves), -1)[:, self.far_arc] & self.exists
        return ingress.reshape(leaves.shape)

    def of_hosts(self, egress: Array) -> NDArray[np.bool_]:
        """bool[n, S, K]: the ingress links by which hosts' packets come to the rule of transit.

        These are the ingress links at the next switch; for marked packets, which lose their mark
        there, those at the switch after it.

        Args:
            egress: int16[n, S], the classes for n destinations.
        """
        shares, s = self.crossings.leaving, np.arange(egress.shape[1])
        has_class = (egress >= 0)[..., None]
        host_share = shares.host_share[s, egress]
        host_links = (host_share > 0) & has_class
        if not len(shares.marked_share):
            return self.after_links(host_links)
        marked_share = shares.marked_share[s, egress]
        marked_links = (marked_share > 0) & has_class & self._next_switch_spreads(egress)
        # If only a part of the packets of a link is marked, the others are plain.
        plain_links = host_links & (~marked_links | (host_share > marked_share))
        return self.after_links(plain_links | self._onward_links(marked_links))

    def _next_switch_spreads(self, egress: Array) -> NDArray[np.bool_]:
        """bool[n, S, K]: whether the switch behind a link spreads marked packets.

        It does not spread those to a neighbour of its own: it forwards them like plain packets.

        Args:
            egress: int16[n, S], the classes for n destinations.
        """
        p = self.crossings.program
        spreads_here = (egress >= 0) & _spread_classes(p)[np.maximum(egress, 0)]
        return spreads_here[:, p.far]

    def _onward_links(self, marked_links: NDArray[np.bool_]) -> NDArray[np.bool_]:
        """bool[n, S, K]: the links over which the next switches spread marked packets.

        Args:
            marked_links: bool[n, S, K], the links by which the packets leave the first switches.
        """
        # A product of matrices for each switch: [n, K] by ingress link times [K, K] from ingress
        # links to onward links counts the ingress links whose packets leave by a link.
        ingress = self.after_links(marked_links).transpose(1, 0, 2).astype(np.float32)
        counts = ingress @ self.crossings.program.onward.astype(np.float32)
        return counts.transpose(1, 0, 2) > 0


def occurring_states(crossings: LinkCrossings) -> NDArray[np.bool_]:
    """bool[S, C, K]: the states of packets in transit, by switch, class and ingress link.

    Packets to all destinations of a block are followed at once, a link a round.
    """
    egress, ingress = crossings.destinations.egress_class, IngressLinks.of(crossings)
    occurs = np.zeros(crossings.next_hops.transit_links.shape[:3], np.bool_)
    step = max(1, CELLS_AT_ONCE // crossings.program.far.size)
    for begin in range(0, len(egress), step):
        block = egress[begin : begin + step]
        is_ingress = ingress.of_hosts(block)
        visited = np.zeros(is_ingress.shape, np.bool_)
        while is_ingress.any():
            visited |= is_ingress
            leaves = _leaving(crossings, is_ingress, block, occurs)
            is_ingress = ingress.after_links(leaves) & ~visited
    return occurs


def _leaving(
    crossings: LinkCrossings,
    is_ingress: NDArray[np.bool_],
    egress: Array,
    occurs: NDArray[np.bool_],
) -> NDArray[np.bool_]:
    """bool[n, S, K]: the links by which packets for n destinations leave in transit.

    Args:
        crossings: the tables.
        is_ingress: bool[n, S, K], their ingress links.
        egress: int16[n, S], the classes for the destinations.
        occurs: bool[S, C, K], written: True for the states of these packets.
    """
    _, switches, most_links = is_ingress.shape
    # Flat indices are quicker than three arrays of indices. A row is a destination and a switch; a
    # cell is a row and an ingress link; a state is a switch, a class and an ingress link.
    cell = np.flatnonzero(is_ingress)
    row, ingress = np.divmod(cell, most_links)
    c = egress.ravel()[row]
    is_forwarded = c >= 0
    row, ingress, c = row[is_forwarded], ingress[is_forwarded], c[is_forwarded]
    s = row % switches
    transit = crossings.next_hops.transit_links
    state = (s * transit.shape[1] + c) * most_links + ingress
    occurs.ravel()[state] = True
    leaves = np.zeros(is_ingress.shape, np.bool_)
    leaves_of_row = leaves.reshape(-1, most_links)  # a view
    for link in transit.reshape(-1, transit.shape[3])[state].T:  # the i-th next link of each state
        exists = link >= 0
        leaves_of_row[row[exists], link[exists]] = True
    return leaves


def _spread_classes(p: Program) -> NDArray[np.bool_]:
    """bool[C], the classes whose marked packets a switch spreads."""
    return np.array([spreads(p, c) for c in range(p.order.shape[1])])


class SymmetryCheck:
    """Checks whether tables have automorphisms of the graph.

    At first all states are compared. Only if some state differs are packets followed, to find the
    states that occur (`occurring_states`).
    """

    def __init__(self, crossings: LinkCrossings) -> None:
        self.crossings = crossings
        """The tables."""
        self.compared = np.ones(crossings.next_hops.transit_links.shape[:3], np.bool_)
        """bool[S, C, K]: the states that are compared: at first all, then those that occur."""

    def holds_for(self, moved: MovedTables) -> bool:
        """Whether the tables have an automorphism in all states that packets can meet."""
        if not moved.keeps_hosts(self.crossings):
            return False
        if moved.keeps_transit(self.crossings, self.compared):
            return True
        if not self.compared.all():
            return False
        self.compared = occurring_states(self.crossings)
        return moved.keeps_transit(self.crossings, self.compared)


class MovedTables(NamedTuple):
    """The images of switches, links and classes under an automorphism of the graph."""

    switch: Numbers
    """int64[S], the image of each switch."""
    link: Numbers
    """int64[S, K], the image of each link, as a link of the image of its switch."""
    egress_class: Numbers
    """int64[S, C], the image of each class, as a class of the image of its switch; -1 for a class
    of no destination."""

    @classmethod
    def of(cls, crossings: LinkCrossings, image_of_vertex: Numbers) -> MovedTables | None:
        """The images under an automorphism; None if the tables do not have it.

        They do not have it if a link has no image, if a switch has no hosts, or if the images of a
        class's destinations are in different classes.

        Args:
            crossings: the tables.
            image_of_vertex: int64[S], the image of each vertex.
        """
        image_link = _image_of_links(crossings.program, image_of_vertex)
        if image_link is None:
            return None
        image_class = _image_of_classes(crossings, image_of_vertex)
        if image_class is None:
            return None
        return cls(image_of_vertex, image_link, image_class)

    def keeps_hosts(self, crossings: LinkCrossings) -> bool:
        """Whether hosts' packets, marked or not, leave a switch's image by the image links."""
        p, shares = crossings.program, crossings.leaving
        share_tables = (
            [shares.host_share, shares.marked_share]
            if len(shares.marked_share)
            else [shares.host_share]
        )
        s, c = np.nonzero(self.egress_class >= 0)
        exists = p.far[s] >= 0
        image_switch, image_class = self.switch[s], self.egress_class[s, c]
        image_link = np.where(exists, self.link[s], 0)
        for share in share_tables:
            of_image = share[image_switch[:, None], image_class[:, None], image_link]
            if not np.allclose(
                np.where(exists, of_image, 0), share[s, c], rtol=0, atol=EQUAL_SHARES
            ):
                return False
        return not len(shares.marked_share) or self._keeps_onward(p, c, image_class)

    def _keeps_onward(self, p: Program, c: Numbers, image_class: Numbers) -> bool:
        """Whether marked packets are spread at the image of a switch as at the switch.

        Args:
            p: the program.
            c: int64[n], classes.
            image_class: int64[n], the image of each class.
        """
        is_spread = _spread_classes(p)
        s, ingress, k = np.nonzero(p.onward)
        onward_of_image = p.onward[self.switch[s], self.link[s, ingress], self.link[s, k]]
        return bool(onward_of_image.all() and (is_spread[c] == is_spread[image_class]).all())

    def keeps_transit(self, crossings: LinkCrossings, compared: NDArray[np.bool_]) -> bool:
        """Whether packets in transit leave the image of a switch by the images of their links.

        Args:
            crossings: the tables.
            compared: bool[S, C, K], the states that are compared.
        """
        compared = compared & (self.link >= 0)[:, None]
        # A class of no destination has no image, so its states cannot be compared.
        if compared[self.egress_class < 0].any():
            return False
        s, c, ingress = np.nonzero(compared)
        transit = crossings.next_hops.transit_links
        next_links = transit[s, c, ingress]  # int16[n, M], those of each state
        images = np.where(next_links >= 0, self.link[s[:, None], next_links], -1)
        links_of_image = transit[self.switch[s], self.egress_class[s, c], self.link[s, ingress]]
        links_of_image = np.maximum(links_of_image, -1)  # DROP and the like count as no link
        # Their order does not matter, as packets are shared equally.
        return bool((np.sort(images, axis=1) == np.sort(links_of_image, axis=1)).all())


def _image_of_links(p: Program, image_of_vertex: Numbers) -> Numbers | None:
    """int64[S, K], the image of each link (`MovedTables.link`); None if a link has no image.

    The link from switch s to switch t has as its image the link from the image of s to that of t.
    """
    switches = len(p.far)
    exists = p.far >= 0
    s, k = np.nonzero(exists)
    link_between = np.full((switches, switches), -1)  # by two switches, the link of the first
    link_between[s, p.far[s, k]] = k
    between_images = link_between[image_of_vertex[:, None], image_of_vertex[p.far]]
    if (between_images < 0)[exists].any():
        return None
    return np.where(exists, between_images, -1)


def _image_of_classes(crossings: LinkCrossings, image_of_vertex: Numbers) -> Numbers | None:
    """int64[S, C], the image of each class (`MovedTables.egress_class`).

    None if the destinations of a class do not agree on it, or if a switch has no hosts.
    """
    egress = crossings.destinations.egress_class
    switches = len(image_of_vertex)
    if len(egress) != switches:
        return None  # row d of `egress` is destination d only if every switch has hosts
    # int16[D, S], for each destination and switch the class for the image of the destination at the
    # image of the switch.
    class_at_image = egress[image_of_vertex][:, image_of_vertex]
    image_class = np.full((switches, crossings.program.order.shape[1]), -1)
    has_class = egress >= 0
    switch = np.broadcast_to(np.arange(switches), egress.shape)
    # Of all destinations of a class the last one writes its image, and then each compares its own.
    image_class[switch[has_class], egress[has_class]] = class_at_image[has_class]
    expected = np.where(has_class, image_class[switch, egress], egress)
    return image_class if (expected == class_at_image).all() else None
