"""Simulate a build: check the settings, make the network and the traffic, and count the channels.

`settings_for` turns what a user wrote into `SimulationSettings`. `simulate_build` joins the build
with a traffic pattern or a demand file, and measures latency over load (`latency_curve`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import fields, replace
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from compilers.cabling.cable_plan import cables_of, hardware_of
from compilers.demand.demand_file import read_demand, require_hosts
from compilers.demand.traffic_matrix import Traffic
from compilers.evaluation.traffic import PATTERNS
from compilers.proof.lossless.channels import channels
from compilers.proof.name_lookup import find_failures
from compilers.tables.build import Build
from compilers.topology.distance import BEYOND
from compilers.workers.shards import THIS_PROCESS, Workers
from extensions.simulation.flit_router import USUAL_ROUTER, FlitRouter
from extensions.simulation.latency_curve import LatencyCurve, simulate
from extensions.simulation.load_point import (
    INTERMEDIATE_POLICIES,
    LEVELS,
    OWN_PATH_POLICIES,
    PATHS,
    POLICIES,
    SCHEMES,
    USUAL_LOADS,
    SimulationSettings,
    TimedFailure,
)
from extensions.simulation.simulated_network import HostTraffic, SimulatedNetwork
from inventory.problems import InputError, at_key, not_among
from inventory.yamlfile import read_text

CHOICES = {"routing": POLICIES, "scheme": SCHEMES, "level": LEVELS, "paths": PATHS}
"""The values that settings of these names may have."""
LEAST_VALUES = {
    "packet": 1,
    "buffer": 1,
    "vcs": 1,
    "warmup": 0,
    "period": 1,
    "periods": 1,
    "drain": 0,
    "flows": 0,
    "samples": 1,
    "runs": 1,
    "link": 1,
}
"""The least values that settings of these names may have."""


def settings_for(
    build: Build,
    loads: Sequence[float] = (),
    seed: int = 0,
    fail: Iterable[tuple[str, int]] = (),
    options: Mapping[str, int | str | float] | None = None,
) -> SimulationSettings:
    """The settings of a simulation of a build.

    Args:
        build: the build that is simulated; nodes and links of `fail` are looked up in it.
        loads: the offered loads; () for the usual ones.
        seed: the seed of all random numbers.
        fail: what goes down, a node or a link as `A-B`, and the cycle before which it does.
        options: fields of `SimulationSettings`; None stands for the usual value.

    Raises:
        InputError: there is no such node, link or setting, or a value is not allowed.
    """
    chosen = {
        name: int(value) if isinstance(value, np.integer) else value
        for name, value in (options or {}).items()
        if value is not None
    }
    _check_values(chosen)
    chosen["router"] = FlitRouter.read(str(chosen.get("router", "")))  # type: ignore[assignment]
    for load in loads:
        if not 0 < load <= 1:
            required = "loads above 0 and up to 1, parts of what the hosts' links carry"
            raise InputError.of(required, f"{load:g}", key="load")
    with at_key("fail"):
        failures = tuple(TimedFailure(_links(build, name), cycle) for name, cycle in fail)
    settings = SimulationSettings(
        loads=tuple(loads) or USUAL_LOADS,
        seed=seed,
        failures=failures,
        **chosen,  # type: ignore[arg-type]
    )
    _check_together(settings)
    return settings


def _check_values(chosen: Mapping[str, object]) -> None:
    """Pass if settings of these names exist and may have these values.

    Raises:
        InputError: there is no such setting, or its value is not allowed.
    """
    names = {field.name for field in fields(SimulationSettings)}
    for name, value in chosen.items():
        if name not in names:
            raise InputError.of("a setting of SimulationSettings", name, ", ".join(sorted(names)))
        if name in CHOICES and value not in CHOICES[name]:
            raise InputError(not_among(str(value), CHOICES[name], name))
        if name in LEAST_VALUES and not (isinstance(value, int) and value >= LEAST_VALUES[name]):
            raise InputError.of(f"a number from {LEAST_VALUES[name]}", str(value), key=name)


def _check_together(settings: SimulationSettings) -> None:
    """Pass if the settings fit each other.

    Raises:
        InputError: two settings exclude each other, a failure comes too late, or a buffer is too
            small.
    """
    if settings.failures and settings.level == "flit":
        raise InputError.of("`level packet`, to have failures", "flit", key="level")
    if settings.router != USUAL_ROUTER and settings.level != "flit":
        raise InputError.of("`level flit`, to choose a router", settings.level, key="level")
    _check_paths(settings)
    for failure in settings.failures:
        if failure.cycle >= settings.last:
            required = f"a cycle before {settings.last:,}, when the measurement ends"
            raise InputError.of(required, str(failure.cycle), key="fail")
    if settings.buffer < settings.vcs * settings.packet:
        required_buffer = (
            f"at least a packet of {settings.packet} flits for each of {settings.vcs} channels"
        )
        raise InputError.of(required_buffer, f"{settings.buffer} flits", key="buffer")


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
        flows = HostTraffic.of(_demand_traffic(build, pattern), network.switches, hosts)
    else:
        flows = _pattern_traffic(build, pattern, hosts, settings.seed)
    settings = with_channels(build, network, settings)
    valley_channels = channels_needed(build, network, replace(settings, scheme="valley"))
    curve = simulate(network, flows, settings, progress, workers)
    router = settings.router if settings.level == "flit" else None
    return replace(curve, channels=valley_channels, router=router)


def network_for(build: Build, hosts: int, settings: SimulationSettings) -> SimulatedNetwork:
    """The network of a build, as its packets' paths need it."""
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
        return np.where(network.end >= 0, settings.link, 1).astype(np.int32)
    cables = cables_of(build.wiring, hardware_of(build))
    lower, higher = np.sort(cables.ends, axis=1).T
    # [S, S], metres of the longest cable between two switches, the lower number first.
    longest = np.zeros((network.switches, network.switches))
    np.maximum.at(longest, (lower, higher), cables.length)
    link_arcs = np.flatnonzero(network.end >= 0)
    switch, far_switch = link_arcs // network.ports, network.end[link_arcs] // network.ports
    metres = longest[np.minimum(switch, far_switch), np.maximum(switch, far_switch)]
    delay = np.ones(len(network.end), np.int32)
    delay[link_arcs] = np.maximum(np.ceil(metres / settings.metres), 1)
    return delay


