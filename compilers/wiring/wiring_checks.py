"""Checks of nodes against the vertices they carry: ports, hosts, names and datapath ids."""

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
MORE_HOST_PORTS = "give the type more ports with `role: host` or `any`, or lower hosts_per_node"

OTHER_VERTICES = "nodes keep the vertices of the earlier build, without it others may fit"


@dataclass(frozen=True, slots=True)
class Shortage:
    """Ports that a node of a type has for a vertex, and those that it needs."""

    ports: int
    """All ports of the type."""
    own: tuple[str, ...]
    """The names of those that only hosts may take."""
    links: int
    """Ports that links got."""
    links_needed: int
    """Ports that links need."""
    hosts: int
    """Ports that hosts got."""
    hosts_needed: int
    """Ports that hosts need."""


def _for_hosts(s: Shortage) -> str:
    """Which ports are for hosts, where they are what is missing."""
    if s.hosts >= s.hosts_needed:
        return ""
    if not s.own:
        return " (hosts get those that links leave)"
    names = s.own[0] if len(s.own) == 1 else f"{s.own[0]} to {s.own[-1]}"
    return f" ({names} for hosts only)"


@dataclass(frozen=True, slots=True)
class Site:
    """The nodes in vertex order, and the place of each in the inventory.

    Nodes that are generated have no place of their own: findings are with what generates them.
    """

    nodes: Sequence[Node]
    placed: Sequence[int]
    generated: bool = False

    @classmethod
    def of(cls, inventory: Inventory, placed: Sequence[int]) -> Site:
        """The inventory's nodes at these places."""
        nodes = [inventory.nodes[i] for i in placed]
        return cls(nodes, placed, inventory.generate is not None)

    def finding(self, vertex: int, rest: KeyPath, required: str, given: str, todo: str) -> Finding:
        """A finding about the value at `rest` of the node at `vertex`."""
        front: KeyPath = ("generate",) if self.generated else ("nodes", self.placed[vertex])
        return Finding((*front, *rest), required, given, todo)

    def short_of_ports(
        self, shortages: dict[int, Shortage], installed: bool = False
    ) -> Iterator[Finding]:
        """Vertices whose node has too few ports, in vertex order; one of those of a type alike.

        installed: whether nodes have the vertices of an earlier build.
        """
        alike = Counter((self.nodes[vertex].type, s) for vertex, s in shortages.items())
        for vertex, s in sorted(shortages.items()):
            node = self.nodes[vertex]
            if (more := alike.pop((node.type, s), 0) - 1) < 0:
                continue
            missing = [
                f"{needed - ports} for {use}"
                for use, ports, needed in (
                    ("links", s.links, s.links_needed),
                    ("hosts", s.hosts, s.hosts_needed),
                )
                if ports < needed
            ]
            others = f" and {more:,} more" if more > 0 else ""
            todo = MORE_HOST_PORTS if s.links >= s.links_needed else MORE_PORTS
            yield self.finding(
                vertex,
                ("type",),
                f"{s.links_needed} ports for links and {s.hosts_needed} for hosts",
                f"{node.type} with {s.ports}{_for_hosts(s)}, {' and '.join(missing)} missing "
                f"at {node.name} (vertex {vertex}){others}",
                f"{todo}; {OTHER_VERTICES}" if installed else todo,
            )

    def hosts_beyond(self, hosts: NDArray[np.int64]) -> Iterator[Finding]:
        """Nodes that list more hosts than their vertex has."""
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

    def unusable_names(
        self, names: Sequence[str], per_node: int, pattern: str | None
    ) -> Iterator[Finding]:
        """Names by a pattern that are no host names, or that two hosts get."""
        if pattern is None:
            return
        first: dict[str, str] = {}
        for i, name in enumerate(names):
            node = self.nodes[i // per_node]
            if not NAME.fullmatch(name):
                required = "host names of at most 63 letters, digits and . _ -"
                rack = "{rack}" in pattern and not node.rack
                todo = "give the node a rack" if rack else "shorten the pattern"
                given = f"{shown(name)} at {node.name}"
                yield Finding(("host_names",), required, given, todo)
            elif (other := first.setdefault(name.lower(), node.name)) != node.name:
                required = "a name of its own for every host"
                given = f"{name} at {other} and at {node.name}"
                todo = "add a separator such as - between fields"
                yield Finding(("host_names",), required, given, todo)

    def clashing_names(
        self, host_names: Sequence[str], per_node: int, lines: Mapping[str | None, int]
    ) -> Iterator[Finding]:
        """Given names that are also the usual name of a host without one (h<vertex>).

        lines: of the file that has the hosts, by their names; empty where they are at nodes.
        """
        usual: dict[str, int] = {}
        given: list[tuple[str, int, KeyPath]] = []
        for vertex, node in enumerate(self.nodes):
            given.append((node.name, vertex, ("name",)))
            for h in range(per_node):
                name = host_names[vertex * per_node + h]
                if h < len(node.hosts) and node.hosts[h].name:
                    given.append((name, vertex, ("hosts", h, "name")))
                else:
                    usual[name] = vertex
        for name, vertex, rest in given:
            if (other := usual.get(name.lower())) is None:
                continue
            required = "a name that no other node or host has"
            clash = f"{name}, which the host without a name at vertex {other} gets"
            todo = "choose another, or give that host a name"
            if rest != ("name",) and name in lines:
                yield Finding(("hosts",), required, f"{clash}, in line {lines[name]}", todo)
            else:
                yield self.finding(vertex, rest, required, clash, todo)

    def clashing_numbers(self, key: str, noun: str, first: int) -> Iterator[Finding]:
        """Given numbers that are also the usual one (first + vertex) of a node without one.

        Args:
            key: of the number, such as datapath_id.
            noun: what it is.
            first: the usual one of vertex 0.
        """
        own: list[int | None] = [getattr(node, key) for node in self.nodes]
        for vertex, number in enumerate(own):
            if number is None or not 0 <= number - first < len(own):
                continue
            if own[number - first] is None:
                other = self.nodes[number - first].name
                text = f"{number:#x}" if key == "datapath_id" else str(number)
                yield self.finding(
                    vertex,
                    (key,),
                    f"{noun} of its own",
                    f"{text}, which {other} gets as it has none",
                    f"choose another, or give {other} one",
                )
