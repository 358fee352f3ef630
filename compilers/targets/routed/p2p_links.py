"""Point-to-point links with addresses: for routers whose static routes need the far end's.

Link-local addresses that are the same on every port, and next hops outside of the port's network,
are not to be had on every system (docs/targets/routers.md), so every link has two addresses
of its own: a /31 (RFC 3021) and, where the fabric has IPv6, a /127 (RFC 6164). They are the pair of
number u·P + p of a pool, for the link at port p of vertex u, u the lower of its two vertices
and P the ports of the widest node type. So they stay when links and nodes go or come.

Where packets from hosts share ports, host ports are in a VRF of their own, fabric ports in the
default one. The host VRF has a route to every prefix by all ports that share the entering traffic
of its class; next hops are in the default VRF, each an interface and an address (some chips cannot
chain look-ups: FRR issue 18320). Transit meets the default VRF alone, whose routes are minimal, as
`Classes` of the intermediate form wants it. A VRF does not fall through to another, so it needs all
prefixes. The route back is one per host in the default VRF, with the host itself as next hop: not
every system takes a route to an interface alone on Ethernet (Cisco, Nexus 9000 unicast routing
guide, static routing), and FRR takes a host route through the host itself, but before 10.6 not the
whole block through one of its own addresses (zebra_nhg.c, commits 4dcc227611 and d09fc634e7).

A mark is a VLAN: each link has a subinterface at both ends, with a /31 and a /127 of its own, the
second half of a /30 and a /126 whose first half the link has. It is in a VRF of its own, the
`MarkedStage` of packets that come in marked by that link, whose routes spread the fabric's
addresses over the links onward (`compilers.routing.marked_spread`), all of them in the default VRF.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import partial
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network
from itertools import chain
from pathlib import Path
from types import MappingProxyType
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from compilers.readers.bgp.bgp_files import read_speaker
from compilers.readers.devices.held_routes import (
    ANY,
    DISCARD,
    MAIN,
    Choices,
    RouteTables,
    comparable,
)
from compilers.readers.emitted_check import Reader
from compilers.readers.emitted_report import DifferenceList
from compilers.readers.routers.router_files import RouterFolder, read_router
from compilers.routing.marked_spread import onward_ports
from compilers.spec.features import AGGREGATES, INGRESS, MARKS, WEIGHTS
from compilers.tables.build import Build
from compilers.targets.base_config import BaseConfig
from compilers.targets.capabilities import Capabilities
from compilers.targets.options import OFF, SET, Chosen, Option, Options
from compilers.targets.routed.bgp.control_plane import (
    BFD,
    ROUTING,
    SHARING_OPTIONS,
    UNNUMBERED,
    VIA,
    WCMP,
    BgpSpeaker,
    ControlPlane,
    bgp_options,
    bgp_reader,
    require_bgp,
    require_static,
)
from compilers.targets.routed.interfaces import Interfaces, PhysicalPort
from compilers.targets.routed.static_routes import (
    SHARED,
    Numbers,
    RoutedFabric,
    bad_names,
    pool_problems,
)
from compilers.targets.system_names import SystemNames, hostname
from compilers.targets.target import Target
from inventory.problems import InputError, Problem, few

LINKS, LINKS6 = "links", "links6"
HOSTS = "hosts"
"""How the VRF of hosts is called, behind what a system wants in front."""
P2P_UNREACHABLE = 254
"""The distance of the route that discards addresses without another: the last that is usable."""
ONLY_BGP = {
    BFD: "it watches sessions of BGP",
    UNNUMBERED: "their next hops are addresses of links",
    WCMP: "they have no weights",
}
"""Options that are for eBGP alone, and why."""
VLAN = 2
"""Of the host ports of a switch that has several."""
MARK_VLAN = 3
"""Of marked packets, on every link."""
DEFAULT = "default"
ETHERNET_HEADER = 14
"""Bytes that some systems count in the MTU of a port."""
Route = tuple[str, str, str]
"""Prefix, gateway and interface. No class of its own: a fabric has millions."""
SharedRoute = tuple[str, tuple[Route, ...]]
"""A prefix, and the next hops that share packets for it: gateway, interface, and VRF of that."""


def _accepts(kind: type[IPv4Network] | type[IPv6Network], text: str) -> bool:
    try:
        return str(kind(text)) == text
    except ValueError:
        return False


LINK_OPTIONS: Options = MappingProxyType(
    {
        LINKS: Option(
            "The pool of IPv4 addresses of links.",
            "100.64.0.0/10",
            "an IPv4 network such as 100.64.0.0/10",
            lambda text: _accepts(IPv4Network, text),
        ),
        LINKS6: Option(
            "The pool of IPv6 addresses of links.",
            "fd64::/64",
            "an IPv6 network such as fd64::/64",
            lambda text: _accepts(IPv6Network, text),
        ),
    }
)
"""Those of every system with addresses on links."""
P2P_OPTIONS: Options = MappingProxyType(
    {**LINK_OPTIONS, **bgp_options("on", "off"), **SHARING_OPTIONS}
)
"""Those of a system that speaks BGP, too."""


@dataclass(frozen=True, slots=True)
class P2pLink:
    """A link of a router; "" for what is not there.

    port: what the inventory says of it. description: host name and port at the other end. ipv4,
    ipv6: the router's own addresses with their lengths. gateway4, gateway6: those at the other end;
    all of them "" where sessions need none.
    """

    interface: str
    description: str
    ipv4: str
    gateway4: str
    ipv6: str
    gateway6: str
    port: PhysicalPort


@dataclass(frozen=True, slots=True)
class MarkedStage:
    """What packets meet that come in marked by a link: a subinterface over its port, in a VRF.

    ipv4, ipv6: its addresses with their lengths; gateway4, gateway6: those at the other end.
    routes: those of the VRF by address family; the last ones lead to the router's own hosts.
    """

    interface: str
    vlan: int
    vrf: str
    ipv4: str
    gateway4: str
    ipv6: str
    gateway6: str
    routes: list[list[SharedRoute]]

    def families(self) -> Iterator[tuple[str, str, list[SharedRoute]]]:
        """The word, no pool to discard, and the routes of each address family."""
        yield from ((word, "", r) for word, r in zip(("ip", "ipv6"), self.routes, strict=False))


@dataclass(frozen=True, slots=True)
class HostPort:
    """A port of a router where a host is, and the host's addresses; ipv6 is "" without a pool."""

    interface: str
    description: str
    port: PhysicalPort
    ipv4: str
    ipv6: str


