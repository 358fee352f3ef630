"""Traffic patterns of the PolarFly (§VIII-B) and PolarStar (§9.5, §9.6) papers, between switches.

A pattern gives the share of a switch's traffic that goes to each other switch. Traffic within a
switch loads no link and is left out. Switches without hosts neither send nor receive, and patterns
number the other switches without them. `pattern_traffic` looks a pattern up by its name in
`PATTERNS`; with Valiant's routing, `two_legs` and `over_intermediates` turn its traffic into that
of both halves of the paths.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from compilers.demand.traffic_matrix import Traffic
from compilers.topology.distance import distances, neighbour_table
from compilers.topology.labelled_graph import Topology

Allowed = Callable[[int], NDArray[np.int64]]
"""A function from a source to the destinations that it may have, int64[n]."""
Pattern = Callable[[Topology, int, int], Traffic]
"""A function from the topology, the hosts of a switch and a seed to the traffic."""
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
        far = distances(table, np.array([s]), depth=links)[0]
        return np.flatnonzero((far == links) & topology.endpoints)

    return _random_matching(np.flatnonzero(topology.endpoints), topology.graph.order, allowed, seed)


def longest(topology: Topology, hosts: int, seed: int) -> Traffic:  # noqa: ARG001
    """A permutation whose paths are long in sum, near to the worst there is (Jyothi et al., 2016).

    As many pairs as possible are at the diameter, as many of the rest a link nearer, and so on.
    """
    table, ends = neighbour_table(topology.graph), np.flatnonzero(topology.endpoints)
    sources_left, is_free = ends, topology.endpoints.copy()
    parts = []
    for links in range(topology.diameter, 0, -1):

        def allowed(s: int, links: int = links) -> NDArray[np.int64]:
            """The switches so many links from a switch that no source has yet."""
            far = distances(table, np.array([s]), depth=links)[0]
            return np.flatnonzero((far == links) & is_free)

        part = _random_matching(sources_left, topology.graph.order, allowed, seed)
        parts.append(part)
        sources_left = np.setdiff1d(sources_left, part.source)
        is_free[part.destination] = False
    sources = np.concatenate([part.source for part in parts])
    return Traffic.of(sources, np.concatenate([part.destination for part in parts]))


def hotspot(topology: Topology, hosts: int, seed: int) -> Traffic:
    """As `uniform`, but a sixteenth of each switch's traffic goes to the first (Pfister, 1985).

    The first switch receives as much as its hosts can take. All other rates are in proportion.
    """
    traffic = uniform(topology, hosts, seed)
    hot = np.flatnonzero(topology.endpoints)[0]
    amount = traffic.amount * np.where(traffic.source == hot, 1, 1 - HOTSPOT_PART)
    amount += HOTSPOT_PART * ((traffic.destination == hot) & (traffic.source != hot))
    return replace(traffic, amount=amount / max(1, amount[traffic.destination == hot].sum()))


def shuffled(number: NDArray[np.int64], bits: int) -> NDArray[np.int64]:
    """The number with its bits rotated left by one.

    >>> shuffled(np.arange(8), 3)
    array([0, 2, 4, 6, 1, 3, 5, 7])

    Args:
        number: all numbers of so many bits, ascending.
        bits: how many bits they have.
    """
    return number << 1 & len(number) - 1 | number >> max(0, bits - 1)


def reversed_bits(number: NDArray[np.int64], bits: int) -> NDArray[np.int64]:
    """The number with its bits in reverse order; the arguments are those of `shuffled`.

    >>> reversed_bits(np.arange(8), 3)
    array([0, 4, 2, 6, 1, 5, 3, 7])
    """
    reverse = np.zeros_like(number)
    for bit in range(bits):
        reverse |= (number >> bit & 1) << (bits - 1 - bit)
    return reverse


def complement(number: NDArray[np.int64], bits: int) -> NDArray[np.int64]:  # noqa: ARG001
    """The number with every bit inverted: all numbers in descending order."""
    return number[::-1]


def transposed(number: NDArray[np.int64], bits: int) -> NDArray[np.int64]:
    """The number with the upper and the lower half of its bits exchanged.

    The arguments are those of `shuffled`.

    >>> transposed(np.arange(16), 4)
    array([ 0,  4,  8, 12,  1,  5,  9, 13,  2,  6, 10, 14,  3,  7, 11, 15])
    """
    half = bits // 2
    return number >> half | (number & (1 << half) - 1) << half


HOST_PATTERNS = {
    "shuffle": shuffled,
    "reverse": reversed_bits,
    "complement": complement,
    "transpose": transposed,
}
"""Patterns between hosts by name. Each function gives the destination of every host; hosts are
numbered with b bits."""


def host_pairs(
    pattern: str, topology: Topology, hosts: int
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """The hosts that send, and the host that each sends to, as in `host_numbers`.

    Hosts are numbered switch by switch, also at switches without hosts.

    Args:
        pattern: of `HOST_PATTERNS`.
        topology: its switches with hosts.
        hosts: of each.
    """
    ends = np.flatnonzero(topology.endpoints)
    source, destination = host_numbers(pattern, len(ends) * hosts)
    return (
        ends[source // hosts] * hosts + source % hosts,
        ends[destination // hosts] * hosts + destination % hosts,
    )


def host_numbers(pattern: str, hosts: int) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """The numbers of the hosts that send, and of the host that each sends to.

    The hosts that send are the first 2^b, the largest power of two that does not exceed their
    number; in a pattern that halves the bits, b is even.

    Args:
        pattern: of `HOST_PATTERNS`.
        hosts: how many there are.
    """
    bits = hosts.bit_length() - 1
    bits -= bits % 2 if pattern == "transpose" else 0
    number = np.arange(1 << max(0, bits))
    return number, HOST_PATTERNS[pattern](number, bits)


def _of_bits(pattern: str) -> Pattern:
    """Return the pattern between switches that a pattern of `HOST_PATTERNS` makes."""

    def between_switches(topology: Topology, hosts: int, seed: int) -> Traffic:  # noqa: ARG001
        """The pattern between hosts, with the hosts of each switch taken together."""
        source, destination = host_pairs(pattern, topology, hosts)
        return Traffic.of(source // hosts, destination // hosts, 1 / hosts)

    return between_switches


def adversarial(topology: Topology, hosts: int, seed: int) -> Traffic:  # noqa: ARG001
    """Every supernode to one other, between switches at the distance of the diameter.

    There are no flows in families without supernodes.
    """
    if topology.hierarchy == 1:
        return Traffic.of(*np.zeros((2, 0), np.int64))
    return between_groups(topology, topology.hierarchy, topology.diameter, seed)


def between_groups(topology: Topology, k: int, links: int, seed: int) -> Traffic:
    """Every group of k switches to one other, between switches with hosts so many links apart.

    PolarStar paper, §9.6. A group has k switches with consecutive numbers.
    """
    table, modules = neighbour_table(topology.graph), topology.graph.order // k
    ends = topology.endpoints.reshape(modules, k)

    def farthest(s: int) -> NDArray[np.bool_]:
        """bool[modules, k]: the members of each group that are so many links away, with hosts."""
        distance = distances(table, np.array([s]))[0].reshape(modules, k)
        at_distance: NDArray[np.bool_] = (distance == links) & ends
        return at_distance

    def remote(group: int) -> NDArray[np.int64]:
        """The groups with most members so many links from the first host's switch of a group."""
        count = farthest(group * k + int(ends[group].argmax())).sum(axis=1)
        return np.flatnonzero(count == count.max())

    group_pairs = _random_matching(np.arange(modules), modules, remote, seed)
    destination_group = np.full(modules, -1)
    destination_group[group_pairs.source] = group_pairs.destination

    def allowed(s: int) -> NDArray[np.int64]:
        """The members of the destination group that are so many links from a switch."""
        group = int(destination_group[s // k])
        return group * k + np.flatnonzero(farthest(s)[group])

    sources = np.flatnonzero((destination_group.repeat(k) >= 0) & topology.endpoints)
    return _random_matching(sources, topology.graph.order, allowed, seed)


def _random_matching(
    sources: NDArray[np.int64], switches: int, allowed: Allowed, seed: int
) -> Traffic:
    """A random permutation with as many allowed pairs as possible (Kuhn's matching).

    The sources, in random order, get a destination each. If all destinations of a source are taken,
    an augmenting path is searched: the source takes a destination of another source, which takes
    another destination instead, and so on, up to a destination that no source has.

    Args:
        sources: the switches that send.
        switches: the number of switches.
        allowed: the destinations that a source may have.
        seed: of the random order of sources and of their destinations.
    """
    rng = np.random.default_rng(seed)
    source_of = np.full(switches, -1)
    for source in rng.permutation(sources).tolist():
        for new_source, destination in _augmenting_path(source, source_of, allowed, rng):
            source_of[destination] = new_source
    destinations = np.flatnonzero(source_of >= 0)
    return Traffic.of(source_of[destinations], destinations)


def _augmenting_path(
    source: int, source_of: NDArray[np.int64], allowed: Allowed, rng: np.random.Generator
) -> list[tuple[int, int]]:
    """The pairs of source and destination that a further source brings, the new destination first.

    Args:
        source: a source without a destination. Where it can have none, there are no pairs.
        source_of: int64[S], the source of each destination, -1 where it has none.
        allowed: the destinations that a source may have.
        rng: what chooses among them.
    """
    reached_from = np.full(len(source_of), -1)
    """int64[S], by destination: the source from which it was reached first, -1 for none."""
    present_destination = {source: -1}
    """The present destination of each source that was reached; -1: it has none."""
    queue = [source]
    for from_source in queue:  # breadth first: the queue grows while it is read
        options = rng.permutation(allowed(from_source))
        options = options[reached_from[options] < 0]
        reached_from[options] = from_source
        free = options[source_of[options] < 0]
        if len(free):
            return _pairs_back(int(free[0]), reached_from, present_destination)
        sources = source_of[options].tolist()
        present_destination |= dict(zip(sources, options.tolist(), strict=True))
        queue += sources
    return []


def _pairs_back(
    destination: int, reached_from: NDArray[np.int64], present_destination: Mapping[int, int]
) -> list[tuple[int, int]]:
    """Each new pair of source and destination on a path, from its last destination back."""
    pairs = []
    while destination >= 0:
        source = int(reached_from[destination])
        pairs.append((source, destination))
        destination = present_destination[source]
    return pairs


PATTERNS: dict[str, Pattern] = {
    "uniform": uniform,
    "tornado": tornado,
    "permutation": random_permutation,
    "hosts": random_hosts,
    "perm1hop": perm1hop,
    "perm2hop": perm2hop,
    "longest": longest,
    **{name: _of_bits(name) for name in HOST_PATTERNS},
    "hotspot": hotspot,
    "adversarial": adversarial,
}
"""The patterns by name."""
MOST_INTERMEDIATES = 1024
"""The most intermediates for which Valiant's traffic is followed: it has a flow for each pair."""


def two_legs(traffic: Traffic, endpoints: NDArray[np.bool_]) -> Traffic | None:
    """Valiant's traffic: each packet over a switch with hosts, drawn at random, as two flows.

    It goes minimally to a switch that is neither of its ends, and from there (PolarFly paper,
    §VII-B). None where there is no such switch, or more than `MOST_INTERMEDIATES`.
    """
    ends = np.flatnonzero(endpoints)
    count, intermediates = len(ends), len(ends) - 2  # all switches but the two ends
    if not 0 < intermediates <= MOST_INTERMEDIATES:
        return None
    number = np.cumsum(endpoints) - 1  # of each switch among those with hosts
    direct = np.zeros((count, count))
    np.add.at(direct, (number[traffic.source], number[traffic.destination]), traffic.amount)
    # From s to t goes what s sends to others over t, and what others send to t over s.
    legs = (direct.sum(axis=1)[:, None] + direct.sum(axis=0) - 2 * direct) / intermediates
    np.fill_diagonal(legs, 0)
    source, destination = np.nonzero(legs > 0)
    return Traffic.of(ends[source], ends[destination], legs[source, destination])


def over_intermediates(traffic: Traffic, ends: NDArray[np.int64], switches: int) -> Traffic:
    """What switches send each other over one leg or the other with `balance: valiant`.

    Every switch sends the same part of its traffic to each intermediate. Each intermediate sends
    the same part of a destination's traffic to that destination.

    Args:
        traffic: of hosts.
        ends: the switches that packets may go by (`compilers.routing.intermediates`).
        switches: S.
    """
    sent = np.bincount(traffic.source, traffic.amount, minlength=switches)[ends]
    received = np.bincount(traffic.destination, traffic.amount, minlength=switches)[ends]
    legs = (sent[:, None] + received) / len(ends)
    np.fill_diagonal(legs, 0)
    source, destination = np.nonzero(legs)
    return Traffic.of(ends[source], ends[destination], legs[source, destination])
