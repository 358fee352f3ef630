"""The srv6 target: hosts choose the paths of their packets (docs/targets/srv6.md).

A *carrier* is an IPv6 address with a number (uSID) for each switch of a path after the first one. A
host puts a packet into an outer header whose destination is a carrier. Each switch removes its own
uSID from the carrier, and sends the packet by the route for the next one. The paths and weights are
those of the tables: the minimal path and the alternates. Target linux or frr configures all else in
the switches.

With the option `decap=host`, a carrier ends in two uSIDs, of the host and of decapsulation: the
host takes the outer header off. With `decap=switch` a carrier ends in the uSID of decapsulation
alone, and the last switch takes the header off. In a fabric with intermediates (Valiant's routing)
a carrier names the intermediate only, which takes the header off whatever the option says.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from ipaddress import IPv6Network
from types import MappingProxyType
from typing import NamedTuple

import numpy as np

from compilers.routing.intermediates import intermediates
from compilers.spec.features import AGGREGATES, INGRESS, INTERMEDIATES, MULTIPATH, UNEQUAL_SHARES
from compilers.tables.build import Build
from compilers.targets.capabilities import Capabilities
from compilers.targets.options import Chosen, Option
from compilers.targets.routed.linux_ports import LINUX
from compilers.targets.routed.linux_tables import ROUTE_PROTOCOL, require_weights
from compilers.targets.routed.router_problems import name_problems
from compilers.targets.routed.static_routes import BuildRouters, StaticLink, StaticSwitch
from compilers.targets.target import Page, Target
from extensions.host_paths.path_sets import CARRIER, DECAPSULATE
from extensions.host_paths.segment_check import HOSTS_FOLDER, check_segments
from extensions.host_paths.srv6_paths import Srv6Paths
from extensions.host_paths.usid_blocks import (
    UsidBlock,
    options_with_block,
    parse_block,
    require_numbers,
)
from inventory.problems import InputError, Problem, few, shown

FIRST_NEXTHOP = 1_000_000
"""The id of a host's first nexthop object with a carrier. The others follow."""
FIRST_GROUP = 1_000_000_000
"""The id of the group of a host's first route. That of route n is FIRST_GROUP + n."""
MOST_MEMBERS = 120
"""The most nexthop objects of a group. iproute2 6.1 has room for 126 if their ids are short."""


@dataclass(frozen=True, slots=True)
class Sid:
    """A local SID of a switch."""

    prefix: str
    """The prefix of the carriers that it is for."""
    behaviour: str
    """The behaviour (RFC 8986), as FRR names it."""
    action: str
    """The behaviour, as the kernel's `ip route` names it."""


class CarrierNexthop(NamedTuple):
    """A nexthop object of a host, by which the kernel writes a carrier."""

    number: int
    """The id of the object."""
    carrier: str
    """The carrier that it writes."""


@dataclass(frozen=True, slots=True)
class HostRoute:
    """A route of a host."""

    prefix: str
    """The destination prefix."""
    nexthop: int
    """The id of its nexthop object."""
    members: str = ""
    """The members of that object, if it is a group; else ""."""


@dataclass(frozen=True, slots=True)
class Srv6SwitchVariables:
    """The variables of a switch's templates."""

    switch: StaticSwitch
    """The switch as in static routing."""
    identity: str
    """The identity of the build."""
    protocol: int
    """The routing protocol number of our routes in the kernel."""
    block: str
    """The IPv6 network of all uSIDs."""
    locator: str
    """The prefix of the switch's own uSID."""
    sids: list[Sid]
    """The local SIDs of the switch."""
    locators: list[tuple[str, StaticLink]]
    """The prefix of the uSID of every other switch (its locator), with the link to it."""
    hosts: list[tuple[str, str]]
    """The prefix of each host at the switch, with the host's address."""


@dataclass(frozen=True, slots=True)
class Srv6HostVariables:
    """The variables of a host's templates."""

    host: str
    """The name of the host."""
    identity: str
    """The identity of the build."""
    protocol: int
    """The routing protocol number of our routes in the kernel."""
    interface: str
    """The interface to the switch."""
    gateway: str
    """The address of the switch."""
    own: str
    """The SID of the host at which it takes the outer header off; "" with decap=switch."""
    carriers: list[CarrierNexthop]
    """The nexthop objects, each with the carrier that it writes."""
    routes: list[HostRoute]
    """The routes to all other hosts."""


