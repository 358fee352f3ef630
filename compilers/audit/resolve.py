"""Neighbour data resolved to cables between ports of the plan, noise set aside.

The sockets of a node are numbered from 1, like its ports if each has one socket. Socket s of vertex
v is v·W + s, with W one more than the sockets of the largest node type, so a cable is a pair of
integers.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import chain, islice
from types import MappingProxyType

import numpy as np
from numpy.typing import NDArray

from compilers.readers.devices.neighbour_facts import UNNAMED_PORT, End, Facts
from compilers.targets.system_names import SystemNames
from compilers.wiring.hardware import Hardware, PortFacts
from compilers.wiring.wiring import Wiring

Pair = tuple[int, int]
Pairs = frozenset[Pair]


MANAGEMENT = re.compile(
    r"(?:ma(?:nagement)?|mgmt|oobm?|v?me|em|fxp|con(?:sole)?|aux|bmc|usb)[-_]?\d*(?:[/.]\d+)*"
    r"|eth0|.*mgmt.*",
    re.I,
)
"""Names of ports for management and consoles, which no plan has."""
NUMBER = re.compile(r"\d+|[0-9a-f]{2}(?:[:-][0-9a-f]{2}){5}|[0-9a-f]{4}(?:\.[0-9a-f]{4}){2}", re.I)
"""An SNMP number or a MAC address in place of a port's name: it does not say which port it is."""


@dataclass(frozen=True, slots=True)
class Wired:
    """The cables that neighbour tables show."""

    cables: Pairs
    """Pairs of ports, the smaller first."""
    reporters: frozenset[int]
    """Vertices whose own tables were read."""
    contested: Pairs
    """Cables seen at a port that has a likelier one."""
    strangers: tuple[tuple[int, str], ...]
    """Ports other than those of hosts, with a neighbour that is no node of the plan."""
    unknown_ports: tuple[tuple[str, str], ...]
    """Nodes of the plan, with a port that their type lacks and that should be in the fabric."""
    other_ports: tuple[tuple[str, str, str], ...] = ()
    """Nodes of the plan, with a port outside it, for management or hosts, and what is there."""
    unclear: Pairs = frozenset()
    """Planned cables of which tables tell something, but not the port at the other end."""
    empty: tuple[int, ...] = ()
    """Reporters whose tables have no neighbour at all."""


def _all(first: NDArray[np.int64], count: NDArray[np.int64]) -> list[int]:
    """All sockets of ports with this first one, and so many."""
    place = np.arange(count.sum()) - np.repeat(np.cumsum(count) - count, count)
    sockets: list[int] = (np.repeat(first, count) + place).tolist()
    return sockets


