"""A random sample of computed rows, judged by nothing but prefixes, ports and cables.

The proofs of whole fabrics (`star_program`, `plane_lines`) look at the program that rows are
computed from, and at no row. Should a row be decoded otherwise than the proof assumes, this sample
shows it.

A row is right if its next hop is nearer to each destination of the row than the switch is. In the
fabrics that are judged no two switches are more than three links apart. So a destination that is
not within two links of a switch counts as three links away, and no search goes further than two.
"""

from __future__ import annotations

from random import Random
from typing import Any

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
NO_LINK = -1
"""In place of a link, as in `PortUse.links`: there is no route, or its port has no cable."""
LOCAL_LINK = -2
"""In place of a link: the destination is the switch itself."""


def sampled_rows_minimal(build: Build, seed: int) -> bool:
    """Whether all rows of some switches lead to their destinations over shortest paths.

    Args:
        build: sound cables and prefixes. The switches of a PolarStar are in supernodes of k;
            elsewhere k is 1, and each switch is drawn as a supernode.
        seed: draws the supernodes, and switches in each.
    """
    supernode_size = build.topology.hierarchy
    supernode_count = len(build.wiring.far) // supernode_size
    random = Random(seed)  # noqa: S311
    supernodes = {*random.sample(range(supernode_count), min(SUPERNODES, supernode_count))}
    for kind in np.unique(build.topology.kind).tolist():
        of_kind = np.flatnonzero(build.topology.kind == kind)
        supernodes |= {int(of_kind[0]) // supernode_size, int(of_kind[-1]) // supernode_size}
    return all(
        _rows_minimal(build, supernode * supernode_size + member)
        for supernode in sorted(supernodes)
        for member in random.sample(range(supernode_size), min(MEMBERS, supernode_size))
    )


def _rows_minimal(build: Build, switch: int) -> bool:
    """Whether each row of a switch leads over a neighbour that is nearer to its destinations."""
    far = build.wiring.far
    link_to = _links_by_destination(build, switch)
    if link_to is None or (link_to == NO_LINK).any():
        return False
    if not np.array_equal(np.flatnonzero(link_to == LOCAL_LINK), [switch]):
        return False
    distance = _distances(far, switch, radius=2)
    for link in np.unique(link_to[link_to >= 0]).tolist():
        destinations = np.flatnonzero(link_to == link)
        # The neighbour has to be nearer than the switch, so its further switches do not matter.
        radius = int(distance[destinations].max()) - 1
        from_neighbour = _distances(far, int(far[switch, link]), radius)
        if (from_neighbour[destinations] >= distance[destinations]).any():
            return False
    return True


def _distances(far: NDArray[np.int32], switch: int, radius: int) -> NDArray[np.int8]:
    """How many links each switch is away from one of them, int8[S]; DIAMETER beyond the radius.

    Args:
        far: int32[S, K], the neighbours of each switch, -1 where it has fewer.
        switch: the switch to measure from.
        radius: how many links to follow: 0, 1 or 2.
    """
    distance = np.full(len(far), DIAMETER, np.int8)
    neighbours = far[switch][far[switch] >= 0]
    # From the outside in, as a neighbour's neighbour may be nearer than two links.
    if radius == 2:
        two_away = far[neighbours]
        distance[two_away[two_away >= 0]] = 2
    if radius >= 1:
        distance[neighbours] = 1
    distance[switch] = 0
    return distance


def _links_by_destination(build: Build, switch: int) -> NDArray[np.int16] | None:
    """The link that a switch takes to each destination, by longest prefix, int16[S].

    LOCAL_LINK to its own hosts, NO_LINK where it has no route. None if a row has a prefix beyond
    those of switches and supernodes.
    """
    routes, supernode_size = build.tables.routes, build.topology.hierarchy
    switches, supernodes = len(build.wiring.far), len(build.wiring.far) // supernode_size
    egress, prefix = routes.egress[switch], routes.prefixes(switch)
    has_route = egress != no_route(routes.egress)
    if prefix[has_route].max(initial=0) >= switches + supernodes:
        return None
    link = _links_of_rows(build, switch, egress)
    link_to = np.full((supernodes, supernode_size), NO_LINK, np.int16)
    # Prefixes 0 … S - 1 are exact, and the next ones are aggregates, one for each supernode. Exact
    # prefixes are longer, so they are entered last.
    is_aggregate = has_route & (prefix >= switches)
    link_to[prefix[is_aggregate] - switches] = link[is_aggregate][:, None]
    is_exact = has_route & (prefix < switches)
    link_to.ravel()[prefix[is_exact]] = link[is_exact]
    return link_to.ravel()


def _links_of_rows(build: Build, switch: int, egress: NDArray[Any]) -> NDArray[np.int16]:
    """The link of each row of a switch, int16[R], from its egress values, int[R].

    LOCAL_LINK for its own hosts, NO_LINK where a row has no route or its port has no cable.
    """
    class_port = build.tables.classes.port[switch]
    port_use = PortUse.of(build.wiring).part(slice(switch, switch + 1))
    class_link = port_use.links(class_port[None])[0]
    all_egress = build.tables.routes.egress
    # `no_route` and the values above it are no classes.
    is_class = egress < min(len(class_port), no_route(all_egress))
    link = np.where(is_class, class_link[np.where(is_class, egress, 0)], NO_LINK).astype(np.int16)
    link[egress == local(all_egress)] = LOCAL_LINK
    return link
