"""Grow the build of a PolarFly by clusters, so that no installed cable moves (paper, §VI).

`grow` copies clusters, wires the copies on unused ports, places their nodes, and computes tables in
which old rows stay wherever they still lead along a shortest path. `growth_report` calls it, and
prints what is added.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from ipaddress import ip_network

import numpy as np
from numpy.typing import NDArray

from compilers.cabling.cable_plan import Cables, cables_of, hardware_of
from compilers.cabling.fabric_numbers import LINK_POOLS, WholeFabric, allocate, links_in
from compilers.cabling.installed_numbers import numbers_in
from compilers.expansion.base_fabric import BaseFabric
from compilers.expansion.grown_addresses import (
    grown_addressing,
    management_addresses,
    named_addresses,
    require_outside,
)
from compilers.expansion.grown_racks import PlaneHardware, grown_hardware
from compilers.expansion.grown_wiring import grown_wiring, moved_cables, with_generated_ports
from compilers.expansion.link_ports import LinkPorts
from compilers.expansion.new_hosts import needs_of_new_hosts
from compilers.expansion.port_shortage import require_room, require_room_for_hosts
from compilers.expansion.spare_nodes import SpareNodes, choose_spare_nodes, hosts_of_spares
from compilers.routing.balanced_tables import balance_tables
from compilers.routing.choose import choices
from compilers.routing.minimal_routes import routes
from compilers.spec.allocations import ASN, HOST, Allocations
from compilers.spec.fabric_spec import RoutingSpec
from compilers.spec.forwarding import Forwarding
from compilers.tables.build import Build
from compilers.tables.intermediate_form import Classes, Tables
from compilers.topology.replicated_clusters import Expansion
from compilers.update.compare import compare
from compilers.wiring.addressing import Addressing
from compilers.wiring.as_numbers import grown_as_numbers
from compilers.wiring.hardware import Hardware
from compilers.wiring.wiring import Wiring, links_by_port
from inventory.problems import InputError

MOST_SEARCHED_SWITCHES = 8192
"""The most switches of a larger fabric whose shortest paths are searched."""
FITTED = ("demand", "largest_share")
"""Words of a policy that the larger fabric does not keep: its shares are equal, not fitted."""


@dataclass(frozen=True, slots=True, eq=False)
class GrownFabric:
    """A larger fabric, compared with the installed one."""

    build: Build
    """The build of the larger fabric."""
    expansion: Expansion
    """The larger topology, and what is added to it."""
    cables: Cables
    """All cables of the larger fabric."""
    added: NDArray[np.int64]
    """int64[A], the indexes of the new cables in `cables`."""
    moved: int
    """The number of old cables with a different end or port in the larger fabric."""
    ports_left: NDArray[np.int64]
    """int64[S'], how many ports for links stay unused at each switch."""
    spare_nodes: SpareNodes
    """The spare nodes of the inventory that are used, by their vertices."""
    clusters_that_fit: int
    """How many clusters of the kind fit: the most that the old fabric's ports allow."""
    changes: Mapping[str, NDArray[np.int64]]
    """The table changes of each old switch, int64[S], by the kind of change.

    The kinds are the keys of `SwitchChange.counts`.
    """

    @classmethod
    def of(
        cls,
        before: Build,
        larger: Build,
        expansion: Expansion,
        hardware: Hardware,
        spare_nodes: SpareNodes,
        clusters_that_fit: int,
    ) -> GrownFabric:
        """Compare a larger build with the installed one.

        Args:
            before: the installed build.
            larger: the larger build.
            expansion: the larger topology, and what is added to it.
            hardware: the hardware of the installed build, with the node types.
            spare_nodes: the spare nodes that are used.
            clusters_that_fit: how many clusters of the kind fit.
        """
        cables = cables_of(larger.wiring, hardware_of(larger))
        link_ports = LinkPorts.of(larger.wiring, hardware.types, before.disabled_ports)
        return cls(
            build=larger,
            expansion=expansion,
            cables=cables,
            added=np.flatnonzero(cables.ends.max(axis=1) >= before.topology.graph.order),
            moved=moved_cables(before.wiring, larger.wiring),
            ports_left=link_ports.unused_counts(),
            spare_nodes=spare_nodes,
            clusters_that_fit=clusters_that_fit,
            changes=changes(before, larger),
        )


def grow(build: Build, method: str, count: int, planes: Sequence[Build] = ()) -> GrownFabric:
    """Grow a build by clusters on unused ports, with new tables.

    Rows stay as they are wherever they still lead along a shortest path. A new node has the type of
    the node that it copies. New nodes are the inventory's spares first. Others are generated, and
    placed in racks with room, then in racks of their own. Generated node types get the ports that
    they need.

    Args:
        build: the installed fabric. One that was expanded grows further by clusters of the same
            kind only.
        method: the kind of clusters: `quadric`, `fan` or `nucleus`.
        count: how many clusters are added.
        planes: the builds of other planes, whose places in racks are taken.

    Raises:
        InputError: the topology cannot grow by these clusters or is damaged, or it lacks ports or
            addresses, packets are marked, or the larger fabric has more switches than
            `MOST_SEARCHED_SWITCHES`.
    """
    base = BaseFabric.of(build.topology)
    base.require(method, count)
    _require_unmarked(build)
    expansion = base.grown(method, count)
    _require_searchable(expansion)
    numbers = numbers_in(build)  # before its nodes get ports
    wiring_with_ports, old_hardware = with_generated_ports(
        build.wiring, hardware_of(build), expansion
    )
    build = replace(build, wiring=wiring_with_ports)
    link_ports = LinkPorts.of(build.wiring, old_hardware.types, build.disabled_ports)
    clusters_that_fit = base.clusters_that_fit(method, link_ports, build, old_hardware)
    require_room(link_ports, expansion, build.wiring, clusters_that_fit)
    spare_nodes = choose_spare_nodes(old_hardware, build.wiring, expansion)
    addressing = grown_addressing(
        build.addressing, expansion.topology, old_hardware.plane, spare_nodes
    )
    addresses_in_use = named_addresses(build, old_hardware) | management_addresses(planes)
    require_outside(addressing, addresses_in_use)
    host_needs = needs_of_new_hosts(build, expansion, link_ports, old_hardware)
    require_room_for_hosts(host_needs, old_hardware.types, clusters_that_fit)
    wiring = grown_wiring(
        build.wiring,
        expansion=expansion,
        link_ports=link_ports,
        hardware=old_hardware,
        spare_nodes=spare_nodes,
        host_needs=host_needs,
    )
    tables, forwarding = _tables(build, expansion, wiring)
    other_planes = [PlaneHardware(plane.wiring, hardware_of(plane)) for plane in planes]
    without_labels = grown_hardware(expansion, wiring, old_hardware, spare_nodes, other_planes)
    whole = _whole_fabric(
        build,
        numbers=numbers,
        wiring=wiring,
        hardware=without_labels,
        addressing=addressing,
        spare_nodes=spare_nodes,
    )
    hardware, allocations = allocate(whole, numbers)
    larger = replace(
        build,
        forwarding=forwarding,
        policy={word: value for word, value in build.policy.items() if word not in FITTED},
        inputs={role: digest for role, digest in build.inputs.items() if role not in FITTED},
        topology=expansion.topology,
        wiring=wiring,
        addressing=addressing,
        tables=tables,
        hardware=hardware,
        allocations=allocations,
        systems=_systems(build, wiring, expansion.origin),
        identity="",
    )
    return GrownFabric.of(
        build,
        larger=larger,
        expansion=expansion,
        hardware=old_hardware,
        spare_nodes=spare_nodes,
        clusters_that_fit=clusters_that_fit,
    )


def _whole_fabric(
    build: Build,
    numbers: Allocations,
    wiring: Wiring,
    hardware: Hardware,
    addressing: Addressing,
    spare_nodes: SpareNodes,
) -> WholeFabric:
    """The parts of the larger fabric that get numbers.

    Args:
        build: the smaller build.
        numbers: the numbers that its parts have.
        wiring: of the larger fabric.
        hardware: of the larger fabric, without cable labels.
        addressing: of the larger fabric.
        spare_nodes: the spares that are used.
    """
    pools = (ip_network(build.control[word]) for word in LINK_POOLS if word in build.control)
    return WholeFabric(
        wiring=wiring,
        hardware=hardware,
        addressing=addressing,
        hosts=dict(numbers.of(HOST).used) | _host_numbers(spare_nodes, addressing),
        links=links_in(pools, build.forwarding.marks),
        as_numbers=grown_as_numbers(build.base, wiring.names, numbers.of(ASN)),
        base=build.base,
    )


def _require_searchable(expansion: Expansion) -> None:
    """Pass if shortest paths can be searched in a larger fabric.

    Raises:
        InputError: it has too many switches.
    """
    switches = expansion.topology.graph.order
    if switches > MOST_SEARCHED_SWITCHES:
        required = f"at most {MOST_SEARCHED_SWITCHES:,} switches"
        raise InputError.of(required, f"{switches:,}", key="clusters")


def _host_numbers(spare_nodes: SpareNodes, addressing: Addressing) -> dict[str, int]:
    """The number of each named host of spare nodes at its switch, by vertex and name."""
    per_node = addressing.host_mac.shape[1]
    return {
        f"{vertex}/{host.name}": number
        for (vertex, number), host in hosts_of_spares(spare_nodes, per_node)
        if host.name
    }


def _systems(build: Build, wiring: Wiring, origin: NDArray[np.int32]) -> tuple[str, ...]:
    """The system of each switch of a larger fabric.

    A copy has the system of its original, if both are of one node type. Otherwise it has the system
    of most switches of its type.

    Args:
        build: the smaller build.
        wiring: of the larger fabric.
        origin: int32[N'], the vertex that each vertex of the larger fabric is a copy of.
    """
    if not build.systems:
        return ()
    systems_of_type: dict[int, Counter[str]] = {}
    for node_type, system in zip(build.wiring.node_type.tolist(), build.systems, strict=True):
        systems_of_type.setdefault(node_type, Counter())[system] += 1
    all_systems = Counter(build.systems)
    types = wiring.node_type.tolist()
    systems = list(build.systems)
    for vertex in range(len(build.systems), len(types)):
        original = int(origin[vertex])
        if types[original] == types[vertex]:
            systems.append(build.systems[original])
        else:
            counts = systems_of_type.get(types[vertex], all_systems)
            systems.append(counts.most_common(1)[0][0])
    return tuple(systems)


def _require_unmarked(build: Build) -> None:
    """Pass if the build marks no packets.

    Copies of a switch have several neighbours in common, and marks need at most one.

    Raises:
        InputError: the build marks packets.
    """
    if build.forwarding.marks:
        raise InputError.of(
            key="routing.balance",
            required="another balance, as where clusters are copied marked packets come back to "
            "the switch that spreads them, or it has no link to spread them over",
            given=build.balance,
            todo="compile it with balance: compact-valiant, move to that with `polarfab apply`, "
            "and expand that build",
        )


def _tables(build: Build, expansion: Expansion, wiring: Wiring) -> tuple[Tables, Forwarding]:
    """The tables of the larger fabric by the policy of the build, and how switches use them."""
    topology, is_link = expansion.topology, build.wiring.far >= 0
    # int64[S, K], the number of each old link at its switch in the larger fabric.
    new_link = np.where(is_link, np.cumsum(is_link, axis=1) - 1, -1)
    old_link = _links_of_rows(build)
    links_kept = np.take_along_axis(new_link, np.maximum(old_link, 0), axis=1)
    links_kept = np.where(old_link < 0, -1, links_kept)  # a row without a link stays without one
    tables = Tables(
        routes=routes(topology, links_kept), classes=Classes.minimal(wiring.port.copy())
    )
    policy = {word: build.policy[word] for word in RoutingSpec.model_fields if word in build.policy}
    routing = RoutingSpec.model_validate(
        {"balance": build.balance, "protect": build.forwarding.protect, **policy}
    )
    q = topology.parameters.get("q")
    forwarding = routing.forwarding(int(q) if q else None, topology.family)
    tables = choices(tables, topology, wiring, forwarding)
    return balance_tables(build.balance, tables, forwarding, topology, wiring)


def _links_of_rows(build: Build) -> NDArray[np.int64]:
    """The link that each row of exact tables leads to, int64[S, S] by switch and destination.

    A link is its number at its switch; -1: none.
    """
    egress, port = build.tables.routes.egress, build.tables.classes.port
    link_at = links_by_port(build.wiring.far, build.wiring.port)
    minimal = link_at[np.arange(len(port))[:, None], port].astype(np.int64)
    # int64[S, C + 1], with one more class without a link, for rows that lead to no class.
    link_of_class = np.pad(minimal, ((0, 0), (0, 1)), constant_values=-1)
    return np.take_along_axis(
        link_of_class, np.minimum(egress, port.shape[1]).astype(np.int64), axis=1
    )


def changes(before: Build, after: Build) -> dict[str, NDArray[np.int64]]:
    """Return the table changes of each old switch, int64[S], by the kind of change."""
    counts = [switch.counts() for switch in compare(before, after).switches]
    return {kind: np.array([of_switch[kind] for of_switch in counts]) for kind in counts[0]}
