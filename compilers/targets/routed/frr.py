"""The frr target: an integrated frr.conf, static routes or eBGP (docs/targets/frr.md).

Static routes do all that target linux does: the order of ports as routes of rising distance, and
tables of their own for what depends on where a packet came in (`linux_tables`).
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from types import MappingProxyType

import numpy as np

from compilers.readers.bgp import bgp_files
from compilers.readers.difference_list import DifferenceList
from compilers.readers.emitted_check import Reader
from compilers.readers.routers.frr_reader import read_frr
from compilers.spec.features import (
    AGGREGATES,
    BOUNCES,
    INGRESS,
    MARKS,
    REPAIR,
    SHARES,
    TRANSIT,
    WEIGHTS,
)
from compilers.tables.build import Build
from compilers.targets.capabilities import Capabilities
from compilers.targets.options import Chosen, Option
from compilers.targets.routed.bgp.control_plane import (
    BFD,
    ROUTING,
    SHARING_OPTIONS,
    BgpSpeaker,
    ControlPlane,
    bgp_options,
    bgp_reader,
    failed_shares,
    require_bgp,
)
from compilers.targets.routed.interfaces import LINUX
from compilers.targets.routed.kernel_marks import (
    KernelMarks,
    hash_seed,
    kernel_marks,
    marked_address,
    require_devices,
)
from compilers.targets.routed.linux_tables import (
    ENTER,
    MAIN,
    PROTOCOL,
    LookupRule,
    discarding,
    enters,
    in_order,
    kernel_tables,
    require_weights,
    rules,
)
from compilers.targets.routed.route_rows import PrefixTexts, RouteRows, Way
from compilers.targets.routed.static_routes import IngressShare, Numbers, RoutedFabric, StaticSwitch
from compilers.targets.target import NEEDS_ALL, Target
from inventory.problems import InputError
from inventory.route_tables.held_routes import (
    ANY,
    DISCARD,
    IPV4_RULES,
    IPV6_RULES,
    Choices,
    RouteTables,
    hops_of,
)
from inventory.route_tables.held_routes import MAIN as MAIN_TABLE

STATIC = frozenset({WEIGHTS, INGRESS, REPAIR, BOUNCES, AGGREGATES, MARKS, TRANSIT})
SHARING = Capabilities(STATIC | {SHARES})
"""Those of FRR 10.7."""
UNREACHABLE = 254
"""The distance of the route that refuses addresses without another: the last that is usable."""


@dataclass(frozen=True, slots=True)
class FrrVariables:
    """The variables of a switch's templates (docs/targets/frr.md lists them)."""

    switch: StaticSwitch
    seed: int
    marks: KernelMarks | None
    ipv4_onward: RouteRows
    ipv6_onward: RouteRows
    identity: str
    unreachable: int
    ipv4_routes: RouteRows
    ipv6_routes: RouteRows
    ipv4_discards: RouteRows
    ipv6_discards: RouteRows
    ipv4_pool: str
    ipv6_pool: str
    rules: list[LookupRule]
    protocol: int
    bgp: BgpSpeaker | None


class Frr(Target):
    """FRR on a Linux kernel: static routes, or eBGP."""

    name = "frr"
    summary = "frr.conf, and batches, sysctl.conf and a unit for what FRR leaves to others"
    files = dict.fromkeys(
        ("frr.conf", "links.batch", "load.sh", "polarfab.service", "rules.batch", "sysctl.conf"),
        FrrVariables,
    )
    capabilities = Capabilities(STATIC)
    interfaces = LINUX
    options = MappingProxyType(
        {
            "version": Option.choice("The oldest FRR that is to take it.", "8.4", "10.7"),
            **bgp_options("off", "on"),
            **SHARING_OPTIONS,
        }
    )

    def require(self, build: Build, chosen: Chosen) -> None:
        """See `Target.require`."""
        bgp, old = chosen[ROUTING] == "bgp", chosen["version"] == "8.4"
        if bgp:
            require_bgp(build, self.name, chosen)
        elif old:
            self.capabilities.require(build, "frr with version=8.4")
        else:
            SHARING.require(build, self.name)
        require_weights(build, self.name)
        require_devices(build, self.name)
        if old and not bgp and chosen["bfd"] == "on":
            raise InputError.of(
                key="--set bfd",
                required="off: static routes of FRR 8.4 do not follow BFD",
                given="on",
                todo="add --set version=10.7 or --set routing=bgp",
            )

    def reader(self, chosen: Chosen) -> Reader:
        """See `Target.reader`."""
        if chosen[ROUTING] == "bgp":
            return bgp_reader(bgp_files.frr, chosen)
        return partial(read_frr, bfd=chosen[BFD] == "on")

    def more_differences(
        self,
        build: Build,  # noqa: ARG002
        chosen: Chosen,
        folder: Path,
        only: Collection[int] | None,
    ) -> DifferenceList | None:
        """See `Target.more_differences`: shares that BGP repairs, under failures."""
        return failed_shares(self.reader(chosen), folder, only)

    def unreadable(self, chosen: Chosen, *, part: bool) -> str:
        """See `Target.unreadable`: what BGP finds is decided by all switches."""
        return NEEDS_ALL if part and chosen[ROUTING] == "bgp" else ""

    def routes_held(self, build: Build, chosen: Chosen) -> Callable[[int], RouteTables]:
        """See `Target.routes_held`."""
        routed = RoutedFabric.of(build)
        if chosen[ROUTING] == "bgp":
            return partial(_bgp_routes, routed, ControlPlane.of(routed, chosen))
        gateway = {4: _gateway(chosen, 4), 6: _gateway(chosen, 6)}
        return partial(kernel_tables, routed, gateway=gateway, batches=False)

    def variables(self, build: Build, chosen: Chosen) -> Callable[[int], FrrVariables]:
        """See `Target.variables`."""
        routed = RoutedFabric.of(build)
        return partial(_variables, routed, chosen, ControlPlane.of(routed, chosen))


