"""The traffic between switches by a named pattern or by a file of rates, for `saturation`.

The patterns of `traffic` assume that the hosts of all switches have the same total rate. Where
numbers of hosts or speeds differ, every host still sends all that it can:

- in uniform traffic each host sends to the hosts of all other switches, to each by its rate;
- in a permutation of switches or of hosts, a flow has the rate of the slower of its two ends.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from compilers.demand.demand_file import host_traffic
from compilers.demand.traffic_matrix import Traffic
from compilers.evaluation.bit_patterns import HOST_PATTERNS, pairs_of_hosts
from compilers.evaluation.host_rates import HostRates, Reals
from compilers.evaluation.traffic import HOTSPOT_PART, PATTERNS
from compilers.tables.build import Build
from compilers.topology.labelled_graph import Topology
from inventory.problems import InputError, not_among
from inventory.yamlfile import read_text

RATES_SUFFIX = ".csv"
"""The suffix of a file of rates, by which its name is told from that of a pattern."""


def require_pattern(pattern: str) -> None:
    """Pass for the name of a pattern, or of a file of rates.

    Raises:
        InputError: it is neither.
    """
    if pattern not in PATTERNS and not pattern.endswith(RATES_SUFFIX):
        raise InputError(not_among(pattern, PATTERNS, "pattern"))


def most_hosts_of_switch(build: Build) -> int:
    """The number of hosts of the switch that has the most; 1 in a fabric without hosts.

    It may be fewer than `hosts_per_node`, for which the wiring has room.
    """
    return max(1, int(np.count_nonzero(build.wiring.host_port > 0, axis=1).max(initial=0)))


def pattern_traffic(build: Build, pattern: str, rates: HostRates, seed: int) -> Traffic:
    """What switches send each other.

    The unit is `rates.largest_host_rate_sum`, the most that all hosts of one switch can send.

    Args:
        build: its switches.
        pattern: a name of `PATTERNS`, or that of a file of rates.
        rates: the rates of hosts.
        seed: the seed of the patterns that chance has a part in.

    Raises:
        InputError: the file has mistakes.
    """
    if pattern.endswith(RATES_SUFFIX):
        # Only the proportions of the rates count: the busiest host sends or receives all it can.
        traffic = host_traffic(build, read_text(pattern))
        relative_rates = relative_host_rate_sums(rates, build.tables.switches)
        busiest = highest_host_utilisation(traffic, relative_rates)
        return replace(traffic, amount=traffic.amount / busiest)
    # The patterns are those of switches with hosts, and take no rates.
    endpoints = np.zeros_like(build.topology.endpoints)
    endpoints[rates.switches] = True
    topology = replace(build.topology, endpoints=endpoints)
    rates_are_even = bool((rates.host_rate_sum == rates.largest_host_rate_sum).all())
    hosts_are_even = bool((rates.hosts_per_switch == rates.hosts_per_switch[0]).all())
    if rates_are_even and hosts_are_even:
        return PATTERNS[pattern](topology, int(rates.hosts_per_switch[0]), seed)
    if pattern == "uniform":
        return _uneven_uniform(topology, rates)
    if pattern == "hotspot":
        return _uneven_hotspot(topology, rates)
    if pattern == "hosts" or pattern in HOST_PATTERNS:
        return _uneven_host_permutation(pattern, rates, seed)
    return _uneven_switch_permutation(topology, pattern, rates, seed)


def relative_host_rate_sums(rates: HostRates, switches: int) -> Reals:
    """What the hosts of each switch can send, float64[S], in units of the largest such sum.

    Args:
        rates: the rates of hosts.
        switches: S.
    """
    relative = np.zeros(switches)
    relative[rates.switches] = rates.host_rate_sum / rates.largest_host_rate_sum
    return relative


def highest_host_utilisation(traffic: Traffic, relative_rates: Reals) -> float:
    """The highest utilisation of host links at any switch, sending or receiving.

    Args:
        traffic: in units of `HostRates.largest_host_rate_sum`.
        relative_rates: float64[S], of `relative_host_rate_sums`.
    """
    switches = len(relative_rates)
    sent = np.bincount(traffic.source, traffic.amount, minlength=switches)
    received = np.bincount(traffic.destination, traffic.amount, minlength=switches)
    with_hosts = relative_rates > 0
    utilisation = np.maximum(sent, received)[with_hosts] / relative_rates[with_hosts]
    return float(utilisation.max(initial=0.0))


def _uneven_uniform(topology: Topology, rates: HostRates) -> Traffic:
    """Uniform traffic: every host sends to the hosts of all other switches, to each by its rate."""
    rate = relative_host_rate_sums(rates, len(topology.endpoints))
    traffic = PATTERNS["uniform"](topology, 1, 0)
    source, destination = traffic.source, traffic.destination
    amount = rate[source] * rate[destination] / (rate.sum() - rate[source])
    return replace(traffic, amount=amount)


def _uneven_hotspot(topology: Topology, rates: HostRates) -> Traffic:
    """Uniform traffic, but a part of what each host sends goes to the first switch with hosts.

    If the hosts of this switch would receive more than they can, all rates are scaled down.
    """
    rate = relative_host_rate_sums(rates, len(topology.endpoints))
    traffic = _uneven_uniform(topology, rates)
    source, destination = traffic.source, traffic.destination
    hot = rates.switches[0]
    amount = traffic.amount * np.where(source == hot, 1, 1 - HOTSPOT_PART)
    amount += HOTSPOT_PART * rate[source] * ((destination == hot) & (source != hot))
    received = amount[destination == hot].sum() / rate[hot]
    return replace(traffic, amount=amount / max(1.0, received))


def _uneven_host_permutation(pattern: str, rates: HostRates, seed: int) -> Traffic:
    """A permutation of hosts, each pair at the rate of the slower host.

    Hosts are numbered switch by switch. `hosts` is a random permutation of them.
    """
    hosts = rates.hosts_per_switch
    switch_of_host = np.repeat(rates.switches, hosts)
    # By host: the mean of its switch, where hosts may differ in speed.
    mean_rate = rates.host_rate_sum / hosts
    rate = np.repeat(mean_rate, hosts) / rates.largest_host_rate_sum
    if pattern == "hosts":
        source = np.arange(len(switch_of_host))
        destination = np.random.default_rng(seed).permutation(len(switch_of_host))
    else:
        source, destination = pairs_of_hosts(pattern, len(switch_of_host))
    slower_rate = np.minimum(rate[source], rate[destination])
    return Traffic.of(switch_of_host[source], switch_of_host[destination], slower_rate)


def _uneven_switch_permutation(
    topology: Topology, pattern: str, rates: HostRates, seed: int
) -> Traffic:
    """A permutation of switches, each pair at the rate of the hosts of the slower switch."""
    rate = relative_host_rate_sums(rates, len(topology.endpoints))
    traffic = PATTERNS[pattern](topology, 1, seed)
    slower_rate = np.minimum(rate[traffic.source], rate[traffic.destination])
    return replace(traffic, amount=traffic.amount * slower_rate)
