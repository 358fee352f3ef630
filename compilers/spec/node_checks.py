"""Checks of the inventory's nodes against the sizes and the settings in fabric.yaml.

`cross_checks.check_nodes` runs them, each for one rule, and gets a `Finding` for each mistake.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping
from ipaddress import ip_network
from typing import TYPE_CHECKING, Any

from compilers.spec.fabric_spec import BaseSpec, TopologySpec
from compilers.spec.target_names import SHIPPED_SYSTEMS, meant_target, system_names
from compilers.topology.families import check_topology, likely_family
from inventory.document_errors import well_formed
from inventory.problems import Finding, KeyPath, did_you_mean, shown

if TYPE_CHECKING:  # most fabrics name no inventory
    from inventory.inventory_file import ExaminedInventory
    from inventory.model import Inventory, NodeType, PortBlock

Data = Mapping[str, Any]
"""The content of fabric.yaml."""
PORT_NUMBER = re.compile(r"\{port(?:\*([0-9]+))?\}")
"""The number of a port in a pattern of names, perhaps with a factor: `{port}`, `{port*4}`."""
RAISE_OR_REMOVE_HOSTS = "raise hosts_per_node or remove hosts"
"""The remedy for a node with too many hosts."""


def node_findings(examined: ExaminedInventory, hosts: int, planes: int) -> Iterator[Finding]:
    """Yield findings about nodes with too many hosts, or in a plane that does not exist.

    Args:
        examined: the nodes that are well formed.
        hosts: `hosts_per_node`.
        planes: the number of planes.
    """
    for i, node in examined.nodes:
        if len(node.hosts) > hosts:
            required, todo = f"at most {hosts} a node (hosts_per_node)", RAISE_OR_REMOVE_HOSTS
            yield Finding(("nodes", i, "hosts"), required, str(len(node.hosts)), todo)
        if (node.plane or 1) > planes:
            required = f"a plane from 1 to {planes} (planes)"
            yield Finding(("nodes", i, "plane"), required, str(node.plane))
        if (node.host_count or 0) > hosts:
            yield _too_many_hosts(("nodes", i, "host_count"), hosts, node.host_count)


def host_count_findings(inventory: Inventory, hosts: int) -> Iterator[Finding]:
    """Yield findings about node types, groups and a file of hosts with too many hosts at a node."""
    for name, node_type in inventory.node_types.items():
        if (node_type.host_count or 0) > hosts:
            path: KeyPath = ("node_types", name, "host_count")
            yield _too_many_hosts(path, hosts, node_type.host_count)
    for name, values in inventory.groups.items():
        count = values.get("host_count")
        if type(count) is int and count > hosts:
            yield _too_many_hosts(("groups", name, "host_count"), hosts, count)
    hosts_at = Counter(row.switch for row in inventory.hosts)
    if not hosts_at:
        return
    switch, most = hosts_at.most_common(1)[0]
    if most > hosts:
        required = f"at most {hosts} at a switch (hosts_per_node of fabric.yaml)"
        todo = f"write hosts_per_node: {most}"
        yield Finding(("hosts",), required, f"{most} at {switch}", todo)


def _too_many_hosts(path: KeyPath, hosts: int, given: int | None) -> Finding:
    """Return the finding that a `host_count` is above `hosts_per_node`.

    Args:
        path: the key of the `host_count`.
        hosts: `hosts_per_node`.
        given: the `host_count`.
    """
    required = f"at most {hosts} (hosts_per_node of fabric.yaml)"
    return Finding(path, required, str(given), "raise hosts_per_node or lower host_count")


def plane_host_findings(inventory: Inventory) -> Iterator[Finding]:
    """Yield findings about hosts that only one of several planes would have.

    All planes have the same hosts.
    """
    stated: dict[KeyPath, object] = {}
    for i, node in enumerate(inventory.nodes):
        stated["nodes", i, "host_count"] = node.host_count
    for name, node_type in inventory.node_types.items():
        stated["node_types", name, "host_count"] = node_type.host_count
    for name, group in inventory.groups.items():
        stated["groups", name, "host_count"] = group.get("host_count")
    stated[("hosts",)] = "a file" if inventory.hosts else None
    for path, given in stated.items():
        if given is not None:
            yield Finding(path, "a fabric of one plane", f"{given} in one of several", "remove it")
    if inventory.host_names:
        given = shown(inventory.host_names)
        yield Finding(
            ("host_names",), "a fabric of one plane", given, "list the hosts of each node"
        )


def system_findings(inventory: Inventory) -> Iterator[Finding]:
    """Yield findings about systems that do not exist, of nodes or in patterns of port names."""
    stated: dict[KeyPath, str | None] = {}
    for name, node_type in inventory.node_types.items():
        stated["node_types", name, "system"] = node_type.system
    for i, node in enumerate(inventory.nodes):
        stated["nodes", i, "system"] = node.system
    for path, system in stated.items():
        if system and not _is_system(system):
            meant = meant_target(system, system_names())
            todo = f"did you mean {meant}?" if meant else ""
            yield Finding(path, f"one of {', '.join(system_names())}", shown(system), todo)
    for name, node_type in inventory.node_types.items():
        type_path: KeyPath = ("node_types", name)
        patterns = {type_path: node_type.names} | {
            (*type_path, "ports", b): block.names for b, block in enumerate(node_type.ports)
        }
        for path, names in patterns.items():
            for system in names:
                if not _is_system(system):
                    todo = did_you_mean(system, system_names())
                    required = f"one of {', '.join(system_names())}"
                    yield Finding((*path, "names", system), required, shown(system), todo)


def _is_system(name: str) -> bool:
    """Whether a name is that of an installed system; packages are listed only if it must be."""
    return name in SHIPPED_SYSTEMS or name in system_names()


def lane_findings(path: KeyPath, node_type: NodeType) -> Iterator[Finding]:
    """Yield findings about port names of a node type that count lanes.

    `{serdes}` in a name counts lanes, so all blocks need `lanes`. SONiC's names count lanes, so
    numbers in them must step by the lanes of a port, unless a platform file gives the names.
    """
    types_and_blocks: tuple[NodeType | PortBlock, ...] = (node_type, *node_type.ports)
    patterns = (pattern for named in types_and_blocks for pattern in named.names.values())
    counts_lanes = any("{serdes" in pattern for pattern in patterns)
    # By the path of the pattern, which several blocks may share: it gets one finding.
    sonic_findings: dict[KeyPath, Finding] = {}
    for b, block in enumerate(node_type.ports):
        block_path = (*path, "ports", b)
        if counts_lanes and block.lanes is None:
            todo = "say how many lanes a port has: `lanes: …`"
            yield Finding(block_path, "the key lanes, for {serdes} in names", "nothing", todo)
        pattern = block.names.get("sonic") or node_type.names.get("sonic", "")
        port_number = PORT_NUMBER.search(pattern)
        step = int(port_number[1] or 1) if port_number else 0
        if port_number and block.lanes and step != block.lanes and not node_type.platform:
            key = (*(block_path if "sonic" in block.names else path), "names", "sonic")
            required = f"numbers that follow the lanes, {block.lanes} a port"
            todo = "write Ethernet{serdes}, or name the switch's `platform` file"
            sonic_findings.setdefault(key, Finding(key, required, pattern, todo))
    yield from sonic_findings.values()


def management_findings(data: Data, inventory: Inventory) -> Iterator[Finding]:
    """Yield findings about management addresses that are not in the network of `base.management`.

    The network is that of the node's address, with the stated length. The gateway has to be in it.
    An IPv4 address has too few bits for a length that is meant for IPv6.
    """
    base = well_formed(BaseSpec, data.get("base", {}))
    management = base.management if base else None
    if management is None:
        return
    for i, node in enumerate(inventory.nodes):
        address = node.management
        if address is None:
            continue
        gateway = f" and {management.gateway}" if management.gateway else ""
        has_network = management.length <= address.max_prefixlen
        is_in_network = has_network
        if has_network and management.gateway:
            network = ip_network(f"{address}/{management.length}", strict=False)
            is_in_network = management.gateway in network
        if not is_in_network:
            required = (
                f"an address in one network with /{management.length}{gateway} (base.management)"
            )
            yield Finding(("nodes", i, "management"), required, str(address))


def plane_link_findings(inventory: Inventory) -> Iterator[Finding]:
    """Yield findings about cables and dead links between nodes of two planes."""
    plane = {node.name: node.plane or 1 for node in inventory.nodes}
    for key in ("cables", "dead_links"):
        for i, link in enumerate(getattr(inventory, key)):
            if link.a in plane and link.b in plane and plane[link.a] != plane[link.b]:
                ends = f"{link.a} in plane {plane[link.a]}, {link.b} in plane {plane[link.b]}"
                yield Finding((key, i), "both ends in one plane", ends)


def vertex_findings(data: Data, examined: ExaminedInventory, planes: int) -> Iterator[Finding]:
    """Yield findings about planes with too few nodes, and nodes at vertices that do not exist."""
    topology = well_formed(TopologySpec, data.get("topology"))
    if topology is None or check_topology(topology.family, topology.parameters()):
        return
    if not examined.nodes:  # without nodes, polarfab invents one for each vertex
        return
    likely_member = likely_family(topology.family, topology.parameters())
    vertices = likely_member[0].order(likely_member[1]) if likely_member else 0
    path: KeyPath = ("nodes",)
    for plane in range(1, planes + 1):
        in_plane = f" (plane {plane})" if planes > 1 else ""
        nodes = [(i, node) for i, node in examined.nodes if (node.plane or 1) == plane]
        if missing := max(vertices - len(nodes), 0):
            noun = "node" if missing == 1 else "nodes"
            todo = f"add {missing:,} {noun} or choose a smaller fabric"
            yield Finding(
                path, f"{vertices:,} nodes, one a vertex", f"{len(nodes):,}{in_plane}", todo
            )
        for i, node in nodes:
            if (node.vertex or 0) >= vertices:
                required = f"a vertex from 0 to {vertices - 1}"
                todo = "correct it, or leave it out for a spare node"
                yield Finding(("nodes", i, "vertex"), required, f"{node.vertex}{in_plane}", todo)