def _variables(
    routed: RoutedFabric, chosen: Chosen, plane: ControlPlane | None, vertex: int
) -> FrrVariables:
    switch = routed.switch(vertex)
    if plane:  # a fixed link-local address beside an automatic one is fatal to next hops
        switch = replace(switch, link_local="")
    orders = {} if plane else dict(in_order(routed, vertex))
    shares = [] if plane and not plane.via else list(routed.shares(vertex))
    apart = enters(routed, switch)
    if not apart and not routed.build.every_hop:
        shares = []
    marks = None if plane else kernel_marks(routed, vertex, _gateway(chosen, 4) == "ipv4")
    families = range(len(routed.named))
    if plane:
        ipv4, *six = (_entering(routed, plane, vertex, f, shares) for f in families)
    else:
        ipv4, *six = (_routes(routed, vertex, f, orders, shares, chosen) for f in families)
    none = RouteRows.of(routed.both, ())
    ipv6 = six[0] if six else none
    named = [RouteRows.of(names, _discards(routed, vertex, orders)) for names in routed.named]
    pools = routed.pools()
    onward = partial(_onward, switch, marks, chosen)
    return FrrVariables(
        switch=switch,
        seed=0 if plane else hash_seed(routed.build, vertex),
        marks=marks,
        ipv4_onward=onward(pools[0], 4),
        ipv6_onward=onward(pools[-1], 6),
        identity=routed.build.identity,
        unreachable=UNREACHABLE,
        ipv4_routes=ipv4,
        ipv6_routes=ipv6,
        ipv4_discards=named[0],
        ipv6_discards=[*named, none][1],
        ipv4_pool=pools[0],
        ipv6_pool=pools[1] if switch.ipv6 else "",
        rules=rules(switch, {*orders, *([ENTER] if shares and apart else [])}, marks),
        protocol=PROTOCOL,
        bgp=plane.at(vertex) if plane else None,
    )


def _gateway(chosen: Chosen, family: int) -> str:
    """The field of a link with its gateway: FRR 10.4 takes an IPv6 next hop for an IPv4 route."""
    return "ipv4" if family == 4 and chosen["version"] == "8.4" else "ipv6"


def _ways(
    switch: StaticSwitch, chosen: Chosen, family: int
) -> tuple[dict[int, tuple[str, str]], str]:
    """The gateway and the interface of every port, and what stands at the end of each line."""
    gateway = _gateway(chosen, family)
    ways = {link.port: (getattr(link, gateway), link.interface) for link in switch.links}
    return ways, " onlink" * (gateway == "ipv4") + " bfd" * (chosen["bfd"] == "on")


def _onward(
    switch: StaticSwitch, marks: KernelMarks | None, chosen: Chosen, pool: str, family: int
) -> RouteRows:
    """The routes of a family that spread marked packets, all for the pool."""
    ways, last = _ways(switch, chosen, family)
    said: list[Way] = [
        (*ways[port], f" table {each.table}{last}")
        for each in (marks.ports if marks else ())
        for port in each.onward
    ]
    every = np.arange(len(said))
    return RouteRows(PrefixTexts([pool]), said, np.zeros_like(every), every)


