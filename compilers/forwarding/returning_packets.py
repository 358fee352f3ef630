"""Bounds of the load of links, where packets that return to a switch break the symmetry of tables.

A packet of the balance `spread` may come to a switch by the link that is the minimal one there. A
switch that repairs failures treats it as a packet that came back, and sends it by a repair port,
although nothing is down. Repair ports follow tie-breaks, and not the automorphisms of the graph. So
hardly any two links are in one orbit, and the bound of each would have to be computed.

Before packets come to such a switch, the automorphisms hold for them. So the load of a link has two
parts: packets that have not returned, for which orbits are large, and packets that have returned,
which are few. The bounds of both parts add up to a bound of the link.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from compilers.forwarding.link_bounds import LinkBounds
from compilers.forwarding.link_crossings import LinkCrossings
from compilers.forwarding.link_orbits import orbit_of_arc
from compilers.forwarding.link_shares import LinkShares
from compilers.topology.labelled_graph import Topology

Reals = NDArray[np.float64]


def bounds_by_symmetry(
    topology: Topology, crossings: LinkCrossings, sends: Reals, takes: Reals
) -> Reals:
    """float64[arcs]: a load that no traffic exceeds on each link.

    Args:
        topology: its family names the automorphisms.
        crossings: the pairs that cross links.
        sends: float64[S], the rate at which the hosts of each switch can send; all are equal.
        takes: float64[D], the rate at which they can receive; all are equal.
    """
    outward, returned = parted(crossings)
    orbits = orbit_of_arc(topology, outward)
    representatives, orbit_of_link = np.unique(orbits, return_inverse=True)
    bounds = LinkBounds.of(outward, crossings.arcs[representatives], sends, takes)
    symmetric = bounds.most[orbit_of_link]
    return np.asarray(symmetric + LinkBounds.of(returned, crossings.arcs, sends, takes).most)


def parted(crossings: LinkCrossings) -> tuple[LinkCrossings, LinkCrossings]:
    """The pairs that cross links before their packets return, and those that cross links after.

    A packet returns where it comes in by the minimal link.
    """
    minimal, transit = crossings.program.order[:, :, :1], crossings.hops.transit
    returning = minimal == np.arange(transit.shape[2])
    outward = crossings.hops._replace(transit=np.where(returning[..., None], -1, transit))
    return (
        replace(crossings, hops=outward, out=LinkShares.of(outward)),
        replace(crossings, out=LinkShares.of(crossings.hops, returning)),
    )
