"""The common part of engines whose switches run in an inner process: all but sending packets."""

from __future__ import annotations

import time
from dataclasses import astuple

import numpy as np
from numpy.typing import NDArray

from mininet_scenarios.machine.inner import InnerProcess, Job
from mininet_scenarios.scenario.engine import (
    BuildChange,
    ControllerChange,
    Diversion,
    Engine,
    Event,
    LinkChange,
    Miswire,
    NodeChange,
    Probed,
    Progress,
    Setup,
    Step,
)
from mininet_scenarios.scenario.exercise import Exercise
from mininet_scenarios.traffic.probing import decode


class InnerEngine(Engine):
    """An engine that asks the process of a module inside to do what it is asked itself."""

    def __init__(self, setup: Setup, child: str) -> None:
        self.build, self.setup = setup.build, setup
        self.versions: tuple[int, ...] = (4, 6) if setup.build.addressing.ipv6 else (4,)
        self.inner = InnerProcess(f"{__package__}.{child}", Job.of(setup))

    def now(self) -> float:
        """Seconds on the clock that all processes of a machine share."""
        return time.monotonic()

    def wait(self, seconds: float) -> None:
        """Sleep."""
        time.sleep(seconds)

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

    def exercise(self, repairs: bool, tolerance: float | None, progress: Progress) -> Exercise:
        """Send packets inside to every rule."""
        return Exercise.read(self.inner.call("exercise", repairs, tolerance, progress=progress))

    def stop(self, step: Step) -> None:
        """Let the inner process leave; everything goes with it."""
        if self.inner.running:
            with step("stop", "take everything down"):
                self.inner.stop()
