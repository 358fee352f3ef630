"""Replications of a load, and from when on a network is steady."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from extensions.simulation import simulate
from extensions.simulation.load_point import LoadPoint
from extensions.simulation.measurement import first_steady_cycle
from polarfab.fabric import Fabric

FABRIC = {"name": "lab", "topology": {"family": "polarfly", "q": 3}, "hosts_per_node": 2}


def test_the_interval_is_that_of_students_t() -> None:
    fabric, given = Fabric.from_spec(FABRIC), {"warmup": 200, "period": 100}
    (whole,) = simulate(fabric, loads=[0.5], runs=4, **given).points
    runs = [simulate(fabric, loads=[0.5], seed=seed, **given).points[0] for seed in range(4)]
    taken = np.array([run.accepted for run in runs])
    assert whole.accepted == pytest.approx(taken.mean())
    assert whole.accepted_error == pytest.approx(3.182 * taken.std(ddof=1) / 2)
    assert whole.sustained == all(run.sustained for run in runs)
    assert whole.packets == sum(run.packets for run in runs)
    assert runs[0].accepted_error is None
    hottest = max(runs, key=lambda run: run.hottest_use)
    assert (whole.hottest_use, whole.hottest) == (hottest.hottest_use, hottest.hottest)


def test_one_run_of_several_does_not_make_the_warm_up_too_short() -> None:
    fabric = Fabric.from_spec(FABRIC)
    (point,) = simulate(fabric, loads=[0.1], warmup=100, period=50).points
    runs = [replace(point, settled=cycle) for cycle in (0, 1_750, 125)]
    assert LoadPoint.of_runs(runs).settled == 125


def test_a_network_is_steady_from_where_its_packets_stop_to_grow() -> None:
    noise = np.random.default_rng(0).normal(0, 1, 40)
    level = np.minimum(np.arange(40) * 20, 200) + noise
    inside = [(100 * (step + 1), int(10 * value)) for step, value in enumerate(level)]
    assert 1_000 <= first_steady_cycle(inside) <= 1_500
    flat = [(100 * (step + 1), int(10 * value)) for step, value in enumerate(noise)]
    assert first_steady_cycle(flat) < 900