@dataclass(frozen=True, slots=True)
class P2pRouter:
    """A router as the templates print it; "" for what is not there.

    ipv4, ipv6: its gateway addresses, without lengths; ipv4_length: that of its block. vlan: the
    name of the interface that several hosts share.
    """

    node: str
    hostname: str
    ipv4: str
    ipv4_length: int
    ipv6: str
    links: tuple[P2pLink, ...]
    hosts: tuple[HostPort, ...]
    vlan: str

    @property
    def host_interface(self) -> str:
        """The port of the only host, or the interface of the VLAN of several; "" without any."""
        return self.vlan if self.hosts[1:] else self.hosts[0].interface if self.hosts else ""

    def back(self) -> Iterator[Route]:
        """The routes of the default VRF to hosts in another, each through the host itself."""
        for host in self.hosts:
            for address, length in ((host.ipv4, 32), (host.ipv6, 128)):
                if address:
                    yield f"{address}/{length}", address, self.host_interface

    @property
    def ports(self) -> list[PhysicalPort]:
        """Those in use."""
        return [*(link.port for link in self.links), *(host.port for host in self.hosts)]

    @property
    def mtu(self) -> int:
        """Bytes of an IP packet that every port of a host takes, 0 where that is not known."""
        return min((host.port.mtu for host in self.hosts), default=0)

    @property
    def cages(self) -> list[PhysicalPort]:
        """A port of each cage that is in use and known to be broken out into ports of a speed."""
        return list({port.cage: port for port in self.ports if port.cage and port.speed}.values())


