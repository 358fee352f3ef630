"""A timeline on an engine: after each event the fabric is checked against the prediction.

After each event a packet is sent over each pair. With a probe that runs, each event opens a window,
of which the lost packets and their pairs are counted, until the next. Before a move the probe runs
while nothing happens, and is slowed down until it loses nothing by itself.

An event may move the fabric to another build. Until all switches hold it, what is predicted is what
is promised of every mixture of both builds; from then on, what the new one's tables say.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from itertools import groupby, zip_longest
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mininet_scenarios.run.rehearsal_plan import Plan
from mininet_scenarios.scenario.engine import (
    SILENT,
    BuildChange,
    Check,
    ControllerChange,
    ControllerRepair,
    Engine,
    EngineError,
    Event,
    HostPair,
    HostSample,
    Mismatch,
    Outage,
    Probed,
    Step,
)
from mininet_scenarios.scenario.scenario_file import ExpectInMoment
from mininet_scenarios.scenario.timeline_events import Case
from mininet_scenarios.verdict.checks import Examiner, Happened, PairsReached, Result, Watched
from mininet_scenarios.verdict.predict import Prediction

LEAD = 0.5
"""Seconds that a probe runs before the first event, and when nothing may be lost any more."""


class Timeline:
    """One run of the events of a scenario."""

    def __init__(
        self,
        plan: Plan,
        examiner: Examiner,
        engine: Engine,
        step: Step,
        result: Result,
    ) -> None:
        self.plan, self.scenario = plan, plan.scenario
        self.first = self.whole = examiner
        self.engine, self.step, self.result = engine, step, result
        self.outage = Outage()
        self.coming: Examiner | None = None
        self.controlled = engine.controlled
        self.avoided = Outage()
        """The failures that the controller has routed around."""
        self.windows: list[Window] = []
        self.probed: list[HostPair] | None = None
        self.begin = self.interval = 0.0
        self.tally: dict[str, Check] = {}

    @property
    def moved(self) -> bool:
        """Whether the fabric holds another build than the first, without failures."""
        whole = self.outage == Outage() and self.coming is None
        return whole and self.whole is not self.first

    def run(self) -> Prediction:
        """Let all events happen in their order, and add their outcomes to the result."""
        cases, result = self.plan.cases, self.result
        self._start_probe()
        self._watch("before anything happens", self.begin, self.whole.prediction)
        followed = groupby(zip_longest(cases, cases[1:]), lambda pair: pair[0].group)
        for number, (group, alike) in enumerate(followed, 1):
            part = list(alike)
            with self.step(f"event {number}", group) as progress:
                for done, (case, then) in enumerate(part, 1):
                    ask = then is None or not then.soon
                    result.happened.append(self._happen(case, ask))
                    progress(done, len(part))
        result.checks += self.tally.values()
        if self.probed is not None:
            with self.step("probe", "wait for the last packets of the probe"):
                self._stop_probe()
        return self._predicted()

    def _happen(self, case: Case, ask: bool) -> Happened:
        """The event, and the round after it."""
        if case.at is not None:
            self.engine.wait(self.begin + case.at - self.engine.now())
        now = self._apply(case.what, case.event, case)
        happened = Happened(case.what, round(self.windows[-1].begin - self.begin, 3))
        if case.undo is None:
            self.result.reached[case.moment] = None
        if ask:
            refused = self.engine.settle(self.scenario.patience)
            repair = self.engine.repaired() if self._repairs else ControllerRepair()
            if repair.suppressed:
                self.avoided = replace(self.avoided, links=self.avoided.links | repair.suppressed)
                now = self._predicted()
            if self.coming is not None and self.controlled:
                now = self._land(case, refused)
            could, sure, longest = self._ask(case, now)
            reached = longest > SILENT
            if case.undo is None and self.whole is self.first:
                self.result.reached[case.moment] = PairsReached.of(case.what, sure, reached)
            happened = replace(
                happened,
                pairs=int(could.sum()),
                expected=int(sure.sum()),
                reached=int(reached.sum()),
                max_hops=max(0, int(longest.max(initial=0))),
                repaired=None if repair.seconds is None else round(repair.seconds, 4),
            )
        if self.probed is not None and ask:
            enough = self.windows[-1].begin + within(case.expect) + LEAD
            self.engine.wait(max(LEAD, enough - self.engine.now()))
        if case.undo:
            self._apply(f"{case.what}, undone", case.undo, None)
            self.engine.settle(self.scenario.patience)
        return happened

    def _apply(self, what: str, event: Event, case: Case | None) -> Prediction:
        self.outage = self.outage.after(event)
        if isinstance(event, ControllerChange):
            self.controlled = event.running
        if self._repairs:
            self.avoided = self.outage.links_around
        if isinstance(event, BuildChange):
            build = self.plan.build(event.build)
            hosts = HostSample.of(build, self.scenario.hosts)
            self.coming = Examiner(Prediction.of(build), hosts)
        now = self._predicted()
        if isinstance(event, ControllerChange) and event.round is not None:
            self.engine.apply(event)  # waits for the round: what is lost until then is the move's
            self._watch(what, self.engine.now(), now, case)
        else:
            self._watch(what, self.engine.now(), now, case)
            self.engine.apply(event)
        return now

    @property
    def _repairs(self) -> bool:
        """Whether a controller runs that routes around failures."""
        return self.controlled and self.scenario.repair

    def _predicted(self) -> Prediction:
        now = self.whole.prediction.under(self.outage, self.avoided)
        if self.coming is None:
            return now
        return now.on_the_way(self.coming.prediction.under(self.outage, self.avoided))

    def _land(self, case: Case, refused: str) -> Prediction:
        """A move is over, and all switches hold the other build or are back: what is predicted."""
        told = (Mismatch("the fabric", "moved", f"taken back: {refused}"),) if refused else ()
        self._add(case, [Check(f"{case.group}: moved", 1, int(not refused), told)])
        if self.coming and not refused:
            self.whole = self.coming
        self.coming = None
        return self._predicted()

    def _watch(
        self, what: str, begin: float, prediction: Prediction, case: Case | None = None
    ) -> None:
        """Open a window, for the probe that runs."""
        ends = self.whole.hosts.ends(self.probed or ())
        present, at = (ends >= 0).all(axis=1), tuple(self.whole.hosts.switch[ends].T)
        fewest = np.where(present, prediction.fewest[at], SILENT)
        most = np.where(present, prediction.most[at], 0)
        self.windows.append(Window(what, begin, fewest, most, case))

    def _ask(self, case: Case, now: Prediction) -> tuple[NDArray[Any], ...]:
        """A packet for each pair; those that may be lost have a round of their own, uncounted.

        Returns pairs that could be asked, those that the tables deliver, and the longest paths.
        """
        hosts = self.whole.hosts
        examiner = Examiner(now, hosts)
        up = self.outage.up(self.whole.build.wiring.names)[hosts.switch]
        could = up[:, None] & up & ~np.eye(len(up), dtype=bool)
        sure = could & (examiner.fewest >= 0)
        longest = np.full(could.shape, SILENT)
        counted = self.probed is None and self.coming is None
        for part, countable in ((sure, counted), (could & ~sure, False)):
            if part.any():
                counts = part.astype(np.int64)
                seen = self.engine.send(hosts.names, counts, lambda done, total: None)  # noqa: ARG005
                self._add(case, examiner.compare(case.group, counts, seen, countable))
                longest = np.maximum(longest, seen.longest)
        self._add(case, examiner.judge(case.group, case.expect, could, longest, self.engine))
        return could, sure, longest

    def _add(self, case: Case, checks: Iterable[Check]) -> None:
        """Checks of alike cases are added up under one name each."""
        for check in checks:
            before = self.tally.get(check.name, Check(check.name, 0, 0))
            wrong = check.mismatches
            if case.what != case.group:
                wrong = tuple(replace(m, where=f"{case.what}: {m.where}") for m in wrong)
            seen, all_wrong = before.seen + check.seen, before.mismatches + wrong
            required = before.required + check.required
            self.tally[check.name] = Check(check.name, required, seen, all_wrong)

    def _start_probe(self) -> None:
        probe, hosts = self.scenario.traffic.probe, self.whole.hosts
        if probe is None:
            self.begin = self.engine.now()
            return
        pairs = np.argwhere(hosts.every_pair())
        if 0 < probe.pairs < len(pairs):
            random = np.random.default_rng(probe.seed)
            pairs = pairs[np.sort(random.permutation(len(pairs))[: probe.pairs])]
        self.probed, self.interval = hosts.pairs(pairs), probe.interval
        if any(isinstance(case.event, BuildChange) for case in self.plan.cases):
            sure = hosts.pairs(pairs[(self.whole.fewest >= 0)[tuple(pairs.T)]])
            self.interval, self.result.slowed = clean_interval(
                self.engine, sure, probe.interval, self.step
            )
        self.engine.probe_start(self.probed, self.interval)
        self.begin = self.engine.now()
        self.engine.wait(LEAD)

    def _stop_probe(self) -> None:
        """Judge every window, and add to the result what was seen, and what each event lost."""
        if self.probed is None:
            raise ValueError("no probe was started")
        result = self.result
        self.engine.wait(LEAD)
        ends = [*(window.begin for window in self.windows[1:]), self.engine.now() + GUARD]
        probed = self.engine.probe_stop()
        came, names = ~np.isnan(probed.received), [f"{one} → {other}" for one, other in self.probed]
        result.watched = _overall(probed, came, self.begin)
        rows = iter(range(len(result.happened)))
        for window, until in zip(self.windows, ends, strict=True):
            if window.case is None and window is not self.windows[0]:
                continue
            inside = (probed.sent >= window.begin - GUARD) & (probed.sent < until - GUARD)
            pair, since = probed.pair[inside], probed.sent[inside] - window.begin
            seen = _Seen(names, pair, since, came[inside], probed.received[inside] < until)
            lost = ~seen.came & (window.fewest >= 0)[pair]
            result.checks += _judge(window, seen, lost)
            if window.case is None:
                continue
            if isinstance(window.case.event, BuildChange):
                due = int((until - window.begin) / self.interval / 2)
                result.checks.append(_rate(window.what, seen, due))
            row, count = next(rows), seen.count(lost)
            result.happened[row] = replace(
                result.happened[row],
                lost=int(count.sum()),
                worst=int(count.max(initial=0)),
                converged=round(float(np.maximum(0, since[lost]).max(initial=0)), 3),
            )


GUARD = 0.05
"""Seconds before an event in which a packet may have left and yet meet it."""
CONVERGED_WITHIN = 1.0
"""Seconds, where a scenario does not say."""
STRETCHES = 240


@dataclass(frozen=True, slots=True, eq=False)
class Window:
    """The time from an event to the next."""

    what: str
    """What the event is called in reports."""
    begin: float
    """When the event happened, on the engine's clock."""
    fewest: NDArray[np.int16]
    """int16[n], the fewest links over which the tables lead the packets of the probe's pairs
    (`Prediction`); of pairs whose hosts are missing, that packets may be lost.
    """
    most: NDArray[np.int16]
    """int16[n], the most links of these packets."""
    case: Case | None = None
    """The event; None where one is undone."""


