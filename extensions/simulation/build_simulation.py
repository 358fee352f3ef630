"""Simulate a build: make the network and the traffic, and measure latency over load.

`simulate_build` joins a build with a traffic pattern or a demand file (`latency_curve`). The
settings are those of `chosen_settings`, and `channel_counts` says how many channels packets need.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from compilers.cabling.cable_plan import cables_of, hardware_of
from compilers.demand.demand_file import read_demand, require_hosts
from compilers.demand.traffic_matrix import Traffic
from compilers.evaluation.traffic import PATTERNS
from compilers.tables.build import Build
from compilers.workers.shards import THIS_PROCESS, Workers
from extensions.simulation.channel_counts import channels_needed, with_channels
from extensions.simulation.latency_curve import LatencyCurve, simulate
from extensions.simulation.load_point import OWN_PATH_POLICIES, SimulationSettings
from extensions.simulation.simulated_network import HostTraffic, SimulatedNetwork
from inventory.problems import InputError, not_among
from inventory.yamlfile import read_text


def simulate_build(
    build: Build,
    pattern: str | Path,
    hosts: int,
    settings: SimulationSettings,
    progress: Callable[[int, int], None] | None = None,
    workers: Workers = THIS_PROCESS,
) -> LatencyCurve:
    """Measure the latency over load of a build.

    Args:
        build: the build with its tables and cables.
        pattern: one of `compilers.evaluation.traffic.PATTERNS`, or a file of rates.
        hosts: how many hosts each switch has; 0 for as many as it was built with.
        settings: the settings, from `settings_for`. Their `channels` are replaced by as many as
            needed.
        progress: called with the number of loads that are done, and of all.
        workers: the processes that share the loads.

    Raises:
        InputError: there is no such pattern, it has no traffic here, or there are too few virtual
            channels.
    """
    hosts = hosts or max(1, build.wiring.host_port.shape[1])
    network = network_for(build, hosts, settings)
    if isinstance(pattern, Path):
        traffic = HostTraffic.of(_demand_traffic(build, pattern), network.switches, hosts)
    else:
        traffic = _pattern_traffic(build, pattern, hosts, settings.seed)
    settings = with_channels(build, network, settings)
    # Whatever the scheme, the curve says how many channels `valley` would need: users compare that
    # with what they have.
    by_valley = replace(settings, scheme="valley")
    return replace(
        simulate(network, traffic, settings, progress, workers),
        valley_channels=channels_needed(build, network, by_valley),
        router=settings.router if settings.level == "flit" else None,
    )


def network_for(build: Build, hosts: int, settings: SimulationSettings) -> SimulatedNetwork:
    """The network of a build, with what the routing of the settings needs.

    Policies with paths of their own may send packets over any switch with hosts. They need
    distances, unless they take the paths of the minimal table.
    """
    network = SimulatedNetwork.of(build, hosts)
    network = network._replace(delay=_link_cycles(build, network, settings))
    if settings.routing not in OWN_PATH_POLICIES:
        return network
    intermediates = np.flatnonzero(network.endpoints).astype(np.int32)
    network = network._replace(intermediate_switches=intermediates)
    return network.with_distances() if settings.paths == "shortest" else network


def _link_cycles(
    build: Build, network: SimulatedNetwork, settings: SimulationSettings
) -> NDArray[np.int32]:
    """The cycles of each arc, `SimulatedNetwork.delay`.

    They are as the settings say, or follow from the longest cable of each link.
    """
    if not settings.metres:
        return np.where(network.far_arc >= 0, settings.link, 1).astype(np.int32)
    cables = cables_of(build.wiring, hardware_of(build))
    lower, higher = np.sort(cables.ends, axis=1).T
    # [S, S], metres of the longest cable between two switches, the lower number first.
    longest = np.zeros((network.switches, network.switches))
    np.maximum.at(longest, (lower, higher), cables.length)
    link_arcs = np.flatnonzero(network.far_arc >= 0)
    switch, far_switch = link_arcs // network.ports, network.far_arc[link_arcs] // network.ports
    metres = longest[np.minimum(switch, far_switch), np.maximum(switch, far_switch)]
    delay = np.ones(len(network.far_arc), np.int32)
    delay[link_arcs] = np.maximum(np.ceil(metres / settings.metres), 1)
    return delay


def _pattern_traffic(build: Build, pattern: str, hosts: int, seed: int) -> HostTraffic:
    """The traffic of a pattern.

    Raises:
        InputError: there is no such pattern, or it has no traffic in this fabric.
    """
    if pattern not in PATTERNS:
        raise InputError(not_among(pattern, PATTERNS, "pattern"))
    traffic = HostTraffic.of_pattern(pattern, build.topology, hosts, seed)
    if not traffic.volume.any():
        given = f"{pattern}, which has none in {build.topology.title()}"
        raise InputError.of("a pattern with traffic between switches", given, key="pattern")
    return traffic


def _demand_traffic(build: Build, file: Path) -> Traffic:
    """The rates of a file, scaled so that the busiest switch sends or receives 1.

    Raises:
        InputError: the file is wrong, or names a switch without hosts.
    """
    text = read_text(file)
    demand = read_demand(text, build.wiring)
    require_hosts(build, demand, text.name)
    rates = demand.traffic()
    ends = (rates.source, rates.destination)
    busiest = max(np.bincount(switch, rates.amount).max() for switch in ends)
    return replace(rates, amount=rates.amount / busiest)
