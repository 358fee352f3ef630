"""What a fabric has already: nodes at vertices, cables and hosts at ports, and numbers.

A compile against an earlier build keeps these, so that nothing moves without need. A *vertex* is
the position of a switch in the graph of the fabric, and an *allocation* a number that a build keeps
for a link, a cable or a host (`compilers.spec.allocations`).
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace

from compilers.spec.allocations import HOST, LENGTH, POOL, VERTEX, Allocations


@dataclass(frozen=True, slots=True)
class InstalledPlane:
    """One plane of an earlier build, or its allocations alone."""

    names: tuple[str, ...]
    """The name of the node of each vertex; "" where there is none."""
    serials: tuple[str, ...] = ()
    """The serial of the node of each vertex, "" where it is not known; () without any."""
    port_of_link: Mapping[tuple[int, int], str] = field(default_factory=dict)
    """The name of a link's port at the first of the two vertices that it joins."""
    port_of_host: Mapping[tuple[int, int], str] = field(default_factory=dict)
    """The name of each host's port, by its vertex and its number there, from 0."""
    number_of_host: Mapping[tuple[int, str], int] = field(default_factory=dict)
    """The number of each host at its switch, by its vertex and its name."""
    allocations: Allocations = field(default_factory=Allocations)
    """The numbers of links, cables, hosts and switches."""
    racks_and_units: tuple[tuple[str, int], ...] = ()
    """The rack and the unit of the node of each vertex; () without racks."""
    block_length: int = 0
    """The length of the IPv4 block of a switch; 0 where it is not known."""

    @classmethod
    def of_allocations(cls, allocations: Allocations) -> InstalledPlane:
        """What allocations alone tell: the vertices of nodes, and the numbers of hosts."""
        used = allocations.of(VERTEX).used
        names = [""] * (max(used.values(), default=-1) + 1)
        serials = list(names)
        for key, vertex in used.items():
            names[vertex] = allocations.names.get(key, key)
            serials[vertex] = key if key in allocations.names else ""
        hosts = allocations.of(HOST)
        number_of_host = {}
        for key, number in (*hosts.freed.items(), *hosts.used.items()):
            vertex_text, _, name = key.partition("/")
            number_of_host[int(vertex_text), name] = number
        return cls(
            names=tuple(names),
            serials=tuple(serials),
            number_of_host=number_of_host,
            allocations=allocations,
            block_length=allocations.of(POOL).used.get(LENGTH, 0),
        )

    def vertices(self, nodes: Iterable[tuple[str, str]]) -> dict[str, int]:
        """The vertex that each node had, by its name.

        A node is known by its serial, if no other node has it. A node with a new serial, or with
        none, takes the vertex of the node that had its name.

        Args:
            nodes: the name and the serial of each node; the serial is "" where there is none.
        """
        names_and_serials = list(nodes)
        # How often a serial occurs, here or among the nodes: the larger of the two counts.
        count = Counter(self.serials) | Counter(serial for _, serial in names_and_serials)
        vertex_of_serial = {
            serial: vertex
            for vertex, serial in enumerate(self.serials)
            if serial and count[serial] == 1
        }
        vertex_of_name = {name: vertex for vertex, name in enumerate(self.names) if name}
        vertices = {
            name: vertex_of_serial[serial]
            for name, serial in names_and_serials
            if serial in vertex_of_serial
        }
        taken_by_serial = set(vertices.values())
        for name, _ in names_and_serials:
            vertex = vertex_of_name.get(name)
            if name not in vertices and vertex is not None and vertex not in taken_by_serial:
                vertices[name] = vertex
        return vertices

    def reserved_hosts(self) -> dict[int, list[int]]:
        """The numbers that hosts have or had, by vertex: freed numbers first, in their order."""
        numbers = self.allocations.of(HOST)
        reserved = defaultdict[int, list[int]](list)
        for key, number in (*numbers.freed.items(), *numbers.used.items()):
            reserved[int(key.partition("/")[0])].append(number)
        return reserved

    def at_new_vertices(self, vertices: Mapping[int, int]) -> InstalledPlane:
        """What is installed, at other vertices.

        Args:
            vertices: the new vertex of each old one. What was at a vertex without one is left out.
        """
        if all(old == new for old, new in vertices.items()) and len(vertices) == len(self.names):
            return self
        return replace(
            self,
            port_of_link={
                (vertices[u], vertices[v]): port
                for (u, v), port in self.port_of_link.items()
                if u in vertices and v in vertices
            },
            port_of_host={
                (vertices[v], host): port
                for (v, host), port in self.port_of_host.items()
                if v in vertices
            },
            number_of_host={
                (vertices[v], name): host
                for (v, name), host in self.number_of_host.items()
                if v in vertices
            },
        )
