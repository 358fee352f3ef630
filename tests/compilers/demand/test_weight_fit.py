"""Fitted shares against scipy's linear program, and whole weights against the shares."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.optimize import linprog
from scipy.sparse import coo_matrix, hstack

from compilers.demand.fluid import Fluid
from compilers.demand.weight_fit import GAP, FlowPaths, fit, nearest_on_simplex
from compilers.demand.whole_weights import GOOD_ENOUGH, TOTALS, round_shares
from compilers.evaluation.traffic import PATTERNS
from tests.compilers.routed import routed

IQ = {"family": "polarstar", "supernode": "inductive-quad"}
CASES = [
    ({"q": 5}, "perm2hop", 1.0),
    ({"q": 5}, "perm2hop", 0.25),
    ({"q": 7}, "shuffle", 0.5),
    ({"q": 3, "degree": 3, **IQ}, "adversarial", 1.0),
]


def optimum(paths: FlowPaths, largest: float) -> float:
    """The least load of the hottest arc, by HiGHS."""
    shares, count = (
        np.count_nonzero(paths.has_next_hop),
        np.count_nonzero(paths.has_next_hop, axis=1),
    )
    choice = np.repeat(np.arange(len(count)), count)
    load = coo_matrix((paths.amount, (paths.arc, paths.next_hop)), (paths.arc_count, shares))
    sums = coo_matrix((np.ones(shares), (choice, np.arange(shares))), (len(count), shares + 1))
    most = np.maximum(largest, 1 / count)[choice]
    solved = linprog(
        c=[0] * shares + [1],
        A_ub=hstack([load, -np.ones((paths.arc_count, 1))]),
        b_ub=np.zeros(paths.arc_count),
        A_eq=sums,
        b_eq=np.ones(len(count)),
        bounds=[*((0, each) for each in most), (0, None)],
    )
    return float(solved.fun)


@pytest.mark.parametrize(("fabric", "pattern", "largest"), CASES, ids=str)
def test_shares_are_those_of_the_linear_program(
    fabric: dict[str, int | str], pattern: str, largest: float
) -> None:
    build = routed(spread=True, **fabric)  # type: ignore[arg-type]
    paths = Fluid.of(build).paths(PATTERNS[pattern](build.topology, 4, 1))
    found, least = fit(paths, largest), optimum(paths, largest)
    assert found.load_bound - 1e-9 <= least <= found.loads.max() + 1e-9
    assert found.loads.max() <= (1 + GAP) * found.load_bound
    np.testing.assert_allclose(paths.loads(found.shares), found.loads)
    assert not found.shares[~paths.has_next_hop].any()
    np.testing.assert_allclose(found.shares.sum(axis=1), 1)
    count = np.count_nonzero(paths.has_next_hop, axis=1)
    assert (found.shares <= np.maximum(largest, 1 / count)[:, None] + 1e-9).all()

    whole = round_shares(paths, found, largest)
    total = whole.weights.sum(axis=1, keepdims=True)
    np.testing.assert_allclose(paths.loads(whole.weights / total), whole.loads)
    assert total.max() <= TOTALS[-1]
    assert not whole.weights[~paths.has_next_hop].any()
    assert whole.loads.max() <= GOOD_ENOUGH * found.loads.max()


@pytest.mark.parametrize(
    ("q", "least"),
    [
        (7, {"tornado": 0.60, "permutation": 0.60, "perm1hop": 0.58}),
        pytest.param(
            31,
            {"tornado": 0.56, "permutation": 0.56, "perm1hop": 0.45},
            marks=pytest.mark.long,
        ),
    ],
)
def test_bounced_paths_with_whole_weights_carry_permutations(
    q: int, least: dict[str, float]
) -> None:
    """Of what hosts can send, (q + 1)/2 a switch; within 5 % of any shares over these paths."""
    hosts = (q + 1) // 2
    build = routed(q=q, spread=True, bounces=True)
    fluid = Fluid.of(build)
    for pattern, share in least.items():
        paths = fluid.paths(PATTERNS[pattern](build.topology, hosts, 0))
        found = fit(paths)
        load = round_shares(paths, found).loads.max()
        assert 1 / (hosts * load) >= share
        assert load <= 1.05 * found.load_bound


def test_nearest_point_of_a_simplex() -> None:
    """Nothing nearer is found by going towards any corner."""
    wanted = np.random.default_rng(3).normal(size=50)
    near = nearest_on_simplex(wanted)
    assert near.min() >= 0
    assert near.sum() == pytest.approx(1)
    towards = np.eye(50) - near
    assert (towards @ (wanted - near)).max() <= 1e-12
