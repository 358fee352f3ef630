"""The base of router targets whose links have addresses: EOS, NX-OS, Junos, SR Linux, SONiC, NVUE.

Not every system can have one link-local address on all ports, or next hops outside of the network
of their port (docs/targets/routers.md). So every link has two addresses of its own
(`routed.link_addresses`).

Where packets from hosts share ports, host ports are in a VRF of their own, fabric ports in the
default one. The host VRF has a route to every prefix, by all ports that share packets from hosts.
Next hops are in the default VRF, each an interface and an address (some chips cannot chain
look-ups: FRR issue 18320). Packets in transit meet only the default VRF, whose routes are minimal.
One VRF does not fall through to another, so each needs all prefixes. The default VRF has a *leaked*
route to each host, by the host itself. Not every system takes a route to an interface alone on
Ethernet (Cisco, Nexus 9000 unicast routing guide, static routing). FRR takes a host route by the
host itself, but before 10.6 not the whole block by one of its own addresses (zebra_nhg.c, commits
4dcc227611 and d09fc634e7).

The mark of a packet is a VLAN: each link has a subinterface at both ends, with a /31 and a /127 of
its own, the second half of a /30 and a /126 whose first half the link has. The subinterface is in a
VRF of its own (`MarkedStage`), whose routes spread the fabric's addresses over the other links
(`compilers.routing.marked_spread`).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import partial
from itertools import chain
from pathlib import Path
from types import MappingProxyType
from typing import Any, ClassVar, NamedTuple

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
from compilers.spec.node_systems import CONTROL_KEYS
from compilers.tables.build import Build
from compilers.targets.base_config import BaseConfig
from compilers.targets.capabilities import Capabilities
from compilers.targets.options import OFF, Chosen, Options
from compilers.targets.routed.bgp.control_plane import (
    BFD,
    ROUTING,
    SHARING_AGREEMENTS,
    WCMP,
    BgpSpeaker,
    ControlPlane,
    bgp_agreements,
    bgp_reader,
    next_hop_problems,
    require_bgp,
    require_static,
)
from compilers.targets.routed.interfaces import Interfaces, PhysicalPort
from compilers.targets.routed.link_addresses import (
    LINK_AGREEMENTS,
    UNNUMBERED,
    LinkPlan,
)
from compilers.targets.routed.static_routes import (
    SHARED,
    Numbers,
    RoutedFabric,
    bad_names,
    link_problems,
)
from compilers.targets.system_names import SystemNames, hostname
from compilers.targets.target import Target
from inventory.problems import InputError, Problem, few

HOSTS = "hosts"
"""The name of the VRF of hosts, behind a prefix that some systems demand."""
P2P_UNREACHABLE = 254
"""The distance of routes that discard, the greatest that is usable."""
ONLY_BGP = {
    BFD: "it watches sessions of BGP",
    UNNUMBERED: "their next hops are addresses of links",
    WCMP: "they have no weights",
}
"""What needs eBGP, and why."""
VLAN = 2
"""The VLAN of the host ports of a switch that has several."""
MARK_VLAN = 3
"""The VLAN of marked packets on every link."""
DEFAULT = "default"
"""The name of the default VRF."""
ETHERNET_HEADER = 14
"""Bytes that some systems count in the MTU of a port, which that of IP does not count."""
NUMBERS = re.compile(r"[0-9]+")
Route = tuple[str, str, str]
"""Prefix, gateway and interface. A plain tuple, as a fabric has millions."""
SharedRoute = tuple[str, tuple[Route, ...]]
"""A prefix, and the next hops that share packets for it: gateway, interface, and its VRF."""
P2P_AGREEMENTS: Options = MappingProxyType(
    {**LINK_AGREEMENTS, **bgp_agreements("on", "off"), **SHARING_AGREEMENTS}
)
"""What neighbours of such a system agree on, where it speaks BGP, too."""


@dataclass(frozen=True, slots=True)
class P2pLink:
    """A link of a router; "" for what does not exist."""

    interface: str
    description: str
    """The host name and the port at the other end."""
    ipv4: str
    """The router's own address, with its length."""
    gateway4: str
    """The address at the other end."""
    ipv6: str
    gateway6: str
    port: PhysicalPort
    """What the inventory says of the port."""


