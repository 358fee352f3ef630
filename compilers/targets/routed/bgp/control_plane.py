"""eBGP whose best paths are the compiled minimal paths, and that finds others when these fail.

Every switch is an autonomous system of its own and announces its own prefix to all neighbours, so
the length of an AS path is the number of links and the shortest one is a minimal path. In PolarFly
it is the only one. Where there are several, the compiled one is preferred by its metric, which BGP
compares after the length (RFC 4271, section 9.1.2.2): what is preferred is always among the
shortest, so it cannot make routes oscillate, and after a failure the shortest paths left decide.
The values are those of no system; the template of each prints them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from compilers.forwarding.walks import minimal_hops
from compilers.readers.bgp.bgp_reader import BgpReader
from compilers.readers.bgp.bgp_speaker import BgpSwitch
from compilers.spec.features import AGGREGATES
from compilers.tables.build import Build
from compilers.tables.fib import Fib
from compilers.targets.capabilities import Capabilities
from compilers.targets.options import LOSSLESS, OFF, SET, Chosen, Option, Options
from compilers.targets.routed.static_routes import RoutedFabric
from compilers.wiring.addressing import OWN, as_numbers
from inventory.asn_range import LAST_AS, RESERVED_AS
from inventory.problems import InputError, Problem, few

ROUTING, BFD = "routing", "bfd"
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


@dataclass(frozen=True, slots=True)
class BgpFamily:
    """An address family. name, word: ipv4 and ip, or ipv6 twice.

    pool, length: every prefix of the fabric is of this length and in this network. own: the prefix
    of the switch, "" where nobody has a route to it.
    """

    name: str
    word: str
    pool: str
    length: int
    own: str
    peers: tuple[BgpPeer, ...]

    def policies(self) -> Iterator[tuple[str, tuple[str, ...]]]:
        """The policies for what neighbours announce, and the prefixes that each prefers."""
        yield from ((peer.policy, peer.preferred) for peer in self.peers if peer.preferred)
        yield f"fabric-{self.name}", ()


@dataclass(frozen=True, slots=True)
class BgpSpeaker:
    """What a switch says in BGP.

    number: its AS. longest: the most links that a path may have. bfd: whether BFD watches every
    session. numbered: whether links have addresses, and so a session in each family; else there
    is one for both. Of all switches: keepalive, hold, connect: seconds between keepalives, without
    any before the session ends, and between attempts to connect. interval: ms between packets of
    BFD; multiplier: how many of them are missed at a dead link.
    """

    number: int
    router_id: str
    longest: int
    bfd: bool
    numbered: bool
    families: tuple[BgpFamily, ...]
    keepalive: ClassVar[int] = 3
    hold: ClassVar[int] = 9
    connect: ClassVar[int] = 1
    interval: ClassVar[int] = 300
    multiplier: ClassVar[int] = 3

    def own(self, family: str) -> str:
        """The prefix of the switch in a family by its name; "" without any."""
        return next((each.own for each in self.families if each.name == family), "")


@dataclass(frozen=True, slots=True)
class ControlPlane:
    """All speakers of a build.

    hops: int8[S, S], links of the compiled paths. egress: int[S, S], their classes. numbers:
    int64[S], of their systems.
    """

    routed: RoutedFabric
    hops: NDArray[np.int8]
    egress: NDArray[np.integer]
    numbers: NDArray[np.int64]
    bfd: bool

    @classmethod
    def of(cls, routed: RoutedFabric, chosen: Chosen) -> ControlPlane | None:
        """The speakers of a build, None with static routes.

        Raises:
            InputError: compiled paths that are longer than need be, which BGP would not take, or
                AS numbers that are not for use.
        """
        if chosen[ROUTING] != "bgp":
            return None
        build = routed.build
        fib = Fib.of(build.tables, build.wiring.cables())
        order = build.tables.switches
        blocks = np.array_split(np.arange(order), -(-order // BLOCK_OF_DESTINATIONS))
        hops = np.concatenate([minimal_hops(fib, block) for block in blocks], axis=1)
        egress = np.concatenate([fib.egress(block) for block in blocks], axis=1)
        numbers = as_numbers(build.base, build.wiring.names)
        plane = cls(routed, hops, egress, numbers, chosen[BFD] == "on")
        counted = np.setdiff1d(numbers, list(build.base.get(OWN, {}).values()))
        if problems := [*_wrong_numbers(counted), *plane._longer_paths()]:
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
                    key="--set routing",
                    required="static: BGP takes the shortest path and the compiled one is longer",
                    given=f"bgp, and {w.names[vertex]} to {w.names[there]}",
                )
                for there in longer.tolist()
            ]
        return problems

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
            families=tuple(
                BgpFamily(
                    *FAMILIES[family],
                    pool=pools[family],
                    length=lengths[family],
                    own=texts[vertex] if topology.endpoints[vertex] else "",
                    peers=tuple(self._peers(vertex, family, numbered or {})),
                )
                for family, texts in enumerate(routed.prefixes)
            ),
        )

    def _peers(
        self, vertex: int, family: int, addresses: Mapping[int, tuple[str, ...]]
    ) -> list[BgpPeer]:
        w, classes = self.routed.build.wiring, self.routed.build.tables.classes
        far = w.far[vertex][w.far[vertex] >= 0]
        tied = np.flatnonzero((self.hops[far] == self.hops[vertex] - 1).sum(axis=0) > 1)
        port = classes.port[vertex][self.egress[vertex, tied]]
        texts, name = self.routed.prefixes[family], FAMILIES[family][0]
        peers = []
        for link, there in zip(self.routed.switch(vertex).links, far.tolist(), strict=True):
            preferred = tuple(texts[d] for d in tied[port == link.port].tolist())
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


def bgp_reader(speaker: Callable[[Path, bool], BgpSwitch], chosen: Chosen) -> BgpReader:
    """The reader of a target with eBGP, by what reads a folder."""
    return BgpReader(lambda folder: speaker(folder, chosen[BFD] == "on"))


def require_bgp(build: Build, target: str, chosen: Chosen) -> None:
    """BGP finds minimal routes and their aggregates, nothing else.

    Raises:
        InputError: the build asks for more, or an option for what is proved of compiled paths.
    """
    for name in ("srv6", LOSSLESS):
        if chosen.get(name, OFF) != OFF:
            raise InputError.of(
                key=f"{SET} {name}",
                required=f"{OFF} with {ROUTING}=bgp: it finds paths of its own after a failure",
                given=chosen[name],
            )
    Capabilities(frozenset({AGGREGATES})).require(build, f"{target} with routing=bgp")


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
