"""The engine without a network: it computes what packets would do. It needs no privilege.

Like every engine (`mininet_scenarios.scenario.engine`) it is driven by a rehearsal. Where another
engine sends a packet, this one looks it up in a `Prediction`: the paths that the build's tables
give each pair of switches while some links are down. A packet takes the first of its paths that is
up. Flows get max-min fair rates on the links (`max_min`). Time is a number that `wait` adds to.

A move to another build passes through states (`MoveState`), in each of which every switch holds the
tables of some round. For each state packets are looked up in that mixture of both builds, and a
probe sends once over every pair. While something is down, a move is instantaneous.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from compilers.tables.build import Build
from compilers.update.move_plan import PREPARE, plan
from compilers.update.update_proof import hops_between
from controller.rollout.rollout import SETTLE
from mininet_scenarios.scenario.engine import (
    Diversion,
    Engine,
    HostPair,
    HostSample,
    Progress,
    Setup,
    Step,
)
from mininet_scenarios.scenario.observations import (
    SILENT,
    Counts,
    FlowRates,
    Flows,
    PacketExchange,
    ProbePackets,
)
from mininet_scenarios.scenario.outage import BuildChange, ControllerChange, Event, Outage
from mininet_scenarios.scenario.timeline_events import as_cabled
from mininet_scenarios.verdict.flow_rates import carry
from mininet_scenarios.verdict.predict import Prediction

TIME_SLACK = 1e-9
"""The part of an interval by which a packet may be sent too early, against rounding."""
MOVE_SEED = 1
"""The seed of the random mixtures of a move."""
MoveState = NDArray[np.uint8]
"""A state of a move, uint8[M]: the last round that each switch has carried out. Rounds count from 0
(`compilers.update.move_plan`)."""


class ModelEngine(Engine):
    """Looks packets up in a prediction of the build's tables; no packet is sent."""

    name = "model"
    versions: tuple[int, ...] = (4,)
    """The versions of the Internet protocol that it can send; the tables are the same for both."""
    build_prediction: Prediction
    """The paths by the build's tables while nothing is down."""
    current: Prediction
    """The paths now: after failures, diversions and a part of a move."""

    def __init__(self, setup: Setup) -> None:
        self.setup = setup
        self.clock = 0.0
        """The time now: the seconds that have been waited for."""
        self.controlled = True
        self.before_diversion: Prediction | None = None
        """The paths before `divert`; None while no class is diverted."""
        self.probe: _Probe | None = None
        """The probe that runs; None for none."""
        self.move: ModelMove | None = None
        """The move under way; None for none."""
        self.repaired_outage = Outage()
        """The failures that the controller has routed around."""
        self._load_build(setup.builds[0], Outage())

    def start(self, step: Step) -> None:
        """Do nothing: there is nothing to bring up."""

    def exchange(
        self,
        counts: Counts,
        progress: Progress,
        version: int,  # noqa: ARG002
    ) -> PacketExchange:
        """Look up the packets between hosts, and the loads of the links."""
        switch = self.hosts.switch
        hops = self.current.first_path_hops.astype(np.int64)[switch[:, None], switch]
        arrived = np.where(hops >= 0, counts, 0)
        links_crossed = np.where(arrived > 0, hops, SILENT)
        progress(int(counts.sum()), int(counts.sum()))
        loads = self.current.loads(self.hosts.by_switch(counts, len(self.current.first_path_hops)))
        return PacketExchange(arrived, links_crossed, links_crossed, loads)

    def divert(self, diversion: Diversion) -> None:
        """Change the port of one class."""
        switch = self.build.wiring.names.index(diversion.switch)
        self.before_diversion = self.current
        self.current = self.current.with_port(switch, diversion.egress, diversion.port)

    def restore(self) -> None:
        """Return to the build's tables."""
        self.current, self.before_diversion = self.before_diversion or self.current, None

    def now(self) -> float:
        """The seconds that have been waited for."""
        return self.clock

    def wait(self, seconds: float) -> None:
        """Advance the clock; a move that is under way ends first."""
        end = self.clock + max(0.0, seconds)
        self.settle(seconds)
        self.clock = max(self.clock, end)

    def apply(self, event: Event) -> None:
        """Compute the paths after an event.

        Of the controller only its moves and repairs are modelled, and whether it runs.
        """
        self._send_probe()
        match event:
            case BuildChange(build):
                self.move = ModelMove(self.build, self.setup.builds[build])
            case ControllerChange(running, round):
                if round is not None:  # it counts from 1: so many rounds have begun
                    self._carry_out_rounds(round)
                self.controlled = running
                self._predict(self.current.outage)
                if self.move and not running:
                    self.move.is_abandoned = True
            case _:
                outage = self.current.outage.after(event)
                if outage != self.current.outage:
                    self._predict(outage)

    def settle(self, patience: float) -> str:  # noqa: ARG002
        """Complete a move, which is never refused. All other changes take no time."""
        if self.move and self.controlled:
            if self.current.outage == Outage() and not self.move.is_abandoned:
                self._carry_out_rounds(self.move.update.rounds)
            self._send_probe()
            self._load_build(self.move.new, self.current.outage)
            self.move = None
        return ""

    def _carry_out_rounds(self, begun: int) -> None:
        """Go through the next states of a move.

        Args:
            begun: how many rounds of the move are to have begun, as in `ModelMove.states`.
        """
        if self.move is None:
            raise ValueError("no move is under way")
        for state in self.move.states(begun):
            self.current = self.move.prediction(self.current, state)
            # Long enough for the probe to send a packet over every pair in this state.
            self.clock += max(SETTLE, self.probe.interval if self.probe else 0)
            self._send_probe()

    def _predict(self, outage: Outage) -> None:
        """Compute the paths in an outage; a controller repairs at once."""
        if self.controlled and self.setup.repair:
            self.repaired_outage = outage.links_around
        self.current = self.build_prediction.under(outage, self.repaired_outage)

    def _load_build(self, build: Build, outage: Outage) -> None:
        """Let all switches hold a build, in an outage."""
        self.build = as_cabled(build, self.setup.build)
        self.hosts = HostSample.of(self.build, self.setup.hosts)
        self.build_prediction = Prediction.of(self.build)
        self._predict(outage)

    def probe_start(self, pairs: Sequence[HostPair], interval: float) -> None:
        """Start a probe: packets leave at clock + k · interval."""
        self.probe = _Probe(pairs, interval, self.clock)

    def probe_stop(self) -> ProbePackets:
        """End the probe: the packets sent until now, each of which took no time."""
        if self.probe is None:
            raise ValueError("no probe was started")
        self._send_probe()
        probe, self.probe = self.probe, None
        return probe.probed()

    def flow(self, flows: Flows, seconds: float) -> FlowRates:  # noqa: ARG002
        """Give flows max-min fair rates on links of the setup's rate."""
        return carry(self.current, self.hosts, flows, self.setup.rate)

    def paths(self, pairs: Sequence[HostPair]) -> tuple[tuple[str, ...], ...]:
        """The switches on the path of each pair of hosts."""
        switches = self.hosts.switch[self.hosts.ends(pairs)].tolist()
        names = self.build.wiring.names
        return tuple(
            tuple(names[v] for v in self.current.path(source, destination))
            for source, destination in switches
        )

    def stop(self, step: Step) -> None:
        """Do nothing: there is nothing to take down."""

    def _send_probe(self) -> None:
        """Send the probe's packets until now, on the paths since the last change."""
        if self.probe:
            pairs = self.hosts.switch_pairs(self.probe.pairs)
            hops = self.current.first_path_hops[pairs.source, pairs.destination]
            self.probe.send(self.clock, np.where(pairs.take_part, hops, np.int8(SILENT)))