@dataclass(frozen=True, slots=True)
class MarkedStage:
    """The subinterface on which a link brings marked packets, and its VRF."""

    interface: str
    vlan: int
    vrf: str
    ipv4: str
    """The router's own address, with its length."""
    gateway4: str
    """The address at the other end."""
    ipv6: str
    gateway6: str
    routes: list[list[SharedRoute]]
    """The routes of the VRF by address family, those to the router's own hosts last."""

    def families(self) -> Iterator[tuple[str, str, list[SharedRoute]]]:
        """For each address family its first word in commands, no pool to discard, the routes."""
        yield from ((word, "", r) for word, r in zip(("ip", "ipv6"), self.routes, strict=False))


@dataclass(frozen=True, slots=True)
class HostPort:
    """A port of a router to a host."""

    interface: str
    description: str
    port: PhysicalPort
    """What the inventory says of the port."""
    ipv4: str
    """The host's address."""
    ipv6: str
    """The same of IPv6; "" where the fabric has none."""


@dataclass(frozen=True, slots=True)
class P2pRouter:
    """A router as the templates print it; "" for what does not exist."""

    node: str
    hostname: str
    ipv4: str
    """The gateway's address, without its length."""
    ipv4_length: int
    """The length of the block of its hosts."""
    ipv6: str
    """The gateway's IPv6 address."""
    links: tuple[P2pLink, ...]
    hosts: tuple[HostPort, ...]
    vlan: str
    """The name of the interface that several hosts share."""

    @property
    def host_interface(self) -> str:
        """The port of the only host, or the interface that several share; "" without any."""
        if not self.hosts:
            return ""
        return self.hosts[0].interface if len(self.hosts) == 1 else self.vlan

    def back(self) -> Iterator[Route]:
        """The leaked routes: from the default VRF to hosts in another, each by the host itself."""
        for host in self.hosts:
            for address, length in ((host.ipv4, 32), (host.ipv6, 128)):
                if address:
                    yield f"{address}/{length}", address, self.host_interface

    @property
    def ports(self) -> list[PhysicalPort]:
        """The ports in use."""
        return [*(link.port for link in self.links), *(host.port for host in self.hosts)]

    @property
    def mtu(self) -> int:
        """The bytes of an IP packet that all ports of hosts take; 0: that is not known."""
        return min((host.port.mtu for host in self.hosts), default=0)

    @property
    def cages(self) -> list[PhysicalPort]:
        """One port of each cage that is in use, is broken out, and whose speed is known."""
        return list({port.cage: port for port in self.ports if port.cage and port.speed}.values())


class P2pFamily(NamedTuple):
    """The routes of a router in one address family."""

    name: str
    """ipv4 or ipv6."""
    pool: str
    routes: list[Route]
    entering: list[SharedRoute]


class VrfRoutes(NamedTuple):
    """The routes of a VRF whose next hops are in other VRFs, in one address family."""

    word: str
    """The first word of commands about the family: ip or ipv6."""
    vrf: str
    routes: list[SharedRoute]


@dataclass(frozen=True, slots=True)
class P2pVariables:
    """The variables of a router's templates; a route is a prefix, a gateway and an interface."""

    router: P2pRouter
    identity: str
    """The identity of the build."""
    base: BaseConfig
    """Management, time and logs."""
    vlan: int
    """The VLAN of the host ports, where there are several."""
    unreachable: int
    """The distance of routes that discard."""
    ipv4_pool: str
    """The smallest network that contains all blocks of the fabric."""
    ipv6_pool: str
    """The same of IPv6; "" where the fabric has none."""
    ipv4_routes: list[Route]
    ipv6_routes: list[Route]
    """The static routes of the default VRF; [] with BGP."""
    vrf: str
    """The VRF of hosts, where packets from hosts share ports; else ""."""
    ipv4_entering: list[SharedRoute]
    ipv6_entering: list[SharedRoute]
    """The routes of this VRF: each has a prefix, and its next hops with their VRFs."""
    stages: list[MarkedStage]
    """The VRFs of marked packets, one for each link."""
    seed: int
    """The seed of the switch's hash, if the switch spreads packets that another switch has already
    spread; else 0."""
    bgp: BgpSpeaker | None
    """The BGP of the switch; None with static routes."""

    def families(self) -> Iterator[P2pFamily]:
        """The routes of each address family."""
        yield P2pFamily("ipv4", self.ipv4_pool, self.ipv4_routes, self.ipv4_entering)
        yield P2pFamily("ipv6", self.ipv6_pool, self.ipv6_routes, self.ipv6_entering)

    def between_vrfs(self) -> Iterator[VrfRoutes]:
        """The routes of each VRF and family whose next hops are in other VRFs."""
        yield VrfRoutes("ip", self.vrf, self.ipv4_entering)
        yield VrfRoutes("ipv6", self.vrf, self.ipv6_entering)
        for stage in self.stages:
            for word, _, routes in stage.families():
                yield VrfRoutes(word, stage.vrf, routes)


