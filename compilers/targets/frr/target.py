"""The frr target: an integrated frr.conf, static routes or eBGP (docs/targets/frr.md).

Static routes do all that target linux does: the order of ports as routes of rising distance, and
tables of their own for what depends on where a packet came in (`linux_tables`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import partial
from types import MappingProxyType

import numpy as np

from compilers.readers.devices.held_routes import (
    ANY,
    DISCARD,
    IPV4_RULES,
    IPV6_RULES,
    Choices,
    RouteTables,
    comparable,
)
from compilers.readers.devices.held_routes import MAIN as MAIN_TABLE
from compilers.readers.emitted_check import Reader
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
from compilers.spec.node_systems import CONTROL_KEYS
from compilers.tables.build import Build
from compilers.targets.capabilities import Capabilities
from compilers.targets.devices.reached import AnsibleConnection, ContainerKind, RouteMapWords
from compilers.targets.frr import routing_tables
from compilers.targets.frr.device import FrrDevice
from compilers.targets.frr.reader import read_frr, read_frr_speaker
from compilers.targets.linux import neighbours
from compilers.targets.options import OFF, Chosen, Option
from compilers.targets.routed.bgp.control_plane import (
    BFD,
    INTERFACE_SESSIONS,
    ROUTING,
    SHARING_AGREEMENTS,
    WCMP,
    WCMP_AGREEMENT,
    BgpSpeaker,
    ControlPlane,
    bgp_agreements,
    bgp_reader,
    next_hop_problems,
    require_bgp,
    secures,
)
from compilers.targets.routed.bgp.tracked import Tracked, TrackedHops, tracked_problems
from compilers.targets.routed.kernel_marks import (
    KernelMarks,
    hash_seed,
    kernel_marks,
    require_devices,
)
from compilers.targets.routed.link_addresses import NUMBERED_AGREEMENTS, UNNUMBERED, LinkPlan
from compilers.targets.routed.linux_ports import LINUX
from compilers.targets.routed.linux_tables import (
    ENTER,
    MAIN,
    PROTOCOL,
    LookupRule,
    discards,
    in_order,
    kernel_tables,
    marked_hops,
    require_weights,
    rules,
)
from compilers.targets.routed.route_rows import PrefixTexts, RoutePart, RouteRows, RouteTail
from compilers.targets.routed.static_routes import (
    FIXED,
    SHARED,
    Numbers,
    PortHops,
    RoutedFabric,
    StaticSwitch,
    link_problems,
)
from compilers.targets.target import Target
from inventory.problems import InputError, Problem

STATIC = frozenset({WEIGHTS, INGRESS, REPAIR, BOUNCES, AGGREGATES, MARKS, TRANSIT})
"""What static routes of any FRR can do."""
SHARING = Capabilities(STATIC | {SHARES})
"""What static routes of FRR 10.7 can do, which have weights."""
CONTAINER_FOLDER = "/etc/polarfab"
"""The folder in a container for files that FRR does not read."""
LOADED_FILES = ("links.batch", "rules.batch", "sysctl.conf")
"""These files."""
UNREACHABLE = 254
"""The distance of the route that refuses other addresses of the fabric, the greatest usable one."""


@dataclass(frozen=True, slots=True)
class FrrVariables:
    """The variables of a switch's templates."""

    switch: StaticSwitch
    seed: int
    """The seed of the kernel's hash, 0 for any."""
    marks: KernelMarks | None
    """The configuration for marked packets; None where the balance marks none."""
    ipv4_onward: RouteRows
    ipv6_onward: RouteRows
    """The routes that spread marked packets, like `ipv4_routes`."""
    identity: str
    """The identity of the build."""
    unreachable: int
    ipv4_routes: RouteRows
    """Prefix, gateway, interface and the rest of the line. All lines at once are
    `ipv4_routes.lines("ip route {} {} {}{}")`."""
    ipv6_routes: RouteRows
    ipv4_discards: RouteRows
    ipv6_discards: RouteRows
    """Routes that discard: prefix and table."""
    ipv4_pool: str
    """The smallest network that contains all blocks of the fabric."""
    ipv6_pool: str
    """The same of IPv6; "" where the fabric has none."""
    rules: list[LookupRule]
    protocol: int
    """The kernel's protocol number of polarfab's rules."""
    bgp: BgpSpeaker | None
    """The BGP of the switch; None with static routes."""
    tracked: Tracked | None
    """The BGP that announces next hops of static routes, with BFD; None without it."""


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
    usual = True
    unnumbered = MappingProxyType({"static": FIXED, "bgp": INTERFACE_SESSIONS})
    policy_rules = True
    neighbours = neighbours.FORM
    routing_tables = routing_tables.FORM
    device = FrrDevice
    ansible = AnsibleConnection("ssh", root=True, elsewhere=("frr.conf",))
    container = ContainerKind(
        "linux",
        "frrouting/frr:v8.4.1",
        binds=(
            ("frr.conf", "/etc/frr/frr.conf"),
            *((name, f"{CONTAINER_FOLDER}/{name}") for name in LOADED_FILES),
        ),
        commands=(
            f"sysctl -p {CONTAINER_FOLDER}/sysctl.conf",
            f"ip -force -batch {CONTAINER_FOLDER}/links.batch",
            f"ip -4 -batch {CONTAINER_FOLDER}/rules.batch",
            f"ip -6 -batch {CONTAINER_FOLDER}/rules.batch",
        ),
        daemons="/etc/frr/daemons",
    )
    route_maps = RouteMapWords()
    options = MappingProxyType(
        {
            "version": Option.choice(
                "The oldest release of FRR that has to accept the files.", "8.4", "10.7"
            )
        }
    )
    agreements = MappingProxyType(
        {
            **bgp_agreements("off", "on"),
            **SHARING_AGREEMENTS,
            **WCMP_AGREEMENT,
            **NUMBERED_AGREEMENTS,
        }
    )

    def require(self, build: Build, chosen: Chosen) -> None:
        """See `Target.require`."""
        bgp, old = chosen[ROUTING] == "bgp", chosen["version"] == "8.4"
        if not bgp and chosen[WCMP] == "on":
            required, todo = "false with static routes", "write `routes: ebgp`"
            raise InputError.of(required, "true", todo, key=CONTROL_KEYS[WCMP])
        if bgp:
            require_bgp(build, self.name, chosen)
        elif old:
            self.capabilities.require(build, "frr with version=8.4")
        else:
            SHARING.require(build, self.name)
        require_weights(build, self.name)
        require_devices(build, self.name)

    def pool_problems(self, build: Build, chosen: Chosen) -> Iterator[Problem]:
        """See `Target.pool_problems`."""
        yield from link_problems(LinkPlan.of(build, chosen))
        yield from next_hop_problems(build, chosen)
        if _tracks(chosen):
            yield from tracked_problems(build, chosen)

    def reader(self, chosen: Chosen) -> Reader:
        """See `Target.reader`."""
        if chosen[ROUTING] == "bgp":
            return bgp_reader(read_frr_speaker, chosen)
        watched, secured = chosen[BFD] == "on", secures(chosen)
        return partial(read_frr, bfd=watched, tracked=_tracks(chosen), gtsm=secured)

    def routes_held(self, build: Build, chosen: Chosen) -> Callable[[int], RouteTables]:
        """See `Target.routes_held`."""
        routed = _routed(build, chosen)
        if chosen[ROUTING] == "bgp":
            return partial(_bgp_routes, routed, ControlPlane.of(routed, chosen))
        gateway = {4: _gateway(chosen, 4), 6: _gateway(chosen, 6)}
        if _tracks(chosen):  # each neighbour has addresses of its own making on links
            gateway = {4: ANY, 6: ANY}
        return partial(kernel_tables, routed, gateway=gateway, batches=False)

    def variables(self, build: Build, chosen: Chosen) -> Callable[[int], FrrVariables]:
        """See `Target.variables`."""
        routed = _routed(build, chosen)
        kept = TrackedHops.of(routed, chosen) if _tracks(chosen) else None
        return partial(_variables, routed, chosen, ControlPlane.of(routed, chosen), kept)


