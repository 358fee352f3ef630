"""Router software of each target, and the check that its routes are installed."""

from __future__ import annotations

import json
import shutil
import subprocess
import time
from abc import ABC, abstractmethod
from collections import Counter
from ipaddress import IPv6Address
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from compilers.tables.build import Build
from compilers.targets.routed.kernel_marks import marked_address
from compilers.targets.routed.linux_tables import ENTER
from compilers.targets.routed.static_routes import LINK_LOCAL
from mininet_scenarios.scenario.engine import EngineError

if TYPE_CHECKING:
    from mininet_scenarios.engines.router_space import Space

FRR = Path("/usr/lib/frr")
OURS, BGP, STATIC = ("80",), ("bgp", "186"), ("static", "196")
FRRS = (*STATIC, *BGP)
"""The protocols of routes in the kernel: ours, and zebra's for static routes and BGP."""
ROUTER_PATIENCE = 20.0
ROUTER_POLL = 0.02


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
        known = [str(IPv6Address(LINK_LOCAL + far + 1)), str(self.build.addressing.gateway(far))]
        return known + [marked_address(far, 6)] * self.build.marks

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
        found = []
        for family in ("-4", "-6"):
            shown = self.space.run(
                "ip", family, "-details", "-json", "route", "show", "table", "all"
            )
            found += [route for route in json.loads(shown) if route["protocol"] in protocols]
        return found

    def _over(self, dead: set[str], protocols: tuple[str, ...]) -> bool:
        return any(route.get("dev") in dead for route in self.routes(protocols))


class LinuxRouter(RouterProcesses):
    """The target linux: `load.sh watch`, as its systemd unit has it."""

    def begin(self) -> None:
        """It loads everything, and stays to load routes again when links come up."""
        self.space.spawn(
            ["sh", str(self.files / "load.sh"), "watch"],
            stdin=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )

    def ready(self, dead: set[str]) -> bool:
        """With all links up: the kernel has all routes of the file."""
        if dead:
            return not self._over(dead, OURS)
        wanted = (self.files / "routes.batch").read_text().count("route rep")
        return len(self.routes(OURS)) == wanted

    def set_interface(self, name: str, up: bool) -> None:
        """By the kernel."""
        self.space.run("ip", "link", "set", name, "up" if up else "down")


class FrrRouter(RouterProcesses):
    """The target frr: zebra, staticd, and what else its configuration is for."""

    @property
    def learns(self) -> bool:
        """By BGP, unless that keeps next hops of static routes alone."""
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
        """Static: a route for each prefix and table with one over a live link; BGP: as compiled.

        With BGP static routes share what enters: every way of each is there.
        """
        if self.learns:
            found = {str(route["dst"]): _devices(route) for route in self.routes(BGP)}
            compiled = self._compiled()
            right = {dst: dev for dst, dev in found.items() if dst in compiled} == compiled
            return bool(dead) or (right and self.shares() == self._shares())
        return len(self.routes(STATIC)) == len(self._static(dead))

    def next_hops(self, far: int) -> list[str]:
        """BGP knows the addresses already: it has spoken to them."""
        if self._tracked():
            return [marked_address(far, 6)] * self.build.marks
        marked = [marked_address(far, 4)] * self.build.marks
        return [] if self.learns else super().next_hops(far) + marked

    def _tracked(self) -> dict[str, str]:
        """The interfaces of the addresses that BGP keeps for links; none without such."""
        words = map(str.split, (self.files / "frr.conf").read_text().splitlines())
        lists = [line for line in words if line[1:2] == ["prefix-list"]]
        return {
            line[-1].partition("/")[0]: line[2].split("-", 1)[1].rpartition("-")[0]
            for line in lists
            if line[2].startswith(("plain-", "marked-"))
        }

    def set_interface(self, name: str, up: bool) -> None:
        """By zebra, which has its addresses."""
        word = "no shutdown" if up else "shutdown"
        self._vtysh("-c", "configure", "-c", f"interface {name}", "-c", word)

    def _more(self) -> list[str]:
        text = (self.files / "frr.conf").read_text()
        words = (("bfdd", " bfd"), ("bgpd", "router bgp"))
        return [daemon for daemon, word in words if word in text]

    def shares(self) -> dict[str, int]:
        """{prefix: ways} of the table of entering packets in the kernel."""
        entering = [r for r in self.routes(FRRS) if str(r.get("table")) == str(ENTER)]
        return {str(route["dst"]): len(route.get("nexthops", [0])) for route in entering}

    def _shares(self) -> dict[str, int]:
        """The same by its configuration."""
        lines = map(str.split, (self.files / "frr.conf").read_text().splitlines())
        return Counter(line[2] for line in lines if line[-2:] == ["table", str(ENTER)])

    def _static(self, dead: set[str]) -> set[tuple[str, str]]:
        """The prefixes and tables of its static routes over other interfaces."""
        lines = map(str.split, (self.files / "frr.conf").read_text().splitlines())
        routes = [line for line in lines if line[:2] in (["ip", "route"], ["ipv6", "route"])]
        dead = dead | {address for address, port in self._tracked().items() if port in dead}
        return {
            (line[2], line[line.index("table") + 1] if "table" in line else "main")
            for line in routes
            if dead.isdisjoint(line)
        }

    def _compiled(self) -> dict[str, frozenset[str]]:
        """{prefix: interfaces} of the tables: best paths change until the last session is up."""
        v, plan, classes = self.vertex, self.build.addressing, self.build.tables.classes
        ports = np.column_stack((classes.port[v], classes.alternate[v] * self.build.every_hop))
        egress = self.build.tables.routes.egress[v].tolist()
        name = self.build.wiring.port_name
        by_class = [frozenset(name(v, port) for port in row if port) for row in ports.tolist()]
        through = {d: by_class[k] for d, k in enumerate(egress) if d != v}
        found = {str(plan.network(d)): interfaces for d, interfaces in through.items()}
        if plan.ipv6:
            found |= {str(plan.network6(d)): interfaces for d, interfaces in through.items()}
        return found

    def _start(self, daemon: str) -> None:
        folder = self.daemons
        command = [str(FRR / daemon), "-z", str(folder / "zserv.api"), "--vty_socket", str(folder)]
        command += ["-i", str(folder / f"{daemon}.pid"), "--vty_port", "0"]
        command += ["--log", f"file:{folder / daemon}.log"]
        command += ["--bfdctl", str(folder / "bfdd.sock")] * (daemon == "bfdd")
        quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
        self.space.spawn(command, stdin=subprocess.DEVNULL, **quiet)
        limit = time.monotonic() + ROUTER_PATIENCE
        while not (folder / f"{daemon}.vty").exists():
            if time.monotonic() > limit:
                raise EngineError(f"{daemon} of {self.files.name} does not come up")
            time.sleep(ROUTER_POLL)

    def _vtysh(self, *words: str) -> None:
        self.space.run("vtysh", "--vty_socket", str(self.daemons), *words)


def _devices(route: dict[str, Any]) -> frozenset[str]:
    """The interfaces of a route in the kernel."""
    return frozenset(str(hop.get("dev")) for hop in route.get("nexthops", [route]))


ROUTER_KINDS: dict[str, type[RouterProcesses]] = {"linux": LinuxRouter, "frr": FrrRouter}
"""By target."""