@dataclass(frozen=True, slots=True)
class P2pVariables:
    """The variables of a router's templates; a route is a prefix, a gateway and an interface.

    vlan: of the host ports where there are several; unreachable: the distance of the route that
    discards what no other route is for. base: management, time and logs. ipv4_pool,
    ipv6_pool: the smallest network that holds the fabric's blocks; "" and no routes without IPv6.

    vrf: that of the hosts, where packets from them share ports, else "". ipv4_entering,
    ipv6_entering: its routes, each a prefix and its next hops: gateway, interface, and its VRF.
    stages: of marked packets, by link. seed: the switch's own of its hash, where packets are
    shared again that another switch has shared; else 0.

    bgp: in the place of static routes.
    """

    router: P2pRouter
    identity: str
    base: BaseConfig
    vlan: int
    unreachable: int
    ipv4_pool: str
    ipv6_pool: str
    ipv4_routes: list[Route]
    ipv6_routes: list[Route]
    vrf: str
    ipv4_entering: list[SharedRoute]
    ipv6_entering: list[SharedRoute]
    stages: list[MarkedStage]
    seed: int
    bgp: BgpSpeaker | None

    def families(self) -> Iterator[tuple[str, str, list[Route], list[SharedRoute]]]:
        """The name, the pool, the routes and those of entering packets of each address family."""
        yield "ipv4", self.ipv4_pool, self.ipv4_routes, self.ipv4_entering
        yield "ipv6", self.ipv6_pool, self.ipv6_routes, self.ipv6_entering

    def between_vrfs(self) -> Iterator[tuple[str, str, list[SharedRoute]]]:
        """By the word of an address family and a VRF the routes with next hops in others."""
        yield "ip", self.vrf, self.ipv4_entering
        yield "ipv6", self.vrf, self.ipv6_entering
        for stage in self.stages:
            yield from ((word, stage.vrf, routes) for word, _, routes in stage.families())