class _CarrierPath(NamedTuple):
    """A path that a host may choose to a switch."""

    usids: list[int]
    """The uSIDs of its switches after the first one."""
    weight: int
    """Its weight among the paths to that switch."""


class _HostRoutes(NamedTuple):
    """The routes of the hosts of a switch, and the nexthop objects that they use."""

    carriers: list[CarrierNexthop]
    """The nexthop objects."""
    routes: list[HostRoute]
    """The routes to all other hosts."""


class Srv6(Target):
    """Hosts that choose paths, and switches that follow them."""

    name = "srv6"
    summary = "paths of hosts, in hosts/<host>/, and SIDs of switches"
    files = MappingProxyType(
        {
            **dict.fromkeys(("srv6.batch", "srv6.conf", "srv6-sysctl.conf"), Srv6SwitchVariables),
            **dict.fromkeys(("host.batch", "host-sysctl.conf", "load.sh"), Srv6HostVariables),
        }
    )
    capabilities = Capabilities(
        frozenset({MULTIPATH, UNEQUAL_SHARES, INGRESS, AGGREGATES, INTERMEDIATES})
    )
    interfaces = LINUX
    fabric_check = staticmethod(check_segments)
    options = MappingProxyType(
        {
            "decap": Option.choice(
                "Who removes the outer header: the host or its switch.", "host", "switch"
            ),
            "block": Option(
                "The block of the uSIDs.",
                "fc00::/32",
                "an IPv6 network of 32 bits such as fc00::/32",
                lambda text: parse_block(text) is not None,
            ),
            "interface": Option(
                "The interface of every host.",
                "eth0",
                "the name of a Linux interface",
                lambda text: LINUX.pattern.fullmatch(text) is not None,
            ),
            "host": Option(
                "Write the files of this host only; empty for all hosts.",
                "",
                "a host's name",
                lambda _: True,
            ),
        }
    )

    def options_in(self, plane: int, options: Chosen | None) -> Chosen | None:
        """See `Target.options_in`."""
        return options_with_block(options, self.options["block"].default, plane)

    def require(self, build: Build, chosen: Chosen) -> None:
        """See `Target.require`."""
        super().require(build, chosen)
        require_weights(build, self.name)
        require_numbers(build.tables.switches, build.wiring.host_port.shape[1])
        pool, block = build.addressing.ipv6, parse_block(chosen["block"])
        names = build.wiring.host_names
        problems = name_problems(names, "hosts", "it becomes a file name")
        if pool is None:
            problems.append(
                Problem(
                    key="addressing.ipv6",
                    required="an IPv6 pool, as target srv6 carries IPv6 packets",
                    given="none",
                    todo='add one, for instance addressing: {ipv6: "fd00::/48"}',
                )
            )
        elif block is not None and pool.overlaps(block):
            problems.append(
                Problem(
                    key="set block",
                    required=f"a block outside the hosts' pool {pool}",
                    given=str(block),
                )
            )
        if (count := len(intermediates(build))) > MOST_MEMBERS and build.forwarding.intermediates:
            problems.append(
                Problem(
                    key="routing.balance",
                    required=f"at most {MOST_MEMBERS} intermediates for target srv6, as a group of "
                    "iproute2 has no room for more",
                    given=f"{build.balance} in a fabric with {count:,}",
                    todo="choose target ovs, or compact-valiant",
                )
            )
        if (host := chosen["host"]) and host not in names:
            problems.append(Problem(key="set host", required="a host's name", given=shown(host)))
        if problems:
            raise InputError(few(problems))

    def variables(self, build: Build, chosen: Chosen) -> Callable[[int], Srv6SwitchVariables]:
        """See `Target.variables`."""
        return Srv6Fabric.of(build, chosen).of_switch

    def pages(self, build: Build, chosen: Chosen) -> Callable[[int], Iterator[Page]]:
        """The folder of a switch, and OUT/hosts/<host>/ for each of its hosts."""
        fabric = Srv6Fabric.of(build, chosen)

        def of_vertex(vertex: int) -> Iterator[Page]:
            """The pages of a switch and of its hosts."""
            yield build.wiring.names[vertex], fabric.of_switch(vertex)
            for values in fabric.of_hosts(vertex):
                yield f"{HOSTS_FOLDER}/{values.host}", values

        return of_vertex


