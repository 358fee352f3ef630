"""The inner process of an engine: every public method is a request of the outer process.

It is PID 1 of fresh process and network namespaces. Its connection ends when the outer process is
done or dead. Then the inner process exits, and the kernel removes every process, interface and
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
from dataclasses import dataclass
from functools import partial
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
from mininet_scenarios.ovs.counters import sent_by_port
from mininet_scenarios.ovs.openvswitch import OpenVSwitchError, PrivateOvs
from mininet_scenarios.ovs.ovsfabric import OvsFabric, bridge_name
from mininet_scenarios.scenario.engine import EngineError, HostSample, Progress, Setup
from mininet_scenarios.scenario.observations import (
    ControllerRepair,
    Counts,
    Exercise,
    PacketExchange,
    ProbePackets,
)
from mininet_scenarios.scenario.outage import BuildChange, ControllerChange, Event
from mininet_scenarios.scenario.timeline_events import as_cabled
from mininet_scenarios.traffic.probing import (
    PROBE_PORT,
    ROUND_PORT,
    ProbeProcess,
    Prober,
    UdpProber,
)
from mininet_scenarios.traffic.rule_exercise import RuleExercise

RUN = Path("/run")
"""A file system is mounted here, so that sockets and databases vanish with the namespaces."""
OPEN_FILES = 16384
"""The limit of open files. Open vSwitch needs a few for each port. mnexec closes every file that
could be open, so a larger limit would slow it down.
"""
REMOVAL = 5
"""Seconds in which a folder is removed, again and again while something writes to it."""
DISABLE_IPV6 = Path("/proc/sys/net/ipv6/conf/all/disable_ipv6")
"""1 in this file keeps the kernel from sending IPv6 packets by itself, as router solicitations."""
Requests = SimpleQueue[tuple[str, tuple[Any, ...]]]
"""The requests that wait: the name of a method, and its arguments."""


def prepare() -> None:
    """Set up the fresh namespaces: RUN, the loopback interface, and no IPv6 of the kernel's own."""
    run("mount", "-t", "tmpfs", "tmpfs", str(RUN))
    run("ip", "link", "set", "lo", "up")
    DISABLE_IPV6.write_text("1")


def serve(make: Callable[[Setup, Progress], Any]) -> None:
    """Answer the requests of the outer process until the connection, standard input, ends.

    Args:
        make: makes the object whose methods are the requests.
    """
    connection = Connection(os.dup(0))
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
    open_files = min(resource.getrlimit(resource.RLIMIT_NOFILE)[1], OPEN_FILES)
    resource.setrlimit(resource.RLIMIT_NOFILE, (open_files, open_files))
    setup = connection.recv()
    requests: Requests = SimpleQueue()
    reader = Thread(target=_read_requests, args=(connection, requests, setup), daemon=True)
    reader.start()
    try:
        child = make(setup, lambda *done: connection.send(("progress", done)))
        while True:
            name, arguments = requests.get()
            try:
                connection.send(("result", getattr(child, name)(*arguments)))
            except (EngineError, OpenVSwitchError, OSError, subprocess.SubprocessError) as error:
                connection.send(("error", str(error)))
    finally:
        # If the outer process is dead, the reader removes the folder, and then ends this process.
        reader.join(REMOVAL)


def _read_requests(connection: Connection, requests: Requests, setup: Setup) -> None:
    """Put requests into the queue. At the end of the connection, exit: that takes all down."""
    with suppress(EOFError, OSError):
        while True:
            requests.put(connection.recv())
    limit = time.monotonic() + REMOVAL
    while setup.temporary and setup.work.exists() and time.monotonic() < limit:
        shutil.rmtree(setup.work, ignore_errors=True)
    os._exit(0)