@dataclass(frozen=True, slots=True, eq=False)
class P2pFabric:
    """The routers of a build whose links have addresses.

    pair: int64[S, K], the number of the pair of each link, -1 beyond the last. vrf: the name of
    the hosts' VRF, "" where packets from hosts meet the routes of transit. plane: in the place of
    static routes. numbered: whether links have addresses. between: whether the port of the hosts is
    in their VRF, so that others lead to them from there.
    """

    routed: RoutedFabric
    interfaces: Interfaces
    names: SystemNames
    pool4: IPv4Network
    pool6: IPv6Network
    pair: NDArray[np.int64]
    vrf: str
    plane: ControlPlane | None
    numbered: bool
    between: bool

    @classmethod
    def of(
        cls,
        build: Build,
        interfaces: Interfaces,
        chosen: Chosen,
        vrf: str = "",
        between: bool = True,
    ) -> P2pFabric:
        """The routers of a build on a system, with options as in `P2P_OPTIONS`.

        Raises:
            InputError: names that the system cannot have or that become one host name, or pools
                that overlap others or are too small.
        """
        routed = RoutedFabric.of(build, interfaces)
        pools = IPv4Network(chosen[LINKS]), IPv6Network(chosen[LINKS6])
        pair = link_pairs(build)
        needed = _addresses_a_link(build) * (int(pair.max()) + 1)
        names = SystemNames.of(build, hostname)
        numbered = chosen.get(UNNUMBERED, OFF) == OFF
        if problems := [
            *bad_names(
                build.wiring.host_names, "nodes.hosts", "it is in the description of a port"
            ),
            *_alike(build, names.nodes),
            *(_pools(build, pools, needed) if numbered else ()),
        ]:
            raise InputError(few(problems))
        plane = ControlPlane.of(routed, chosen)
        if problems := list(_reached(plane, pools, needed)) if numbered else []:
            raise InputError(few(problems))
        return cls(routed, interfaces, names, *pools, pair, vrf, plane, numbered, between)

    def router(self, vertex: int) -> P2pRouter:
        """Names and addresses of a router."""
        build = self.routed.build
        a, w = build.addressing, build.wiring
        first = vertex * w.host_port.shape[1]
        return P2pRouter(
            node=w.names[vertex],
            hostname=self.names.nodes[vertex],
            ipv4=self.routed.gateways[vertex],
            ipv4_length=a.ipv4_length,
            ipv6=str(a.network6(vertex)[1]) if a.ipv6 else "",
            links=tuple(self.links(vertex).values()),
            vlan=f"{self.interfaces.vlan}{VLAN}",
            hosts=tuple(
                HostPort(
                    interface=w.port_name(vertex, port),
                    description=f"host {w.host_names[first + number]}",
                    port=self.routed.port(vertex, port),
                    ipv4=str(a.host(vertex, number)),
                    ipv6=str(a.host6(vertex, number)) if a.ipv6 else "",
                )
                for number, port in enumerate(w.host_port[vertex].tolist())
                if port
            ),
        )

    def links(self, vertex: int) -> dict[int, P2pLink]:
        """The links of a router by their ports, in the order of its neighbours."""
        w = self.routed.build.wiring
        pairs = self.pair[vertex][w.far[vertex] >= 0].tolist()
        links = {}
        for (port, far, far_port), pair in zip(w.ends(vertex), pairs, strict=True):
            links[port] = P2pLink(
                interface=w.port_name(vertex, port),
                description=self.names.description(far, far_port),
                port=self.routed.port(vertex, port),
                **self._ends(pair, vertex > far),
            )
        return links

    def _ends(self, pair: int, upper: bool, marked: bool = False) -> dict[str, str]:
        """The addresses of a link, or of its packets with marks, here and at the other end."""
        build, found = (
            self.routed.build,
            dict.fromkeys(("ipv4", "gateway4", "ipv6", "gateway6"), ""),
        )
        own = pair * _addresses_a_link(build) + 2 * marked + upper
        if self.numbered:
            found |= {"ipv4": f"{self._ipv4(own)}/31", "gateway4": self._ipv4(own ^ 1)}
        if self.numbered and build.addressing.ipv6:
            found |= {"ipv6": f"{self._ipv6(own)}/127", "gateway6": self._ipv6(own ^ 1)}
        return found

    def stages(self, vertex: int, links: Mapping[int, P2pLink]) -> dict[int, MarkedStage]:
        """By port what packets meet that come in marked there."""
        routed, build, w = self.routed, self.routed.build, self.routed.build.wiring
        if not build.forwarding.marks:
            return {}
        there = w.far[vertex] >= 0
        far = {port: neighbour for port, neighbour, _ in w.ends(vertex)}
        tables = []
        for family, pool in enumerate(routed.pools()):
            hops = {
                p: ((k.gateway4, k.gateway6)[family], k.interface, DEFAULT)
                for p, k in links.items()
            }
            near = {
                routed.prefixes[family][v]: (hops[p],)
                for p, v in far.items()
                if build.topology.endpoints[v]
            }
            hosts = {
                prefix: ((via, interface, self.vrf),)
                for prefix, via, interface in self.router(vertex).back()
                if self.between and (":" in prefix) == bool(family)
            }
            tables.append((pool, hops, [*near.items(), *hosts.items()]))
        onward = onward_ports(w, vertex)[there].tolist()
        stem = self.vrf.removesuffix(HOSTS) if self.vrf.endswith(HOSTS) else ""
        return {
            port: MarkedStage(
                self.interfaces.within(links[port].interface, MARK_VLAN),
                MARK_VLAN,
                f"{stem}marked{port}",
                routes=[
                    [(pool, tuple(hops[p] for p in ports if p)), *others]
                    for pool, hops, others in tables
                ],
                **self._ends(pair, vertex > far[port], marked=True),
            )
            for port, pair, ports in zip(
                far, self.pair[vertex][there].tolist(), onward, strict=True
            )
        }

    def routes_held(self, vertex: int) -> RouteTables:
        """The routes of a router as it holds them, by VRF."""
        links, held, plane = self.links(vertex), RouteTables(), self.plane
        stages = self.stages(vertex, links)
        for family, pool in enumerate(self.routed.pools()):
            tables = zip((MAIN, self.vrf), self._tables(vertex, family, links, stages), strict=True)
            for name, table in tables:
                if table or name == MAIN:
                    found = held.setdefault(name, {})
                    found |= comparable(plane.weighed(vertex, family, table) if plane else table)
                    found[pool] = (*found.get(pool, ()), DISCARD)
        if self.between and self.vrf in held:
            back = self.router(vertex).back()
            held[MAIN] |= {prefix: (((via, port, 1),),) for prefix, via, port in back}
        for stage in stages.values():
            routes = chain.from_iterable(stage.routes)
            found = {prefix: (tuple((*one[:2], 1) for one in among),) for prefix, among in routes}
            held[stage.vrf] = comparable(found)
        return held

    def _ipv4(self, offset: int) -> str:
        return str(IPv4Address(int(self.pool4.network_address) + offset))

    def _ipv6(self, offset: int) -> str:
        return str(IPv6Address(int(self.pool6.network_address) + offset))

    def variables(self, vertex: int) -> P2pVariables:
        """The variables of a router's templates: static routes, or BGP and its shares."""
        routed, links, plane = self.routed, self.links(vertex), self.plane
        families = range(len(routed.prefixes))
        stages = self.stages(vertex, links)
        tables = [self._tables(vertex, family, links, stages, plane) for family in families]
        of_stages = {stage.interface: stage.vrf for stage in stages.values()}
        routes: list[list[Route]] = [
            [(prefix, via, port) for prefix, (((via, port, _), *_),) in minimal.items()]
            for minimal, _ in tables
        ]
        entering: list[list[SharedRoute]] = [
            [
                (prefix, tuple((via, port, of_stages.get(port, DEFAULT)) for via, port, _ in hops))
                for prefix, (hops,) in inside.items()
            ]
            for _, inside in tables
        ]
        ends = {port: (k.gateway4, k.gateway6) for port, k in links.items()}
        pools = [*routed.pools(), ""]
        return P2pVariables(
            router=self.router(vertex),
            identity=routed.build.identity,
            base=BaseConfig.of(
                routed.build, vertex, self.interfaces.management, self.interfaces.vrf
            ),
            vlan=VLAN,
            unreachable=P2P_UNREACHABLE,
            ipv4_pool=pools[0],
            ipv6_pool=pools[1],
            ipv4_routes=[] if plane else routes[0],
            ipv6_routes=[] if plane else [*routes, []][1],
            vrf=self.vrf if entering[0] else "",
            ipv4_entering=entering[0],
            ipv6_entering=[*entering, []][1],
            stages=list(stages.values()),
            seed=vertex + 1 if stages else 0,
            bgp=plane.at(vertex, ends if self.numbered else None) if plane else None,
        )

    def _tables(
        self,
        vertex: int,
        family: int,
        links: Mapping[int, P2pLink],
        stages: Mapping[int, MarkedStage],
        plane: ControlPlane | None = None,
    ) -> tuple[dict[str, Choices], dict[str, Choices]]:
        """The routes of a family, 0 for IPv4, and those of packets from hosts if these share.

        plane: finds the next hops of entering packets; None: they are those of the links.
        """
        routed, w = self.routed, self.routed.build.wiring
        hops = {p: ((k.gateway4, k.gateway6)[family] or ANY, k.interface) for p, k in links.items()}
        order = routed.build.tables.classes.port[vertex, :, None].astype(np.int64)
        shares = routed.sharing(vertex)
        if routed.build.forwarding.every_hop:
            order[shares] = SHARED
        minimal = routed.table(vertex, family, order, hops)
        if routed.build.forwarding.every_hop or not (
            shares.size and self.vrf and w.host_port[vertex].any()
        ):
            return minimal, {}
        order[shares] = SHARED
        if plane is None or not plane.via:
            marked = {
                port: ((stage.gateway4, stage.gateway6)[family], stage.interface)
                for port, stage in stages.items()
            }
            return minimal, routed.table(vertex, family, order, hops, marked)
        inside = routed.table(vertex, family, order, plane.next_hops(vertex, family))
        # A VRF does not fall through to what BGP finds.
        prefix, egress = routed.routes(vertex)
        for alone in prefix[~np.isin(egress, shares)].tolist():
            if hop := plane.next_hop(alone, family):
                inside[routed.prefixes[family][alone]] = (((*hop, 1),),)
        return minimal, inside


