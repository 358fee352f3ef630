"""Flows of a pattern between hosts, and the check of their throughput."""

from __future__ import annotations

import numpy as np

from compilers.evaluation.traffic import PATTERNS
from compilers.tables.build import Build
from inventory.problems import InputError
from mininet_scenarios.scenario.engine import Engine, Flows, HostSample, Step
from mininet_scenarios.scenario.scenario_format import FlowSpec, Scenario
from mininet_scenarios.verdict.checks import Check, Mismatch, by_node
from mininet_scenarios.verdict.flow_model import carry
from mininet_scenarios.verdict.predict import Prediction
from mininet_scenarios.verdict.result import CarriedRate

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
