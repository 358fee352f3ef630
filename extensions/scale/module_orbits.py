"""The failure of any one module of a whole PolarFly, proved by orbits instead of walks.

`module_bounds` takes a build and returns the longest path and the longest detour under the failure
of any one module, if no packet is lost. No packet is walked: where it comes to next is a function
of a small state, and following that function from each state shows whether all packets arrive.

A *module* is a part of a switch with some of its links, which fail together. An *order* lists the
links that a switch takes in turn where a link is down. The *apex* of a link is the common neighbour
of its two ends. A neighbour *bounces* a packet if its minimal path leads back over the ingress, so
that it sends the packet on by another link.

`compilers.routing.module_orders` chooses orders of repair by the same theorem. Here it is checked
for the tables as they are. Let module M of switch u fail, and let v be a neighbour behind M: a
neighbour whose link to u is on M. A destination is *behind* a switch if it is a neighbour of it.

- *Packets at v for a switch behind u, and at u for a switch behind v.* Any neighbour but the apex
  of u-v leads there in two more links, and meets no link of u.
- *Packets at u for v.* They go over the apex, or over a neighbour that bounces them. That takes at
  most four links, and after the first none of them is a link of u.
- *Packets at v for u.* They come to T(v), the last switch before u on the path by which v repairs
  the link: the apex, or the switch that the bounced packet comes to. If the link of T(v) to u is on
  M too, T(v) repairs in the same way. So the packets arrive if the *orbit* v, T(v), T(T(v)), …
  leaves the neighbours behind M.

A switch takes the second link of an order only if the packet came in by the first one. So a *state*
of an orbit is a link of u with a place in the order, 0 or 1: the neighbour behind this link takes
the link at this place of its order. The next state of each state is a table of S·K·2 entries.

The order of each link needs a link that is on another module. If a packet came in by just that
link, the order sends it back there: that neighbour has another way to the destination, or bounces
the packet. If an order has no such link, or an orbit stays behind M, nothing is proved, and packets
are walked. Nothing is assumed of the link by which a packet comes in. So the proof also holds for
alternates and marks, by which packets arrive over other links.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from compilers.proof.local.registered_proofs import ModuleBounds
from compilers.proof.soundness.port_use import PortUse
from compilers.tables.build import Build
from compilers.topology import polarity
from compilers.topology.triangles import apex_links
from compilers.wiring.shared_risk import modules_of
from extensions.scale.two_link_classes import has_unique_paths

Links = NDArray[np.intp]
"""Numbers of links of switches; -1 for none."""
Bits = NDArray[np.bool_]
LINKS_BEHIND = 3
"""The most links from where a packet meets the failure to a switch behind the neighbour."""
LINKS_DIRECT = 4
"""The most links from where a packet meets the failure to the neighbour itself. Packets to the
failed module's own switch may need more."""
LISTED_LINKS = 2
"""How many links of each order are looked at."""


@dataclass(frozen=True, slots=True, eq=False)
class _RepairOrders:
    """The first links by which S switches with K links repair, by the link that fails."""

    farther_order: Links
    """intp[S, K, 2], for destinations behind the neighbour; -1: there is none."""
    neighbour_order: Links
    """intp[S, K, 2], for the neighbour itself."""
    bounce_order: Links
    """intp[S, K, 2], for packets that came in by the link that they are to leave by."""
    apex_link: NDArray[np.int16]
    """int16[S, K], the apex of each link, as in `compilers.topology.triangles`."""
    module: NDArray[np.int32]
    """int32[S, K], the module that each link is on."""

    @classmethod
    def of(cls, build: Build, apex: NDArray[np.int16], module: NDArray[np.int32]) -> _RepairOrders:
        """The orders of a build whose classes are numbered by link (`_are_classes_by_link`)."""
        classes, port_use = build.tables.classes, PortUse.of(build.wiring)
        switches, most_links = build.wiring.far.shape

        def links_of(ports: NDArray[Any]) -> Links:
            """The links behind the listed ports, intp[S, C, 2], from ports [S, C, n]."""
            shape = switches, ports.shape[1], LISTED_LINKS
            flat = port_use.links(ports[..., :LISTED_LINKS].reshape(switches, -1))
            return flat.astype(np.intp).reshape(shape)

        protection = links_of(classes.protection)
        return cls(
            farther_order=protection[:, :most_links],
            neighbour_order=protection[:, most_links:],
            bounce_order=links_of(classes.bounce)[:, :most_links],
            apex_link=apex,
            module=module,
        )

    def are_usable(self, is_cabled: Bits) -> bool:
        """Whether the orders of all cabled links, bool[S, K], list links as the theorem asks."""
        apex = self.apex_link.astype(np.intp)[..., None]
        usable = _list_other_links(self.farther_order) & _list_other_links(self.neighbour_order)
        usable &= _list_other_links(self.bounce_order)
        usable &= (self.farther_order != apex).all(axis=2) & (self.bounce_order != apex).all(axis=2)
        usable &= self._leave_module(self.farther_order) & self._leave_module(self.neighbour_order)
        return bool(usable[is_cabled].all())

    def _leave_module(self, order: Links) -> Bits:
        """Whether an order lists a link of another module than the failing link's, bool[S, K]."""
        switch = np.arange(len(order))[:, None, None]
        leaves: Bits = (self.module[switch, order] != self.module[..., None]).any(axis=2)
        return leaves


