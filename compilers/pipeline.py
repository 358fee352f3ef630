"""The compiler: one visible list of passes, each a pure function of what stands before it."""

from __future__ import annotations

from compilers.addressing import plan
from compilers.build import Build
from compilers.load import LoadedFabric
from compilers.routing.minimal import minimal
from compilers.topologies import FAMILIES
from compilers.wiring import generated_inventory, wire


def compile_fabric(loaded: LoadedFabric) -> Build:
    """Spec and inventory to tables.

    Raises:
        InputError: the inventory cannot hold the fabric; every problem of the pass at once.
    """
    spec = loaded.spec
    topology = FAMILIES[spec.topology.family].build(spec.topology.parameters())
    # Wiring before addressing: an inventory may name hosts and their MAC addresses.
    inventory = loaded.inventory or generated_inventory(topology, spec.hosts_per_node)
    wiring = wire(topology, inventory, spec.hosts_per_node, loaded.locate)
    addressing = plan(spec, inventory, topology, loaded.locate)
    # Routes last: egress class k is the k-th link, and the wiring says which port that is.
    tables = minimal(topology, wiring)
    return Build(
        name=spec.name,
        balance=spec.routing.balance,
        protect=spec.routing.protect,
        inputs=loaded.inputs,
        topology=topology,
        wiring=wiring,
        addressing=addressing,
        tables=tables,
    )
