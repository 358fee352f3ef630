"""Weights that follow loads: on a fluid that follows the tables (`saturation`)."""

from __future__ import annotations

from dataclasses import dataclass, replace
from fractions import Fraction

import numpy as np
import pytest

from compilers.evaluation.saturation import Fluid
from compilers.evaluation.traffic import PATTERNS, Traffic
from compilers.routing.alternates import weights
from compilers.tables.build import Build
from compilers.targets.openflow.protocol import PORT, PORT_STATS
from controller.upkeep.balance import ShiftRule, Shifts, adapt, weighted
from controller.upkeep.meter import HALF_LIFE, Meter
from tests.compilers.routed import routed

PERIOD = 1.0
RULE = ShiftRule()


@dataclass
class Simulation:
    """A fabric whose hosts send a pattern; switches tell loads every period, clipped at 1."""

    build: Build
    traffic: Traffic
    sent: float

    def __post_init__(self) -> None:
        classes = self.build.tables.classes
        count = np.count_nonzero(classes.alternate, axis=2)
        alone = weights(count, classes.alternate.shape[2], Fraction(1))
        self.fluid = Fluid.of(self.build)
        self.classes = replace(classes, weight=alone)
        self.shifts = Shifts.none(self.classes)
        self.load = np.full(self.build.wiring.cables().shape, np.nan)
        self.steps: list[int] = []
        self.now = 0.0

    def arcs(self) -> np.ndarray:
        """Loads by arc, in units of what a switch's hosts send."""
        weight = np.moveaxis(weighted(self.classes, self.shifts).weight, 2, 0)
        weight = np.pad(weight, ((0, 0), (0, 0), (0, 2))).reshape(len(weight), -1)
        return self.fluid.loads(self.traffic, weight / np.maximum(1, weight.sum(axis=0)))

    def peak(self) -> float:
        return float(self.arcs().max())

    def run(self, seconds: float) -> None:
        wiring = self.build.wiring
        for _ in range(int(seconds / PERIOD)):
            load = np.minimum(1, self.sent * self.arcs()).reshape(len(wiring.far), -1)[:, :-1]
            now = np.zeros_like(self.load)
            switch, link = np.nonzero(wiring.far >= 0)
            now[switch, wiring.port[switch, link]] = load[switch, link]
            fresh = 1 - 0.5 ** (PERIOD / HALF_LIFE)
            known = np.where(np.isnan(self.load), now, self.load)
            self.load = known + fresh * (now - known)
            self.now += PERIOD
            self.shifts, moves = adapt(RULE, self.classes, self.shifts, self.load, self.now)
            self.steps.append(len(moves))


def simulation(pattern: str, sent: float, q: int = 5, seed: int = 3) -> Simulation:
    build = routed(q=q, spread=True)
    return Simulation(build, PATTERNS[pattern](build.topology, 1, seed), sent)


@pytest.mark.parametrize("q", [3, 5, 7])
@pytest.mark.parametrize("pattern", ["permutation", "perm2hop", "tornado"])
def test_an_overloaded_pattern_gets_more_through_and_settles(pattern: str, q: int) -> None:
    """Hosts send 0.6: the hottest link has to carry 1.2, where the pattern has one that does."""
    hot = simulation(pattern, 0.6, q)
    before = hot.sent * hot.peak()
    hot.run(240)
    after = hot.sent * hot.peak()
    assert after < 0.9 if before > 1 else after == before
    assert before > 1 or (pattern, q) in {("tornado", 3), ("permutation", 5)}
    assert sum(hot.steps[-120:]) <= 4


def test_two_switches_that_send_all_to_each_other_stay_under_the_threshold() -> None:
    hot = simulation("permutation", 0.9)
    hot.traffic = Traffic.of(np.array([4]), np.array([9]))
    far = hot.build.wiring.far
    assert 9 not in far[4]
    hot.run(60)
    assert hot.load[4].max() < RULE.threshold
    assert not any(hot.steps[-20:])


@pytest.mark.parametrize("sent", [0.5, 1.0, 2.0])
@pytest.mark.parametrize("q", [3, 5, 7])
def test_uniform_traffic_is_left_alone(sent: float, q: int) -> None:
    """Also where it fills the links: alternates would only make more of it."""
    calm = simulation("uniform", sent * q, q)
    calm.run(40)
    assert not any(calm.steps)
    if sent == 2.0:
        assert np.nanmax(calm.load) == pytest.approx(1)


