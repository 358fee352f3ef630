"""Turns neighbour tables into cables between sockets of the plan, and sets everything else apart.

A cable goes from socket to socket; a port has one socket, or several for parallel cables. Sockets
of a node are numbered from 1 in the order of its ports. Socket s of vertex v is the integer
v·W + s, where W is one more than the number of sockets of the largest node type. So a cable is a
pair of integers.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import chain, islice
from types import MappingProxyType
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from compilers.readers.devices.neighbour_facts import UNNAMED_PORT, End, Facts
from compilers.targets.system_names import SystemNames
from compilers.wiring.hardware import Hardware, PortFacts
from compilers.wiring.wiring import Wiring

Pair = tuple[int, int]
"""A cable: its two sockets."""
Pairs = frozenset[Pair]
MANAGEMENT = re.compile(
    r"(?:ma(?:nagement)?|mgmt|oobm?|v?me|em|fxp|con(?:sole)?|aux|bmc|usb)[-_]?\d*(?:[/.]\d+)*"
    r"|eth0|.*mgmt.*",
    re.I,
)
"""Names of ports for management and consoles, which are in no plan."""
NUMBER = re.compile(r"\d+|[0-9a-f]{2}(?:[:-][0-9a-f]{2}){5}|[0-9a-f]{4}(?:\.[0-9a-f]{4}){2}", re.I)
"""An SNMP number or a MAC address where the name of a port is expected."""


class OtherPort(NamedTuple):
    """A port of a node that is not in the plan, such as one for management or hosts."""

    node: str
    port: str
    neighbour: str


@dataclass(frozen=True, slots=True)
class Wired:
    """The cables that neighbour tables show."""

    cables: Pairs
    """Pairs of sockets, the smaller first."""
    reporters: frozenset[int]
    """The vertices whose own tables were read."""
    contested: Pairs
    """Cables that were seen at a socket with a likelier cable."""
    strangers: tuple[tuple[int, str], ...]
    """Sockets, not those of hosts, with a neighbour that is no node of the plan."""
    unknown_ports: tuple[tuple[str, str], ...]
    """Nodes, each with a port that its type does not have, and that should be in the fabric."""
    other_ports: tuple[OtherPort, ...] = ()
    unclear: Pairs = frozenset()
    """Planned cables of which tables show something, but not the port at the other end."""
    empty: tuple[int, ...] = ()
    """Reporters whose tables have no neighbour."""


def _expanded(first: NDArray[np.int64], count: NDArray[np.int64]) -> list[int]:
    """All sockets of ports.

    Args:
        first: int64[n], the first socket of each port.
        count: int64[n], how many sockets it has.
    """
    place = np.arange(count.sum()) - np.repeat(np.cumsum(count) - count, count)
    sockets: list[int] = (np.repeat(first, count) + place).tolist()
    return sockets


@dataclass(frozen=True)
class PortFinder:
    """The sockets of a plan: their numbers, and the names of these."""

    wiring: Wiring
    types: tuple[PortFacts, ...] = ()
    """The node types of the hardware; () where every port has one socket."""

    @cached_property
    def sockets(self) -> tuple[tuple[tuple[str, ...], ...], ...]:
        """The names of the sockets, by node type and port."""
        if self.types:
            return tuple(facts.sockets for facts in self.types)
        return tuple(tuple((name,) for name in names) for names in self.wiring.port_names)

    @cached_property
    def width(self) -> int:
        """W, one more than the sockets of the largest type."""
        return 1 + max(sum(map(len, ports)) for ports in self.sockets)

    def first(self) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """int64[T, ports + 1] twice: the first socket of each port, and its number of sockets."""
        widest = 1 + max(map(len, self.wiring.port_names))
        first, count = np.zeros((2, len(self.sockets), widest), np.int64)
        for t, ports in enumerate(self.sockets):
            count[t, 1 : len(ports) + 1] = [len(names) for names in ports]
            first[t, 1 : len(ports) + 1] = 1 + np.cumsum(count[t, : len(ports)])
        return first, count

    def planned(self) -> Pairs:
        """The planned cables."""
        w = self.wiring
        switch, link = w.links()
        far, port, far_port = (part[switch, link] for part in (w.far, w.port, w.far_port))
        first, count = self.first()
        cables = count[w.node_type[switch], port]
        near_end = switch * self.width + first[w.node_type[switch], port]
        far_end = far.astype(np.int64) * self.width + first[w.node_type[far], far_port]
        return frozenset(zip(_expanded(near_end, cables), _expanded(far_end, cables), strict=True))

    def of_hosts(self) -> frozenset[int]:
        """The sockets of the host ports."""
        switch, host = np.nonzero(self.wiring.host_port)
        first, count = self.first()
        port = self.wiring.node_type[switch], self.wiring.host_port[switch, host]
        return frozenset(_expanded(switch * self.width + first[port], count[port]))

    def between(self, pair: Pair) -> Pair:
        """The first sockets of the two ports that a cable joins.

        A cable between different places of two ports stays as it is: no link has such.
        """
        places = [self._place(end) for end in pair]
        if places[0] != places[1]:
            return pair
        return pair[0] - places[0], pair[1] - places[1]

    def _place(self, socket: int) -> int:
        """The place of a socket in its port, from 0."""
        vertex, number = divmod(socket, self.width)
        places = self._places[int(self.wiring.node_type[vertex])]
        return places[number - 1]

    @cached_property
    def _places(self) -> list[list[int]]:
        """The place of each socket in its port, by node type."""
        return [[k for names in ports for k in range(len(names))] for ports in self.sockets]

    def vertex(self, port: int) -> int:
        """The vertex that has a socket."""
        return port // self.width

    def node(self, port: int) -> str:
        """The name of the node that has a socket."""
        return self.wiring.names[port // self.width]

    def name(self, port: int) -> str:
        """The name of a socket at its node."""
        vertex, socket = divmod(port, self.width)
        if not self.types:
            return self.wiring.port_name(vertex, socket)
        named = chain.from_iterable(self.types[int(self.wiring.node_type[vertex])].sockets)
        return next(islice(named, socket - 1, None))


def resolve(
    facts: Facts,
    wiring: Wiring,
    hardware: Hardware | None = None,
    systems: Mapping[str, Sequence[SystemNames]] = MappingProxyType({}),
    by_node: Sequence[str] = (),
) -> Wired:
    """The cables that neighbour tables show.

    Names match in any case, with or without a domain. Nodes match by management address, serial
    number, GUID and datapath id too, ports by label. Of several neighbours at a port, the one that
    sees the port as well is taken, then the planned one.

    Ports have the names of the system that printed their node's table. Where the form does not say
    which system that is (lldpctl runs on several), they have those of the system that the build
    names for the node. Where it names none, all have the names of the system by which most planned
    cables are seen.

    Args:
        facts: the neighbour data.
        wiring: the plan.
        hardware: for serial numbers, GUIDs and labels, if an inventory gave them.
        systems: by target, the names that the system has in each plane. Forms of tables have names
            of targets.
        by_node: the system of each node as the build names it; () where it names none.
    """
    ports = PortFinder(wiring, hardware.types if hardware else ())
    directory = _Directory(ports, hardware, systems)
    planned = ports.planned()
    directory.system = {v: name for v, name in enumerate(by_node) if name in systems}
    directory.choose_systems(facts, planned)
    sightings = _Sightings(directory, ports, planned)
    for near, _ in facts.seen:
        directory.learn(near)
    for near, far in facts.seen:
        sightings.add(near, far)
    sightings.place_halves()
    reporters = {u for nodes in facts.reporters if (u := directory.vertex(nodes)) is not None}
    cables, contested = likeliest(sightings.seen, planned)
    return Wired(
        cables=cables,
        reporters=frozenset(reporters),
        contested=contested,
        strangers=tuple(sightings.strangers),
        unknown_ports=tuple(sightings.unknown),
        other_ports=tuple(sightings.others),
        unclear=sightings.unclear(),
        empty=tuple(sorted(reporters - sightings.seeing)),
    )


class _Sightings:
    """The neighbours that tables show, sorted by how much of the cable is known."""

    def __init__(self, directory: _Directory, ports: PortFinder, planned: Pairs) -> None:
        self.directory, self.ports, self.planned = directory, ports, planned
        self.names, self.width = ports.wiring.names, ports.width
        self.hosts = ports.of_hosts()
        self.mate = {end: other for a, b in planned for end, other in ((a, b), (b, a))}
        """The socket at the other end of each planned cable."""
        self.seen: Counter[tuple[int, int]] = Counter()
        """How often each cable was seen, by the socket that sees and the one that is seen."""
        self.strangers: dict[tuple[int, str], None] = {}
        """See `Wired`, as the next two; dicts keep the order."""
        self.unknown: dict[tuple[str, str], None] = {}
        self.others: dict[OtherPort, None] = {}
        self.seeing: set[int] = set()
        """The vertices that see a neighbour."""
        self.halves: dict[tuple[int, int], dict[int, str]] = {}
        """Neighbours at an unknown port, by the vertex that sees and the one that is seen: the
        socket that sees, and the word for the port."""
        self._unclear_sockets: set[int] = set()
        self._unclear_nodes: set[tuple[int, int]] = set()
        """Pairs of vertices, the smaller first."""

    def add(self, near: End, far: End) -> None:
        """Add a neighbour that a node sees at a port."""
        u, v = self.directory.vertex(near.nodes), self.directory.vertex(far.nodes)
        if u is None:
            return
        self.seeing.add(u)
        near_number = self.directory.port(u, near)
        if near_number is None:
            self._add_at_unknown_port(u, near, v, far)
            return
        near_socket = u * self.width + near_number
        if v is None:
            if near_socket not in self.hosts:
                self.strangers[near_socket, far.nodes[0]] = None
            return
        far_number = self.directory.port(v, far)
        if far_number is not None:
            far_socket = v * self.width + far_number
            if far_socket != near_socket:
                self.seen[near_socket, far_socket] += 1
        elif near_socket not in self.mate and (near_socket in self.hosts or _is_management(far)):
            port = self.ports.name(near_socket)
            self.others[OtherPort(self.names[u], port, far.nodes[0])] = None
        elif far.ports == (UNNAMED_PORT,) or (
            any(map(NUMBER.fullmatch, far.ports)) and not _is_management(far)
        ):
            self.halves.setdefault((u, v), {})[near_socket] = far.ports[-1]
        else:
            self._add_unknown(v, far.ports[0], near_socket, u)

    def _add_at_unknown_port(self, u: int, near: End, v: int | None, far: End) -> None:
        """Add a neighbour at a port that the node's type does not have."""
        far_number = None if v is None else self.directory.port(v, far)
        far_socket = None
        if v is not None and far_number is not None:
            far_socket = v * self.width + far_number
            in_fabric = far_socket in self.mate
        else:
            in_fabric = not _is_management(far)
        if v is None or not in_fabric or (far_socket is None and _is_management(near)):
            self.others[OtherPort(self.names[u], near.ports[0], far.nodes[0])] = None
        else:
            self._add_unknown(u, near.ports[0], far_socket, v)

    def _add_unknown(self, vertex: int, port: str, socket: int | None, other: int) -> None:
        """Add a port that a node's type does not have.

        Args:
            vertex: of the node.
            port: its name.
            socket: at the other end of the cable; None: that is not known.
            other: the vertex there.
        """
        self.unknown[self.names[vertex], port] = None
        self._unclear_nodes.add((min(vertex, other), max(vertex, other)))
        if socket is not None:
            self._unclear_sockets.add(socket)

    def place_halves(self) -> None:
        """Find the far ports that tables do not name.

        The first of these that there is: the port at which the far node sees this one; where each
        of two nodes sees the other at one port only, that port; the planned one, if the plan joins
        this port to that node; the only port of that node that the plan joins to this one.
        """
        seen_from: dict[int, list[int]] = {}
        for near, far in self.seen:
            seen_from.setdefault(far, []).append(near)
        joining: dict[tuple[int, int], list[int]] = {}
        for near, far in self.mate.items():
            joining.setdefault((near // self.width, far // self.width), []).append(near)
        for (u, v), ports in self.halves.items():
            seen_by_far = self.halves.get((v, u), {})
            planned = joining.get((u, v), [])
            for near, word in ports.items():
                seers = (e for e in seen_from.get(near, ()) if e // self.width == v)
                seer = next(seers, None)
                if seer is not None:
                    far = seer
                elif len(ports) == len(seen_by_far) == 1:
                    far = next(iter(seen_by_far))
                elif self.mate.get(near, -1) // self.width == v:
                    far = self.mate[near]
                elif len(ports) == len(planned) == 1:
                    far = self.mate[planned[0]]
                else:
                    self._add_unknown(v, word, near, u)
                    continue
                self.seen[near, far] += 1

    def unclear(self) -> Pairs:
        """The planned cables of which an end, or a port between the same nodes, is not known."""
        if not self._unclear_nodes:
            return frozenset()
        return frozenset(
            (a, b)
            for a, b in self.planned
            if not self._unclear_sockets.isdisjoint((a, b))
            or (a // self.width, b // self.width) in self._unclear_nodes
        )


def _is_management(end: End) -> bool:
    """Whether a port is one for management, by its name."""
    return any(map(MANAGEMENT.fullmatch, end.ports))


def likeliest(seen: Counter[tuple[int, int]], planned: Pairs) -> tuple[Pairs, Pairs]:
    """At most one cable a socket, the likeliest; and the contested cables, which are left over.

    Args:
        seen: how often each cable was seen, in each direction.
        planned: the planned cables.
    """
    times = Counter((min(pair), max(pair)) for pair in seen)
    order = sorted(times, key=lambda pair: (-times[pair], pair not in planned, pair))
    taken: set[int] = set()
    cables, contested = set(), set()
    for pair in order:
        if taken.isdisjoint(pair):
            cables.add(pair)
            taken.update(pair)
        else:
            contested.add(pair)
    return frozenset(cables), frozenset(contested)


class _Directory:
    """The numbers of nodes and ports by all names that they may have."""

    def __init__(
        self,
        ports: PortFinder,
        hardware: Hardware | None,
        systems: Mapping[str, Sequence[SystemNames]],
    ) -> None:
        wiring = ports.wiring
        self.width, self.systems = ports.width, systems
        self.first = ports.first()[0].tolist()
        """The first socket of each port, by node type."""
        self.nodes = _node_names(wiring, hardware, systems)
        self.ports = {"": self._own_names(ports, hardware)}
        """The socket of each name, by system and node type; "" is the build."""
        self.described: dict[str, list[dict[str, int]]] = {"": []}
        """The socket of each description, by system and vertex."""
        self.node_type: list[int] = wiring.node_type.tolist()
        self.numbers: dict[int, dict[str, int]] = {}
        """The socket of each SNMP number, by vertex."""
        self.system: dict[int, str] = {}
        """The system of each vertex whose table shows it."""
        self.usual = ""
        """The system of all other vertices."""

    def _own_names(self, ports: PortFinder, hardware: Hardware | None) -> list[dict[str, int]]:
        """The socket of each number, label and name in the build, by node type."""
        by_type: list[dict[str, int]] = []
        for t, names in enumerate(ports.wiring.port_names):
            labels = hardware.types[t].label if hardware else ()
            first = self.first[t]
            sockets = {f"#{n}": first[n] for n in range(1, len(names) + 1)}
            for column in (labels, names):
                sockets |= {text.lower(): first[n] for n, text in enumerate(column, 1)}
            for n, of_port in enumerate(ports.sockets[t], 1):
                sockets |= {text.lower(): first[n] + k for k, text in enumerate(of_port)}
            by_type.append(sockets)
        return by_type

    def choose_systems(self, facts: Facts, planned: Pairs) -> None:
        """Find the system of every node; see `resolve`."""
        for nodes, form in facts.forms:
            vertex = self.vertex(nodes)
            if vertex is not None and form in self.systems:
                self.system[vertex] = form
        ends = [(self.vertex(a.nodes), self.vertex(b.nodes), a, b) for a, b in facts.seen]
        in_plan = [(u, v, a, b) for u, v, a, b in ends if u is not None and v is not None]
        right: dict[str, int] = {}
        for system in ("", *self.systems) if in_plan else ():
            self.usual = system
            right[system] = sum(self._pair(u, v, a, b) in planned for u, v, a, b in in_plan)
            if right[system] == len(in_plan):
                break
        self.usual = max(right, key=right.__getitem__, default="")

    def learn(self, near: End) -> None:
        """Note the SNMP number of a port, where the node's own table has it beside the name."""
        numbers = [word.lower() for word in near.ports[1:] if NUMBER.fullmatch(word)]
        if not numbers or (vertex := self.vertex(near.nodes)) is None:
            return
        if (port := self.port(vertex, near)) is not None:
            self.numbers.setdefault(vertex, {}).update(dict.fromkeys(numbers, port))

    def _pair(self, u: int, v: int, near: End, far: End) -> Pair:
        """The cable between two ends; an unknown port has socket 0, which no plan has."""
        near_socket = u * self.width + (self.port(u, near) or 0)
        far_socket = v * self.width + (self.port(v, far) or 0)
        return min(near_socket, far_socket), max(near_socket, far_socket)

    def vertex(self, nodes: tuple[str, ...]) -> int | None:
        """The vertex of the first name that is in the plan, None where none is."""
        for word in nodes:
            for name in _without_domain(word.lower()):
                if name in self.nodes:
                    return self.nodes[name]
        return None

    def port(self, vertex: int, end: End) -> int | None:
        """The socket of the first port name that a node has, None where it has none.

        Rendered descriptions come first, as each belongs to one port only.
        """
        system, kind = self.system.get(vertex, self.usual), self.node_type[vertex]
        if system not in self.ports:
            self._add_names(system)
        described = self.described[system][vertex] if system else {}
        words = [word.lower() for word in end.ports]
        for sockets in (described, self.ports[system][kind], self.numbers.get(vertex, {})):
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
                text.lower(): self.first[t][n]
                for n, texts in enumerate(names[0].ports(t), 1)
                for text in texts
            }
            for t, own_names in enumerate(self.ports[""])
        ]
        self.described[system] = [
            {text.lower(): self.first[int(kind)][port] for text, port in plane.descriptions(vertex)}
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