class P2pTarget(Target):
    """A system of routers whose links have addresses.

    interfaces: how it names its ports. vrf: the VRF of the hosts where packets from them share
    ports, "" on a system that cannot do it. not_found: why next hops of that VRF cannot be those
    that BGP finds, "" where they can. between: see `P2pFabric`.
    """

    options = P2P_OPTIONS
    capabilities = Capabilities(frozenset({AGGREGATES, INGRESS, MARKS, WEIGHTS}))
    host_name = staticmethod(hostname)
    interfaces: ClassVar[Interfaces]
    vrf: ClassVar[str] = HOSTS
    not_found: ClassVar[str] = ""
    between: ClassVar[bool] = True

    @property
    def folder(self) -> RouterFolder:
        """The files of a router, as they are read back."""
        return RouterFolder(self.name, tuple(self.files))

    def folder_with(self, chosen: Chosen) -> RouterFolder:
        """The files of a router without the lines that additions read."""
        others = tuple(addition.others_lines for addition in self.wanted(chosen))
        return replace(self.folder, without_others=others)

    def grammar_facts(self, chosen: Chosen) -> tuple[str, ...]:
        """What its grammars take for defined, see `router_files.read_router`."""
        unnumbered = chosen.get(UNNUMBERED, OFF) != OFF
        own = {"bgp": chosen.get(ROUTING) == "bgp", UNNUMBERED: unnumbered}
        added = (addition.grammar_facts for addition in self.wanted(chosen))
        return (*(name for name, there in own.items() if there), *chain.from_iterable(added))

    def reader(self, chosen: Chosen) -> Reader:
        """See `Target.reader`."""
        folder, defined = self.folder_with(chosen), self.grammar_facts(chosen)
        if chosen.get(ROUTING) == "bgp":
            return bgp_reader(partial(read_speaker, folder, defined=defined), chosen)
        return partial(read_router, folder, defined=defined)

    def variables(self, build: Build, chosen: Chosen) -> Callable[[int], P2pVariables]:
        """See `Target.variables`."""
        return self.fabric(build, chosen).variables

    def fabric(self, build: Build, chosen: Chosen) -> P2pFabric:
        """The routers of a build.

        Raises:
            InputError: see `P2pFabric.of`.
        """
        by_hosts = any(addition.hosts_choose for addition in self.wanted(chosen))
        vrf = "" if by_hosts else self.vrf
        return P2pFabric.of(build, self.interfaces, chosen, vrf, self.between)

    def printed(self, fabric: P2pFabric, chosen: Chosen) -> list[Callable[[int], Any]]:
        """What additions that are wanted have a switch say, by its vertex."""
        return [addition.printed(fabric, chosen) for addition in self.wanted(chosen)]

    def more_differences(
        self, build: Build, chosen: Chosen, folder: Path, only: Collection[int] | None
    ) -> Iterator[DifferenceList]:
        """See `Target.more_differences`: what additions that are wanted find."""
        for addition in self.wanted(chosen):
            found = addition.differences(self.fabric(build, chosen), chosen, folder, only)
            if found is not None:
                yield found

    def check(self, build: Build, options: Chosen | None = None) -> tuple[Build, Chosen]:
        """See `Target.check`.

        Raises:
            InputError: also what only eBGP has, with static routes.
        """
        checked, chosen = super().check(build, options)
        given = options or {}
        for name, why in ONLY_BGP.items():
            if given.get(name) == "on" and chosen.get(ROUTING) != "bgp":
                required, todo = f"off with static routes: {why}", f"add `{SET} {ROUTING}=bgp`"
                raise InputError.of(required, "on", todo, key=f"{SET} {name}")
        return checked, chosen

    def require(self, build: Build, chosen: Chosen) -> None:
        """See `Target.require`: with alternates, node types have room for the routes of two VRFs.

        Raises:
            InputError: they do not, or the system cannot do what the build asks for.
        """
        wanted = self.wanted(chosen)
        if chosen.get(ROUTING) == "bgp":
            require_static(wanted, chosen)
            require_bgp(build, self.name, chosen, self.not_found)
        for addition in wanted:
            addition.require(build, chosen)
        if able := [addition.capabilities for addition in wanted if addition.capabilities]:
            able[0].require(build, self.name)
            return
        if chosen.get(ROUTING) != "bgp":
            super().require(build, chosen)
        if problems := list(beyond_tables(build, self.name, chosen.get(ROUTING) == "bgp")):
            raise InputError(few(problems))

    def routes_held(self, build: Build, chosen: Chosen) -> Callable[[int], RouteTables]:
        """See `Target.routes_held`."""
        return self.fabric(build, chosen).routes_held


