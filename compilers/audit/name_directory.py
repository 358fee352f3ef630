"""The vertices and sockets of a plan by all names that neighbour tables may have for them.

A *socket* is the place of one cable in a port. Its *local number* counts the sockets of its node,
from 1 (`socket_numbers`). `resolve` looks up both ends of each neighbour here. A node has its name
in the build, management address, serial number, GUID and datapath id; a port has its name in the
build, its label, the names of its system, and its rendered description. A *system* is an operating
system of switches, such as SONiC, with its own names for ports. An *SNMP number* is the number of a
port in a device's management data (ifIndex).
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import chain

from compilers.audit.socket_numbers import Cable, CableSet, SocketNumbers
from compilers.readers.devices.neighbour_facts import NamedEnd, NeighbourFacts
from compilers.targets.system_names import SystemNames
from compilers.wiring.hardware import Hardware
from compilers.wiring.wiring import Wiring

NO_NAME = re.compile(r"\d+|[0-9a-f]{2}(?:[:-][0-9a-f]{2}){5}|[0-9a-f]{4}(?:\.[0-9a-f]{4}){2}", re.I)
"""What some tables have in place of a port's name: an SNMP number such as `503`, or a MAC address
such as `0a:1b:2c:3d:4e:5f`."""
THE_BUILD = ""
"""In place of a system: the build itself, with the names that it gives ports."""
LocalSockets = dict[str, int]
"""Local numbers of sockets, by names of their ports in small letters."""


class NameDirectory:
    """The vertices and sockets of a plan by all names that they may have, in small letters.

    `choose_systems` and `note_snmp_numbers` have to read all neighbours before `socket` finds every
    port.

    Args:
        sockets: the sockets of the plan.
        hardware: for serial numbers, GUIDs and labels, if an inventory gave them.
        systems: by system, the names that it has in each plane.
        system_of_vertex: the system of each vertex for which the build names one of `systems`.
    """

    def __init__(
        self,
        sockets: SocketNumbers,
        hardware: Hardware | None,
        systems: Mapping[str, Sequence[SystemNames]],
        system_of_vertex: Mapping[int, str],
    ) -> None:
        self._sockets, self._systems = sockets, systems
        self._node_type: list[int] = sockets.wiring.node_type.tolist()
        self._first_of_port = sockets.local_ranges()[0].tolist()
        """The local number of the first socket of each port, by node type and port."""
        self._vertex_of_name = _node_names(sockets.wiring, hardware, systems)
        """The vertex of each name of a node."""
        self._by_name = {THE_BUILD: self._names_in_build(hardware)}
        """The names of ports, by system and node type."""
        self._by_description: dict[str, list[LocalSockets]] = {}
        """The descriptions of ports, by system and vertex."""
        self._by_number: dict[int, LocalSockets] = {}
        """The SNMP numbers of ports, by vertex."""
        self._system_of_vertex = dict(system_of_vertex)
        """The system of each vertex whose table or build names one."""
        self._default_system = THE_BUILD
        """The system of all other vertices."""

    def _names_in_build(self, hardware: Hardware | None) -> list[LocalSockets]:
        """By node type, the numbers, labels and names that the build gives ports and sockets."""
        by_type: list[LocalSockets] = []
        for node_type, port_names in enumerate(self._sockets.wiring.port_names):
            labels = hardware.types[node_type].label if hardware else ()
            first = self._first_of_port[node_type]
            local_of_name = {f"#{port}": first[port] for port in range(1, len(port_names) + 1)}
            for names in (labels, port_names):
                local_of_name |= {name.lower(): first[port] for port, name in enumerate(names, 1)}
            for port, socket_names in enumerate(self._sockets.sockets[node_type], 1):
                local_of_name |= {
                    name.lower(): first[port] + index for index, name in enumerate(socket_names)
                }
            by_type.append(local_of_name)
        return by_type

    def choose_systems(self, facts: NeighbourFacts, planned: CableSet) -> None:
        """Find the system of every node, by the rules of `resolve.resolve`."""
        # The form of a table has the name of the system that prints it, or a name that is no
        # system's, like `lldpctl`, which runs on several systems.
        for nodes, system in facts.forms:
            vertex = self.vertex(nodes)
            if vertex is not None and system in self._systems:
                self._system_of_vertex[vertex] = system
        between_nodes = [
            (near, far)
            for near, far in facts.seen
            if self.vertex(near.nodes) is not None and self.vertex(far.nodes) is not None
        ]
        # The default is the system by whose names most planned cables are seen.
        planned_cables: dict[str, int] = {}
        for system in (THE_BUILD, *self._systems) if between_nodes else ():
            cables = (self._cable(near, far, system) for near, far in between_nodes)
            planned_cables[system] = sum(cable in planned for cable in cables)
            if planned_cables[system] == len(between_nodes):
                break
        self._default_system = max(
            planned_cables, key=planned_cables.__getitem__, default=THE_BUILD
        )

    def note_snmp_numbers(self, near: NamedEnd) -> None:
        """Note the SNMP numbers of a port, if the node's own table has them beside its name.

        The tables of its neighbours may have such a number in place of the name.
        """
        numbers = [text.lower() for text in near.ports[1:] if NO_NAME.fullmatch(text)]
        if not numbers or (vertex := self.vertex(near.nodes)) is None:
            return
        if (local := self._local_number(vertex, near, self._default_system)) is not None:
            self._by_number.setdefault(vertex, {}).update(dict.fromkeys(numbers, local))

    def _cable(self, near: NamedEnd, far: NamedEnd, default_system: str) -> Cable | None:
        """The cable between two ends; None: the names of an end mean no socket.

        Args:
            near: an end.
            far: the other end.
            default_system: the system of vertices whose own is not known.
        """
        near_socket = self._socket_of_end(near, default_system)
        far_socket = self._socket_of_end(far, default_system)
        if near_socket is None or far_socket is None:
            return None
        return min(near_socket, far_socket), max(near_socket, far_socket)

    def _socket_of_end(self, end: NamedEnd, default_system: str) -> int | None:
        """The socket of an end; None: its names mean none."""
        vertex = self.vertex(end.nodes)
        return None if vertex is None else self._socket(vertex, end, default_system)

    def vertex(self, nodes: tuple[str, ...]) -> int | None:
        """The vertex of the first name that is in the plan, None where none is."""
        for full_name in nodes:
            for name in _without_domain(full_name.lower()):
                if name in self._vertex_of_name:
                    return self._vertex_of_name[name]
        return None

    def socket(self, vertex: int, end: NamedEnd) -> int | None:
        """The socket of a vertex that the names of an end mean; None if they mean none."""
        return self._socket(vertex, end, self._default_system)

    def _socket(self, vertex: int, end: NamedEnd, default_system: str) -> int | None:
        """See `socket`; the vertex has the default system if its own is not known."""
        local = self._local_number(vertex, end, default_system)
        return None if local is None else self._sockets.at(vertex, local)

    def _local_number(self, vertex: int, end: NamedEnd, default_system: str) -> int | None:
        """The local number of `_socket`.

        Rendered descriptions come first, as each belongs to one port only.
        """
        system = self._system_of_vertex.get(vertex, default_system)
        if system not in self._by_name:
            self._add_names(system)
        descriptions = {} if system == THE_BUILD else self._by_description[system][vertex]
        names = self._by_name[system][self._node_type[vertex]]
        for local_of_name in (descriptions, names, self._by_number.get(vertex, {})):
            for name in map(str.lower, end.ports):
                if name in local_of_name:
                    return local_of_name[name]
        return None

    def _add_names(self, system: str) -> None:
        """Add the names of a system, which go before those of the build."""
        planes = self._systems[system]
        self._by_name[system] = [
            names_in_build
            | {
                name.lower(): self._first_of_port[node_type][port]
                for port, names in enumerate(planes[0].names_of_ports(node_type), 1)
                for name in names
            }
            for node_type, names_in_build in enumerate(self._by_name[THE_BUILD])
        ]
        self._by_description[system] = [
            {
                description.lower(): self._first_of_port[node_type][port]
                for description, port in plane.descriptions(vertex)
            }
            for plane in planes
            for vertex, node_type in enumerate(plane.wiring.node_type.tolist())
        ]


def _node_names(
    wiring: Wiring, hardware: Hardware | None, systems: Mapping[str, Sequence[SystemNames]]
) -> dict[str, int]:
    """The vertex of every name of a node, in small letters; names of the build go before others."""
    vertex_of_name: dict[str, int] = {}
    # Each column has a name of every vertex, or "". Later columns go before earlier ones.
    columns: list[Iterable[str]] = [
        chain.from_iterable(names.nodes for names in planes) for planes in systems.values()
    ]
    columns.append(f"dpid:{number:#x}" for number in wiring.datapath_id.tolist())
    columns.append(wiring.management)
    if hardware:
        columns += [hardware.guid, hardware.serial]
    columns.append(wiring.names)
    for column in columns:
        vertex_of_name |= {name.lower(): vertex for vertex, name in enumerate(column) if name}
    return vertex_of_name


def _without_domain(name: str) -> Iterator[str]:
    """A name, then without one part of its domain after the other.

    >>> list(_without_domain("leaf-1.dc.example"))
    ['leaf-1.dc.example', 'leaf-1.dc', 'leaf-1']
    """
    while name:
        yield name
        name = name.rpartition(".")[0]
