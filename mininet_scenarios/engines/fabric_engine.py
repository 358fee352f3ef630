"""The engine `ovs-fabric`, from outside: real Open vSwitch at full size, without hosts."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from mininet_scenarios.engines.inner_engine import InnerEngine
from mininet_scenarios.scenario.engine import Counts, Observation, Progress, Setup, Step


class FabricEngine(InnerEngine):
    """One Open vSwitch with a bridge per switch, and the controller, in namespaces of their own."""

    name = "ovs-fabric"

    def __init__(self, setup: Setup) -> None:
        super().__init__(setup, "fabric_child")

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

    def paths(self, pairs: NDArray[np.int64]) -> tuple[tuple[int, ...], ...]:
        """As Open vSwitch traces them."""
        return tuple(map(tuple, self.inner.call("paths", pairs.tolist())))