@dataclass(frozen=True, slots=True)
class Srv6Fabric:
    """What the templates of all switches and hosts share."""

    routers: BuildRouters
    """The fabric as in static routing."""
    paths: Srv6Paths
    """The paths of the build."""
    chosen: Chosen
    """The options of the target."""
    block: UsidBlock
    """The block of the uSIDs, with the carriers in it."""
    switch_prefixes: tuple[str, ...]
    """The prefix of the uSID of every switch, by vertex."""

    @classmethod
    def of(cls, build: Build, chosen: Chosen) -> Srv6Fabric:
        """Everything of a build, with options that are checked."""
        block = UsidBlock(IPv6Network(chosen["block"]))
        vertices = range(build.tables.switches)
        return cls(
            routers=BuildRouters.of(build),
            paths=Srv6Paths.of(build),
            chosen=chosen,
            block=block,
            switch_prefixes=tuple(block.prefix(block.switch(v)) for v in vertices),
        )

    def of_switch(self, vertex: int) -> Srv6SwitchVariables:
        """The variables of a switch's templates."""
        block, switch = self.block, self.routers.switch(vertex)
        addressing = self.routers.build.addressing
        link_to = dict(zip(self._neighbours(vertex), switch.links, strict=True))
        return Srv6SwitchVariables(
            switch=switch,
            identity=self.routers.build.identity,
            protocol=ROUTE_PROTOCOL,
            block=str(block.network),
            locator=self.switch_prefixes[vertex],
            sids=list(self._sids(vertex, switch.links)),
            locators=[
                (self.switch_prefixes[destination], link_to[next_switch])
                for destination, next_switch in self.paths.locators(vertex)
            ],
            hosts=[
                (block.prefix(block.host(host)), str(addressing.host6(vertex, host)))
                for host in self._hosts_at(vertex)
                if not self._switches_decapsulate
            ],
        )

    def _hosts_at(self, vertex: int) -> list[int]:
        """The numbers of the hosts at a switch that have a port."""
        hosts: list[int] = np.flatnonzero(self.routers.build.wiring.host_port[vertex]).tolist()
        return hosts

    def _neighbours(self, vertex: int) -> list[int]:
        """The switches that a switch is cabled to."""
        far = self.routers.build.wiring.far[vertex]
        neighbours: list[int] = far[far >= 0].tolist()
        return neighbours

    def _sids(self, vertex: int, links: tuple[StaticLink, ...]) -> Iterator[Sid]:
        """The SIDs of a switch: its own, those of its links, and that of decapsulation."""
        block = self.block
        # The kernel's flavor that removes the uSID of the switch and moves the next ones up.
        flavors = "flavors next-csid lblen 32 nflen 16"
        own_usid = block.switch(vertex)
        yield Sid(block.prefix(own_usid), behaviour="uN", action=f"End {flavors}")
        for rank, link in enumerate(links):
            yield Sid(
                block.prefix(block.link(rank)),
                behaviour=f"uA interface {link.interface} nexthop {link.ipv6}",
                action=f"End.X nh6 {link.ipv6} oif {link.interface} {flavors}",
            )
        if self._switches_decapsulate:
            yield Sid(
                block.prefix(own_usid, DECAPSULATE),
                behaviour="uDT6 vrf default",
                action="End.DT6 table main",
            )

    def of_hosts(self, vertex: int) -> Iterator[Srv6HostVariables]:
        """The variables of the templates of each host of a switch that the option `host` allows."""
        wiring = self.routers.build.wiring
        per_switch = wiring.host_port.shape[1]
        names = {
            host: wiring.host_names[vertex * per_switch + host] for host in self._hosts_at(vertex)
        }
        selected = {host: name for host, name in names.items() if self.chosen["host"] in ("", name)}
        if not selected:
            return
        carriers, routes = self._routes(vertex)
        for host, name in selected.items():
            host_sid = self.block.prefix(self.block.host(host), DECAPSULATE)
            yield Srv6HostVariables(
                host=name,
                identity=self.routers.build.identity,
                protocol=ROUTE_PROTOCOL,
                interface=self.chosen["interface"],
                gateway=self.routers.switch(vertex).ipv6,
                own="" if self._switches_decapsulate else host_sid,
                carriers=carriers,
                routes=routes,
            )

    @property
    def _switches_decapsulate(self) -> bool:
        """Whether switches take headers off. Intermediates have to: they are no hosts."""
        return self.chosen["decap"] == "switch" or self.routers.build.forwarding.intermediates

    def _routes(self, vertex: int) -> _HostRoutes:
        """The routes of a switch's hosts, and their nexthop objects."""
        if self.routers.build.forwarding.intermediates:
            return self._routes_over_intermediates()
        carriers: list[CarrierNexthop] = []
        routes: list[HostRoute] = []
        for destination, paths in self._paths_by_destination(vertex):
            for prefix, last_usids in self._prefixes_at(destination):
                first = FIRST_NEXTHOP + len(carriers)
                for nexthop_id, path in enumerate(paths, first):
                    carrier = self.block.carrier(*path.usids, *last_usids)
                    carriers.append(CarrierNexthop(nexthop_id, carrier))
                if len(paths) == 1:
                    routes.append(HostRoute(prefix, first))
                else:
                    members = _members(first, [path.weight for path in paths])
                    routes.append(HostRoute(prefix, FIRST_GROUP + len(routes), members))
        return _HostRoutes(carriers, routes)

    def _routes_over_intermediates(self) -> _HostRoutes:
        """A single route to all hosts of the fabric, over each intermediate equally often.

        All hosts have the same route.
        """
        build, block = self.routers.build, self.block
        carriers = [
            CarrierNexthop(nexthop_id, block.carrier(block.switch(intermediate), DECAPSULATE))
            for nexthop_id, intermediate in enumerate(intermediates(build).tolist(), FIRST_NEXTHOP)
        ]
        members = _members(FIRST_NEXTHOP, [1] * len(carriers))
        return _HostRoutes(carriers, [HostRoute(str(build.addressing.ipv6), FIRST_GROUP, members)])

    def _paths_by_destination(self, vertex: int) -> Iterator[tuple[int, list[_CarrierPath]]]:
        """Yield each switch that a switch has a route to, with the paths to it."""
        usids_at_end = 1 if self._switches_decapsulate else 2
        paths = self.paths.weighted_paths(vertex, CARRIER - usids_at_end)
        # int[D, W, H], the uSIDs of the switches of each path; 0 after the last.
        usids = np.where(paths.switches >= 0, self.block.switch(0) + paths.switches, 0)
        destinations = self.paths.destinations(vertex).tolist()
        for destination, usid_rows, weights in zip(
            destinations, usids.tolist(), paths.weights.tolist(), strict=True
        ):
            yield (
                destination,
                [
                    _CarrierPath([usid for usid in row if usid], weight)
                    for row, weight in zip(usid_rows, weights, strict=True)
                    if weight  # a path of weight 0 stands for none
                ],
            )

    def _prefixes_at(self, vertex: int) -> Iterator[tuple[str, tuple[int, ...]]]:
        """Yield the prefixes of hosts at a switch, each with the uSIDs that end its carriers."""
        addressing = self.routers.build.addressing
        if self._switches_decapsulate:
            yield str(addressing.network6(vertex)), (DECAPSULATE,)
            return
        for host in self._hosts_at(vertex):
            last_usids = (self.block.host(host), DECAPSULATE)
            yield f"{addressing.host6(vertex, host)}/128", last_usids


def _members(first: int, weights: Sequence[int]) -> str:
    """The members of a group of nexthop objects with consecutive ids, as `ip nexthop` takes them.

    >>> _members(1_000_000, [2, 1])
    '1000000,2/1000001,1'
    """
    return "/".join(f"{nexthop_id},{weight}" for nexthop_id, weight in enumerate(weights, first))
