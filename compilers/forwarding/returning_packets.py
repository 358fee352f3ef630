"""What links carry at most, where packets that return to a switch spoil the symmetry of tables.

A packet of `spread` may come to a switch by the link that is the minimal one there. A switch that
repairs failures takes it for one that came back, and sends it by a repair port, although nothing is
down. Repair ports follow tie-breaks, and not the symmetries of the graph. So hardly any two links
are alike, and each would have to be looked at.

Before they come to such a switch, packets follow the symmetries. So the load of a link has two
parts: packets that have not returned, where many links are alike, and packets that have returned,
which are few. The bounds of both parts add up to a bound of the link.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from compilers.forwarding.link_bounds import LinkBounds
from compilers.forwarding.link_crossings import LinkCrossings
from compilers.forwarding.link_orbits import like_arcs
from compilers.forwarding.link_shares import LinkShares
from compilers.topology.labelled_graph import Topology

Reals = NDArray[np.float64]


def bounds_by_symmetry(
    topology: Topology, crossings: LinkCrossings, sends: Reals, takes: Reals
) -> Reals:
    """float64[arcs]: a load that no traffic exceeds on each link.

    Args:
        topology: whose family names symmetries.
        crossings: who crosses links.
        sends: float64[S], what the hosts of each switch can send, all as much.
        takes: float64[D], what they can take, all as much.
    """
    outward, returned = parted(crossings)
    first, like = np.unique(like_arcs(topology, outward), return_inverse=True)
    symmetric = LinkBounds.of(outward, crossings.arcs[first], sends, takes).most[like]
    return np.asarray(symmetric + LinkBounds.of(returned, crossings.arcs, sends, takes).most)


def parted(crossings: LinkCrossings) -> tuple[LinkCrossings, LinkCrossings]:
    """Who crosses links before a packet returns, and from there on.

    A packet returns where it comes in by the minimal link.
    """
    minimal, transit = crossings.program.order[:, :, :1], crossings.hops.transit
    returning = minimal == np.arange(transit.shape[2])
    outward = crossings.hops._replace(transit=np.where(returning[..., None], -1, transit))
    return (
        replace(crossings, hops=outward, out=LinkShares.of(outward)),
        replace(crossings, out=LinkShares.of(crossings.hops, returning)),
    )
