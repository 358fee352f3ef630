"""Load measurement: requests for port counters in turn, and the weight shifts that follow.

No I/O; time is a number that the caller gives.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from compilers.spec.share import share
from compilers.tables.build import Build
from compilers.tables.intermediate_form import Classes
from compilers.targets.openflow.protocol import Multipart
from controller.openflow.multipart import ports_wanted
from controller.switches.conversation import Answer
from controller.switches.session import LiveFabric
from controller.upkeep.balance import ShiftRule, Shifts, adapt
from controller.upkeep.meter import Meter

METER_PERIOD = 1.0
"""Seconds between two readings of a switch's counters, and between two evaluations of all."""


class Adaptation:
    """The loads of a build's ports, and the weight shifts that they caused.

    shifts: those in the tables, or in the change being sent.
    """

    def __init__(self, build: Build, clock: Callable[[], float], rate: float | None = None) -> None:
        wiring, classes = build.wiring, build.tables.classes
        threshold = share(build.policy.get("threshold", "2/3"), _q(build))
        self.rule = ShiftRule(threshold=float(threshold))
        self.meter = Meter(len(wiring.far), wiring.cables().shape[1] - 1, rate)
        self.shifts = Shifts.none(classes)
        self._clock = clock
        self._asked = np.full(len(wiring.far), -np.inf)
        self._looked = -np.inf

    def ask(self, switches: LiveFabric, now: float) -> None:
        """Request counters from the switches that are due."""
        for vertex in switches.in_sync:
            if now - self._asked[vertex] >= METER_PERIOD:
                self._asked[vertex] = now
                switches.ask(vertex, Multipart.PORT_STATS, ports_wanted(), self._told(vertex))

    def left(self, vertex: int) -> None:
        """A switch has left."""
        self.meter.left(vertex)
        self._asked[vertex] = -np.inf

    def step(self, classes: Classes, now: float) -> NDArray[np.int64] | None:
        """int64[m, 2], the switch and class of each new shift; None if none is due.

        Args:
            classes: with the compiled weights.
            now: the time.
        """
        if now - self._looked < METER_PERIOD:
            return None
        self._looked = now
        shifts, moves = adapt(self.rule, classes, self.shifts, self.meter.load, now)
        self.shifts = shifts
        return moves if len(moves) else None

    def _told(self, vertex: int) -> Answer:
        def told(body: bytes | None) -> None:
            if body is not None:
                self.meter.counters(vertex, body, self._clock())

        return told


def _q(build: Build) -> int:
    return int(build.topology.parameters.get("q", 2))