def _routed(build: Build, chosen: Chosen) -> RoutedFabric:
    """The routers of a build, whose links have addresses beside other systems."""
    return RoutedFabric.of(build, addresses=LinkPlan.of(build, chosen))


def _tracks(chosen: Chosen) -> bool:
    """Whether BGP keeps the next hops of static routes, as FRR 8.4 has no other BFD for them."""
    return chosen[ROUTING] != "bgp" and chosen[BFD] == "on" and chosen["version"] == "8.4"


def _variables(
    routed: RoutedFabric,
    chosen: Chosen,
    plane: ControlPlane | None,
    kept: TrackedHops | None,
    vertex: int,
) -> FrrVariables:
    switch = routed.switch(vertex)
    if plane or kept:  # a fixed link-local address next to an automatic one is fatal to next hops
        switch = replace(switch, link_local="")
    orders = in_order(routed, vertex, each=False)
    if plane:
        orders = {t: order for t, order in orders.items() if t == ENTER and plane.via}
    ipv4 = not kept and _gateway(chosen, 4) == "ipv4"
    marks = None if plane else kernel_marks(routed, vertex, ipv4)
    none = RouteRows.of(routed.both, ())
    routes = [
        RouteRows.of(
            names,
            _entering(routed, plane, vertex, family)
            if plane
            else _routes(routed, vertex, family, orders, chosen, kept),
        )
        for family, names in enumerate(routed.named)
    ]
    dropped = [RouteRows.of(names, discards(routed, vertex, orders)) for names in routed.named]
    pools = routed.pools()
    onward = partial(_onward, switch, marks, chosen, partial(kept.hops, vertex) if kept else None)
    return FrrVariables(
        switch=switch,
        seed=hash_seed(routed.build, vertex),
        marks=marks,
        ipv4_onward=onward(pools[0], 4),
        ipv6_onward=onward(pools[-1], 6) if switch.ipv6 else none,
        identity=routed.build.identity,
        unreachable=UNREACHABLE,
        ipv4_routes=routes[0],
        ipv6_routes=[*routes, none][1],
        ipv4_discards=dropped[0],
        ipv6_discards=[*dropped, none][1],
        ipv4_pool=pools[0],
        ipv6_pool=pools[1] if switch.ipv6 else "",
        rules=rules(switch, orders, marks),
        protocol=PROTOCOL,
        bgp=plane.at(vertex, routed.far_ends(vertex)) if plane else None,
        tracked=kept.at(vertex) if kept else None,
    )