@dataclass(frozen=True, slots=True, eq=False)
class _Seen:
    """The packets of one window."""

    names: list[str]
    """The names of the pairs."""
    pair: NDArray[np.int64]
    """int64[n], the pair of each packet."""
    since: NDArray[np.float64]
    """float64[n], seconds from the event until the packet was sent."""
    came: NDArray[np.bool_]
    """bool[n], whether the packet arrived."""
    in_time: NDArray[np.bool_]
    """bool[n], whether it arrived before the next event."""

    def count(self, some: NDArray[np.bool_]) -> NDArray[np.int64]:
        """How many of these each pair has."""
        return np.bincount(self.pair[some], minlength=len(self.names))

    def check(self, what: str, wrong: NDArray[np.int64], expected: str, seen: str) -> Check:
        """A check of all pairs, of which those with a count are wrong."""
        mismatches = tuple(
            Mismatch(self.names[n], expected, seen.format(wrong[n]))
            for n in np.flatnonzero(wrong).tolist()
        )
        return Check.of(what, len(self.names), mismatches)


def _judge(window: Window, seen: _Seen, lost: NDArray[np.bool_]) -> list[Check]:
    expect = window.case.expect if window.case else None
    limit = within(expect)
    title, late = f"probe, {window.what}", seen.since >= limit
    what = f"{title}: nothing lost" + (f" after {limit:g} s" if window.case else "")
    checks = [seen.check(what, seen.count(lost & late), "no packet lost", "{} lost")]
    if expect is not None and expect.lost is not None:
        count, allowed = seen.count(lost), f"at most {expect.lost} lost"
        over = np.where(count > expect.lost, count, 0)
        checks.append(seen.check(f"{title}: {allowed} a pair", over, allowed, "{} lost"))
    never = window.most < 0
    if never.any():
        # What arrives after the next event had waited in its host until the switch had power again.
        strays = seen.count(seen.in_time & never[seen.pair] & late)
        what = f"{title}: cut off as predicted"
        checks.append(seen.check(what, strays, "nothing delivered", "{} packets"))
    return checks


