"""The compiler: one visible list of passes, each a pure function of the passes before it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from compilers.cabling.cable_plan import Cabled, numbered, too_long
from compilers.cabling.panel_plan import require_trunks
from compilers.capacity import over_capacity
from compilers.memory_bound import beyond_memory
from compilers.policy_support import affordable, beyond_targets, misnamed, require_targets
from compilers.routing.choose import choices, require_searchable
from compilers.routing.damaged_tables import damaged_tables
from compilers.routing.marked_spread import require_onward
from compilers.routing.minimal_routes import minimal
from compilers.spec.balances import balance_named
from compilers.spec.fabric_file import LoadedFabric, require_one_plane
from compilers.spec.fabric_spec import BaseSpec, RoutingSpec
from compilers.spec.policy import share
from compilers.tables.build import Build
from compilers.tables.intermediate_form import Tables
from compilers.topology.labelled_graph import Topology
from compilers.wiring.addressing import OWN, Addressing, plan
from compilers.wiring.damage import Damage, damage_of, remaining, require_connected
from compilers.wiring.hardware import Hardware
from compilers.wiring.placed_fabric import Placed, place_fabric
from compilers.wiring.shared_risk import modules_of, several_modules, unknown_risks
from compilers.wiring.wiring import Wiring
from inventory.model import Inventory
from inventory.problems import Finding


def compile_fabric(loaded: LoadedFabric) -> Build:
    """Spec and inventory to tables.

    Raises:
        InputError: memory cannot hold the routes, or the inventory cannot hold the fabric; every
            problem of the pass at once. Also for a fabric of several planes
            (`compilers.planes.compile_planes`).
    """
    require_one_plane(loaded)
    loaded.refuse(beyond_memory(loaded.spec))
    with loaded.reported(beyond_targets(loaded.spec)):
        placed = place_fabric(loaded)
    return compile_placed(placed)


@dataclass(frozen=True, slots=True, eq=False)
class Stages:
    """A fabric between two passes: what is there of it by then."""

    asked: Placed
    """The fabric on its hardware, as it was placed."""
    other: Build | None
    """Another plane, as for `compile_placed`."""
    routing: RoutingSpec
    """What targets and node types can do of the policy."""
    inventory: Inventory
    topology: Topology
    """Of what is installed and works, as are `wiring` and `hardware`."""
    wiring: Wiring
    damage: Damage | None = None
    """What is not installed or does not work."""
    hardware: Hardware | None = None
    addressing: Addressing | None = None
    module: NDArray[np.int32] | None = None
    """Of each link, where the policy protects against a module's death.

    Else None: other orders are those of links and nodes alone.
    """
    tables: Tables | None = None
    build: Build | None = None

    @property
    def loaded(self) -> LoadedFabric:
        """Spec and inventory."""
        return self.asked.loaded

    @property
    def passes(self) -> tuple[Pass, ...]:
        """What follows `PLACED`: another plane's tables, if links take the same ports, or own."""
        alike = self.other is not None and _alike(self.wiring, self.module, self.other)
        return AS_THE_OTHER if alike else OF_ITS_OWN


def compile_placed(placed: Placed, other: Build | None = None) -> Build:
    """A fabric on its hardware to tables.

    Args:
        placed: the fabric.
        other: another plane, whose tables serve where the ports are the same.

    Raises:
        InputError: every problem of the pass at once.
    """
    made = _installed(placed, other)
    for each in made.passes:
        made = each(made)
    assert made.build is not None  # noqa: S101
    return made.build


def cabled(placed: Placed) -> Cabled:
    """A fabric on its hardware as its build has it, without tables.

    Raises:
        InputError: every problem of the pass at once.
    """
    made = _installed(placed, None)
    assert made.addressing is not None  # noqa: S101
    return Cabled(
        name=placed.loaded.spec.name,
        topology=made.topology,
        wiring=made.wiring,
        hardware=made.hardware,
        addressing=made.addressing,
    )