def _gateway(chosen: Chosen, family: int) -> str:
    """The field of a link with its gateway: FRR 10.4 takes an IPv6 next hop for an IPv4 route."""
    numbered = chosen[UNNUMBERED] == OFF
    return "ipv4" if family == 4 and (numbered or chosen["version"] == "8.4") else "ipv6"


def _tail(hop: tuple[str, str], rest: str) -> RouteTail:
    """A line of a route: the gateway, the interface, and the rest, which is there without one."""
    return (*hop, rest) if hop[1] else (hop[0], rest.strip() or "1", "")


def _last(chosen: Chosen, family: int) -> str:
    """The end of each line."""
    if _tracks(chosen):
        return ""
    onlink = " onlink" if _gateway(chosen, family) == "ipv4" else ""
    bfd = " bfd" if chosen["bfd"] == "on" else ""
    return onlink + bfd


def _onward(
    switch: StaticSwitch,
    marks: KernelMarks | None,
    chosen: Chosen,
    kept: Callable[[int], PortHops] | None,
    pool: str,
    family: int,
) -> RouteRows:
    """The routes of a family that spread marked packets, all for the pool."""
    last = _last(chosen, family)
    hops = kept(int(family == 6)) if kept else switch.hops(_gateway(chosen, family))
    tails: list[RouteTail] = [
        _tail(hops[port], f" table {marked.table}{last}")
        for marked in (marks.ports if marks else ())
        for port in marked.onward
    ]
    every = np.arange(len(tails))
    return RouteRows(PrefixTexts([pool]), tails, np.zeros_like(every), every)


