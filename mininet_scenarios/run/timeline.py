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
from itertools import groupby, pairwise

import numpy as np
from numpy.typing import NDArray

from mininet_scenarios.run.plan import Plan
from mininet_scenarios.scenario.engine import (
    SILENT,
    Ability,
    BuildChange,
    Check,
    ControllerChange,
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
from mininet_scenarios.scenario.scenario_file import Expect
from mininet_scenarios.scenario.timeline_events import Case
from mininet_scenarios.verdict.checks import Examiner, Happened, PairsReached, Result, Watched
from mininet_scenarios.verdict.predict import Prediction

LEAD = 0.5
"""Seconds that a probe runs before the first event, and when nothing may be lost any more."""


@dataclass(frozen=True, slots=True, eq=False)
class Asked:
    """A round under one outage: pairs that could be asked, that the tables deliver, and links."""

    could: NDArray[np.bool_]
    sure: NDArray[np.bool_]
    longest: NDArray[np.int64]

    @property
    def reached(self) -> NDArray[np.bool_]:
        """Those that were."""
        return np.greater(self.longest, SILENT)


class Timeline:
    """One run of the events of a scenario."""

    def __init__(
        self,
        plan: Plan,
        examiner: Examiner,
        engine: Engine,
        abilities: frozenset[Ability],
        step: Step,
    ) -> None:
        self.plan, self.scenario = plan, plan.scenario
        self.first = self.whole = examiner
        self.engine, self.step = engine, step
        self.hosts, self.abilities = examiner.hosts, abilities
        self.outage = Outage()
        self.coming: Examiner | None = None
        self.controlled = True
        self.windows: list[Window] = []
        self.reached: dict[int, PairsReached | None] = {}
        self.probed: list[HostPair] | None = None
        self.begin = self.interval = 0.0

    @property
    def moved(self) -> bool:
        """Whether the fabric holds another build than the first, without failures."""
        whole = self.outage == Outage() and self.coming is None
        return whole and self.whole is not self.first

    def run(self, result: Result) -> Prediction:
        """All events in their order; what came of them is added to the result."""
        cases = self.plan.cases
        self._start_probe(cases, result)
        self._watch("before anything happens", self.begin, self.whole.prediction)
        tally = Tally()
        soon = [case.soon for case in cases[1:]] + [False]
        rushed = dict(zip(map(id, cases), soon, strict=False))  # of no cases there is one too many
        for number, (group, alike) in enumerate(groupby(cases, lambda case: case.group), 1):
            part = list(alike)
            with self.step(f"event {number}", group) as progress:
                for done, case in enumerate(part, 1):
                    ask = not rushed[id(case)]
                    result.happened.append(self._happen(case, ask, tally))
                    progress(done, len(part))
        result.checks += tally.checks()
        result.reached |= self.reached
        if self.probed is not None:
            with self.step("probe", "wait for the last packets of the probe"):
                self._stop_probe(result)
        return self.whole.prediction.under(self.outage)

    def _happen(self, case: Case, ask: bool, tally: Tally) -> Happened:
        """The event, and the round after it."""
        if case.at is not None:
            self.engine.wait(self.begin + case.at - self.engine.now())
        now = self._apply(case.what, case.event, case)
        happened = Happened(case.what, round(self.windows[-1].begin - self.begin, 3))
        if case.undo is None:
            self.reached[case.moment] = None
        if ask:
            refused = self.engine.settle(self.scenario.patience)
            if self.coming is not None and self.controlled:
                tally.add(case, [self._moved(case, refused)])
            now = self._land(refused) or now
            asked, checks = self._ask(case, now)
            tally.add(case, checks)
            if case.undo is None and self.whole is self.first:
                found = PairsReached.of(case.what, asked.sure, asked.reached)
                self.reached[case.moment] = found
            happened = replace(
                happened,
                pairs=int(asked.could.sum()),
                expected=int(asked.sure.sum()),
                reached=int(asked.reached.sum()),
                max_hops=max(0, int(asked.longest.max(initial=0))),
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
        if isinstance(event, BuildChange):
            build = self.plan.build(event.build)
            hosts = HostSample.of(build, self.scenario.hosts)
            self.coming = Examiner(build, hosts, Prediction.of(build))
        now = self._predicted()
        if isinstance(event, ControllerChange) and event.round is not None:
            self.engine.apply(event)  # waits for the round: what is lost until then is the move's
            self._watch(what, self.engine.now(), now, case)
        else:
            self._watch(what, self.engine.now(), now, case)
            self.engine.apply(event)
        return now

    def _predicted(self) -> Prediction:
        now = self.whole.prediction.under(self.outage)
        if self.coming is None:
            return now
        return now.on_the_way(self.coming.prediction.under(self.outage))

    def _moved(self, case: Case, refused: str) -> Check:
        """Whether all switches have come to hold the other build."""
        told = (Mismatch("the fabric", "moved", f"taken back: {refused}"),) if refused else ()
        return Check(f"{case.group}: moved", 1, int(not refused), told)

    def _land(self, refused: str) -> Prediction | None:
        """Where a move has come to its end: what is predicted from now on."""
        if self.coming is None or not self.controlled:
            return None
        if refused:
            self.coming = None
            return self._predicted()
        self.whole, self.coming = self.coming, None
        self.hosts = self.whole.hosts
        return self._predicted()

    def _watch(
        self, what: str, begin: float, prediction: Prediction, case: Case | None = None
    ) -> None:
        """Open a window, for the probe that runs."""
        ends = np.zeros((0, 2), np.int64)
        if self.probed is not None:
            number = {name: i for i, name in enumerate(self.hosts.names)}
            ends = np.array([[number.get(name, SILENT) for name in pair] for pair in self.probed])
            ends = np.where(ends >= 0, self.hosts.switch[ends], SILENT)
        self.windows.append(Window(what, begin, prediction, ends, case))

    def _ask(self, case: Case, now: Prediction) -> tuple[Asked, list[Check]]:
        """A packet for each pair; those that may be lost have a round of their own, uncounted."""
        examiner = Examiner(self.whole.build, self.hosts, now)
        up = self.outage.up(self.whole.build.wiring.names)[self.hosts.switch]
        could = up[:, None] & up & ~np.eye(len(up), dtype=bool)
        sure = could & (examiner.fewest >= 0)
        counted = "counters" in self.abilities and self.probed is None and self.coming is None
        checks, longest = list[Check](), np.full(could.shape, SILENT)
        for part, countable in ((sure, counted), (could & ~sure, False)):
            if part.any():
                counts = part.astype(np.int64)
                seen = self.engine.send(self.hosts.names, counts, lambda done, total: None)  # noqa: ARG005
                checks += examiner.compare(case.group, counts, seen, countable)
                longest = np.maximum(longest, seen.longest)
        asked = Asked(could, sure, longest)
        return asked, checks + self._expected(case, examiner, asked)

    def _expected(self, case: Case, examiner: Examiner, asked: Asked) -> list[Check]:
        """The scenario's own expectations, independent of the tables."""
        expect, checks = case.expect, []
        if expect.delivered is not None:
            delivered = int(asked.reached.sum())
            lost = examiner.lost_pairs(asked.could & ~asked.reached)
            short = lost if delivered != expect.delivered else ()
            checks.append(Check(f"{case.group}: delivered", expect.delivered, delivered, short))
        if expect.max_hops is not None:
            most = np.full_like(examiner.most, expect.max_hops)
            name = f"{case.group}: at most {expect.max_hops} hops"
            checks.append(examiner.within(name, most, asked.longest))
        if expect.paths:
            checks.append(examiner.check_paths(case.group, expect.paths, self.engine))
        return checks

    def _start_probe(self, cases: tuple[Case, ...], result: Result) -> None:
        probe = self.scenario.traffic.probe
        if probe is None:
            self.begin = self.engine.now()
            return
        pairs = np.argwhere(self.hosts.every_pair())
        if 0 < probe.pairs < len(pairs):
            random = np.random.default_rng(probe.seed)
            pairs = pairs[np.sort(random.permutation(len(pairs))[: probe.pairs])]
        self.probed, self.interval = self.hosts.pairs(pairs), probe.interval
        if any(isinstance(case.event, BuildChange) for case in cases):
            sure = self.hosts.pairs(pairs[(self.whole.fewest >= 0)[tuple(pairs.T)]])
            found = clean_interval(self.engine, sure, probe.interval, self.step)
            self.interval, result.slowed = found
        self.engine.probe_start(self.probed, self.interval)
        self.begin = self.engine.now()
        self.engine.wait(LEAD)

    def _stop_probe(self, result: Result) -> None:
        assert self.probed is not None  # noqa: S101
        self.engine.wait(LEAD)
        end = self.engine.now()
        probed = self.engine.probe_stop()
        watch(self.windows, end + GUARD, self.begin, self.probed, probed, self.interval, result)


class Tally:
    """Checks of alike cases, added up under one name each."""

    def __init__(self) -> None:
        self.found: dict[str, Check] = {}

    def add(self, case: Case, checks: Iterable[Check]) -> None:
        """Those of one more case."""
        for check in checks:
            before = self.found.get(check.name, Check(check.name, 0, 0))
            told = check.mismatches
            if case.what != case.group:
                told = tuple(replace(m, where=f"{case.what}: {m.where}") for m in told)
            self.found[check.name] = Check(
                check.name,
                before.required + check.required,
                before.seen + check.seen,
                before.mismatches + told,
            )

    def checks(self) -> list[Check]:
        """In the order in which their names came first."""
        return list(self.found.values())


GUARD = 0.05
"""Seconds before an event in which a packet may have left and yet meet it."""
CONVERGED_WITHIN = 1.0
"""Seconds, where a scenario does not say."""
STRETCHES = 240


@dataclass(frozen=True, slots=True, eq=False)
class Window:
    """From an event, at `begin` on the engine's clock, to the next; case is None for an undo.

    ends: int64[n, 2], the switches of the probe's pairs as the prediction numbers them; negative
    for hosts that it has not.
    """

    what: str
    begin: float
    prediction: Prediction
    ends: NDArray[np.int64]
    case: Case | None = None


@dataclass(frozen=True, slots=True, eq=False)
class _Seen:
    """The packets of one window: pair (int[n]), seconds since the event, whether they came."""

    pair: NDArray[np.int32]
    since: NDArray[np.float64]
    came: NDArray[np.bool_]


def watch(
    windows: list[Window],
    end: float,
    begin: float,
    pairs: Sequence[HostPair],
    probed: Probed,
    interval: float,
    result: Result,
) -> None:
    """Judge every window, and add what was seen to the result.

    Args:
        windows: in their order.
        end: when the last one ends.
        begin: when the timeline began.
        pairs: of the probe.
        probed: its packets.
        interval: seconds between two of a pair.
        result: gets checks, and of each event what was lost.
    """
    came = ~np.isnan(probed.received)
    result.watched = _overall(probed, came, begin)
    rows = iter(range(len(result.happened)))
    ends = [*(after.begin for _, after in pairwise(windows)), end]
    for window, until in zip(windows, ends, strict=True):
        inside = (probed.sent >= window.begin - GUARD) & (probed.sent < until - GUARD)
        seen = _Seen(probed.pair[inside], probed.sent[inside] - window.begin, came[inside])
        known = (window.ends >= 0).all(axis=1)
        fewest = np.where(known, window.prediction.fewest[tuple(window.ends.T)], SILENT)
        most = np.where(known, window.prediction.most[tuple(window.ends.T)], 0)
        first = window is windows[0]
        if window.case is None and not first:
            continue
        lost = ~seen.came & (fewest >= 0)[seen.pair]
        count = np.bincount(seen.pair[lost], minlength=len(pairs))
        last = float(np.maximum(0, seen.since[lost]).max(initial=0))
        names = [f"{one} → {other}" for one, other in pairs]
        result.checks += _judge(window, names, seen, lost, count, most < 0)
        if window.case and isinstance(window.case.event, BuildChange):
            due = int((until - window.begin) / interval / 2)
            result.checks.append(_rate(window.what, names, seen, due))
        if not first:
            row = next(rows)
            result.happened[row] = replace(
                result.happened[row],
                lost=int(count.sum()),
                worst=int(count.max(initial=0)),
                converged=round(last, 3),
            )


def _judge(
    window: Window,
    names: list[str],
    seen: _Seen,
    lost: NDArray[np.bool_],
    count: NDArray[np.int64],
    never: NDArray[np.bool_],
) -> list[Check]:
    expect = window.case.expect if window.case else None
    limit = within(expect)
    title = f"probe, {window.what}"
    late = np.bincount(seen.pair[lost & (seen.since >= limit)], minlength=len(names))
    what = f"{title}: nothing lost" + (f" after {limit:g} s" if window.case else "")
    checks = [_pairs(what, names, late, "no packet lost", "{} lost")]
    if expect is not None and expect.lost is not None:
        over = np.where(count > expect.lost, count, 0)
        allowed = f"at most {expect.lost} lost"
        checks.append(_pairs(f"{title}: {allowed} a pair", names, over, allowed, "{} lost"))
    strays = seen.came & never[seen.pair] & (seen.since >= limit)
    if never.any():
        came = np.bincount(seen.pair[strays], minlength=len(names))
        checks.append(
            _pairs(f"{title}: cut off as predicted", names, came, "nothing delivered", "{} packets")
        )
    return checks


def _rate(what: str, names: list[str], seen: _Seen, due: int) -> Check:
    """A probe that is silent sees no loss: at least half of what was due has been sent."""
    sent = np.bincount(seen.pair, minlength=len(names))
    silent = np.where(sent < due, sent, 0) + (sent < due)
    title = f"probe, {what}: it kept its rate"
    return _pairs(title, names, silent, f"{due} packets or more", "fewer than {}")


def within(expect: Expect | None) -> float:
    """Seconds from which nothing may be lost; at once before anything happens."""
    if expect is None:
        return 0.0
    return CONVERGED_WITHIN if expect.converged_within is None else expect.converged_within


def _pairs(
    what: str, names: list[str], wrong: NDArray[np.int64], expected: str, seen: str
) -> Check:
    """A check of all pairs, of which those with a count are wrong."""
    mismatches = tuple(
        Mismatch(names[n], expected, seen.format(wrong[n])) for n in np.flatnonzero(wrong).tolist()
    )
    return Check.of(what, len(names), mismatches)


def _overall(probed: Probed, came: NDArray[np.bool_], begin: float) -> Watched:
    """Counts by stretches of time."""
    since = np.maximum(0, probed.sent - begin)
    length = float(since.max(initial=0))
    stretch = max(0.05, round(length / STRETCHES, 2))
    where = (since / stretch).astype(np.int64)
    latency = np.sort((probed.received - probed.sent)[came])
    return Watched(
        stretch=stretch,
        sent=np.bincount(where),
        received=np.bincount(where, came).astype(np.int64),
        latency=latency[latency > 0],
    )


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
