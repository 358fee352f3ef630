"""Traffic patterns of the PolarFly (§VIII-B) and PolarStar (§9.5, §9.6) papers, between switches.

A pattern gives the share of a switch's traffic that goes to each other switch. Traffic within a
switch loads no link and is left out. Switches without hosts neither send nor receive, and patterns
number the other switches without them. `pattern_traffic` looks a pattern up by its name in
`PATTERNS`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from compilers.demand.traffic_matrix import Traffic
from compilers.evaluation.bit_patterns import HOST_PATTERNS, host_pairs
from compilers.evaluation.random_matching import random_matching
from compilers.topology.distance import distances, neighbour_table
from compilers.topology.labelled_graph import Topology

Pattern = Callable[[Topology, int, int], Traffic]
"""A function from the topology, the hosts of a switch and a seed to the traffic.

Most patterns need only some of these, and leave the others unused.
"""
NO_GROUP = -1
"""In place of a destination group: the group has none."""
HOTSPOT_PART = 1 / 16
"""The part of each switch's traffic that goes to a hot spot, besides what is spread evenly."""


def uniform(topology: Topology, hosts: int, seed: int) -> Traffic:  # noqa: ARG001
    """Every switch to all others in equal shares."""
    ends = np.flatnonzero(topology.endpoints)
    amount = 1 / max(1, len(ends) - 1)
    return Traffic.of(np.repeat(ends, len(ends)), np.tile(ends, len(ends)), amount)


