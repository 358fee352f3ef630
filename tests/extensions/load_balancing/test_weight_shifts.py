"""Weights that follow loads: on a fluid that follows the tables, packet by packet's rule."""

from __future__ import annotations

from dataclasses import dataclass, replace
from fractions import Fraction

import numpy as np
import pytest

from compilers.demand.traffic_matrix import Traffic
from compilers.demand.weight_fit import fit
from compilers.evaluation.traffic import PATTERNS
from compilers.tables.build import Build
from compilers.targets.openflow.protocol import PORT, PORT_STATS
from extensions.load_balancing.measured_traffic import FabricPaths, MeasuredTraffic
from extensions.load_balancing.meters import HALF_LIFE, Meter
from extensions.load_balancing.weight_shifts import ShiftRule, Shifts, adapt, weighted
from tests.compilers.routed import routed, weights
from tests.extensions.load_balancing.followed import followed

RULE = ShiftRule()
RATE = 1e9


@dataclass
class Simulation:
    """A fabric whose hosts send a pattern; switches tell loads and rows, links carry 1 at most."""

    build: Build
    traffic: Traffic
    sent: float

    def __post_init__(self) -> None:
        classes = self.build.tables.classes
        count = np.count_nonzero(classes.alternate, axis=2)
        alone = weights(count, classes.alternate.shape[2], Fraction(1))
        self.classes = replace(classes, weight=alone)
        self.shifts = Shifts.none(self.classes)
        tables = replace(self.build.tables, classes=self.classes)
        self.fabric_paths = FabricPaths.of(replace(self.build, tables=tables))
        self.steps: list[int] = []

    def measured(self) -> tuple[np.ndarray, np.ndarray]:
        weight = weighted(self.classes, self.shifts).weight
        sent, rows = followed(self.build, weight, self.traffic)
        return self.sent * sent, self.sent * rows

    def peak(self) -> float:
        return float(self.measured()[0].max())

    def best(self) -> float:
        """The hottest link's load by the best weights there are."""
        return self.sent * float(fit(self.fabric_paths.fluid.paths(self.traffic)).loads.max())

    def run(self, rounds: int, loss: float = 1.0) -> None:
        """Rounds; loss: what is left in rows behind links that are too full."""
        for _ in range(rounds):
            sent, rows = self.measured()
            load = self.fabric_paths.at_arcs(np.minimum(1, sent))
            rate = (RATE * rows * (loss if sent.max() > 1 else 1)).astype(np.float32)
            own = np.arange(len(rows))
            rate[own, own] = 0
            capacity = np.full(len(load), RATE)
            weight = weighted(self.classes, self.shifts).weight
            traffic = MeasuredTraffic.of(self.fabric_paths, rate, capacity, weight)
            if traffic is None:
                self.steps.append(0)
                continue
            self.shifts, moves = adapt(RULE, self.classes, self.shifts, traffic, load)
            self.steps.append(len(moves))


def simulation(pattern: str, sent: float, q: int = 5, bounces: bool = False) -> Simulation:
    build = routed(q=q, spread=True, bounces=bounces)
    return Simulation(build, PATTERNS[pattern](build.topology, 1, 3), sent)


@pytest.mark.parametrize("bounces", [False, True])
@pytest.mark.parametrize(
    ("pattern", "q"),
    [
        *((name, q) for name in ("permutation", "perm2hop", "tornado", "perm1hop") for q in (3, 5)),
        ("tornado", 7),
    ],
)
def test_the_hottest_link_comes_near_the_best_in_few_rounds(
    pattern: str, q: int, bounces: bool
) -> None:
    """Hosts send what a link carries: tornado loads one link four times as much, unless shared."""
    hot = simulation(pattern, (q + 1) / 2, q, bounces)
    best = max(hot.best(), RULE.aim * RULE.threshold)
    hot.run(6)
    assert hot.peak() <= 1.1 * best
    hot.run(6)
    assert not any(hot.steps[-6:])
    assert hot.peak() <= 1.1 * best


@pytest.mark.parametrize("sent", [0.5, 1.0, 2.0])
@pytest.mark.parametrize("q", [3, 5, 7])
def test_uniform_traffic_is_left_alone(sent: float, q: int) -> None:
    """Also where it fills the links: alternates would only make more of it."""
    calm = simulation("uniform", sent * q, q)
    calm.run(1)
    assert not any(calm.steps)


