"""The engine without a network: the packet walker answers for the switches. Needs no privilege."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from compilers.tables import Tables
from mininet_scenarios.engine import (
    SILENT,
    Counts,
    Diversion,
    Hosts,
    Observation,
    Progress,
    RealTime,
    Setup,
    Step,
)
from mininet_scenarios.predict import Prediction


class ModelEngine(RealTime):
    """Walks packets through the build's tables; no packet is sent."""

    name = "model"
    versions: tuple[int, ...] = (4,)  # the tables are the same for both

    def __init__(self, setup: Setup) -> None:
        self.build, self.hosts = setup.build, Hosts.of(setup.build, setup.hosts)
        self.tables: Tables = setup.build.tables

    def start(self, step: Step) -> None:
        """Nothing to bring up."""

    def send(self, counts: Counts, progress: Progress, version: int = 4) -> Observation:  # noqa: ARG002
        """Walk requests and replies; a reply needs both ways."""
        walked = Prediction.of(self.build, self.tables)
        switch = self.hosts.switch
        hops = walked.hops.astype(np.int64)[switch[:, None], switch]
        arrives = hops >= 0
        answered = np.where(arrives & arrives.T, counts, 0)
        seen = np.where(answered.T > 0, hops, SILENT)
        loads = walked.loads(self.hosts.by_switch(counts, len(walked.hops)))
        progress(int(counts.sum()), int(counts.sum()))
        return Observation(answered, seen, seen, loads)

    def divert(self, diversion: Diversion) -> None:
        """Change the port of one class."""
        port = self.build.tables.classes.port.copy()
        port[diversion.switch, diversion.egress] = diversion.port
        classes = replace(self.build.tables.classes, port=port)
        self.tables = replace(self.build.tables, classes=classes)

    def restore(self) -> None:
        """Back to the build's tables."""
        self.tables = self.build.tables

    def stop(self, step: Step) -> None:
        """Nothing to take down."""
