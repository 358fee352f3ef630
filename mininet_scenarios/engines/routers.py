"""Rendered configurations on Linux kernels: a network namespace per switch and host, and cables.

It must run in namespaces of its own (`inner_child`); the kernel clears up.
"""

from __future__ import annotations

import json
import shutil
import subprocess
import time
from abc import ABC, abstractmethod
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from ipaddress import IPv6Address
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from compilers.tables.build import Build
from compilers.targets.routed.kernel_marks import marked_address
from compilers.targets.routed.linux_tables import ENTER
from compilers.targets.routed.static_routes import LINK_LOCAL
from mininet_scenarios.engines.inner_child import HostAddresses
from mininet_scenarios.machine.netns import batch, entered, run, until
from mininet_scenarios.scenario.engine import EngineError, HostSample

ROUTES_PATIENCE = 60.0


class Space:
    """A network namespace, and what runs there. It ends with the process that made it."""

    def __init__(self) -> None:
        command = ["unshare", "--net", "sh", "-c", "echo; exec sleep infinity"]
        self.process = subprocess.Popen(command, stdout=subprocess.PIPE)
        if self.process.stdout is None:
            raise ValueError("a process without standard output")
        self.process.stdout.readline()
        self.pid = self.process.pid
        self.inside = ["nsenter", "-t", str(self.pid), "-n"]

    def run(self, *command: str, **options: Any) -> str:
        """What a command prints there."""
        return run(*self.inside, *command, **options)

    def read(self, file: str) -> list[list[str]]:
        """The words of each line of a file of /proc/net there."""
        lines = Path(f"/proc/{self.pid}/net/{file}").read_text(encoding="ascii").splitlines()
        return [line.split() for line in lines]

    def spawn(self, command: list[str], **options: Any) -> subprocess.Popen[Any]:
        """Start a command there."""
        return subprocess.Popen([*self.inside, *command], **options)


FRR = Path("/usr/lib/frr")
End = tuple[str, bool]
"""The interface of a next hop, and whether it is one for marked packets."""
NextHops = dict[tuple[str, str], Counter[End]]
"""By prefix and table."""
OURS, BGP, STATIC = ("80",), ("bgp", "186"), ("static", "196")
"""The protocols of routes in the kernel: ours, and zebra's for static routes and BGP."""
ROUTER_PATIENCE = 20.0


class RouterProcesses(ABC):
    """A switch as a router in its network namespace."""

    def __init__(
        self, space: Space, build: Build, vertex: int, rendered: Path, daemons: Path
    ) -> None:
        self.space, self.build, self.vertex = space, build, vertex
        name = build.wiring.names[vertex]
        self.files, self.daemons = rendered / name, daemons / name

    @property
    def learns(self) -> bool:
        """Whether its routes depend on those of others."""
        return False

    def next_hops(self, far: int) -> list[str]:
        """The addresses by which it finds another switch, for marked packets, too."""
        link_local = str(IPv6Address(LINK_LOCAL + far + 1))
        addresses = [link_local, str(self.build.addressing.gateway(far))]
        return [*addresses, marked_address(far, 6)] if self.build.forwarding.marks else addresses

    @abstractmethod
    def begin(self) -> None:
        """Configure it from its rendered files."""

    @abstractmethod
    def ready(self, dead: set[str]) -> bool:
        """Whether the kernel has its routes, while these interfaces are down."""

    @abstractmethod
    def set_interface(self, name: str, up: bool) -> None:
        """Take one of its interfaces down, or up again."""

    def routes(self, protocols: tuple[str, ...]) -> list[dict[str, Any]]:
        """The routes of these protocols in the kernel, as `ip -json` has them."""
        routes = []
        for family in ("-4", "-6"):
            shown = self.space.run(
                "ip", family, "-details", "-json", "route", "show", "table", "all"
            )
            routes += [route for route in json.loads(shown) if route["protocol"] in protocols]
        return routes

    def _over(self, dead: set[str], protocols: tuple[str, ...]) -> bool:
        return any(route.get("dev") in dead for route in self.routes(protocols))


class LinuxRouter(RouterProcesses):
    """The target linux: `load.sh watch`, as its systemd unit has it."""

    def begin(self) -> None:
        """Start `load.sh`, which loads everything, and loads routes again when links come up."""
        self.space.spawn(
            ["sh", str(self.files / "load.sh"), "watch"],
            stdin=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )

    def ready(self, dead: set[str]) -> bool:
        """Whether the kernel has all routes of the file, while all links are up."""
        if dead:
            return not self._over(dead, OURS)
        wanted = (self.files / "routes.batch").read_text().count("route rep")
        return len(self.routes(OURS)) == wanted

    def set_interface(self, name: str, up: bool) -> None:
        """Take an interface down, or up again, in the kernel."""
        self.space.run("ip", "link", "set", name, "up" if up else "down")


