"""The compiler: five steps, each a function from one frozen value to the next.

| step | from | to |
|---|---|---|
| `place_fabric` (`compilers/wiring/placed_fabric.py`) | `LoadedFabric` | `PlacedFabric` |
| `install` | `PlacedFabric` | `InstalledFabric` |
| `route` | `InstalledFabric` | `RoutedFabric` |
| `build_of` | `RoutedFabric` | `Build` |
| `check_limits` | `Build` | nothing: it refuses builds that hardware or systems cannot hold |

A step collects its mistakes with `LoadedFabric.stage`, and raises all of them as one error.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from compilers.cabling.cable_labels import with_numbers_of_whole
from compilers.cabling.cable_plan import CabledFabric, too_long_findings
from compilers.cabling.fabric_numbers import WholeFabric, allocate, links_in
from compilers.cabling.panel_plan import require_trunks
from compilers.capacity import capacity_findings
from compilers.memory_bound import memory_findings
from compilers.policy_support import LEAST_POLICY, reduced_policy, render_findings, system_findings
from compilers.routing.balanced_tables import balance_tables
from compilers.routing.choose import choices, require_searchable
from compilers.routing.damaged_tables import damaged_tables
from compilers.routing.marked_spread import require_onward
from compilers.routing.minimal_routes import minimal_tables
from compilers.spec.allocations import Allocations
from compilers.spec.balances import balance_named
from compilers.spec.fabric_file import LoadedFabric, require_one_plane
from compilers.spec.fabric_spec import BaseSpec, RoutingSpec
from compilers.spec.forwarding import Forwarding
from compilers.spec.node_systems import control_options, vertex_systems
from compilers.spec.share_expression import share_value
from compilers.tables.build import Build
from compilers.tables.intermediate_form import Tables
from compilers.topology.labelled_graph import Topology
from compilers.wiring.addressing import Addressing, plan_addresses
from compilers.wiring.as_numbers import NODE_ASNS
from compilers.wiring.damage import Damage, damage_of, remaining_fabric, require_connected
from compilers.wiring.hardware import Hardware
from compilers.wiring.placed_fabric import PlacedFabric, place_fabric
from compilers.wiring.plane_pools import block_findings
from compilers.wiring.shared_risk import modules_of, unknown_risk_findings, uses_several_modules
from compilers.wiring.wiring import Wiring
from inventory.model import Inventory
from inventory.problems import Finding, InputError


@dataclass(frozen=True, slots=True, eq=False)
class InstalledFabric:
    """The part of a placed fabric that is installed and works."""

    placed: PlacedFabric
    """The whole fabric on its hardware."""
    routing: RoutingSpec
    """The policy of the spec, reduced by `on_missing` to what systems and node types can do."""
    topology: Topology
    """The graph of the links that work."""
    wiring: Wiring
    """The ports of the links that work."""
    hardware: Hardware | None
    """The node types, and where nodes stand; None for one plane without an inventory."""
    addressing: Addressing
    """The addresses of the whole fabric, so that they stay when missing parts are installed."""
    damage: Damage
    """The links, nodes and hosts that are missing."""
    allocations: Allocations
    """The numbers of the whole fabric."""
    module: NDArray[np.int32] | None
    """int32[S, K]: the module of each link, on which the order of repairs depends.

    None unless the policy protects against the failure of a module.
    """

    @property
    def loaded(self) -> LoadedFabric:
        """fabric.yaml and the inventory."""
        return self.placed.loaded


@dataclass(frozen=True, slots=True, eq=False)
class RoutedFabric:
    """An installed fabric with its tables."""

    installed: InstalledFabric
    """The fabric without its tables."""
    topology: Topology
    """The graph of the links that work, with its own diameter."""
    tables: Tables
    """Routes and egress classes, with alternates and repairs."""
    forwarding: Forwarding
    """The forwarding properties of the tables."""


def compile_fabric(loaded: LoadedFabric) -> Build:
    """Compile a fabric of one plane.

    Raises:
        InputError: memory cannot hold the routes, the inventory cannot hold the fabric, or the
            fabric has several planes (`compilers.planes.compile_planes`); all problems of a step at
            once.
    """
    require_one_plane(loaded)
    require_memory(loaded)
    with loaded.stage() as findings:
        findings += system_findings(loaded.spec, loaded.inventory)
        findings += block_findings(loaded)
        placed = place_fabric(loaded)
    return compile_placed(placed)


def require_memory(loaded: LoadedFabric) -> None:
    """Pass when memory can hold the routes of a fabric.

    Raises:
        InputError: it cannot.
    """
    with loaded.stage() as findings:
        findings += memory_findings(loaded.spec)


def compile_placed(placed: PlacedFabric, other: Build | None = None) -> Build:
    """Compile a fabric that is on its hardware.

    Args:
        placed: the fabric.
        other: another plane, whose tables are used if the ports are the same.

    Raises:
        InputError: a step failed, with all problems of that step.
    """
    installed = install(placed)
    if other is not None and same_ports(installed, other):
        routed = RoutedFabric(installed, other.topology, other.tables, other.forwarding)
        build = build_of(routed)
    else:
        build = with_fitted_weights(build_of(route(installed)), installed)
    check_limits(build, installed.loaded, placed.inventory)
    return build


def with_cables(placed: PlacedFabric) -> CabledFabric:
    """Return a fabric on its hardware with its cables, as its build would have it, without tables.

    Raises:
        InputError: the fabric cannot be installed so, with all problems of the step.
    """
    installed = install(placed)
    return CabledFabric(
        name=placed.loaded.spec.name,
        topology=installed.topology,
        wiring=installed.wiring,
        hardware=installed.hardware,
        addressing=installed.addressing,
    )


def install(placed: PlacedFabric) -> InstalledFabric:
    """Return the part of a fabric that is installed and works, and the policy that it can have.

    Blocks of addresses and numbers are those of the whole fabric.

    Raises:
        InputError: cables are too long, `dead_links` are no links, nodes are cut off from others,
            or the policy does not suit the fabric as it is wired.
    """
    loaded, inventory = placed.loaded, placed.inventory
    routing = reduced_policy(loaded.spec, inventory)
    hardware = placed.hardware() if loaded.inventory or loaded.plane else None
    addressing = plan_addresses(
        loaded.spec, inventory, placed.topology, loaded.plane, placed.previous
    )
    damage = _checked_damage(placed, hardware)
    hardware, allocations = _with_numbers(placed, routing, hardware, addressing)
    topology, wiring = placed.topology, placed.wiring
    if damage:
        topology, wiring = remaining_fabric(topology, wiring, damage)
        hardware = with_numbers_of_whole(hardware, placed.wiring, wiring) if hardware else None
        with loaded.stage():
            require_connected(topology, wiring.names, inventory)
    module = modules_of(wiring, hardware) if routing.protect == "module" else None
    with loaded.stage() as findings:
        findings += balance_named(routing.balance).placed(topology, wiring)
        findings += module_findings(routing, module)
        if hardware and not loaded.plane:  # with several planes a word may name what another has
            findings += unknown_risk_findings(wiring, hardware)
    return InstalledFabric(
        placed=placed,
        routing=routing,
        topology=topology,
        wiring=wiring,
        hardware=hardware,
        addressing=addressing,
        damage=damage,
        allocations=allocations,
        module=module,
    )


def _checked_damage(placed: PlacedFabric, hardware: Hardware | None) -> Damage:
    """Return what of a fabric is missing.

    Raises:
        InputError: cables are too long, `dead_links` are no links, or a link of a whole fabric
            needs more fibres than a trunk has.
    """
    with placed.loaded.stage() as findings:
        if hardware and placed.inventory.racks:
            findings += too_long_findings(placed.wiring, hardware)
        damage = damage_of(placed.inventory, placed.wiring)
        if hardware and not damage:
            require_trunks(placed.wiring, hardware)
    return damage


def _with_numbers(
    placed: PlacedFabric,
    routing: RoutingSpec,
    hardware: Hardware | None,
    addressing: Addressing,
) -> tuple[Hardware | None, Allocations]:
    """Give a whole fabric its numbers; those of its previous build stay.

    Returns:
        The hardware with the numbers on labels, and all numbers.

    Raises:
        InputError: a link is longer than every cable in stock.
    """
    spec = placed.loaded.spec
    pools = spec.addressing.links, spec.addressing.links6
    whole = WholeFabric(
        wiring=placed.wiring,
        hardware=hardware,
        addressing=addressing,
        hosts=placed.host_numbers(),
        links=links_in(pools, balance_named(routing.balance).forwarding.marks),
        as_numbers=placed.as_numbers(),
        base=_base(spec.base) | _as_numbers(placed.inventory),
    )
    before = placed.previous.allocations if placed.previous else Allocations()
    with placed.loaded.stage():
        return allocate(whole, before)


def route(installed: InstalledFabric) -> RoutedFabric:
    """Compute the tables: minimal routes, then alternates and repairs, then the balance's changes.

    Packets that take an alternate or a repair follow minimal routes from the next switch on.

    Raises:
        InputError: a damaged fabric is too large for a search, or its packets are to be marked; or
            the balance of another package fails.
    """
    placed, routing, damage = installed.placed, installed.routing, installed.damage
    topology, wiring = installed.topology, installed.wiring
    tables = minimal_tables(placed.topology, placed.wiring)  # egress class k is the k-th link
    if damage:
        tables, topology = damaged_tables(tables, placed.wiring, damage, topology, wiring)
    forwarding = routing.forwarding(installed.loaded.spec.topology.q, topology.family)
    with installed.loaded.stage():
        if damage:
            require_searchable(topology, forwarding, routing.balance)
        if forwarding.marks:
            require_onward(wiring, routing.balance)
    tables = choices(
        tables, topology, wiring, forwarding, whole=not damage, module=installed.module
    )
    with installed.loaded.stage():
        tables, forwarding = balance_tables(routing.balance, tables, forwarding, topology, wiring)
    return RoutedFabric(installed, topology, tables, forwarding)


def build_of(routed: RoutedFabric) -> Build:
    """Put the tables and all that reports and controllers need of the spec into a build."""
    installed, topology = routed.installed, routed.topology
    spec, routing = installed.loaded.spec, installed.routing
    inventory = installed.placed.inventory
    return Build(
        name=spec.name,
        balance=routing.balance,
        forwarding=routed.forwarding,
        policy=_share_policy(routing, topology.family) | _reduced_policy(spec.routing, routing),
        inputs=installed.loaded.inputs,
        topology=topology,
        wiring=installed.wiring,
        addressing=installed.addressing,
        tables=routed.tables,
        hardware=installed.hardware,
        base=_base(spec.base) | _as_numbers(inventory),
        vars=spec.vars,
        node_vars=_node_vars(inventory),
        allocations=installed.allocations,
        systems=vertex_systems(installed.wiring.names, spec, inventory),
        control=control_options(spec),
        disabled_ports={
            node.name: node.disabled_ports
            for node in inventory.nodes
            if node.disabled_ports and node.name in installed.wiring.names
        },
    )


def with_fitted_weights(build: Build, installed: InstalledFabric) -> Build:
    """Return the build with weights that are fitted to the demand, if the policy names one.

    Raises:
        InputError: the demand does not fit the fabric.
    """
    routing, loaded = installed.routing, installed.loaded
    if not routing.demand:
        return build
    from compilers.demand.fitted_tables import fit_to_demand  # few fabrics have a demand

    largest = share_value(routing.largest_share, loaded.spec.topology.q or 0)
    with loaded.stage():
        return fit_to_demand(build, loaded.demand, float(largest))


def check_limits(build: Build, loaded: LoadedFabric, inventory: Inventory) -> None:
    """Pass when node types can hold the tables, and systems can write them.

    Args:
        build: the tables.
        loaded: the files, for messages.
        inventory: the node types; it may lack nodes of the build.

    Raises:
        InputError: they cannot.
    """
    has_ipv6 = build.addressing.ipv6 is not None
    with loaded.stage() as findings:
        findings += capacity_findings(
            build.tables, build.wiring, inventory, has_ipv6, build.systems
        )
        try:
            findings += render_findings(build)
        except InputError as error:
            # `capacity_findings` has found where `ecmp_width` is too small, node by node.
            others = (each for each in error.problems if not each.key.endswith(".ecmp_width"))
            raise InputError(others) from None


def same_ports(installed: InstalledFabric, other: Build) -> bool:
    """Whether links use the same ports in both builds, and the same modules if these matter."""
    if not installed.wiring.same_ports(other.wiring):
        return False
    if installed.module is None:
        return True
    modules = modules_of(other.wiring, other.hardware)
    return modules is not None and np.array_equal(installed.module, modules)


def _base(base: BaseSpec) -> dict[str, Any]:
    """Return the section `base` of a spec as JSON data, without defaults."""
    return base.model_dump(mode="json", exclude_defaults=True) if base.model_fields_set else {}


def _as_numbers(inventory: Inventory) -> dict[str, dict[str, int]]:
    """Return the AS numbers that the inventory gives nodes, by name, as a part of `Build.base`."""
    numbers = {node.name: node.asn for node in inventory.nodes if node.asn}
    return {NODE_ASNS: numbers} if numbers else {}


def _node_vars(inventory: Inventory) -> dict[str, dict[str, Any]]:
    """Return the variables of nodes by name. A node's variables go before those of its group."""
    return {
        node.name: (inventory.groups[node.group] if node.group else {}) | node.vars
        for node in inventory.nodes
        if node.group or node.vars
    }


