"""The BGP of every switch, as values that the templates of all systems print.

Every switch is an autonomous system of its own and announces its prefix to all neighbours. So the
length of an AS path is a number of links, and the shortest path is a minimal path. Where there are
several, the import policy gives the compiled one the lowest MED (multi-exit discriminator), which
BGP compares after the length (RFC 4271, section 9.1.2.2). The neighbours are of different
autonomous systems, so systems are configured to compare MEDs always. A preferred path is always
among the shortest, so MEDs cannot make routes oscillate, and after a failure the shortest paths
that are left decide.

Some balances share packets from hosts over *alternates*, other ports than that of the compiled
path. Static routes do that, over *announced next hops*: every switch announces an address of its
own from a pool for them (`addressing.next_hops`). No interface has such an address, and no packet
goes to it: BGP resolves it to a port. If the pool is 10.9.0.0/16, the switch of vertex 3 announces
10.9.0.4/32. At its neighbour a static route `10.0.0.24/29 via 10.9.0.4` leads to the port over
which BGP has the route to 10.9.0.4. When the link to a neighbour fails, BGP resolves the
neighbour's address by another neighbour; when the neighbour itself fails, the address disappears. A
packet that left for a neighbour then follows the shortest path that is left, which has no loop. No
route that discards may cover the pool: it would resolve the next hop, and a kernel takes no
next-hop group with a member that discards.

`P2pFabric` and the targets frr and bird make a `ControlPlane` of a build, and give `BgpSpeaker`s to
their templates.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from ipaddress import IPv4Network, IPv6Network
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from compilers.forwarding.walks import minimal_hops
from compilers.readers.devices.held_routes import Choices
from compilers.spec.node_systems import CONTROL_KEYS
from compilers.tables.fib import Fib
from compilers.targets.options import Chosen
from compilers.targets.routed.bgp.bgp_checks import (
    announced_pools,
    as_number_problems,
    next_hop_problems,
)
from compilers.targets.routed.bgp.bgp_options import BFD, ROUTING, has_gtsm, has_wcmp
from compilers.targets.routed.bgp.speaker_variables import BgpFamily, BgpPeer, BgpSpeaker
from compilers.targets.routed.static_routes import BuildRouters
from compilers.wiring.as_numbers import NODE_ASNS, as_numbers
from inventory.problems import InputError, Problem, few

BLOCK_OF_DESTINATIONS = 256
"""How many destinations `ControlPlane.of` counts the hops to at once, which bounds memory."""


class FamilyWords(NamedTuple):
    """How configurations call an address family."""

    name: str
    """Its name."""
    command_word: str
    """The first word of commands about it."""


FAMILIES = (FamilyWords("ipv4", "ip"), FamilyWords("ipv6", "ipv6"))
"""The words of each address family, by its number (`IPV4_FAMILY`, `IPV6_FAMILY`)."""
IPV6_LENGTH = 64
"""The length of the IPv6 prefixes of switches."""


@dataclass(frozen=True, slots=True)
class ControlPlane:
    """The BGP speakers of a build. S is the number of switches."""

    routers: BuildRouters
    """The routers: their ports, prefixes and tables."""
    hops: NDArray[np.int8]
    """int8[S, S]: the number of links of the compiled path from each switch to each other one."""
    egress: NDArray[np.integer]
    """int[S, S]: the egress class (the set of next hops) at each switch for each destination."""
    asn: NDArray[np.int64]
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
        fib = Fib.of(build.tables, build.wiring.far_by_port())
        switches = build.tables.switches
        block_count = -(-switches // BLOCK_OF_DESTINATIONS)  # rounded up
        blocks = np.array_split(np.arange(switches), block_count)
        asn = as_numbers(build.base, build.wiring.names, build.allocations)
        plane = cls(
            routers=routers,
            hops=np.concatenate([minimal_hops(fib, block) for block in blocks], axis=1),
            egress=np.concatenate([fib.egress(block) for block in blocks], axis=1),
            asn=asn,
            bfd=chosen[BFD] == "on",
            gtsm=has_gtsm(chosen),
            next_hop_pools=announced_pools(build, chosen),
            wcmp=has_wcmp(chosen),
        )
        # The inventory's own AS numbers of nodes are checked where it is read.
        asn_of_base = np.setdiff1d(asn, list(build.base.get(NODE_ASNS, {}).values()))
        if problems := [
            *as_number_problems(asn_of_base),
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

    def announced_hops(self, vertex: int, family: int) -> dict[int, tuple[str, str]]:
        """For each port of a switch the next hop that the neighbour announces.

        It is an address without an interface, "", as BGP resolves the address to a port.
        """
        ends = self.routers.build.wiring.links_of(vertex)
        return {port: (self._announced_address(far, family), "") for port, far, _ in ends}

    def announced_hop_to(self, prefix: int, family: int) -> tuple[str, str] | None:
        """The next hop that the switch of a prefix announces; None: the prefix is an aggregate.

        The first S prefixes are those of the switches; aggregates have the numbers behind them.
        """
        is_aggregate = prefix >= len(self.asn)
        return None if is_aggregate else (self._announced_address(prefix, family), "")

    def _announced_address(self, vertex: int, family: int) -> str:
        """The address that a switch announces as a next hop."""
        return str(self.next_hop_pools[family][vertex + 1])

    def with_path_weights(
        self, vertex: int, family: int, table: Mapping[str, Choices]
    ) -> dict[str, Choices]:
        """A table with the weights of BGP: with `wcmp`, how many shortest paths each next hop has.

        Args:
            vertex: the vertex of the switch.
            family: IPV4_FAMILY or IPV6_FAMILY.
            table: its routes by prefix.
        """
        if not self.wcmp:
            return dict(table)
        paths_behind = self._paths_behind(vertex)
        destination_of = {
            prefix: destination for destination, prefix in enumerate(self.routers.prefixes[family])
        }
        weighted_table: dict[str, Choices] = {}
        for prefix, choices in table.items():
            destination = destination_of[prefix]
            weighted_table[prefix] = tuple(
                tuple(
                    (gateway, port, paths_behind[port][destination])
                    for gateway, port, _ in next_hops
                )
                for next_hops in choices
            )
        return weighted_table

    def _paths_behind(self, vertex: int) -> dict[str, list[int]]:
        """By port of a switch, how many shortest paths its neighbour has to each destination."""
        wiring = self.routers.build.wiring
        paths_behind = {}
        for port, neighbour, _ in wiring.links_of(vertex):
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
            vertex: the vertex of the switch.
            far_ends: the IPv4 and IPv6 address at the other end of each port's link; None: links
                have no addresses.
            descriptions: the description of each port; None: the node and the port at its far end.
        """
        routers = self.routers
        links = routers.switch(vertex).links
        far_ports = {link.port: f"{link.far} {link.far_interface}" for link in links}
        every_hop = routers.build.forwarding.every_hop
        # Room for detours after failures, and for paths over a drained switch (`drained`).
        max_as_path = 2 * routers.build.topology.diameter + 2
        return BgpSpeaker(
            number=int(self.asn[vertex]),
            router_id=routers.gateways[vertex],
            longest=max_as_path,
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
        """The BGP of a switch in an address family; see `at` for the other arguments."""
        build = self.routers.build
        words = FAMILIES[family]
        prefix = self.routers.prefixes[family][vertex]
        announced_next_hop = self._announced_prefix(vertex, family)
        return BgpFamily(
            name=words.name,
            word=words.command_word,
            pool=self.routers.pools()[family],
            length=IPV6_LENGTH if words.name == "ipv6" else build.addressing.ipv4_length,
            own=prefix if build.topology.endpoints[vertex] else "",
            peers=tuple(self._peers(vertex, family, far_ends, descriptions)),
            via=announced_next_hop,
            via_pool=str(self.next_hop_pools[family]) if self.next_hop_pools else "",
        )

    def _announced_prefix(self, vertex: int, family: int) -> str:
        """The address that a switch announces as a next hop, with its length; "" for none."""
        if not self.next_hop_pools:
            return ""
        length = self.next_hop_pools[family].max_prefixlen
        return f"{self._announced_address(vertex, family)}/{length}"

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
        # int[S]: over how many neighbours a shortest path to each destination leads.
        neighbours_on_path = (self.hops[neighbours] == self.hops[vertex] - 1).sum(axis=0)
        # int[n]: the destinations for which the compiled path needs a better MED than others.
        if self.routers.build.forwarding.every_hop:
            tied = np.zeros(0, np.int64)  # packets are shared over all shortest paths
        else:
            tied = np.flatnonzero(neighbours_on_path > 1)
        compiled_port = classes.port[vertex][self.egress[vertex, tied]]
        prefixes, name = self.routers.prefixes[family], FAMILIES[family].name
        links = self.routers.switch(vertex).links
        for link, neighbour in zip(links, neighbours.tolist(), strict=True):
            destinations = tied[compiled_port == link.port].tolist()
            preferred = [prefixes[destination] for destination in destinations]
            if self.next_hop_pools:
                preferred += [
                    self._announced_prefix(destination, family) for destination in destinations
                ]
            yield BgpPeer(
                interface=link.interface,
                number=int(self.asn[neighbour]),
                address=far_ends[link.port][family] if far_ends else "",
                description=descriptions[link.port],
                preferred=tuple(preferred),
                policy=f"via-{link.port}-{name}" if preferred else f"fabric-{name}",
            )