def _list_other_links(order: Links) -> Bits:
    """Whether an order lists two different links, and not the one that fails, bool[S, K]."""
    failing = np.arange(order.shape[1])[:, None]
    lists_others = ((order >= 0) & (order != failing)).all(axis=2)
    different: Bits = lists_others & (order[..., 0] != order[..., 1])
    return different


def module_bounds(build: Build) -> ModuleBounds | None:
    """Bounds on paths under the failure of any one module, if no packet is lost; None: unproved.

    Args:
        build: a build whose minimal routes deliver every pair.
    """
    module = modules_of(build.wiring, build.hardware)
    if module is None or build.forwarding.every_hop or not polarity.is_whole(build.topology):
        return None
    classes, far = build.tables.classes, build.wiring.far
    apex = apex_links(far)
    listed = min(classes.protection.shape[2], classes.bounce.shape[2])
    if listed < LISTED_LINKS or not has_unique_paths(far, apex) or not _are_classes_by_link(build):
        return None
    orders = _RepairOrders.of(build, apex, module)
    if not orders.are_usable(far >= 0):
        return None
    longest = _longest_orbit(build, orders)
    if longest is None:
        return None
    return ModuleBounds(
        path_links=max(LINKS_BEHIND, LINKS_DIRECT, longest + 1),
        detour_links=max(LINKS_DIRECT - 1, longest),
    )


def _are_classes_by_link(build: Build) -> bool:
    """Whether class k leads behind the k-th neighbour, and class K + k to that one alone."""
    far, port = build.wiring.far, build.wiring.port
    most_links, egress = far.shape[1], build.tables.routes.egress
    if not np.array_equal(build.tables.classes.port, np.tile(port, 2)):
        return False
    switch, link = np.nonzero(far >= 0)
    if not bool((egress[switch, far[switch, link]] == most_links + link).all()):
        return False
    if computed_counts := getattr(egress, "destination_counts", None):
        direct_counts: NDArray[Any] = np.asarray(computed_counts(2 * most_links))[:, most_links:]
        return bool((direct_counts == (far >= 0)).all())
    neighbours = np.count_nonzero(far >= 0, axis=1)
    return all(
        np.count_nonzero((row >= most_links) & (row < 2 * most_links)) == count
        for row, count in zip(egress, neighbours.tolist(), strict=True)
    )


@dataclass(frozen=True, slots=True, eq=False)
class _LastHops:
    """The last link by which packets for u arrive from behind a dead module, by state.

    A state (u, k, i) is a packet for u at the neighbour v behind u's link k, while that link is
    down. v repairs by the i-th link of its order. There are n links u-v.
    """

    destination: Links
    """intp[n, 1], the destination of each link's packets."""
    link: Links
    """intp[n, 1], the link of u that is down."""
    last_link: Links
    """intp[n, 2], the link of u by which the packet would arrive, from switch T(v)."""
    next_place: Links
    """intp[n, 2], the place in the order by which T(v) repairs, should its link be down as well."""
    steps: NDArray[np.int64]
    """int64[n, 2], the links from v to T(v)."""


