"""eBGP whose best paths are the compiled minimal paths, and that finds others when these fail.

Every switch is an autonomous system of its own and announces its own prefix to all neighbours, so
the length of an AS path is the number of links and the shortest one is a minimal path. In PolarFly
it is the only one. Where there are several, the compiled one is preferred by its metric, which BGP
compares after the length (RFC 4271, section 9.1.2.2): what is preferred is always among the
shortest, so it cannot make routes oscillate, and after a failure the shortest paths left decide.
The values are those of no system; the template of each prints them.

Where traffic from hosts is shared, it is by static routes whose next hops are addresses that the
neighbours announce as hosts of their own: BGP finds them, so a next hop that a link has lost is
found over another neighbour, and one that is dead is none. What enters leaves for a neighbour, and
then follows the shortest path that is left, which has no loop. No packet goes to these addresses,
and no interface has them. No route that discards may be near them: it would be found, and a kernel
takes no group with a member that discards.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from ipaddress import IPv4Network, IPv6Network, ip_network
from pathlib import Path
from types import MappingProxyType
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from compilers.forwarding.walks import minimal_hops
from compilers.readers.bgp.bgp_reader import BgpReader
from compilers.readers.bgp.bgp_speaker import BgpSwitch, SpeakerOptions
from compilers.readers.devices.held_routes import Choices
from compilers.spec.features import AGGREGATES, INGRESS, TRANSIT, WEIGHTS
from compilers.tables.build import Build
from compilers.tables.fib import Fib
from compilers.targets.addition import Addition
from compilers.targets.capabilities import Capabilities
from compilers.targets.options import OFF, SET, Chosen, Option, Options
from compilers.targets.routed.static_routes import RoutedFabric, pool_problems
from compilers.wiring.addressing import OWN, as_numbers
from inventory.asn_range import LAST_AS, RESERVED_AS
from inventory.problems import InputError, Problem, few

ROUTING, BFD, UNNUMBERED, WCMP = "routing", "bfd", "unnumbered", "wcmp"
VIA = ("nexthops", "nexthops6")
"""The options with the pools of addresses that next hops of shares have."""
BLOCK_OF_DESTINATIONS = 256
"""Destinations that are walked to at once."""
FAMILIES = (("ipv4", "ip"), ("ipv6", "ipv6"))
"""The name of an address family, and the word that commands about it begin with."""


def bgp_options(*bfd: str) -> Options:
    """The options of a target that can have eBGP; bfd: the values of that, the default first."""
    return MappingProxyType(
        {
            ROUTING: Option.choice("How routes come about.", "static", "bgp"),
            BFD: Option.choice("Whether BFD watches every link.", *bfd),
        }
    )


WCMP_OPTION: Options = MappingProxyType(
    {
        WCMP: Option.choice(
            "With routing=bgp and transit: ecmp: neighbours weigh by the paths behind them.",
            "off",
            "on",
        )
    }
)


def _pool(text: str, six: bool) -> bool:
    try:
        return str(network := ip_network(text)) == text and (network.version == 6) is six
    except ValueError:
        return False


SHARING_OPTIONS: Options = MappingProxyType(
    {
        name: Option(
            f"With alternates and routing=bgp: the pool of next hops, IPv{4 + 2 * six}.",
            default,
            f"an IPv{4 + 2 * six} network such as {default}",
            partial(_pool, six=six),
        )
        for name, default, six in (
            (VIA[0], "100.127.0.0/16", False),
            (VIA[1], "fd64:0:0:1::/64", True),
        )
    }
)

BY_FRR: Options = MappingProxyType(
    {
        UNNUMBERED: Option.choice(
            "With routing=bgp: sessions over links without addresses (RFC 8950).", "off", "on"
        ),
        **WCMP_OPTION,
    }
)
"""Those of systems with addresses on links whose BGP is FRR's."""


@dataclass(frozen=True, slots=True)
class BgpPeer:
    """A neighbour in an address family.

    number: its AS. address: at the other end of the link, "" where the link has none. preferred:
    prefixes for which it is one next hop of several. policy: for what it announces.
    """

    interface: str
    number: int
    address: str
    preferred: tuple[str, ...]
    policy: str

    @property
    def name(self) -> str:
        """What the session is called by: the address, or the interface where there is none."""
        return self.address or self.interface


