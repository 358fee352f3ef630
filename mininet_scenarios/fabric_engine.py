"""The engine `ovs-fabric`, seen from outside: real Open vSwitch at real size, without hosts."""

from __future__ import annotations

from dataclasses import astuple
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from mininet_scenarios.engine import (
    BuildChange,
    ControllerChange,
    Counts,
    Diversion,
    Event,
    LinkChange,
    Miswire,
    NodeChange,
    Observation,
    Probed,
    Progress,
    RealTime,
    Setup,
    Step,
)
from mininet_scenarios.inner import InnerProcess, Job
from mininet_scenarios.probing import decode


class FabricEngine(RealTime):
    """One Open vSwitch with a bridge a switch, and the controller, in namespaces of their own."""

    name = "ovs-fabric"

    def __init__(self, setup: Setup) -> None:
        self.build, self.setup = setup.build, setup
        self.versions: tuple[int, ...] = (4, 6) if setup.build.addressing.ipv6 else (4,)
        self.inner = InnerProcess("mininet_scenarios.fabric_inside", Job.of(setup))

    def start(self, step: Step) -> None:
        """Start the inner process, and in it all the rest."""
        switches, links = self.build.tables.switches, self.build.topology.graph.size
        with step("start", f"start {switches:,} bridges with {links:,} cables") as told:
            self.inner.start()
            self.inner.call("start", progress=told)
        with step("program", f"program {switches} switches through {self.setup.framework}") as told:
            self.inner.call("program", self.setup.patience, progress=told)

    def send(self, counts: Counts, progress: Progress, version: int = 4) -> Observation:
        """Let the collectors send, and answer what arrives."""
        file = Path(self.inner.job.logs) / "round.npz"
        with file.open("wb") as out:
            np.save(out, counts)
        self.inner.call("send", str(file), version, progress=progress)
        with np.load(file) as seen:
            observation = Observation(**seen)
        file.unlink()
        return observation

    def divert(self, diversion: Diversion) -> None:
        """Change a group of a switch."""
        self.inner.call("divert", *astuple(diversion))

    def restore(self) -> None:
        """Put the group back."""
        self.inner.call("restore")

    def apply(self, event: Event) -> None:
        """Let it happen inside."""
        match event:
            case LinkChange(links, up):
                self.inner.call("links", links, up)
            case NodeChange(switches, up):
                self.inner.call("nodes", switches, up)
            case Miswire(one, other, repaired):
                self.inner.call("swap", one, other, repaired)
            case ControllerChange(running, round):
                self.inner.call("run_controller", running, round)
            case BuildChange(folder):
                self.inner.call("move", str(folder.resolve()))
            case _:
                super().apply(event)

    def settle(self, patience: float) -> str:
        """Wait for the controller, where one runs, and for the switches."""
        return str(self.inner.call("settle", patience))

    def probe_start(self, pairs: NDArray[np.int64], interval: float) -> None:
        """Send inside."""
        self.inner.call("probe_start", pairs.tolist(), interval)

    def probe_stop(self) -> Probed:
        """What was heard inside."""
        return decode(self.inner.call("probe_stop"))

    def paths(self, pairs: NDArray[np.int64]) -> tuple[tuple[int, ...], ...]:
        """As Open vSwitch traces them."""
        return tuple(map(tuple, self.inner.call("paths", pairs.tolist())))

    def stop(self, step: Step) -> None:
        """Let the inner process leave; everything goes with it."""
        if self.inner.running:
            with step("stop", "take everything down"):
                self.inner.stop()
