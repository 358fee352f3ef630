"""The inner process of an engine: every public method is a request of the outer process.

It is PID 1 of fresh process and network namespaces. When its connection ends, because the outer
process is done or dead, it leaves, and the kernel with it removes every process, interface and
namespace.
"""

from __future__ import annotations

import os
import re
import resource
import shutil
import subprocess
import time
from abc import ABC, abstractmethod
from collections.abc import Callable
from contextlib import closing, suppress
from multiprocessing.connection import Connection
from pathlib import Path
from queue import SimpleQueue
from threading import Thread
from typing import Any

import numpy as np
from numpy.typing import NDArray

from compilers.tables.build import Build
from compilers.tables.folders.build_folder import load
from mininet_scenarios.machine.netns import run
from mininet_scenarios.ovs.controller_process import ControllerProcess
from mininet_scenarios.ovs.management_socket import sent_by_port
from mininet_scenarios.ovs.openvswitch import OpenVSwitchError, PrivateOvs
from mininet_scenarios.ovs.ovsfabric import OvsFabric, bridge_name
from mininet_scenarios.scenario.engine import (
    BuildChange,
    ControllerChange,
    ControllerRepair,
    Counts,
    EngineError,
    Event,
    Exercise,
    HostSample,
    Probed,
    Progress,
    Setup,
    tally,
)
from mininet_scenarios.scenario.timeline_events import as_cabled
from mininet_scenarios.traffic.probing import (
    PROBE_PORT,
    ROUND_PORT,
    ProbeProcess,
    UdpProber,
)
from mininet_scenarios.traffic.rule_exercise import RuleExercise

RUN = Path("/run")
"""A file system of our own is mounted here: sockets and databases vanish with the namespaces."""
OPEN_FILES = 16384
"""Open vSwitch needs a few a port; mnexec closes each that there could be, so not more."""
REMOVAL = 5
"""Seconds in which a folder is removed, again and again while something writes to it."""
DISABLE_IPV6 = Path("/proc/sys/net/ipv6/conf/all/disable_ipv6")
"""Keeps the kernel from sending router solicitations and the like over interfaces of its own."""


def prepare() -> None:
    """Make the fresh namespaces a place to work in: RUN, the loopback interface, silence."""
    run("mount", "-t", "tmpfs", "tmpfs", str(RUN))
    run("ip", "link", "set", "lo", "up")
    DISABLE_IPV6.write_text("1")


def serve(make: Callable[[Setup, Progress], Any]) -> None:
    """Answer requests until the connection ends: each is a method of what `make` makes."""
    end = Connection(os.dup(0))
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
    most = min(resource.getrlimit(resource.RLIMIT_NOFILE)[1], OPEN_FILES)
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))
    setup = end.recv()
    requests: SimpleQueue[tuple[str, tuple[Any, ...]]] = SimpleQueue()
    reader = Thread(target=_read_requests, args=(end, requests, setup), daemon=True)
    reader.start()
    try:
        inside = make(setup, lambda *done: end.send(("progress", done)))
        while True:
            name, arguments = requests.get()
            try:
                end.send(("result", getattr(inside, name)(*arguments)))
            except (EngineError, OpenVSwitchError, OSError, subprocess.SubprocessError) as error:
                end.send(("error", str(error)))
    finally:
        reader.join(REMOVAL)  # if the outer process is dead; the end of this one cuts that short


def _read_requests(
    end: Connection, requests: SimpleQueue[tuple[str, tuple[Any, ...]]], setup: Setup
) -> None:
    """Pass requests on; at their end leave at once, and take everything down by that."""
    with suppress(EOFError, OSError):
        while True:
            requests.put(end.recv())
    limit = time.monotonic() + REMOVAL
    while setup.temporary and setup.work.exists() and time.monotonic() < limit:
        shutil.rmtree(setup.work, ignore_errors=True)
    os._exit(0)


