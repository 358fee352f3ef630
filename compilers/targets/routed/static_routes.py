"""The routers of a build as values, from which the targets of all IP routers start.

`BuildRouters` has the interfaces and neighbours of each switch, its routes (to a prefix by an
*egress class*, the set of ports that lead there), and the *order* in which each class tries ports
for a packet, by the port where the packet came in. A class *shares* packets if it spreads them over
several ports by weight. Packets that share and are not sent by the minimal port may be *marked*,
for the next switch to spread them further (`kernel_marks`).

Links are unnumbered, unless a fabric of several systems has a `LinkPlan`. Every switch has one IPv4
address, the gateway of its block, and one link-local address, fe80::V+1 for vertex V, the same on
all its links. A next hop is the neighbour's address *and* the port, so a packet on a wrong cable
finds no neighbour there.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from ipaddress import IPv4Network, IPv6Address, IPv6Network
from itertools import chain, repeat
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from compilers.readers.devices.held_routes import DISCARD, Choices
from compilers.tables.build import Build
from compilers.targets.routed.interfaces import BRIDGE, Interfaces, PhysicalPort
from compilers.targets.routed.link_addresses import LinkAddresses, LinkPlan
from compilers.targets.routed.linux_ports import LINUX
from compilers.targets.routed.route_rows import PrefixTexts
from compilers.targets.routed.router_problems import link_problems, node_name_problems
from compilers.wiring.addressing import Addressing
from inventory.problems import InputError, Problem, few

Numbers = NDArray[np.integer]
Network = TypeVar("Network", IPv4Network, IPv6Network)
IPV4_FAMILY, IPV6_FAMILY = 0, 1
"""The numbers of address families, as indices of `BuildRouters.prefixes` and of pools."""
LINK_LOCAL = 0xFE80 << 112
"""fe80::, as a number."""
FIXED_LINK_LOCAL = "fixed link-local addresses"
"""How static routes go over links without addresses: each switch has one link-local address."""
DISCARDED = -1
"""In the place of a port in an order: packets that no port before it took are dropped here."""
ALL_NEXT_HOPS = -2
"""In the place of a port in an order: all next hops of the class share packets, by weight. (A 0 is
in the place of no port, and is passed over.)"""
PortHops = Mapping[int, tuple[str, str]]
"""The gateway and the interface of the next hop at every port."""
NO_PORT_HOPS: PortHops = {}
"""No next hop at any port."""


@dataclass(frozen=True, slots=True)
class StaticLink:
    """A link of a switch."""

    port: int
    """The number of the switch's port."""
    interface: str
    """The name of that port."""
    far: str
    """The node at the other end."""
    far_interface: str
    """The name of the port there."""
    ipv4: str
    """The neighbour's gateway address."""
    ipv6: str
    """The neighbour's link-local address."""
    addresses: LinkAddresses
    """The addresses of the link, if it has some. Then `ipv4` and `ipv6` are the neighbour's
    addresses on this link."""


@dataclass(frozen=True, slots=True)
class StaticSwitch:
    """A switch as the templates print it; "" for what does not exist."""

    node: str
    """The name of the switch."""
    ipv4: str
    """Its gateway address."""
    ipv4_length: int
    """The prefix length of its hosts' network."""
    ipv6: str
    """Its IPv6 gateway address."""
    link_local: str
    """Its address on every link."""
    links: tuple[StaticLink, ...]
    """Its links."""
    hosts: str
    """The interface of its hosts: the port of the only one, or a bridge of `host_ports`."""
    host_ports: tuple[str, ...]
    """The ports of its hosts, if there are several."""
    mtu: Mapping[str, int]
    """The MTU of ports for which the inventory says it."""

    def hops(self, gateway_field: str) -> PortHops:
        """The next hop at every port.

        Args:
            gateway_field: the field of the link with the neighbour's address, `ipv4` or `ipv6`.
        """
        return {link.port: (getattr(link, gateway_field), link.interface) for link in self.links}


@dataclass(frozen=True, slots=True)
class MultipathGroup:
    """The ports of an egress class that share packets.

    Where every hop shares packets (`every_hop`) they share all packets, elsewhere those from hosts.
    """

    egress: int
    """The number of the class."""
    ports: tuple[int, ...]
    """Its ports."""
    weights: tuple[int, ...]
    """The weight of each port."""
    marks: tuple[bool, ...]
    """Whether each port marks the packets that it sends."""


