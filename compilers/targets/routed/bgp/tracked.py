"""Tracked next hops: static routes of FRR 8.4 that follow BFD, as BGP announces their next hops.

Static routes of FRR 8.4 do not follow BFD, but routes of BGP do. So each switch announces an
address to its neighbours as the next hop of their static routes, and a second one for marked
packets, which the neighbour reaches on a device for them (`kernel_marks`). Neighbours accept these
addresses only and do not announce them further, so an address leads over one link only. When BFD
takes a session down, the address disappears, and with it every static route over the link, as if
the port were down. The static route with the next greater distance then takes its place. Target frr
asks `TrackedHops` for the next hops of its static routes, and for the BGP of each switch.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from ipaddress import IPv4Network, IPv6Network, ip_network

from compilers.tables.build import Build
from compilers.targets.options import Chosen
from compilers.targets.routed.bgp.bgp_options import NEXT_HOP_POOLS, has_gtsm
from compilers.targets.routed.bgp.control_plane import FAMILIES
from compilers.targets.routed.bgp.speaker_variables import BgpSpeaker
from compilers.targets.routed.kernel_marks import IPV6, marked_address
from compilers.targets.routed.router_problems import pool_problems
from compilers.targets.routed.static_routes import BuildRouters, PortHops
from compilers.wiring.as_numbers import as_numbers
from inventory.problems import InputError, Problem, few


@dataclass(frozen=True, slots=True)
class TrackedFamily:
    """The addresses that a switch announces in one address family."""

    name: str
    """ipv4 or ipv6."""
    word: str
    """The first word of commands about the family: ip or ipv6."""
    full: int
    """The bits of an address: the prefix length of a single address."""
    plain: str
    """The address that is the next hop for packets without a mark."""
    marked: str
    """The address that is the next hop for marked packets; "" where the balance marks none."""


@dataclass(frozen=True, slots=True)
class TrackedLink:
    """A link to a neighbour."""

    interface: str
    """The name of the port."""
    description: str
    """The node and the port at the far end."""
    number: int
    """The AS number of the neighbour."""
    marked_hop: str
    """The link-local address of its device for marked packets."""
    families: tuple[TrackedFamily, ...]
    """What the neighbour announces."""


@dataclass(frozen=True, slots=True)
class Tracked:
    """The BGP of a switch with tracked next hops, as the template of frr.conf prints it."""

    number: int
    """Its AS number."""
    router_id: str
    """Its router id, an IPv4 address."""
    own: tuple[TrackedFamily, ...]
    """What the switch itself announces, by address family."""
    links: tuple[TrackedLink, ...]
    """Its links to neighbours."""
    gtsm: bool
    """See `BgpSpeaker.gtsm`."""
    keepalive: int = BgpSpeaker.keepalive
    """Seconds between keepalives."""
    hold: int = BgpSpeaker.hold
    """Seconds without a keepalive after which a session ends."""
    connect: int = BgpSpeaker.connect
    """Seconds between attempts to connect."""
    interval: int = BgpSpeaker.interval
    """Milliseconds between packets of BFD."""
    multiplier: int = BgpSpeaker.multiplier
    """How many packets of BFD have to be missed in a row for a link to count as dead."""


@dataclass(frozen=True, slots=True)
class TrackedHops:
    """The tracked next hops of all switches."""

    routers: BuildRouters
    """The routers of the build."""
    pools: tuple[IPv4Network | IPv6Network, ...]
    """The pool of each address family; next hops for marked packets are in its upper half."""
    gtsm: bool
    """See `BgpSpeaker.gtsm`."""

    @classmethod
    def of(cls, routers: BuildRouters, chosen: Chosen) -> TrackedHops:
        """The next hops of a build, from the pools of announced next hops.

        Raises:
            InputError: a pool is too small, or has addresses of hosts or of management.
        """
        if problems := list(tracked_problems(routers.build, chosen)):
            raise InputError(few(problems))
        ipv4_pool, ipv6_pool = (ip_network(chosen[name]) for name in NEXT_HOP_POOLS)
        has_ipv6 = routers.build.addressing.ipv6 is not None
        return cls(
            routers=routers,
            pools=(ipv4_pool, ipv6_pool) if has_ipv6 else (ipv4_pool,),
            gtsm=has_gtsm(chosen),
        )

    def hops(self, vertex: int, family: int, *, marked: bool = False) -> PortHops:
        """For each port of a switch the next hop that the neighbour announces.

        It is an address without an interface, "", as BGP resolves the address to the port.

        Args:
            vertex: the vertex of the switch.
            family: IPV4_FAMILY or IPV6_FAMILY.
            marked: whether the next hop is for marked packets, not for all others.
        """
        ends = self.routers.build.wiring.links_of(vertex)
        return {port: (self._address(far, family, marked), "") for port, far, _ in ends}

    def _address(self, vertex: int, family: int, marked: bool) -> str:
        """The address that a switch announces, for packets with or without a mark."""
        pool = self.pools[family]
        first = pool.num_addresses // 2 if marked else 0  # the upper half is for marked packets
        return str(pool[first + vertex + 1])

    def _families(self, vertex: int) -> Iterator[TrackedFamily]:
        """The addresses that a switch announces, by address family."""
        marks = self.routers.build.forwarding.marks
        for family, pool in enumerate(self.pools):
            name, word = FAMILIES[family]
            yield TrackedFamily(
                name=name,
                word=word,
                full=pool.max_prefixlen,
                plain=self._address(vertex, family, marked=False),
                marked=self._address(vertex, family, marked=True) if marks else "",
            )

    def at(self, vertex: int) -> Tracked:
        """The BGP of a switch."""
        build, wiring = self.routers.build, self.routers.build.wiring
        as_number = as_numbers(build.base, wiring.names, build.allocations).tolist()
        neighbour_at = {port: neighbour for port, neighbour, _ in wiring.links_of(vertex)}
        links = []
        for link in self.routers.switch(vertex).links:
            neighbour = neighbour_at[link.port]
            links.append(
                TrackedLink(
                    interface=link.interface,
                    description=f"{link.far} {link.far_interface}",
                    number=as_number[neighbour],
                    marked_hop=marked_address(neighbour, IPV6),
                    families=tuple(self._families(neighbour)),
                )
            )
        return Tracked(
            number=as_number[vertex],
            router_id=self.routers.gateways[vertex],
            own=tuple(self._families(vertex)),
            links=tuple(links),
            gtsm=self.gtsm,
        )


def tracked_problems(build: Build, chosen: Chosen) -> Iterator[Problem]:
    """Pools of announced next hops that are too small, or have addresses of hosts or management.

    Each switch has two addresses in a pool: one for marked packets, one for all others.
    """
    ipv4_name, ipv6_name = NEXT_HOP_POOLS
    pools = {
        ipv4_name: (ip_network(chosen[ipv4_name]), build.addressing.ipv4),
        ipv6_name: (ip_network(chosen[ipv6_name]), build.addressing.ipv6),
    }
    yield from pool_problems(build, pools, 2 * (len(build.wiring.names) + 1), "next hops")