class HostAddresses:
    """Hosts by their numbers in `who`."""

    hosts: list[Any]
    """The process of each host in its namespace."""

    def __init__(self, build: Build, who: HostSample) -> None:
        self.build, self.who = build, who

    def address(self, host: int, version: int) -> str:
        """The address of a host, of version 4 or 6 of the Internet protocol."""
        plan, at = self.build.addressing, (int(self.who.switch[host]), int(self.who.number[host]))
        return str(plan.host(*at) if version == 4 else plan.host6(*at))

    def ends(self, version: int = 4) -> list[tuple[int, str]]:
        """A process in the namespace of each host, and the host's address."""
        return [(host.pid, self.address(i, version)) for i, host in enumerate(self.hosts)]

    def mac(self, host: int) -> str:
        """The Ethernet address of a host."""
        return self.build.addressing.mac(int(self.who.switch[host]), int(self.who.number[host]))

    def neighbour_mac(self, host: int) -> str:
        """The Ethernet address at which other hosts of its switch reach a host."""
        return self.mac(host)

    def setup(self, host: int) -> list[str]:
        """What `ip -batch` configures in a host.

        Hosts of one switch get permanent neighbour entries for each other. Entries of all network
        namespaces share one table of the kernel, and only permanent ones do not count against its
        limit (gc_thresh3). The gateway is asked for by ARP and neighbour discovery.
        """
        plan, vertex = self.build.addressing, int(self.who.switch[host])
        lines = ["link set lo up", "link set eth0 up"]
        lines.append(f"address add {self.address(host, 4)}/{plan.ipv4_length} dev eth0")
        lines.append(f"route add default via {plan.gateway(vertex)}")
        if plan.ipv6:
            lines.append(f"address add {self.address(host, 6)}/64 dev eth0 nodad")
            lines.append(f"route add default via {plan.network6(vertex)[1]}")
        for other in np.flatnonzero(self.who.switch == vertex).tolist():
            if other != host:
                for version in (4, 6) if plan.ipv6 else (4,):
                    neighbour = f"{self.address(other, version)} lladdr {self.neighbour_mac(other)}"
                    lines.append(f"neigh replace {neighbour} dev eth0 nud permanent")
        return lines


class InnerChild(ABC):
    """A build with the hosts that take part, and a probe over them."""

    network: HostAddresses

    def __init__(self, setup: Setup, progress: Progress) -> None:
        self.setup, self.progress = setup, progress
        self.build = load(setup.folders[setup.cabled])
        self.vertex = {name: v for v, name in enumerate(self.build.wiring.names)}
        self.hosts = HostSample.of(self.build, setup.hosts)
        self.probe: ProbeProcess | None = None

    @abstractmethod
    def apply(self, event: Event) -> None:
        """Let an event happen."""

    def exchange(self, counts: Counts, version: int) -> tuple[Counts, ...]:
        """What came of packets from host to host, and what left each port meanwhile."""
        before = self.loads()
        pairs = np.repeat(np.argwhere(counts), counts[counts > 0], axis=0)
        pairs = np.random.default_rng(1).permutation(pairs)  # all hosts have some under way
        make, *arguments = self.job(pairs, version, probe=False)
        hops = make(*arguments).once(self.progress)
        return *tally(pairs, hops, len(self.hosts)), self.loads() - before

    @abstractmethod
    def loads(self) -> NDArray[np.int64]:
        """int64[S, ports + 1]: packets that have left each switch by each port to another."""

    def job(self, pairs: NDArray[np.int64], version: int, probe: bool) -> tuple[Any, ...]:
        """The class that sends UDP packets over pairs of hosts, int64[n, 2], and its arguments."""
        port = PROBE_PORT if probe else ROUND_PORT
        return UdpProber, self.network.ends(version), pairs.tolist(), port

    def probe_start(self, pairs: NDArray[np.int64], interval: float) -> None:
        """Start a probe over pairs of hosts."""
        self.probe = ProbeProcess(interval, *self.job(pairs, 4, probe=True))

    def probe_stop(self) -> Probed:
        """End the probe, and tell what it saw."""
        if self.probe is None:
            raise ValueError("no probe was started")
        return self.probe.stop()


