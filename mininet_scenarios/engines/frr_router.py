"""FRR as the router of a switch: its daemons, and the routes that the kernel must have from them.

Routes are compared as next hops by prefix and table. What the kernel has comes from `ip -json`;
what it must have comes from the static routes of the rendered `frr.conf`, or from the compiled
tables where BGP learns the routes.
"""

from __future__ import annotations

import shutil
import subprocess
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from compilers.targets.routed.kernel_marks import marked_address
from compilers.targets.routed.linux_tables import HOSTS_TABLE
from mininet_scenarios.engines.router_processes import RouterProcesses
from mininet_scenarios.machine.netns import until

FRR = Path("/usr/lib/frr")
"""The folder of FRR's daemons."""
IN_FOLDER = 'mkdir -p /run/frr && mount --bind "$0" /run/frr && exec "$@"'
"""A shell's command that runs another one, which sees a folder as /run/frr."""
BGP, STATIC = ("bgp", "186"), ("static", "196")
"""The protocols of zebra's routes in the kernel, by name and by number."""
DAEMON_PATIENCE = 20.0
"""Seconds that a daemon may take to start."""


@dataclass(frozen=True, slots=True)
class RouteKey:
    """The packets that a route in the kernel is for."""

    prefix: str
    """The destination prefix."""
    table: str
    """The routing table."""


@dataclass(frozen=True, slots=True)
class RouteNextHop:
    """Where a route in the kernel sends packets."""

    interface: str
    """The interface; "" for a route that drops packets."""
    marked: bool
    """Whether the next hop is the neighbour's address for marked packets."""


NextHops = dict[RouteKey, Counter[RouteNextHop]]
"""The next hops of each route, with how many times each is listed."""


@dataclass(frozen=True, slots=True)
class StaticRoute:
    """A line `ip route …` or `ipv6 route …` of `frr.conf`."""

    key: RouteKey
    """The prefix and the table."""
    next_hop: RouteNextHop
    """Where it leads."""
    distance: int
    """The administrative distance; zebra uses the live routes of the least one."""

    @classmethod
    def read(cls, words: list[str], tracked: dict[str, RouteNextHop]) -> StaticRoute:
        """A route from the words of its line.

        Args:
            words: `ip route PREFIX GATEWAY [INTERFACE] [DISTANCE] [table TABLE]`.
            tracked: the next hops behind addresses that BGP keeps (`FrrRouter.tracked_next_hops`).
        """
        _, _, prefix, gateway, *options = words
        table = "main"
        if "table" in options:
            place = options.index("table")
            table, options = options[place + 1], options[:place]
        interface = "" if gateway == "reject" or not options else options[0]
        distance = next((int(word) for word in options if word.isdigit()), 1)
        next_hop = tracked.get(gateway) or RouteNextHop(interface, marked=False)
        return cls(RouteKey(prefix, table), next_hop, distance)