@dataclass(frozen=True)
class PortFinder:
    """The sockets of a plan: numbers, and names by number.

    types: of `Hardware`, for parallel cables; without them every port has one socket.
    """

    wiring: Wiring
    types: tuple[PortFacts, ...] = ()

    @cached_property
    def sockets(self) -> tuple[tuple[tuple[str, ...], ...], ...]:
        """The names of the sockets of every port of each type."""
        if self.types:
            return tuple(facts.sockets for facts in self.types)
        return tuple(tuple((name,) for name in names) for names in self.wiring.port_names)

    @cached_property
    def width(self) -> int:
        """W, one more than the sockets of the largest type."""
        return 1 + max(sum(map(len, ports)) for ports in self.sockets)

    def first(self) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """int64[T, ports + 1] twice: the first socket of each port, and the number of sockets."""
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
        many = count[w.node_type[switch], port]
        near_end = switch * self.width + first[w.node_type[switch], port]
        far_end = far.astype(np.int64) * self.width + first[w.node_type[far], far_port]
        return frozenset(zip(_all(near_end, many), _all(far_end, many), strict=True))

    def of_hosts(self) -> frozenset[int]:
        """The sockets of the host ports."""
        switch, host = np.nonzero(self.wiring.host_port)
        first, count = self.first()
        here = self.wiring.node_type[switch], self.wiring.host_port[switch, host]
        return frozenset(_all(switch * self.width + first[here], count[here]))

    def between(self, pair: Pair) -> Pair:
        """The first sockets of the two ports of a cable; its own ends if their places differ."""
        places = [self._place(end) for end in pair]
        if places[0] != places[1]:
            return pair
        return pair[0] - places[0], pair[1] - places[1]

    def _place(self, port: int) -> int:
        """The place of a socket in its port, from 0."""
        vertex, socket = divmod(port, self.width)
        places = self._places[int(self.wiring.node_type[vertex])]
        return places[socket - 1]

    @cached_property
    def _places(self) -> list[list[int]]:
        return [[k for names in ports for k in range(len(names))] for ports in self.sockets]

    def vertex(self, port: int) -> int:
        """The vertex that has the port."""
        return port // self.width

    def node(self, port: int) -> str:
        """The name of the node that has the port."""
        return self.wiring.names[port // self.width]

    def name(self, port: int) -> str:
        """The port's name at its node."""
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
) -> Wired:
    """The cables that neighbour data shows.

    Names match in any case, with or without a domain; nodes also by management address, serial
    number, GUID and datapath id, ports also by label. Of several neighbours at a port, the one that
    sees the port too wins, then the planned one.

    Ports have the names of the system that printed the table of their node. Where its form does not
    tell, as lldpctl's does not, all have those of the system by which most planned cables are seen.

    Args:
        facts: the neighbour data.
        wiring: the plan.
        hardware: for serial numbers, GUIDs and labels, if an inventory gave them.
        systems: the names that systems have, plane by plane, by target; a form's name is one.
    """
    ports = PortFinder(wiring, hardware.types if hardware else ())
    book = _Directory(ports, hardware, systems)
    planned = ports.planned()
    book.settle(facts, planned)
    sightings = _Sightings(book, ports, planned)
    for near, _ in facts.seen:
        book.learn(near)
    for near, far in facts.seen:
        sightings.add(near, far)
    sightings.place_halves()
    reporters = {u for nodes in facts.reporters if (u := book.vertex(nodes)) is not None}
    cables, contested = likeliest(sightings.seen, planned)
    return Wired(
        cables,
        frozenset(reporters),
        contested,
        tuple(sightings.strangers),
        tuple(sightings.unknown),
        tuple(sightings.others),
        sightings.unclear(),
        tuple(sorted(reporters - sightings.seeing)),
    )