@dataclass(frozen=True, slots=True)
class BuildRouters:
    """The routers of a build."""

    build: Build
    """The build, with ports named as the system names them."""
    ports: list[list[PhysicalPort]]
    """The ports, by node type and number."""
    prefixes: tuple[list[str], ...]
    """The text of every prefix, for each address family."""
    prefix_texts: tuple[PrefixTexts, ...]
    """The texts of `prefixes` as `RouteRows` take them, for each address family."""
    all_prefix_texts: PrefixTexts
    """The prefixes of both address families, those of IPv6 behind those of IPv4."""
    gateways: list[str]
    """The IPv4 address of every switch."""
    link_locals: list[str]
    """The link-local address of every switch."""
    port_name_problems: Mapping[int, Problem]
    """By the number of a node type, what is wrong with the names of its ports. Nodes of such a type
    run another system: they are not rendered, and their neighbours name their ports as the build
    does."""
    addresses: LinkPlan | None = None
    """The addresses of links, where these routers need them; None: links have none."""

    @classmethod
    def of(
        cls, build: Build, interfaces: Interfaces = LINUX, addresses: LinkPlan | None = None
    ) -> BuildRouters:
        """The routers of a build.

        Args:
            build: ports named as the system names them.
            interfaces: the names that the system has for ports.
            addresses: those of links; None: links have none.

        Raises:
            InputError: a pool of links is wrong, the system cannot have the name of a node, or
                names of ports of any type.
        """
        port_name_problems = {
            node_type: finding.problem()
            for node_type, finding in interfaces.port_name_findings(build)
        }
        in_all_types = len(port_name_problems) == len(np.unique(build.wiring.node_type))
        if problems := [
            *node_name_problems(build),
            *(port_name_problems.values() if in_all_types else ()),
            *(link_problems(addresses) if addresses else ()),
        ]:
            raise InputError(few(problems))
        addressing = build.addressing
        prefixes = addressing.prefix_texts()
        vertices = range(build.tables.switches)
        return cls(
            build=build,
            ports=interfaces.ports(build),
            prefixes=prefixes,
            prefix_texts=tuple(map(PrefixTexts, prefixes)),
            all_prefix_texts=PrefixTexts([text for texts in prefixes for text in texts]),
            gateways=[str(addressing.gateway(v)) for v in vertices],
            link_locals=[str(IPv6Address(LINK_LOCAL + v + 1)) for v in vertices],
            port_name_problems=port_name_problems,
            addresses=addresses if addresses and addresses.numbered else None,
        )

    def port(self, vertex: int, number: int) -> PhysicalPort:
        """A port of a switch, by its number from 1.

        Raises:
            InputError: the system cannot have the names of the node type's ports.
        """
        wiring = self.build.wiring
        if problem := self.port_name_problems.get(int(wiring.node_type[vertex])):
            given = f"{problem.given}, at {wiring.names[vertex]}"
            todo = f"{problem.todo}, or render only nodes of this system (`node`)"
            raise InputError(replace(problem, given=given, todo=todo))
        return self.ports[int(self.build.wiring.node_type[vertex])][number - 1]

    def switch(self, vertex: int) -> StaticSwitch:
        """Names and addresses of a switch and of its neighbours."""
        addressing, wiring = self.build.addressing, self.build.wiring
        host_ports = [port for port in wiring.host_port[vertex].tolist() if port]
        ports = tuple(wiring.port_name(vertex, port) for port in host_ports)
        used = [*wiring.port[vertex].tolist(), *wiring.host_port[vertex].tolist()]
        physical = [self.port(vertex, port) for port in used if port]
        return StaticSwitch(
            node=wiring.names[vertex],
            ipv4=self.gateways[vertex],
            ipv4_length=addressing.ipv4_length,
            ipv6=str(addressing.network6(vertex)[1]) if addressing.ipv6 else "",
            link_local="" if self.addresses else self.link_locals[vertex],
            links=tuple(self._links(vertex)),
            hosts=_host_interface(ports),
            host_ports=ports if len(ports) > 1 else (),
            mtu={port.name: port.mtu for port in physical if port.mtu},
        )

    def far_ends(self, vertex: int) -> dict[int, tuple[str, str]] | None:
        """The addresses at the far end of each port's link; None where links have none."""
        if not self.addresses:
            return None
        ports = (port for port, _, _ in self.build.wiring.links_of(vertex))
        ends = self.addresses.at(vertex)
        return {port: (end.gateway4, end.gateway6) for port, end in zip(ports, ends, strict=True)}

    def _links(self, vertex: int) -> Iterator[StaticLink]:
        """The links of a switch."""
        wiring, unnumbered = self.build.wiring, LinkAddresses()
        addresses = self.addresses.at(vertex) if self.addresses else repeat(unnumbered)
        for (port, far, far_port), ends in zip(wiring.links_of(vertex), addresses, strict=False):
            yield StaticLink(
                port=port,
                interface=wiring.port_name(vertex, port),
                far=wiring.names[far],
                far_interface=wiring.port_name(far, far_port),
                ipv4=ends.gateway4 or self.gateways[far],
                ipv6=ends.gateway6 or self.link_locals[far],
                addresses=ends,
            )

    def routes(self, vertex: int) -> tuple[NDArray[np.int32], NDArray[np.integer]]:
        """The routes of a switch, without its own prefix: the prefixes, and their egress classes.

        Returns:
            int32[n], the number of each prefix; int[n], the number of its egress class.
        """
        return self.build.tables.routes.of(vertex)

    def orders(self, vertex: int) -> dict[int, Numbers]:
        """The ports that each egress class tries for packets in transit, by the rule of `Classes`.

        Example: a class with minimal port 1, protection by ports 2 and 3, and bounce by port 4.
        Packets from any port try 1, 2 and 3. Packets from port 1 have come by the minimal port, and
        try 4; packets from port 2 try 1 and 3. Both go back by their ingress port if no port before
        it is up. Packets from port 5 try 1, 2 and 3, so the array of port 5 has zeros.

        Returns:
            By the port where packets came in, 0 for any port: int64[C, M], the ports that each of
            C classes tries in order; 0 for no port. The array of an ingress port has ports only
            for classes that treat packets from there otherwise than packets from any port. Its
            last column is the ingress port itself, or `DISCARDED` if the class does not try it.
        """
        classes = self.build.tables.classes
        minimal = classes.port[vertex, :, None].astype(np.int64)
        protection, bounce = classes.protection[vertex], classes.bounce[vertex]
        order = np.concatenate((minimal, protection), axis=1)
        orders = {0: order}
        if not protection.shape[1] and not bounce.shape[1]:
            return orders
        transit_ports = self.transit_multipath_ports(vertex)
        bounce_then_minimal = np.column_stack((bounce, minimal))
        width = max(order.shape[1], bounce_then_minimal.shape[1])
        order, bounce, bounce_then_minimal = (
            np.pad(ports, ((0, 0), (0, width - ports.shape[1])))
            for ports in (order, bounce, bounce_then_minimal)
        )
        for port, _, _ in self.build.wiring.links_of(vertex):
            # bool[C]: whether a class shares packets in transit over the ingress port, and whether
            # it tries the ingress port at all.
            shares = (transit_ports == port).any(axis=1)
            tries = (order == port).any(axis=1)
            # Packets that came by a next hop that they would share try the bounce, then the minimal
            # port; those that came by the minimal port try the bounce; all others the usual order.
            from_port = np.where(minimal == port, bounce, order)
            from_port = np.where(shares[:, None], bounce_then_minimal, from_port)
            # The ingress port itself is the last choice, if the class tries it.
            last = np.where(tries, port, DISCARDED)
            from_port = np.column_stack((np.where(from_port == port, 0, from_port), last))
            # A class treats packets from this port otherwise than from any port if it shares over
            # the port, or tries it and shares nothing.
            differs = shares | (tries & ~transit_ports.any(axis=1))
            from_port[~differs] = 0
            if from_port.any():
                orders[port] = from_port
        return orders

    def table(
        self,
        vertex: int,
        family: int,
        order: Numbers,
        hops: PortHops,
        marked: PortHops = NO_PORT_HOPS,
    ) -> dict[str, Choices]:
        """The routes of a table: by prefix the choices of next hops, in the order of the class.

        Args:
            vertex: the vertex of the switch.
            family: IPV4_FAMILY or IPV6_FAMILY.
            order: int64[C, M], the ports that each class tries, as in `orders`, or `ALL_NEXT_HOPS`.
            hops: the next hop at every port.
            marked: the next hop at every port for packets that the port marks.
        """
        has_choice: NDArray[np.bool_] = (order != 0).any(axis=1)  # bool[C]
        # A port is one choice: a single next hop, of weight 1.
        choices_at: dict[int, Choices] = {port: (((*hop, 1),),) for port, hop in hops.items()}
        choices_at |= {0: (), DISCARDED: (DISCARD,)}
        has_shares = bool((order == ALL_NEXT_HOPS).any())
        shared_choices = self._shared_choices(vertex, hops, marked) if has_shares else {}
        choices: dict[int, Choices] = {}
        for egress, ports in zip(
            np.flatnonzero(has_choice).tolist(), order[has_choice].tolist(), strict=True
        ):
            choices_of_ports = (
                shared_choices[egress] if port == ALL_NEXT_HOPS else choices_at[port]
                for port in ports
            )
            choices[egress] = tuple(chain.from_iterable(choices_of_ports))
        number, egress_of_prefix = self.routes(vertex)
        has_route = has_choice[egress_of_prefix]
        prefixes = map(self.prefixes[family].__getitem__, number[has_route].tolist())
        choices_of_prefix = map(choices.__getitem__, egress_of_prefix[has_route].tolist())
        return dict(zip(prefixes, choices_of_prefix, strict=True))

    def _shared_choices(self, vertex: int, hops: PortHops, marked: PortHops) -> dict[int, Choices]:
        """By egress class that shares packets its only choice: all next hops, by weight.

        Args:
            vertex: the vertex of the switch.
            hops: the next hop at every port.
            marked: the next hop at every port for packets that the port marks.
        """
        choices: dict[int, Choices] = {}
        for group in self.multipath_groups(vertex):
            next_hops = []
            for port, weight, marks in zip(group.ports, group.weights, group.marks, strict=True):
                gateway, interface = marked[port] if marks else hops[port]
                next_hops.append((gateway, interface, weight))
            choices[group.egress] = (tuple(next_hops),)
        return choices

    def transit_multipath_ports(self, vertex: int) -> Numbers:
        """int[C, W]: the ports over which each class shares packets in transit; 0 for no port."""
        classes = self.build.tables.classes
        if not self.build.forwarding.every_hop:
            return np.zeros((len(classes.port[vertex]), 0), np.int64)
        ports = np.column_stack((classes.port[vertex], classes.alternate[vertex]))
        ports = np.where(classes.weight[vertex] > 0, ports, 0)
        has_several = np.count_nonzero(ports, axis=1) > 1
        shared: Numbers = np.where(has_several[:, None], ports, 0)
        return shared

    def multipath_classes(self, vertex: int) -> NDArray[np.intp]:
        """int[n]: the numbers of the egress classes of `multipath_groups`."""
        classes = self.build.tables.classes
        weights = np.where(classes.alternate[vertex] > 0, classes.weight[vertex, :, 1:], 0)
        return np.flatnonzero(weights.any(axis=1))

    def multipath_groups(self, vertex: int) -> Iterator[MultipathGroup]:
        """The groups of ports of the egress classes that have alternates with weights."""
        classes, has_marks = self.build.tables.classes, self.build.forwarding.marks
        if not classes.alternate.shape[2]:
            return
        ports = np.column_stack((classes.port[vertex], classes.alternate[vertex]))
        weights = np.where(ports > 0, classes.weight[vertex], 0)
        for egress in self.multipath_classes(vertex).tolist():
            minimal = int(ports[egress, 0])
            members = [
                (port, weight)
                for port, weight in zip(
                    ports[egress].tolist(), weights[egress].tolist(), strict=True
                )
                if weight
            ]
            yield MultipathGroup(
                egress=egress,
                ports=tuple(port for port, _ in members),
                weights=tuple(weight for _, weight in members),
                marks=tuple(has_marks and port != minimal for port, _ in members),
            )

    def pools(self) -> list[str]:
        """See `fabric_pools`."""
        return fabric_pools(self.build.addressing)


def _host_interface(ports: tuple[str, ...]) -> str:
    """The interface of a switch's hosts: their only port, or the bridge of several; "" for none."""
    if len(ports) == 1:
        return ports[0]
    return BRIDGE if ports else ""


def fabric_pools(addressing: Addressing) -> list[str]:
    """For each address family the smallest network that contains every block of the fabric."""
    last = len(addressing.host_mac) - 1
    pools = [str(_common_supernet(addressing.network(0), addressing.network(last)))]
    if addressing.ipv6:
        pools.append(str(_common_supernet(addressing.network6(0), addressing.network6(last))))
    return pools


def _common_supernet(first: Network, last: Network) -> Network:
    """The smallest network that contains two networks; the addresses of `first` are lower."""
    while last.broadcast_address not in first:
        first = first.supernet()
    return first
