"""The frr target: an integrated frr.conf, static routes or eBGP (docs/targets/frr.md).

With static routes FRR does all that target linux does. Each *egress class* (the ports that lead to
a prefix) becomes static routes of rising administrative distance, one for each port that it may
use, in the order in which it tries them. Packets from hosts, *marked* packets (`kernel_marks`) and
packets that come back over the port by which they should leave have routing tables of their own,
which policy rules choose by the ingress interface (`linux_tables`). With eBGP the main table is
BGP's. In FRR 8.4 static routes do not follow BFD by themselves; then BGP announces *tracked* next
hops for them (`routed.bgp.tracked`).

`static_routes` writes the lines of routes, `reader` reads the files back, and `device` pushes them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import partial
from types import MappingProxyType

from compilers.readers.devices.held_routes import (
    ANY,
    DISCARD,
    IPV4_RULES,
    IPV6_RULES,
    MAIN_TABLE,
    Choices,
    RouteTables,
    canonical_table,
)
from compilers.readers.emitted_check import Reader
from compilers.spec.features import (
    AGGREGATES,
    BOUNCES,
    INGRESS,
    MARKS,
    MULTIPATH,
    REPAIR,
    TRANSIT,
    UNEQUAL_SHARES,
)
from compilers.spec.node_systems import CONTROL_KEYS
from compilers.tables.build import Build
from compilers.targets.capabilities import Capabilities
from compilers.targets.devices.tool_settings import AnsibleConnection, ContainerKind, RouteMapWords
from compilers.targets.frr import routing_tables
from compilers.targets.frr.device import FrrDevice
from compilers.targets.frr.reader import read_frr, read_frr_speaker
from compilers.targets.frr.static_routes import (
    FrrFabric,
    frr_routers,
    gateway_field,
    is_tracked,
)
from compilers.targets.linux import neighbours
from compilers.targets.options import Chosen, Option
from compilers.targets.routed.bgp.bgp_checks import (
    bgp_reader,
    next_hop_problems,
    require_bgp,
    require_no_gtsm,
)
from compilers.targets.routed.bgp.bgp_options import (
    BFD,
    INTERFACE_SESSIONS,
    ROUTING,
    SHARING_AGREEMENTS,
    WCMP,
    WCMP_AGREEMENT,
    bgp_agreements,
    has_gtsm,
)
from compilers.targets.routed.bgp.control_plane import ControlPlane
from compilers.targets.routed.bgp.speaker_variables import BgpSpeaker
from compilers.targets.routed.bgp.tracked import Tracked, tracked_problems
from compilers.targets.routed.kernel_marks import (
    IPV4,
    IPV6,
    KernelMarks,
    hash_seed,
    kernel_marks,
    require_devices,
)
from compilers.targets.routed.link_addresses import NUMBERED_AGREEMENTS, LinkPlan
from compilers.targets.routed.linux_ports import LINUX
from compilers.targets.routed.linux_tables import (
    HOSTS_TABLE,
    KERNEL_MAIN,
    ROUTE_PROTOCOL,
    LookupRule,
    discard_routes,
    kernel_tables,
    lookup_rules,
    orders_by_table,
    require_weights,
    rules_as_routes,
)
from compilers.targets.routed.route_rows import RouteRows
from compilers.targets.routed.router_problems import link_problems
from compilers.targets.routed.static_routes import (
    FIXED_LINK_LOCAL,
    IPV4_FAMILY,
    IPV6_FAMILY,
    BuildRouters,
    Numbers,
    StaticSwitch,
)
from compilers.targets.target import Target
from inventory.problems import InputError, Problem

STATIC_FEATURES = frozenset({MULTIPATH, INGRESS, REPAIR, BOUNCES, AGGREGATES, MARKS, TRANSIT})
"""What static routes of any FRR can do."""
CAPABILITIES_10_7 = Capabilities(STATIC_FEATURES | {UNEQUAL_SHARES})
"""What static routes of FRR 10.7 can do, whose next hops have weights."""
CONTAINER_FOLDER = "/etc/polarfab"
"""The folder in a container for files that FRR does not read."""
KERNEL_FILES = ("links.batch", "rules.batch", "sysctl.conf")
"""The files in `CONTAINER_FOLDER`, which commands in the container load into the kernel."""
DISCARD_DISTANCE = 254
"""The administrative distance of the route that discards packets to other addresses of the fabric,
the greatest usable one."""


@dataclass(frozen=True, slots=True)
class FrrVariables:
    """The variables of a switch's templates."""

    switch: StaticSwitch
    """Names and addresses of the switch and of its neighbours."""
    seed: int
    """The seed of the kernel's hash, 0 for any."""
    marks: KernelMarks | None
    """The configuration for marked packets; None where the balance marks none."""
    identity: str
    """The identity of the build."""
    unreachable: int
    """The administrative distance of the routes that discard packets to other addresses of the
    fabric."""
    ipv4_routes: RouteRows
    """Prefix, gateway, interface and the rest of the line. All lines at once are
    `ipv4_routes.lines("ip route {} {} {}{}")`."""
    ipv6_routes: RouteRows
    """The routes of IPv6, with the same columns."""
    ipv4_onward: RouteRows
    """The routes that spread marked packets over the links onward, with the same columns."""
    ipv6_onward: RouteRows
    """The routes of IPv6 that spread marked packets, with the same columns."""
    ipv4_discards: RouteRows
    """Routes that discard: prefix and table."""
    ipv6_discards: RouteRows
    """Routes of IPv6 that discard: prefix and table."""
    ipv4_pool: str
    """The smallest IPv4 network that contains all blocks of the fabric."""
    ipv6_pool: str
    """The smallest IPv6 network that contains all blocks of the fabric; "" where it has no IPv6."""
    rules: list[LookupRule]
    """The policy rules of the switch."""
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
    capabilities = Capabilities(STATIC_FEATURES)
    interfaces = LINUX
    is_default = True
    unnumbered = MappingProxyType({"static": FIXED_LINK_LOCAL, "bgp": INTERFACE_SESSIONS})
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
            *((name, f"{CONTAINER_FOLDER}/{name}") for name in KERNEL_FILES),
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
        has_bgp = chosen[ROUTING] == "bgp"
        if not has_bgp and chosen[WCMP] == "on":
            required, todo = "false with static routes", "write `routes: ebgp`"
            raise InputError.of(required, "true", todo, key=CONTROL_KEYS[WCMP])
        if not (has_bgp or is_tracked(chosen)):
            require_no_gtsm(build)
        if has_bgp:
            require_bgp(build, self.name, chosen)
        elif chosen["version"] == "8.4":
            self.capabilities.require(build, "frr with version=8.4")
        else:
            CAPABILITIES_10_7.require(build, self.name)
        require_weights(build, self.name)
        require_devices(build, self.name)

    def pool_problems(self, build: Build, chosen: Chosen) -> Iterator[Problem]:
        """See `Target.pool_problems`."""
        yield from link_problems(LinkPlan.of(build, chosen))
        yield from next_hop_problems(build, chosen)
        if is_tracked(chosen):
            yield from tracked_problems(build, chosen)

    def reader(self, chosen: Chosen) -> Reader:
        """See `Target.reader`."""
        if chosen[ROUTING] == "bgp":
            return bgp_reader(read_frr_speaker, chosen)
        return partial(
            read_frr,
            bfd=chosen[BFD] == "on",
            tracked=is_tracked(chosen),
            gtsm=has_gtsm(chosen),
        )

    def routes_held(self, build: Build, chosen: Chosen) -> Callable[[int], RouteTables]:
        """See `Target.routes_held`."""
        routers = frr_routers(build, chosen)
        if chosen[ROUTING] == "bgp":
            return partial(_bgp_routes, routers, ControlPlane.of(routers, chosen))
        if is_tracked(chosen):  # each neighbour chooses its addresses on links by itself
            gateway_fields = {IPV4: ANY, IPV6: ANY}
        else:
            gateway_fields = {
                IPV4: gateway_field(chosen, IPV4_FAMILY),
                IPV6: gateway_field(chosen, IPV6_FAMILY),
            }
        return partial(kernel_tables, routers, gateway_fields=gateway_fields, by_batch=False)

    def variables(self, build: Build, chosen: Chosen) -> Callable[[int], FrrVariables]:
        """See `Target.variables`."""
        return partial(_variables, FrrFabric.of(build, chosen))


