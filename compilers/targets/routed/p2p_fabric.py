"""The routers of a build whose links have addresses: names, addresses and routes by VRF.

`P2pTarget` makes a `P2pFabric` for a network operating system. `P2pFabric.variables` gives
templates their variables, and `routes_held` the routes that a router has to hold, which `check
routes` compares with a device. Links, neighbours and ports are those of the build's wiring.

A router has up to three kinds of VRFs. A packet without a route in one VRF is not looked up in
another, so each VRF has routes for all hosts of the fabric.

- The *default VRF* is for packets in transit.
- The *VRF of hosts* has the host ports. It is there if the balance, that is the load-balancing
  rule, shares packets from hosts over several ports (equal-cost multipath), and not packets in
  transit. Each of its next hops is an interface of the default VRF and an address.
- A *stage* (`MarkedStage`) is there for each link, if the balance marks packets for the next router
  to spread them over its other links (`compilers.routing.marked_spread`). It is the VRF of the
  marked packets that come in by this link.

For example, a router has links to A, B and C, and hosts behind A have the prefix p. The default
VRF sends p to A. The VRF of hosts shares p over A, B and C, and marks what goes to B and C. In the
stage of the link to A, the pool of all addresses of the fabric is shared over B and C.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from itertools import chain
from typing import NamedTuple

import numpy as np

from compilers.readers.devices.held_routes import (
    ANY,
    DISCARD,
    MAIN_TABLE,
    Choices,
    RouteTables,
    canonical_table,
)
from compilers.routing.marked_spread import onward_ports
from compilers.tables.build import Build
from compilers.targets.base_config import BaseConfig
from compilers.targets.options import Chosen
from compilers.targets.routed.bgp.control_plane import ControlPlane
from compilers.targets.routed.interfaces import Interfaces
from compilers.targets.routed.link_addresses import LinkPlan
from compilers.targets.routed.p2p_variables import (
    HostPort,
    MarkedStage,
    P2pLink,
    P2pRouter,
    P2pVariables,
    Route,
    SharedRoute,
    VrfNextHop,
)
from compilers.targets.routed.router_problems import link_problems, name_problems
from compilers.targets.routed.static_routes import (
    ALL_NEXT_HOPS,
    IPV6_FAMILY,
    BuildRouters,
    Numbers,
)
from compilers.targets.system_names import SystemNames, hostname
from inventory.problems import InputError, Problem, few

HOSTS_VRF = "hosts"
"""The name of the VRF of hosts; some systems demand a prefix before it, as in `Vrf-hosts`.

Its next hops have an interface and an address, as some chips cannot chain look-ups (FRR issue
18320)."""
DISCARD_DISTANCE = 254
"""The distance of routes that discard, the greatest that is usable."""
HOST_VLAN = 2
"""The VLAN of the host ports of a switch that has several."""
MARK_VLAN = 3
"""The VLAN of marked packets on every link: it is the mark.

Each link has a subinterface for it at both ends. The addresses of a subinterface, a /31 and a /127,
are in the second half of a /30 and a /126, whose first half has those of the link itself."""
DEFAULT_VRF = "default"
"""The name of the default VRF in the next hops of other VRFs, which templates print.

