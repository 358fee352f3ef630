"""The engine without a network: it walks the tables. It needs no privilege and takes any size.

Packets are walked by `predict`, each over the first of its paths that is up; flows
get max-min fair rates on the links (`max_min`). Time is a number that `wait` adds to. A move
to another build has states, in each of which packets are walked through a mixture of both and a
probe sends once over every pair; where something is down, it is instantaneous.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from compilers.tables.build import Build
from compilers.update.move_plan import plan
from compilers.update.update_proof import hops_between
from controller.rollout.rollout import SETTLE
from mininet_scenarios.scenario.engine import (
    SILENT,
    BuildChange,
    ControllerChange,
    Counts,
    Diversion,
    Engine,
    Event,
    Flows,
    HostPair,
    HostSample,
    Outage,
    Probed,
    Progress,
    Rates,
    Setup,
    Step,
)
from mininet_scenarios.scenario.timeline_events import as_cabled
from mininet_scenarios.verdict.predict import Prediction, carry

TIME_SLACK = 1e-9
MOVE_SEED = 1


class ModelEngine(Engine):
    """Walks packets through the build's tables; no packet is sent."""

    name = "model"
    versions: tuple[int, ...] = (4,)  # the tables are the same for both
    """The versions of the Internet protocol that it can send."""

    def __init__(self, setup: Setup) -> None:
        self.setup, self.ground = setup, setup.build
        self.right: Prediction | None = None
        self.clock, self.controlled = 0.0, True
        self.probe: _Probe | None = None
        self.move: Moving | None = None
        self.whole: Prediction
        self.walked: Prediction
        self.avoided = Outage()
        self._run(setup.builds[0], Outage())

    def start(self, step: Step) -> None:
        """Do nothing: there is nothing to bring up."""

    def exchange(
        self,
        counts: Counts,
        progress: Progress,
        version: int,  # noqa: ARG002
    ) -> tuple[Counts, ...]:
        """Walk packets."""
        switch = self.hosts.switch
        hops = self.walked.first.astype(np.int64)[switch[:, None], switch]
        arrived = np.where(hops >= 0, counts, 0)
        seen = np.where(arrived > 0, hops, SILENT)
        progress(int(counts.sum()), int(counts.sum()))
        loads = self.walked.loads(self.hosts.by_switch(counts, len(self.walked.first)))
        return arrived, seen, seen, loads

    def divert(self, diversion: Diversion) -> None:
        """Change the port of one class."""
        switch = self.build.wiring.names.index(diversion.switch)
        self.right = self.walked
        self.walked = self.walked.with_port(switch, diversion.egress, diversion.port)

    def restore(self) -> None:
        """Back to the build's tables."""
        self.walked, self.right = self.right or self.walked, None

    def now(self) -> float:
        """The time that has been waited for."""
        return self.clock

    def wait(self, seconds: float) -> None:
        """Add to it."""
        until = self.clock + max(0.0, seconds)
        self.settle(seconds)
        self.clock = max(self.clock, until)

    def apply(self, event: Event) -> None:
        """Walk packets through what is left; the controller moves the fabric, and nothing else."""
        self._send_probe()
        match event:
            case BuildChange(build):
                self.move = Moving(self.build, self.setup.builds[build])
            case ControllerChange(running, round):
                if round is not None:
                    self._go(round)
                self.controlled = running
                self._walk(self.walked.outage)
                if self.move and not running:
                    self.move.broken = True
            case _:
                outage = self.walked.outage.after(event)
                if outage != self.walked.outage:
                    self._walk(outage)

    def settle(self, patience: float) -> str:  # noqa: ARG002
        """Come to the end of a move, which is never refused; all else is instantaneous."""
        if self.move and self.controlled:
            if self.walked.outage == Outage() and not self.move.broken:
                self._go(self.move.update.rounds)
            self._send_probe()
            self._run(self.move.new, self.walked.outage)
            self.move = None
        return ""

    def _go(self, last: int) -> None:
        """Through the rounds of a move, to the middle of the last of them (from 1)."""
        if self.move is None:
            raise ValueError("no move is under way")
        for state in self.move.states(last):
            self.walked = self.move.walked(self.walked, state)
            # Long enough for a packet of every pair in every state.
            self.clock += max(SETTLE, self.probe.interval if self.probe else 0)
            self._send_probe()

    def _walk(self, outage: Outage) -> None:
        """Walk under an outage; a controller repairs at once."""
        if self.controlled and self.setup.repair:
            self.avoided = outage.links_around
        self.walked = self.whole.under(outage, self.avoided)

    def _run(self, build: Build, outage: Outage) -> None:
        """Let all switches hold a build."""
        self.build = as_cabled(build, self.ground)
        self.hosts = HostSample.of(self.build, self.setup.hosts)
        self.whole = Prediction.of(self.build)
        self._walk(outage)

    def probe_start(self, pairs: Sequence[HostPair], interval: float) -> None:
        """Packets leave at clock + k · interval."""
        self.probe = _Probe(pairs, interval, self.clock)

    def probe_stop(self) -> Probed:
        """The packets sent until now; each took no time."""
        if self.probe is None:
            raise ValueError("no probe was started")
        self._send_probe()
        probe, self.probe = self.probe, None
        return probe.probed()

    def flow(self, flows: Flows, seconds: float) -> tuple[Rates, Rates]:  # noqa: ARG002
        """Max-min fair rates on the links' rate."""
        return carry(self.walked, self.hosts, flows, self.setup.rate)

    def paths(self, pairs: Sequence[HostPair]) -> tuple[tuple[str, ...], ...]:
        """The walked ones."""
        ends, names = self.hosts.switch[self.hosts.ends(pairs)].tolist(), self.build.wiring.names
        return tuple(tuple(names[v] for v in self.walked.path(s, d)) for s, d in ends)

    def stop(self, step: Step) -> None:
        """Do nothing: there is nothing to take down."""

    def _send_probe(self) -> None:
        """Send what has become due since the last change."""
        if self.probe:
            ends = self.hosts.ends(self.probe.pairs)
            hops = self.walked.first[tuple(self.hosts.switch[ends].T)]
            self.probe.send(self.clock, np.where((ends >= 0).all(axis=1), hops, np.int8(SILENT)))


