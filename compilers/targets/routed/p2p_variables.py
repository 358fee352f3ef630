"""The variables of templates for routers whose links have addresses: router, links, routes.

`P2pFabric` computes them from a build and describes the VRFs: the default one, that of hosts, whose
packets *enter* the fabric, and one for marked packets from each link (a *stage*). The templates of
all systems whose class derives from `P2pTarget` print these variables.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple

from compilers.targets.base_config import BaseConfig
from compilers.targets.routed.bgp.speaker_variables import BgpSpeaker
from compilers.targets.routed.interfaces import PhysicalPort

Route = tuple[str, str, str]
"""Prefix, gateway and interface. A plain tuple, as a fabric has millions."""
VrfNextHop = tuple[str, str, str]
"""The gateway, the interface, and the VRF that the interface is in."""
SharedRoute = tuple[str, tuple[VrfNextHop, ...]]
"""A prefix, and its next hops in other VRFs, which share packets by equal-cost multipath."""


@dataclass(frozen=True, slots=True)
class P2pLink:
    """A link of a router; "" for an address that the link does not have."""

    interface: str
    """The name of the router's port."""
    description: str
    """The host name and the port at the other end."""
    ipv4: str
    """The router's own IPv4 address, with its length."""
    gateway4: str
    """The IPv4 address at the other end."""
    ipv6: str
    """The router's own IPv6 address, with its length."""
    gateway6: str
    """The IPv6 address at the other end."""
    port: PhysicalPort
    """What the inventory says of the port."""


@dataclass(frozen=True, slots=True)
class MarkedStage:
    """The subinterface on which a link brings marked packets, and its VRF."""

    interface: str
    """The name of the subinterface."""
    vlan: int
    """The VLAN of marked packets."""
    vrf: str
    """The VRF that the subinterface is in."""
    ipv4: str
    """The router's own IPv4 address, with its length."""
    gateway4: str
    """The IPv4 address at the other end."""
    ipv6: str
    """The router's own IPv6 address, with its length."""
    gateway6: str
    """The IPv6 address at the other end."""
    routes: list[list[SharedRoute]]
    """The routes of the VRF by address family, those to the router's own hosts last."""

    def families(self) -> Iterator[tuple[str, str, list[SharedRoute]]]:
        """For each address family: its first word in commands, a pool, and the routes of the VRF.

        A VRF discards packets to addresses of the pool without a route. A stage discards none, so
        its pool is "".
        """
        # A fabric without IPv6 has only the first of the two families.
        for word, routes in zip(("ip", "ipv6"), self.routes, strict=False):
            yield word, "", routes


@dataclass(frozen=True, slots=True)
class HostPort:
    """A port of a router to a host."""

    interface: str
    """The name of the port."""
    description: str
    """The name of the host, behind the word `host`."""
    port: PhysicalPort
    """What the inventory says of the port."""
    ipv4: str
    """The host's IPv4 address."""
    ipv6: str
    """The host's IPv6 address; "" where the fabric has none."""


@dataclass(frozen=True, slots=True)
class P2pRouter:
    """A router as the templates print it; "" for an address that it does not have."""

    node: str
    """The name of the node."""
    hostname: str
    """The node's name as a host name of the system."""
    ipv4: str
    """The gateway's IPv4 address, without its length."""
    ipv4_length: int
    """The length of the IPv4 block of its hosts."""
    ipv6: str
    """The gateway's IPv6 address."""
    links: tuple[P2pLink, ...]
    """Its links to other routers, in the order in which devices show their ports."""
    hosts: tuple[HostPort, ...]
    """Its ports to hosts."""
    vlan: str
    """The name of the VLAN interface that several hosts share."""

    @property
    def host_interface(self) -> str:
        """The port of the only host, or the VLAN interface of several hosts; "" without hosts."""
        if not self.hosts:
            return ""
        return self.hosts[0].interface if len(self.hosts) == 1 else self.vlan

    def back(self) -> Iterator[Route]:
        """The leaked routes of the default VRF: one to each host, with the host as the next hop."""
        for host in self.hosts:
            for address, length in ((host.ipv4, 32), (host.ipv6, 128)):
                if address:
                    yield f"{address}/{length}", address, self.host_interface

    @property
    def ports(self) -> list[PhysicalPort]:
        """The ports to routers and hosts."""
        return [*(link.port for link in self.links), *(host.port for host in self.hosts)]

    @property
    def mtu(self) -> int:
        """The smallest MTU of the ports of hosts, in bytes of an IP packet; 0: it is not known."""
        return min((host.port.mtu for host in self.hosts), default=0)

    @property
    def cages(self) -> list[PhysicalPort]:
        """One port of each cage that is broken out, if the port is in use and its speed known."""
        return list({port.cage: port for port in self.ports if port.cage and port.speed}.values())


class P2pFamily(NamedTuple):
    """The routes of a router in one address family."""

    name: str
    """ipv4 or ipv6."""
    pool: str
    """The smallest network that contains all blocks of the fabric."""
    routes: list[Route]
    """The static routes of the default VRF."""
    entering: list[SharedRoute]
    """The routes of the VRF of hosts."""


class VrfRoutes(NamedTuple):
    """The routes of a VRF whose next hops are in other VRFs, in one address family."""

    word: str
    """The first word of commands about the family: ip or ipv6."""
    vrf: str
    """The name of the VRF."""
    routes: list[SharedRoute]
    """Its routes, each with all of its next hops."""


@dataclass(frozen=True, slots=True)
class P2pVariables:
    """The variables of a router's templates."""

    router: P2pRouter
    """The names, addresses and ports of the router."""
    identity: str
    """The identity of the build."""
    base: BaseConfig
    """Management, time and logs."""
    vlan: int
    """The VLAN of the host ports, where there are several."""
    unreachable: int
    """The distance of routes that discard."""
    ipv4_pool: str
    """The smallest network that contains all IPv4 blocks of the fabric."""
    ipv6_pool: str
    """The smallest network that contains all IPv6 blocks; "" where the fabric has none."""
    ipv4_routes: list[Route]
    """The static IPv4 routes of the default VRF: prefix, gateway and interface; [] with BGP."""
    ipv6_routes: list[Route]
    """The static IPv6 routes, with the same columns; [] with BGP."""
    vrf: str
    """The VRF of hosts, where packets from hosts share ports; else ""."""
    ipv4_entering: list[SharedRoute]
    """The IPv4 routes of the VRF of hosts: each has a prefix, and its next hops with their VRFs."""
    ipv6_entering: list[SharedRoute]
    """The IPv6 routes of the VRF of hosts."""
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