@dataclass(frozen=True, slots=True)
class BgpFamily:
    """An address family. name, word: ipv4 and ip, or ipv6 twice.

    pool, length: every prefix of the fabric is of this length and in this network. own: the prefix
    of the switch, "" where no switch has a route to it. via: the address of next hops that lead to
    it, with its length, "" without shares; via_pool: where those of all switches are.
    """

    name: str
    word: str
    pool: str
    length: int
    own: str
    peers: tuple[BgpPeer, ...]
    via: str = ""
    via_pool: str = ""

    @property
    def full(self) -> int:
        """The length of an address."""
        return 32 if self.name == "ipv4" else 128

    @property
    def announced(self) -> list[str]:
        """The prefixes that the switch announces of itself."""
        return [prefix for prefix in (self.own, self.via) if prefix]

    def policies(self) -> Iterator[tuple[str, tuple[str, ...]]]:
        """The policies for what neighbours announce, and the prefixes that each prefers."""
        yield from ((peer.policy, peer.preferred) for peer in self.peers if peer.preferred)
        yield f"fabric-{self.name}", ()


@dataclass(frozen=True, slots=True)
class BgpSpeaker:
    """What a switch says in BGP.

    number: its AS. longest: the most links that a path may have. bfd: whether BFD watches every
    session. numbered: whether links have addresses, and so a session in each family; else there
    is one for both. paths: how many it takes at once to a prefix. wcmp: whether it announces how
    many these are, for others to weigh. Of all switches: keepalive, hold, connect: seconds between
    keepalives, without any before the session ends, and between attempts to connect. interval: ms
    between packets of BFD; multiplier: how many of them are missed at a dead link.
    """

    number: int
    router_id: str
    longest: int
    bfd: bool
    numbered: bool
    paths: int
    wcmp: bool
    families: tuple[BgpFamily, ...]
    keepalive: ClassVar[int] = 3
    hold: ClassVar[int] = 9
    connect: ClassVar[int] = 1
    interval: ClassVar[int] = 300
    multiplier: ClassVar[int] = 3

    def groups(self) -> Iterator[tuple[str, tuple[BgpFamily, ...]]]:
        """The groups of neighbours, each with the families that its sessions are for."""
        if self.numbered:
            yield from ((f"fabric-{each.name}", (each,)) for each in self.families)
        else:
            yield "fabric", self.families

    def announced(self, family: str) -> list[str]:
        """What the switch announces of itself in a family, by the name of that."""
        return next((each.announced for each in self.families if each.name == family), [])