class FrrRouter(RouterProcesses):
    """The target frr: zebra, staticd, and what else its configuration is for."""

    @property
    def learns(self) -> bool:
        """Whether BGP has routes, and not only addresses that static routes depend on."""
        return "bgpd" in self._more() and not self._tracked()

    def begin(self) -> None:
        """Start the daemons one after the other, then load the configuration."""
        self.daemons.mkdir()
        shutil.chown(self.daemons, "frr", "frr")
        self.space.run("sh", str(self.files / "load.sh"))
        for daemon in ("zebra", "staticd", *self._more()):
            self._start(daemon)
        self._vtysh("-f", str(self.files / "frr.conf"))

    def ready(self, dead: set[str]) -> bool:
        """BGP: as compiled; static: the nearest live next hops of each prefix and table by BFD.

        With BGP static routes share what enters: every next hop of each is there. Without BFD a
        static route is there, with whatever next hops: FRR 8.4 loses some that come back.
        """
        held, wanted = self._held(), self._static(dead)
        if self.learns:
            learned = {str(route["dst"]): _devices(route) for route in self.routes(BGP)}
            compiled = self._compiled()
            right = {dst: dev for dst, dev in learned.items() if dst in compiled} == compiled
            return bool(dead) or (right and _shares(held) == _shares(wanted))
        return held == wanted if self._tracked() else held.keys() == wanted.keys()

    def next_hops(self, far: int) -> list[str]:
        """The addresses by which it finds another switch, for marked IPv4 packets, too."""
        addresses = super().next_hops(far)
        return [*addresses, marked_address(far, 4)] if self.build.forwarding.marks else addresses

    def _tracked(self) -> dict[str, End]:
        """The ends of links that BGP keeps an address for; none without such."""
        lists = (line for line in self._lines() if line[1:2] == ["prefix-list"])
        return {
            line[-1].partition("/")[0]: (name.rpartition("-")[0], kind == "marked")
            for line in lists
            for kind, _, name in [line[2].partition("-")]
            if kind in ("plain", "marked")
        }

    def set_interface(self, name: str, up: bool) -> None:
        """Take an interface down, or up again, in zebra, which has its addresses."""
        word = "no shutdown" if up else "shutdown"
        self._vtysh("-c", "configure", "-c", f"interface {name}", "-c", word)

    def _lines(self) -> list[list[str]]:
        """The words of each line of its configuration."""
        return list(map(str.split, (self.files / "frr.conf").read_text().splitlines()))

    def _more(self) -> list[str]:
        text = (self.files / "frr.conf").read_text()
        words = (("bfdd", " bfd"), ("bgpd", "router bgp"))
        return [daemon for daemon, word in words if word in text]

    def _static(self, dead: set[str]) -> NextHops:
        """The next hops of its static routes: the nearest ones over interfaces that work."""
        tracked = self._tracked()
        by_route: dict[tuple[str, str], dict[int, Counter[End]]] = {}
        for _, _, prefix, hop, *rest in (line for line in self._lines() if line[1:2] == ["route"]):
            near, table = rest, "main"
            if "table" in rest:
                near, table = rest[: rest.index("table")], rest[rest.index("table") + 1]
            end = tracked.get(hop) or ("" if hop == "reject" else "".join(near[:1]), False)
            if end[0] not in dead:
                far = next((int(word) for word in near if word.isdigit()), 1)
                by_route.setdefault((prefix, table), {}).setdefault(far, Counter())[end] += 1
        return {route: by_distance[min(by_distance)] for route, by_distance in by_route.items()}

    def _held(self) -> NextHops:
        """The next hops of its static routes in the kernel."""
        marked = {line[-1] for line in self._lines() if line[:3] == ["set", "ipv6", "next-hop"]}
        routes: NextHops = {}
        for route in self.routes(STATIC):
            refused = route.get("type", "unicast") != "unicast"
            hops = [{}] if refused else route.get("nexthops", [route])
            routes[str(route["dst"]), str(route.get("table", "main"))] = Counter(
                (hop.get("dev", ""), hop.get("gateway", hop.get("via", {}).get("host")) in marked)
                for hop in hops
            )
        return routes

    def _compiled(self) -> dict[str, frozenset[str]]:
        """{prefix: interfaces} of the tables: best paths change until the last session is up."""
        v, plan, classes = self.vertex, self.build.addressing, self.build.tables.classes
        ports = np.column_stack(
            (classes.port[v], classes.alternate[v] * self.build.forwarding.every_hop)
        )
        egress = self.build.tables.routes.egress[v].tolist()
        name = self.build.wiring.port_name
        by_class = [frozenset(name(v, port) for port in row if port) for row in ports.tolist()]
        through = {d: by_class[k] for d, k in enumerate(egress) if d != v}
        by_prefix = {str(plan.network(d)): interfaces for d, interfaces in through.items()}
        if plan.ipv6:
            by_prefix |= {str(plan.network6(d)): interfaces for d, interfaces in through.items()}
        return by_prefix

    def _start(self, daemon: str) -> None:
        folder = self.daemons
        command = [str(FRR / daemon), "-z", str(folder / "zserv.api"), "--vty_socket", str(folder)]
        command += ["-i", str(folder / f"{daemon}.pid"), "--vty_port", "0"]
        command += ["--log", f"file:{folder / daemon}.log"]
        if daemon == "bfdd":
            command += ["--bfdctl", str(folder / "bfdd.sock")]
        quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
        self.space.spawn(command, stdin=subprocess.DEVNULL, **quiet)
        until((folder / f"{daemon}.vty").exists, f"{daemon} of {self.files.name}", ROUTER_PATIENCE)

    def _vtysh(self, *words: str) -> None:
        self.space.run("vtysh", "--vty_socket", str(self.daemons), *words)


