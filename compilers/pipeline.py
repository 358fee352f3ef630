"""The compiler: one visible list of passes, each a pure function of the passes before it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from compilers.cabling.cable_plan import numbered, too_long
from compilers.cabling.phases import Stage, installed
from compilers.capacity import over_capacity
from compilers.estimates import beyond_memory
from compilers.policy_support import affordable, beyond_targets, misnamed, require_targets
from compilers.routing.exact_rows import with_exceptions
from compilers.routing.policy_passes import choices, require_searchable
from compilers.routing.routes_by_family import minimal
from compilers.spec.balance import balance_named
from compilers.spec.fabric_file import LoadedFabric, require_one_plane
from compilers.spec.fabric_spec import BaseSpec, RoutingSpec
from compilers.spec.share import share
from compilers.tables.build import Build
from compilers.tables.intermediate_form import Tables
from compilers.topology.labelled_graph import Topology
from compilers.wiring.addressing import plan
from compilers.wiring.as_numbers import OWN
from compilers.wiring.damage import Damage, damage_of, remaining, require_connected
from compilers.wiring.placed_fabric import Placed, place_fabric
from compilers.wiring.shared_risk import modules_of, several_modules, unknown_risks
from compilers.wiring.wiring import Wiring
from inventory.model import Inventory
from inventory.problems import Finding


def compile_fabric(loaded: LoadedFabric, stage: Stage | None = None) -> Build:
    """Spec and inventory to tables.

    Args:
        loaded: spec and inventory.
        stage: tables for the fabric as it is after a phase of its installation.

    Raises:
        InputError: memory cannot hold the routes, or the inventory cannot hold the fabric; every
            problem of the pass at once. Also for a fabric of several planes
            (`compilers.planes.compile_planes`).
    """
    require_one_plane(loaded)
    loaded.refuse(beyond_memory(loaded.spec))
    with loaded.reported(beyond_targets(loaded.spec)):
        placed = place_fabric(loaded)
    return compile_placed(placed, stage)


def compile_placed(
    placed: Placed, stage: Stage | None = None, beside: Build | None = None
) -> Build:
    """A fabric on its hardware to tables.

    Args:
        placed: the fabric.
        stage: as for `compile_fabric`.
        beside: another plane, whose tables serve where the ports are the same.

    Raises:
        InputError: every problem of the pass at once.
    """
    loaded, inventory = placed.loaded, placed.inventory
    spec, routing = loaded.spec, affordable(loaded.spec, inventory)
    topology, wiring = placed.topology, placed.wiring
    given = bool(loaded.inventory or loaded.plane)
    known = placed.hardware() if given or stage else None
    if known and stage:
        inventory = installed(inventory, wiring, known, topology.graph, stage)
    addressing = plan(spec, inventory, topology, loaded.plane)
    with loaded.reported(too_long(wiring, known) if known and inventory.racks else ()):
        damage = damage_of(inventory, wiring)
    if damage:
        topology, wiring = remaining(topology, wiring, damage)
        known = numbered(known, placed.wiring, wiring) if known else None
        with loaded.reported():
            require_connected(topology, wiring.names, inventory)
    balance = balance_named(routing.balance)
    with loaded.reported(balance.placed(topology, wiring)):
        pass
    # Routes last: egress class k is the k-th link, and the wiring says which port that is.
    module = modules_of(wiring, known)
    with loaded.reported(without_modules(routing, module)):
        pass
    if known and not loaded.plane:
        with loaded.reported(unknown_risks(wiring, known)):
            pass
    if beside is not None and _alike(wiring, module, beside):
        tables, topology = beside.tables, beside.topology
    else:
        tables, topology = _tables(placed, routing, damage, topology, wiring, module)
    build = Build(
        name=spec.name,
        balance=routing.balance,
        protect=routing.protect,
        policy=_for_controllers(routing, topology.family) | _asked(spec.routing, routing),
        inputs=loaded.inputs,
        topology=topology,
        wiring=wiring,
        addressing=addressing,
        tables=tables,
        hardware=known,
        base=_base(spec.base) | _own_numbers(inventory),
        vars=spec.vars,
        node_vars=_node_vars(inventory),
    )
    if routing.demand and not (beside and tables is beside.tables):
        from compilers.demand.fitted_tables import with_demand  # few fabrics have a demand

        largest = share(routing.largest_share, spec.topology.q or 0)
        with loaded.reported():
            build = with_demand(build, loaded.demand, float(largest))
    dual = build.addressing.ipv6 is not None
    beyond = over_capacity(build.tables, wiring, inventory, dual)
    with loaded.reported([*beyond, *misnamed(build, spec.targets)]):
        require_targets(build, spec.targets)
    return build


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
    """Whether links take the ports and modules that they take in another build, as tables do."""
    theirs = modules_of(other.wiring, other.hardware)
    if module is None or theirs is None:
        return module is theirs and wiring.same_ports(other.wiring)
    return np.array_equal(module, theirs) and wiring.same_ports(other.wiring)


def _tables(
    placed: Placed,
    routing: RoutingSpec,
    damage: Damage,
    topology: Topology,
    wiring: Wiring,
    module: NDArray[np.int32] | None,
) -> tuple[Tables, Topology]:
    """The tables of what is there, and its topology with the diameter that it has."""
    tables = minimal(placed.topology, placed.wiring)
    if damage:
        tables, topology = with_exceptions(tables, damage, topology, wiring)
    # Alternates and repair keep to what is minimal from the next switch on.
    policy = routing.policy(placed.loaded.spec.topology.q, topology.family)
    if damage:
        with placed.loaded.reported():
            require_searchable(topology, policy)
    tables = choices(tables, topology, wiring, policy, not damage, module)
    return balance_named(routing.balance).chosen(tables, topology, wiring), topology


def _asked(asked: RoutingSpec, done: RoutingSpec) -> dict[str, str]:
    """The requested policy that `on_missing` reduced, for reports."""
    words = ("balance", "protect", "minimal_share", "adjacent", "transit", "demand")
    return {
        f"asked_{word}": getattr(asked, word)
        for word in words
        if getattr(asked, word) not in (None, getattr(done, word))
    }


def _for_controllers(routing: RoutingSpec, family: str) -> dict[str, str]:
    """What shifting weights at run time starts from; the weights themselves are in the tables."""
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
    return shares | ({"threshold": routing.threshold} if routing.balance == "ugal-pf" else {})