@dataclass(frozen=True, slots=True, eq=False)
class P2pFabric:
    """The routers of a build whose links have addresses."""

    routed: RoutedFabric
    interfaces: Interfaces
    names: SystemNames
    addresses: LinkPlan
    """The addresses of links."""
    vrf: str
    """The VRF of hosts, "" where packets from hosts use the routes of transit."""
    plane: ControlPlane | None
    """The BGP of the switch; None with static routes."""
    between: bool
    """Whether host ports are in the VRF of hosts, so that other VRFs have leaked routes to them."""

    @classmethod
    def of(
        cls,
        build: Build,
        interfaces: Interfaces,
        chosen: Chosen,
        vrf: str = "",
        between: bool = True,
    ) -> P2pFabric:
        """The routers of a build on a system, with options as in `P2P_AGREEMENTS`.

        Raises:
            InputError: names that the system cannot have or that become one host name, or pools
                that overlap others or are too small.
        """
        routed = RoutedFabric.of(build, interfaces)
        addresses = LinkPlan.of(build, chosen)
        names = SystemNames.of(build, hostname)
        if problems := [
            *bad_names(
                build.wiring.host_names, "nodes.hosts", "it is in the description of a port"
            ),
            *_alike(build, names.nodes),
            *link_problems(addresses),
        ]:
            raise InputError(few(problems))
        plane = ControlPlane.of(routed, chosen)
        return cls(routed, interfaces, names, addresses, vrf, plane, between)

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
            links=tuple(sorted(self.links(vertex).values(), key=_place)),
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
        w, links = self.routed.build.wiring, {}
        for (port, far, far_port), ends in zip(
            w.ends(vertex), self.addresses.at(vertex), strict=True
        ):
            links[port] = P2pLink(
                interface=w.port_name(vertex, port),
                description=self.names.description(far, far_port),
                ipv4=ends.ipv4,
                gateway4=ends.gateway4,
                ipv6=ends.ipv6,
                gateway6=ends.gateway6,
                port=self.routed.port(vertex, port),
            )
        return links

    def stages(self, vertex: int, links: Mapping[int, P2pLink]) -> dict[int, MarkedStage]:
        """The VRFs of marked packets, by the port of the link that brings them.

        Args:
            vertex: of the router.
            links: its links by port.
        """
        build, w = self.routed.build, self.routed.build.wiring
        if not build.forwarding.marks:
            return {}
        cabled = w.far[vertex] >= 0
        far = {port: neighbour for port, neighbour, _ in w.ends(vertex)}
        onward = onward_ports(w, vertex)[cabled].tolist()
        stem = self.vrf.removesuffix(HOSTS) if self.vrf.endswith(HOSTS) else ""
        pools = self.routed.pools()
        common = [self._common_routes(vertex, family, far, links) for family in self._families]
        stages = {}
        addresses = self.addresses.at(vertex, marked=True)
        for port, ends, ports in zip(far, addresses, onward, strict=True):
            stages[port] = MarkedStage(
                interface=self.interfaces.within(links[port].interface, MARK_VLAN),
                vlan=MARK_VLAN,
                vrf=f"{stem}marked{port}",
                ipv4=ends.ipv4,
                gateway4=ends.gateway4,
                ipv6=ends.ipv6,
                gateway6=ends.gateway6,
                routes=[
                    [_spreading_route(pools[family], family, ports, links), *common[family]]
                    for family in self._families
                ],
            )
        return stages

    @property
    def _families(self) -> range:
        """The address families, 0 for IPv4 and 1 for IPv6."""
        return range(len(self.routed.prefixes))

    def _common_routes(
        self, vertex: int, family: int, far: Mapping[int, int], links: Mapping[int, P2pLink]
    ) -> list[SharedRoute]:
        """The routes that all VRFs of marked packets have: to neighbours, and to own hosts."""
        endpoints = self.routed.build.topology.endpoints
        prefixes = self.routed.prefixes[family]
        routes: dict[str, tuple[Route, ...]] = {
            prefixes[neighbour]: (_hop(links[port], family),)
            for port, neighbour in far.items()
            if endpoints[neighbour]
        }
        to_hosts = {
            prefix: ((via, interface, self.vrf),)
            for prefix, via, interface in self.router(vertex).back()
            if self.between and (":" in prefix) == bool(family)
        }
        return [*routes.items(), *to_hosts.items()]

    def routes_held(self, vertex: int) -> RouteTables:
        """The routes that a router holds, by VRF."""
        links, held, plane = self.links(vertex), RouteTables(), self.plane
        stages = self.stages(vertex, links)
        for family, pool in enumerate(self.routed.pools()):
            minimal, entering = self._tables(vertex, family, links, stages)
            for name, table in ((MAIN, minimal), (self.vrf, entering)):
                if table or name == MAIN:
                    in_vrf = held.setdefault(name, {})
                    in_vrf |= comparable(plane.weighed(vertex, family, table) if plane else table)
                    in_vrf[pool] = (*in_vrf.get(pool, ()), DISCARD)
        if self.between and self.vrf in held:
            leaked = self.router(vertex).back()
            held[MAIN] |= {prefix: (((via, port, 1),),) for prefix, via, port in leaked}
        for stage in stages.values():
            held[stage.vrf] = comparable(
                {
                    prefix: (tuple((via, interface, 1) for via, interface, _ in hops),)
                    for prefix, hops in chain.from_iterable(stage.routes)
                }
            )
        return held

    def variables(self, vertex: int) -> P2pVariables:
        """The variables of a router's templates: static routes, or BGP with routes that share."""
        routed, links, plane = self.routed, self.links(vertex), self.plane
        stages = self.stages(vertex, links)
        tables = [self._tables(vertex, family, links, stages, plane) for family in self._families]
        vrf_of = {stage.interface: stage.vrf for stage in stages.values()}
        routes: list[list[Route]] = [
            [(prefix, via, port) for prefix, (((via, port, _), *_),) in table.minimal.items()]
            for table in tables
        ]
        entering: list[list[SharedRoute]] = [
            [
                (prefix, tuple((via, port, vrf_of.get(port, DEFAULT)) for via, port, _ in hops))
                for prefix, (hops,) in table.entering.items()
            ]
            for table in tables
        ]
        far_ends = {port: (link.gateway4, link.gateway6) for port, link in links.items()}
        addressed = far_ends if self.addresses.numbered else None
        described = {port: link.description for port, link in links.items()}
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
            stages=sorted(stages.values(), key=_place),
            seed=vertex + 1 if stages else 0,
            bgp=plane.at(vertex, addressed, described) if plane else None,
        )

    def _tables(
        self,
        vertex: int,
        family: int,
        links: Mapping[int, P2pLink],
        stages: Mapping[int, MarkedStage],
        plane: ControlPlane | None = None,
    ) -> RouterTables:
        """The routes of a router in one address family.

        Args:
            vertex: of the router.
            family: 0 for IPv4, 1 for IPv6.
            links: its links by port.
            stages: its VRFs of marked packets by port.
            plane: resolves the next hops of packets from hosts; None: they are those of links.
        """
        routed, w = self.routed, self.routed.build.wiring
        every_hop = routed.build.forwarding.every_hop
        hops = {
            port: ((link.gateway4, link.gateway6)[family] or ANY, link.interface)
            for port, link in links.items()
        }
        order = routed.build.tables.classes.port[vertex, :, None].astype(np.int64)
        shares = routed.sharing(vertex)
        if every_hop:
            order[shares] = SHARED
        minimal = routed.table(vertex, family, order, hops)
        hosts_share = shares.size and self.vrf and w.host_port[vertex].any()
        if every_hop or not hosts_share:
            return RouterTables(minimal, {})
        order[shares] = SHARED
        if plane is None or not plane.via:
            marked = {
                port: ((stage.gateway4, stage.gateway6)[family], stage.interface)
                for port, stage in stages.items()
            }
            return RouterTables(minimal, routed.table(vertex, family, order, hops, marked))
        entering = routed.table(vertex, family, order, plane.next_hops(vertex, family))
        # The VRF does not fall through to the routes that BGP finds: prefixes that do not share
        # need a route of their own there.
        prefix, egress = routed.routes(vertex)
        for number in prefix[~np.isin(egress, shares)].tolist():
            if hop := plane.next_hop(number, family):
                entering[routed.prefixes[family][number]] = (((*hop, 1),),)
        return RouterTables(minimal, entering)