In routing tables in the form of `held_routes`, the same VRF is named `MAIN_TABLE`."""
NUMBERS = re.compile(r"[0-9]+")
"""A number in the name of an interface, such as 1 and 12 in `Ethernet1/12`."""


class FamilyRoutes(NamedTuple):
    """The routes of a router in one address family: by prefix the choices of next hops."""

    default_vrf: dict[str, Choices]
    """The routes of the default VRF."""
    host_vrf: dict[str, Choices]
    """The routes of the VRF of hosts; {} where packets from hosts take the same next hops as those
    in transit."""


@dataclass(frozen=True, slots=True, eq=False)
class P2pFabric:
    """The routers of a build whose links have addresses."""

    routers: BuildRouters
    """The ports, prefixes and routing tables of the routers."""
    interfaces: Interfaces
    """How the operating system names ports."""
    names: SystemNames
    """The host names of nodes, and the descriptions of ports."""
    addresses: LinkPlan
    """The addresses of links."""
    vrf: str
    """The VRF of hosts; "" where packets from hosts have the routes of packets in transit."""
    control_plane: ControlPlane | None
    """The BGP of the switches; None with static routes."""
    leaks_host_routes: bool
    """Whether host ports are in the VRF of hosts, so that other VRFs have leaked routes to them.

    A leaked route leads to one host, with the host itself as the next hop. Not every system takes a
    route to an interface alone on Ethernet (Cisco, Nexus 9000 unicast routing guide, static
    routing). FRR takes such a host route, but before 10.6 not the whole block by one of its own
    addresses (zebra_nhg.c, commits 4dcc227611 and d09fc634e7)."""

    @classmethod
    def of(
        cls,
        build: Build,
        interfaces: Interfaces,
        chosen: Chosen,
        vrf: str = "",
        leaks_host_routes: bool = True,
    ) -> P2pFabric:
        """The routers of a build on a network operating system.

        Args:
            build: the build.
            interfaces: how the system names ports.
            chosen: the values of the options in `P2P_AGREEMENTS`.
            vrf: the VRF of hosts; "" for none.
            leaks_host_routes: whether host ports are in it.

        Raises:
            InputError: names that the system cannot have or that become one host name, or pools
                that overlap others or are too small.
        """
        routers = BuildRouters.of(build, interfaces)
        addresses = LinkPlan.of(build, chosen)
        names = SystemNames.of(build, hostname)
        if problems := [
            *name_problems(
                build.wiring.host_names, "nodes.hosts", "it is in the description of a port"
            ),
            *_host_name_problems(build, names.nodes),
            *link_problems(addresses),
        ]:
            raise InputError(few(problems))
        control_plane = ControlPlane.of(routers, chosen)
        return cls(
            routers,
            interfaces=interfaces,
            names=names,
            addresses=addresses,
            vrf=vrf,
            control_plane=control_plane,
            leaks_host_routes=leaks_host_routes,
        )

    def router(self, vertex: int) -> P2pRouter:
        """Names and addresses of a router."""
        build = self.routers.build
        addressing, wiring = build.addressing, build.wiring
        first_host = vertex * wiring.host_port.shape[1]
        return P2pRouter(
            node=wiring.names[vertex],
            hostname=self.names.nodes[vertex],
            ipv4=self.routers.gateways[vertex],
            ipv4_length=addressing.ipv4_length,
            ipv6=str(addressing.network6(vertex)[1]) if addressing.ipv6 else "",
            links=tuple(sorted(self.links(vertex).values(), key=_numbers_in_name)),
            vlan=f"{self.interfaces.vlan}{HOST_VLAN}",
            hosts=tuple(
                HostPort(
                    interface=wiring.port_name(vertex, port),
                    description=f"host {wiring.host_names[first_host + number]}",
                    port=self.routers.port(vertex, port),
                    ipv4=str(addressing.host(vertex, number)),
                    ipv6=str(addressing.host6(vertex, number)) if addressing.ipv6 else "",
                )
                for number, port in enumerate(wiring.host_port[vertex].tolist())
                if port
            ),
        )

    def links(self, vertex: int) -> dict[int, P2pLink]:
        """The links of a router by their ports, in the order of its neighbours."""
        wiring, links = self.routers.build.wiring, {}
        for (port, neighbour, far_port), ends in zip(
            wiring.links_of(vertex), self.addresses.at(vertex), strict=True
        ):
            links[port] = P2pLink(
                interface=wiring.port_name(vertex, port),
                description=self.names.description(neighbour, far_port),
                ipv4=ends.ipv4,
                gateway4=ends.gateway4,
                ipv6=ends.ipv6,
                gateway6=ends.gateway6,
                port=self.routers.port(vertex, port),
            )
        return links

    def stages(self, vertex: int, links: Mapping[int, P2pLink]) -> dict[int, MarkedStage]:
        """The VRFs of marked packets, by the port of the link on which these come in.

        Args:
            vertex: the vertex of the router.
            links: its links by port.
        """
        build, wiring = self.routers.build, self.routers.build.wiring
        if not build.forwarding.marks:
            return {}
        is_cabled = wiring.far[vertex] >= 0
        neighbours = {port: neighbour for port, neighbour, _ in wiring.links_of(vertex)}
        # For each link that may bring marked packets, the ports over which they are spread.
        onward = onward_ports(wiring, vertex)[is_cabled].tolist()
        # "Vrf-" where the system demands it before names of VRFs.
        vrf_prefix = self.vrf.removesuffix(HOSTS_VRF) if self.vrf.endswith(HOSTS_VRF) else ""
        pools = self.routers.pools()
        common_routes = [
            self._common_routes(vertex, family, neighbours, links) for family in self._families
        ]
        stages = {}
        addresses = self.addresses.at(vertex, marked=True)
        for port, ends, ports in zip(neighbours, addresses, onward, strict=True):
            stages[port] = MarkedStage(
                interface=self.interfaces.subinterface(links[port].interface, MARK_VLAN),
                vlan=MARK_VLAN,
                vrf=f"{vrf_prefix}marked{port}",
                ipv4=ends.ipv4,
                gateway4=ends.gateway4,
                ipv6=ends.ipv6,
                gateway6=ends.gateway6,
                routes=[
                    [_spreading_route(pools[family], family, ports, links), *common_routes[family]]
                    for family in self._families
                ],
            )
        return stages

    @property
    def _families(self) -> range:
        """The address families of the fabric: IPV4_FAMILY, and IPV6_FAMILY if it has IPv6."""
        return range(len(self.routers.prefixes))

    def _common_routes(
        self, vertex: int, family: int, neighbours: Mapping[int, int], links: Mapping[int, P2pLink]
    ) -> list[SharedRoute]:
        """The routes that all VRFs of marked packets have: to neighbours, and to local hosts.

        Args:
            vertex: the vertex of the router.
            family: IPV4_FAMILY or IPV6_FAMILY.
            neighbours: the neighbour at each port.
            links: the links by port.
        """
        endpoints = self.routers.build.topology.endpoints
        prefixes = self.routers.prefixes[family]
        to_neighbours: dict[str, tuple[VrfNextHop, ...]] = {
            prefixes[neighbour]: (_next_hop(links[port], family),)
            for port, neighbour in neighbours.items()
            if endpoints[neighbour]
        }
        to_hosts = {
            prefix: ((gateway, interface, self.vrf),)
            for prefix, gateway, interface in self._leaked_host_routes(vertex)
            if (":" in prefix) == (family == IPV6_FAMILY)  # IPv6 has a colon
        }
        return [*to_neighbours.items(), *to_hosts.items()]

    def _leaked_host_routes(self, vertex: int) -> Iterable[Route]:
        """The routes from other VRFs to hosts in the VRF of hosts; () if hosts are not in it."""
        return self.router(vertex).back() if self.leaks_host_routes else ()

    def routes_held(self, vertex: int) -> RouteTables:
        """The routes that a router has to hold, by VRF."""
        links, held = self.links(vertex), RouteTables()
        stages = self.stages(vertex, links)
        for family, pool in enumerate(self.routers.pools()):
            # A router shows the next hops that BGP has resolved, which are links.
            routes = self._routes(vertex, family, links, stages)
            routes_of_vrf = {MAIN_TABLE: routes.default_vrf}
            if routes.host_vrf:
                routes_of_vrf[self.vrf] = routes.host_vrf
            for vrf, vrf_routes in routes_of_vrf.items():
                if self.control_plane:
                    vrf_routes = self.control_plane.with_path_weights(vertex, family, vrf_routes)
                vrf_table = held.setdefault(vrf, {})
                vrf_table |= canonical_table(vrf_routes)
                vrf_table[pool] = (*vrf_table.get(pool, ()), DISCARD)
        if self.vrf in held:
            held[MAIN_TABLE] |= {
                prefix: _single_choice(gateway, interface)
                for prefix, gateway, interface in self._leaked_host_routes(vertex)
            }
        for stage in stages.values():
            held[stage.vrf] = _stage_table(stage)
        return held

    def variables(self, vertex: int) -> P2pVariables:
        """The variables of a router's templates.

        These have static routes, or else the settings of BGP and the routes of the VRF of hosts.
        """
        routers, links, bgp = self.routers, self.links(vertex), self.control_plane
        stages = self.stages(vertex, links)
        routes_by_family = [
            self._routes(vertex, family, links, stages, announced_by=bgp)
            for family in self._families
        ]
        vrf_of = {stage.interface: stage.vrf for stage in stages.values()}
        static_routes = [[] if bgp else _default_vrf_routes(routes) for routes in routes_by_family]
        host_vrf_routes = [_shared_routes(routes, vrf_of) for routes in routes_by_family]
        far_ends = {port: (link.gateway4, link.gateway6) for port, link in links.items()}
        numbered_far_ends = far_ends if self.addresses.numbered else None
        descriptions = {port: link.description for port, link in links.items()}
        pools = routers.pools()
        has_ipv6 = len(routes_by_family) > 1
        return P2pVariables(
            router=self.router(vertex),
            identity=routers.build.identity,
            base=BaseConfig.of(
                routers.build, vertex, self.interfaces.management, self.interfaces.vrf
            ),
            vlan=HOST_VLAN,
            unreachable=DISCARD_DISTANCE,
            ipv4_pool=pools[0],
            ipv6_pool=pools[1] if has_ipv6 else "",
            ipv4_routes=static_routes[0],
            ipv6_routes=static_routes[1] if has_ipv6 else [],
            vrf=self.vrf if host_vrf_routes[0] else "",
            ipv4_entering=host_vrf_routes[0],
            ipv6_entering=host_vrf_routes[1] if has_ipv6 else [],
            stages=sorted(stages.values(), key=_numbers_in_name),
            seed=vertex + 1 if stages else 0,
            bgp=bgp.at(vertex, numbered_far_ends, descriptions) if bgp else None,
        )

    def _routes(
        self,
        vertex: int,
        family: int,
        links: Mapping[int, P2pLink],
        stages: Mapping[int, MarkedStage],
        announced_by: ControlPlane | None = None,
    ) -> FamilyRoutes:
        """The routes of a router in one address family.

        Args:
            vertex: the vertex of the router.
            family: IPV4_FAMILY or IPV6_FAMILY.
            links: its links by port.
            stages: its VRFs of marked packets by port.
            announced_by: the BGP whose announced next hops the routes of the VRF of hosts have, if
                there are any; None: the next hops of all routes are those of links.
        """
        routers, wiring = self.routers, self.routers.build.wiring
        hops = {
            port: (_gateway(link, family) or ANY, link.interface) for port, link in links.items()
        }
        # The orders of `BuildRouters.table` with one column, int64[C, 1], for packets in transit
        # and for packets from hosts: the minimal port of each egress class (a set of destinations
        # with the same next hops), or ALL_NEXT_HOPS for all next hops of the class.
        transit_order = routers.build.tables.classes.port[vertex, :, None].astype(np.int64)
        multipath_classes = routers.multipath_classes(vertex)
        host_order = transit_order.copy()
        host_order[multipath_classes] = ALL_NEXT_HOPS
        if routers.build.forwarding.every_hop:  # packets in transit share all next hops, too
            return FamilyRoutes(routers.table(vertex, family, host_order, hops), {})
        default_vrf_routes = routers.table(vertex, family, transit_order, hops)
        if not (multipath_classes.size and self.vrf and wiring.host_port[vertex].any()):
            return FamilyRoutes(default_vrf_routes, {})
        if announced_by and announced_by.next_hop_pools:
            host_vrf_routes = self._host_vrf_routes_over_bgp(
                vertex, family, host_order, announced_by
            )
        else:
            marked = {
                port: (_gateway(stage, family), stage.interface) for port, stage in stages.items()
            }
            host_vrf_routes = routers.table(vertex, family, host_order, hops, marked)
        return FamilyRoutes(default_vrf_routes, host_vrf_routes)

    def _host_vrf_routes_over_bgp(
        self, vertex: int, family: int, host_order: Numbers, bgp: ControlPlane
    ) -> dict[str, Choices]:
        """The routes of the VRF of hosts whose next hops BGP resolves, by prefix.

        Args:
            vertex: the vertex of the router.
            family: IPV4_FAMILY or IPV6_FAMILY.
            host_order: int64[C, 1], the orders of egress classes for packets from hosts.
            bgp: the BGP of the switches.
        """
        routers = self.routers
        hops = bgp.announced_hops(vertex, family)
        host_vrf_routes = routers.table(vertex, family, host_order, hops)
        # Packets in the VRF of hosts do not meet the routes of BGP in the default VRF. So this VRF
        # also needs a route to the prefixes of classes that do not share packets.
        prefix_number, egress = routers.routes(vertex)
        multipath_classes = routers.multipath_classes(vertex)
        for number in prefix_number[~np.isin(egress, multipath_classes)].tolist():
            if hop := bgp.announced_hop_to(number, family):
                gateway, interface = hop
                prefix = routers.prefixes[family][number]
                host_vrf_routes[prefix] = _single_choice(gateway, interface)
        return host_vrf_routes


def _single_choice(gateway: str, interface: str) -> Choices:
    """A route with one next hop: its only choice is one hop with weight 1."""
    return (((gateway, interface, 1),),)


def _stage_table(stage: MarkedStage) -> dict[str, Choices]:
    """The routes of the VRF of marked packets: each has one choice, all of its next hops."""
    choices_of_prefix: dict[str, Choices] = {
        prefix: (tuple((gateway, interface, 1) for gateway, interface, _vrf in hops),)
        for prefix, hops in chain.from_iterable(stage.routes)
    }
    return canonical_table(choices_of_prefix)


def _numbers_in_name(end: P2pLink | MarkedStage) -> list[int]:
    """The numbers in the name of an interface, [1, 12] for `Ethernet1/12`.

    Devices show interfaces in the order of these numbers.
    """
    return [int(number) for number in NUMBERS.findall(end.interface)]


def _gateway(end: P2pLink | MarkedStage, family: int) -> str:
    """The address at the other end of a link, in an address family."""
    return end.gateway6 if family == IPV6_FAMILY else end.gateway4


def _next_hop(link: P2pLink, family: int) -> VrfNextHop:
    """The next hop over a link, which is in the default VRF."""
    return _gateway(link, family), link.interface, DEFAULT_VRF


def _default_vrf_routes(family_routes: FamilyRoutes) -> list[Route]:
    """The routes of the default VRF, each with the first next hop of its only choice."""
    routes = []
    for prefix, (next_hops,) in family_routes.default_vrf.items():
        gateway, interface, _weight = next_hops[0]
        routes.append((prefix, gateway, interface))
    return routes


def _shared_routes(family_routes: FamilyRoutes, vrf_of: Mapping[str, str]) -> list[SharedRoute]:
    """The routes of the VRF of hosts, each with all of its next hops.

    Args:
        family_routes: the routes of a router in one address family.
        vrf_of: the VRF of each interface that is not in the default VRF.
    """
    routes = []
    for prefix, (next_hops,) in family_routes.host_vrf.items():
        with_vrfs = (
            (gateway, interface, vrf_of.get(interface, DEFAULT_VRF))
            for gateway, interface, _weight in next_hops
        )
        routes.append((prefix, tuple(with_vrfs)))
    return routes


def _spreading_route(
    pool: str, family: int, ports: Iterable[int], links: Mapping[int, P2pLink]
) -> SharedRoute:
    """The route that spreads a pool over the links at some ports; 0 stands for no port."""
    return pool, tuple(_next_hop(links[port], family) for port in ports if port)


def _host_name_problems(build: Build, hostnames: tuple[str, ...]) -> list[Problem]:
    """The problems of nodes with different names that become the same host name."""
    node_of: dict[str, str] = {}
    problems = []
    for node, name in zip(build.wiring.names, hostnames, strict=True):
        first_node = node_of.setdefault(name.lower(), node)
        if first_node != node:
            problems.append(
                Problem(
                    key="nodes",
                    required="names that differ as host names",
                    given=f"{first_node!r} and {node!r}, both {name}",
                    todo="host names have letters, digits and - only; rename one of them",
                )
            )
    return problems
