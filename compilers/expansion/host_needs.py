"""The ports that the hosts of a new switch can have.

The links of a new switch take the first ports that links may take. Hosts can have the ports that
are left over.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache

from compilers.expansion.link_ports import LinkPorts
from compilers.topology.replicated_clusters import Expansion
from compilers.wiring.node_type_facts import NodeTypeFacts
from compilers.wiring.wiring import Wiring


@dataclass(frozen=True, slots=True)
class HostNeed:
    """The hosts of a new node, and the ports that they can have."""

    node_type: int
    """The number of its type."""
    hosts: int
    """How many hosts it is to have."""
    ports: tuple[int, ...]
    """The ports that are left over for hosts when its links have theirs: those that only hosts may
    have, then those of any role."""

    @property
    def lacks_ports(self) -> bool:
        """Whether it has fewer ports than hosts."""
        return len(self.ports) < self.hosts


def host_needs(
    link_ports: LinkPorts,
    expansion: Expansion,
    wiring: Wiring,
    types: Sequence[NodeTypeFacts],
    hosts: Sequence[int],
) -> list[HostNeed]:
    """Return what each new node needs for its hosts.

    Args:
        link_ports: the ports of the installed fabric that links may take.
        expansion: the larger fabric.
        wiring: the types of old nodes.
        types: the node types.
        hosts: the number of hosts of each new node.
    """

    @cache
    def host_ports(node_type: int, degree: int) -> tuple[int, ...]:
        """The ports for hosts of a new node with so many links."""
        roles, links = types[node_type].role, set(link_ports.ports_of_type[node_type][:degree])
        return tuple(
            port
            for host_role in ("host", "any")
            for port, role in enumerate(roles, 1)
            if role == host_role and port not in links
        )

    first_new = len(wiring.names)
    new_types = wiring.node_type[expansion.origin[first_new:]].tolist()
    degrees = expansion.topology.graph.degrees[first_new:].tolist()
    return [
        HostNeed(node_type, count, host_ports(node_type, degree))
        for node_type, degree, count in zip(new_types, degrees, hosts, strict=True)
    ]