def _rate(what: str, seen: _Seen, due: int) -> Check:
    """A probe that is silent sees no loss: at least half of what was due has been sent."""
    sent = np.bincount(seen.pair, minlength=len(seen.names))
    silent = np.where(sent < due, sent, 0) + (sent < due)
    title = f"probe, {what}: it kept its rate"
    return seen.check(title, silent, f"{due} packets or more", "fewer than {}")


def within(expect: ExpectInMoment | None) -> float:
    """Seconds from which nothing may be lost; at once before anything happens."""
    if expect is None:
        return 0.0
    return CONVERGED_WITHIN if expect.converged_within is None else expect.converged_within


def _overall(probed: Probed, came: NDArray[np.bool_], begin: float) -> Watched:
    """Counts by stretches of time."""
    since = np.maximum(0, probed.sent - begin)
    length = float(since.max(initial=0))
    stretch = max(0.05, round(length / STRETCHES, 2))
    where = (since / stretch).astype(np.int64)
    return Watched(stretch, np.bincount(where), np.bincount(where, came).astype(np.int64))


CALIBRATION_RATE = 2000.0
"""Packets a second of all pairs together. A machine does many times as many while nothing happens;
while the fabric moves, the controller and Open vSwitch need it, too."""
LEAST, PACKETS = 1.0, 5
"""A control window is so many seconds, and so many packets of a pair, at least."""
SLOWER, MOST = 2.0, 4.0
"""The factor by which the next try is slower, and the longest interval in seconds."""


