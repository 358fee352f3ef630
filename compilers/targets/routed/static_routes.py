"""The routed form: what every router needs, as values, before any text.

It is between the tables and targets that are IP routers: interfaces and neighbours of a
switch, its routes by prefix and class, and the order in which ports are tried for a packet, by
where it came in.

Links are unnumbered. Every switch has one IPv4 address, the gateway of its block, and one
link-local address, fe80::V+1 for vertex V, the same on all its links. A next hop is the
neighbour's address *and* the port, so a packet on a wrong cable finds no neighbour there.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from ipaddress import IPv4Network, IPv6Address, IPv6Network, ip_address
from itertools import chain, compress
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from compilers.readers.devices.held_routes import DISCARD, Choices
from compilers.tables.build import Build
from compilers.targets.options import SET
from compilers.targets.routed.interfaces import BRIDGE, Interfaces, PhysicalPort
from compilers.targets.routed.linux_ports import LINUX
from compilers.targets.routed.route_rows import PrefixTexts
from compilers.wiring.addressing import Addressing
from inventory.problems import InputError, Problem, few

Numbers = NDArray[np.integer]
Network = TypeVar("Network", IPv4Network, IPv6Network)
LINK_LOCAL = 0xFE80 << 112
DISCARDED, SHARED = -1, -2
"""In the place of a port: packets that find none before it are dropped; the next hops of the class,
by their weights."""
PortHops = Mapping[int, tuple[str, str]]
"""The gateway and the interface of every port."""
NO_PORT_HOPS: PortHops = {}
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
    """A switch as the templates print it; "" for what is not there.

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

    def hops(self, gateway: str) -> PortHops:
        """The neighbour's address behind every port; gateway: the field of its link, ipv4, ipv6."""
        return {link.port: (getattr(link, gateway), link.interface) for link in self.links}