@dataclass(frozen=True, slots=True, eq=False)
class _Position:
    """Where packets are, both arrays of one shape."""

    switch: Links
    """intp[…], the switch."""
    ingress: Links
    """intp[…], the link of the switch by which they came in."""

    @classmethod
    def after_link(cls, build: Build, switch: Links, link: Links) -> _Position:
        """Where packets come to over a link of a switch."""
        wiring = build.wiring
        far = np.maximum(wiring.far[switch, link], 0).astype(np.intp)
        ingress = PortUse.of(wiring).link_at(far, wiring.far_port[switch, link])
        return cls(far, ingress.astype(np.intp))

    def unless(self, is_other: Bits, other: _Position) -> _Position:
        """The position itself, but another one where `is_other`, bool[…]."""
        return _Position(
            switch=np.where(is_other, other.switch, self.switch),
            ingress=np.where(is_other, other.ingress, self.ingress),
        )


def _last_hops(build: Build, orders: _RepairOrders) -> _LastHops:
    """Follow the packets of each state to the last switch before their destination.

    A packet for u goes from v to r. If r is the apex of u-v, it is the last switch. Otherwise r
    bounces the packet to w, and w is the last switch, or has a path of two links to u. For example,
    the last switch is x on the path v, r, w, x, u.
    """
    far = build.wiring.far
    switch, number = np.nonzero(far >= 0)
    u, link = switch[:, None], number[:, None]
    v = _Position.after_link(build, u, link)
    # [n, 2] from here on: v has one r for each place of its order.
    repair_link = orders.neighbour_order[v.switch[:, 0], v.ingress[:, 0]]
    r = _Position.after_link(build, v.switch, repair_link)
    r_is_last = orders.apex_link[v.switch, v.ingress] == repair_link
    w = _Position.after_link(build, r.switch, orders.bounce_order[r.switch, r.ingress, 0])
    # Of K links, class k leads behind link k, and class K + k to the neighbour itself.
    most_links = far.shape[1]
    w_class = _class_for(build, w.switch, u)
    w_is_last = w_class >= most_links
    x = _Position.after_link(build, w.switch, w_class % most_links)
    last = x.unless(w_is_last, w).unless(r_is_last, r)
    link_to_u = _class_for(build, last.switch, u) % most_links
    return _LastHops(
        destination=u,
        link=link,
        last_link=_Position.after_link(build, last.switch, link_to_u).ingress,
        # The first repair link is passed over if the packet came in by it.
        next_place=(orders.neighbour_order[last.switch, link_to_u, 0] == last.ingress).astype(
            np.intp
        ),
        steps=np.where(r_is_last, 1, np.where(w_is_last, 2, 3)),
    )


def _class_for(build: Build, switch: Links, destination: Links) -> Links:
    """The class by which switches send packets for destinations, intp in the shape of `switch`."""
    egress = build.tables.routes.egress
    return np.asarray(egress[switch, np.broadcast_to(destination, switch.shape)]).astype(np.intp)


def _longest_orbit(build: Build, orders: _RepairOrders) -> int | None:
    """The most links from a switch behind a dead module to the last switch before its destination.

    None if some orbit stays behind the module.
    """
    switches, most_links = build.wiring.far.shape
    hops = _last_hops(build, orders)
    # States are numbered by switch, link and place in the order. There is one more state, for
    # packets that arrive.
    arrived = switches * most_links * LISTED_LINKS
    state = (hops.destination * most_links + hops.link) * LISTED_LINKS + np.arange(LISTED_LINKS)
    stays = (
        orders.module[hops.destination, hops.last_link]
        == orders.module[hops.destination, hops.link]
    )
    next_state = (hops.destination * most_links + hops.last_link) * LISTED_LINKS + hops.next_place
    # int[states + 1], the state that each leads to, and the links until then. `arrived`, and
    # states that no link has, lead to `arrived`.
    following = np.full(arrived + 1, arrived)
    following[state] = np.where(stays, next_state, arrived)
    length = np.zeros(arrived + 1, np.int64)
    length[state] = hops.steps
    for _ in range(int(arrived).bit_length()):  # each round follows twice as many steps
        if (following == arrived).all():
            return int(length.max())
        length = length + length[following]
        following = following[following]
    return None