class _Probe:
    """Packets at a constant rate, sent in blocks between changes."""

    def __init__(self, pairs: Sequence[HostPair], interval: float, begin: float) -> None:
        self.pairs, self.interval, self.begin = pairs, interval, begin
        self.rounds = 0
        self.hops: list[NDArray[np.int16]] = []

    def send(self, until: float, hops: NDArray[np.int8]) -> None:
        """Add the packets due before `until`, all with the same hops a pair."""
        due = int(np.ceil((until - self.begin) / self.interval - TIME_SLACK))
        if due > self.rounds:
            self.hops.append(np.tile(hops.astype(np.int16), (due - self.rounds, 1)))
            self.rounds = due

    def probed(self) -> Probed:
        """The packets that were sent, and those that arrived."""
        pairs = len(self.pairs)
        hops = np.concatenate([*self.hops, np.zeros((0, pairs), np.int16)]).ravel()
        sent = self.begin + np.repeat(np.arange(self.rounds), pairs) * self.interval
        received = np.where(hops >= 0, sent, np.nan)
        return Probed.of(pairs, sent.tolist(), received, np.maximum(hops, SILENT))


class Moving:
    """A move to another build: its states, each a mixture of both tables.

    broken: whether its controller has died, so that its rounds are not gone on with.
    """

    def __init__(self, old: Build, new: Build) -> None:
        self.update, self.new, self.broken = plan(old, new), new, False
        self.node = self.update.nodes.node_before
        self._random, self._done = np.random.default_rng(MOVE_SEED), 0

    def states(self, last: int) -> Iterator[NDArray[np.uint8]]:
        """uint8[M], the last round that each switch has carried out, for one state after another.

        Each round has a mixture by chance, in which some switches are ahead, and its end; the
        `last`-th (from 1) only the mixture, where others follow it.
        """
        count = len(self.update.nodes.datapath_id)
        for round in range(self._done, last):
            behind = self._random.integers(2, size=count) if round else np.zeros(count, np.int64)
            yield (round - behind).astype(np.uint8)
            if round + 1 < last or last == self.update.rounds:
                yield np.full(count, round, np.uint8)
        self._done = last

    def walked(self, before: Prediction, carried_out: NDArray[np.uint8]) -> Prediction:
        """The prediction of a state in the old build's numbers; only `first` is of the state."""
        table = hops_between(self.update, carried_out)
        first = table[np.maximum(self.node, 0)[:, None], np.maximum(self.node, 0)]
        in_both = self.node >= 0
        return replace(before, first=np.where(in_both[:, None] & in_both, first, before.first))
