"""Rendered configurations on Linux kernels: a network namespace per switch and host, and cables.

It must run in namespaces of its own (`mininet_scenarios.machine.serving`); the kernel clears up.
"""

from __future__ import annotations

import json
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from compilers.tables.build import Build
from mininet_scenarios.engines.host_addresses import HostAddresses
from mininet_scenarios.engines.router_kinds import ROUTER_KINDS, RouterProcesses
from mininet_scenarios.engines.router_space import ROUTES_PATIENCE, Space, run, until
from mininet_scenarios.machine.netns import entered
from mininet_scenarios.scenario.engine import EngineError, HostSample
from mininet_scenarios.traffic.pinging import ping_all

SILENCE = 1.0
"""Seconds without any packet, after which links count as quiet."""
IFA_F_TENTATIVE = 0x40
"""Of an address: whether the kernel still asks if another one has it (linux/if_addr.h)."""
NAMESPACES_AT_ONCE = 4
"""Routers that are started at the same time."""
MEETING_AT_ONCE = 16
"""Routers that ask for their neighbours before these are kept."""
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
        run("ip", "-batch", "-", text="\n".join(self._cables()))
        for space in [*self.switches, *self.hosts]:
            with entered(space.pid):
                _remember_neighbours()
        with ThreadPoolExecutor(NAMESPACES_AT_ONCE) as several:
            list(several.map(lambda router: router.begin(), self.routers))
        for i, host in enumerate(self.hosts):
            host.run("ip", "-batch", "-", text="\n".join(self.setup(i)))
        for space in [*self.switches, *self.hosts]:
            until(lambda space=space: not any(map(_tentative, space.read("if_inet6"))), "DAD")  # type: ignore[misc]
        self.settle()

    def settle(self, patience: float = ROUTES_PATIENCE) -> None:
        """Wait until every router has the routes that it can have with the links that are up."""
        learning = any(router.learns for router in self.routers)
        for vertex in range(len(self.routers)) if learning else sorted(self.unsettled):
            router, dead = (
                self.routers[vertex],
                {self.name(v, k) for v, k in self.down if v == vertex},
            )
            what = f"routes of {self.build.wiring.names[vertex]}"
            until(lambda router=router, dead=dead: router.ready(dead), what, patience)  # type: ignore[misc]
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
        for u, here, v, there in wiring.each_cable():
            near, far = wiring.port_name(u, here), wiring.port_name(v, there)
            lines.append(_veth(self.switches[u], near, self.switches[v], far))
        taking_part = zip(self.who.switch.tolist(), self.who.number.tolist(), strict=True)
        who = {end: i for i, end in enumerate(taking_part)}
        for vertex, number in np.argwhere(wiring.host_port > 0).tolist():
            switch, i = self.switches[vertex], who.get((vertex, number))
            port = wiring.port_name(vertex, int(wiring.host_port[vertex, number]))
            host = (switch, f"no-{port}") if i is None else (self.hosts[i], "eth0")
            lines.append(_veth(switch, port, *host))
        return lines

    def _meet(self) -> None:
        """Let new neighbours ask for each other now: a packet's way must not begin with that."""
        met = self.unmet - self.down
        self.unmet &= self.down
        far = self.build.wiring.far
        meeting = sorted({v for v, _ in met})
        for start in range(0, len(meeting), MEETING_AT_ONCE):
            vertices = meeting[start : start + MEETING_AT_ONCE]
            asked = [
                ((self.switches[v].pid, self.name(v, k)), address)
                for v, k in sorted(met)
                if v in vertices
                for address in self.routers[v].next_hops(int(far[v, k]))
            ]
            for is_v6 in (True, False):
                some = [each for each in asked if (":" in each[1]) == is_v6]
                if some:
                    places, addresses = zip(*some, strict=True)
                    ping_all(places, addresses, [(i, i, 1) for i in range(len(some))], _silent)
            for vertex in vertices:
                _keep_neighbours(self.switches[vertex])


def _remember_neighbours() -> None:
    """In this network namespace."""
    for known in Path("/proc/sys/net").glob("ipv[46]/neigh/*"):
        for setting, value in LASTING.items():
            (known / setting).write_text(str(value))


def _keep_neighbours(space: Space) -> None:
    """Permanent ones are not counted in the kernel's table, one for all namespaces (gc_thresh3)."""
    known = json.loads(space.run("ip", "-json", "neigh", "show", "nud", "reachable"))
    form = "neigh replace {dst} lladdr {lladdr} dev {dev} nud permanent".format_map
    space.run("ip", "-batch", "-", text="\n".join(map(form, known)))


def _silent(done: int, total: int) -> None:
    """Progress of what takes no time."""


def _tentative(address: list[str]) -> bool:
    return bool(int(address[4], 16) & IFA_F_TENTATIVE)


def _veth(here: Space, name: str, there: Space, other: str) -> str:
    return f"link add name {name} netns {here.pid} type veth peer name {other} netns {there.pid}"