def module_findings(routing: RoutingSpec, module: NDArray[np.int32] | None) -> Iterator[Finding]:
    """Yield a finding if modules are to be protected and no switch has several.

    Args:
        routing: the policy.
        module: int32[S, K], the module of each link; None where modules are unknown.
    """
    if routing.protect == "module" and (module is None or not uses_several_modules(module)):
        required = "`protect: none`, `link` or `node`, or an inventory with node types of several"
        todo = "a module is a block of ports: `modules: 4, count: 8` are four of eight"
        path = ("routing", "protect")
        yield Finding(path, f"{required} modules, over which links can go", "module", todo)


def _reduced_policy(spec: RoutingSpec, routing: RoutingSpec) -> dict[str, str]:
    """Return the part of the spec's policy that `on_missing` has reduced, as asked, for reports."""
    return {
        f"asked_{key}": getattr(spec, key)
        for key in LEAST_POLICY
        if getattr(spec, key) not in (None, getattr(routing, key))
    }


def _share_policy(routing: RoutingSpec, family: str) -> dict[str, str]:
    """Return the part of the policy by which shares were computed, for reports.

    The shares themselves are the weights in the tables.
    """
    if not balance_named(routing.balance).forwarding.has_alternates:
        return {}
    shares = {
        "minimal_share": routing.minimal_share,
        "disjoint": "edge" if routing.edge_disjoint(family) else "none",
    }
    if routing.adjacent != "minimal":
        shares["adjacent"] = routing.adjacent
    if routing.transit != "minimal":
        shares["transit"] = routing.transit
    if routing.demand:
        shares |= {"demand": routing.demand, "largest_share": routing.largest_share}
    return shares