class _Probe:
    """Packets at a constant rate over each pair; all between two changes are one block."""

    def __init__(self, pairs: Sequence[HostPair], interval: float, begin: float) -> None:
        self.pairs, self.interval, self.begin = pairs, interval, begin
        self.rounds = 0
        """How many packets of each pair have been sent."""
        self.hops: list[NDArray[np.int16]] = []
        """int16[rounds, pairs], blocks of packets that were sent between two changes."""

    def send(self, until: float, hops: NDArray[np.int8]) -> None:
        """Add the packets that are sent before `until`.

        Args:
            until: a time by the engine's clock.
            hops: int8[pairs], the links that these packets of each pair cross; negative if lost.
        """
        rounds = int(np.ceil((until - self.begin) / self.interval - TIME_SLACK))
        if rounds > self.rounds:
            self.hops.append(np.tile(hops.astype(np.int16), (rounds - self.rounds, 1)))
            self.rounds = rounds

    def probed(self) -> ProbePackets:
        """The packets that were sent, and those that arrived."""
        pairs = len(self.pairs)
        hops = np.concatenate([*self.hops, np.zeros((0, pairs), np.int16)]).ravel()
        sent = self.begin + np.repeat(np.arange(self.rounds), pairs) * self.interval
        received = np.where(hops >= 0, sent, np.nan)
        return ProbePackets.of(pairs, sent.tolist(), received, np.maximum(hops, SILENT))


class ModelMove:
    """A move to another build: its states, in each of which some switches are a round ahead."""

    def __init__(self, old: Build, new: Build) -> None:
        self.update, self.new = plan(old, new), new
        self.is_abandoned = False
        """Whether its controller has died, so that no more rounds are carried out."""
        self.node = self.update.nodes.node_of_old
        """int64[S], the number of each vertex of the old build among the M switches of both; -1
        for a missing switch."""
        self._switch_count = len(self.update.nodes.datapath_id)
        """M."""
        self._random = np.random.default_rng(MOVE_SEED)
        self._begun = 0
        """How many rounds have begun."""

    def states(self, begun: int) -> Iterator[MoveState]:
        """Yield the next states of the move, until so many of its rounds have begun.

        Each round has two states: one in which some switches have carried it out, and its end. The
        last round that has begun stays in the first one, unless it ends the move.

        Args:
            begun: how many rounds are to have begun in the last state.
        """
        for round in range(self._begun, begun):
            yield self._mixed_state(round)
            if round + 1 < begun or begun == self.update.rounds:
                yield np.full(self._switch_count, round, np.uint8)
        self._begun = begun

    def _mixed_state(self, round: int) -> MoveState:
        """The state in which switches drawn at random have carried out a round, from 0.

        The others have carried out the one before. No switch is behind in the first round
        (`PREPARE`): it adds what no packet uses yet, so packets go the same way without it.
        """
        is_behind = np.zeros(self._switch_count, np.int64)
        if round > PREPARE:
            is_behind = self._random.integers(2, size=self._switch_count)
        return (round - is_behind).astype(np.uint8)

    def prediction(self, before: Prediction, state: MoveState) -> Prediction:
        """The prediction of a state, with the vertices of the old build.

        Args:
            before: the prediction before the state; only its `first_path_hops` is replaced.
            state: the last round that each switch has carried out.
        """
        hops = hops_between(self.update, state)
        in_both = self.node >= 0
        node = np.where(in_both, self.node, 0)  # any node where there is none
        return replace(
            before,
            first_path_hops=np.where(
                in_both[:, None] & in_both, hops[node[:, None], node], before.first_path_hops
            ),
        )
