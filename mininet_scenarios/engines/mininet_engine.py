"""The Mininet engine, from outside."""

from __future__ import annotations

import os
import signal
from pathlib import Path

import numpy as np

from mininet_scenarios.engines.inner_engine import InnerEngine
from mininet_scenarios.scenario.engine import (
    SILENT,
    Carried,
    Counts,
    Flows,
    Observation,
    Progress,
    Setup,
    Step,
)


class MininetEngine(InnerEngine):
    """Open vSwitch, Mininet and the controller, in namespaces of their own."""

    name = "mininet"

    def __init__(self, setup: Setup, child: str = "mininet_child") -> None:
        super().__init__(setup, child)

    def start(self, step: Step) -> None:
        """Start the inner process, and in it all the rest."""
        switches, links = self.build.tables.switches, self.build.topology.graph.size
        with step(
            "start", f"start {switches} switches with {links} links, and their hosts"
        ) as told:
            self.inner.start()
            self.inner.call("start", progress=told)
        with step("program", f"program {switches} switches through {self.setup.framework}") as told:
            self.inner.call("program", self.setup.patience, progress=told)

    def send(self, counts: Counts, progress: Progress, version: int = 4) -> Observation:
        """Ping inside, and put the answers into arrays."""
        requests = [[*pair, int(counts[pair])] for pair in map(tuple, np.argwhere(counts).tolist())]
        result = self.inner.call("send", requests, version, progress=progress)
        replies = np.zeros_like(counts)
        shortest, longest = np.full_like(counts, SILENT), np.full_like(counts, SILENT)
        for here, there, count, least, most in result["answers"]:
            replies[here, there] = count
            shortest[there, here], longest[there, here] = least, most
        loads = np.zeros(
            (len(self.build.wiring.names), self.build.wiring.cables().shape[1]), np.int64
        )
        for switch, port, count in result["loads"]:
            loads[switch, port] = count
        return Observation(replies, shortest, longest, loads)

    def carry(self, flows: Flows, seconds: float, progress: Progress) -> Carried:  # noqa: ARG002
        """TCP by iperf3, UDP by a probe with large packets."""
        ends = zip(
            *(x.tolist() for x in (flows.source, flows.destination, flows.rate)), strict=True
        )
        found = self.inner.call("carry", list(ends), flows.protocol, flows.parallel, seconds)
        loads = np.zeros(self.build.wiring.cables().shape)
        for switch, port, rate in found["loads"]:
            loads[switch, port] = rate
        return Carried(np.array(found["rates"]), loads)

    def prompt(self, terminal: str) -> None:
        """Let whoever sits at a terminal look around; Ctrl-C ends a command, not the network."""
        assert self.inner.process is not None  # noqa: S101
        outer = self.inner.process.pid
        inside = int(Path(f"/proc/{outer}/task/{outer}/children").read_text().split()[0])
        before = signal.signal(signal.SIGINT, lambda *_: os.kill(inside, signal.SIGINT))
        try:
            self.inner.call("prompt", terminal)
        finally:
            signal.signal(signal.SIGINT, before)