def link_pairs(build: Build) -> NDArray[np.int64]:
    """int64[S, K]: the number of each link's pair of addresses, the same at both ends; -1: none."""
    w = build.wiring
    vertex = np.arange(len(w.far))[:, None]
    lower = vertex < w.far
    first = np.where(lower, vertex, w.far).astype(np.int64)
    port = np.where(lower, w.port, w.far_port)
    widest = max(len(names) for names in w.port_names)
    return np.where(w.far >= 0, first * widest + port, -1)


def _addresses_a_link(build: Build) -> int:
    """Of each family: those of its two ends, and for marked packets as many again."""
    return 4 if build.forwarding.marks else 2


def _reached(
    plane: ControlPlane | None,
    pools: tuple[IPv4Network | IPv6Network, ...],
    needed: int,
) -> Iterator[Problem]:
    """Pools of next hops with addresses that links have."""
    last = needed - 1
    for name, via, links in zip(VIA, plane.via if plane else (), pools, strict=False):
        if via[0] in links and int(via[0]) - int(links[0]) <= last:
            yield Problem("addresses other than those of links", f"{via}", key=f"{SET} {name}")
        elif links[0] in via:
            required = "addresses other than those of links"
            yield Problem(required, f"{via}, and links in {links}", key=f"{SET} {name}")