class HostAddresses:
    """The addresses of the hosts that take part, by their numbers in `sample`."""

    hosts: list[Any]
    """The process of each host in its namespace."""

    def __init__(self, build: Build, sample: HostSample) -> None:
        self.build, self.sample = build, sample

    def address(self, host: int, version: int) -> str:
        """The address of a host, of version 4 or 6 of the Internet protocol."""
        plan = self.build.addressing
        switch, number = int(self.sample.switch[host]), int(self.sample.number[host])
        return str(plan.host(switch, number) if version == 4 else plan.host6(switch, number))

    def ends(self, version: int = 4) -> list[tuple[int, str]]:
        """A process in the namespace of each host, and the host's address."""
        return [(host.pid, self.address(i, version)) for i, host in enumerate(self.hosts)]

    def mac(self, host: int) -> str:
        """The Ethernet address of a host."""
        return self.build.addressing.mac(
            int(self.sample.switch[host]), int(self.sample.number[host])
        )

    def neighbour_mac(self, host: int) -> str:
        """The Ethernet address at which other hosts of its switch reach a host."""
        return self.mac(host)

    def ip_commands(self, host: int) -> list[str]:
        """The lines for `ip -batch` that configure a host.

        Hosts of one switch get permanent neighbour entries for each other. Entries of all network
        namespaces share one table of the kernel, and only permanent ones do not count against its
        limit (gc_thresh3). Hosts find the gateway by ARP and neighbour discovery.
        """
        plan, vertex = self.build.addressing, int(self.sample.switch[host])
        lines = ["link set lo up", "link set eth0 up"]
        lines.append(f"address add {self.address(host, 4)}/{plan.ipv4_length} dev eth0")
        lines.append(f"route add default via {plan.gateway(vertex)}")
        if plan.ipv6:
            lines.append(f"address add {self.address(host, 6)}/64 dev eth0 nodad")
            lines.append(f"route add default via {plan.network6(vertex)[1]}")
        for neighbour in np.flatnonzero(self.sample.switch == vertex).tolist():
            if neighbour != host:
                mac = self.neighbour_mac(neighbour)
                for version in (4, 6) if plan.ipv6 else (4,):
                    address = self.address(neighbour, version)
                    lines.append(f"neigh replace {address} lladdr {mac} dev eth0 nud permanent")
        return lines


class InnerChild(ABC):
    """A build with the hosts that take part, and a probe between them."""

    network: HostAddresses
    """The network of the hosts."""

    def __init__(self, setup: Setup, progress: Progress) -> None:
        self.setup, self.progress = setup, progress
        self.build = load(setup.folders[setup.cabled])
        """The build that the switches are cabled by."""
        self.vertex = {name: v for v, name in enumerate(self.build.wiring.names)}
        self.hosts = HostSample.of(self.build, setup.hosts)
        self.probe: ProbeProcess | None = None
        """The probe that runs, or the last one."""

    @abstractmethod
    def apply(self, event: Event) -> None:
        """Let an event happen."""

    def exchange(self, counts: Counts, version: int) -> PacketExchange:
        """Send packets from host to host, int64[H, H], and see which arrive."""
        before = self.loads()
        pairs = np.repeat(np.argwhere(counts), counts[counts > 0], axis=0)
        # In random order, so that packets of all hosts are under way at the same time.
        pairs = np.random.default_rng(1).permutation(pairs)
        hops = self.prober(pairs, version, is_probe=False)().run_round(self.progress)
        return PacketExchange.of(pairs, hops, len(self.hosts), self.loads() - before)

    @abstractmethod
    def loads(self) -> NDArray[np.int64]:
        """Packets that have left each switch by each port to another, int64[S, ports + 1]."""

    def prober(
        self, pairs: NDArray[np.int64], version: int, is_probe: bool
    ) -> Callable[[], Prober]:
        """A function that makes the `Prober` which sends UDP packets over pairs of hosts.

        Args:
            pairs: int64[n, 2], the sending and the receiving hosts.
            version: of the Internet protocol.
            is_probe: whether the packets are those of a probe, not of a round.
        """
        port = PROBE_PORT if is_probe else ROUND_PORT
        return partial(UdpProber, self.network.ends(version), pairs.tolist(), port)

    def probe_start(self, pairs: NDArray[np.int64], interval: float) -> None:
        """Start a probe over pairs of hosts, int64[n, 2]."""
        self.probe = ProbeProcess(interval, self.prober(pairs, 4, is_probe=True))

    def probe_stop(self) -> ProbePackets:
        """End the probe, and return what it recorded."""
        if self.probe is None:
            raise ValueError("no probe was started")
        return self.probe.stop()


@dataclass(frozen=True, slots=True)
class DivertedGroup:
    """A group that `OpenFlowChild.divert` has changed."""

    bridge: str
    """The bridge of the switch."""
    original: str
    """The group as it was before, as `ovs-ofctl` prints and takes it."""