def _entering(
    routed: RoutedFabric, plane: ControlPlane, vertex: int, family: int
) -> Iterator[RoutePart]:
    """The static routes of a family whose next hops BGP finds, a line for each next hop."""
    prefix, egress = routed.routes(vertex)
    by_port = plane.next_hops(vertex, family) if plane.via else {}
    for share in routed.shares(vertex) if plane.via and routed.switch(vertex).hosts else ():
        members: list[RouteTail] = [(by_port[port][0], f"table {ENTER}", "") for port in share.port]
        these = prefix[egress == share.egress]
        every = np.tile(np.arange(len(members)), len(these))
        yield np.repeat(these, len(members)), members, every


def _bgp_routes(routed: RoutedFabric, plane: ControlPlane | None, vertex: int) -> RouteTables:
    """The paths that BGP chooses; it learns the gateways from the sessions."""
    switch, plan = routed.switch(vertex), in_order(routed, vertex, each=False)
    hops = {link.port: (ANY, link.interface) for link in switch.links}
    minimal = plan[MAIN][:, :1]
    routes: dict[str, Choices] = {}
    entering: dict[str, Choices] = {}
    shares = ENTER in plan and plane is not None and bool(plane.via)
    for family in range(len(routed.prefixes)):
        found = routed.table(vertex, family, minimal, hops)
        routes |= comparable(plane.weighed(vertex, family, found) if plane else found)
        if shares:
            entering |= comparable(routed.table(vertex, family, plan[ENTER], hops))
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
    chosen: Chosen,
    kept: TrackedHops | None,
) -> Iterator[RoutePart]:
    """The static routes of a family, table by table, then the shares of classes.

    Each has a gateway, an interface, and what else belongs to the line.
    """
    version = 6 if family else 4
    field, last = _gateway(chosen, version), _last(chosen, version)
    if kept:
        hops, marked = (kept.hops(vertex, family, marked=marked) for marked in (False, True))
    else:
        hops = routed.switch(vertex).hops(field)
        marked = marked_hops(routed, vertex, hops, field)
    prefix, egress = routed.routes(vertex)
    number = np.zeros(max(hops, default=0) + 1, np.int64)
    number[list(hops)] = np.arange(len(hops))
    table_words = {table: "" if table == MAIN else f" table {table}" for table in orders}
    for table, order in orders.items():
        distances = ["", *(f" {distance}" for distance in range(2, order.shape[1] + 1))]
        ends = [f"{distance}{table_words[table]}{last}" for distance in distances]
        tails: list[RouteTail] = [_tail(hop, end) for end in ends for hop in hops.values()]
        port = order[egress]
        row, place = np.nonzero(port > 0)
        yield prefix[row], tails, place * len(hops) + number[port[row, place]]
    shares = {share.egress: share for share in routed.shares(vertex)}
    for table, order in orders.items():
        for shared_class in np.flatnonzero((order == SHARED).any(axis=1)).tolist():
            share = shares[shared_class]
            equal = len(set(share.weight)) == 1
            members: list[RouteTail] = []
            for p, weight, marks in zip(share.port, share.weight, share.marks, strict=True):
                hop = (marked if marks else hops)[p]
                weight_words = "" if equal else f" weight {weight}"
                members.append(_tail(hop, f"{table_words[table]}{weight_words}{last}"))
            prefixes = prefix[egress == shared_class]
            every = np.tile(np.arange(len(members)), len(prefixes))
            yield np.repeat(prefixes, len(members)), members, every