def _installed(placed: Placed, other: Build | None) -> Stages:
    routing = affordable(placed.loaded.spec, placed.inventory)
    there = placed.inventory, placed.topology, placed.wiring
    made = Stages(placed, other, routing, *there)
    for each in PLACED:
        made = each(made)
    return made


def with_hardware(made: Stages) -> Stages:
    """What nodes are and where, if that is known."""
    if not (made.loaded.inventory or made.loaded.plane):
        return made
    return replace(made, hardware=made.asked.hardware())


def with_addresses(made: Stages) -> Stages:
    """Addresses of the whole fabric, damaged or not."""
    loaded = made.loaded
    return replace(made, addressing=plan(loaded.spec, made.inventory, made.topology, loaded.plane))


def without_damage(made: Stages) -> Stages:
    """The fabric that is left where links, nodes or ports are missing."""
    wiring, hardware, inventory = made.wiring, made.hardware, made.inventory
    long = too_long(wiring, hardware) if hardware and inventory.racks else ()
    with made.loaded.reported(long):
        damage = damage_of(inventory, wiring)
        if hardware and not damage:
            require_trunks(wiring, hardware)
    if not damage:
        return replace(made, damage=damage)
    topology, wiring = remaining(made.topology, wiring, damage)
    hardware = numbered(hardware, made.wiring, wiring) if hardware else None
    with made.loaded.reported():
        require_connected(topology, wiring.names, inventory)
    return replace(made, damage=damage, topology=topology, wiring=wiring, hardware=hardware)


def with_modules(made: Stages) -> Stages:
    """The module of each link; and whether the policy fits the fabric as it is wired."""
    loaded, wiring, hardware = made.loaded, made.wiring, made.hardware
    loaded.refuse(balance_named(made.routing.balance).placed(made.topology, wiring))
    protected = made.routing.protect == "module"
    module = modules_of(wiring, hardware) if protected else None
    loaded.refuse(without_modules(made.routing, module))
    if hardware and not loaded.plane:
        loaded.refuse(unknown_risks(wiring, hardware))
    return replace(made, module=module)


def with_minimal_routes(made: Stages) -> Stages:
    """Minimal routes of what is there. Egress class k is the k-th link: so the wiring is first."""
    whole, topology = made.asked.wiring, made.topology
    tables = minimal(made.asked.topology, whole)
    if made.damage:
        tables, topology = damaged_tables(tables, whole, made.damage, topology, made.wiring)
    return replace(made, tables=tables, topology=topology)


def as_the_other_plane(made: Stages) -> Stages:
    """The tables of another plane, whose weights fit the demand already."""
    assert made.other is not None  # noqa: S101
    return replace(made, tables=made.other.tables, topology=made.other.topology)


def with_alternates(made: Stages) -> Stages:
    """Alternates and repair: they keep to what is minimal from the next switch on."""
    assert made.tables is not None  # noqa: S101
    topology, wiring = made.topology, made.wiring
    policy = made.routing.policy(made.loaded.spec.topology.q, topology.family)
    with made.loaded.reported():
        if made.damage:
            require_searchable(topology, policy, made.routing.balance)
        if policy.marks:
            require_onward(wiring, made.routing.balance)
    tables = choices(made.tables, topology, wiring, policy, not made.damage, made.module)
    balance = balance_named(made.routing.balance)
    return replace(made, tables=balance.chosen(tables, topology, wiring))


def as_build(made: Stages) -> Stages:
    """All of it, with what reports and controllers need of the spec."""
    spec, routing, inventory = made.loaded.spec, made.routing, made.inventory
    assert made.tables is not None and made.addressing is not None  # noqa: S101, PT018
    build = Build(
        name=spec.name,
        balance=routing.balance,
        protect=routing.protect,
        policy=_shares(routing, made.topology.family) | _asked(spec.routing, routing),
        inputs=made.loaded.inputs,
        topology=made.topology,
        wiring=made.wiring,
        addressing=made.addressing,
        tables=made.tables,
        hardware=made.hardware,
        base=_base(spec.base) | _own_numbers(inventory),
        vars=spec.vars,
        node_vars=_node_vars(inventory),
    )
    return replace(made, build=build)