class OpenFlowChild(InnerChild):
    """Switches of a private Open vSwitch, programmed by the controller."""

    fabric: OvsFabric

    def __init__(self, setup: Setup, progress: Progress) -> None:
        super().__init__(setup, progress)
        self.ovs = PrivateOvs(RUN / "ovs", logs=setup.work)
        self.controller = ControllerProcess(setup)
        self.right: tuple[str, str] | None = None

    @abstractmethod
    def host_ends(self) -> Any:
        """What sends and gets frames as hosts do; to be closed."""

    def loads(self) -> NDArray[np.int64]:
        """int64[S, ports + 1]: packets that left each switch, by the bridges' counters."""
        return self.sent("packets")

    def sent(self, what: str) -> NDArray[np.int64]:
        """int64[S, ports + 1]: `packets` or `bytes` that have left each switch by each port."""
        # With alternates hashed: through cached flows, counted late.
        if self.build.tables.classes.alternate.shape[2]:
            self.ovs.appctl("revalidator/wait")
        switches = {bridge_name(v): v for v in self.fabric.powered()}
        return sent_by_port(self.ovs.folder, switches, self.build.wiring, what)

    def divert(self, switch: str, egress: int, port: int) -> None:
        """Make one class of a switch leave by another port, in the switch itself.

        The controller is stopped meanwhile: it reads switches back, and would correct this one.

        Raises:
            EngineError: there is no group that this would change.
        """
        bridge, group = bridge_name(self.vertex[switch]), f"group_id={egress + 1},"
        groups = self.ovs.ofctl("dump-groups", bridge).splitlines()
        right = next((line.strip() for line in groups if group in line), "")
        wrong = re.sub(r"output:\"?[^,\"]+\"?", f"output:{port}", right)
        if right == wrong:
            raise EngineError(f"switch {switch} has no group of egress class {egress} to change")
        self.controller.pause()
        self.right = bridge, right
        self._change_group(bridge, wrong)

    def restore(self) -> None:
        """Undo the last `divert`."""
        if self.right:
            self._change_group(*self.right)
            self.right = None
        self.controller.resume()

    def _change_group(self, bridge: str, group: str) -> None:
        """Returns when packets follow the change: flows cached under the old group are gone."""
        self.ovs.ofctl("mod-group", bridge, group)
        self.ovs.appctl("revalidator/wait")

    def apply(self, event: Event) -> None:
        """The controller is killed, in a round of a move too, started, or moves the fabric."""
        match event:
            case ControllerChange(running, round):
                self.controller.kill(round)
                if running:
                    self.controller.start()
            case BuildChange(build):
                self.controller.move(self.setup.folders[build])
            case _:
                self.fabric.suffer(self.fabric.outage.after(event))

    def exercise(self, repairs: bool) -> Exercise:
        """Let packets reach every rule of the live build (`RuleExercise`), from host to host.

        No controller runs while ports are taken away: it would change the rules.
        """
        live = as_cabled(self.controller.build, self.build)
        absent = repairs and self.setup.repair and self.controller.process is not None
        if absent:
            self.controller.kill()
        with closing(self.host_ends()) as ends:
            hosts = HostSample.of(live, self.setup.hosts)
            exercise = RuleExercise(live, hosts, ends, self.fabric, self.progress)
            done = exercise.run(repairs)
        if absent:
            self.controller.start()
            self.settle(self.setup.patience)
        return done

    def repaired(self) -> ControllerRepair:
        """What the controller tells of its last repair."""
        return self.controller.repaired()

    def settle(self, patience: float) -> str:
        """Wait until switches with power have their programs, and packets follow all changes."""
        identity = self.build.wiring.datapath_id
        dark = {int(identity[self.vertex[name]]) for name in self.fabric.outage.switches}
        refused = self.controller.settle(
            dark, self.fabric.outage.links_around, patience, self.progress
        )
        self.ovs.appctl("revalidator/wait")
        return refused
