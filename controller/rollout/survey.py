"""A survey: what a fabric holds is read from its switches where no record tells.

A switch names the build that it holds by its marker. Until all have been read, or time is up since
the first was, nothing is changed. Then the build that most of them name is the fabric's, if it is
kept; else that of the folder. No I/O but reading the build.
"""

from __future__ import annotations

from collections import Counter
from math import inf

from compilers.targets.openflow.flow_tables import COOKIE_SHIFT
from controller.rollout.mover import Mover
from controller.rollout.shared_record import Record
from controller.switches.events import BuildSurveyed

SURVEY_PATIENCE = 30.0
"""Seconds after the first reading after which the switches that have been read decide."""


class Survey:
    """A survey of the mover's fabric; create it before switches connect."""

    def __init__(self, mover: Mover) -> None:
        self.mover, self.fabric = mover, mover.fabric
        self._found: dict[int, str] = {}
        self._until = inf
        self.fabric.survey = self.read
        self.fabric.ticks.append(self._tick)

    def read(self, vertex: int, marker: int | None) -> None:
        """A switch was read, and has the marker with this cookie."""
        if not self._found:
            self._until = self.fabric.clock() + SURVEY_PATIENCE
        self._found[vertex] = "" if marker is None else f"{marker % (1 << COOKIE_SHIFT):012x}"

    def _tick(self) -> None:
        fabric, history = self.fabric, self.mover.history
        if fabric.survey is None:
            return
        if len(self._found) < fabric.expected and fabric.clock() < self._until:
            return
        fabric.survey = None
        own = fabric.identity
        there = {one[:12]: one for one in [*(history.kept() if history else ()), own]}
        votes = Counter(there[name] for name in self._found.values() if name in there)
        build = votes.most_common(1)[0][0] if votes else own
        fabric.tell(BuildSurveyed(build, votes[build], len(self._found)))
        if build != own and history:
            self.mover.go_on(Record(build), history.read)
        for vertex in fabric.connections:
            fabric.reconcile(vertex)
