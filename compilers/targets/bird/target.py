"""The bird target: BIRD 2 on a Linux kernel, static routes or eBGP (docs/targets/bird.md).

A switch has one link-local address on all its links, which have no other addresses. So a next hop
is the neighbour's link-local address and a port, for IPv4 as well (RFC 8950), and one session of
BGP is for both families. Beside other systems with eBGP, links have addresses, and each family has
sessions of its own. BFD watches every link.

`polarfab render` takes the variables of the templates from the class `Bird` here. An *egress class*
is the set of ports that lead to a prefix (`routed.static_routes`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from types import MappingProxyType

import numpy as np

from compilers.readers.devices.held_routes import DISCARD, MAIN_TABLE, RouteTables, canonical_table
from compilers.readers.emitted_check import Reader
from compilers.spec.features import AGGREGATES, INGRESS, MULTIPATH, TRANSIT
from compilers.tables.build import Build
from compilers.targets.bird.reader import read_bird, read_bird_speaker
from compilers.targets.capabilities import Capabilities
from compilers.targets.devices.tool_settings import AnsibleConnection
from compilers.targets.linux import neighbours
from compilers.targets.options import Chosen
from compilers.targets.routed.bgp.bgp_checks import bgp_reader, require_bgp, require_no_gtsm
from compilers.targets.routed.bgp.bgp_options import BFD, ROUTING, bgp_agreements
from compilers.targets.routed.bgp.control_plane import FAMILIES, ControlPlane
from compilers.targets.routed.bgp.speaker_variables import BgpSpeaker
from compilers.targets.routed.kernel_marks import IPV4, IPV6, KernelMarks, hash_seed
from compilers.targets.routed.link_addresses import NUMBERED_AGREEMENTS, LinkPlan
from compilers.targets.routed.linux_ports import LINUX
from compilers.targets.routed.linux_tables import (
    KERNEL_MAIN,
    kernel_tables,
    orders_by_table,
    require_weights,
)
from compilers.targets.routed.route_rows import RoutePart, RouteRows, RouteTail
from compilers.targets.routed.router_problems import link_problems
from compilers.targets.routed.static_routes import (
    ALL_NEXT_HOPS,
    FIXED_LINK_LOCAL,
    IPV4_FAMILY,
    BuildRouters,
    StaticSwitch,
)
from compilers.targets.target import Target
from inventory.problems import Problem

ONE_TABLE = "its static routes have one table"
"""Why packets from hosts cannot have other routes than those in transit, for messages."""


@dataclass(frozen=True, slots=True)
class BirdFamily:
    """The static routes of a switch in one address family."""

    name: str
    """ipv4 or ipv6."""
    pool: str
    """The smallest network that holds every block of the fabric."""
    routes: RouteRows
    """The prefix of each route, and all of its next hops as BIRD writes them."""


@dataclass(frozen=True, slots=True)
class BirdVariables:
    """The variables of a switch's templates."""

    switch: StaticSwitch
    """Names and addresses."""
    identity: str
    """The identity of the build."""
    seed: int
    """The seed of the kernel's hash; 0 if the kernel may choose one."""
    marks: KernelMarks | None
    """Always None, as bird marks no packets. Target linux, which does, has the same templates."""
    bfd: bool
    """Whether BFD watches every link."""
    interval: int
    """Milliseconds between packets of BFD."""
    multiplier: int
    """How many of these packets have to be missed in a row for a link to count as dead."""
    families: list[BirdFamily]
    """The static routes, by address family."""
    bgp: BgpSpeaker | None
    """The BGP of the switch; None with static routes."""


class Bird(Target):
    """BIRD on a Linux kernel: static routes, or eBGP."""

    name = "bird"
    summary = "bird.conf for BIRD 2, and batches, sysctl.conf and a unit for the kernel below it"
    files = dict.fromkeys(
        (
            "bird.conf",
            "addresses.batch",
            "links.batch",
            "load.sh",
            "polarfab.service",
            "sysctl.conf",
        ),
        BirdVariables,
    )
    capabilities = Capabilities(
        frozenset({AGGREGATES, TRANSIT, MULTIPATH}), why={INGRESS: ONE_TABLE}
    )
    interfaces = LINUX
    unnumbered = MappingProxyType({"static": FIXED_LINK_LOCAL, "bgp": FIXED_LINK_LOCAL})
    only_unnumbered = frozenset({"static"})
    description = "{node}:{port}"
    neighbours = neighbours.FORM
    ansible = AnsibleConnection("ssh", root=True, elsewhere=("bird.conf",))
    agreements = MappingProxyType({**bgp_agreements("on", "off"), **NUMBERED_AGREEMENTS})

    def require(self, build: Build, chosen: Chosen) -> None:
        """See `Target.require`."""
        if chosen[ROUTING] == "bgp":
            require_bgp(build, self.name, chosen, ONE_TABLE)
        else:
            self.capabilities.require(build, self.name)
            require_no_gtsm(build)
        require_weights(build, self.name)

    def pool_problems(self, build: Build, chosen: Chosen) -> Iterator[Problem]:
        """See `Target.pool_problems`."""
        yield from link_problems(LinkPlan.of(build, chosen))

    def reader(self, chosen: Chosen) -> Reader:
        """See `Target.reader`."""
        if chosen[ROUTING] == "bgp":
            return bgp_reader(read_bird_speaker, chosen)
        return partial(read_bird, bfd=chosen[BFD] == "on")

    def routes_held(self, build: Build, chosen: Chosen) -> Callable[[int], RouteTables]:
        """See `Target.routes_held`."""
        routers = BuildRouters.of(build, addresses=LinkPlan.of(build, chosen))
        if chosen[ROUTING] == "bgp":
            return partial(_bgp_routes, routers)
        return partial(
            kernel_tables, routers, gateway_fields={IPV4: "ipv6", IPV6: "ipv6"}, by_batch=False
        )

    def variables(self, build: Build, chosen: Chosen) -> Callable[[int], BirdVariables]:
        """See `Target.variables`."""
        routers = BuildRouters.of(build, addresses=LinkPlan.of(build, chosen))
        return partial(_variables, routers, chosen, ControlPlane.of(routers, chosen))


