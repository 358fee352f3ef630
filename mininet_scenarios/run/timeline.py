"""Runs the events of a scenario on an engine, and checks the fabric after each against predictions.

`mininet_scenarios.run.rehearsal` makes a `Timeline` for the timeline of a scenario, and its checks
go into the result. A `Prediction` has the paths by the tables while some links are down.

After each event a packet is sent over each pair. If a probe runs, each event opens a window, which
lasts until the next event, and the losses of each pair in it are counted. Before a move, and if
many packets are sent also before other events, the probe runs while nothing happens, and is slowed
down until it loses nothing by itself.

An event may move the fabric to another build. Until all switches hold it, the prediction is what
every mixture of both builds promises. From then on it is what the new build's tables do
(`rehearsed_fabric`).
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from itertools import groupby

import numpy as np
from numpy.typing import NDArray

from mininet_scenarios.run.probe_calibration import UNCALIBRATED_RATE, clean_interval
from mininet_scenarios.run.probe_windows import (
    FLIGHT_TIME,
    Window,
    WindowKind,
    convergence_limit,
    probe_history,
    rate_check,
    window_checks,
)
from mininet_scenarios.run.rehearsal_plan import Plan
from mininet_scenarios.run.rehearsed_fabric import RehearsedFabric
from mininet_scenarios.scenario.check import Check, Mismatch
from mininet_scenarios.scenario.engine import Engine, HostPair, Step
from mininet_scenarios.scenario.observations import SILENT, ControllerRepair, Counts
from mininet_scenarios.scenario.outage import BuildChange, ControllerChange, Event
from mininet_scenarios.scenario.timeline_events import TimelineCase
from mininet_scenarios.verdict.checks import Examiner
from mininet_scenarios.verdict.predict import Prediction
from mininet_scenarios.verdict.result import EventOutcome, PairsReached, Result

LEAD = 0.5
"""Seconds that a probe runs before the first event, and after the time from which nothing may be
lost any more."""
Pairs = NDArray[np.bool_]
"""bool[H, H], pairs of hosts."""


@dataclass(frozen=True, slots=True, eq=False)
class PacketRound:
    """The round of packets after an event, one over each pair of hosts."""

    sent: Pairs
    """bool[H, H], the pairs whose switches have power, so that their packets are sent."""
    expected: Pairs
    """bool[H, H], the sent pairs that the tables deliver by all of their paths."""
    possible: Pairs
    """bool[H, H], the sent pairs that the tables deliver by at least one of their paths."""
    longest: Counts
    """int64[H, H], the most links that a packet crossed; SILENT where no packet arrived."""

    @property
    def reached(self) -> Pairs:
        """bool[H, H], the pairs whose packets arrived."""
        return self.longest > SILENT


class Timeline:
    """One run of the events of a scenario."""

    def __init__(
        self, plan: Plan, examiner: Examiner, engine: Engine, step: Step, result: Result
    ) -> None:
        """Get ready to run.

        Args:
            plan: has the events.
            examiner: compares observations with the first build, without failures.
            engine: holds the first build.
            step: is notified of each group of events.
            result: gets the outcomes.
        """
        self.plan, self.scenario = plan, plan.scenario
        self.engine, self.step, self.result = engine, step, result
        self.fabric = RehearsedFabric(plan, examiner, engine.controlled)
        """What the fabric holds, and what of it is out of order."""
        self.windows: list[Window] = []
        """The windows of the probe; the last one is open."""
        self.probed_pairs: list[HostPair] | None = None
        """The pairs of the probe; None without one."""
        self.begin = 0.0
        """The time at which the events begin, by the clock of the engine."""
        self.interval = 0.0
        """The seconds between packets of the probe over one pair."""
        self.checks: dict[str, Check] = {}
        """By name, the checks of all rounds; checks of the same name are added up."""

    def run(self) -> Prediction:
        """Let all events happen in their order, and enter their outcomes into the result.

        Returns:
            What the tables do in the end.
        """
        cases, result = self.plan.cases, self.result
        self._start_probe()
        undamaged = self.fabric.current_examiner.prediction
        self._open_window("before", "before anything happens", self.begin, undamaged)
        number = 0  # of the events that have begun
        for step, (group, group_cases) in enumerate(groupby(cases, lambda case: case.group), 1):
            events = list(group_cases)
            with self.step(f"event {step}", group) as progress:
                for done, case in enumerate(events, 1):
                    number += 1
                    # Packets are sent after an event unless the next one, `cases[number]`, follows
                    # soon.
                    next_follows_soon = number < len(cases) and cases[number].soon
                    outcome = self._run_event(case, sends_packets=not next_follows_soon)
                    result.events.append(outcome)
                    progress(done, len(events))
        result.checks += self.checks.values()
        if self.probed_pairs is not None:
            with self.step("probe", "wait for the last packets of the probe"):
                self._stop_probe()
        return self.fabric.predicted()

    def _run_event(self, case: TimelineCase, *, sends_packets: bool) -> EventOutcome:
        """Apply an event on the engine; returns its row of the result.

        Args:
            case: the event.
            sends_packets: whether a round of packets follows.
        """
        if case.at is not None:
            self.engine.wait(self.begin + case.at - self.engine.now())
        prediction = self._apply("event", case.what, case.event, case)
        # `_apply` has opened the window of this event, at the time of the event.
        outcome = EventOutcome(case.what, round(self.windows[-1].begin - self.begin, 3))
        if case.undo is None:
            self.result.reached[case.moment] = None
        if sends_packets:
            outcome = self._settle_and_send(case, prediction, outcome)
            if self.probed_pairs is not None:
                end = self.windows[-1].begin + convergence_limit(case.expect) + LEAD
                self.engine.wait(max(LEAD, end - self.engine.now()))
        if case.undo:
            self._apply("undo", f"{case.what}, undone", case.undo)
            self.engine.settle(self.scenario.patience)
        return outcome

    def _settle_and_send(
        self, case: TimelineCase, prediction: Prediction, outcome: EventOutcome
    ) -> EventOutcome:
        """Wait until the fabric has reacted to an event, and send a packet over each pair.

        Args:
            case: the event.
            prediction: what the tables do now.
            outcome: the event's row in the result; returned with the outcomes.
        """
        refusal = self.engine.settle(self.scenario.patience)
        repair = self.engine.repaired() if self.fabric.controller_repairs else ControllerRepair()
        if repair.suppressed:
            self.fabric.suppress(repair.suppressed)
            prediction = self.fabric.predicted()
        if self.fabric.next_examiner is not None and self.fabric.controlled:
            prediction = self._end_move(case, refusal)
        packets = self._send_round(case, prediction)
        if case.undo is None and self.fabric.current_examiner is self.fabric.first_examiner:
            reached = PairsReached.of(case.what, packets.expected, packets.reached)
            self.result.reached[case.moment] = reached
        return replace(
            outcome,
            pairs=int(packets.sent.sum()),
            expected=int(packets.expected.sum()),
            possible=int(packets.possible.sum()),
            reached=int(packets.reached.sum()),
            max_hops=max(0, int(packets.longest.max(initial=0))),
            seconds_to_repair=None if repair.seconds is None else round(repair.seconds, 4),
        )

    def _apply(
        self, kind: WindowKind, what: str, event: Event, case: TimelineCase | None = None
    ) -> Prediction:
        """Apply an event, and open its window; returns what the tables do now.

        Args:
            kind: the kind of its window.
            what: the event in words.
            event: the event.
            case: the case of the scenario that it is; None when an event is undone.
        """
        self.fabric.apply(event)
        prediction = self.fabric.predicted()
        if isinstance(event, ControllerChange) and event.round is not None:
            # The engine waits for the round. A loss until then belongs to the window of the move.
            self.engine.apply(event)
            self._open_window(kind, what, self.engine.now(), prediction, case)
        else:
            self._open_window(kind, what, self.engine.now(), prediction, case)
            self.engine.apply(event)
        return prediction

    def _end_move(self, case: TimelineCase, refusal: str) -> Prediction:
        """Add the check that the fabric has moved; returns what the tables do now.

        Args:
            case: the event.
            refusal: why all switches hold the old build again; "" if they hold the new one.
        """
        mismatch = Mismatch("the fabric", "moved", f"taken back: {refusal}")
        check = Check(f"{case.group}: moved", 1, int(not refusal), (mismatch,) if refusal else ())
        self._add(case, [check])
        if refusal:
            self.fabric.take_move_back()
        else:
            self.fabric.end_move()
        return self.fabric.predicted()

    def _open_window(
        self,
        kind: WindowKind,
        what: str,
        begin: float,
        prediction: Prediction,
        case: TimelineCase | None = None,
    ) -> None:
        """Open the window of an event for the probe, if one runs.

        During a move, nothing is promised to the pairs of a host that the next build lacks.
        """
        probed = self.probed_pairs or ()
        pairs = self.fabric.current_examiner.hosts.switch_pairs(probed)
        switches = pairs.source, pairs.destination
        promised = pairs.take_part
        if self.fabric.next_examiner is not None:
            promised = promised & self.fabric.next_examiner.hosts.switch_pairs(probed).take_part
        fewest = np.where(promised, prediction.fewest_hops[switches], SILENT)
        most = np.where(pairs.take_part, prediction.most_hops[switches], 0)
        # The event has no row yet: it gets the next one when it has run.
        row = len(self.result.events) if kind == "event" else None
        self.windows.append(Window(kind, what, begin, fewest, most, case, row))

    def _send_round(self, case: TimelineCase, prediction: Prediction) -> PacketRound:
        """Send a packet over each pair whose switches have power, and enter the checks.

        Packets that may be lost have a round of their own, whose loads are not compared.
        """
        current = self.fabric.current_examiner
        hosts = current.hosts
        examiner = Examiner(prediction, hosts)
        powered = self.fabric.outage.up(current.build.wiring.names)[hosts.switch]
        sent = powered[:, None] & powered & ~np.eye(len(powered), dtype=bool)
        expected = sent & (examiner.fewest_hops >= 0)
        longest = np.full(sent.shape, SILENT)
        # The packets of a probe load the links, too. During a move the paths are not determined.
        compares_loads = self.probed_pairs is None and self.fabric.next_examiner is None
        for pairs, with_loads in ((expected, compares_loads), (sent & ~expected, False)):
            if pairs.any():
                counts = pairs.astype(np.int64)
                observation = self.engine.send(hosts.names, counts, lambda done, total: None)  # noqa: ARG005
                self._add(case, examiner.table_checks(case.group, counts, observation, with_loads))
                longest = np.maximum(longest, observation.longest)
        self._add(
            case, examiner.expectation_checks(case.group, case.expect, sent, longest, self.engine)
        )
        return PacketRound(sent, expected, sent & (examiner.most_hops >= 0), longest)

    def _add(self, case: TimelineCase, checks: Iterable[Check]) -> None:
        """Add the checks of an event to those of the same name."""
        for check in checks:
            before = self.checks.get(check.name, Check(check.name, 0, 0))
            mismatches = check.mismatches
            if case.what != case.group:
                mismatches = tuple(
                    replace(mismatch, where=f"{case.what}: {mismatch.where}")
                    for mismatch in mismatches
                )
            self.checks[check.name] = Check(
                check.name,
                before.required + check.required,
                before.seen + check.seen,
                before.mismatches + mismatches,
            )

    def _start_probe(self) -> None:
        """Start the scenario's probe, if it has one, and the clock of its events."""
        probe, examiner = self.scenario.traffic.probe, self.fabric.current_examiner
        hosts = examiner.hosts
        if probe is None:
            self.begin = self.engine.now()
            return
        pairs = np.argwhere(hosts.every_pair())
        if 0 < probe.pairs < len(pairs):  # some pairs, drawn at random; 0 stands for all
            random = np.random.default_rng(probe.seed)
            pairs = pairs[np.sort(random.permutation(len(pairs))[: probe.pairs])]
        self.probed_pairs, self.interval = hosts.pairs(pairs), probe.interval
        moves = any(isinstance(case.event, BuildChange) for case in self.plan.cases)
        if moves or len(pairs) / probe.interval > UNCALIBRATED_RATE:
            delivered = hosts.pairs(pairs[(examiner.fewest_hops >= 0)[tuple(pairs.T)]])
            clean = clean_interval(self.engine, delivered, probe.interval, self.step)
            self.interval, self.result.slowed = clean.interval, clean.faults
        self.engine.probe_start(self.probed_pairs, self.interval)
        self.begin = self.engine.now()
        self.engine.wait(LEAD)

    def _stop_probe(self) -> None:
        """Judge every window, and enter into the result how many packets each event lost."""
        if self.probed_pairs is None:
            raise ValueError("no probe was started")
        result = self.result
        self.engine.wait(LEAD)
        ends = [*(window.begin for window in self.windows[1:]), self.engine.now() + FLIGHT_TIME]
        probed = self.engine.probe_stop()
        result.probe_history = probe_history(probed, self.begin)
        names = [f"{source} → {destination}" for source, destination in self.probed_pairs]
        for window, end in zip(self.windows, ends, strict=True):
            if window.kind == "undo":
                continue
            packets = window.packets(probed, names, end)
            result.checks += window_checks(window, packets)
            if window.row is None:
                continue
            if window.begins_move:
                due = int((end - window.begin) / self.interval / 2)
                result.checks.append(rate_check(window, packets, due))
            losses = packets.count(packets.lost)
            result.events[window.row] = replace(
                result.events[window.row],
                lost=int(losses.sum()),
                most_lost_of_a_pair=int(losses.max(initial=0)),
                seconds_to_converge=round(packets.converged, 3),
            )
