"""`wire`: give each vertex of a topology its node, and each link and host its ports.

A compile calls it (`placed_fabric`); the result is a `Wiring`. A *vertex* is a switch by its number
in the graph.

Link k of a switch leads to its k-th neighbour, in ascending order. On a node without modules the
k-th link takes the k-th fabric port; where there are racks, links to one rack take consecutive
ports; over several modules links are spread (`port_assignment`). Disabled ports are avoided while
spare ones are left. The same topology and inventory give the same wiring on every machine.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from compilers.spec.allocations import ASN, AllocatedNumbers
from compilers.spec.installed import InstalledPlane
from compilers.topology.labelled_graph import Topology
from compilers.wiring.as_numbers import planned_as_numbers
from compilers.wiring.fixed_cables import lines_of_hosts, unequal_port_findings
from compilers.wiring.host_names import all_host_names
from compilers.wiring.plane_numbers import first_datapath_id
from compilers.wiring.port_plan import PortPlanner
from compilers.wiring.type_ports import SwitchPorts
from compilers.wiring.vertex_nodes import node_indexes
from compilers.wiring.wiring import Wiring
from compilers.wiring.wiring_checks import PlacedNodes
from inventory.asn_range import PRIVATE_AS
from inventory.problems import Refused

if TYPE_CHECKING:  # pydantic is slow to import, and a build is read without it
    from inventory.model import Inventory


def wire(
    topology: Topology,
    inventory: Inventory,
    hosts_per_node: int,
    position: NDArray[np.int32] | None = None,
    plane: int = 0,
    first_asn: int = PRIVATE_AS,
    installed: InstalledPlane | None = None,
) -> Wiring:
    """Give every vertex its node, and every link and host its ports.

    Args:
        topology: the fabric graph.
        inventory: nodes and their types.
        hosts_per_node: P; vertices that are not endpoints get no hosts.
        position: int32[S], the order of links to one rack; None for the order of vertices.
        plane: the number of the plane, from 1; 0 if there is only one. The datapath ids of nodes
            that have none in the inventory begin with it.
        first_asn: the AS number of vertex 0 of a new fabric, if the inventory does not give one.
        installed: links and hosts that keep their ports, if these work.

    Raises:
        Refused: nodes have too few ports, names or numbers of the inventory are also given to
            other nodes or hosts, cables are no links, or links join ports of different speeds or
            lanes.
    """
    placed = PlacedNodes.of(inventory, node_indexes(topology.graph.order, inventory))
    nodes, first_id = placed.nodes, first_datapath_id(plane)
    switches = SwitchPorts.of_nodes(inventory, nodes)
    counts = [inventory.host_count(node, hosts_per_node) for node in nodes]
    hosts = np.where(topology.endpoints, counts, 0)
    places = [node.host_places(int(hosts[v])) for v, node in enumerate(nodes)]
    planner = PortPlanner(
        topology,
        inventory=inventory,
        placed_nodes=placed,
        switches=switches,
        host_places=places,
        hosts_per_node=hosts_per_node,
    )
    ports = planner.plan(position, installed)
    host_names = all_host_names(inventory.host_names, placed, places, hosts_per_node)
    installed_asns = installed.allocations.of(ASN) if installed else AllocatedNumbers()
    as_numbers = planned_as_numbers(first_asn, [node.asn for node in nodes], installed_asns)
    far = topology.graph.padded()
    far_port = np.zeros_like(ports.links)
    far_port[far >= 0] = topology.graph.reverse_values(ports.links[far >= 0])
    findings = [
        *ports.findings,
        *placed.pattern_name_findings(host_names, hosts_per_node, inventory.host_names),
        *placed.shortage_findings(ports.short, installed is not None),
        *placed.host_count_findings(hosts),
        *placed.name_clash_findings(host_names, hosts_per_node, lines_of_hosts(inventory)),
        *placed.number_clash_findings(
            "datapath_id", "a datapath id", range(first_id, first_id + len(nodes))
        ),
        *placed.number_clash_findings("asn", "an AS number", as_numbers),
    ]
    # Ports are compared only where every link has one.
    if not findings:
        findings += unequal_port_findings(ports.links, far, far_port, placed, switches)
    if findings:
        raise Refused(findings)
    return Wiring(
        names=tuple(node.name for node in nodes),
        management=tuple(str(node.management or "") for node in nodes),
        host_names=host_names,
        datapath_id=np.array(
            [node.datapath_id or first_id + v for v, node in enumerate(nodes)], np.uint64
        ),
        port=ports.links,
        far=far,
        far_port=far_port,
        host_port=ports.hosts,
        node_type=switches.node_type,
        type_names=tuple(inventory.node_types),
        port_names=tuple(ports_of_type.names for ports_of_type in switches.types),
    )