def _variables(fabric: FrrFabric, vertex: int) -> FrrVariables:
    """The variables of a switch's templates."""
    routers, control_plane = fabric.routers, fabric.control_plane
    switch, orders = _switch(fabric, vertex), _static_orders(fabric, vertex)
    marks = None
    if control_plane is None:
        # BGP resolves tracked next hops of IPv4 routes to IPv6 addresses of links (RFC 8950).
        names_ipv4 = gateway_field(fabric.chosen, IPV4_FAMILY) == "ipv4"
        has_ipv4_hops = names_ipv4 and not fabric.tracked
        marks = kernel_marks(routers, vertex, has_ipv4_hops=has_ipv4_hops)
    ipv4 = _family_routes(fabric, vertex, IPV4_FAMILY, orders, marks)
    if switch.ipv6:
        ipv6 = _family_routes(fabric, vertex, IPV6_FAMILY, orders, marks)
    else:
        ipv6 = _FamilyRoutes.none(fabric)
    return FrrVariables(
        switch=switch,
        seed=hash_seed(routers.build, vertex),
        marks=marks,
        identity=routers.build.identity,
        unreachable=DISCARD_DISTANCE,
        ipv4_routes=ipv4.routes,
        ipv6_routes=ipv6.routes,
        ipv4_onward=ipv4.onward,
        ipv6_onward=ipv6.onward,
        ipv4_discards=ipv4.discards,
        ipv6_discards=ipv6.discards,
        ipv4_pool=ipv4.pool,
        ipv6_pool=ipv6.pool,
        rules=lookup_rules(switch, orders, marks),
        protocol=ROUTE_PROTOCOL,
        bgp=control_plane.at(vertex, routers.far_ends(vertex)) if control_plane else None,
        tracked=fabric.tracked.at(vertex) if fabric.tracked else None,
    )