@dataclass(frozen=True, slots=True)
class IngressShare:
    """The ports that share a class's entering traffic, their weights, and which of them mark it.

    Where packets are shared at every hop they share that in transit, too.
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
        prefixes = a.prefix_texts()
        vertices = range(build.tables.switches)
        return cls(
            build=build,
            ports=interfaces.ports(build),
            prefixes=prefixes,
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
            todo = f"{problem.todo}, or render only nodes of this system (`node`)"
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
        for port, far, far_port in w.ends(vertex):
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
        return self.build.tables.routes.of(vertex)

    def orders(self, vertex: int) -> dict[int, Numbers]:
        """By the port where a packet in transit came in, 0 for any: the rule of `Classes`.

        int64[C, M], what each class tries in order: ports, 0 for nothing, `DISCARDED` last. Of a
        port only what differs from that for any: other classes have 0.
        """
        classes = self.build.tables.classes
        minimal = classes.port[vertex, :, None].astype(np.int64)
        protection, bounce = classes.protection[vertex], classes.bounce[vertex]
        order = np.concatenate((minimal, protection), axis=1)
        orders = {0: order}
        if not protection.shape[1] and not bounce.shape[1]:
            return orders
        ingress = self.ingress(vertex)
        turned = np.column_stack((bounce, minimal))
        width = max(order.shape[1], turned.shape[1])
        order, bounce, turned = (
            np.pad(p, ((0, 0), (0, width - p.shape[1]))) for p in (order, bounce, turned)
        )
        for port, _, _ in self.build.wiring.ends(vertex):
            among, listed = ((p == port).any(axis=1) for p in (ingress, order))
            ahead = np.where(minimal == port, bounce, order)
            ahead = np.where(among[:, None], turned, ahead)
            last = np.where(listed, port, DISCARDED)
            ahead = np.column_stack((np.where(ahead == port, 0, ahead), last))
            ahead[~(among | (listed & ~ingress.any(axis=1)))] = 0
            if ahead.any():
                orders[port] = ahead
        return orders

    def table(
        self,
        vertex: int,
        family: int,
        order: Numbers,
        hops: PortHops,
        marked: PortHops = NO_PORT_HOPS,
    ) -> dict[str, Choices]:
        """The routes of a table, by their prefixes; next hops that share in the order of the class.

        Args:
            vertex: of the switch.
            family: 0 for IPv4, 1 for IPv6.
            order: int64[C, M], what each class tries, as in `orders`; `SHARED` is all its next
                hops.
            hops: the gateway and the interface of every port.
            marked: the same of packets that are marked.
        """
        there: NDArray[np.bool_] = (order != 0).any(axis=1)
        known: dict[int, Choices] = {port: (((*hop, 1),),) for port, hop in hops.items()}
        known |= {0: (), DISCARDED: (DISCARD,)}
        shares = {s.egress: s for s in self.shares(vertex)} if (order == SHARED).any() else {}
        choices: dict[int, Choices] = {}
        for egress, ports in zip(
            np.flatnonzero(there).tolist(), order[there].tolist(), strict=True
        ):
            if SHARED in ports:
                s = shares[egress]
                each = zip(s.port, s.weight, s.marks, strict=True)
                known[SHARED] = (tuple((*(marked if mark else hops)[p], w) for p, w, mark in each),)
            choices[egress] = tuple(chain.from_iterable(map(known.__getitem__, ports)))
        prefix, egress_of = self.routes(vertex)
        kept = there[egress_of]
        texts = map(self.prefixes[family].__getitem__, prefix[kept].tolist())
        found = map(choices.__getitem__, egress_of[kept].tolist())
        return dict(zip(texts, found, strict=True))

    def ingress(self, vertex: int) -> Numbers:
        """int[C, W]: the next hops of classes with several, where transit is shared, too."""
        classes = self.build.tables.classes
        if not self.build.forwarding.every_hop:
            return np.zeros((len(classes.port[vertex]), 0), np.int64)
        ingress = np.column_stack((classes.port[vertex], classes.alternate[vertex]))
        ingress = ingress * (classes.weight[vertex] > 0)
        several: Numbers = ingress * (np.count_nonzero(ingress, axis=1) > 1)[:, None]
        return several

    def sharing(self, vertex: int) -> NDArray[np.intp]:
        """int[n]: the classes of `shares`."""
        classes = self.build.tables.classes
        weights = classes.weight[vertex, :, 1:] * (classes.alternate[vertex] > 0)
        return np.flatnonzero(weights.any(axis=1))

    def shares(self, vertex: int) -> Iterator[IngressShare]:
        """Classes whose entering traffic does otherwise than that in transit."""
        classes, marked = self.build.tables.classes, self.build.forwarding.marks
        if not classes.alternate.shape[2]:
            return
        ports = np.column_stack((classes.port[vertex], classes.alternate[vertex]))
        weights = classes.weight[vertex] * (ports > 0)
        several = self.sharing(vertex)
        rows = several.tolist(), ports[several].tolist(), weights[several].tolist()
        for egress, port, weight in zip(*rows, strict=True):
            used = [(p, w) for p, w in zip(port, weight, strict=True) if w]
            found, share = zip(*used, strict=True)
            yield IngressShare(egress, found, share, tuple(marked and p != port[0] for p in found))

    def pools(self) -> list[str]:
        """See `fabric_pools`."""
        return fabric_pools(self.build.addressing)


def fabric_pools(a: Addressing) -> list[str]:
    """For each family, the smallest network that holds every block of the fabric."""
    last = len(a.host_mac) - 1
    pools = [str(_cover(a.network(0), a.network(last)))]
    return [*pools, str(_cover(a.network6(0), a.network6(last)))] if a.ipv6 else pools


def pool_problems(
    build: Build,
    given: Mapping[str, tuple[IPv4Network | IPv6Network, IPv4Network | IPv6Network | None]],
    needed: int,
    purpose: str,
) -> Iterator[Problem]:
    """Pools of an option each that are too small, or hold addresses of hosts or of management.

    Args:
        build: of the fabric.
        given: by option the pool, and the hosts' of its family; None where they have none.
        needed: addresses of each.
        purpose: what they are for.
    """
    reached = [ip_address(text) for text in build.wiring.management if text]
    for name, (pool, hosts) in given.items():
        if hosts is None:
            continue
        key = f"{SET} {name}"
        if pool.num_addresses < needed:
            required, what = f"a network of at least {needed:,} addresses", f"{pool}"
        elif pool.overlaps(hosts):
            required, what = "addresses other than those of hosts", f"{pool}, and hosts in {hosts}"
        elif inside := [address for address in reached if address in pool]:
            required = "addresses other than those of management"
            what = f"{pool}, and {inside[0]}"
        else:
            continue
        yield Problem(f"{required} for {purpose}", what, key=key)


def _cover(first: Network, last: Network) -> Network:
    while last.broadcast_address not in first:
        first = first.supernet()
    return first


def bad_names(names: Iterable[str], key: str, todo: str) -> list[Problem]:
    """The names that cannot be written in files, nor name them."""
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