def _check_paths(settings: SimulationSettings) -> None:
    """Pass if packets follow tables, or if no setting needs that.

    Raises:
        InputError: packets take paths of their own, and a setting is about tables.
    """
    for name, value in (("fail", settings.failures), ("flows", settings.flows)):
        if value and settings.routing in OWN_PATH_POLICIES:
            required = f"paths of the tables with `{name}`: minimal, emitted or adaptive"
            raise InputError.of(required, settings.routing, key="routing")


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
    flows = read_demand(text, build.wiring)
    require_hosts(build, flows, text.name)
    rates = flows.traffic()
    switches = rates.source, rates.destination
    busiest = max(np.bincount(switch, rates.amount).max() for switch in switches)
    return replace(rates, amount=rates.amount / busiest)


def with_channels(
    build: Build, network: SimulatedNetwork, settings: SimulationSettings
) -> SimulationSettings:
    """The settings with as many channels as the scheme needs for the paths that packets take.

    Raises:
        InputError: there are fewer virtual channels.
    """
    if settings.scheme == "single":
        return settings
    count = channels_needed(build, network, settings)
    if count > settings.vcs:
        whose = "these paths" if settings.routing in OWN_PATH_POLICIES else "its tables"
        required = f"{count} virtual channels for scheme {settings.scheme}, as {whose} need"
        todo = f"`vcs {count}`, or `scheme single`, which may deadlock"
        raise InputError.of(required, str(settings.vcs), todo, key="vcs")
    return replace(settings, channels=count)


def channels_needed(build: Build, network: SimulatedNetwork, settings: SimulationSettings) -> int:
    """How many channels a scheme other than `single` needs for the paths of the settings."""
    packets_take_any_shortest_path = len(network.distance) > 0
    if settings.routing in OWN_PATH_POLICIES and packets_take_any_shortest_path:
        return path_channels(network, settings.routing, settings.scheme)
    # The paths round a failure of these kinds are counted, too.
    kinds = ("link", "node") if settings.failures else ()
    count = channels(build, settings.scheme, kinds).count or settings.vcs
    return 2 * count if settings.routing in INTERMEDIATE_POLICIES else count


def _links(build: Build, name: str) -> tuple[tuple[int, int], ...]:
    """The links that go down with a link or a node, as pairs of switches.

    Raises:
        InputError: the build has no such link or node.
    """
    ends, links = build.wiring.link_ends().tolist(), dict[tuple[int, int], None]()
    for number in find_failures(build, name):
        if number < len(ends):
            links[ends[number][0], ends[number][1]] = None
            continue
        switch, far = number - len(ends), build.wiring.far
        neighbours = np.unique(far[switch][far[switch] >= 0])
        links |= dict.fromkeys((switch, int(neighbour)) for neighbour in neighbours)
    return tuple(links)


def path_channels(network: SimulatedNetwork, routing: str, scheme: str) -> int:
    """How many channels keep shortest paths free of deadlock, whichever of them packets take.

    Within a channel of `valley` every path rises and then falls; within a channel of `hop` there
    are no waits. So it is enough to count how often a path changes channels. A packet over an
    intermediate takes two paths, and needs twice as many channels.

    Args:
        network: the network with distances.
        routing: one of `OWN_PATH_POLICIES`.
        scheme: `hop` or `valley` (`compilers.proof.lossless.channels`).
    """
    ends = np.flatnonzero(network.endpoints)
    if scheme == "hop":
        links = network.distance[np.ix_(ends, ends)]
        count = int(links[links < BEYOND].max(initial=1))
    else:
        count = 1 + int(_valleys(network)[np.ix_(ends, ends)].max(initial=0))
    return 2 * count if routing in INTERMEDIATE_POLICIES else count


def _valleys(network: SimulatedNetwork) -> NDArray[np.int8]:
    """The most valleys of a shortest path from each switch to each other, int8[S, S].

    A valley is where a path falls and then rises. Paths of 1, 2, … links are computed in turn,
    separately for packets that rose to the switch where the path begins and for those that fell.
    """
    distance, far = network.distance, network.far
    up = network.up.reshape(network.switches, network.ports)[:, : network.links].astype(np.bool_)
    # The most valleys of paths whose packets came up to the switch, or came down to it.
    fallen: NDArray[np.int8] = np.zeros(distance.shape, np.int8)
    risen = fallen.copy()
    for level in range(1, int(distance[distance < BEYOND].max(initial=0)) + 1):
        at_level = distance == level
        for k in range(network.links):
            nearer = at_level & (distance[far[:, k]] == level - 1) & (far[:, k] >= 0)[:, None]
            rises = up[:, k, None]
            after = np.where(rises, risen[far[:, k]], fallen[far[:, k]])
            risen = np.where(nearer, np.maximum(risen, after), risen)
            fallen = np.where(nearer, np.maximum(fallen, after + rises), fallen)
    return risen
