"""The engines whose switches run in an inner process: their outer side, which a rehearsal calls.

The inner process is PID 1 of fresh namespaces. An engine here passes each call on to it as a
request, over a connection. `mininet_scenarios.engines.inner_child` answers the requests.
"""

from __future__ import annotations

import os
import signal
import subprocess
import time
from collections.abc import Sequence
from dataclasses import astuple, replace
from pathlib import Path
from typing import Any

from compilers.targets.routed.bgp.bgp_options import ROUTING
from compilers.targets.target_lookup import target
from mininet_scenarios.machine.netns import module_process
from mininet_scenarios.machine.preflight import namespaces
from mininet_scenarios.scenario.engine import (
    Diversion,
    Engine,
    EngineError,
    HostPair,
    HostSample,
    Progress,
    Setup,
    Step,
)
from mininet_scenarios.scenario.observations import (
    ControllerRepair,
    Counts,
    Exercise,
    FlowRates,
    Flows,
    PacketExchange,
    ProbePackets,
)
from mininet_scenarios.scenario.outage import Event

CHILD_PATIENCE = 20
"""Seconds that the inner process may take to leave before it is killed."""
LOG_CHARACTERS = 600
"""Most characters of the log's end that an error has."""


class InnerProcess:
    """One of our modules as PID 1 of fresh namespaces; it answers by `inner_child.serve`."""

    def __init__(self, module: str, setup: Setup) -> None:
        self.module, self.setup = module, setup
        self.log = setup.work / "inside.log"
        self.process: subprocess.Popen[bytes] | None = None
        """The process; None while it does not run. `start` sets `connection` with it."""

    def start(self) -> None:
        """Start it; `call` waits for it."""
        with self.log.open("w") as log:
            options: dict[str, Any] = {"stdout": log, "stderr": log, "start_new_session": True}
            self.process, self.connection = module_process(self.module, namespaces(), **options)
        # Without the builds, which are large: the inner process loads them from their folders.
        self.connection.send(replace(self.setup, builds=()))

    def call(self, name: str, *arguments: Any, progress: Progress | None = None) -> Any:
        """Send a request, and wait for its answer.

        Raises:
            EngineError: the request failed inside, or the inner process has ended.
        """
        if self.process is None:
            raise EngineError("the network is not up")
        try:
            self.connection.send((name, arguments))
            while True:
                kind, value = self.connection.recv()
                if kind == "error":
                    raise EngineError(value)
                if kind == "result":
                    return value
                if progress:
                    progress(*value)
        except (EOFError, OSError) as error:
            end_of_log = self.log.read_text(errors="replace").strip()[-LOG_CHARACTERS:]
            raise EngineError(f"the inner process has ended: {end_of_log}") from error

    def stop(self) -> None:
        """Let it exit, and everything in its namespaces with it; harmless if it never started."""
        process, self.process = self.process, None
        if process is None:
            return
        self.connection.close()
        try:
            process.wait(CHILD_PATIENCE)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


