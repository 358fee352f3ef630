"""A random sample of computed rows, judged by nothing but prefixes, ports and cables.

The proofs of whole fabrics (`star_program`, `plane_lines`) look at the program that rows are
computed from, and at no row. Should a row be decoded otherwise than the proof assumes, this sample
shows it.
"""

from __future__ import annotations

from random import Random

import numpy as np
from numpy.typing import NDArray

from compilers.proof.soundness.port_use import PortUse
from compilers.tables.build import Build
from compilers.tables.intermediate_form import local, no_route

SUPERNODES = 8
"""How many supernodes are drawn, in addition to the first and the last of each kind of switches."""
MEMBERS = 3
"""How many switches are drawn in each of these supernodes."""
DIAMETER = 3
"""The most links between two switches of the fabrics that are judged."""
LOCAL_LINK = -1
"""In place of a link: the destination is the switch itself."""
NO_LINK = -2
"""In place of a link: there is no route."""


def sampled_rows_minimal(build: Build, seed: int) -> bool:
    """Whether all rows of some switches lead to their destinations over shortest paths.

    Args:
        build: sound cables and prefixes, S switches with hosts in supernodes of k.
        seed: draws the supernodes, and switches in each.
    """
    k = build.topology.hierarchy
    supernode_count = len(build.wiring.far) // k
    random = Random(seed)  # noqa: S311
    supernodes = {*random.sample(range(supernode_count), min(SUPERNODES, supernode_count))}
    for kind in np.unique(build.topology.kind).tolist():
        of_kind = np.flatnonzero(build.topology.kind == kind)
        supernodes |= {int(of_kind[0]) // k, int(of_kind[-1]) // k}
    return all(
        _rows_minimal(build, supernode * k + member)
        for supernode in sorted(supernodes)
        for member in random.sample(range(k), min(MEMBERS, k))
    )


def _rows_minimal(build: Build, switch: int) -> bool:
    """Whether each row of a switch leads over a neighbour that is closer to what the row serves."""
    far = build.wiring.far
    link_to = _links_by_destination(build, switch)
    distance = np.full(len(far), DIAMETER, np.int8)
    _enter_distances(distance, build, switch, 2)
    by_link = np.argsort(link_to, kind="stable")
    ends = np.searchsorted(link_to[by_link], np.arange(far.shape[1] + 1))
    without_link = by_link[: ends[0]]
    if not np.array_equal(without_link, [switch]) or link_to[switch] != LOCAL_LINK:
        return False
    from_neighbour = np.full(len(far), DIAMETER, np.int8)
    for link in np.flatnonzero(np.diff(ends)).tolist():
        served = by_link[ends[link] : ends[link + 1]]
        radius = int(distance[served].max()) - 1
        _enter_distances(from_neighbour, build, int(far[switch, link]), radius)
        if (from_neighbour[served] >= distance[served]).any():
            return False
        from_neighbour[:] = DIAMETER
    return True


def _enter_distances(distance: NDArray[np.int8], build: Build, switch: int, radius: int) -> None:
    """Enter how many links each switch is away from one of them, up to a radius of 0, 1 or 2.

    Args:
        distance: int8[S], written where a switch is within the radius.
        build: the build, whose cables are looked at.
        switch: the switch to measure from.
        radius: the radius in links.
    """
    far = build.wiring.far
    neighbours = far[switch][far[switch] >= 0]
    if radius == 2:
        two_away = far[neighbours]
        distance[two_away[two_away >= 0]] = 2
    if radius:
        distance[neighbours] = 1
    distance[switch] = 0


def _links_by_destination(build: Build, switch: int) -> NDArray[np.int16]:
    """The link that a switch takes to each destination, by longest prefix, int16[S].

    LOCAL_LINK to its own hosts, NO_LINK where it has no route.
    """
    routes, k, switches = build.tables.routes, build.topology.hierarchy, len(build.wiring.far)
    egress, prefix = routes.egress[switch], routes.prefixes(switch)
    class_port = build.tables.classes.port[switch]
    port_use = PortUse.of(build.wiring).part(slice(switch, switch + 1))
    class_link = port_use.links(class_port[None])[0]
    is_class = egress < min(len(class_port), no_route(routes.egress))
    link = np.where(is_class, class_link[np.where(is_class, egress, 0)], NO_LINK).astype(np.int16)
    link[egress == local(routes.egress)] = LOCAL_LINK
    has_route = egress != no_route(routes.egress)
    link_to = np.full((switches // k, k), NO_LINK, np.int16)
    if prefix[has_route].max(initial=0) >= switches + switches // k:  # a row for no switch
        return link_to.ravel()
    is_aggregate = has_route & (prefix >= switches)
    link_to[prefix[is_aggregate] - switches] = link[is_aggregate][:, None]
    is_exact = has_route & (prefix < switches)
    link_to.ravel()[prefix[is_exact]] = link[is_exact]
    return link_to.ravel()
