"""An engine in the numbers of a build, when the cabled build is another, larger one."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from compilers.tables.build import Build
from mininet_scenarios.scenario.engine import (
    Carried,
    Counts,
    Diversion,
    Engine,
    Event,
    Flows,
    LinkChange,
    Miswire,
    NodeChange,
    Observation,
    Probed,
    Progress,
    Step,
)
from mininet_scenarios.scenario.exercise import Exercise
from mininet_scenarios.scenario.numbering import Numbering, renumbered


class View(Engine):
    """An engine (`Engine`) in a build's own numbers of switches, hosts."""

    def __init__(self, engine: Engine, ground: Build, build: Build, most: int | None) -> None:
        """`ground` is what the engine has cabled; `most` of each switch's hosts take part."""
        self.engine, self.ground, self.most = engine, ground, most
        self.name, self.versions = engine.name, engine.versions
        self.numbers = Numbering.of(build, ground, most)

    def of(self, build: Build) -> View:
        """The same engine as another build sees it."""
        return View(self.engine, self.ground, build, self.most)

    def start(self, step: Step) -> None:
        """Start the engine."""
        self.engine.start(step)

    def send(self, counts: Counts, progress: Progress, version: int = 4) -> Observation:
        """Between the build's hosts."""
        seen = self.engine.send(self.numbers.spread(counts, 0), progress, version)
        numbers = self.numbers
        return Observation(
            replies=numbers.gather(seen.replies),
            shortest=numbers.gather(seen.shortest),
            longest=numbers.gather(seen.longest),
            loads=numbers.rows(seen.loads),
        )

    def divert(self, diversion: Diversion) -> None:
        """At the switch of the build."""
        switch = int(self.numbers.vertex[diversion.switch])
        self.engine.divert(replace(diversion, switch=switch))

    def restore(self) -> None:
        """Put the right table back."""
        self.engine.restore()

    def now(self) -> float:
        """The engine's clock."""
        return self.engine.now()

    def wait(self, seconds: float) -> None:
        """On that clock."""
        self.engine.wait(seconds)

    def apply(self, event: Event) -> None:
        """At switches of the build."""
        if isinstance(event, LinkChange | NodeChange | Miswire):
            event = renumbered(event, self.numbers.vertex)
        self.engine.apply(event)

    def settle(self, patience: float) -> str:
        """Wait for switches and controller."""
        return self.engine.settle(patience)

    def probe_start(self, pairs: NDArray[np.int64], interval: float) -> None:
        """Between the build's hosts."""
        self.engine.probe_start(self.numbers.hosts[pairs], interval)

    def probe_stop(self) -> Probed:
        """Pairs are numbered as they were given."""
        return self.engine.probe_stop()

    def carry(self, flows: Flows, seconds: float, progress: Progress) -> Carried:
        """Between the build's hosts."""
        ends = (self.numbers.hosts[end] for end in (flows.source, flows.destination))
        source, destination = ends
        there = replace(flows, source=source, destination=destination)
        found = self.engine.carry(there, seconds, progress)
        return Carried(found.rate, self.numbers.rows(found.loads))

    def paths(self, pairs: NDArray[np.int64]) -> tuple[tuple[int, ...], ...]:
        """By switches of the build."""
        found = self.engine.paths(self.numbers.hosts[pairs])
        return tuple(tuple(int(self.numbers.vertex_of[v]) for v in path) for path in found)

    def exercise(self, repairs: bool, tolerance: float | None, progress: Progress) -> Exercise:
        """Of the build that is live."""
        return self.engine.exercise(repairs, tolerance, progress)

    def stop(self, step: Step) -> None:
        """Take everything down."""
        self.engine.stop(step)
