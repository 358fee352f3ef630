"""The vertices and sockets of a plan by all names that neighbour tables may have for them.

A *socket* is the place of one cable in a port. It has a number at its node, from 1
(`socket_numbers`). `resolve` looks up both ends of each neighbour here. A node has its name in the
build, management address, serial number, GUID and datapath id; a port has its name in the build,
its label, the names of its system, and its rendered description.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import chain

from compilers.audit.socket_numbers import Pair, Pairs, SocketNumbers
from compilers.readers.devices.neighbour_facts import End, Facts
from compilers.targets.system_names import SystemNames
from compilers.wiring.hardware import Hardware
from compilers.wiring.wiring import Wiring

NUMBER = re.compile(r"\d+|[0-9a-f]{2}(?:[:-][0-9a-f]{2}){5}|[0-9a-f]{4}(?:\.[0-9a-f]{4}){2}", re.I)
"""What some tables have instead of a port's name: an SNMP number such as `503`, or a MAC address
such as `0a:1b:2c:3d:4e:5f`."""


class NameDirectory:
    """The numbers of nodes and sockets by all names that they may have, in small letters.

    Sockets have the number that they have at their node.
    """

    def __init__(
        self,
        sockets: SocketNumbers,
        hardware: Hardware | None,
        systems: Mapping[str, Sequence[SystemNames]],
    ) -> None:
        wiring = sockets.wiring
        self.width, self.systems = sockets.width, systems
        self.first_socket = sockets.socket_ranges()[0].tolist()
        """The first socket of each port, by node type."""
        self.nodes = _node_names(wiring, hardware, systems)
        """The vertex of each name of a node."""
        self.ports = {"": self._own_names(sockets, hardware)}
        """The socket of each name, by system and node type; "" stands for the build's names."""
        self.described: dict[str, list[dict[str, int]]] = {"": []}
        """The socket of each description, by system and vertex."""
        self.node_type: list[int] = wiring.node_type.tolist()
        self.numbers: dict[int, dict[str, int]] = {}
        """The socket of each SNMP number, by vertex."""
        self.system: dict[int, str] = {}
        """The system of each vertex whose table or build names it."""
        self.default_system = ""
        """The system of all vertices for which nothing names one."""

    def _own_names(self, numbers: SocketNumbers, hardware: Hardware | None) -> list[dict[str, int]]:
        """The socket of each number, label and name in the build, by node type."""
        by_type: list[dict[str, int]] = []
        for node_type, names in enumerate(numbers.wiring.port_names):
            labels = hardware.types[node_type].label if hardware else ()
            first = self.first_socket[node_type]
            sockets = {f"#{port}": first[port] for port in range(1, len(names) + 1)}
            for names_of_ports in (labels, names):
                sockets |= {
                    name.lower(): first[port] for port, name in enumerate(names_of_ports, 1)
                }
            for port, sockets_of_port in enumerate(numbers.sockets[node_type], 1):
                sockets |= {
                    name.lower(): first[port] + number
                    for number, name in enumerate(sockets_of_port)
                }
            by_type.append(sockets)
        return by_type

    def choose_systems(self, facts: Facts, planned: Pairs) -> None:
        """Find the system of every node, by the rules of `resolve.resolve`.

        The default is the system by whose names most planned cables are seen.
        """
        for nodes, form in facts.forms:
            vertex = self.vertex(nodes)
            if vertex is not None and form in self.systems:
                self.system[vertex] = form
        between_nodes = [
            (near, far)
            for near, far in facts.seen
            if self.vertex(near.nodes) is not None and self.vertex(far.nodes) is not None
        ]
        planned_cables: dict[str, int] = {}
        for system in ("", *self.systems) if between_nodes else ():
            self.default_system = system
            pairs = (self._pair(near, far) for near, far in between_nodes)
            planned_cables[system] = sum(pair in planned for pair in pairs)
            if planned_cables[system] == len(between_nodes):
                break
        self.default_system = max(planned_cables, key=planned_cables.__getitem__, default="")

    def learn(self, near: End) -> None:
        """Note the SNMP number of a port, where the node's own table has it beside the name."""
        numbers = [word.lower() for word in near.ports[1:] if NUMBER.fullmatch(word)]
        if not numbers or (vertex := self.vertex(near.nodes)) is None:
            return
        if (port := self.port(vertex, near)) is not None:
            self.numbers.setdefault(vertex, {}).update(dict.fromkeys(numbers, port))

    def _pair(self, near: End, far: End) -> Pair:
        """The cable between two ends of nodes in the plan.

        An unknown port gets the number 0, which no socket of a plan has.
        """
        near_socket, far_socket = self._socket(near), self._socket(far)
        return min(near_socket, far_socket), max(near_socket, far_socket)

    def _socket(self, end: End) -> int:
        """The socket of an end, with number 0 at its node if the port is unknown."""
        vertex = self.vertex(end.nodes)
        if vertex is None:
            return 0
        return vertex * self.width + (self.port(vertex, end) or 0)

    def vertex(self, nodes: tuple[str, ...]) -> int | None:
        """The vertex of the first name that is in the plan, None where none is."""
        for full_name in nodes:
            for name in _without_domain(full_name.lower()):
                if name in self.nodes:
                    return self.nodes[name]
        return None

    def port(self, vertex: int, end: End) -> int | None:
        """The number of the port that the names of an end mean; None if they mean none.

        The number is that of the socket at its node. Rendered descriptions come first, as each
        belongs to one port only.
        """
        system, node_type = self.system.get(vertex, self.default_system), self.node_type[vertex]
        if system not in self.ports:
            self._add_names(system)
        by_description = self.described[system][vertex] if system else {}
        words = [word.lower() for word in end.ports]
        for sockets in (
            by_description,
            self.ports[system][node_type],
            self.numbers.get(vertex, {}),
        ):
            for word in words:
                if word in sockets:
                    return sockets[word]
        return None

    def _add_names(self, system: str) -> None:
        """Add the names of a system, which go before the build's own."""
        names = self.systems[system]
        self.ports[system] = [
            own_names
            | {
                name.lower(): self.first_socket[node_type][port]
                for port, names_of_port in enumerate(names[0].names_of_ports(node_type), 1)
                for name in names_of_port
            }
            for node_type, own_names in enumerate(self.ports[""])
        ]
        self.described[system] = [
            {
                text.lower(): self.first_socket[int(kind)][port]
                for text, port in plane.descriptions(vertex)
            }
            for plane in names
            for vertex, kind in enumerate(plane.wiring.node_type)
        ]


def _node_names(
    wiring: Wiring, hardware: Hardware | None, systems: Mapping[str, Sequence[SystemNames]]
) -> dict[str, int]:
    """The vertex of every name of a node, in small letters; names of the build go before others."""
    nodes: dict[str, int] = {}
    columns: list[Iterable[str]] = [
        chain.from_iterable(names.nodes for names in planes) for planes in systems.values()
    ]
    columns.append(f"dpid:{number:#x}" for number in wiring.datapath_id.tolist())
    columns.append(wiring.management)
    if hardware:
        columns += [hardware.guid, hardware.serial]
    columns.append(wiring.names)
    for column in columns:
        nodes |= {text.lower(): vertex for vertex, text in enumerate(column) if text}
    return nodes


def _without_domain(name: str) -> Iterator[str]:
    """A name, then without one part of its domain after the other.

    >>> list(_without_domain("leaf-1.dc.example"))
    ['leaf-1.dc.example', 'leaf-1.dc', 'leaf-1']
    """
    while name:
        yield name
        name = name.rpartition(".")[0]