class _Sightings:
    """What tables say of the ports of a plan, sorted by what can be told of each."""

    def __init__(self, book: _Directory, ports: PortFinder, planned: Pairs) -> None:
        self.book, self.ports, self.planned = book, ports, planned
        self.names, self.width = ports.wiring.names, ports.width
        self.hosts = ports.of_hosts()
        self.mate = {end: other for a, b in planned for end, other in ((a, b), (b, a))}
        self.seen: Counter[tuple[int, int]] = Counter()
        self.strangers: dict[tuple[int, str], None] = {}
        self.unknown: dict[tuple[str, str], None] = {}
        self.others: dict[tuple[str, str, str], None] = {}
        self.seeing: set[int] = set()
        self.halves: dict[tuple[int, int], dict[int, str]] = {}
        """By the node that sees and the one that is seen: its ports, the word for the far port."""
        self._vague: set[int] = set()
        self._vague_nodes: set[tuple[int, int]] = set()

    def add(self, near: End, far: End) -> None:
        """A neighbour at a port."""
        u, v = self.book.vertex(near.nodes), self.book.vertex(far.nodes)
        if u is None:
            return
        self.seeing.add(u)
        p = self.book.port(u, near)
        if p is None:
            self._at_no_port(u, near, v, far)
            return
        here = u * self.width + p
        if v is None:
            if here not in self.hosts:
                self.strangers[here, far.nodes[0]] = None
            return
        r = self.book.port(v, far)
        if r is not None:
            if (there := v * self.width + r) != here:
                self.seen[here, there] += 1
        elif here not in self.mate and (here in self.hosts or _management(far)):
            self.others[self.names[u], self.ports.name(here), far.nodes[0]] = None
        elif far.ports == (UNNAMED_PORT,) or (
            any(map(NUMBER.fullmatch, far.ports)) and not _management(far)
        ):
            self.halves.setdefault((u, v), {})[here] = far.ports[-1]
        else:
            self._unknown(v, far.ports[0], here, u)

    def _at_no_port(self, u: int, near: End, v: int | None, far: End) -> None:
        """A neighbour at a port that the type of the node lacks."""
        r = None if v is None else self.book.port(v, far)
        there = None if v is None or r is None else v * self.width + r
        in_fabric = there in self.mate if there is not None else not (_management(far))
        if v is None or not in_fabric or (there is None and _management(near)):
            self.others[self.names[u], near.ports[0], far.nodes[0]] = None
        else:
            self._unknown(u, near.ports[0], there, v)

    def _unknown(self, vertex: int, port: str, at: int | None, seer: int) -> None:
        """A port of a node that no one knows, seen at a port of another or at no known one."""
        self.unknown[self.names[vertex], port] = None
        self._vague_nodes.add((min(vertex, seer), max(vertex, seer)))
        if at is not None:
            self._vague.add(at)

    def place_halves(self) -> None:
        """Find the far ports that tables do not name.

        The far node may say itself at which port it sees this one. Where each of two nodes sees the
        other at one port, these two are joined. Else the planned cable is taken to be there if it
        leads to that node, or the cable leads to the one port that the plan has for it.
        """
        seers: dict[int, list[int]] = {}
        for here, there in self.seen:
            seers.setdefault(there, []).append(here)
        joining: dict[tuple[int, int], list[int]] = {}
        for here, there in self.mate.items():
            joining.setdefault((here // self.width, there // self.width), []).append(here)
        for (u, v), at in self.halves.items():
            back = self.halves.get((v, u), {})
            for here, word in at.items():
                seer = next((e for e in seers.get(here, ()) if e // self.width == v), None)
                if seer is not None:
                    there = seer
                elif len(at) == len(back) == 1:
                    there = next(iter(back))
                elif self.mate.get(here, -1) // self.width == v:
                    there = self.mate[here]
                elif len(at) == len(planned := joining.get((u, v), [])) == 1:
                    there = self.mate[planned[0]]
                else:
                    self._unknown(v, word, here, u)
                    continue
                self.seen[here, there] += 1

    def unclear(self) -> Pairs:
        """The planned cables at ports, and of pairs of nodes, of which not all is known."""
        return frozenset(
            pair
            for pair in (self.planned if self._vague_nodes else ())
            if not self._vague.isdisjoint(pair)
            or (pair[0] // self.width, pair[1] // self.width) in self._vague_nodes
        )


def _management(end: End) -> bool:
    return any(map(MANAGEMENT.fullmatch, end.ports))


def likeliest(seen: Counter[tuple[int, int]], planned: Pairs) -> tuple[Pairs, Pairs]:
    """At most one cable per port, and the contested cables, whose port was taken."""
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
    """Numbers of nodes and ports by all their names."""

    def __init__(
        self,
        ports: PortFinder,
        hardware: Hardware | None,
        systems: Mapping[str, Sequence[SystemNames]],
    ) -> None:
        wiring = ports.wiring
        self.width, self.systems = ports.width, systems
        self.nodes: dict[str, int] = {}
        hosts = [chain.from_iterable(n.nodes for n in planes) for planes in systems.values()]
        kinds = [*hosts, (f"dpid:{d:#x}" for d in wiring.datapath_id.tolist()), wiring.management]
        kinds += [hardware.guid, hardware.serial] if hardware else []
        for column in (*kinds, wiring.names):
            self.nodes |= {text.lower(): v for v, text in enumerate(column) if text}
        self.first = ports.first()[0].tolist()
        own: list[dict[str, int]] = []
        for t, names in enumerate(wiring.port_names):
            labels = hardware.types[t].label if hardware else ()
            at = self.first[t]
            known = {f"#{n}": at[n] for n in range(1, len(names) + 1)}
            for column in (labels, names):
                known |= {text.lower(): at[n] for n, text in enumerate(column, 1)}
            for n, sockets in enumerate(ports.sockets[t], 1):
                known |= {text.lower(): at[n] + k for k, text in enumerate(sockets)}
            own.append(known)
        self.ports = {"": own}
        self.described: dict[str, list[dict[str, int]]] = {"": []}
        self.node_type: list[int] = wiring.node_type.tolist()
        self.numbers: dict[int, dict[str, int]] = {}
        self.system: dict[int, str] = {}
        self.usual = ""

    def settle(self, facts: Facts, planned: Pairs) -> None:
        """Find the system of every node; see `resolve`."""
        for nodes, form in facts.forms:
            vertex = self.vertex(nodes)
            if vertex is not None and form in self.systems:
                self.system[vertex] = form
        ends = [(self.vertex(a.nodes), self.vertex(b.nodes), a, b) for a, b in facts.seen]
        known = [(u, v, a, b) for u, v, a, b in ends if u is not None and v is not None]
        right: dict[str, int] = {}
        for system in ("", *self.systems) if known else ():
            self.usual = system
            right[system] = sum(self._pair(u, v, a, b) in planned for u, v, a, b in known)
            if right[system] == len(known):
                break
        self.usual = max(right, key=right.__getitem__, default="")

    def learn(self, near: End) -> None:
        """The SNMP number of a port, where the node's own table has it beside the name."""
        numbers = [word.lower() for word in near.ports[1:] if NUMBER.fullmatch(word)]
        if not numbers or (vertex := self.vertex(near.nodes)) is None:
            return
        if (port := self.port(vertex, near)) is not None:
            self.numbers.setdefault(vertex, {}).update(dict.fromkeys(numbers, port))

    def _pair(self, u: int, v: int, near: End, far: End) -> Pair:
        places = self.port(u, near), self.port(v, far)
        one, other = sorted(n * self.width + (p or 0) for n, p in zip((u, v), places, strict=True))
        return one, other

    def vertex(self, nodes: tuple[str, ...]) -> int | None:
        """The vertex of the first name that is known, None if none is."""
        for word in nodes:
            for name in _shorter(word.lower()):
                if name in self.nodes:
                    return self.nodes[name]
        return None

    def port(self, vertex: int, end: End) -> int | None:
        """The number of the first port name that is known, None if none is.

        A description as it was rendered is of one port only, and goes before names.
        """
        system, kind = self.system.get(vertex, self.usual), self.node_type[vertex]
        if system not in self.ports:
            self._learn(system)
        described = self.described[system][vertex] if system else {}
        words = [word.lower() for word in end.ports]
        found = (
            known[word]
            for known in (described, self.ports[system][kind], self.numbers.get(vertex, {}))
            for word in words
            if word in known
        )
        return next(found, None)

    def _learn(self, system: str) -> None:
        """The names of a system, which go before the build's own."""
        names = self.systems[system]
        self.ports[system] = [
            known
            | {
                text.lower(): self.first[t][n]
                for n, texts in enumerate(names[0].ports(t), 1)
                for text in texts
            }
            for t, known in enumerate(self.ports[""])
        ]
        self.described[system] = [
            {text.lower(): self.first[int(kind)][port] for text, port in plane.descriptions(vertex)}
            for plane in names
            for vertex, kind in enumerate(plane.wiring.node_type)
        ]


def _shorter(name: str) -> Iterator[str]:
    """The name, then shortened by one part of its domain after the other."""
    while name:
        yield name
        name = name.rpartition(".")[0]