def _devices(route: dict[str, Any]) -> frozenset[str]:
    """The interfaces of a route in the kernel."""
    return frozenset(str(hop.get("dev")) for hop in route.get("nexthops", [route]))


def _shares(routes: NextHops) -> dict[str, int]:
    """{prefix: next hops} of the table of entering packets."""
    return {prefix: hops.total() for (prefix, table), hops in routes.items() if table == str(ENTER)}


ROUTER_KINDS: dict[str, type[RouterProcesses]] = {"linux": LinuxRouter, "frr": FrrRouter}
"""By target."""


SILENCE = 1.0
"""Seconds without any packet, after which links count as quiet."""
IFA_F_TENTATIVE = 0x40
"""Of an address: whether the kernel still asks if another one has it (linux/if_addr.h)."""
NAMESPACES_AT_ONCE = 4
"""Routers that are started at the same time."""
LASTING = {"base_reachable_time_ms": 36_000_000, "delay_first_probe_time": 0}
"""Neighbours ask for each other at once, and know each other for hours: questions are packets."""


class Routers(HostAddresses):
    """The switches of a build as routers, with the hosts that take part; `hosts[i]` is the i-th."""

    def __init__(
        self, build: Build, rendered: Path, target: str, who: HostSample, daemons: Path
    ) -> None:
        """Get ready.

        Args:
            build: with ports named as Linux names them (`targets.interfaces.LINUX.named`).
            rendered: the folder that `target` was rendered in.
            target: of `ROUTER_KINDS`.
            who: the hosts that take part.
            daemons: a folder that daemons of any user can write to, beneath which theirs go.
        """
        super().__init__(build, who)
        self.switches = [Space() for _ in build.wiring.names]
        self.hosts = [Space() for _ in range(len(who))]
        self.routers: list[RouterProcesses] = [
            ROUTER_KINDS[target](space, build, vertex, rendered, daemons)
            for vertex, space in enumerate(self.switches)
        ]
        self.down: set[tuple[int, int]] = set()
        self.unsettled = set(range(len(self.switches)))
        self.unmet = set(map(tuple, np.argwhere(build.wiring.far >= 0).tolist()))

    def start(self) -> None:
        """Cable and configure everything; returns when every router has all its routes.

        Raises:
            EngineError: the kernel refused an interface, or a router does not get its routes.
        """
        batch(self._cables())
        for space in [*self.switches, *self.hosts]:
            with entered(space.pid):
                _remember_neighbours()
        with ThreadPoolExecutor(NAMESPACES_AT_ONCE) as several:
            list(several.map(lambda router: router.begin(), self.routers))
        for i, host in enumerate(self.hosts):
            batch(self.setup(i), *host.inside, "ip")
        for space in [*self.switches, *self.hosts]:
            until(partial(_all_known, space), "addresses of its own", ROUTES_PATIENCE)
        self.lladdrs = [_lladdrs(space) for space in self.switches]
        self._meet()
        self.settle()

    def settle(self, patience: float = ROUTES_PATIENCE) -> None:
        """Wait until every router has the routes that it can have with the links that are up."""
        learning = any(router.learns for router in self.routers)
        for vertex in range(len(self.routers)) if learning else sorted(self.unsettled):
            dead = {self.name(v, k) for v, k in self.down if v == vertex}
            what = f"routes of {self.build.wiring.names[vertex]}"
            until(partial(self.routers[vertex].ready, dead), what, patience)
        self.unsettled.clear()
        self._meet()

    def sent(self) -> NDArray[np.int64]:
        """int64[S, K]: packets that have left each switch by its k-th link."""
        port = self.build.wiring.port
        loads = np.zeros(port.shape, np.int64)
        for vertex, space in enumerate(self.switches):
            sent = {words[0].rstrip(":"): int(words[10]) for words in space.read("dev")[2:]}
            for link in np.flatnonzero(port[vertex]).tolist():
                loads[vertex, link] = sent[self.name(vertex, link)]
        return loads

    def quieten(self) -> None:
        """Wait until no link carries anything: kernels and daemons announce themselves at first.

        Raises:
            EngineError: something goes on talking.
        """
        limit, before = time.monotonic() + ROUTES_PATIENCE, self.sent()
        while time.monotonic() < limit:
            time.sleep(SILENCE)
            now = self.sent()
            if (now == before).all():
                return
            before = now
        raise EngineError(f"the links are not quiet after {ROUTES_PATIENCE:g} s")

    def set_link(self, vertex: int, link: int, up: bool) -> None:
        """Take a switch's end of its k-th link down, or up again."""
        self.routers[vertex].set_interface(self.name(vertex, link), up)
        (self.down.discard if up else self.down.add)((vertex, link))
        self.unmet.add((vertex, link))
        self.unsettled.add(vertex)

    def name(self, vertex: int, link: int) -> str:
        """The interface of a switch's k-th link."""
        return self.build.wiring.port_name(vertex, int(self.build.wiring.port[vertex, link]))

    def _cables(self) -> list[str]:
        wiring, lines = self.build.wiring, []
        for near, port, far, far_port in wiring.each_cable():
            interface, far_interface = wiring.port_name(near, port), wiring.port_name(far, far_port)
            lines.append(_veth(self.switches[near], interface, self.switches[far], far_interface))
        taking_part = zip(self.who.switch.tolist(), self.who.number.tolist(), strict=True)
        who = {end: i for i, end in enumerate(taking_part)}
        for vertex, number in np.argwhere(wiring.host_port > 0).tolist():
            switch, i = self.switches[vertex], who.get((vertex, number))
            name = wiring.port_name(vertex, int(wiring.host_port[vertex, number]))
            host = (switch, f"no-{name}") if i is None else (self.hosts[i], "eth0")
            mac = "" if i is None else f" address {self.mac(i)}"
            lines.append(_veth(switch, name, *host) + mac)
        return lines

    def _meet(self) -> None:
        """Let routers know the addresses at the other ends of links: no packet has to ask for them.

        Permanent ones are not counted in the kernel's table, one for all namespaces (gc_thresh3).
        """
        met, lines = self.unmet - self.down, dict[int, list[str]]()
        self.unmet &= self.down
        wiring = self.build.wiring
        for v, k in sorted(met):
            far = int(wiring.far[v, k])
            far_interface = wiring.port_name(far, int(wiring.far_port[v, k]))
            lladdrs = self.lladdrs[far]
            neighbours = dict.fromkeys(self.routers[v].next_hops(far), lladdrs[far_interface, ""])
            neighbours |= {
                address: lladdr
                for (interface, address), lladdr in lladdrs.items()
                if interface == far_interface and address
            }
            lines.setdefault(v, []).extend(
                f"neigh replace {address} lladdr {lladdr} dev {self.name(v, k)} nud permanent"
                for address, lladdr in neighbours.items()
            )
        for v, commands in lines.items():
            batch(commands, *self.switches[v].inside, "ip")


def _remember_neighbours() -> None:
    """Have the kernel remember neighbours in this network namespace for hours."""
    for neighbours in Path("/proc/sys/net").glob("ipv[46]/neigh/*"):
        for setting, value in LASTING.items():
            (neighbours / setting).write_text(str(value))


def _lladdrs(space: Space) -> dict[tuple[str, str], str]:
    """The Ethernet address of each interface and IP address; "" stands for any other address.

    The addresses of a macvlan, which takes marked packets, are listed at the interface below it.
    """
    lladdrs = {}
    for link in json.loads(space.run("ip", "-json", "address")):
        interface = str(link.get("link") or link["ifname"])
        for entry in link["addr_info"]:
            lladdrs[interface, entry["local"]] = str(link["address"])
        if interface == link["ifname"]:
            lladdrs[interface, ""] = str(link["address"])
    return lladdrs


def _all_known(space: Space) -> bool:
    """Whether no address there is tentative any more."""
    return not any(int(words[4], 16) & IFA_F_TENTATIVE for words in space.read("if_inet6"))


def _veth(space: Space, name: str, other_space: Space, other_name: str) -> str:
    peer = f"peer name {other_name} netns {other_space.pid}"
    return f"link add name {name} netns {space.pid} type veth {peer}"
