"""Checks of the inventory's nodes against the vertices of the topology that they are placed at.

They find nodes with too few ports or too many hosts, and names and numbers of the inventory that
other nodes and hosts get by default. `compilers.wiring.wire` runs them.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from inventory.names import NAME
from inventory.problems import Finding, KeyPath, shown

if TYPE_CHECKING:  # pydantic is slow to import, and a build is read without it
    from inventory.model import Inventory, Node


MORE_PORTS = "choose a type with more ports, or lower hosts_per_node or the topology's size"
"""What to do about too few ports for links."""
MORE_HOST_PORTS = "give the type more ports with `role: host` or `any`, or lower hosts_per_node"
"""What to do about too few ports for hosts only."""
OTHER_VERTICES = "nodes keep the vertices of the earlier build, without it others may fit"
"""What to do about too few ports where nodes have the vertices of an earlier build."""


@dataclass(frozen=True, slots=True)
class Shortage:
    """How many ports a node has for a vertex, and how many the vertex needs."""

    ports: int
    """The number of ports of the node's type."""
    host_only: tuple[str, ...]
    """The names of the ports that only hosts may take."""
    links: int
    """The number of links that got a port."""
    links_needed: int
    """The number of links."""
    hosts: int
    """The number of hosts that got a port."""
    hosts_needed: int
    """The number of hosts."""

    def missing(self) -> str:
        """Return in words how many ports are missing, and for what."""
        uses = []
        if self.links < self.links_needed:
            uses.append(f"{self.links_needed - self.links} for links")
        if self.hosts < self.hosts_needed:
            uses.append(f"{self.hosts_needed - self.hosts} for hosts")
        return " and ".join(uses)

    def ports_for_hosts(self) -> str:
        """Return in words which ports are for hosts, "" if hosts have enough."""
        if self.hosts >= self.hosts_needed:
            return ""
        if not self.host_only:
            return " (hosts get those that links leave)"
        names = (
            self.host_only[0]
            if len(self.host_only) == 1
            else f"{self.host_only[0]} to {self.host_only[-1]}"
        )
        return f" ({names} for hosts only)"