def _variables(
    routers: BuildRouters, chosen: Chosen, control_plane: ControlPlane | None, vertex: int
) -> BirdVariables:
    """The variables of a switch's templates."""
    bfd = chosen[BFD] == "on"
    # The columns of routes are the same in both families, whose prefixes have the same numbers.
    parts = [] if control_plane else [_static_routes(routers, vertex, bfd)]
    families = [
        BirdFamily(name=FAMILIES[family].name, pool=pool, routes=RouteRows.of(prefix_texts, parts))
        for family, (pool, prefix_texts) in enumerate(
            zip(routers.pools(), routers.prefix_texts, strict=True)
        )
    ]
    return BirdVariables(
        switch=routers.switch(vertex),
        identity=routers.build.identity,
        seed=hash_seed(routers.build, vertex),
        marks=None,
        bfd=bfd,
        interval=BgpSpeaker.interval,
        multiplier=BgpSpeaker.multiplier,
        families=families,
        bgp=control_plane.at(vertex, routers.far_ends(vertex)) if control_plane else None,
    )


def _static_routes(routers: BuildRouters, vertex: int, bfd: bool) -> RoutePart:
    """The static routes of a switch, in either address family.

    Each route has all next hops of its egress class: its one port, or its multipath group.

    Args:
        routers: the routers of the build.
        vertex: of the switch.
        bfd: whether BFD watches every next hop.
    """
    bfd_word = " bfd" if bfd else ""
    hops = routers.switch(vertex).hops("ipv6")
    next_hop_text = {
        port: f"via {address}%'{interface}'" for port, (address, interface) in hops.items()
    }
    group_of_class = {group.egress: group for group in routers.multipath_groups(vertex)}
    orders = orders_by_table(routers, vertex, repeat_members=False)[KERNEL_MAIN]
    # int64[C]: for each egress class a port, ALL_NEXT_HOPS for its multipath group, or 0 for none.
    first_choice = orders[:, 0]
    prefix, egress = routers.routes(vertex)  # int[n]: the prefix and the egress class of each route
    used_classes = np.unique(egress[first_choice[egress] != 0])
    # What follows the prefix in the routes of each used class: the text of its next hops.
    next_hop_texts: list[RouteTail] = []
    for egress_class in used_classes.tolist():
        choice = int(first_choice[egress_class])
        if choice == ALL_NEXT_HOPS:
            group = group_of_class[egress_class]
            members = [
                f"{next_hop_text[port]} weight {weight}{bfd_word}"
                for port, weight in zip(group.ports, group.weights, strict=True)
            ]
            next_hop_texts.append((" ".join(members),))
        else:
            next_hop_texts.append((f"{next_hop_text[choice]}{bfd_word}",))
    has_route = np.isin(egress, used_classes)
    # int64[m]: the index in `next_hop_texts` of each route, that of its class in `used_classes`.
    text_index = np.searchsorted(used_classes, egress[has_route])
    return RoutePart(prefix[has_route], next_hop_texts, text_index)


def _bgp_routes(routers: BuildRouters, vertex: int) -> RouteTables:
    """The routes that a switch with BGP has to hold: the paths that BGP chooses."""
    orders = orders_by_table(routers, vertex, repeat_members=False)[KERNEL_MAIN]
    # BGP uses the shortest paths only. The first column has them for each class: a port, or
    # ALL_NEXT_HOPS where there are several. The other columns are ports for repairs.
    shortest = orders[:, :1]
    switch = routers.switch(vertex)
    tables: RouteTables = {MAIN_TABLE: dict.fromkeys(routers.pools(), (DISCARD,))}
    for family in range(len(routers.prefixes)):
        is_ipv4 = family == IPV4_FAMILY
        # Links have IPv4 addresses only beside other systems. Otherwise next hops are IPv6.
        hops = switch.hops("ipv4" if is_ipv4 and routers.addresses else "ipv6")
        tables[MAIN_TABLE] |= canonical_table(routers.table(vertex, family, shortest, hops))
    return tables