def test_tornado_that_loses_nothing_is_left_alone() -> None:
    """q = 3, full rate: no path is better, and a longer one would load more links."""
    calm = simulation("tornado", 1.0, 3)
    assert calm.peak() == pytest.approx(1)
    calm.run(3)
    assert calm.peak() <= 1.001


def test_weights_come_back_when_the_load_has_gone() -> None:
    hot = simulation("perm2hop", 1.0)
    hot.run(4)
    assert hot.shifts.moved.any()
    assert hot.shifts.any
    hot.sent = 0.05
    hot.run(1)
    assert not hot.shifts.any
    assert weighted(hot.classes, hot.shifts) is hot.classes


def one_flow(sent: float) -> Simulation:
    hot = simulation("perm2hop", sent)
    hot.traffic = Traffic.of(np.array([4]), np.array([9]))
    assert 9 not in hot.build.wiring.far[4]
    return hot


def test_it_goes_no_further_than_the_threshold_asks_for() -> None:
    """A link at 80 %: as little is moved as brings it below two thirds."""
    hot = one_flow(0.8)
    hot.run(4)
    assert 0.55 < hot.peak() < RULE.threshold
    assert hot.shifts.moved.max() <= 0.3 * 64


def test_classes_that_carry_nothing_keep_their_weights() -> None:
    hot = one_flow(1.0)
    hot.run(4)
    assert np.argwhere(hot.shifts.weight.any(axis=2)).tolist() == [
        [4, int(hot.build.tables.routes.egress[4, 9])]
    ]
    assert hot.peak() < RULE.threshold


def test_what_is_lost_on_the_way_is_no_more_than_noise() -> None:
    hot = simulation("tornado", 4.0, 7)
    hot.run(8, loss=0.9)
    assert hot.peak() <= 1.1 * hot.best()


@pytest.mark.parametrize("bounces", [False, True])
def test_what_enters_is_told_from_what_passes_through(bounces: bool) -> None:
    """Random rates and weights: rows count both, and the rates are found again."""
    build = routed(q=4, spread=True, bounces=bounces)
    rng = np.random.default_rng(4)
    s, d = (part.ravel() for part in np.mgrid[:21, :21])
    some = (s != d) & (rng.random(len(s)) < 0.3)
    traffic = Traffic.of(s[some], d[some], rng.random(np.count_nonzero(some)) + 0.05)
    weight = build.tables.classes.weight * rng.integers(1, 9, build.tables.classes.weight.shape)
    sent, rows = followed(build, weight, traffic)
    rows[np.arange(21), np.arange(21)] = 0
    fabric_paths = FabricPaths.of(build)
    capacity = np.full(len(fabric_paths.port), RATE)
    found = MeasuredTraffic.of(fabric_paths, (RATE * rows).astype(np.float32), capacity, weight)
    assert found is not None
    loads = found.paths.loads(found.shares(weight))
    wanted = np.nan_to_num(fabric_paths.at_arcs(sent))
    assert loads == pytest.approx(wanted, abs=0.02 * wanted.max())


def test_weights_are_parts_of_64_over_ports_that_are_there() -> None:
    hot = simulation("perm2hop", 1.0)
    hot.run(4)
    classes = weighted(hot.classes, hot.shifts)
    some = hot.shifts.weight.any(axis=2)
    assert (classes.weight[some].sum(axis=1) == 64).all()
    assert (classes.weight[some][:, 0] == 64 - hot.shifts.moved[some]).all()
    assert not (classes.weight[..., 1:] * (classes.alternate == 0)).any()
    gone = hot.classes.alternate.copy()
    s, c = np.argwhere(hot.shifts.moved > 0)[0]
    first = int(np.flatnonzero(classes.weight[s, c, 1:])[0])
    gone[s, c, first] = 0
    after = weighted(replace(hot.classes, alternate=gone), hot.shifts).weight[s, c]
    assert after[1 + first] == 0
    assert after.sum() == 64


def test_rows_that_carry_nothing_move_nothing() -> None:
    hot = simulation("perm2hop", 1.0)
    nothing = np.zeros(hot.build.tables.routes.egress.shape, np.float32)
    capacity = np.full(len(hot.fabric_paths.port), RATE)
    assert MeasuredTraffic.of(hot.fabric_paths, nothing, capacity, hot.classes.weight) is None


def counters(ports: dict[int, int]) -> bytes:
    body = np.zeros(len(ports), PORT_STATS.dtype)
    body["port"], body["sent_bytes"] = list(ports), list(ports.values())
    return body.tobytes()


def described(speed: int) -> bytes:
    body = np.zeros(3, PORT.dtype)
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