def _place(end: P2pLink | MarkedStage) -> list[int]:
    """The place of an interface in the order in which devices show them, by its numbers."""
    return [int(number) for number in NUMBERS.findall(end.interface)]


def _hop(link: P2pLink, family: int) -> Route:
    """The next hop over a link, in the default VRF."""
    return (link.gateway4, link.gateway6)[family], link.interface, DEFAULT


def _spreading_route(
    pool: str, family: int, ports: Iterable[int], links: Mapping[int, P2pLink]
) -> SharedRoute:
    """The route that spreads a pool over the links at some ports, of which 0 is none."""
    return pool, tuple(_hop(links[port], family) for port in ports if port)


class RouterTables(NamedTuple):
    """The routes of a router in one address family, by prefix."""

    minimal: dict[str, Choices]
    """Those of the default VRF."""
    entering: dict[str, Choices]
    """Those of the VRF of hosts; {} where packets from hosts do not share ports."""


class P2pTarget(Target):
    """A system of routers whose links have addresses."""

    agreements = P2P_AGREEMENTS
    unnumbered = MappingProxyType[str, str]({})
    capabilities = Capabilities(frozenset({AGGREGATES, INGRESS, MARKS, WEIGHTS}))
    host_name = staticmethod(hostname)
    interfaces: ClassVar[Interfaces]
    """How it names its ports."""
    vrf: ClassVar[str] = HOSTS
    """The VRF of hosts, where packets from hosts share ports; "" on a system that cannot do it."""
    not_found: ClassVar[str] = ""
    """Why BGP cannot resolve next hops of that VRF, "" where it can."""
    between: ClassVar[bool] = True
    """See `P2pFabric.between`."""

    @property
    def folder(self) -> RouterFolder:
        """The files of a router, for reading them back by the grammars beside its templates."""
        return RouterFolder(str(self.templates), tuple(self.files))

    def folder_with(self, chosen: Chosen) -> RouterFolder:
        """As `folder`, without the lines of additions that the options ask for."""
        others = tuple(addition.others_lines for addition in self.wanted(chosen))
        return replace(self.folder, without_others=others)

    def grammar_facts(self, chosen: Chosen) -> tuple[str, ...]:
        """The names that its grammars take for defined; see `router_files.read_router`."""
        facts = []
        if chosen.get(ROUTING) == "bgp":
            facts.append("bgp")
        if chosen.get(UNNUMBERED, OFF) != OFF:
            facts.append(UNNUMBERED)
        added = (addition.grammar_facts for addition in self.wanted(chosen))
        return (*facts, *chain.from_iterable(added))

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
        """Functions from a vertex to what each wanted addition has printed at the switch."""
        return [addition.printed(fabric, chosen) for addition in self.wanted(chosen)]

    def more_differences(
        self, build: Build, chosen: Chosen, folder: Path, only: Collection[int] | None
    ) -> Iterator[DifferenceList]:
        """See `Target.more_differences`: those of wanted additions."""
        for addition in self.wanted(chosen):
            differences = addition.differences(self.fabric(build, chosen), chosen, folder, only)
            if differences is not None:
                yield differences

    def check(self, build: Build, options: Chosen | None = None) -> tuple[Build, Chosen]:
        """See `Target.check`.

        Raises:
            InputError: also what needs eBGP, with static routes.
        """
        checked, chosen = super().check(build, options)
        agreed = self.agreed(build)
        for name, why in ONLY_BGP.items():
            if agreed.get(name) == "on" and chosen.get(ROUTING) != "bgp":
                required, todo = f"false with static routes: {why}", "write `routes: ebgp`"
                raise InputError.of(required, "true", todo, key=CONTROL_KEYS[name])
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

    def pool_problems(self, build: Build, chosen: Chosen) -> Iterator[Problem]:
        """See `Target.pool_problems`."""
        yield from link_problems(LinkPlan.of(build, chosen))
        yield from next_hop_problems(build, chosen)

    def routes_held(self, build: Build, chosen: Chosen) -> Callable[[int], RouteTables]:
        """See `Target.routes_held`."""
        return self.fabric(build, chosen).routes_held