def test_weights_come_back_when_the_load_has_gone() -> None:
    hot = simulation("perm2hop", 1.0)
    hot.run(60)
    assert hot.shifts.moved.any()
    assert (weighted(hot.classes, hot.shifts).weight != hot.classes.weight).any()
    hot.sent = 0.05
    hot.run(120)
    assert not hot.shifts.moved.any()
    assert weighted(hot.classes, hot.shifts) is hot.classes


def test_steps_are_bounded_and_classes_rest_between_them() -> None:
    hot = simulation("perm2hop", 3.0)
    at: dict[tuple[int, int], float] = {}
    moved = hot.shifts.moved
    for _ in range(60):
        hot.run(1)
        step = hot.shifts.moved - moved
        assert np.abs(step).max() <= RULE.step
        for key in map(tuple, np.argwhere(step).tolist()):
            assert hot.now - at.get(key, -np.inf) >= RULE.rest
            at[key] = hot.now
        moved = hot.shifts.moved
    assert at


def test_weights_are_parts_of_64_over_ports_that_are_there() -> None:
    hot = simulation("perm2hop", 1.0)
    hot.run(60)
    classes = weighted(hot.classes, hot.shifts)
    some = hot.shifts.moved > 0
    assert (classes.weight[some].sum(axis=1) == 64).all()
    assert (classes.weight[some][:, 0] == 64 - hot.shifts.moved[some]).all()
    assert not (classes.weight[..., 1:] * (classes.alternate == 0)).any()
    gone = hot.classes.alternate.copy()
    s, c = np.argwhere(some)[0]
    first = int(np.flatnonzero(classes.weight[s, c, 1:])[0])
    gone[s, c, first] = 0
    after = weighted(replace(hot.classes, alternate=gone), hot.shifts).weight[s, c]
    assert after[1 + first] == 0
    assert after.sum() == 64


def test_a_port_whose_load_nobody_knows_moves_nothing() -> None:
    hot = simulation("perm2hop", 1.0)
    hot.load[:] = np.nan
    shifts, moves = adapt(RULE, hot.classes, hot.shifts, hot.load, 0.0)
    assert not len(moves)
    assert not shifts.moved.any()


def counters(ports: dict[int, int]) -> bytes:
    body = np.zeros(len(ports), PORT_STATS)
    body["port"], body["sent_bytes"] = list(ports), list(ports.values())
    return body.tobytes()


def described(speed: int) -> bytes:
    body = np.zeros(3, PORT)
    body["port"], body["current_speed"] = [1, 2, 0xFFFFFFFE], speed
    return body.tobytes()


def test_the_meter_reads_counters_as_parts_of_the_rate() -> None:
    meter = Meter(2, 3)
    meter.ports(0, described(1000))  # kb/s
    meter.counters(0, counters({1: 0, 2: 0, 0xFFFFFFFE: 9}), 10.0)
    assert np.isnan(meter.load).all()
    meter.counters(0, counters({1: 125_000, 2: 0}), 12.0)
    assert meter.load[0, 1:3].tolist() == pytest.approx([0.5, 0.0])
    meter.counters(0, counters({1: 125_000, 2: 250_000}), 12.0 + HALF_LIFE)
    assert meter.load[0, 1:3].tolist() == pytest.approx([0.25, 0.5])
    meter.counters(0, counters({1: 0, 2: 250_000}), 16.0)  # the switch has begun anew
    assert meter.load[0, 1] == pytest.approx(0.125)
    assert np.isnan(meter.load[1]).all()
    meter.left(0)
    assert np.isnan(meter.load).all()


def test_the_rate_can_be_given_and_is_unknown_where_nobody_tells() -> None:
    for meter, load in ((Meter(1, 3, 1e6), 1.0), (Meter(1, 3), np.nan)):
        meter.ports(0, described(0))
        meter.counters(0, counters({1: 0}), 0.0)
        meter.counters(0, counters({1: 125_000}), 1.0)
        assert meter.load[0, 1] == pytest.approx(load, nan_ok=True)
