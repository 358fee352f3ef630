"""The death of any one module of a whole PolarFly, proved by orbits instead of walks.

The theorem is that of `compilers.routing.module_orders`; here it is asked of the tables as they
are. When module M of switch u dies, with v behind M:

- Packets at v for what is behind u, at u for what is behind v: any neighbour but the apex of the
  triangle on u–v leads there in two links, and meets no link of u.
- Packets at u for v: the apex, or a neighbour that bounces: four links, none of u.
- Packets at v for u come to T(v), the last switch before u: the apex, or the switch that the bounce
  comes to. They arrive if the orbit v, T(v), … leaves M. The repair depends on the way in only as
  far as the first link of an order may be it. So a state is a link of u and one of two, and what
  comes after a state is a table of S·K·2.

Each order needs a link of another module. A packet that came in by it goes back by it, to a switch
that has another way, or bounces. Orders with links of no use, or orbits that stay: then this proves
nothing, and packets are walked. The ingress link is any: so it holds for alternates and marks, too.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from compilers.proof.local.other_proofs import ModuleBounds
from compilers.proof.soundness.port_use import PortUse
from compilers.tables.build import Build
from compilers.topology import polarity
from compilers.topology.triangles import apex_links
from compilers.wiring.shared_risk import modules_of
from extensions.scale.two_link_classes import has_unique_paths

Links = NDArray[np.intp]
BEHIND, DIRECT = 3, 4
"""The most links from where a packet meets the failure, but for packets to u itself."""
LISTED = 2


def module_bounds(build: Build) -> ModuleBounds | None:
    """Bounds that hold under the death of any one module, if no packet is lost; None: unproved.

    Args:
        build: its minimal routes deliver every pair.
    """
    module = modules_of(build.wiring, build.hardware)
    if module is None or build.forwarding.every_hop or not polarity.is_whole(build.topology):
        return None
    classes, wiring, far = build.tables.classes, build.wiring, build.wiring.far
    links, apex = far.shape[1], apex_links(far)
    listed = min(classes.protection.shape[2], classes.bounce.shape[2])
    if listed < LISTED or not has_unique_paths(far, apex) or not _by_link(build):
        return None
    use = PortUse.of(wiring)
    order = use.links(classes.protection[..., :LISTED].reshape(len(far), -1)).astype(np.intp)
    order = order.reshape(len(far), 2 * links, LISTED)
    bounce = use.links(classes.bounce[:, :links, :LISTED].reshape(len(far), -1)).astype(np.intp)
    bounce = bounce.reshape(len(far), links, LISTED)
    cabled, here = far >= 0, np.arange(len(far))[:, None, None]
    behind, direct = order[:, :links], order[:, links:]
    module_here, number = module[..., None], np.arange(links)[:, None]
    over = apex.astype(np.intp)[..., None]
    for lists in (behind, direct, bounce):
        good = ((lists >= 0) & (lists != number)).all(axis=2) & (lists[..., 0] != lists[..., 1])
        if lists is not direct:
            good &= (lists != over).all(axis=2)
        if lists is not bounce:
            good &= (module[here, lists] != module_here).any(axis=2)
        if not good[cabled].all():
            return None
    longest = _longest_orbit(build, direct, bounce, apex, module, use)
    return (
        ModuleBounds(max(BEHIND, DIRECT, longest + 1), max(DIRECT - 1, longest))
        if longest
        else None
    )


def _by_link(build: Build) -> bool:
    """Whether class k leads behind the k-th neighbour, and class K + k to that one alone."""
    far, port = build.wiring.far, build.wiring.port
    links, egress = far.shape[1], build.tables.routes.egress
    if not np.array_equal(build.tables.classes.port, np.tile(port, 2)):
        return False
    s, k = np.nonzero(far >= 0)
    if not bool((egress[s, far[s, k]] == links + k).all()):
        return False
    if packed := getattr(egress, "served", None):
        rows: NDArray[Any] = np.asarray(packed(2 * links))[:, links:]
        return bool((rows == (far >= 0)).all())
    degree = np.count_nonzero(far >= 0, axis=1)
    direct = (np.count_nonzero((row >= links) & (row < 2 * links)) for row in egress)
    return all(
        count == neighbours for count, neighbours in zip(direct, degree.tolist(), strict=True)
    )


def _longest_orbit(
    build: Build,
    direct: Links,
    bounce: Links,
    apex: NDArray[np.int16],
    module: NDArray[np.int32],
    use: PortUse,
) -> int:
    """The most links from a switch behind a dead module to the last one before its switch.

    0: some orbit stays behind the module. A state (u, k, i) is a packet for u at its k-th
    neighbour v, which repairs by the i-th link of its order.
    """
    wiring, far = build.wiring, build.wiring.far
    order, links = far.shape
    u, k = (part[:, None] for part in np.nonzero(far >= 0))
    v, back = far[u, k].astype(np.intp), use.link[far[u, k], wiring.far_port[u, k]].astype(np.intp)
    by = direct[v[:, 0], back[:, 0]]
    r = far[v, by].astype(np.intp)
    into = use.link[r, wiring.far_port[v, by]].astype(np.intp)
    corner = apex[v, back] == by
    w_link = bounce[r, into, 0]
    w = far[r, w_link].astype(np.intp)
    w_into = use.link[w, wiring.far_port[r, w_link]].astype(np.intp)
    after = np.asarray(build.tables.routes.egress[w, np.broadcast_to(u, w.shape)]).astype(np.intp)
    near = after >= links  # w is next to u itself
    last_link = after % links
    y = np.where(near, w, far[w, last_link])
    y_into = np.where(near, w_into, use.link[np.maximum(y, 0), wiring.far_port[w, last_link]])
    y, y_into = np.where(corner, r, y), np.where(corner, into, y_into)
    steps = np.where(corner, 1, np.where(near, 2, 3))
    # The link of u to y, and whether y's path in is the first of its order.
    to_u = np.asarray(build.tables.routes.egress[y, np.broadcast_to(u, y.shape)]).astype(np.intp)
    to_u %= links
    y_link = use.link[np.broadcast_to(u, y.shape), wiring.far_port[y, to_u]].astype(np.intp)
    stays = module[u, y_link] == module[u, k]
    choice = (direct[y, to_u, 0] == y_into).astype(np.intp)

    size = order * links * LISTED
    state = (u * links + k) * LISTED + np.arange(LISTED)
    following = np.arange(size)
    following[state] = np.where(stays, (u * links + y_link) * LISTED + choice, size)
    following = np.append(following, size)
    length = np.zeros(size + 1, np.int64)
    length[state] = steps
    length[size] = 0
    unused = np.ones(size + 1, np.bool_)
    unused[state] = False
    following[unused] = size
    for _ in range(int(size).bit_length()):  # twice as many steps each time
        if (following == size).all():
            return int(length.max())
        length = length + length[following]
        following = following[following]
    return 0