def _alike(build: Build, hostnames: tuple[str, ...]) -> list[Problem]:
    """Nodes whose names differ, and whose host names do not."""
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


def beyond_tables(build: Build, target: str, by_bgp: bool = False) -> Iterator[Problem]:
    """Limits of node types that the routes and ECMP groups of several VRFs exceed.

    Where every hop shares packets, all use one table, which is counted when it is compiled.

    Args:
        build: the fabric, with its node types.
        target: its name, for messages.
        by_bgp: whether BGP resolves next hops, by a route to every other switch.
    """
    alternates = build.tables.classes.alternate.shape[2]
    if build.hardware is None or build.forwarding.every_hop or not alternates:
        return
    w = build.wiring
    needs = _table_needs(build, by_bgp)
    for t, node_type in enumerate(build.hardware.types):
        of_type = (w.node_type == t) & needs.used
        for word, limit in node_type.limits.items():
            what, count = needs.by_limit[word]
            over = of_type & (count > limit)
            if over.any():
                most = int(np.where(over, count, 0).argmax())
                yield Problem(
                    key=f"node_types.{node_type.name}.tables.{word}",
                    required=f"at least {count[most]:,} {what} for alternates on target {target}",
                    given=f"{limit:,}, too few at {np.count_nonzero(over):,} "
                    f"nodes; {w.names[most]} needs most",
                    todo="choose another type, a smaller fabric or balance: minimal",
                )