def _alike(build: Build, hostnames: tuple[str, ...]) -> list[Problem]:
    """Nodes whose names differ, but not as host names."""
    seen: dict[str, str] = {}
    problems = []
    for node, name in zip(build.wiring.names, hostnames, strict=True):
        other = seen.setdefault(name.lower(), node)
        if other != node:
            problems.append(
                Problem(
                    key="nodes",
                    required="names that differ as host names",
                    given=f"{other!r} and {node!r}, both {name}",
                    todo="host names have letters, digits and - only; rename one of them",
                )
            )
    return problems


def _pools(build: Build, pools: tuple[IPv4Network, IPv6Network], needed: int) -> Iterator[Problem]:
    """Pools of links that are too small, or hold addresses of others."""
    (pool, pool6), hosts = pools, build.addressing
    given = {LINKS: (pool, hosts.ipv4)} | {LINKS6: (pool6, hosts.ipv6)}
    return pool_problems(build, given, needed, "links")


def beyond_tables(build: Build, target: str, found: bool = False) -> Iterator[Problem]:
    """Limits of node types that routes in two VRFs and their ECMP groups do not fit, with numbers.

    Each VRF has a route to every other prefix and to every host of the switch. A class that shares
    its traffic takes an ECMP group per address family: its members have the family's addresses.
    The VRF of a link's marked packets has a route and a group that spread them, and routes to every
    neighbour and host.

    Args:
        build: whose node types.
        target: its name.
        found: whether BGP finds the next hops, by a route to every other switch.
    """
    alternates = build.tables.classes.alternate.shape[2]
    if build.hardware is None or build.forwarding.every_hop or not alternates:
        return  # at every hop all packets share one table, which is counted when it is compiled
    w, c = build.wiring, build.tables.classes
    families = 2 if build.addressing.ipv6 else 1
    hosts = np.count_nonzero(w.host_port, axis=1)
    ports: Numbers = np.concatenate((c.port[..., None], c.alternate), axis=2)
    members: Numbers = np.count_nonzero(c.weight * (ports > 0), axis=2)
    others = build.tables.routes.rows() - 1
    near = np.count_nonzero((w.far >= 0) & build.topology.endpoints[w.far], axis=1)
    entered = hosts > 0
    stages = np.count_nonzero(w.far >= 0, axis=1) * build.forwarding.marks
    rows = others * (1 + found + entered) + 2 * hosts + stages * (1 + near + hosts)
    groups = entered * (members > 1).sum(axis=1) + stages
    width = np.maximum(entered * members.max(axis=1, initial=0), stages - 1)
    needed = {
        "lpm_rows": (
            f"routes in {'all' if build.forwarding.marks else 'two'} VRFs",
            rows * families,
        ),
        "groups": ("ECMP groups", groups * families),
        "ecmp_width": ("members per ECMP group", width),
    }
    for t, node_type in enumerate(build.hardware.types):
        here = (w.node_type == t) & (entered | (stages > 0))
        for word, limit in node_type.limits.items():
            what, count = needed[word]
            over = here & (count > limit)
            if over.any():
                most = int((over * count).argmax())
                yield Problem(
                    key=f"node_types.{node_type.name}.tables.{word}",
                    required=f"at least {count[most]:,} {what} for alternates on target {target}",
                    given=f"{limit:,}, too few at {np.count_nonzero(over):,} "
                    f"nodes; {w.names[most]} needs most",
                    todo="choose another type, a smaller fabric or balance: minimal",
                )
