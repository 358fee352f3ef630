"""The compiler: one visible list of passes, each a pure function of what stands before it."""

from __future__ import annotations

from compilers.addressing import plan
from compilers.build import Build
from compilers.cables import check_lengths, numbered
from compilers.capacity import check_capacity
from compilers.damage import damage_of, remaining, require_connected
from compilers.hardware import hardware
from compilers.load import LoadedFabric
from compilers.memory import require_memory
from compilers.phases import Stage, installed
from compilers.placement import clusters, settle
from compilers.routing.exceptions import with_exceptions
from compilers.routing.minimal import minimal
from compilers.routing.passes import choices, require_searchable
from compilers.spec import RoutingSpec
from compilers.topologies import FAMILIES
from compilers.wiring import generated_inventory, wire


def compile_fabric(loaded: LoadedFabric, stage: Stage | None = None) -> Build:
    """Spec and inventory to tables.

    Args:
        loaded: spec and inventory.
        stage: tables for the fabric as it is after a phase of its installation.

    Raises:
        InputError: memory cannot hold the routes, or the inventory cannot hold the fabric; every
            problem of the pass at once.
    """
    spec = loaded.spec
    require_memory(spec, loaded.locate)
    topology = FAMILIES[spec.topology.family].build(spec.topology.parameters())
    # Wiring before addressing: an inventory may name hosts and their MAC addresses.
    inventory = loaded.inventory or generated_inventory(topology, spec.hosts_per_node)
    # Placement before wiring: links to one rack share modules.
    inventory = settle(topology, inventory, loaded.locate)
    found = clusters(topology, inventory.placement.layout or "")
    wiring = wire(topology, inventory, spec.hosts_per_node, loaded.locate, found.position)
    known = hardware(inventory, wiring, found) if loaded.inventory or stage else None
    if known and stage:
        inventory = installed(inventory, wiring, known, topology.graph, stage)
    if known and inventory.racks:
        check_lengths(wiring, known, loaded.locate)
    addressing = plan(spec, inventory, topology, loaded.locate)
    # Routes last: egress class k is the k-th link, and the wiring says which port that is.
    tables = minimal(topology, wiring)
    damage = damage_of(inventory, wiring, loaded.locate)
    if damage:
        whole = wiring
        topology, wiring = remaining(topology, wiring, damage)
        known = numbered(known, whole, wiring) if known else None
        require_connected(topology, wiring.names, inventory, loaded.locate)
        tables, topology = with_exceptions(tables, damage, topology, wiring)
    # Alternates and repair keep to what is minimal from the next switch on.
    routing = spec.routing
    policy = routing.policy(spec.topology.q)
    if damage:
        require_searchable(topology, policy)
    tables = choices(tables, topology, wiring, policy, whole=not damage)
    check_capacity(tables, wiring, inventory, spec.addressing.ipv6 is not None, loaded.locate)
    return Build(
        name=spec.name,
        balance=routing.balance,
        protect=routing.protect,
        policy=_for_controllers(routing),
        inputs=loaded.inputs,
        topology=topology,
        wiring=wiring,
        addressing=addressing,
        tables=tables,
        hardware=known,
    )


def _for_controllers(routing: RoutingSpec) -> dict[str, str]:
    """What shifting weights at run time starts from; the weights themselves are in the tables."""
    if routing.balance == "minimal":
        return {}
    shares = {"minimal_share": routing.minimal_share, "disjoint": routing.disjoint}
    return shares | ({"threshold": routing.threshold} if routing.balance == "ugal-pf" else {})