def tornado(topology: Topology, hosts: int, seed: int) -> Traffic:  # noqa: ARG001
    """Switch i to switch i + N/2 modulo N."""
    ends = np.flatnonzero(topology.endpoints)
    return Traffic.of(ends, np.roll(ends, -(len(ends) // 2)))


def random_permutation(topology: Topology, hosts: int, seed: int) -> Traffic:  # noqa: ARG001
    """A random permutation of the switches."""
    ends = np.flatnonzero(topology.endpoints)
    return Traffic.of(ends, np.random.default_rng(seed).permutation(ends))


def random_hosts(topology: Topology, hosts: int, seed: int) -> Traffic:
    """A random permutation of the hosts."""
    ends = np.flatnonzero(topology.endpoints)
    source = np.repeat(ends, hosts)
    return Traffic.of(source, np.random.default_rng(seed).permutation(source), 1 / hosts)


def perm1hop(topology: Topology, hosts: int, seed: int) -> Traffic:  # noqa: ARG001
    """A permutation in which every switch sends to a neighbour."""
    return _at_distance(topology, 1, seed)


def perm2hop(topology: Topology, hosts: int, seed: int) -> Traffic:  # noqa: ARG001
    """A permutation in which every switch sends to a switch two links away."""
    return _at_distance(topology, 2, seed)


def _at_distance(topology: Topology, links: int, seed: int) -> Traffic:
    """A permutation in which every switch sends to a switch so many links away."""
    table = neighbour_table(topology.graph)

    def allowed(s: int) -> NDArray[np.int64]:
        """The switches so many links from a switch."""
        distance = distances(table, np.array([s]), depth=links)[0]
        return np.flatnonzero((distance == links) & topology.endpoints)

    return random_matching(np.flatnonzero(topology.endpoints), topology.graph.order, allowed, seed)


def longest(topology: Topology, hosts: int, seed: int) -> Traffic:  # noqa: ARG001
    """A permutation with a large sum of path lengths, near to the worst (Jyothi et al., 2016).

    As many pairs as possible are at the diameter, as many of the rest a link nearer, and so on.
    """
    table, ends = neighbour_table(topology.graph), np.flatnonzero(topology.endpoints)
    sources_left, is_free = ends, topology.endpoints.copy()
    traffic_by_distance = []
    for links in range(topology.diameter, 0, -1):

        def allowed(s: int, links: int = links) -> NDArray[np.int64]:
            """The switches so many links from a switch that are no source's destination yet."""
            distance = distances(table, np.array([s]), depth=links)[0]
            return np.flatnonzero((distance == links) & is_free)

        traffic = random_matching(sources_left, topology.graph.order, allowed, seed)
        traffic_by_distance.append(traffic)
        sources_left = np.setdiff1d(sources_left, traffic.source)
        is_free[traffic.destination] = False
    return Traffic.of(
        np.concatenate([traffic.source for traffic in traffic_by_distance]),
        np.concatenate([traffic.destination for traffic in traffic_by_distance]),
    )


def hotspot(topology: Topology, hosts: int, seed: int) -> Traffic:
    """As `uniform`, but a sixteenth of each switch's traffic goes to the first (Pfister, 1985).

    Rates are scaled down so that the first switch receives no more than its hosts can take.
    """
    traffic = uniform(topology, hosts, seed)
    hot = np.flatnonzero(topology.endpoints)[0]
    amount = traffic.amount * np.where(traffic.source == hot, 1, 1 - HOTSPOT_PART)
    amount += HOTSPOT_PART * ((traffic.destination == hot) & (traffic.source != hot))
    return replace(traffic, amount=amount / max(1, amount[traffic.destination == hot].sum()))


def _between_switches(host_pattern: str) -> Pattern:
    """The pattern between switches that a pattern of `HOST_PATTERNS` makes."""

    def pattern(topology: Topology, hosts: int, seed: int) -> Traffic:  # noqa: ARG001
        """The pattern between hosts, with the hosts of each switch taken together."""
        pairs = host_pairs(host_pattern, topology, hosts)
        return Traffic.of(pairs.source // hosts, pairs.destination // hosts, 1 / hosts)

    return pattern


def adversarial(topology: Topology, hosts: int, seed: int) -> Traffic:  # noqa: ARG001
    """Every supernode to one other, between switches at the distance of the diameter.

    There are no flows in families without supernodes.
    """
    if topology.hierarchy == 1:
        no_switches = np.zeros(0, np.int64)
        return Traffic.of(no_switches, no_switches)
    return between_groups(topology, topology.hierarchy, topology.diameter, seed)


def between_groups(topology: Topology, group_size: int, links: int, seed: int) -> Traffic:
    """Every group of switches to one other, between switches with hosts so many links apart.

    First each group gets a destination group, then each switch a destination in that group
    (PolarStar paper, §9.6).

    Args:
        topology: the switches.
        group_size: k, the switches of a group, which have consecutive numbers.
        links: the distance of the two switches of each pair.
        seed: of both choices.
    """
    table, group_count = neighbour_table(topology.graph), topology.graph.order // group_size
    has_hosts = topology.endpoints.reshape(group_count, group_size)

    def at_distance(s: int) -> NDArray[np.bool_]:
        """bool[groups, k]: the switches with hosts that are so many links from a switch."""
        distance = distances(table, np.array([s]))[0].reshape(group_count, group_size)
        is_at_distance: NDArray[np.bool_] = (distance == links) & has_hosts
        return is_at_distance

    def groups_at_distance(group: int) -> NDArray[np.int64]:
        """The groups with most switches so many links from a group's first switch with hosts."""
        first = group * group_size + int(has_hosts[group].argmax())
        count = at_distance(first).sum(axis=1)
        return np.flatnonzero(count == count.max())

    group_pairs = random_matching(np.arange(group_count), group_count, groups_at_distance, seed)
    destination_group = np.full(group_count, NO_GROUP)
    destination_group[group_pairs.source] = group_pairs.destination

    def allowed(s: int) -> NDArray[np.int64]:
        """The switches of the destination group that are so many links from a switch."""
        group = int(destination_group[s // group_size])
        return group * group_size + np.flatnonzero(at_distance(s)[group])

    has_destination_group = destination_group.repeat(group_size) != NO_GROUP
    sources = np.flatnonzero(has_destination_group & topology.endpoints)
    return random_matching(sources, topology.graph.order, allowed, seed)


PATTERNS: dict[str, Pattern] = {
    "uniform": uniform,
    "tornado": tornado,
    "permutation": random_permutation,
    "hosts": random_hosts,
    "perm1hop": perm1hop,
    "perm2hop": perm2hop,
    "longest": longest,
    **{name: _between_switches(name) for name in HOST_PATTERNS},
    "hotspot": hotspot,
    "adversarial": adversarial,
}
"""The patterns by name."""
