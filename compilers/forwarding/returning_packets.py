"""Bounds of the load of links, where packets that return to a switch break the symmetry of tables.

What comes in are the pairs of switches that cross links (`LinkCrossings`), and the rates of hosts.
What goes out is a load for each link that no traffic exceeds. `compilers.evaluation` calls
`bounds_by_symmetry`.

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
    not_returned, returned = split_where_packets_return(crossings)
    orbits = orbit_of_arc(topology, not_returned)
    representatives, orbit_of_link = np.unique(orbits, return_inverse=True)
    bounds_of_orbits = LinkBounds.of(not_returned, crossings.arcs[representatives], sends, takes)
    bounds_of_returned = LinkBounds.of(returned, crossings.arcs, sends, takes)
    return np.asarray(bounds_of_orbits.upper[orbit_of_link] + bounds_of_returned.upper)


def split_where_packets_return(crossings: LinkCrossings) -> tuple[LinkCrossings, LinkCrossings]:
    """The pairs that cross links before their packets return, and the pairs that cross links after.

    A packet returns where it comes in by the minimal link.
    """
    next_hops = crossings.next_hops
    minimal_link, transit = crossings.program.order[:, :, :1], next_hops.transit_links
    # bool[S, C, K], by switch, class and ingress link.
    returns = minimal_link == np.arange(transit.shape[2])
    until_return = next_hops._replace(transit_links=np.where(returns[..., None], -1, transit))
    return (
        replace(crossings, next_hops=until_return, leaving=LinkShares.of(until_return)),
        replace(crossings, leaving=LinkShares.of(next_hops, returns)),
    )
