"""The engine without a network: the tables alone answer. Needs no privilege, and takes any size.

Packets are walked by `mininet_scenarios.predict`, each by the first of its ways that is up; flows
get max-min fair rates on the links (`compilers.fair`). Time is a number that `wait` adds to.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from compilers.build import load
from mininet_scenarios.engine import (
    SILENT,
    BuildChange,
    Carried,
    Counts,
    Diversion,
    Event,
    Flows,
    Hosts,
    Observation,
    Probed,
    Progress,
    Setup,
    Step,
)
from mininet_scenarios.fluid import carry
from mininet_scenarios.predict import Prediction

SLACK = 1e-9


class ModelEngine:
    """Walks packets through the build's tables; no packet is sent."""

    name = "model"
    versions: tuple[int, ...] = (4,)  # the tables are the same for both

    def __init__(self, setup: Setup) -> None:
        self.setup, self.build = setup, setup.build
        self.hosts = Hosts.of(setup.build, setup.hosts)
        self.walked = Prediction.of(setup.build)
        self.right: Prediction | None = None
        self.clock = 0.0
        self.probe: _Probe | None = None

    def start(self, step: Step) -> None:
        """Nothing to bring up."""

    def send(self, counts: Counts, progress: Progress, version: int = 4) -> Observation:  # noqa: ARG002
        """Walk requests and replies; a reply needs both ways."""
        switch = self.hosts.switch
        hops = self.walked.first.astype(np.int64)[switch[:, None], switch]
        arrives = hops >= 0
        answered = np.where(arrives & arrives.T, counts, 0)
        seen = np.where(answered.T > 0, hops, SILENT)
        loads = self.walked.loads(self.hosts.by_switch(counts, len(self.walked.first)))
        progress(int(counts.sum()), int(counts.sum()))
        return Observation(answered, seen, seen, loads)

    def divert(self, diversion: Diversion) -> None:
        """Change the port of one class."""
        port = self.build.tables.classes.port.copy()
        port[diversion.switch, diversion.egress] = diversion.port
        classes = replace(self.build.tables.classes, port=port)
        tables = replace(self.build.tables, classes=classes)
        self.right = self.walked
        self.walked = Prediction.of(replace(self.build, tables=tables), self.walked.outage)

    def restore(self) -> None:
        """Back to the build's tables."""
        self.walked, self.right = self.right or self.walked, None

    def now(self) -> float:
        """The time that has been waited for."""
        return self.clock

    def wait(self, seconds: float) -> None:
        """Add to it."""
        self.clock += max(0.0, seconds)

    def apply(self, event: Event) -> None:
        """Walk packets through what is left; the controller has no part in it."""
        self._send_probe()
        if isinstance(event, BuildChange):
            self.build = load(Path(event.folder))
            self.walked = Prediction.of(self.build, self.walked.outage)
            return
        outage = self.walked.outage.after(event)
        if outage != self.walked.outage:
            self.walked = self.walked.under(outage)

    def settle(self, patience: float) -> None:
        """Everything is instantaneous."""

    def probe_start(self, pairs: NDArray[np.int64], interval: float) -> None:
        """Packets leave at clock + k · interval."""
        self.probe = _Probe(pairs, interval, self.clock)

    def probe_stop(self) -> Probed:
        """The packets sent until now; each took no time."""
        assert self.probe is not None  # noqa: S101
        self._send_probe()
        probe, self.probe = self.probe, None
        return probe.probed()

    def carry(self, flows: Flows, seconds: float, progress: Progress) -> Carried:  # noqa: ARG002
        """Max-min fair rates on the links' rate."""
        return carry(self.walked, self.hosts, flows, self.setup.rate)

    def paths(self, pairs: NDArray[np.int64]) -> tuple[tuple[int, ...], ...]:
        """The walked ones."""
        return tuple(self.walked.path(int(s), int(d)) for s, d in self.hosts.switch[pairs])

    def stop(self, step: Step) -> None:
        """Nothing to take down."""

    def _send_probe(self) -> None:
        """Send what has become due since the last change."""
        if self.probe:
            hops = self.walked.first[tuple(self.hosts.switch[self.probe.pairs].T)]
            self.probe.send(self.clock, hops)


class _Probe:
    """Packets at a constant rate, sent in blocks between changes."""

    def __init__(self, pairs: NDArray[np.int64], interval: float, begin: float) -> None:
        self.pairs, self.interval, self.begin = pairs, interval, begin
        self.rounds = 0
        self.hops: list[NDArray[np.int16]] = []

    def send(self, until: float, hops: NDArray[np.int8]) -> None:
        """Add the packets due before `until`, all with the same hops a pair."""
        due = int(np.ceil((until - self.begin) / self.interval - SLACK))
        if due > self.rounds:
            self.hops.append(np.tile(hops.astype(np.int16), (due - self.rounds, 1)))
            self.rounds = due

    def probed(self) -> Probed:
        """All of them."""
        pairs = len(self.pairs)
        hops = np.concatenate([*self.hops, np.zeros((0, pairs), np.int16)]).ravel()
        sequence = np.repeat(np.arange(self.rounds, dtype=np.int32), pairs)
        sent = np.asarray(self.begin + sequence * self.interval, np.float64)
        return Probed(
            pair=np.tile(np.arange(pairs, dtype=np.int32), self.rounds),
            sequence=sequence,
            sent=sent,
            received=np.where(hops >= 0, sent, np.nan),
            hops=np.where(hops >= 0, hops, np.int16(SILENT)),
        )
