"""A switch that an engine runs as a router in its network namespace, from a target's files.

`RouterProcesses` is the interface of every kind of router to `routers.Routers`. `LinuxRouter` is
the kind without any routing daemon; `frr_router.FrrRouter` runs FRR's daemons.
"""

from __future__ import annotations

import json
import subprocess
from abc import ABC, abstractmethod
from ipaddress import IPv6Address
from pathlib import Path
from typing import Any

from compilers.tables.build import Build
from compilers.targets.routed.kernel_marks import marked_address
from compilers.targets.routed.static_routes import LINK_LOCAL
from mininet_scenarios.machine.network_namespace import NetworkNamespace

LOADED_PROTOCOLS = ("80",)
"""The protocol numbers (`ip route … proto 80`) of routes that the rendered `load.sh` puts into the
kernel."""
ROUTE_COMMAND = "route rep"
"""The beginning of each line of `routes.batch` that adds a route: `route replace 10.0.0.0/26 …`."""


class RouterProcesses(ABC):
    """A switch as a router in its network namespace."""

    def __init__(
        self,
        namespace: NetworkNamespace,
        build: Build,
        vertex: int,
        rendered: Path,
        daemons: Path,
    ) -> None:
        """A router that has not begun.

        Args:
            namespace: the network namespace of the switch.
            build: the build, with ports named as Linux names them.
            vertex: the switch.
            rendered: the folder that the target was rendered in, with a folder for each node.
            daemons: a folder for what daemons write, with a folder for each node.
        """
        self.namespace, self.build, self.vertex = namespace, build, vertex
        name = build.wiring.names[vertex]
        self.files, self.daemons = rendered / name, daemons / name

    @property
    def learns(self) -> bool:
        """Whether it runs a routing protocol, so that its routes depend on other routers."""
        return False

    def next_hops(self, far: int) -> list[str]:
        """The addresses of another switch that its routes name, also for marked packets."""
        link_local = str(IPv6Address(LINK_LOCAL + far + 1))
        addresses = [link_local, str(self.build.addressing.gateway(far))]
        if self.build.forwarding.marks:
            addresses.append(marked_address(far, 6))
        return addresses

    @abstractmethod
    def begin(self) -> None:
        """Configure it from its rendered files."""

    @abstractmethod
    def ready(self, dead: set[str]) -> bool:
        """Whether the kernel has all routes that do not use these interfaces, which are down."""

    @abstractmethod
    def set_interface(self, name: str, up: bool) -> None:
        """Take one of its interfaces down, or up again."""

    def routes(self, protocols: tuple[str, ...]) -> list[dict[str, Any]]:
        """The routes of these protocols in all tables of the kernel, as `ip -json` prints them."""
        command = ("-details", "-json", "route", "show", "table", "all")
        return [
            route
            for family in ("-4", "-6")
            for route in json.loads(self.namespace.run("ip", family, *command))
            if route["protocol"] in protocols
        ]


class LinuxRouter(RouterProcesses):
    """The target linux: `load.sh watch`, as its systemd unit runs it."""

    def begin(self) -> None:
        """Start `load.sh`, which loads all routes, and loads them again when links come up."""
        self.namespace.spawn(
            ["sh", str(self.files / "load.sh"), "watch"],
            stdin=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )

    def ready(self, dead: set[str]) -> bool:
        """Whether the kernel has all routes of `routes.batch`; with dead links, none over them."""
        routes = self.routes(LOADED_PROTOCOLS)
        if dead:
            return not any(route.get("dev") in dead for route in routes)
        return len(routes) == (self.files / "routes.batch").read_text().count(ROUTE_COMMAND)

    def set_interface(self, name: str, up: bool) -> None:
        """Take an interface down, or up again, in the kernel."""
        self.namespace.run("ip", "link", "set", name, "up" if up else "down")
