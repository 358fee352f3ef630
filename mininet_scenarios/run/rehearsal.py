"""Rehearses one plane: brings a build up on an engine, and checks every pair and link.

`run.emulation` calls `carry_out` with a plan. A `Prediction` has the paths by the tables of the
build. An `Examiner` compares observations of the engine with the prediction (`table_checks`), and
with what the scenario expects (`expectation_checks`). Before these checks, a wrong table is put in
place, to prove that the examiner notices it. Texts for users call the examiner "the checker".
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import product
from typing import NamedTuple

import numpy as np

from inventory.problems import InputError, Problem
from mininet_scenarios.engines.engine_kinds import ENGINES
from mininet_scenarios.run.rehearsal_plan import Observer, Plan, Silent
from mininet_scenarios.run.timeline import Timeline
from mininet_scenarios.scenario.check import Check, Mismatch
from mininet_scenarios.scenario.engine import Diversion, Engine, HostSample, Progress
from mininet_scenarios.scenario.observations import Counts, Observation
from mininet_scenarios.scenario.scenario_file import RulesExpected, Scenario
from mininet_scenarios.traffic.flow_patterns import host_flows
from mininet_scenarios.verdict.checks import Examiner, histogram
from mininet_scenarios.verdict.flow_rates import carry
from mininet_scenarios.verdict.predict import Prediction
from mininet_scenarios.verdict.result import (
    BEFORE_TIMELINE,
    FlowThroughput,
    PairsReached,
    Result,
    rule_checks,
)

TOO_FEW = Problem(
    key="hosts_per_node",
    required="at least two hosts, to send packets between",
    given="a fabric with fewer",
    todo="compile it with hosts_per_node: 1 or more",
)
"""The problem of a fabric on which no packet can be sent."""
NOT_EXERCISED = "the rules are not exercised: engine {engine} has no OpenFlow rows"
"""The note for an engine that cannot exercise rules."""
MOST_EXERCISED = 14
"""Hosts up to which packets are sent to every rule, where a scenario does not say."""
SAMPLED_PAIRS = 24
"""How many pairs of hosts are drawn, each with a different number of packets."""
NEW_BUILD = "new build, "
"""The beginning of the names of checks of the build that a fabric has moved to."""
LEAST_OF_FAIR = {"udp": 0.85, "tcp": 0.75}
"""The part of max-min fair throughput that must arrive where a scenario does not say. TCP has more
headers and answers, and finds its rate by losses.
"""
DEFAULT_RATE = 10.0
"""The rate of flows in Mb/s where neither the scenario nor its links have one."""


def carry_out(
    plan: Plan,
    engine: Engine,
    observer: Observer | None = None,
    at_end: Callable[[], None] | None = None,
) -> Result:
    """Bring the plan's fabric up on an engine, check it, and take it down in any case.

    Args:
        plan: of the rehearsal.
        engine: with the abilities that the plan needs (`engine_kinds.require`).
        observer: is notified of each step.
        at_end: called when all is checked, before everything is taken down.

    Raises:
        InputError: there are no two hosts to send packets between.
        EngineError: the engine failed.
    """
    return _Rehearsal(plan, engine, observer or Silent()).run(at_end)


class _Rehearsal:
    """One run of a plan on an engine, and its result so far."""

    def __init__(self, plan: Plan, engine: Engine, observer: Observer) -> None:
        self.plan, self.scenario, self.observer = plan, plan.scenario, observer
        self.engine, self.abilities = engine, ENGINES[engine.name]
        self.examiner: Examiner
        """Compares observations with the build that the fabric holds."""
        build = plan.build(0)
        hosts = HostSample.of(build, plan.scenario.hosts)
        if len(hosts) < 2:
            raise InputError(TOO_FEW)
        self.examiner = Examiner(Prediction.of(build), hosts)
        promises = [promise.check for promise in plan.promises]
        self.result = Result(pairs=len(hosts) * (len(hosts) - 1), checks=promises)

    def run(self, at_end: Callable[[], None] | None) -> Result:
        """Carry out all steps in their order; `at_end` is called before the engine stops."""
        try:
            self.engine.start(self._step)
            if self.scenario.prove_checker:
                self._prove_examiner()
            for version in self.engine.versions:
                self._every_pair(version)
            self._exercise()
            self._sample()
            prediction = self._timeline()
            if self.scenario.traffic.flows:
                self._flow(prediction)
            if at_end:
                at_end()
        finally:
            self.engine.stop(self._step)
        return self.result

    def _prove_examiner(self) -> None:
        """Put a wrong table in place, and check that the examiner notices it.

        An examiner that does not notice a wrong table proves nothing about a right one.
        """
        proving_diversion = choose_diversion(self.examiner)
        if proving_diversion is None:
            return
        diversion, counts = proving_diversion
        with self._step("prove", "put a wrong table in place, and see it caught") as progress:
            self.engine.divert(diversion)
            try:
                observation = self.engine.send(self.examiner.hosts.names, counts, progress)
                with_wrong_table = self.examiner.table_checks("", counts, observation)
            finally:
                self.engine.restore()
            observation = self.engine.send(self.examiner.hosts.names, counts, progress)
            restored = self.examiner.table_checks("the right table again", counts, observation)
        mismatches = [mismatch for check in with_wrong_table for mismatch in check.mismatches]
        if mismatches:
            wiring, switch = self.examiner.build.wiring, diversion.switch
            port = wiring.port_name(wiring.names.index(switch), diversion.port)
            self.result.wrong_table_found = (
                f"class {diversion.egress} of switch {switch} sent to {port}: {mismatches[0]}"
            )
            self.observer.note(f"a wrong table was caught: {self.result.wrong_table_found}")
        self.result.checks.append(Check("a wrong table is caught", 1, min(len(mismatches), 1)))
        self.result.checks += [check for check in restored if not check.passed]

    def _every_pair(self, version: int, prefix: str = "") -> None:
        """Check every pair of hosts.

        Args:
            version: of the Internet protocol.
            prefix: NEW_BUILD for the build that the fabric has moved to. The scenario's
                expectations are those of the first build only.
        """
        counts = self.examiner.hosts.every_pair()
        over = "" if version == 4 else f" over IPv{version}"
        name = f"{prefix}every pair{over}"
        step = f"{prefix}pairs" if version == 4 else f"{prefix}pairs{version}"
        words = f"check {prefix}every ordered pair{over}, {counts.sum():,}"
        with self._step(step, words) as progress:
            observation = self.engine.send(self.examiner.hosts.names, counts, progress, version)
        expect = self.examiner.default_expectations()
        if not prefix:  # those of the scenario come first
            expect = expect.model_copy(update=self.scenario.expect.model_dump(exclude_none=True))
        self.result.checks += [
            *self.examiner.expectation_checks(
                name, expect, counts > 0, observation.longest, self.engine
            ),
            *self.examiner.table_checks(name, counts, observation),
        ]
        if version == 4 and not prefix:
            self._record_pairs(counts, observation)

    def _exercise(self, prefix: str = "") -> None:
        """Let packets reach the rules of the program that is live."""
        expected = rules_expected(self.scenario, len(self.examiner.hosts))
        if expected == "none":
            return
        if "rules" not in self.abilities:
            if self.scenario.expect.rules is not None and not prefix:
                self.observer.note(NOT_EXERCISED.format(engine=self.engine.name))
            return
        which = " (new build)" if prefix else ""
        words = f"let packets reach every rule, and compare them{which}"
        with self._step(f"{prefix}rules", words) as progress:
            exercise = self.engine.exercise(expected == "all", progress)
        self.result.exercise = exercise
        self.result.checks += rule_checks(exercise, prefix)

    def _record_pairs(self, counts: Counts, observation: Observation) -> None:
        """Enter loads, deliveries and hops of the round of all pairs into the result."""
        self.result.loads = self.examiner.of_links(observation.loads)
        was_sent = counts > 0
        arrived = was_sent & (observation.longest >= 0)
        self.result.delivered = int(np.count_nonzero(arrived))
        expected = was_sent & (self.examiner.fewest_hops >= 0)
        self.result.reached[BEFORE_TIMELINE] = PairsReached.of("at first", expected, arrived)
        if not self.examiner.prediction.varies:
            self.result.predicted_hops = histogram(self.examiner.most_hops, was_sent)
        self.result.seen_hops = histogram(observation.longest, was_sent)

    def _sample(self, prefix: str = "") -> None:
        """Check some pairs with different numbers of packets."""
        counts = sample_counts(len(self.examiner.hosts))
        pairs = np.count_nonzero(counts)
        words = f"check {pairs} pairs with 1 to {pairs} packets each"
        with self._step(f"{prefix}sample", words) as progress:
            observation = self.engine.send(self.examiner.hosts.names, counts, progress)
        self.result.checks += self.examiner.table_checks(f"{prefix}sample", counts, observation)

    def _timeline(self) -> Prediction:
        """Run the timeline, and check the build that the fabric has moved to, if any.

        Returns:
            The paths by the tables in the end.
        """
        if not self.plan.cases and self.scenario.traffic.probe is None:
            return self.examiner.prediction
        timeline = Timeline(self.plan, self.examiner, self.engine, self._step, self.result)
        prediction = timeline.run()
        self.examiner = timeline.fabric.current_examiner
        if timeline.fabric.moved:
            for version in self.engine.versions:
                self._every_pair(version, NEW_BUILD)
            self._exercise(NEW_BUILD)
            self._sample(NEW_BUILD)
        return prediction

    def _flow(self, prediction: Prediction) -> None:
        """Let the flows of the scenario run, and check their rates.

        Args:
            prediction: the paths by the tables now.
        """
        spec, link_rate = self.scenario.traffic.flows, self.scenario.traffic.link_rate
        if spec is None:
            raise ValueError("a scenario without flows")
        hosts = self.examiner.hosts
        flows = host_flows(prediction.build, hosts, spec, spec.rate or link_rate or DEFAULT_RATE)
        fair = carry(prediction, hosts, flows, link_rate).flows
        words = f"{len(flows.rate)} {spec.protocol} flows, {spec.pattern}, for {spec.seconds:g} s"
        with self._step("flows", words):
            rate, loads = self.engine.carry(hosts.names, flows, spec.seconds)
        self.result.throughput = FlowThroughput(
            pattern=spec.pattern,
            protocol=spec.protocol,
            offered=flows.rate,
            carried=rate,
            fair=fair,
            link_rates=self.examiner.of_links(loads),
        )
        self.result.checks.append(_throughput_check(self.scenario, self.result.throughput))

    @contextmanager
    def _step(self, name: str, words: str) -> Iterator[Progress]:
        """Carry out a step, and enter its duration into the result.

        Args:
            name: of the step in the result.
            words: the step in words, for the observer.
        """
        begin = time.perf_counter()
        with self.observer.step(words) as progress:
            yield progress
        self.result.seconds[name] = round(time.perf_counter() - begin, 2)


class ProvingDiversion(NamedTuple):
    """A wrong table that the examiner has to notice, and the packets by which it does."""

    diversion: Diversion
    """The wrong table."""
    counts: Counts
    """int64[H, H], the packets to send from host to host."""


def choose_diversion(examiner: Examiner) -> ProvingDiversion | None:
    """Choose a wrong table, and a packet for each pair of hosts that it leads astray.

    A table that leads packets over too many links is preferred to one that loses packets, because
    it takes longer to see a loss. Where a hash chooses among paths, every pair sends.

    Returns:
        None if by the tables no pair notices any wrong port.
    """
    prediction, hosts = examiner.prediction, examiner.hosts
    between_hosts = np.ix_(hosts.switch, hosts.switch)
    fewest, most = prediction.fewest_hops[between_hosts], prediction.most_hops[between_hosts]
    for candidate in _candidates(prediction, hosts):
        wrong = prediction.with_port(candidate.switch, candidate.egress, candidate.port)
        links = wrong.first_path_hops[between_hosts]
        longer, lost = links > most, links < fewest
        if (longer | lost).any():
            noticing = (longer if longer.any() else lost).astype(np.int64)
            counts = hosts.every_pair() if prediction.varies else noticing
            name = examiner.build.wiring.names[candidate.switch]
            return ProvingDiversion(Diversion(name, candidate.egress, candidate.port), counts)
    return None


@dataclass(frozen=True, slots=True)
class _Candidate:
    """A wrong port for a class of a switch."""

    switch: int
    """The switch."""
    egress: int
    """The egress class."""
    port: int
    """A port of the switch that is not the class's own."""


