"""Two failures: nothing is lost in PolarFly, and the walk of all pairs against one case by one."""

from __future__ import annotations

import pytest

from compilers.forwarding.walks import Walks
from compilers.proof.failures.failure_cases import FailureCases
from compilers.proof.failures.failure_walks import walk_failures
from compilers.proof.proof_options import ProofOptions
from compilers.proof.walks.delivery import verify
from tests.compilers.proof.makers import (
    protected,
)
from tests.compilers.proof.oracle import ARRIVED, Oracle
from tests.compilers.routed import routed


@pytest.mark.parametrize("spread", [False, True])
@pytest.mark.parametrize(
    "q", [3, 4, *(pytest.param(q, marks=pytest.mark.long) for q in (7, 8, 9, 11, 13))]
)
def test_polarfly_loses_nothing_under_two_failures(q: int, spread: bool) -> None:
    report = verify(routed(q=q, spread=spread, protect="link"), ProofOptions(failures=("2",)))
    (two,) = report.failures
    parts = q * (q + 1) ** 2 // 2 + q * q + q + 1
    assert two.cases == two.all_cases == parts * (parts - 1) // 2
    assert (two.lost_pairs, two.looped) == (0, 0)
    assert two.max_hops == (9 if spread else 8)
    assert report.passed
    assert report.proved["failures"] == ["2"]


def test_of_pairs_that_nothing_repairs_a_sample_is_walked() -> None:
    bare = walk_failures(routed(q=4), "2")
    assert (bare.cases, bare.all_cases) == (1000, 2485)


def test_three_failures_are_measured() -> None:
    report = verify(protected("polarfly", q=5), ProofOptions(failures=("3",), sample=40))
    (three,) = report.failures
    assert report.passed
    assert (three.cases, three.all_cases) == (40, 121 * 120 * 119 // 6)
    assert three.pairs == 40 * 31 * 30
    assert 0 <= three.lost_share < 0.001


def test_three_failures_agree_with_single_packets() -> None:
    build = protected("polarfly", q=3)
    walks, oracle = Walks.of(build), Oracle(build)
    rows = FailureCases.of_elements(walks, "3", 30).tried_cases
    assert rows is not None
    lost = 0
    for case in rows.tolist():
        links = {
            frozenset(walks.link_ends[part].tolist()) for part in case if part < walks.cable_count
        }
        switches = {part - walks.cable_count for part in case if part >= walks.cable_count}
        oracle.fail(links, switches)
        for _, _, paths in oracle.outcomes():
            lost += any(outcome != ARRIVED for _, outcome in paths)
    assert walk_failures(build, "3", 30).lost_pairs == lost