def with_fitted_weights(made: Stages) -> Stages:
    """Weights that fit a demand, where one is named."""
    if not made.routing.demand or made.build is None:
        return made
    from compilers.demand.fitted_tables import with_demand  # few fabrics have a demand

    largest = share(made.routing.largest_share, made.loaded.spec.topology.q or 0)
    with made.loaded.reported():
        build = with_demand(made.build, made.loaded.demand, float(largest))
    return replace(made, build=build)


def within_limits(made: Stages) -> Stages:
    """The same, if node types can hold the tables and targets can write them."""
    assert made.build is not None  # noqa: S101
    build, targets = made.build, made.loaded.spec.targets
    dual = build.addressing.ipv6 is not None
    beyond = over_capacity(build.tables, build.wiring, made.inventory, dual)
    with made.loaded.reported([*beyond, *misnamed(build, targets)]):
        require_targets(build, targets)
    return made


Pass = Callable[[Stages], Stages]
PLACED: tuple[Pass, ...] = (with_hardware, with_addresses, without_damage, with_modules)
OF_ITS_OWN: tuple[Pass, ...] = (
    with_minimal_routes,
    with_alternates,
    as_build,
    with_fitted_weights,
    within_limits,
)
AS_THE_OTHER: tuple[Pass, ...] = (as_the_other_plane, as_build, within_limits)
"""In their order; each is given what those before it have made."""


def _base(base: BaseSpec) -> dict[str, Any]:
    """What a spec says of `base`, as JSON; nothing is built where it says nothing."""
    return base.model_dump(mode="json", exclude_defaults=True) if base.model_fields_set else {}


def _own_numbers(inventory: Inventory) -> dict[str, dict[str, int]]:
    """The AS numbers of nodes by name, where any has one."""
    own = {node.name: node.asn for node in inventory.nodes if node.asn}
    return {OWN: own} if own else {}


def _node_vars(inventory: Inventory) -> dict[str, dict[str, Any]]:
    """The variables of the nodes that have any, by name: their own before those of their group."""
    return {
        node.name: (inventory.groups[node.group] if node.group else {}) | node.vars
        for node in inventory.nodes
        if node.group or node.vars
    }


def without_modules(routing: RoutingSpec, module: NDArray[np.int32] | None) -> Iterator[Finding]:
    """What is wrong with protection against a module's death where switches have one at most."""
    if routing.protect == "module" and (module is None or not several_modules(module)):
        required = "`protect: none`, `link` or `node`, or an inventory with node types of several"
        todo = "a module is a block of ports: `modules: 4, count: 8` are four of eight"
        path = ("routing", "protect")
        yield Finding(path, f"{required} modules, over which links can go", "module", todo)


def _alike(wiring: Wiring, module: NDArray[np.int32] | None, other: Build) -> bool:
    """Whether links take the ports, and where given the modules, of those of another build."""
    if not wiring.same_ports(other.wiring):
        return False
    if module is None:
        return True
    theirs = modules_of(other.wiring, other.hardware)
    return theirs is not None and np.array_equal(module, theirs)


def _asked(asked: RoutingSpec, done: RoutingSpec) -> dict[str, str]:
    """The requested policy that `on_missing` reduced, for reports."""
    words = ("balance", "protect", "minimal_share", "adjacent", "transit", "demand")
    return {
        f"asked_{word}": getattr(asked, word)
        for word in words
        if getattr(asked, word) not in (None, getattr(done, word))
    }


def _shares(routing: RoutingSpec, family: str) -> dict[str, str]:
    """The words of the policy by which shares were computed; these themselves are in the tables."""
    if not balance_named(routing.balance).alternates:
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
