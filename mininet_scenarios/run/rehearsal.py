"""The rehearsal: bring a build up on an engine, prove the checker, check every pair and link."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import numpy as np
from numpy.typing import NDArray

from compilers.evaluation.traffic import PATTERNS
from compilers.routing.marked_spread import require_short_marks
from compilers.tables.build import Build
from inventory.problems import InputError, Problem
from mininet_scenarios.engines.engine_kinds import ENGINES
from mininet_scenarios.run.plan import Observer, Plan, Silent
from mininet_scenarios.run.timeline import Timeline
from mininet_scenarios.scenario.engine import (
    Counts,
    Diversion,
    Engine,
    Flows,
    HostSample,
    Observation,
    Progress,
    Step,
)
from mininet_scenarios.scenario.scenario_file import (
    Expect,
    FlowSpec,
    RulesExpected,
    Sample,
    Scenario,
)
from mininet_scenarios.verdict.checks import (
    CarriedRate,
    Check,
    Examiner,
    Mismatch,
    PairsReached,
    Result,
    by_node,
    histogram,
    rule_checks,
)
from mininet_scenarios.verdict.predict import Prediction, carry

TOO_FEW = Problem(
    key="hosts_per_node",
    required="at least two hosts, to send packets between",
    given="a fabric with fewer",
    todo="compile it with hosts_per_node: 1 or more",
)
MOST_EXERCISED = 14
"""Hosts up to which packets are sent to every rule, where a scenario does not say."""
NEW = "new build, "
"""Before the names of checks of the build that a fabric has moved to."""


def carry_out(
    plan: Plan,
    engine: Engine,
    observer: Observer | None = None,
    then: Callable[[], None] | None = None,
) -> Result:
    """Bring the plan's fabric up on an engine, check it, and take it down whatever happens.

    Args:
        plan: of the rehearsal.
        engine: with what the plan needs (`engine_kinds.require`).
        observer: is notified of each step.
        then: called when all is checked, before everything is taken down.

    Raises:
        InputError: there are no two hosts to send packets between.
        EngineError: the engine could not do its part.
    """
    return _Rehearsal(plan, engine, observer or Silent()).run(then)


class _Rehearsal:
    def __init__(self, plan: Plan, engine: Engine, observer: Observer) -> None:
        self.plan, self.scenario, self.observer = plan, plan.scenario, observer
        self.engine, self.abilities = engine, ENGINES[engine.name].abilities
        self.build = build = plan.build(0)
        self.hosts = HostSample.of(build, plan.scenario.hosts)
        if len(self.hosts) < 2:
            raise InputError(TOO_FEW)
        if "rules" in self.abilities:
            require_short_marks(build, "a rehearsal on switches")
        self.prediction = Prediction.of(build)
        self.examiner = Examiner(build, self.hosts, self.prediction)
        promised = [check for check, _ in plan.promises]
        self.result = Result(pairs=len(self.hosts) * (len(self.hosts) - 1), checks=promised)

    @property
    def _counted(self) -> bool:
        return "counters" in self.abilities

    def run(self, then: Callable[[], None] | None) -> Result:
        """All steps in their order."""
        try:
            self.engine.start(self._step)
            if self.scenario.prove_checker:
                self._prove_checker()
            for version in self.engine.versions:
                self._every_pair(version)
            self._exercise()
            self._sample()
            now = self._timeline()
            if self.scenario.traffic.flows:
                self._flow(now)
            if then:
                then()
        finally:
            self.engine.stop(self._step)
        return self.result

    def _prove_checker(self) -> None:
        """A checker that does not see a wrong table proves nothing with a right one."""
        chosen = choose_diversion(self.build, self.prediction, self.hosts)
        if chosen is None:
            return
        diversion, counts = chosen
        with self._step("prove", "put a wrong table in place, and see it caught") as progress:
            self.engine.divert(diversion)
            try:
                seen = self.engine.send(self.hosts.names, counts, progress)
                wrong = self.examiner.compare("", counts, seen, self._counted)
            finally:
                self.engine.restore()
            seen = self.engine.send(self.hosts.names, counts, progress)
            name = "the right table again"
            right = self.examiner.compare(name, counts, seen, self._counted)
        noticed = [mismatch for check in wrong for mismatch in check.mismatches]
        if noticed:
            self.result.caught = self._told(diversion, str(noticed[0]))
            self.observer.note(f"a wrong table was caught: {self.result.caught}")
        self.result.checks.append(Check("a wrong table is caught", 1, min(len(noticed), 1)))
        self.result.checks += [check for check in right if not check.passed]

    def _told(self, diversion: Diversion, first: str) -> str:
        wiring, switch = self.build.wiring, diversion.switch
        port = wiring.port_name(wiring.names.index(switch), diversion.port)
        return f"class {diversion.egress} of switch {switch} sent to {port}: {first}"

    def _every_pair(self, version: int, of: str = "") -> None:
        """With `of` it is another build than the first; then what the scenario expects is not."""
        counts = self.hosts.every_pair()
        over = "" if version == 4 else f" over IPv{version}"
        name, step = f"{of}every pair{over}", f"{of}pairs" + f"{version}" * (version != 4)
        with self._step(step, f"check {of}every ordered pair{over}, {counts.sum():,}") as progress:
            seen = self.engine.send(self.hosts.names, counts, progress, version)
        expect = Expect() if of else self.scenario.expect
        self.result.checks += [
            *self.examiner.judge(name, expect, seen),
            *self.examiner.compare(name, counts, seen, self._counted),
        ]
        if expect.paths:
            self.result.checks.append(self.examiner.check_paths(name, expect.paths, self.engine))
        if version == 4 and not of:
            self._note(counts, seen)

    def _exercise(self, of: str = "") -> None:
        """Let packets reach the rules of the program that is live."""
        wanted = rules_expected(self.scenario, len(self.hosts))
        if wanted == "none" or "rules" not in self.abilities:
            return
        what = f"let packets reach every rule, and compare them{' (new build)' * bool(of)}"
        with self._step(f"{of}rules", what) as progress:
            shares = self.scenario.expect.shares
            done = self.engine.exercise(wanted == "all", shares, progress)
        self.result.exercise = done
        self.result.checks += rule_checks(done, of)

    def _note(self, counts: Counts, seen: Observation) -> None:
        """What the result tells of the round of all pairs."""
        wiring = self.build.wiring
        switch, link = np.nonzero(wiring.far >= 0)
        ports = by_node(seen.loads, wiring.names)
        self.result.loads = ports[switch, wiring.port[switch, link]]
        came = (counts > 0) & (seen.longest >= 0)
        self.result.delivered = int(np.count_nonzero(came))
        sure = (counts > 0) & (self.examiner.fewest >= 0)
        self.result.reached[-1] = PairsReached.of("at first", sure, came)
        if not self.prediction.varies:
            self.result.predicted_hops = histogram(self.examiner.most, counts > 0)
        self.result.seen_hops = histogram(seen.longest, counts > 0)

    def _sample(self, of: str = "") -> None:
        counts = sample_counts(self.scenario.sample, len(self.hosts))
        pairs = np.count_nonzero(counts)
        if not pairs:
            return
        what = f"check {pairs} pairs with 1 to {pairs} packets each"
        with self._step(f"{of}sample", what) as progress:
            seen = self.engine.send(self.hosts.names, counts, progress)
        self.result.checks += self.examiner.compare(f"{of}sample", counts, seen, self._counted)

    def _timeline(self) -> Prediction:
        """Run the timeline; another build is checked as the first one was."""
        if not self.plan.cases and self.scenario.traffic.probe is None:
            return self.prediction
        timeline = Timeline(self.plan, self.examiner, self.engine, self.abilities, self._step)
        now = timeline.run(self.result)
        self.examiner = timeline.whole
        self.hosts, self.build = timeline.hosts, timeline.whole.build
        self.prediction = timeline.whole.prediction
        if timeline.moved:
            for version in self.engine.versions:
                self._every_pair(version, NEW)
            self._exercise(NEW)
            self._sample(NEW)
        return now

    def _flow(self, now: Prediction) -> None:
        self.result.throughput, check = flow(
            self.scenario, self.hosts, now, self.engine, self._step
        )
        self.result.checks.append(check)

    @contextmanager
    def _step(self, name: str, what: str) -> Iterator[Progress]:
        begun = time.perf_counter()
        with self.observer.step(what) as progress:
            yield progress
        self.result.seconds[name] = round(time.perf_counter() - begun, 2)


def choose_diversion(
    build: Build, prediction: Prediction, hosts: HostSample
) -> tuple[Diversion, Counts] | None:
    """A wrong table, and one request in each direction for the pairs that it leads astray.

    At the middle switch with hosts, the class with the most destinations gets the port of another
    class that makes their paths longer; of the classes without alternates, whose group leads
    packets from hosts too. Neighbours are left out where there are others: their packets are lost,
    which takes longer to see than a longer path. Where no such class is led astray by such a port,
    as with bounced paths or marks, or packets take longer paths anyway, over intermediates, packets
    in transit are led astray, and every pair sends. None where by the tables no pair notices.
    """
    switch, ends = int(hosts.switch[len(hosts) // 2]), hosts.switch
    ports = build.tables.classes.port[switch]
    alone = ~build.tables.classes.alternate[switch].any(axis=1)
    links = prediction.fewest[switch][ends]
    if not build.carries:
        classes = np.flatnonzero((ports > 0) & alone)
        led = _led(prediction.egress[switch][ends] == classes[:, None], links > 1)
        longer = _longer(build, prediction, switch, ends)
        for chosen in np.argsort(-np.count_nonzero(led, axis=1), kind="stable"):
            others = ports[np.roll(classes, -chosen)[::-1]]  # the one before it first
            astray = np.count_nonzero(longer[others] & led[chosen], axis=1)
            if astray.any():
                counts = np.outer(ends == switch, led[chosen]).astype(np.int64)
                port = int(others[np.argmax(astray)])
                name = build.wiring.names[switch]
                return Diversion(name, int(classes[chosen]), port), counts + counts.T
    for diversion in _of_transit(build, prediction, hosts, switch):
        at = build.wiring.names.index(diversion.switch)
        wrong = prediction.with_port(at, diversion.egress, diversion.port).first
        taken, fewest, most = (
            x[ends][:, ends] for x in (wrong, prediction.fewest, prediction.most)
        )
        if ((taken < fewest) | (taken > most)).any():
            return diversion, hosts.every_pair()
    return None


def _of_transit(
    build: Build, prediction: Prediction, hosts: HostSample, middle: int
) -> Iterator[Diversion]:
    """Wrong tables for packets in transit: to a host of a switch; of one without, to another class.

    The class with the most destinations: neighbours, as what is far is led here by its own switch.
    """
    bare = np.flatnonzero(~(build.wiring.host_port > 0).any(axis=1))
    for switch in (middle, *bare[:1].tolist()):
        classes = build.tables.classes
        ports, alone = classes.port[switch], ~classes.alternate[switch].any(axis=1)
        # A class with next hops to choose from at every hop has no group to change.
        usable = np.flatnonzero((ports > 0) & (alone | (not build.every_hop)))
        links = prediction.fewest[switch][hosts.switch]
        led = _led(prediction.egress[switch][hosts.switch] == usable[:, None], links == 1)
        if not led.any():
            continue
        chosen = int(np.argmax(np.count_nonzero(led, axis=1)))
        to_host = int(build.wiring.host_port[switch].max(initial=0))
        port = to_host if to_host > 0 else int(ports[usable[chosen - 1]])
        yield Diversion(build.wiring.names[switch], int(usable[chosen]), port)


def _led(by_class: NDArray[np.bool_], wanted: NDArray[np.bool_]) -> NDArray[np.bool_]:
    """bool[classes, hosts], the hosts that each class leads to: those wanted, if there are any."""
    some = by_class & wanted
    return some if some.any() else by_class


def _longer(
    build: Build, prediction: Prediction, switch: int, ends: NDArray[np.int64]
) -> NDArray[np.bool_]:
    """bool[ports + 1, hosts]: out of which ports of a switch packets take too many links."""
    port, far = (
        x[switch][build.wiring.far[switch] >= 0] for x in (build.wiring.port, build.wiring.far)
    )
    longer = np.zeros((int(build.tables.classes.port.max()) + 1, len(ends)), np.bool_)
    longer[port] = (
        1 + prediction.fewest[far][:, ends].astype(np.int64) > prediction.most[switch][ends]
    )
    return longer


def rules_expected(scenario: Scenario, hosts: int) -> RulesExpected:
    """What a scenario expects of rules: as it says, or what takes about a second."""
    if scenario.expect.rules is not None:
        return scenario.expect.rules
    slow = hosts > MOST_EXERCISED or scenario.traffic.link_rate is not None
    return "none" if slow and scenario.expect.shares is None else "reachable"


def sample_counts(sample: Sample, hosts: int) -> Counts:
    """Distinct ordered pairs, seeded, the k-th of them with k requests."""
    pairs = np.argwhere(1 - np.eye(hosts, dtype=np.int64))
    random = np.random.default_rng(sample.seed)
    chosen = random.permutation(len(pairs))[: sample.pairs]
    counts = np.zeros((hosts, hosts), np.int64)
    counts[tuple(pairs[chosen].T)] = np.arange(1, len(chosen) + 1)
    return counts


OF_FAIR = {"udp": 0.85, "tcp": 0.75}
"""The part of max-min fair throughput that must arrive, where a scenario does not say: TCP has more
headers and answers, and finds its rate by losses.
"""


def host_flows(build: Build, hosts: HostSample, spec: FlowSpec, rate: float) -> Flows:
    """The i-th host of a switch sends to the i-th host of each switch that the pattern says.

    Raises:
        InputError: the pattern has no flows on this fabric.
    """
    count = np.bincount(hosts.switch, minlength=build.tables.switches)
    first = np.cumsum(count) - count
    traffic = PATTERNS[spec.pattern](build.topology, int(count.max()), spec.seed)
    number = np.arange(len(hosts)) - first[hosts.switch]
    flow, at = np.nonzero(traffic.source[:, None] == hosts.switch)
    there = traffic.destination[flow]
    flow, at, there = (x[count[there] > 0] for x in (flow, at, there))
    if not len(flow):
        raise InputError.of(
            key="traffic.flows.pattern",
            required="a pattern that has flows on this fabric",
            given=spec.pattern,
        )
    to = first[there] + number[at] % count[there]
    return Flows(at, to.astype(np.int64), rate * traffic.amount[flow], spec.protocol, spec.parallel)


def flow(
    scenario: Scenario, hosts: HostSample, now: Prediction, engine: Engine, step: Step
) -> tuple[CarriedRate, Check]:
    """Let the flows of a scenario run, and judge what arrives."""
    spec, link_rate = scenario.traffic.flows, scenario.traffic.link_rate
    assert spec is not None  # noqa: S101
    flows = host_flows(now.build, hosts, spec, spec.rate or link_rate or 10.0)
    fair = carry(now, hosts, flows, link_rate)
    what = f"{len(flows.rate)} {spec.protocol} flows, {spec.pattern}, for {spec.seconds:g} s"
    with step("flows", what) as progress:
        carried = engine.carry(hosts.names, flows, spec.seconds, progress)
    far = now.build.wiring
    switch, link = np.nonzero(far.far >= 0)
    found = CarriedRate(
        pattern=spec.pattern,
        protocol=spec.protocol,
        offered=flows.rate,
        carried=carried.rate,
        fair=fair.rate,
        loads=by_node(carried.loads, far.names)[switch, far.port[switch, link]],
    )
    return found, _judge(scenario, found)


def _judge(scenario: Scenario, found: CarriedRate) -> Check:
    ratios = found.ratios()
    wanted = scenario.expect.throughput
    least = OF_FAIR[found.protocol] * ratios["fair"] if wanted is None else wanted
    enough = ratios["carried"] >= least
    name = f"{found.pattern}: at least {least:.1%} of what is offered arrives"
    seen = f"{ratios['carried']:.1%}, where max-min fairness gives {ratios['fair']:.1%}"
    told = () if enough else (Mismatch("all flows", f"at least {least:.1%}", seen),)
    return Check(name, 1, int(enough), told)