def _candidates(prediction: Prediction, hosts: HostSample) -> Iterator[_Candidate]:
    """Wrong ports for classes of the middle switch with hosts, and of a switch without hosts."""
    build = prediction.build
    has_hosts = (build.wiring.host_port > 0).any(axis=1)
    without_hosts = np.flatnonzero(build.topology.present & ~has_hosts)
    for switch in (int(hosts.switch[len(hosts) // 2]), *without_hosts[:1].tolist()):
        yield from _candidates_at(prediction, hosts, switch)


def _candidates_at(prediction: Prediction, hosts: HostSample, switch: int) -> Iterator[_Candidate]:
    """Wrong ports for the egress classes of one switch, the most telling ones first.

    The classes are in this order: first those without alternates, as their groups lead packets from
    hosts, too; among these, the classes to more hosts first.

    For each class, the ports of all other classes are candidates, and the port to a host. Where a
    hash chooses among paths (`varies`), the candidates with the port to a host come before all
    others, because no path leads on from there. Otherwise that port is the last one of its class.
    """
    build = prediction.build
    ports = build.tables.classes.port[switch]
    has_alternates = build.tables.classes.alternate[switch].any(axis=1)
    # A class with next hops to choose from at every hop has no group to change.
    has_group = (ports > 0) & ~(has_alternates & build.forwarding.every_hop)
    usable = np.flatnonzero(has_group)
    serves_host = prediction.egress[switch][hosts.switch] == usable[:, None]
    host_counts = np.count_nonzero(serves_host, axis=1)
    most_telling_first = np.lexsort((-host_counts, has_alternates[usable]))
    host_ports = build.wiring.host_port[switch]
    last_host_port = host_ports[host_ports > 0][-1:].tolist()
    if prediction.varies:
        for egress, port in product(usable[most_telling_first].tolist(), last_host_port):
            yield _Candidate(switch, egress, port)
    for index in most_telling_first.tolist():
        # The other classes, from the class before this one backwards, and round to the one after.
        other_classes = np.roll(usable, -index)[1:][::-1]
        other_ports = ports[other_classes].tolist()
        for port in other_ports if prediction.varies else other_ports + last_host_port:
            yield _Candidate(switch, int(usable[index]), port)


def rules_expected(scenario: Scenario, hosts: int) -> RulesExpected:
    """The rules that packets must reach: as the scenario says, else as many as take a second."""
    if scenario.expect.rules is not None:
        return scenario.expect.rules
    is_slow = hosts > MOST_EXERCISED or scenario.traffic.link_rate is not None
    return "none" if is_slow else "reachable"


def sample_counts(hosts: int) -> Counts:
    """int64[H, H], packets for some random ordered pairs: k packets for the k-th pair.

    So a wrong count at a link says to which pair it belongs.
    """
    pairs = np.argwhere(~np.eye(hosts, dtype=np.bool_))
    sample = np.random.default_rng(1).permutation(len(pairs))[:SAMPLED_PAIRS]
    counts = np.zeros((hosts, hosts), np.int64)
    counts[tuple(pairs[sample].T)] = np.arange(1, len(sample) + 1)
    return counts


def _throughput_check(scenario: Scenario, carried: FlowThroughput) -> Check:
    """The check that enough arrives: what the scenario expects, or `LEAST_OF_FAIR`."""
    ratios = carried.ratios()
    least = scenario.expect.throughput
    if least is None:
        least = LEAST_OF_FAIR[carried.protocol] * ratios["fair"]
    is_enough = ratios["carried"] >= least
    name = f"{carried.pattern}: at least {least:.1%} of what is offered arrives"
    seen = f"{ratios['carried']:.1%}, where max-min fairness gives {ratios['fair']:.1%}"
    mismatch = Mismatch("all flows", f"at least {least:.1%}", seen)
    return Check(name, 1, int(is_enough), () if is_enough else (mismatch,))