def _switch(fabric: FrrFabric, vertex: int) -> StaticSwitch:
    """The names and addresses of a switch.

    Where BGP runs, its sessions use the automatic link-local address of each link. On a link that
    has a fixed one as well, next hops do not work. So the switch gets none.
    """
    switch = fabric.routers.switch(vertex)
    return replace(switch, link_local="") if fabric.control_plane or fabric.tracked else switch


def _static_orders(fabric: FrrFabric, vertex: int) -> Mapping[int, Numbers]:
    """The orders of egress classes (`linux_tables.orders_by_table`) that become static routes.

    With eBGP, BGP fills the main table. Static routes are left only for packets from hosts, and
    only if they go to announced next hops.
    """
    orders = orders_by_table(fabric.routers, vertex, repeat_members=False)
    if fabric.control_plane is None:
        return orders
    has_host_routes = fabric.control_plane.next_hop_pools and HOSTS_TABLE in orders
    return {HOSTS_TABLE: orders[HOSTS_TABLE]} if has_host_routes else {}


@dataclass(frozen=True, slots=True)
class _FamilyRoutes:
    """The routes of a switch in one address family."""

    routes: RouteRows
    """The routes with next hops."""
    discards: RouteRows
    """The routes that discard."""
    onward: RouteRows
    """The routes that spread marked packets over the links onward."""
    pool: str
    """The smallest network that contains all blocks of the fabric; "" without any."""

    @classmethod
    def none(cls, fabric: FrrFabric) -> _FamilyRoutes:
        """No routes, for an address family in which the fabric has no addresses."""
        no_routes = RouteRows.of(fabric.routers.all_prefix_texts, ())
        return cls(routes=no_routes, discards=no_routes, onward=no_routes, pool="")


def _family_routes(
    fabric: FrrFabric,
    vertex: int,
    family: int,
    orders: Mapping[int, Numbers],
    marks: KernelMarks | None,
) -> _FamilyRoutes:
    """The routes of a switch in one address family.

    Args:
        fabric: the routers.
        vertex: of the switch.
        family: IPV4_FAMILY or IPV6_FAMILY.
        orders: the orders of egress classes, by table (`linux_tables.orders_by_table`).
        marks: the switch's configuration for marked packets; None: it marks none.
    """
    routers = fabric.routers
    names, pool = routers.prefix_texts[family], routers.pools()[family]
    if fabric.control_plane:
        route_parts = fabric.host_routes(vertex, family)
    else:
        route_parts = fabric.static_routes(vertex, family, orders)
    return _FamilyRoutes(
        routes=RouteRows.of(names, route_parts),
        discards=RouteRows.of(names, discard_routes(routers, vertex, orders)),
        onward=fabric.onward_routes(vertex, family, marks, pool),
        pool=pool,
    )


def _bgp_routes(
    routers: BuildRouters, control_plane: ControlPlane | None, vertex: int
) -> RouteTables:
    """The routes that a switch with BGP has to hold.

    They are the paths that BGP chooses, and the static routes of packets from hosts. Any gateway
    is right, as BGP learns the gateways from its sessions.

    Args:
        routers: the routers.
        control_plane: their BGP.
        vertex: of the switch.
    """
    switch, orders = routers.switch(vertex), orders_by_table(routers, vertex, repeat_members=False)
    hops = {link.port: (ANY, link.interface) for link in switch.links}
    # The rows of an order are classes, and its columns are the ports that they try one after the
    # other. BGP uses only the shortest paths, so only the first column is kept, int64[C, 1]. Where
    # a class has several shortest paths, it says ALL_NEXT_HOPS.
    shortest = orders[KERNEL_MAIN][:, :1]
    has_host_routes = (
        HOSTS_TABLE in orders and control_plane is not None and bool(control_plane.next_hop_pools)
    )
    main: dict[str, Choices] = {}
    from_hosts: dict[str, Choices] = {}
    for family in range(len(routers.prefixes)):
        paths = routers.table(vertex, family, shortest, hops)
        if control_plane:
            paths = control_plane.with_path_weights(vertex, family, paths)
        main |= canonical_table(paths)
        if has_host_routes:
            from_hosts |= canonical_table(routers.table(vertex, family, orders[HOSTS_TABLE], hops))
    main |= dict.fromkeys(routers.pools(), (DISCARD,))
    if not has_host_routes:
        return {MAIN_TABLE: main}
    rules = rules_as_routes([LookupRule(switch.hosts, HOSTS_TABLE)])
    return {MAIN_TABLE: main, str(HOSTS_TABLE): from_hosts, IPV4_RULES: rules, IPV6_RULES: rules}
