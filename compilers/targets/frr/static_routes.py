"""The static routes of frr.conf, a line for each next hop of each prefix.

`FrrFabric` knows how lines name next hops, by the target's options. Target frr gives its routes to
the templates as `RouteRows`. There are three kinds:

- `static_routes`: the routes of a switch without BGP;
- `host_routes`: beside BGP, the routes of packets from hosts, whose next hops BGP resolves;
- `onward_routes`: the routes that spread marked packets (`routed.kernel_marks`).

An *egress class* is the set of ports that lead to a prefix, and its *order* has the ports that it
tries (`routed.static_routes`). A *tail* is all that follows the prefix in a line.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import numpy as np

from compilers.tables.build import Build
from compilers.targets.options import OFF, Chosen
from compilers.targets.routed.bgp.bgp_options import BFD, ROUTING
from compilers.targets.routed.bgp.control_plane import ControlPlane
from compilers.targets.routed.bgp.tracked import TrackedHops
from compilers.targets.routed.kernel_marks import KernelMarks
from compilers.targets.routed.link_addresses import UNNUMBERED, LinkPlan
from compilers.targets.routed.linux_tables import HOSTS_TABLE, KERNEL_MAIN, marked_hops
from compilers.targets.routed.route_rows import PrefixTexts, RoutePart, RouteRows, RouteTail
from compilers.targets.routed.static_routes import (
    ALL_NEXT_HOPS,
    IPV4_FAMILY,
    BuildRouters,
    MultipathGroup,
    Numbers,
    PortHops,
)


def is_tracked(chosen: Chosen) -> bool:
    """Whether static routes have tracked next hops (`routed.bgp.tracked`).

    FRR 8.4 needs them with BFD, as its static routes do not follow BFD by themselves.
    """
    return chosen[ROUTING] != "bgp" and chosen[BFD] == "on" and chosen["version"] == "8.4"


def gateway_field(chosen: Chosen, family: int) -> str:
    """The field of a link with the gateway of routes of a family, `ipv4` or `ipv6`.

    Releases of FRR after 8.4 take an IPv6 next hop for an IPv4 route. So links need no IPv4
    addresses there.
    """
    is_numbered = chosen[UNNUMBERED] == OFF
    needs_ipv4 = is_numbered or chosen["version"] == "8.4"
    return "ipv4" if family == IPV4_FAMILY and needs_ipv4 else "ipv6"


def frr_routers(build: Build, chosen: Chosen) -> BuildRouters:
    """The routers of a build, whose links have addresses if another system needs them."""
    return BuildRouters.of(build, addresses=LinkPlan.of(build, chosen))


@dataclass(frozen=True, slots=True)
class FrrFabric:
    """The FRR routers of a build."""

    routers: BuildRouters
    """The names, addresses and tables of the routers."""
    chosen: Chosen
    """The options of the target."""
    control_plane: ControlPlane | None
    """The BGP of the routers; None with static routes."""
    tracked: TrackedHops | None
    """The next hops that BGP announces for one link only; None: static routes name links."""

    @classmethod
    def of(cls, build: Build, chosen: Chosen) -> FrrFabric:
        """The routers of a build.

        Raises:
            InputError: a pool of addresses is wrong, or FRR cannot have the names of the build.
        """
        routers = frr_routers(build, chosen)
        tracked = TrackedHops.of(routers, chosen) if is_tracked(chosen) else None
        return cls(routers, chosen, ControlPlane.of(routers, chosen), tracked)

    def static_routes(
        self, vertex: int, family: int, orders: Mapping[int, Numbers]
    ) -> Iterator[RoutePart]:
        """The static routes of a switch, table by table, those whose next hops share packets last.

        Args:
            vertex: of the switch.
            family: IPV4_FAMILY or IPV6_FAMILY.
            orders: the orders of egress classes, by table (`linux_tables.orders_by_table`).
        """
        prefix, egress = self.routers.routes(vertex)
        lines = _StaticLines(
            prefix=prefix,
            egress=egress,
            hops=self._hops(vertex, family),
            marked_hops=self._marked_hops(vertex, family),
            groups={group.egress: group for group in self.routers.multipath_groups(vertex)},
            end_of_line=self._end_of_line(family),
        )
        table_words = {table: "" if table == KERNEL_MAIN else f" table {table}" for table in orders}
        for table, order in orders.items():
            yield lines.ordered_routes(table_words[table], order)
        for table, order in orders.items():
            yield from lines.sharing_routes(table_words[table], order)

    def host_routes(self, vertex: int, family: int) -> Iterator[RoutePart]:
        """The static routes of packets from hosts whose next hops BGP resolves."""
        control_plane = self.control_plane
        if control_plane is None or not control_plane.next_hop_pools:
            return
        if not self.routers.switch(vertex).hosts:
            return
        prefix, egress = self.routers.routes(vertex)
        next_hops = control_plane.announced_hops(vertex, family)
        for group in self.routers.multipath_groups(vertex):
            tails: list[RouteTail] = [
                (next_hops[port][0], f"table {HOSTS_TABLE}", "") for port in group.ports
            ]
            yield _with_every_tail(prefix[egress == group.egress], tails)

    def onward_routes(
        self, vertex: int, family: int, marks: KernelMarks | None, pool: str
    ) -> RouteRows:
        """The routes that spread marked packets over the links onward, all for one prefix: `pool`.

        Args:
            vertex: of the switch.
            family: IPV4_FAMILY or IPV6_FAMILY.
            marks: the switch's configuration for marked packets; None: it marks none.
            pool: the smallest network that contains all blocks of the fabric.
        """
        hops, end_of_line = self._hops(vertex, family), self._end_of_line(family)
        tails: list[RouteTail] = [
            _tail(hops[onward_port], f" table {marked_port.table}{end_of_line}")
            for marked_port in (marks.ports if marks else ())
            for onward_port in marked_port.onward
        ]
        only_prefix = np.zeros(1, np.int64)  # `pool` is prefix 0 of one
        return RouteRows.of(PrefixTexts([pool]), [_with_every_tail(only_prefix, tails)])

    def _hops(self, vertex: int, family: int) -> PortHops:
        """The next hop at every port of a switch."""
        if self.tracked:
            return self.tracked.hops(vertex, family)
        return self.routers.switch(vertex).hops(gateway_field(self.chosen, family))

    def _marked_hops(self, vertex: int, family: int) -> PortHops:
        """The next hop at every port of a switch for packets that the port marks."""
        if self.tracked:
            return self.tracked.hops(vertex, family, marked=True)
        field = gateway_field(self.chosen, family)
        return marked_hops(self.routers, vertex, self._hops(vertex, family), field)

    def _end_of_line(self, family: int) -> str:
        """The last words of each line, about its link; tracked next hops name no link."""
        if self.tracked:
            return ""
        onlink = " onlink" if gateway_field(self.chosen, family) == "ipv4" else ""
        bfd = " bfd" if self.chosen[BFD] == "on" else ""
        return onlink + bfd


@dataclass(frozen=True, slots=True)
class _StaticLines:
    """The static routes of one switch in one address family, as parts of `RouteRows`."""

    prefix: Numbers
    """int[n], the number of each route's prefix."""
    egress: Numbers
    """int[n], the egress class of each route."""
    hops: PortHops
    """The next hop at every port."""
    marked_hops: PortHops
    """The next hop at every port for packets that the port marks."""
    groups: Mapping[int, MultipathGroup]
    """The multipath groups of egress classes, by the numbers of the classes."""
    end_of_line: str
    """The last words of each line."""

    def ordered_routes(self, table_words: str, order: Numbers) -> RoutePart:
        """The routes of a table whose ports are tried in order, by rising distance.

        If a class tries port 7 and then port 3, its prefixes have a route over port 7 with distance
        1, which no line states, and a route over port 3 with distance 2.

        Args:
            table_words: the words that name the table, "" for the main one.
            order: int64[C, M], the ports that each egress class tries; no port has a number below
                1.
        """
        # All next hops with distance 1, then all with distance 2, and so on. So distance d at the
        # i-th next hop of H is tail (d - 1) * H + i.
        distances = ["", *(f" {distance}" for distance in range(2, order.shape[1] + 1))]
        tails: list[RouteTail] = [
            _tail(hop, f"{distance}{table_words}{self.end_of_line}")
            for distance in distances
            for hop in self.hops.values()
        ]
        hop_of_port = np.zeros(max(self.hops, default=0) + 1, np.int64)  # by port its i
        hop_of_port[list(self.hops)] = np.arange(len(self.hops))

        ports_of_route = order[self.egress]  # int[n, M]: those of its class
        route, position = np.nonzero(ports_of_route > 0)  # position d - 1 in the order
        port = ports_of_route[route, position]
        tail = position * len(self.hops) + hop_of_port[port]
        return RoutePart(self.prefix[route], tails, tail)

    def sharing_routes(self, table_words: str, order: Numbers) -> Iterator[RoutePart]:
        """The routes of a table whose next hops share packets, class by class.

        The arguments are as in `ordered_routes`; an order has ALL_NEXT_HOPS for such a class.
        """
        for egress in np.flatnonzero((order == ALL_NEXT_HOPS).any(axis=1)).tolist():
            group = self.groups[egress]
            is_equal = len(set(group.weights)) == 1
            tails: list[RouteTail] = []
            for port, weight, marks in zip(group.ports, group.weights, group.marks, strict=True):
                hop = self.marked_hops[port] if marks else self.hops[port]
                weight_words = "" if is_equal else f" weight {weight}"
                tails.append(_tail(hop, f"{table_words}{weight_words}{self.end_of_line}"))
            yield _with_every_tail(self.prefix[self.egress == egress], tails)


def _tail(hop: tuple[str, str], rest: str) -> RouteTail:
    """The tail of a line in three parts: gateway, interface, and the rest.

    If the next hop has no interface, the rest stands in the place of the interface. Without a rest
    either, the default distance 1 stands there, as the place must not be empty.

    >>> _tail(("fe80::1", "eth1"), " 2 table 5001")
    ('fe80::1', 'eth1', ' 2 table 5001')
    >>> _tail(("100.64.0.1", ""), " 2")
    ('100.64.0.1', '2', '')
    """
    gateway, interface = hop
    if interface:
        return gateway, interface, rest
    return gateway, rest.strip() or "1", ""


def _with_every_tail(prefix: Numbers, tails: list[RouteTail]) -> RoutePart:
    """For each prefix a route with each of the tails."""
    tail_number = np.tile(np.arange(len(tails)), len(prefix))
    return RoutePart(np.repeat(prefix, len(tails)), tails, tail_number)