class InnerEngine(Engine):
    """An engine that passes its calls to a process in namespaces."""

    child: str
    """The module that runs in the namespaces."""
    start_text = "start {:,} switches with {:,} links, and their hosts"
    """The words of the step that starts the network, for numbers of switches and links."""

    def __init__(self, setup: Setup) -> None:
        self.build, self.setup = setup.build, setup
        self.hosts = HostSample.of(setup.build, setup.hosts)
        self.versions: tuple[int, ...] = (4, 6) if setup.build.addressing.ipv6 else (4,)
        self.inner = InnerProcess(f"{__package__}.{self.child}", setup)

    def now(self) -> float:
        """Seconds on the clock that all processes of a machine share."""
        return time.monotonic()

    def wait(self, seconds: float) -> None:
        """Sleep, unless that time has passed."""
        time.sleep(max(0.0, seconds))

    def divert(self, diversion: Diversion) -> None:
        """Put a wrong table in place: change a group, or the kernel's routes, of a switch."""
        self.inner.call("divert", *astuple(diversion))

    def restore(self) -> None:
        """Put the right table back."""
        self.inner.call("restore")

    def start(self, step: Step) -> None:
        """Start the inner process, and in it all the rest."""
        switches, links = self.build.tables.switches, self.build.topology.graph.size
        with step("start", self.start_text.format(switches, links)) as progress:
            self.inner.start()
            self.inner.call("start", progress=progress)
        programming = f"program {switches} switches through {self.setup.framework}"
        with step("program", programming) as progress:
            self.inner.call("settle", self.setup.patience, progress=progress)

    def exchange(self, counts: Counts, progress: Progress, version: int) -> PacketExchange:
        """Send packets inside."""
        exchanged: PacketExchange = self.inner.call("exchange", counts, version, progress=progress)
        return exchanged

    def apply(self, event: Event) -> None:
        """Let an event happen inside."""
        self.inner.call("apply", event)

    def settle(self, patience: float) -> str:
        """Wait for the controller, where one runs, and for the switches."""
        return str(self.inner.call("settle", patience))

    def repaired(self) -> ControllerRepair:
        """The last repair by the controller's status; an empty one without a controller."""
        if not self.controlled:
            return ControllerRepair()
        repair: ControllerRepair = self.inner.call("repaired")
        return repair

    def probe_start(self, pairs: Sequence[HostPair], interval: float) -> None:
        """Start the probe inside."""
        self.inner.call("probe_start", self.hosts.ends(pairs), interval)

    def probe_stop(self) -> ProbePackets:
        """End the probe inside, and return what it recorded."""
        probed: ProbePackets = self.inner.call("probe_stop")
        return probed

    def flow(self, flows: Flows, seconds: float) -> FlowRates:
        """Run flows inside: TCP by iperf3, UDP by a probe with large packets."""
        rates: FlowRates = self.inner.call("flow", flows, seconds)  # `MininetChild.flow`
        return rates

    def paths(self, pairs: Sequence[HostPair]) -> tuple[tuple[str, ...], ...]:
        """The switches that a packet of each pair of hosts passes, traced inside."""
        return tuple(map(tuple, self.inner.call("paths", self.hosts.ends(pairs).tolist())))

    def exercise(self, repairs: bool, progress: Progress) -> Exercise:
        """Send packets inside to every rule."""
        exercise: Exercise = self.inner.call("exercise", repairs, progress=progress)
        return exercise

    def stop(self, step: Step) -> None:
        """Let the inner process exit; everything ends with it."""
        if self.inner.process:
            with step("stop", "take everything down"):
                self.inner.stop()


class MininetEngine(InnerEngine):
    """Open vSwitch, Mininet and the controller, in namespaces of their own."""

    name, child = "mininet", "mininet_child"

    def prompt(self, terminal: str) -> None:
        """Let whoever sits at a terminal look around; Ctrl-C ends a command, not the network."""
        if self.inner.process is None:
            raise ValueError("the engine was not started")
        # Our child is the command `unshare`, whose only child is the inner process.
        unshare = self.inner.process.pid
        children = Path(f"/proc/{unshare}/task/{unshare}/children").read_text().split()
        inner = int(children[0])
        former = signal.signal(signal.SIGINT, lambda *_: os.kill(inner, signal.SIGINT))
        try:
            self.inner.call("prompt", terminal)
        finally:
            signal.signal(signal.SIGINT, former)


class FabricEngine(InnerEngine):
    """One Open vSwitch with a bridge per switch, and the controller, in namespaces of their own."""

    name, child = "ovs-fabric", "fabric_child"
    start_text = "start {:,} bridges with {:,} cables"


class RoutedEngine(InnerEngine):
    """Every switch is a network namespace whose kernel forwards; hosts as in Mininet's engine."""

    child = "routed_child"
    controlled = False

    def __init__(self, setup: Setup, name: str) -> None:
        """`name` is that of the engine and of the target."""
        super().__init__(setup)
        self.name = name

    def start(self, step: Step) -> None:
        """Render, start the inner process, and in it all the rest."""
        switches, links = self.build.tables.switches, self.build.topology.graph.size
        rendered = self.setup.work / self.name
        rendering = f"render {switches} configurations for {self.name}"
        if self.build.control.get(ROUTING) == "bgp":
            rendering += ", with static routes in place of eBGP"
        with step("render", rendering) as progress:
            # Every switch is a Linux kernel here, also one that has another system in the build.
            build = replace(self.build, systems=(), control={})
            target(self.name).render(build, rendered, progress=progress)
        starting = f"start {switches} routers with {links} links, and their hosts"
        with step("start", starting) as progress:
            self.inner.start()
            self.inner.call("start", self.name, rendered, progress=progress)
