"""The BGP of every switch, as values that the templates of all systems print.

Every switch is an autonomous system of its own and announces its prefix to all neighbours. So the
length of an AS path is a number of links, and the shortest path is a minimal path. Where there are
several, the compiled one gets the better metric, which BGP compares after the length (RFC 4271,
section 9.1.2.2). A preferred path is always among the shortest, so preferences cannot make routes
oscillate, and after a failure the shortest paths that are left decide.

Some balances share packets from hosts over *alternates*, other ports than that of the compiled
path. Static routes do that, over *announced next hops*: every switch announces an address of its
own from a pool for them (`addressing.next_hops`). No interface has such an address, and no packet
goes to it: BGP resolves it to a port. When the link to a neighbour fails, BGP resolves the
neighbour's address by another neighbour; when the neighbour itself fails, the address disappears. A
packet that left for a neighbour then follows the shortest path that is left, which has no loop. No
route that discards may cover the pool: it would resolve the next hop, and a kernel takes no
next-hop group with a member that discards.

`P2pFabric` and the targets frr and bird make a `ControlPlane` of a build, and give `BgpSpeaker`s to
their templates.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from ipaddress import IPv4Network, IPv6Network, ip_network
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from compilers.forwarding.walks import minimal_hops
from compilers.readers.bgp.bgp_reader import BgpReader
from compilers.readers.bgp.bgp_speaker import BgpSwitch, SpeakerOptions
from compilers.readers.devices.held_routes import Choices
from compilers.spec.features import AGGREGATES, INGRESS, MULTIPATH, TRANSIT
from compilers.spec.node_systems import CONTROL_KEYS
from compilers.tables.build import Build
from compilers.tables.fib import Fib
from compilers.targets.addition import Addition
from compilers.targets.capabilities import Capabilities
from compilers.targets.options import OFF, SET, Chosen
from compilers.targets.routed.bgp.bgp_options import (
    BFD,
    NEXT_HOP_POOLS,
    ROUTING,
    WCMP,
    has_gtsm,
    has_wcmp,
)
from compilers.targets.routed.bgp.speaker_variables import BgpFamily, BgpPeer, BgpSpeaker
from compilers.targets.routed.link_addresses import LINKS, UNNUMBERED, LinkPlan
from compilers.targets.routed.router_problems import pool_problems
from compilers.targets.routed.static_routes import BuildRouters
from compilers.wiring.as_numbers import NODE_ASNS, as_numbers
from inventory.asn_range import LAST_AS, RESERVED_AS
from inventory.problems import InputError, Problem, few

BLOCK_OF_DESTINATIONS = 256
"""How many destinations `ControlPlane.of` counts the hops to at once, which bounds memory."""
FAMILIES = (("ipv4", "ip"), ("ipv6", "ipv6"))
"""For IPv4 and IPv6, the families 0 and 1: the name, and the first word of commands about it."""
IPV6_LENGTH = 64
"""The length of the IPv6 prefixes of switches."""


@dataclass(frozen=True, slots=True)
class ControlPlane:
    """The BGP speakers of a build. S is the number of switches."""

    routers: BuildRouters
    """The routers: their ports, prefixes and tables."""
    hops: NDArray[np.int8]
    """int8[S, S]: the number of links of each compiled path."""
    egress: NDArray[np.integer]
    """int[S, S]: the egress class (the set of next hops) at each switch for each destination."""
    numbers: NDArray[np.int64]
    """int64[S]: the AS number of each switch."""
    bfd: bool
    """Whether BFD watches every session."""
    gtsm: bool = False
    """See `BgpSpeaker.gtsm`."""
    next_hop_pools: tuple[IPv4Network | IPv6Network, ...] = ()
    """The pools of announced next hops for IPv4 and IPv6; () where none are announced."""
    wcmp: bool = False
    """See `BgpSpeaker.wcmp`."""

    @classmethod
    def of(cls, routers: BuildRouters, chosen: Chosen) -> ControlPlane | None:
        """The speakers of a build; None with static routes.

        Raises:
            InputError: a compiled path is longer than the shortest one, which BGP would take, or AS
                numbers or pools are wrong.
        """
        if chosen.get(ROUTING) != "bgp":
            return None
        build = routers.build
        fib = Fib.of(build.tables, build.wiring.cables())
        switches = build.tables.switches
        block_count = -(-switches // BLOCK_OF_DESTINATIONS)  # rounded up
        blocks = np.array_split(np.arange(switches), block_count)
        numbers = as_numbers(build.base, build.wiring.names, build.allocations)
        plane = cls(
            routers=routers,
            hops=np.concatenate([minimal_hops(fib, block) for block in blocks], axis=1),
            egress=np.concatenate([fib.egress(block) for block in blocks], axis=1),
            numbers=numbers,
            bfd=chosen[BFD] == "on",
            gtsm=has_gtsm(chosen),
            next_hop_pools=announced_pools(build, chosen),
            wcmp=has_wcmp(chosen),
        )
        from_base = np.setdiff1d(numbers, list(build.base.get(NODE_ASNS, {}).values()))
        if problems := [
            *_as_number_problems(from_base),
            *plane._longer_path_problems(),
            *next_hop_problems(build, chosen),
        ]:
            raise InputError(few(problems))
        return plane

    def _longer_path_problems(self) -> list[Problem]:
        """The problems of compiled paths that are longer than a path over another neighbour."""
        wiring = self.routers.build.wiring
        problems = []
        for vertex in np.flatnonzero(self.routers.build.topology.present).tolist():
            neighbours = wiring.far[vertex][wiring.far[vertex] >= 0]
            shortest = self.hops[neighbours].min(axis=0) + 1
            longer = np.flatnonzero(self.hops[vertex] > shortest)
            problems += [
                Problem(
                    key=CONTROL_KEYS[ROUTING],
                    required="static: BGP takes the shortest path and the compiled one is longer",
                    given=f"ebgp, and {wiring.names[vertex]} to {wiring.names[destination]}",
                )
                for destination in longer.tolist()
            ]
        return problems

    def next_hops(self, vertex: int, family: int) -> dict[int, tuple[str, str]]:
        """For each port the next hop that the neighbour announces: its address, and no interface.

        The interface is "", as BGP resolves the address to a port.
        """
        pool, ends = self.next_hop_pools[family], self.routers.build.wiring.ends(vertex)
        return {port: (str(pool[far + 1]), "") for port, far, _ in ends}

    def next_hop(self, prefix: int, family: int) -> tuple[str, str] | None:
        """The next hop that the switch of a prefix announces; None: the prefix is an aggregate.

        The first S prefixes are those of the switches; aggregates have the numbers behind them.
        """
        is_aggregate = prefix >= len(self.numbers)
        return None if is_aggregate else (str(self.next_hop_pools[family][prefix + 1]), "")

    def with_weights(
        self, vertex: int, family: int, table: Mapping[str, Choices]
    ) -> dict[str, Choices]:
        """A table with the weights of BGP: with `wcmp`, how many shortest paths each next hop has.

        Args:
            vertex: of the switch.
            family: 0 for IPv4, 1 for IPv6.
            table: its routes by prefix.
        """
        if not self.wcmp:
            return dict(table)
        paths_behind = self._paths_behind(vertex)
        number_of = {prefix: number for number, prefix in enumerate(self.routers.prefixes[family])}
        with_weights: dict[str, Choices] = {}
        for prefix, choices in table.items():
            destination = number_of[prefix]
            with_weights[prefix] = tuple(
                tuple(
                    (gateway, port, paths_behind[port][destination])
                    for gateway, port, _ in next_hops
                )
                for next_hops in choices
            )
        return with_weights

    def _paths_behind(self, vertex: int) -> dict[str, list[int]]:
        """By port of a switch, how many shortest paths its neighbour has to each destination."""
        wiring = self.routers.build.wiring
        paths_behind = {}
        for port, neighbour, _ in wiring.ends(vertex):
            next_switches = wiring.far[neighbour][wiring.far[neighbour] >= 0]
            # bool[n, S]: whether each of the n next switches is nearer to each destination.
            is_nearer = self.hops[next_switches] == self.hops[neighbour] - 1
            paths_behind[wiring.port_name(vertex, port)] = is_nearer.sum(axis=0).clip(1).tolist()
        return paths_behind

    def at(
        self,
        vertex: int,
        far_ends: Mapping[int, tuple[str, ...]] | None = None,
        descriptions: Mapping[int, str] | None = None,
    ) -> BgpSpeaker:
        """The speaker of a switch.

        Args:
            vertex: of the switch.
            far_ends: the IPv4 and IPv6 address at the other end of each port's link; None: links
                have no addresses.
            descriptions: the description of each port; None: the node and the port at its far end.
        """
        routers = self.routers
        links = routers.switch(vertex).links
        far_ports = {link.port: f"{link.far} {link.far_interface}" for link in links}
        every_hop = routers.build.forwarding.every_hop
        return BgpSpeaker(
            number=int(self.numbers[vertex]),
            router_id=routers.gateways[vertex],
            # Room for detours after failures, and for paths over a drained switch (`drained`).
            longest=2 * routers.build.topology.diameter + 2,
            bfd=self.bfd,
            gtsm=self.gtsm,
            numbered=far_ends is not None,
            paths=len(links) if every_hop else 1,
            wcmp=self.wcmp,
            families=tuple(
                self._family(vertex, family, far_ends or {}, descriptions or far_ports)
                for family in range(len(routers.prefixes))
            ),
        )

    def _family(
        self,
        vertex: int,
        family: int,
        far_ends: Mapping[int, tuple[str, ...]],
        descriptions: Mapping[int, str],
    ) -> BgpFamily:
        """The BGP of a switch in an address family, 0 for IPv4; see `at` for the arguments."""
        build = self.routers.build
        name, word = FAMILIES[family]
        prefix = self.routers.prefixes[family][vertex]
        return BgpFamily(
            name=name,
            word=word,
            pool=self.routers.pools()[family],
            length=IPV6_LENGTH if name == "ipv6" else build.addressing.ipv4_length,
            own=prefix if build.topology.endpoints[vertex] else "",
            peers=tuple(self._peers(vertex, family, far_ends, descriptions)),
            via=self._announced_next_hop(vertex, family),
            via_pool=str(self.next_hop_pools[family]) if self.next_hop_pools else "",
        )

    def _announced_next_hop(self, vertex: int, family: int) -> str:
        """The address that a switch announces as a next hop, with its length; "" for none."""
        if not self.next_hop_pools:
            return ""
        pool = self.next_hop_pools[family]
        return f"{pool[vertex + 1]}/{pool.max_prefixlen}"

    def _peers(
        self,
        vertex: int,
        family: int,
        far_ends: Mapping[int, tuple[str, ...]],
        descriptions: Mapping[int, str],
    ) -> Iterator[BgpPeer]:
        """The neighbours of a switch in an address family; the arguments are those of `at`."""
        wiring, classes = self.routers.build.wiring, self.routers.build.tables.classes
        neighbours = wiring.far[vertex][wiring.far[vertex] >= 0]
        # int[S]: over how many neighbours a shortest path to each destination leads. Where several
        # do, the compiled path is preferred, unless every hop shares packets over all of them.
        neighbours_on_path = (self.hops[neighbours] == self.hops[vertex] - 1).sum(axis=0)
        every_hop = self.routers.build.forwarding.every_hop
        tied = np.flatnonzero((neighbours_on_path > 1) & (not every_hop))
        compiled_port = classes.port[vertex][self.egress[vertex, tied]]
        texts, name = self.routers.prefixes[family], FAMILIES[family][0]
        links = self.routers.switch(vertex).links
        for link, neighbour in zip(links, neighbours.tolist(), strict=True):
            destinations = tied[compiled_port == link.port].tolist()
            preferred = [texts[destination] for destination in destinations]
            if self.next_hop_pools:
                preferred += [
                    self._announced_next_hop(destination, family) for destination in destinations
                ]
            yield BgpPeer(
                interface=link.interface,
                number=int(self.numbers[neighbour]),
                address=far_ends[link.port][family] if far_ends else "",
                description=descriptions[link.port],
                preferred=tuple(preferred),
                policy=f"via-{link.port}-{name}" if preferred else f"fabric-{name}",
            )


def announced_pools(build: Build, chosen: Chosen) -> tuple[IPv4Network | IPv6Network, ...]:
    """The pools of next hops that eBGP announces for alternates; () where it announces none."""
    has_alternates = build.tables.classes.alternate.shape[2] > 0
    if not has_alternates or build.forwarding.every_hop:
        return ()
    if chosen.get(ROUTING) != "bgp" or NEXT_HOP_POOLS[0] not in chosen:
        return ()
    return tuple(ip_network(chosen[name]) for name in NEXT_HOP_POOLS)


def next_hop_problems(build: Build, chosen: Chosen) -> Iterator[Problem]:
    """Pools of announced next hops that are too small, or have addresses of hosts or of links."""
    announced = dict(zip(NEXT_HOP_POOLS, announced_pools(build, chosen), strict=False))
    host_pools = build.addressing.ipv4, build.addressing.ipv6
    host_pool_of = dict(zip(NEXT_HOP_POOLS, host_pools, strict=True))
    pools = {name: (pool, host_pool_of[name]) for name, pool in announced.items()}
    yield from pool_problems(build, pools, build.tables.switches + 1, "next hops")
    if not announced or LINKS not in chosen:
        return
    plan = LinkPlan.of(build, chosen)
    link_pool_of: dict[str, IPv4Network | IPv6Network] = dict(
        zip(NEXT_HOP_POOLS, (plan.pool4, plan.pool6), strict=True)
    )
    for name, pool in announced.items() if plan.numbered else ():
        links = link_pool_of[name]
        required = "addresses other than those of links"
        # Links take the first addresses of their pool; next hops may lie behind these.
        if pool[0] in links and int(pool[0]) - int(links[0]) < plan.address_count:
            yield Problem(required, f"{pool}", key=CONTROL_KEYS[name])
        elif links[0] in pool:
            yield Problem(required, f"{pool}, and links in {links}", key=CONTROL_KEYS[name])


def bgp_reader(speaker: Callable[[Path, SpeakerOptions], BgpSwitch], chosen: Chosen) -> BgpReader:
    """The reader of a target with eBGP.

    Args:
        speaker: reads the folder of a switch, given what the options say about its sessions.
        chosen: the value of every option.
    """
    options = SpeakerOptions(
        bfd=chosen[BFD] == "on",
        gtsm=has_gtsm(chosen),
        numbered=chosen.get(UNNUMBERED, OFF) == OFF,
        wcmp=has_wcmp(chosen),
    )
    return BgpReader(lambda folder: speaker(folder, options))


def require_no_additions(requested: Sequence[Addition[Any, Any]], chosen: Chosen) -> None:
    """Refuse additions with eBGP: what they print was proved for compiled paths only.

    Raises:
        InputError: the options ask for an addition.
    """
    if requested:
        option = requested[0].option
        raise InputError.of(
            key=f"{SET} {option}",
            required=f"{OFF} with eBGP, which finds paths of its own after a failure",
            given=chosen[option],
        )


def require_bgp(build: Build, target: str, chosen: Chosen, why: str = "") -> None:
    """Check that a target with BGP can do what the build asks for.

    BGP has minimal routes and aggregates, and static routes beside it share packets from hosts.

    Args:
        build: what is to be emitted.
        target: its name.
        chosen: the value of every option.
        why: why BGP cannot resolve next hops of its static routes, "" where it can.

    Raises:
        InputError: the build asks for more.
    """
    if has_wcmp(chosen) and not build.forwarding.every_hop:
        required = "false without `transit: ecmp`, where a prefix has one path"
        raise InputError.of(required, "true", key=CONTROL_KEYS[WCMP])
    # Where every hop shares packets, those from hosts need no static routes.
    cannot_share = why and not build.forwarding.every_hop
    sharing = frozenset[str]() if cannot_share else frozenset({INGRESS, MULTIPATH})
    title = f"{target} with eBGP"
    if why and build.tables.classes.alternate.shape[2]:
        title += f" ({why})"
    Capabilities(sharing | {AGGREGATES, TRANSIT}).require(build, title)


def _as_number_problems(numbers: NDArray[np.int64]) -> list[Problem]:
    """The problem of AS numbers that no switch may have; [] if all are right.

    Args:
        numbers: int64[n], the numbers that follow from `base.asn`, in order. The numbers that the
            inventory gives to nodes are checked where it is read.
    """
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
