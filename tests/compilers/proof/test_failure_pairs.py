"""Two failures: nothing is lost in PolarFly, and the walk of all pairs against one case by one."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from itertools import combinations

import numpy as np
import pytest

from compilers.forwarding.walks import Walks
from compilers.proof.failures import failure_walks
from compilers.proof.failures.failure_walks import FailureCases, FailureReport, walk_failures
from compilers.proof.walks.delivery import verify
from compilers.routing.choose import choices
from compilers.routing.minimal_routes import minimal
from compilers.spec.policy import Policy
from compilers.tables.build import Build
from tests.compilers.proof.makers import (
    EVERY,
    as_it_is,
    one_alternate,
    over_the_apex,
    protected,
    without_goals,
    without_protection,
)
from tests.compilers.proof.oracle import ARRIVED, Oracle
from tests.compilers.routed import routed


@pytest.mark.parametrize("spread", [False, True])
@pytest.mark.parametrize(
    "q", [3, 4, 5, 7, *(pytest.param(q, marks=pytest.mark.long) for q in (8, 9, 11, 13))]
)
def test_polarfly_loses_nothing_under_two_failures(q: int, spread: bool) -> None:
    report = verify(routed(q=q, spread=spread, protect="link"), failures=("2",))
    (two,) = report.failures
    parts = q * (q + 1) ** 2 // 2 + q * q + q + 1
    assert two.cases == two.all_cases == parts * (parts - 1) // 2
    assert (two.lost_pairs, two.looped) == (0, 0)
    assert two.max_hops == (9 if spread else 8)
    assert report.passed
    assert report.proved["failures"] == ["2"]


def edge_disjoint(q: int) -> Build:
    """Protected, with the alternates that share no link with the minimal path."""
    build = routed(q=q)
    tables = minimal(build.topology, build.wiring)
    policy = Policy(balances=True, protects=True)
    made = choices(tables, build.topology, build.wiring, policy)
    return replace(build, tables=made, protect="link")


@pytest.mark.parametrize(("q", "words", "lost"), [(4, ("bouncing", "repairing"), 102), (4, (), 0)])
def test_without_goals_pairs_are_lost(
    q: int, words: tuple[str, ...], lost: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    without_goals(monkeypatch, *words)
    two = walk_failures(edge_disjoint(q), "2")
    assert (two.lost_pairs, two.looped, two.pairs) == (lost, lost, 1_043_700)


@pytest.mark.parametrize(("q", "word"), [(3, "repairing"), (4, "bouncing"), (5, "repairing")])
def test_a_rule_that_lacks_a_part_is_found(
    q: int, word: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    without_goals(monkeypatch, word)
    report = verify(routed.__wrapped__(q=q, spread=True, protect="node"), failures=("2",))
    assert not report.passed
    assert report.broken[0].losses


def by_case(build: Build) -> FailureReport:
    """The same walk, each case of two by itself."""
    walks = Walks.of(build)
    rows = np.array(list(combinations(range(walks.elements), 2)))
    cases = FailureCases(len(rows), walks.elements, rows)
    return failure_walks._judged("2", cases, walks, np.flatnonzero(walks.ends))


@pytest.mark.parametrize(
    ("family", "q", "spoil"),
    [
        ("polarfly", 3, as_it_is),
        ("polarfly", 3, one_alternate),
        ("polarfly", 2, without_protection),
        ("polarfly", 2, over_the_apex),
        ("pn", 2, as_it_is),
    ],
    ids=lambda value: getattr(value, "__name__", str(value)),
)
def test_all_pairs_at_once_agree_with_case_by_case(
    family: str, q: int, spoil: Callable[[Build], Build]
) -> None:
    build = spoil(protected(family, q=q))
    assert walk_failures(build, "2", EVERY) == by_case(build)


def test_all_pairs_are_walked_where_that_is_quick() -> None:
    two = walk_failures(protected("polarfly", q=4), "2")
    assert (two.cases, two.all_cases) == (2485, 2485)
    bare = walk_failures(routed(q=4), "2")
    assert (bare.cases, bare.all_cases) == (1000, 2485)


def test_three_failures_are_measured() -> None:
    report = verify(protected("polarfly", q=5), failures=("3",), sample=40)
    (three,) = report.failures
    assert report.passed
    assert (three.cases, three.all_cases) == (40, 121 * 120 * 119 // 6)
    assert three.pairs == 40 * 31 * 30
    assert 0 <= three.lost_share < 0.001


def test_every_three_failures_are_tried_where_they_are_few() -> None:
    cases = FailureCases.of(Walks.of(protected("polarfly", q=2)), "3", EVERY)
    dead = [cases.dead(case) for case in range(cases.tried)]
    assert dead == [list(case) for case in combinations(range(9 + 7), 3)]


def test_three_failures_agree_with_single_packets() -> None:
    build = protected("polarfly", q=3)
    walks, oracle = Walks.of(build), Oracle(build)
    rows = FailureCases.of(walks, "3", 30).rows
    assert rows is not None
    lost = 0
    for case in rows.tolist():
        links = {frozenset(walks.link_ends[part].tolist()) for part in case if part < walks.links}
        switches = {part - walks.links for part in case if part >= walks.links}
        oracle.fail(links, switches)
        for _, _, paths in oracle.outcomes():
            lost += any(outcome != ARRIVED for _, outcome in paths)
    assert walk_failures(build, "3", 30).lost_pairs == lost