def _entering(
    routed: RoutedFabric,
    plane: ControlPlane,
    vertex: int,
    family: int,
    shares: Sequence[IngressShare],
) -> RouteRows:
    """The static routes of a family whose next hops BGP finds, a line each way of each share."""
    prefix, egress = routed.routes(vertex)
    ways = plane.next_hops(vertex, family) if plane.via else {}
    parts = []
    for share in shares:
        members: list[Way] = [(ways[port][0], f"table {ENTER}", "") for port in share.port]
        these = prefix[egress == share.egress]
        every = np.tile(np.arange(len(members)), len(these))
        parts.append((np.repeat(these, len(members)), members, every))
    return RouteRows.of(routed.named[family], parts)


def _bgp_routes(routed: RoutedFabric, plane: ControlPlane | None, vertex: int) -> RouteTables:
    """The paths that BGP chooses; it learns the gateways from the sessions."""
    port, switch = routed.build.tables.classes.port[vertex].tolist(), routed.switch(vertex)
    hop = {link.port: (ANY, link.interface, 1) for link in switch.links}
    routes: dict[str, Choices] = {}
    entering: dict[str, Choices] = {}
    prefix, egress = (column.tolist() for column in routed.routes(vertex))
    shares = list(routed.shares(vertex)) if plane and plane.via and switch.hosts else []
    shared = {share.egress: hops_of(hop[p] for p in share.port) for share in shares}
    for texts in routed.prefixes:
        rows = [(texts[p], k) for p, k in zip(prefix, egress, strict=True)]
        routes |= {text: ((hop[port[k]],),) for text, k in rows}
        entering |= {text: (shared[k],) for text, k in rows if k in shared}
    tables = {MAIN_TABLE: routes | dict.fromkeys(routed.pools(), (DISCARD,))}
    if not shares:
        return tables
    led: dict[str, Choices] = {f"iif {switch.hosts}": (((f"table {ENTER}", "", 1),),)}
    return tables | {str(ENTER): entering, IPV4_RULES: led, IPV6_RULES: led}


def _routes(
    routed: RoutedFabric,
    vertex: int,
    family: int,
    orders: Mapping[int, Numbers],
    shares: Sequence[IngressShare],
    chosen: Chosen,
) -> RouteRows:
    """The static routes of a family, table by table, then the shares of classes.

    Each has a gateway, an interface, and what else belongs to the line.
    """
    return RouteRows.of(
        routed.named[family], _parts(routed, vertex, family, orders, shares, chosen)
    )


def _parts(
    routed: RoutedFabric,
    vertex: int,
    family: int,
    orders: Mapping[int, Numbers],
    shares: Sequence[IngressShare],
    chosen: Chosen,
) -> Iterator[tuple[Numbers, list[Way], Numbers]]:
    ways, last = _ways(routed.switch(vertex), chosen, 6 if family else 4)
    w, gateway = routed.build.wiring, _gateway(chosen, 6 if family else 4)
    far = dict(zip(w.port[vertex].tolist(), w.far[vertex].tolist(), strict=True))
    prefix, egress = routed.routes(vertex)
    every_hop = routed.build.every_hop
    for table, by_class in orders.items():
        if table == MAIN and every_hop:  # their ways stand below
            by_class = by_class.copy()
            by_class[[share.egress for share in shares], 0] = 0
        where = f" table {table}" * (table != MAIN)
        words = [f" {m}" * (m > 1) + where + last for m in range(1, by_class.shape[1] + 1)]
        said: list[Way] = [(*ways[port], word) for word in words for port in ways]
        number = np.zeros(max(ways, default=0) + 1, np.int64)
        number[list(ways)] = np.arange(len(ways))
        port = by_class[egress]
        row, place = np.nonzero(port > 0)
        yield prefix[row], said, place * len(ways) + number[port[row, place]]
    for share in shares:
        equal = len(set(share.weight)) == 1
        members: list[Way] = [
            (
                marked_address(far[port], 4 if gateway == "ipv4" else 6) if mark else ways[port][0],
                ways[port][1],
                f" table {ENTER}" * (not every_hop) + f" weight {weight}" * (not equal) + last,
            )
            for port, weight, mark in zip(share.port, share.weight, share.marks, strict=True)
        ]
        these = prefix[egress == share.egress]
        every = np.tile(np.arange(len(members)), len(these))
        yield np.repeat(these, len(members)), members, every


def _discards(
    routed: RoutedFabric, vertex: int, orders: Mapping[int, Numbers]
) -> Iterator[tuple[Numbers, list[Way], Numbers]]:
    """Tables and prefixes whose packets are dropped where no port is up."""
    prefix, egress = routed.routes(vertex)
    for table, classes in discarding(orders):
        these = prefix[np.isin(egress, classes)]
        yield these, [(table,)], np.zeros_like(these)
