"""What can keep an inventory from carrying a fabric, said of the node that it is about."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from inventory.problems import KeyPath, Problem, key

if TYPE_CHECKING:  # pydantic is slow to import, and a build is read without it
    from inventory.model import Node

# The file and line of a value in the inputs, by its path: ("nodes", 3, "type").
Locate = Callable[[KeyPath], tuple[str, int]]


def nowhere(path: KeyPath) -> tuple[str, int]:  # noqa: ARG001
    """The place of values that come from no file."""
    return "", 0


@dataclass(frozen=True, slots=True)
class Shortage:
    """Ports that a node of a type has for a vertex, and those that it needs."""

    ports: int
    links: int
    links_needed: int
    hosts: int
    hosts_needed: int


@dataclass(frozen=True, slots=True)
class Site:
    """The nodes in vertex order, the place of each in the inventory, and how to find it there.

    Nodes that are generated have no place of their own: problems are with what generates them.
    """

    nodes: Sequence[Node]
    placed: Sequence[int]
    locate: Locate
    generated: bool = False

    def problem(self, vertex: int, rest: KeyPath, required: str, given: str, todo: str) -> Problem:
        """A problem with the value at `rest` of the node at `vertex`."""
        path: KeyPath = ("nodes", self.placed[vertex], *rest)
        if self.generated:
            path = ("generate", *rest)
        file, line = self.locate(path)
        text = key(path)
        return Problem(file=file, line=line, key=text, required=required, given=given, todo=todo)

    def short_of_ports(self, shortages: dict[int, Shortage]) -> Iterator[Problem]:
        """Vertices whose node has too few ports, in vertex order."""
        for vertex, s in sorted(shortages.items()):
            node = self.nodes[vertex]
            missing = [
                f"{needed - there} for {use}"
                for use, there, needed in (
                    ("links", s.links, s.links_needed),
                    ("hosts", s.hosts, s.hosts_needed),
                )
                if there < needed
            ]
            yield self.problem(
                vertex,
                ("type",),
                f"{s.links_needed} ports for links and {s.hosts_needed} for hosts",
                f"{node.type} with {s.ports}, {' and '.join(missing)} missing "
                f"at {node.name} (vertex {vertex})",
                "choose a type with more ports, or lower hosts_per_node or the topology's size",
            )

    def hosts_beyond(self, hosts: NDArray[np.int64]) -> Iterator[Problem]:
        """Nodes that list more hosts than their vertex has."""
        for vertex, node in enumerate(self.nodes):
            if len(node.hosts) > hosts[vertex]:
                yield self.problem(
                    vertex,
                    ("hosts",),
                    f"at most {hosts[vertex]} hosts at this vertex",
                    f"{len(node.hosts)} at {node.name} (vertex {vertex})",
                    "raise hosts_per_node or remove hosts",
                )

    def clashing_names(self, host_names: Sequence[str], per_node: int) -> Iterator[Problem]:
        """Given names that are also the usual name of a host without one (h<vertex>)."""
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
            if (other := usual.get(name.lower())) is not None:
                yield self.problem(
                    vertex,
                    rest,
                    "a name that no other node or host has",
                    f"{name}, which the host without a name at vertex {other} gets",
                    "choose another, or give that host a name",
                )

    def clashing_ids(self, first: int = 1) -> Iterator[Problem]:
        """Given datapath ids that are also the usual one (first + vertex) of a node without one."""
        order = len(self.nodes)
        for vertex, node in enumerate(self.nodes):
            if node.datapath_id is None or not 0 <= node.datapath_id - first < order:
                continue
            other = self.nodes[node.datapath_id - first]
            if other.datapath_id is None:
                yield self.problem(
                    vertex,
                    ("datapath_id",),
                    "a datapath id of its own",
                    f"{node.datapath_id:#x}, which {other.name} gets as it has none",
                    f"choose another, or give {other.name} one",
                )
