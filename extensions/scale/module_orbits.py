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

    behind: Links
    """intp[S, K, 2], for destinations behind the neighbour; -1: there is none."""
    direct: Links
    """intp[S, K, 2], for the neighbour itself."""
    bounce: Links
    """intp[S, K, 2], for packets that came in by the link that they are to leave by."""
    apex: NDArray[np.int16]
    """int16[S, K], the apex of each link, as in `compilers.topology.triangles`."""
    module: NDArray[np.int32]
    """int32[S, K], the module that each link is on."""

    @classmethod
    def of(cls, build: Build, apex: NDArray[np.int16], module: NDArray[np.int32]) -> _RepairOrders:
        """The orders of a build whose classes are numbered by link (`_are_classes_by_link`)."""
        classes, use = build.tables.classes, PortUse.of(build.wiring)
        switches, most_links = build.wiring.far.shape

        def links_of(ports: NDArray[Any]) -> Links:
            """The links behind the listed ports, intp[S, C, 2], from ports [S, C, n]."""
            shape = switches, ports.shape[1], LISTED_LINKS
            flat = use.links(ports[..., :LISTED_LINKS].reshape(switches, -1))
            return flat.astype(np.intp).reshape(shape)

        protection = links_of(classes.protection)
        return cls(
            behind=protection[:, :most_links],
            direct=protection[:, most_links:],
            bounce=links_of(classes.bounce)[:, :most_links],
            apex=apex,
            module=module,
        )

    def are_usable(self, is_cabled: Bits) -> bool:
        """Whether the orders of all cabled links, bool[S, K], list links as the theorem asks."""
        apex = self.apex.astype(np.intp)[..., None]
        usable = _list_other_links(self.behind) & _list_other_links(self.direct)
        usable &= _list_other_links(self.bounce)
        usable &= (self.behind != apex).all(axis=2) & (self.bounce != apex).all(axis=2)
        usable &= self._leave_module(self.behind) & self._leave_module(self.direct)
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

    u: Links
    """intp[n, 1], the destination of each link's packets."""
    link: Links
    """intp[n, 1], the link of u that is down."""
    last_link: Links
    """intp[n, 2], the link of u by which the packet would arrive, from switch T(v)."""
    next_place: Links
    """intp[n, 2], the place in the order by which T(v) repairs, should its link be down as well."""
    steps: NDArray[np.int64]
    """int64[n, 2], the links from v to T(v)."""


def _last_hops(build: Build, orders: _RepairOrders) -> _LastHops:
    """Follow the packets of each state to the last switch before their destination.

    All arrays have a row for each link; `x_ingress` is the link by which the packet comes to x.
    """
    wiring, far, egress = build.wiring, build.wiring.far, build.tables.routes.egress
    most_links, use = far.shape[1], PortUse.of(build.wiring)
    switch, number = np.nonzero(far >= 0)
    u, link = switch[:, None], number[:, None]
    v = far[u, link].astype(np.intp)
    v_link = use.link_at(v, wiring.far_port[u, link]).astype(np.intp)
    # v sends the packet to r, one r for each place of its order, [n, 2] from here on. r is the
    # apex, which sends it to u, or a switch that bounces it to w.
    repair_link = orders.direct[v[:, 0], v_link[:, 0]]
    r = far[v, repair_link].astype(np.intp)
    r_ingress = use.link_at(r, wiring.far_port[v, repair_link]).astype(np.intp)
    is_apex = orders.apex[v, v_link] == repair_link
    bounce_link = orders.bounce[r, r_ingress, 0]
    w = far[r, bounce_link].astype(np.intp)
    w_ingress = use.link_at(w, wiring.far_port[r, bounce_link]).astype(np.intp)
    # w is next to u itself, or sends the packet to the last switch. Class K + k is the direct one.
    w_class = np.asarray(egress[w, np.broadcast_to(u, w.shape)]).astype(np.intp)
    w_is_last, w_link = w_class >= most_links, w_class % most_links
    last = np.where(w_is_last, w, far[w, w_link])
    after_w = use.link_at(np.maximum(last, 0), wiring.far_port[w, w_link])
    last_ingress = np.where(w_is_last, w_ingress, after_w)
    last = np.where(is_apex, r, last)
    last_ingress = np.where(is_apex, r_ingress, last_ingress)
    link_to_u = (
        np.asarray(egress[last, np.broadcast_to(u, last.shape)]).astype(np.intp) % most_links
    )
    last_link = use.link_at(np.broadcast_to(u, last.shape), wiring.far_port[last, link_to_u])
    return _LastHops(
        u=u,
        link=link,
        last_link=last_link.astype(np.intp),
        # The first repair link is passed over if the packet came in by it.
        next_place=(orders.direct[last, link_to_u, 0] == last_ingress).astype(np.intp),
        steps=np.where(is_apex, 1, np.where(w_is_last, 2, 3)),
    )


def _longest_orbit(build: Build, orders: _RepairOrders) -> int | None:
    """The most links from a switch behind a dead module to the last switch before its destination.

    None if some orbit stays behind the module.
    """
    switches, most_links = build.wiring.far.shape
    hops = _last_hops(build, orders)
    arrived = switches * most_links * LISTED_LINKS  # one more state, for packets that arrive
    state = (hops.u * most_links + hops.link) * LISTED_LINKS + np.arange(LISTED_LINKS)
    stays = orders.module[hops.u, hops.last_link] == orders.module[hops.u, hops.link]
    next_state = (hops.u * most_links + hops.last_link) * LISTED_LINKS + hops.next_place
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
