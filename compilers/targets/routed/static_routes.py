"""The routed form: what every router needs, as values, before any text.

It stands between the tables and targets that are IP routers: interfaces and neighbours of a
switch, its routes by prefix and class, and the order in which ports are tried for a packet, by
where it came in.

Links are unnumbered. Every switch has one IPv4 address, the gateway of its block, and one
link-local address, fe80::V+1 for vertex V, the same on all its links. A next hop is the
neighbour's address *and* the port, so a packet on a wrong cable finds nobody there.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from ipaddress import IPv4Network, IPv6Address, IPv6Network
from itertools import compress
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from compilers.tables.build import Build
from compilers.tables.intermediate_form import no_route
from compilers.targets.routed.interfaces import BRIDGE, LINUX, Interfaces, PhysicalPort
from compilers.targets.routed.route_rows import PrefixTexts
from compilers.wiring.addressing import Addressing
from inventory.problems import InputError, Problem, few

Numbers = NDArray[np.integer]
Network = TypeVar("Network", IPv4Network, IPv6Network)
LINK_LOCAL = 0xFE80 << 112
DISCARDED = -1
"""In the place of a port: packets that find none before it are dropped."""
HOST_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,62}")


@dataclass(frozen=True, slots=True)
class StaticLink:
    """A link of a switch: the port and its interface, and who is at the other end.

    ipv4, ipv6: the neighbour's gateway address and its link-local address.
    """

    port: int
    interface: str
    far: str
    far_interface: str
    ipv4: str
    ipv6: str


@dataclass(frozen=True, slots=True)
class StaticSwitch:
    """A switch as the templates print it; "" stands for what is not there.

    ipv4, ipv6: its gateway addresses. link_local: its address on every link. hosts: the interface
    of its hosts: the port of the only one, or a bridge of `host_ports`. mtu: of the ports whose MTU
    the inventory says.
    """

    node: str
    ipv4: str
    ipv4_length: int
    ipv6: str
    link_local: str
    links: tuple[StaticLink, ...]
    hosts: str
    host_ports: tuple[str, ...]
    mtu: Mapping[str, int]


@dataclass(frozen=True, slots=True)
class PortOrder:
    """Ports by class in the order they are tried, for packets that came in on `in_port`.

    in_port: 0 for packets from anywhere that has no chain of its own. port: int[C, M], 0: no port.
    Classes that do the same as anywhere have no ports at all. `DISCARDED` may be the last.
    """

    in_port: int
    port: Numbers


@dataclass(frozen=True, slots=True)
class IngressShare:
    """The ports that share a class's entering traffic, their weights, and which of them mark it.

    Where ways are shared at every hop they share that in transit, too.
    """

    egress: int
    port: tuple[int, ...]
    weight: tuple[int, ...]
    marks: tuple[bool, ...]


@dataclass(frozen=True, slots=True)
class RoutedFabric:
    """The routers of a build.

    ports: by node type and number. prefixes: the text of every prefix, for each address family.
    named, both: the same for columns of routes; in `both` those of the second family come behind.
    gateways: that of every switch's IPv4 address. link_locals: that of its address on links.
    misnamed: what is wrong with the port names of a node type, by its name. Such nodes are of
    another system: they are not rendered, and their neighbours call their ports as the build does.
    """

    build: Build
    ports: list[list[PhysicalPort]]
    prefixes: tuple[list[str], ...]
    named: tuple[PrefixTexts, ...]
    both: PrefixTexts
    gateways: list[str]
    link_locals: list[str]
    misnamed: Mapping[str, Problem]

    @classmethod
    def of(cls, build: Build, interfaces: Interfaces = LINUX) -> RoutedFabric:
        """The routers of a build.

        Args:
            build: ports named as the system names them.
            interfaces: the names that the system has for ports.

        Raises:
            InputError: names of nodes that the system cannot have, or of the ports of all types.
        """
        wrong = [(finding.path, finding.problem()) for finding in interfaces.wrong_names(build)]
        misnamed = {str(path[1]): problem for path, problem in wrong}
        every = len(misnamed) == len(np.unique(build.wiring.node_type))
        if problems := [*bad_nodes(build), *(misnamed.values() if every else ())]:
            raise InputError(few(problems))
        a = build.addressing
        prefixes = [[str(a.network(p)) for p in range(len(a.ipv4_prefixes()[0]))]]
        if a.ipv6:
            prefixes.append([str(a.network6(p)) for p in range(len(a.ipv6_prefixes()[0]))])
        vertices = range(build.tables.switches)
        return cls(
            build=build,
            ports=interfaces.ports(build),
            prefixes=tuple(prefixes),
            named=tuple(map(PrefixTexts, prefixes)),
            both=PrefixTexts([text for texts in prefixes for text in texts]),
            gateways=[str(a.gateway(v)) for v in vertices],
            link_locals=[str(IPv6Address(LINK_LOCAL + v + 1)) for v in vertices],
            misnamed=misnamed,
        )

    def port(self, vertex: int, number: int) -> PhysicalPort:
        """A port of a switch, from 1.

        Raises:
            InputError: the system cannot have names of its node type's ports.
        """
        w = self.build.wiring
        if problem := self.misnamed.get(w.type_names[w.node_type[vertex]]):
            given = f"{problem.given}, at {w.names[vertex]}"
            todo = f"{problem.todo}, or render only nodes of this system (--node, --type)"
            raise InputError(replace(problem, given=given, todo=todo))
        return self.ports[int(self.build.wiring.node_type[vertex])][number - 1]

    def switch(self, vertex: int) -> StaticSwitch:
        """Names and addresses of a switch and of its neighbours."""
        a, w = self.build.addressing, self.build.wiring
        there = w.host_port[vertex] > 0
        ports = tuple(w.port_name(vertex, port) for port in w.host_port[vertex][there].tolist())
        used = [*w.port[vertex].tolist(), *w.host_port[vertex].tolist()]
        known = [self.port(vertex, port) for port in used if port]
        return StaticSwitch(
            node=w.names[vertex],
            ipv4=self.gateways[vertex],
            ipv4_length=a.ipv4_length,
            ipv6=str(a.network6(vertex)[1]) if a.ipv6 else "",
            link_local=self.link_locals[vertex],
            links=tuple(self._links(vertex)),
            hosts=ports[0] if len(ports) == 1 else BRIDGE if ports else "",
            host_ports=ports if len(ports) > 1 else (),
            mtu={port.name: port.mtu for port in known if port.mtu},
        )

    def _links(self, vertex: int) -> Iterator[StaticLink]:
        w = self.build.wiring
        there = w.far[vertex] >= 0
        columns = (column[vertex][there].tolist() for column in (w.port, w.far, w.far_port))
        for port, far, far_port in zip(*columns, strict=True):
            yield StaticLink(
                port=port,
                interface=w.port_name(vertex, port),
                far=w.names[far],
                far_interface=w.port_name(far, far_port),
                ipv4=self.gateways[far],
                ipv6=self.link_locals[far],
            )

    def routes(self, vertex: int) -> tuple[NDArray[np.int32], NDArray[np.integer]]:
        """int32[n], int[n]: prefix numbers and classes of a switch; its own prefix is no route."""
        routes = self.build.tables.routes
        egress = routes.egress[vertex]
        kept = egress < no_route(egress)
        return routes.prefixes(vertex)[kept], egress[kept]

    def chains(self, vertex: int) -> Iterator[PortOrder]:
        """What a packet in transit does, by where it came in: the rule of `Classes`."""
        classes = self.build.tables.classes
        minimal = classes.port[vertex, :, None]
        protection = classes.protection[vertex]
        order = np.concatenate((minimal, protection), axis=1)
        yield PortOrder(0, order)
        bounce = classes.bounce[vertex]
        if not protection.shape[1] and not bounce.shape[1]:
            return
        ways = self.ways(vertex)
        turned = np.column_stack((bounce, minimal))
        width = max(order.shape[1], turned.shape[1])
        order, bounce, turned = (
            np.pad(p, ((0, 0), (0, width - p.shape[1]))) for p in (order, bounce, turned)
        )
        for port in self.build.wiring.port[vertex][self.build.wiring.far[vertex] >= 0].tolist():
            among, listed = ((p == port).any(axis=1) for p in (ways, order))
            ahead = np.where(minimal == port, bounce, order)
            ahead = np.where(among[:, None], turned, ahead)
            last = np.where(listed, port, DISCARDED)
            ahead = np.column_stack((np.where(ahead == port, 0, ahead), last))
            ahead[~(among | (listed & ~ways.any(axis=1)))] = 0
            if ahead.any():
                yield PortOrder(port, ahead)

    def ways(self, vertex: int) -> Numbers:
        """int[C, W]: where packets in transit are shared, too, the ways of classes with several."""
        classes = self.build.tables.classes
        if not self.build.every_hop:
            return np.zeros((len(classes.port[vertex]), 0), np.int64)
        ways = np.column_stack((classes.port[vertex], classes.alternate[vertex]))
        ways = ways * (classes.weight[vertex] > 0)
        several: Numbers = ways * (np.count_nonzero(ways, axis=1) > 1)[:, None]
        return several

    def shares(self, vertex: int) -> Iterator[IngressShare]:
        """Classes whose entering traffic does otherwise than that in transit."""
        classes = self.build.tables.classes
        if not classes.alternate.shape[2]:
            return
        ports = np.column_stack((classes.port[vertex], classes.alternate[vertex]))
        weights = classes.weight[vertex] * (ports > 0)
        for egress in np.flatnonzero(weights[:, 1:].any(axis=1)).tolist():
            used = weights[egress] > 0
            port, weight = ports[egress, used].tolist(), weights[egress, used].tolist()
            minimal, marks = int(ports[egress, 0]), self.build.marks
            marked = tuple(marks and p != minimal for p in port)
            yield IngressShare(egress, tuple(port), tuple(weight), marked)

    def pools(self) -> list[str]:
        """See `fabric_pools`."""
        return fabric_pools(self.build.addressing)


def fabric_pools(a: Addressing) -> list[str]:
    """For each family, the smallest network that holds every block of the fabric."""
    last = len(a.host_mac) - 1
    pools = [str(_cover(a.network(0), a.network(last)))]
    return [*pools, str(_cover(a.network6(0), a.network6(last)))] if a.ipv6 else pools


def _cover(first: Network, last: Network) -> Network:
    while last.broadcast_address not in first:
        first = first.supernet()
    return first


def bad_names(names: Iterable[str], key: str, todo: str) -> list[Problem]:
    """The names that cannot stand in files, nor name them."""
    return [
        Problem(
            key=key,
            required="a name of at most 63 letters, digits and . _ -, a letter or digit first",
            given=repr(name),
            todo=todo,
        )
        for name in names
        if not HOST_NAME.fullmatch(name)
    ]


def bad_nodes(build: Build) -> list[Problem]:
    """The names of nodes with a program that cannot be host names and file names."""
    there = compress(build.wiring.names, build.topology.present)
    return bad_names(there, "nodes", "it becomes a host name and a file name")