class OpenFlowChild(InnerChild):
    """Switches of a private Open vSwitch, programmed by the controller."""

    fabric: OvsFabric
    """The bridges of the switches."""

    def __init__(self, setup: Setup, progress: Progress) -> None:
        super().__init__(setup, progress)
        self.ovs = PrivateOvs(RUN / "ovs", logs=setup.work)
        self.controller = ControllerProcess(setup)
        self.diverted: DivertedGroup | None = None
        """The group that `divert` has changed and `restore` has not put back."""

    @abstractmethod
    def frames_of_hosts(self) -> Any:
        """The object that sends and receives frames as hosts do; the caller closes it."""

    def loads(self) -> NDArray[np.int64]:
        """Packets that have left each switch, by the bridges' counters, int64[S, ports + 1]."""
        return self.sent("packets")

    def sent(self, unit: str) -> NDArray[np.int64]:
        """The `packets` or `bytes` that have left each switch by each port, int64[S, ports + 1]."""
        # A hash that chooses among alternates works through cached flows, which are counted late.
        if self.build.tables.classes.alternate.shape[2]:
            self.ovs.refresh_cached_flows()
        switches = {bridge_name(v): v for v in self.fabric.powered()}
        return sent_by_port(self.ovs.folder, switches, self.build.wiring, unit)

    def divert(self, switch: str, egress: int, port: int) -> None:
        """Make packets of one class leave a switch by a wrong port, to see the checks notice it.

        The controller is stopped meanwhile: it reads switches back, and would correct this one.

        Raises:
            EngineError: there is no group that this would change.
        """
        # The group for transit of class 0 has the number 1.
        bridge, group_id = bridge_name(self.vertex[switch]), f"group_id={egress + 1},"
        groups = self.ovs.ofctl("dump-groups", bridge).splitlines()
        original = next((line.strip() for line in groups if group_id in line), "")
        # An action of a bucket, such as `output:3` or `output:"s4-eth3"`.
        changed = re.sub(r"output:\"?[^,\"]+\"?", f"output:{port}", original)
        if changed == original:
            raise EngineError(f"switch {switch} has no group of egress class {egress} to change")
        self.controller.pause()
        self.diverted = DivertedGroup(bridge, original)
        self._change_group(bridge, changed)

    def restore(self) -> None:
        """Undo the last `divert`."""
        if self.diverted:
            self._change_group(self.diverted.bridge, self.diverted.original)
            self.diverted = None
        self.controller.resume()

    def _change_group(self, bridge: str, group: str) -> None:
        """Change a group, and wait until no cached flow leads packets by the old group."""
        self.ovs.ofctl("mod-group", bridge, group)
        self.ovs.refresh_cached_flows()

    def apply(self, event: Event) -> None:
        """Kill or start the controller, let it move the fabric, or change cables and power."""
        match event:
            case ControllerChange(running, round):
                self.controller.kill(round)
                if running:
                    self.controller.start()
            case BuildChange(build):
                self.controller.move(self.setup.folders[build])
            case _:
                self.fabric.apply_outage(self.fabric.outage.after(event))

    def exercise(self, repairs: bool) -> Exercise:
        """Let packets reach every rule of the live build (`RuleExercise`), from host to host.

        No controller runs while ports are taken away: it would change the rules.
        """
        live = as_cabled(self.controller.build, self.build)
        is_stopped = repairs and self.setup.repair and self.controller.process is not None
        if is_stopped:
            self.controller.kill()
        with closing(self.frames_of_hosts()) as ends:
            hosts = HostSample.of(live, self.setup.hosts)
            exercise = RuleExercise(live, hosts, ends, self.fabric, self.progress)
            result = exercise.run(repairs)
        if is_stopped:
            self.controller.start()
            self.settle(self.setup.patience)
        return result

    def repaired(self) -> ControllerRepair:
        """The last repair, as the controller reports it."""
        return self.controller.repaired()

    def settle(self, patience: float) -> str:
        """Wait until switches with power have their programs, and packets follow all changes."""
        datapath_id, outage = self.build.wiring.datapath_id, self.fabric.outage
        unpowered = {int(datapath_id[self.vertex[name]]) for name in outage.switches}
        refusal = self.controller.settle(unpowered, outage.links_around, patience, self.progress)
        self.fabric.settle()
        return refusal