@dataclass(frozen=True, slots=True)
class PlacedNodes:
    """The node of each vertex, with its index in the inventory for messages."""

    nodes: Sequence[Node]
    """The nodes in vertex order."""
    indexes: Sequence[int]
    """The index of each node in the inventory's list of nodes."""
    generated: bool = False
    """Whether the inventory has `generate`, which findings are about then."""

    @classmethod
    def of(cls, inventory: Inventory, indexes: Sequence[int]) -> PlacedNodes:
        """Return the nodes with these indexes in the inventory's list."""
        nodes = [inventory.nodes[i] for i in indexes]
        return cls(nodes, indexes, inventory.generate is not None)

    def finding(self, vertex: int, path: KeyPath, required: str, given: str, todo: str) -> Finding:
        """Return a finding about the value at a path below the node of a vertex."""
        node_path: KeyPath = ("generate",) if self.generated else ("nodes", self.indexes[vertex])
        return Finding((*node_path, *path), required, given, todo)

    def shortage_findings(
        self, shortages: dict[int, Shortage], installed: bool = False
    ) -> Iterator[Finding]:
        """Yield findings about vertices whose node has too few ports, in vertex order.

        Vertices with nodes of one type and the same shortage get one finding.

        Args:
            shortages: by vertex.
            installed: whether nodes have the vertices of an earlier build.
        """
        vertices_alike = Counter((self.nodes[v].type, s) for v, s in shortages.items())
        for vertex, shortage in sorted(shortages.items()):
            node = self.nodes[vertex]
            count = vertices_alike.pop((node.type, shortage), 0)
            if not count:  # reported with an earlier vertex
                continue
            others = f" and {count - 1:,} more" if count > 1 else ""
            links_fit = shortage.links >= shortage.links_needed
            todo = MORE_HOST_PORTS if links_fit else MORE_PORTS
            yield self.finding(
                vertex,
                ("type",),
                f"{shortage.links_needed} ports for links and {shortage.hosts_needed} for hosts",
                f"{node.type} with {shortage.ports}{shortage.ports_for_hosts()}, "
                f"{shortage.missing()} missing at {node.name} (vertex {vertex}){others}",
                f"{todo}; {OTHER_VERTICES}" if installed else todo,
            )

    def host_count_findings(self, hosts: NDArray[np.int64]) -> Iterator[Finding]:
        """Yield findings about nodes that list more hosts than their vertex has.

        Args:
            hosts: int64[S], how many hosts each vertex has.
        """
        for vertex, node in enumerate(self.nodes):
            listed = sum(not host.absent for host in node.hosts)
            if listed > hosts[vertex]:
                yield self.finding(
                    vertex,
                    ("hosts",),
                    f"at most {hosts[vertex]} hosts at this vertex",
                    f"{listed} at {node.name} (vertex {vertex})",
                    "raise hosts_per_node or host_count, or remove hosts",
                )

    def pattern_name_findings(
        self, names: Sequence[str], per_node: int, pattern: str | None
    ) -> Iterator[Finding]:
        """Yield findings about names by a pattern that are no host names, or that two hosts get.

        Args:
            names: the name of each host, vertex by vertex.
            per_node: the number of names of a vertex.
            pattern: of the inventory; None without one.
        """
        if pattern is None:
            return
        node_of_name: dict[str, str] = {}
        for i, name in enumerate(names):
            node = self.nodes[i // per_node]
            if not NAME.fullmatch(name):
                required = "host names of at most 63 letters, digits and . _ -"
                needs_rack = "{rack}" in pattern and not node.rack
                todo = "give the node a rack" if needs_rack else "shorten the pattern"
                given = f"{shown(name)} at {node.name}"
                yield Finding(("host_names",), required, given, todo)
            elif (node_before := node_of_name.setdefault(name.lower(), node.name)) != node.name:
                required = "a name of its own for every host"
                given = f"{name} at {node_before} and at {node.name}"
                todo = "add a separator such as - between fields"
                yield Finding(("host_names",), required, given, todo)

    def name_clash_findings(
        self,
        host_names: Sequence[str],
        per_node: int,
        rows: Mapping[str | None, tuple[str, int]],
    ) -> Iterator[Finding]:
        """Yield findings about names of the inventory that are also a host's default name.

        Args:
            host_names: the name of each host, vertex by vertex.
            per_node: the number of names of a vertex.
            rows: the file of hosts and the line of each host in it, by the host's name; {} without
                such a file.
        """
        default_names: dict[str, int] = {}  # with the vertex of the host
        inventory_names: list[tuple[str, int, KeyPath]] = []
        for vertex, node in enumerate(self.nodes):
            inventory_names.append((node.name, vertex, ("name",)))
            for h in range(per_node):
                name = host_names[vertex * per_node + h]
                if h < len(node.hosts) and node.hosts[h].name:
                    inventory_names.append((name, vertex, ("hosts", h, "name")))
                else:
                    default_names[name] = vertex
        for name, vertex, path in inventory_names:
            vertex_of_host = default_names.get(name.lower())
            if vertex_of_host is None:
                continue
            required = "a name that no other node or host has"
            clash = f"{name}, which the host without a name at vertex {vertex_of_host} gets"
            todo = "choose another, or give that host a name"
            is_name_of_host = path[0] == "hosts"
            if is_name_of_host and name in rows:
                yield Finding(("hosts",), required, clash, todo, row=rows[name])
            else:
                yield self.finding(vertex, path, required, clash, todo)

    def number_clash_findings(
        self, key: str, noun: str, defaults: Sequence[int]
    ) -> Iterator[Finding]:
        """Yield findings about numbers of the inventory that another node gets by default.

        Args:
            key: the key of the number, such as datapath_id.
            noun: what the number is, in words.
            defaults: the number that each vertex gets if its node has none.
        """
        numbers: list[int | None] = [getattr(node, key) for node in self.nodes]
        vertex_by_default = {
            default: vertex
            for vertex, (number, default) in enumerate(zip(numbers, defaults, strict=True))
            if number is None
        }
        for vertex, number in enumerate(numbers):
            if number in vertex_by_default:
                node_without = self.nodes[vertex_by_default[number]].name
                text = f"{number:#x}" if key == "datapath_id" else str(number)
                yield self.finding(
                    vertex,
                    (key,),
                    f"{noun} of its own",
                    f"{text}, which {node_without} gets as it has none",
                    f"choose another, or give {node_without} one",
                )