def clean_interval(
    engine: Engine, pairs: Sequence[HostPair], interval: float, step: Step
) -> tuple[float, list[str]]:
    """The shortest interval, from `interval` on, at which the probe loses nothing by itself.

    Args:
        engine: with a probe.
        pairs: hosts that reach each other.
        interval: seconds between two packets of a pair, to begin with; more for many pairs.
        step: is notified of each control window.

    Returns:
        The interval, and what was seen at shorter ones.

    Raises:
        EngineError: there is none up to 4 seconds.
    """
    seen: list[str] = []
    if (wanted := len(pairs) / interval) > CALIBRATION_RATE:
        seen.append(
            f"every {interval:g} s: {wanted:,.0f} packets a second, "
            f"where {CALIBRATION_RATE:,.0f} go"
        )
        interval = len(pairs) / CALIBRATION_RATE
    while True:
        what = f"send over {len(pairs):,} pairs every {interval:.3g} s while nothing happens"
        with step("control", what):
            fault = _window(engine, pairs, interval)
        if not fault:
            return interval, seen
        seen.append(f"every {interval:.3g} s: {fault}")
        if interval * SLOWER > MOST:
            tried = "; ".join(seen)
            raise EngineError(
                "this machine is too busy: the probe itself loses packets while nothing happens "
                f"({tried}), so it cannot tell whether a move does; run it again on a quieter one"
            )
        interval *= SLOWER


def _window(engine: Engine, pairs: Sequence[HostPair], interval: float) -> str:
    """What was wrong with one control window; "" for nothing."""
    seconds = max(LEAST, PACKETS * interval)
    engine.probe_start(pairs, interval)
    begin = engine.now()
    engine.wait(seconds)
    end = engine.now()
    probed = engine.probe_stop()
    if lost := int(np.isnan(probed.received).sum()):
        return f"{lost:,} of {len(probed.sent):,} packets lost"
    inside = probed.pair[(probed.sent >= begin) & (probed.sent < end)]
    due = int((end - begin) / interval / 2)
    if (least := int(np.bincount(inside, minlength=len(pairs)).min())) < due:
        return f"{least} packets of a pair sent where {2 * due} were due"
    return ""
