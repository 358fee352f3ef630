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
from compilers.evaluation.host_rates import HostRates, Reals
from compilers.evaluation.traffic import HOST_PATTERNS, HOTSPOT_PART, PATTERNS, host_numbers
from compilers.tables.build import Build
from compilers.topology.labelled_graph import Topology
from inventory.problems import InputError, not_among
from inventory.yamlfile import read_text

FILE = ".csv"
"""How the name of a file of traffic ends."""


def require_pattern(pattern: str) -> None:
    """Pass for the name of a pattern, or of a file.

    Raises:
        InputError: it is neither.
    """
    if pattern not in PATTERNS and not pattern.endswith(FILE):
        raise InputError(not_among(pattern, PATTERNS, "pattern"))


def most_hosts_of_switch(build: Build) -> int:
    """The number of hosts of the switch that has the most; 1 in a fabric without hosts.

    It may be fewer than `hosts_per_node`, for which the wiring has room.
    """
    return max(1, int(np.count_nonzero(build.wiring.host_port > 0, axis=1).max(initial=0)))


def pattern_traffic(build: Build, pattern: str, rates: HostRates, seed: int) -> Traffic:
    """What switches send each other, in units of `rates.largest_host_rate`.

    Args:
        build: its switches.
        pattern: a name of `PATTERNS`, or that of a file of rates.
        rates: of the hosts.
        seed: of random patterns.

    Raises:
        InputError: the file has mistakes.
    """
    if pattern.endswith(FILE):
        traffic = host_traffic(build, read_text(pattern))
        return replace(
            traffic,
            amount=traffic.amount
            / highest_host_utilisation(traffic, relative_host_rates(build, rates)),
        )
    endpoints = np.zeros_like(build.topology.endpoints)
    endpoints[rates.switches] = True
    topology = replace(build.topology, endpoints=endpoints)
    if (rates.host_rate == rates.largest_host_rate).all() and (
        rates.hosts_per_switch == rates.hosts_per_switch[0]
    ).all():
        return PATTERNS[pattern](topology, int(rates.hosts_per_switch[0]), seed)
    return _uneven(topology, pattern, rates, seed)


def relative_host_rates(build: Build, rates: HostRates) -> Reals:
    """float64[S]: what the hosts of each switch can send, in units of `rates.largest_host_rate`."""
    return _relative_rates(rates, build.tables.switches)


def _relative_rates(rates: HostRates, switches: int) -> Reals:
    """float64[S]: what the hosts of each of S switches can send, relative to the largest rate."""
    relative = np.zeros(switches)
    relative[rates.switches] = rates.host_rate / rates.largest_host_rate
    return relative


def highest_host_utilisation(traffic: Traffic, relative_rates: Reals) -> float:
    """The highest utilisation of host links at any switch, sending or receiving.

    Args:
        traffic: in units of `HostRates.largest_host_rate`.
        relative_rates: of `relative_host_rates`.
    """
    switches = len(relative_rates)
    sent = np.bincount(traffic.source, traffic.amount, minlength=switches)
    received = np.bincount(traffic.destination, traffic.amount, minlength=switches)
    with_hosts = relative_rates > 0
    utilisation = np.maximum(sent, received)[with_hosts] / relative_rates[with_hosts]
    return float(utilisation.max(initial=0.0))


def _uneven(topology: Topology, pattern: str, rates: HostRates, seed: int) -> Traffic:
    """A pattern where the hosts of one switch can send more than those of another."""
    if pattern in ("uniform", "hotspot"):
        return _between_all(topology, rates, HOTSPOT_PART if pattern == "hotspot" else 0.0)
    if pattern == "hosts" or pattern in HOST_PATTERNS:
        switch = np.repeat(rates.switches, rates.hosts_per_switch)
        rate = (
            np.repeat(rates.host_rate / rates.hosts_per_switch, rates.hosts_per_switch)
            / rates.largest_host_rate
        )
        if pattern == "hosts":
            sender = np.arange(len(switch))
            receiver = np.random.default_rng(seed).permutation(len(switch))
        else:
            sender, receiver = host_numbers(pattern, len(switch))
        slower = np.minimum(rate[sender], rate[receiver])
        return Traffic.of(switch[sender], switch[receiver], slower)
    relative_rates = _relative_rates(rates, len(topology.endpoints))
    traffic = PATTERNS[pattern](topology, 1, seed)
    slower = np.minimum(relative_rates[traffic.source], relative_rates[traffic.destination])
    return replace(traffic, amount=traffic.amount * slower)


def _between_all(topology: Topology, rates: HostRates, hot: float) -> Traffic:
    """Uniform traffic: every host sends to the hosts of all other switches, evenly by their rates.

    Args:
        topology: the fabric.
        rates: what the hosts can send.
        hot: the share that each host sends to the first switch instead. Where the hosts of that
            switch would receive more than they can, all rates are less in proportion.
    """
    rate = _relative_rates(rates, len(topology.endpoints))
    traffic = PATTERNS["uniform"](topology, 1, 0)
    source, destination = traffic.source, traffic.destination
    amount = rate[source] * rate[destination] / (rate.sum() - rate[source])
    if not hot:
        return replace(traffic, amount=amount)
    first = rates.switches[0]
    amount *= np.where(source == first, 1, 1 - hot)
    amount += hot * rate[source] * ((destination == first) & (source != first))
    received = amount[destination == first].sum() / rate[first]
    return replace(traffic, amount=amount / max(1.0, received))