@dataclass(frozen=True, slots=True)
class ControlPlane:
    """All speakers of a build.

    hops: int8[S, S], links of the compiled paths. egress: int[S, S], their classes. numbers:
    int64[S], of their systems. via: the pools of the addresses of next hops, () without shares.
    wcmp: see `BgpSpeaker`.
    """

    routed: RoutedFabric
    hops: NDArray[np.int8]
    egress: NDArray[np.integer]
    numbers: NDArray[np.int64]
    bfd: bool
    via: tuple[IPv4Network | IPv6Network, ...] = ()
    wcmp: bool = False

    @classmethod
    def of(cls, routed: RoutedFabric, chosen: Chosen) -> ControlPlane | None:
        """The speakers of a build, None with static routes.

        Raises:
            InputError: compiled paths that are longer than need be, which BGP would not take, or
                AS numbers that are not for use.
        """
        if chosen.get(ROUTING) != "bgp":
            return None
        build = routed.build
        fib = Fib.of(build.tables, build.wiring.cables())
        order = build.tables.switches
        blocks = np.array_split(np.arange(order), -(-order // BLOCK_OF_DESTINATIONS))
        hops = np.concatenate([minimal_hops(fib, block) for block in blocks], axis=1)
        egress = np.concatenate([fib.egress(block) for block in blocks], axis=1)
        numbers = as_numbers(build.base, build.wiring.names)
        alternates = build.tables.classes.alternate.shape[2] and not build.forwarding.every_hop
        shared = alternates and VIA[0] in chosen
        via = tuple(ip_network(chosen[name]) for name in VIA) if shared else ()
        plane = cls(routed, hops, egress, numbers, chosen[BFD] == "on", via, weighs(chosen))
        counted = np.setdiff1d(numbers, list(build.base.get(OWN, {}).values()))
        wrong = [*_wrong_numbers(counted), *plane._longer_paths(), *plane._wrong_pools()]
        if problems := wrong:
            raise InputError(few(problems))
        return plane

    def _longer_paths(self) -> list[Problem]:
        w = self.routed.build.wiring
        problems = []
        for vertex in np.flatnonzero(self.routed.build.topology.present).tolist():
            nearest = self.hops[w.far[vertex][w.far[vertex] >= 0]].min(axis=0)
            longer = np.flatnonzero(self.hops[vertex] > nearest + 1)
            problems += [
                Problem(
                    key="set routing",
                    required="static: BGP takes the shortest path and the compiled one is longer",
                    given=f"bgp, and {w.names[vertex]} to {w.names[there]}",
                )
                for there in longer.tolist()
            ]
        return problems

    def _wrong_pools(self) -> Iterator[Problem]:
        """Pools of next hops that are too small, or hold addresses of others."""
        build = self.routed.build
        hosts = build.addressing.ipv4, build.addressing.ipv6
        pools = dict(zip(VIA, zip(self.via, hosts, strict=False), strict=False))
        return pool_problems(build, pools, len(self.numbers) + 1, "next hops")

    def next_hops(self, vertex: int, family: int) -> dict[int, tuple[str, str]]:
        """By port the address that leads to the neighbour there, and no interface."""
        pool, ends = self.via[family], self.routed.build.wiring.ends(vertex)
        return {port: (str(pool[far + 1]), "") for port, far, _ in ends}

    def next_hop(self, prefix: int, family: int) -> tuple[str, str] | None:
        """The address that leads to the switch of a prefix, and no interface; None: of several."""
        return (str(self.via[family][prefix + 1]), "") if prefix < len(self.numbers) else None

    def weighed(self, vertex: int, family: int, table: Mapping[str, Choices]) -> dict[str, Choices]:
        """A table of BGP's paths; with `wcmp` each weighs as many as there are behind it."""
        if not self.wcmp:
            return dict(table)
        w, hops = self.routed.build.wiring, self.hops
        behind: dict[str, list[int]] = {}
        for port, far, _ in w.ends(vertex):
            near = hops[w.far[far][w.far[far] >= 0]]
            paths = (near == hops[far] - 1).sum(axis=0).clip(1)
            behind[w.port_name(vertex, port)] = paths.tolist()
        number = {text: at for at, text in enumerate(self.routed.prefixes[family])}
        return {
            prefix: tuple(
                tuple((via, port, behind[port][number[prefix]]) for via, port, _ in stage)
                for stage in choices
            )
            for prefix, choices in table.items()
        }

    def at(self, vertex: int, numbered: Mapping[int, tuple[str, ...]] | None = None) -> BgpSpeaker:
        """The speaker of a switch.

        Args:
            vertex: of the switch.
            numbered: the addresses at the other end, by port and family; None: links have none.
        """
        routed, a = self.routed, self.routed.build.addressing
        topology, pools = routed.build.topology, routed.pools()
        lengths = (a.ipv4_length, 64)
        return BgpSpeaker(
            number=int(self.numbers[vertex]),
            router_id=routed.gateways[vertex],
            longest=2 * topology.diameter + 2,
            bfd=self.bfd,
            numbered=numbered is not None,
            paths=len(routed.switch(vertex).links) if routed.build.forwarding.every_hop else 1,
            wcmp=self.wcmp,
            families=tuple(
                BgpFamily(
                    *FAMILIES[family],
                    pool=pools[family],
                    length=lengths[family],
                    own=texts[vertex] if topology.endpoints[vertex] else "",
                    peers=tuple(self._peers(vertex, family, numbered or {})),
                    **self._via(vertex, family),
                )
                for family, texts in enumerate(routed.prefixes)
            ),
        )

    def _via(self, vertex: int, family: int) -> dict[str, str]:
        if not self.via:
            return {}
        pool = self.via[family]
        return {"via": f"{pool[vertex + 1]}/{pool.max_prefixlen}", "via_pool": str(pool)}

    def _peers(
        self, vertex: int, family: int, addresses: Mapping[int, tuple[str, ...]]
    ) -> list[BgpPeer]:
        w, classes = self.routed.build.wiring, self.routed.build.tables.classes
        far = w.far[vertex][w.far[vertex] >= 0]
        tied = np.flatnonzero((self.hops[far] == self.hops[vertex] - 1).sum(axis=0) > 1)
        tied = tied[:0] if self.routed.build.forwarding.every_hop else tied
        port = classes.port[vertex][self.egress[vertex, tied]]
        texts, name = self.routed.prefixes[family], FAMILIES[family][0]
        peers = []
        for link, there in zip(self.routed.switch(vertex).links, far.tolist(), strict=True):
            through = tied[port == link.port].tolist()
            preferred = tuple(texts[d] for d in through) + tuple(
                self._via(d, family)["via"] for d in through if self.via
            )
            peers.append(
                BgpPeer(
                    interface=link.interface,
                    number=int(self.numbers[there]),
                    address=addresses[link.port][family] if addresses else "",
                    preferred=preferred,
                    policy=f"via-{link.port}-{name}" if preferred else f"fabric-{name}",
                )
            )
        return peers


def bgp_reader(speaker: Callable[[Path, SpeakerOptions], BgpSwitch], chosen: Chosen) -> BgpReader:
    """The reader of a target with eBGP, by what reads a folder."""
    alone = chosen.get(UNNUMBERED, OFF) != OFF
    asked = SpeakerOptions(chosen[BFD] == "on", not alone, weighs(chosen))
    return BgpReader(lambda folder: speaker(folder, asked))


def weighs(chosen: Chosen) -> bool:
    """Whether BGP weighs next hops, by `WCMP`."""
    return chosen.get(WCMP, OFF) != OFF


def require_static(wanted: Sequence[Addition[Any, Any]], chosen: Chosen) -> None:
    """Pass unless an addition is wanted: what it prints was proved for compiled paths.

    Raises:
        InputError: one is.
    """
    for addition in wanted:
        raise InputError.of(
            key=f"{SET} {addition.option}",
            required=f"{OFF} with {ROUTING}=bgp: it finds paths of its own after a failure",
            given=chosen[addition.option],
        )


def require_bgp(build: Build, target: str, chosen: Chosen, why: str = "") -> None:
    """BGP finds minimal routes and their aggregates; static routes may share what enters.

    Args:
        build: what is to be emitted.
        target: its name.
        chosen: the value of every option.
        why: why its static routes can have no next hops that BGP finds in another table.

    Raises:
        InputError: the build asks for more.
    """
    if weighs(chosen) and not build.forwarding.every_hop:
        required = f"{OFF} without transit: ecmp, where a prefix has one path"
        raise InputError.of(required, chosen[WCMP], key=f"{SET} {WCMP}")
    # At every hop packets from hosts go as others do.
    apart = why and not build.forwarding.every_hop
    sharing = frozenset[str]() if apart else frozenset({INGRESS, WEIGHTS})
    named = f"{target} with routing=bgp"
    if why and build.tables.classes.alternate.shape[2]:
        named += f" ({why})"
    Capabilities(sharing | {AGGREGATES, TRANSIT}).require(build, named)


def _wrong_numbers(numbers: NDArray[np.int64]) -> list[Problem]:
    """Numbers that are counted on, in order; those of the inventory's nodes are checked there."""
    if numbers.max(initial=0) <= LAST_AS and not np.isin(numbers, RESERVED_AS).any():
        return []
    return [
        Problem(
            key="base.asn",
            required=f"AS numbers for {len(numbers):,} switches, none above {LAST_AS}, "
            f"and not {' or '.join(map(str, RESERVED_AS))}",
            given=f"{numbers[0]} to {numbers[-1]}",
        )
    ]
