"""The hosts that a file lists (`hosts: FILE` in the inventory), at the nodes that the file names.

`compilers.wiring.placement` calls these functions before and after it places nodes.
"""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING

from compilers.wiring.vertex_nodes import node_indexes
from inventory.problems import Finding, Refused

if TYPE_CHECKING:  # pydantic is slow to import, and a build is read without it
    from inventory.hosts import Host
    from inventory.model import Inventory


def with_hosts_of_file(inventory: Inventory) -> Inventory:
    """Put the hosts of the inventory's file at their nodes, and count those of each node."""
    if not inventory.hosts:
        return inventory
    hosts_of: dict[str, list[Host]] = defaultdict(list)
    for row in inventory.hosts:
        hosts_of[row.switch].append(row.host)
    nodes = []
    for node in inventory.nodes:
        hosts = tuple(hosts_of[node.name])
        nodes.append(node.model_copy(update={"hosts": hosts, "host_count": len(hosts)}))
    return inventory.model_copy(update={"nodes": tuple(nodes)})


def require_switches_of_hosts(inventory: Inventory, vertex_count: int) -> None:
    """Pass when all hosts of the hosts file are at nodes that are vertices or planned.

    Raises:
        Refused: a host is at another node, or has the name of a node.
    """
    from inventory.hosts import switch_mistakes

    if not inventory.hosts:
        return
    used = {inventory.nodes[i].name for i in node_indexes(vertex_count, inventory)}
    used |= {node.name for node in inventory.nodes if node.state == "planned"}
    node_names = [node.name for node in inventory.nodes]
    findings = [
        Finding(("hosts",), mistake.required, mistake.given, mistake.todo, row=(row.file, row.line))
        for row, mistake in switch_mistakes(inventory.hosts, used, node_names)
    ]
    if findings:
        raise Refused(findings)
