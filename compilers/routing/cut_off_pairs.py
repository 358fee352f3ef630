"""Count the pairs of switches that no path joins after failures and drains.

Failures divide the switches into *components*: a path joins any two switches of one component. A
*drained* switch sends and receives packets of its own hosts, and forwards no others. So it is in no
component, and a path to it begins in any component that one of its links leads to.

`compilers.routing.link_repair` reports the number with the tables that it computes.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from compilers.topology.distance import components, table_of


def count_cut_off_pairs(
    far: NDArray[np.int32],
    endpoints: NDArray[np.bool_],
    dead: NDArray[np.bool_],
    drained: NDArray[np.bool_],
) -> int:
    """Count the ordered pairs of a switch and a destination that no path joins any more.

    A destination is a switch with hosts. Not counted are switches without a link that works, and
    drained switches from which no path over drained switches leads to a switch that forwards.

    Args:
        far: int32[S, K], the neighbour at each link, -1 where there is none.
        endpoints: bool[S], the switches with hosts.
        dead: bool[S, K], links that carry nothing, marked at both ends.
        drained: bool[S], the drained switches.
    """
    forwards, works = ~drained, (far >= 0) & ~dead
    leads_on = works & forwards[far]  # the links to switches that forward packets
    # Here drained switches are in components, too: those of all links that work.
    component_with_drained = components(table_of(np.where(works, far, -1)))
    has_forwarding_switch = np.isin(component_with_drained, component_with_drained[forwards])
    destination = endpoints & works.any(axis=1) & has_forwarding_switch
    source = destination | (forwards & leads_on.any(axis=1))
    pairs = int(np.count_nonzero(source) * np.count_nonzero(destination))
    return pairs - count_joined_pairs(far, source, destination, dead, drained)


def count_joined_pairs(
    far: NDArray[np.int32],
    source: NDArray[np.bool_],
    destination: NDArray[np.bool_],
    dead: NDArray[np.bool_],
    drained: NDArray[np.bool_],
) -> int:
    """Count the ordered pairs of a source and a destination that a path joins, also with itself.

    Args:
        far: int32[S, K], the neighbour at each link, -1 where there is none.
        source: bool[S], switches that send; of the drained ones, just the destinations.
        destination: bool[S], switches that receive.
        dead: bool[S, K], links that carry nothing, marked at both ends.
        drained: bool[S], the drained switches.
    """
    forwards, works = ~drained, (far >= 0) & ~dead
    leads_on = works & forwards[far]
    component = components(table_of(np.where(leads_on & forwards[:, None], far, -1)))
    sources_in = np.bincount(component[source & forwards], minlength=len(far))
    destinations_in = np.bincount(component[destination & forwards], minlength=len(far))
    joined = int(sources_in @ destinations_in)
    return joined + _joined_to_drained(
        far,
        drained=np.flatnonzero(destination & drained),
        works=works,
        leads_on=leads_on,
        component=component,
        sources_and_destinations_in=sources_in + destinations_in,
    )


def _joined_to_drained(
    far: NDArray[np.int32],
    drained: NDArray[np.int64],
    works: NDArray[np.bool_],
    leads_on: NDArray[np.bool_],
    component: NDArray[np.int64],
    sources_and_destinations_in: NDArray[np.int64],
) -> int:
    """Count the joined pairs of which one switch or both are drained.

    A drained switch with hosts sends and receives. So it forms one pair with each source, and one
    with each destination, of the components that it reaches.

    Args:
        far: int32[S, K], the neighbour at each link.
        drained: int64[n], the drained switches with hosts.
        works: bool[S, K], the links that work.
        leads_on: bool[S, K], the links to switches that forward packets.
        component: int64[S], the component of each switch that forwards packets.
        sources_and_destinations_in: int64[S], by component the number of its sources and the number
            of its destinations, added up.
    """
    # bool[n, P], the components, most often one, that each drained switch has a link to.
    row, link = np.nonzero(leads_on[drained])
    reached, column = np.unique(component[far[drained[row], link]], return_inverse=True)
    reaches = np.zeros((len(drained), len(reached)), np.bool_)
    reaches[row, column] = True
    # Drained switches that reach the same components are a group. int[G, P] whether each group
    # reaches a component, int[n] the group of each switch, int[G] the sizes of groups.
    distinct_reaches, group = np.unique(reaches, axis=0, return_inverse=True)
    group, group_reaches = group.reshape(-1), distinct_reaches.astype(np.int64)
    group_size = np.bincount(group, minlength=len(group_reaches))
    # bool[G, G], whether two groups reach a common component, so that a path joins their switches.
    meet = group_reaches @ group_reaches.T > 0
    with_forwarding = int(group_size @ group_reaches @ sources_and_destinations_in[reached])
    between_drained = int(group_size @ meet @ group_size)
    # Other pairs of drained switches are joined by a link alone. Each switch is joined with itself.
    # int[S], the index of each switch in `drained`; -1 for others.
    index_of = np.full(len(far), -1)
    index_of[drained] = np.arange(len(drained))
    near, link = np.nonzero(works[drained] & (index_of[far[drained]] >= 0))
    itself = np.arange(len(drained))
    first = np.append(near, itself)
    second = np.append(index_of[far[drained[near], link]], itself)
    is_new = ~meet[group[first], group[second]]  # not counted in `between_drained` already
    by_link_only = len(np.unique(first[is_new] * len(drained) + second[is_new]))
    return with_forwarding + between_drained + by_link_only
