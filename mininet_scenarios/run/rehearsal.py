"""The rehearsal: bring a build up on an engine, prove the checker, check every pair and link."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import numpy as np

from compilers.evaluation.traffic import PATTERNS
from compilers.tables.build import Build
from inventory.problems import InputError, Problem
from mininet_scenarios.engines.engine_kinds import ENGINES
from mininet_scenarios.run.rehearsal_plan import Observer, Plan, Silent
from mininet_scenarios.run.timeline import Timeline
from mininet_scenarios.scenario.engine import (
    Check,
    Counts,
    Diversion,
    Engine,
    Flows,
    HostSample,
    Mismatch,
    Observation,
    Progress,
)
from mininet_scenarios.scenario.scenario_file import (
    FlowSpec,
    RulesExpected,
    Scenario,
)
from mininet_scenarios.verdict.checks import (
    CarriedRate,
    Examiner,
    PairsReached,
    Result,
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
SAMPLED = 24
"""Pairs that get a number of packets of their own."""
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
        self.engine, self.abilities = engine, ENGINES[engine.name]
        build = plan.build(0)
        hosts = HostSample.of(build, plan.scenario.hosts)
        if len(hosts) < 2:
            raise InputError(TOO_FEW)
        self.examiner = Examiner(Prediction.of(build), hosts)
        promised = [check for check, _ in plan.promises]
        self.result = Result(pairs=len(hosts) * (len(hosts) - 1), checks=promised)

    def run(self, then: Callable[[], None] | None) -> Result:
        """Take all steps in their order."""
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
        chosen = choose_diversion(self.examiner)
        if chosen is None:
            return
        diversion, counts = chosen
        with self._step("prove", "put a wrong table in place, and see it caught") as progress:
            self.engine.divert(diversion)
            try:
                seen = self.engine.send(self.examiner.hosts.names, counts, progress)
                wrong = self.examiner.compare("", counts, seen)
            finally:
                self.engine.restore()
            seen = self.engine.send(self.examiner.hosts.names, counts, progress)
            name = "the right table again"
            right = self.examiner.compare(name, counts, seen)
        noticed = [mismatch for check in wrong for mismatch in check.mismatches]
        if noticed:
            wiring, switch = self.examiner.build.wiring, diversion.switch
            port = wiring.port_name(wiring.names.index(switch), diversion.port)
            what = f"class {diversion.egress} of switch {switch} sent to {port}"
            self.result.caught = f"{what}: {noticed[0]}"
            self.observer.note(f"a wrong table was caught: {self.result.caught}")
        self.result.checks.append(Check("a wrong table is caught", 1, min(len(noticed), 1)))
        self.result.checks += [check for check in right if not check.passed]

    def _every_pair(self, version: int, of: str = "") -> None:
        """Check every pair of hosts; `of` names another build than the first.

        The scenario expects nothing of other builds than the first.
        """
        counts = self.examiner.hosts.every_pair()
        over = "" if version == 4 else f" over IPv{version}"
        name = f"{of}every pair{over}"
        step = f"{of}pairs" if version == 4 else f"{of}pairs{version}"
        with self._step(step, f"check {of}every ordered pair{over}, {counts.sum():,}") as progress:
            seen = self.engine.send(self.examiner.hosts.names, counts, progress, version)
        expect = self.examiner.usual()
        if not of:
            expect = expect.model_copy(update=self.scenario.expect.model_dump(exclude_none=True))
        self.result.checks += [
            *self.examiner.judge(name, expect, counts > 0, seen.longest, self.engine),
            *self.examiner.compare(name, counts, seen),
        ]
        if version == 4 and not of:
            self._note(counts, seen)

    def _exercise(self, of: str = "") -> None:
        """Let packets reach the rules of the program that is live."""
        wanted = rules_expected(self.scenario, len(self.examiner.hosts))
        if wanted == "none" or "rules" not in self.abilities:
            return
        which = " (new build)" if of else ""
        what = f"let packets reach every rule, and compare them{which}"
        with self._step(f"{of}rules", what) as progress:
            done = self.engine.exercise(wanted == "all", progress)
        self.result.exercise = done
        self.result.checks += rule_checks(done, of)

    def _note(self, counts: Counts, seen: Observation) -> None:
        """What the result tells of the round of all pairs."""
        self.result.loads = self.examiner.of_links(seen.loads)
        came = (counts > 0) & (seen.longest >= 0)
        self.result.delivered = int(np.count_nonzero(came))
        sure = (counts > 0) & (self.examiner.fewest >= 0)
        self.result.reached[-1] = PairsReached.of("at first", sure, came)
        if not self.examiner.prediction.varies:
            self.result.predicted_hops = histogram(self.examiner.most, counts > 0)
        self.result.seen_hops = histogram(seen.longest, counts > 0)

    def _sample(self, of: str = "") -> None:
        counts = sample_counts(len(self.examiner.hosts))
        pairs = np.count_nonzero(counts)
        what = f"check {pairs} pairs with 1 to {pairs} packets each"
        with self._step(f"{of}sample", what) as progress:
            seen = self.engine.send(self.examiner.hosts.names, counts, progress)
        self.result.checks += self.examiner.compare(f"{of}sample", counts, seen)

    def _timeline(self) -> Prediction:
        """Run the timeline; another build is checked as the first one was."""
        if not self.plan.cases and self.scenario.traffic.probe is None:
            return self.examiner.prediction
        timeline = Timeline(self.plan, self.examiner, self.engine, self._step, self.result)
        now = timeline.run()
        self.examiner = timeline.whole
        if timeline.moved:
            for version in self.engine.versions:
                self._every_pair(version, NEW)
            self._exercise(NEW)
            self._sample(NEW)
        return now

    def _flow(self, now: Prediction) -> None:
        """Let the flows of the scenario run, and judge what arrives."""
        spec, link_rate = self.scenario.traffic.flows, self.scenario.traffic.link_rate
        if spec is None:
            raise ValueError("a scenario without flows")
        hosts = self.examiner.hosts
        flows = host_flows(now.build, hosts, spec, spec.rate or link_rate or 10.0)
        fair, _ = carry(now, hosts, flows, link_rate)
        what = f"{len(flows.rate)} {spec.protocol} flows, {spec.pattern}, for {spec.seconds:g} s"
        with self._step("flows", what):
            rate, loads = self.engine.carry(hosts.names, flows, spec.seconds)
        self.result.throughput = CarriedRate(
            pattern=spec.pattern,
            protocol=spec.protocol,
            offered=flows.rate,
            carried=rate,
            fair=fair,
            loads=self.examiner.of_links(loads),
        )
        self.result.checks.append(_judge(self.scenario, self.result.throughput))

    @contextmanager
    def _step(self, name: str, what: str) -> Iterator[Progress]:
        begun = time.perf_counter()
        with self.observer.step(what) as progress:
            yield progress
        self.result.seconds[name] = round(time.perf_counter() - begun, 2)


def choose_diversion(examiner: Examiner) -> tuple[Diversion, Counts] | None:
    """A wrong table, and a packet for each pair of hosts that it leads astray.

    Rather over too many links than to be lost, which takes longer to see. Where a hash chooses
    among paths, every pair sends. None where by the tables no pair notices.
    """
    prediction, hosts = examiner.prediction, examiner.hosts
    ends = hosts.switch
    for switch, egress, port in _diversions(prediction, hosts):
        wrong = prediction.with_port(switch, egress, port).first
        taken, least, most = (x[ends][:, ends] for x in (wrong, prediction.fewest, prediction.most))
        longer, lost = taken > most, taken < least
        if (longer | lost).any():
            noticing = (longer if longer.any() else lost).astype(np.int64)
            counts = hosts.every_pair() if prediction.varies else noticing
            return Diversion(examiner.build.wiring.names[switch], egress, port), counts
    return None


def _diversions(prediction: Prediction, hosts: HostSample) -> Iterator[tuple[int, int, int]]:
    """Classes of the middle switch with hosts and of one without, and ports of others for them.

    The class to most hosts first, without alternates if any is: its group leads packets from hosts,
    too. Where a hash chooses among paths a port to a host comes first: no path leads on from there.
    """
    build = prediction.build
    bare = np.flatnonzero(build.topology.present & ~(build.wiring.host_port > 0).any(axis=1))
    for switch in (int(hosts.switch[len(hosts) // 2]), *bare[:1].tolist()):
        ports = build.tables.classes.port[switch]
        several = build.tables.classes.alternate[switch].any(axis=1)
        # A class with next hops to choose from at every hop has no group to change.
        usable = np.flatnonzero((ports > 0) & ~(several & build.forwarding.every_hop))
        led = prediction.egress[switch][hosts.switch] == usable[:, None]
        order = np.lexsort((-np.count_nonzero(led, axis=1), several[usable]))
        to_host = build.wiring.host_port[switch][build.wiring.host_port[switch] > 0][-1:].tolist()
        for place in order.tolist():
            others = ports[np.roll(usable, -place)[:0:-1]].tolist()
            for port in (*to_host, *others) if prediction.varies else (*others, *to_host):
                yield switch, int(usable[place]), port


def rules_expected(scenario: Scenario, hosts: int) -> RulesExpected:
    """What a scenario expects of rules: as it says, or what takes about a second."""
    if scenario.expect.rules is not None:
        return scenario.expect.rules
    slow = hosts > MOST_EXERCISED or scenario.traffic.link_rate is not None
    return "none" if slow else "reachable"


def sample_counts(hosts: int) -> Counts:
    """Some ordered pairs by chance, the k-th of them with k packets: a counter tells whose."""
    pairs = np.argwhere(1 - np.eye(hosts, dtype=np.int64))
    chosen = np.random.default_rng(1).permutation(len(pairs))[:SAMPLED]
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
    destination = traffic.destination[flow]
    flow, at, destination = (x[count[destination] > 0] for x in (flow, at, destination))
    if not len(flow):
        raise InputError.of(
            key="traffic.flows.pattern",
            required="a pattern that has flows on this fabric",
            given=spec.pattern,
        )
    to = first[destination] + number[at] % count[destination]
    return Flows(at, to.astype(np.int64), rate * traffic.amount[flow], spec.protocol, spec.parallel)


def _judge(scenario: Scenario, carried: CarriedRate) -> Check:
    ratios = carried.ratios()
    wanted = scenario.expect.throughput
    least = OF_FAIR[carried.protocol] * ratios["fair"] if wanted is None else wanted
    enough = ratios["carried"] >= least
    name = f"{carried.pattern}: at least {least:.1%} of what is offered arrives"
    seen = f"{ratios['carried']:.1%}, where max-min fairness gives {ratios['fair']:.1%}"
    told = () if enough else (Mismatch("all flows", f"at least {least:.1%}", seen),)
    return Check(name, 1, int(enough), told)
