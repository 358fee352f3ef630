"""Neighbour data resolved to cables between ports of the plan, noise set aside.

The sockets of a node are numbered from 1, like its ports if each has one socket. Socket s of vertex
v is v·W + s, with W one more than the sockets of the largest node type, so a cable is a pair of
integers.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import chain, islice
from types import MappingProxyType

import numpy as np
from numpy.typing import NDArray

from compilers.readers.devices.neighbour_facts import End, Facts
from compilers.targets.system_names import SystemNames
from compilers.wiring.hardware import Hardware, PortFacts
from compilers.wiring.wiring import Wiring

Pair = tuple[int, int]
Pairs = frozenset[Pair]


@dataclass(frozen=True, slots=True)
class Wired:
    """The cables that neighbour tables show.

    cables: pairs of ports, the smaller first. reporters: vertices whose own tables were read.
    contested: cables seen at a port that has a likelier one. strangers: ports other than those of
    hosts, with a neighbour that is no node of the plan. unknown_ports: nodes of the plan, with a
    port that their type lacks.
    """

    cables: Pairs
    reporters: frozenset[int]
    contested: Pairs
    strangers: tuple[tuple[int, str], ...]
    unknown_ports: tuple[tuple[str, str], ...]


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
    hosts = ports.of_hosts()
    planned = ports.planned()
    book.settle(facts, planned)
    seen: Counter[tuple[int, int]] = Counter()
    strangers: dict[tuple[int, str], None] = {}
    unknown: dict[tuple[str, str], None] = {}
    for near, far in facts.seen:
        u, v = book.vertex(near.nodes), book.vertex(far.nodes)
        if u is None:
            continue
        p = book.port(u, near)
        if p is None:
            unknown[wiring.names[u], near.ports[0]] = None
            continue
        here = u * ports.width + p
        if v is None:
            if here not in hosts:
                strangers[here, far.nodes[0]] = None
            continue
        r = book.port(v, far)
        if r is None:
            unknown[wiring.names[v], far.ports[0]] = None
        elif (there := v * ports.width + r) != here:
            seen[here, there] += 1
    reporters = {u for nodes in facts.reporters if (u := book.vertex(nodes)) is not None}
    cables, contested = likeliest(seen, planned)
    return Wired(cables, frozenset(reporters), contested, tuple(strangers), tuple(unknown))


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
            for known in (described, self.ports[system][kind])
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