@dataclass(frozen=True, slots=True)
class _TableNeeds:
    """What the tables of each switch have to hold. S is the number of switches."""

    used: NDArray[np.bool_]
    """bool[S]: the switches that have more than one VRF."""
    by_limit: Mapping[str, tuple[str, Numbers]]
    """By the name of a limit, its name in messages and int[S], how much each switch needs."""


def _table_needs(build: Build, by_bgp: bool) -> _TableNeeds:
    """Count the routes and ECMP groups of all VRFs of each switch.

    Each VRF has a route to every other prefix and to every host of the switch. A class that shares
    packets takes an ECMP group for each address family. The VRF of a link's marked packets has a
    route and a group that spread them, and a route to every neighbour and host.
    """
    w, c = build.wiring, build.tables.classes
    families = 2 if build.addressing.ipv6 else 1
    hosts = np.count_nonzero(w.host_port, axis=1)
    ports: Numbers = np.concatenate((c.port[..., None], c.alternate), axis=2)
    members: Numbers = np.count_nonzero(np.where(ports > 0, c.weight, 0), axis=2)
    others = build.tables.routes.rows() - 1
    neighbours = np.count_nonzero((w.far >= 0) & build.topology.endpoints[w.far], axis=1)
    has_hosts = hosts > 0
    links = np.count_nonzero(w.far >= 0, axis=1)
    stages = links if build.forwarding.marks else np.zeros_like(links)
    vrfs_with_all = 1 + int(by_bgp) + has_hosts.astype(np.int64)
    rows = others * vrfs_with_all + 2 * hosts + stages * (1 + neighbours + hosts)
    groups = np.where(has_hosts, (members > 1).sum(axis=1), 0) + stages
    widest = np.where(has_hosts, members.max(axis=1, initial=0), 0)
    vrfs = "all" if build.forwarding.marks else "two"
    return _TableNeeds(
        used=has_hosts | (stages > 0),
        by_limit={
            "lpm_rows": (f"routes in {vrfs} VRFs", rows * families),
            "groups": ("ECMP groups", groups * families),
            "ecmp_width": ("members per ECMP group", np.maximum(widest, stages - 1)),
        },
    )