class FrrRouter(RouterProcesses):
    """The target frr: the daemons that its configuration is for, each with sockets of its own."""

    @property
    def learns(self) -> bool:
        """Whether BGP has routes, and not only addresses that static routes depend on."""
        return "bgpd" in self.other_daemons() and not self.tracked_next_hops()

    def begin(self) -> None:
        """Start the daemons one after the other, then load the configuration."""
        self.daemons.mkdir()
        shutil.chown(self.daemons, "frr", "frr")
        self.namespace.run("sh", str(self.files / "load.sh"))
        for daemon in (*self.first_daemons(), *self.other_daemons()):
            self.start_daemon(daemon)
        self.vtysh("-f", str(self.files / "frr.conf"))

    def ready(self, dead: set[str]) -> bool:
        """Whether the kernel has the routes that it can have while these interfaces are down.

        - BGP learns the routes: they are as compiled (`_has_compiled_routes`). While an interface
          is down, nothing is compared, because the compiled tables do not say what BGP learns then.
        - BFD takes addresses away that static routes depend on: each prefix and table has the live
          next hops of the least distance.
        - Neither: each static route is there. Its next hops are not compared, because FRR 8.4 loses
          some next hops whose interfaces come back.
        """
        if self.learns:
            return bool(dead) or self._has_compiled_routes()
        installed = self._installed_static(self.routes(STATIC))
        expected = self._expected_static(dead)
        if self.tracked_next_hops():
            return installed == expected
        return installed.keys() == expected.keys()

    def _has_compiled_routes(self) -> bool:
        """Whether the kernel has what BGP learns while all interfaces are up.

        Learned routes lead over the interfaces of the compiled tables. Packets that enter the
        fabric are looked up in another table, whose static routes share packets among next hops:
        each of its prefixes has as many next hops as in `frr.conf`.
        """
        held, compiled = self.routes((*STATIC, *BGP)), self._compiled_interfaces()
        # Where switches announce next hops, BGP also learns their addresses. No compiled route is
        # for these, so they are not compared.
        learned = {
            str(route["dst"]): _interfaces(route)
            for route in held
            if route["protocol"] in BGP and str(route["dst"]) in compiled
        }
        installed, expected = self._installed_static(held), self._expected_static(dead=set())
        return learned == compiled and _entering_counts(installed) == _entering_counts(expected)

    def next_hops(self, far: int) -> list[str]:
        """The addresses of another switch that its routes name, also for marked packets."""
        addresses = super().next_hops(far)
        if self.build.forwarding.marks:
            addresses.append(marked_address(far, 4))
        return addresses

    def set_interface(self, name: str, up: bool) -> None:
        """Take an interface down, or up again.

        FRR 8.4 does so itself, because it loses the link-local address of an interface that the
        kernel takes down. After the `shutdown` of FRR 10.3 an interface sends no more router
        advertisements, so its BGP session does not come back: the kernel does so there.
        """
        if _is_frr_10():
            self.namespace.run("ip", "link", "set", name, "up" if up else "down")
        else:
            command = "no shutdown" if up else "shutdown"
            self.vtysh("-c", "configure", "-c", f"interface {name}", "-c", command)

    def tracked_next_hops(self) -> dict[str, RouteNextHop]:
        """The next hop behind each address that BGP keeps only while its link is alive.

        Prefix lists name the addresses. For example, `ip prefix-list plain-eth1-ipv4 … 10.1.0.3/32`
        says that the next hop behind 10.1.0.3 is over eth1, and `marked-eth1-ipv4` that it is the
        neighbour's address for marked packets.
        """
        next_hops = {}
        for line in self._lines():
            if line[1:2] == ["prefix-list"]:
                kind, _, link = line[2].partition("-")
                if kind in ("plain", "marked"):
                    address, interface = line[-1].partition("/")[0], link.rpartition("-")[0]
                    next_hops[address] = RouteNextHop(interface, kind == "marked")
        return next_hops

    def _lines(self) -> list[list[str]]:
        """The words of each line of its configuration."""
        text = (self.files / "frr.conf").read_text()
        return [line.split() for line in text.splitlines()]

    @staticmethod
    def first_daemons() -> list[str]:
        """The daemons that every configuration needs, in the order of their start."""
        return ["mgmtd", "zebra", "staticd"] if _is_frr_10() else ["zebra", "staticd"]

    def other_daemons(self) -> list[str]:
        """The daemons for BFD and BGP, where its configuration has these."""
        text = (self.files / "frr.conf").read_text()
        daemons = {"bfdd": " bfd", "bgpd": "router bgp"}
        return [daemon for daemon, words in daemons.items() if words in text]

    def _expected_static(self, dead: set[str]) -> NextHops:
        """The next hops of its static routes over live interfaces, of the least distance only."""
        tracked = self.tracked_next_hops()
        by_distance: dict[RouteKey, dict[int, Counter[RouteNextHop]]] = {}
        for line in self._lines():
            if line[1:2] == ["route"]:
                route = StaticRoute.read(line, tracked)
                if route.next_hop.interface not in dead:
                    next_hops = by_distance.setdefault(route.key, {})
                    next_hops.setdefault(route.distance, Counter())[route.next_hop] += 1
        return {key: next_hops[min(next_hops)] for key, next_hops in by_distance.items()}

    def _installed_static(self, held: list[dict[str, Any]]) -> NextHops:
        """The next hops of its static routes among routes that the kernel holds.

        The addresses for marked packets are those in the route maps of BGP sessions:
        `route-map eth1-ipv4 permit 20` has the statement `set ipv6 next-hop local ADDRESS`.

        Args:
            held: the routes, as `ip -json` prints them.
        """
        marked = {line[-1] for line in self._lines() if line[:3] == ["set", "ipv6", "next-hop"]}
        installed: NextHops = {}
        for route in held:
            if route["protocol"] not in STATIC:
                continue
            key = RouteKey(str(route["dst"]), str(route.get("table", "main")))
            # Routes of other types, such as `unreachable`, drop packets: they have no next hop.
            drops = route.get("type", "unicast") != "unicast"
            hops: list[dict[str, Any]] = [{}] if drops else route.get("nexthops", [route])
            installed[key] = Counter()
            for hop in hops:
                # An IPv4 route with an IPv6 next hop has `via` in place of `gateway`.
                gateway = hop.get("gateway", hop.get("via", {}).get("host"))
                installed[key][RouteNextHop(hop.get("dev", ""), gateway in marked)] += 1
        return installed

    def _compiled_interfaces(self) -> dict[str, frozenset[str]]:
        """The interfaces of each prefix by the compiled tables.

        They are those of the minimal port, and of all alternates if paths are shared at every hop.
        The learned routes are compared with them, because BGP's best paths change until the last
        session is up.
        """
        vertex, plan, classes = self.vertex, self.build.addressing, self.build.tables.classes
        name = self.build.wiring.port_name
        ports = classes.port[vertex][:, None]
        if self.build.forwarding.every_hop:
            ports = np.column_stack((ports, classes.alternate[vertex]))
        by_class = [frozenset(name(vertex, port) for port in row if port) for row in ports.tolist()]
        by_prefix = {}
        for destination, egress in enumerate(self.build.tables.routes.egress[vertex].tolist()):
            if destination != vertex:
                by_prefix[str(plan.network(destination))] = by_class[egress]
                if plan.ipv6:
                    by_prefix[str(plan.network6(destination))] = by_class[egress]
        return by_prefix

    def start_daemon(self, daemon: str) -> None:
        """Start a daemon, and wait until it can be configured."""
        folder = self.daemons
        command = [*daemon_command(daemon, folder), "--log", f"file:{folder / daemon}.log"]
        quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
        self.namespace.spawn(command, stdin=subprocess.DEVNULL, **quiet)
        until((folder / f"{daemon}.vty").exists, f"{daemon} of {self.files.name}", DAEMON_PATIENCE)

    def vtysh(self, *words: str) -> None:
        """Give commands to the router's daemons."""
        self.namespace.run("vtysh", "--vty_socket", str(self.daemons), *words)


def _is_frr_10() -> bool:
    """Whether the machine has FRR 10, whose daemons are configured through mgmtd."""
    return (FRR / "mgmtd").exists()


def daemon_command(daemon: str, folder: Path) -> list[str]:
    """The command that starts a daemon of FRR which sees this folder as /run/frr.

    All daemons of a switch meet there, by sockets that differ from release to release.
    """
    in_folder = ["unshare", "--mount", "sh", "-c", IN_FOLDER, str(folder)]
    return [*in_folder, str(FRR / daemon), "--vty_port", "0"]


def _interfaces(route: dict[str, Any]) -> frozenset[str]:
    """The interfaces of a route in the kernel."""
    return frozenset(str(hop.get("dev")) for hop in route.get("nexthops", [route]))


def _entering_counts(routes: NextHops) -> dict[str, int]:
    """How many next hops each prefix has in the table of packets that enter the fabric."""
    return {
        key.prefix: hops.total() for key, hops in routes.items() if key.table == str(HOSTS_TABLE)
    }
