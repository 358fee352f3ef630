"""A timeline on an engine: after each event the fabric is checked against the prediction.

Without a probe that runs, all pairs that the tables deliver ping after each event, and those that
they don't deliver, or one way only, are shown by a short burst of one-way packets to be as
predicted. With one, its packets tell what was lost when (`mininet_scenarios.run.loss_windows`).

An event may move the fabric to another build. Until all switches hold it, what is predicted is what
is promised of every mixture of both builds; from then on, what the new one's tables say.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from itertools import groupby

import numpy as np
from numpy.typing import NDArray

from mininet_scenarios.run.loss_windows import GUARD, Window, watch, within
from mininet_scenarios.run.rehearsal_plan import RehearsalPlan
from mininet_scenarios.scenario.engine import (
    SILENT,
    Ability,
    BuildChange,
    ControllerChange,
    Engine,
    Event,
    HostPair,
    HostSample,
    Observation,
    Step,
)
from mininet_scenarios.scenario.outage import Outage
from mininet_scenarios.scenario.timeline_events import Case
from mininet_scenarios.traffic.probe_calibration import clean_interval
from mininet_scenarios.verdict.checks import Check, Examiner, Mismatch
from mininet_scenarios.verdict.predict import Prediction
from mininet_scenarios.verdict.result import Happened, PairsReached, Result

BURST = (4, 0.05)
"""Packets per pair, and seconds between them: with fewer one could be lost for another reason."""
MOST_IN_BURST = 2000
LEAD = 0.5
"""Seconds that a probe runs before the first event, and when nothing may be lost any more."""


@dataclass(frozen=True, slots=True, eq=False)
class Asked:
    """A round under one outage: who could be asked, whom the tables deliver, who was reached."""

    could: NDArray[np.bool_]
    sure: NDArray[np.bool_]
    reached: NDArray[np.bool_]
    hops: NDArray[np.int64]


class Timeline:
    """One run of the events of a scenario."""

    def __init__(
        self,
        plan: RehearsalPlan,
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
                max_hops=int(asked.hops.max(initial=0)),
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
        examiner = Examiner(self.whole.build, self.hosts, now)
        up = self.outage.up(self.whole.build.wiring.names)[self.hosts.switch]
        could = up[:, None] & up & ~np.eye(len(up), dtype=bool)
        arrives = examiner.fewest >= 0
        both = could & arrives & arrives.T
        counts = both.astype(np.int64)
        seen = self.engine.send(self.hosts.names, counts, lambda done, total: None)  # noqa: ARG005
        counted = "counters" in self.abilities and self.probed is None and self.coming is None
        checks = examiner.compare(case.group, counts, seen, counted)
        reached = both & (seen.longest != SILENT)
        hops = np.where(reached, seen.longest, 0)
        if self.probed is None and "probe" in self.abilities:
            pairs = np.argwhere(could & ~both)
            reached, told = self._burst(case, examiner, pairs, reached)
            checks += told
        asked = Asked(could, could & arrives, reached, hops)
        return asked, checks + self._expected(case, examiner, asked, seen)

    def _burst(
        self, case: Case, examiner: Examiner, pairs: NDArray[np.int64], reached: NDArray[np.bool_]
    ) -> tuple[NDArray[np.bool_], list[Check]]:
        """Pairs that cannot ping: some of them deliver one way, and none may that should not."""
        if len(pairs) > MOST_IN_BURST:
            chosen = np.random.default_rng(1).permutation(len(pairs))[:MOST_IN_BURST]
            pairs = pairs[np.sort(chosen)]
        if not len(pairs):
            return reached, []
        self.engine.probe_start(self.hosts.pairs(pairs), BURST[1])
        self.engine.wait(BURST[0] * BURST[1])
        probed = self.engine.probe_stop()
        came = np.bincount(probed.pair[~np.isnan(probed.received)], minlength=len(pairs)) > 0
        i, j = pairs.T
        sure, never = examiner.fewest[i, j] >= 0, examiner.most[i, j] < 0
        wrong = (sure & ~came) | (never & came)
        names = self.hosts.names
        mismatches = tuple(
            Mismatch(
                f"{names[i[n]]} → {names[j[n]]}",
                "delivered" if sure[n] else "lost",
                "delivered" if came[n] else "lost",
            )
            for n in np.flatnonzero(wrong).tolist()
        )
        judged = int(np.count_nonzero(sure | never))
        reached = reached.copy()
        reached[i[came], j[came]] = True
        name = f"{case.group}: one way or not at all, as predicted"
        return reached, [Check.of(name, judged, mismatches)]

    def _expected(
        self, case: Case, examiner: Examiner, asked: Asked, seen: Observation
    ) -> list[Check]:
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
            checks.append(examiner.within(name, most, seen))
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
