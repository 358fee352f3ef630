"""Static routes that follow BFD: eBGP keeps their next hops, each for one link alone.

Static routes of FRR 8.4 do not follow BFD, but routes of BGP do. So every switch announces an
address to its neighbours, and another one for marked packets, by which these reach it on its
devices for them (`kernel_marks`). A neighbour accepts no other, and announces it to none: it is
there while BFD finds the link alive. What BFD finds dead takes the address away, and with it every
static route over the link, as a port that goes down does; the next choice of the prefix serves.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from ipaddress import IPv4Network, IPv6Network, ip_network

from compilers.targets.options import Chosen
from compilers.targets.routed.bgp.control_plane import FAMILIES, VIA, BgpSpeaker
from compilers.targets.routed.kernel_marks import marked_address
from compilers.targets.routed.static_routes import PortHops, RoutedFabric, pool_problems
from compilers.wiring.addressing import as_numbers
from inventory.problems import InputError, few


@dataclass(frozen=True, slots=True)
class TrackedFamily:
    """An address family of a link, or of the switch: its name, the word of commands, a length.

    plain, marked: the addresses that are announced; marked is "" without marks.
    """

    name: str
    word: str
    full: int
    plain: str
    marked: str


@dataclass(frozen=True, slots=True)
class TrackedLink:
    """A link: the AS of the neighbour, its address for marked packets, what it announces."""

    interface: str
    number: int
    marked_hop: str
    families: tuple[TrackedFamily, ...]


@dataclass(frozen=True, slots=True)
class Tracked:
    """What a switch says to neighbours that only keep its next hops; see `BgpSpeaker`."""

    number: int
    router_id: str
    own: tuple[TrackedFamily, ...]
    links: tuple[TrackedLink, ...]
    keepalive: int = BgpSpeaker.keepalive
    hold: int = BgpSpeaker.hold
    connect: int = BgpSpeaker.connect
    interval: int = BgpSpeaker.interval
    multiplier: int = BgpSpeaker.multiplier


@dataclass(frozen=True, slots=True)
class TrackedHops:
    """The next hops of all switches; pools: of their addresses, the upper half of marked ones."""

    routed: RoutedFabric
    pools: tuple[IPv4Network | IPv6Network, ...]

    @classmethod
    def of(cls, routed: RoutedFabric, chosen: Chosen) -> TrackedHops:
        """Those of a build.

        Raises:
            InputError: pools that are too small or hold others' addresses.
        """
        a = routed.build.addressing
        pools = tuple(ip_network(chosen[name]) for name in VIA)
        given = dict(zip(VIA, zip(pools, (a.ipv4, a.ipv6), strict=True), strict=True))
        needed = 2 * (len(routed.build.wiring.names) + 1)
        if problems := list(pool_problems(routed.build, given, needed, "next hops")):
            raise InputError(few(problems))
        return cls(routed, pools[: 1 + (a.ipv6 is not None)])

    def hops(self, vertex: int, family: int, *, marked: bool = False) -> PortHops:
        """The address behind every port, and no interface."""
        ends = self.routed.build.wiring.ends(vertex)
        return {port: (self._address(far, family, marked), "") for port, far, _ in ends}

    def _address(self, vertex: int, family: int, marked: bool) -> str:
        pool = self.pools[family]
        return str(pool[vertex + 1 + marked * (pool.num_addresses // 2)])

    def _families(self, vertex: int) -> Iterator[TrackedFamily]:
        marks = self.routed.build.forwarding.marks
        for family, pool in enumerate(self.pools):
            marked = self._address(vertex, family, marked=True) if marks else ""
            plain = self._address(vertex, family, marked=False)
            yield TrackedFamily(*FAMILIES[family], pool.max_prefixlen, plain, marked)

    def at(self, vertex: int) -> Tracked:
        """What a switch says."""
        w = self.routed.build.wiring
        number = as_numbers(self.routed.build.base, w.names).tolist()
        far = {port: there for port, there, _ in w.ends(vertex)}
        return Tracked(
            number=number[vertex],
            router_id=self.routed.gateways[vertex],
            own=tuple(self._families(vertex)),
            links=tuple(
                TrackedLink(
                    link.interface,
                    number[far[link.port]],
                    marked_address(far[link.port], 6),
                    tuple(self._families(far[link.port])),
                )
                for link in self.routed.switch(vertex).links
            ),
        )
