"""Failures: nothing is lost, and the failure walker against one packet after the other."""

from __future__ import annotations

from collections.abc import Callable
from itertools import combinations, pairwise

import pytest

from compilers.forwarding.walks import Walks
from compilers.proof.failures.failure_cases import FailureCases
from compilers.proof.failures.failure_walks import (
    SAMPLE,
    FailureReport,
    walk_failures,
)
from compilers.proof.proof_options import ProofOptions
from compilers.proof.walks.delivery import verify
from compilers.tables.build import Build
from tests.compilers.proof.makers import (
    SPOILS,
    as_it_is,
    one_alternate,
    protected,
    shuffled,
    without_alternates,
    without_bounce,
    without_protection,
)
from tests.compilers.proof.oracle import ARRIVED, LOOPED, Oracle
from tests.compilers.routed import routed

PRIME_POWERS = [2, 3, 4, 5]
IQ = {"supernode": "inductive-quad", "degree": 3}
POLARSTARS = [{"q": 2, **IQ}, {"q": 3, "supernode": "paley", "degree": 2}]


@pytest.mark.parametrize("spread", [False, True])
@pytest.mark.parametrize("q", PRIME_POWERS)
def test_polarfly_loses_nothing_under_one_failure(q: int, spread: bool) -> None:
    build = routed(q=q, spread=spread, protect="node")
    report = verify(build, ProofOptions(failures=("link", "node")))
    link, node = report.failures
    assert report.passed
    assert (link.cases, node.cases) == (q * (q + 1) ** 2 // 2, q * q + q + 1)
    assert link.lost_pairs == link.looped == node.lost_pairs == node.looped == 0
    assert (link.max_hops, link.stretch) == (6 if spread else 5, 3)
    assert (node.max_hops, node.stretch) == (4 if spread else 3, 1)
    if spread:
        assert report.alternates is not None
        assert (report.alternates.strays, report.alternates.max_hops) == (0, 3)


@pytest.mark.parametrize(("parameters", "spread"), [*zip(POLARSTARS, (True, False), strict=True)])
def test_polarstar_loses_nothing_under_one_failure(
    parameters: dict[str, int | str], spread: bool
) -> None:
    build = routed("polarstar", spread=spread, protect="node", **parameters)
    report = verify(build, ProofOptions(failures=("link", "node")))
    assert report.passed
    assert [f.lost_pairs for f in report.failures] == [0, 0]
    assert max(f.max_hops for f in report.failures) <= 8
    assert report.alternates is None or report.alternates.max_hops <= 4


@pytest.mark.parametrize("family", ["pn", "oft"])
def test_projective_networks_lose_nothing_under_one_failure(family: str) -> None:
    build = routed(family, spread=True, protect="node", q=2)
    report = verify(build, ProofOptions(failures=("link", "node")))
    assert report.passed
    assert [f.lost_pairs for f in report.failures] == [0, 0]


def by_oracle(build: Build, kind: str) -> tuple[int, int, int]:
    """Lost and looping pairs over all cases, and the longest path that meets a failure."""
    order, edges = build.topology.graph.order, build.topology.graph.edges().tolist()
    if kind == "link":
        cases = [({frozenset(edge)}, set[int]()) for edge in edges]
    else:
        cases = [(set[frozenset[int]](), {v}) for v in range(order)]
    oracle = Oracle(build)
    usual = {(s, d): {tuple(p) for p, _ in paths} for s, d, paths in oracle.outcomes()}
    lost = looped = longest = 0
    for links, switches in cases:
        oracle.fail(links, switches)
        for s, d, paths in oracle.outcomes():
            ends = [outcome for _, outcome in paths]
            lost += any(end != ARRIVED for end in ends)
            looped += LOOPED in ends
            repaired = [p for p, end in paths if end == ARRIVED and tuple(p) not in usual[s, d]]
            longest = max([longest, *(len(p) - 1 for p in repaired)])
    return lost, looped, longest


@pytest.mark.parametrize("kind", ["link", "node"])
@pytest.mark.parametrize("spoil", SPOILS)
def test_failure_walker_agrees_with_single_packets(
    spoil: Callable[[Build], Build], kind: str
) -> None:
    build = spoil(protected("polarfly", q=3))
    report = walk_failures(build, kind)
    lost, looped, longest = by_oracle(build, kind)
    assert (report.lost_pairs, report.looped, report.max_hops) == (lost, looped, longest)


@pytest.mark.parametrize(
    ("family", "parameters", "spoil"),
    [
        ("polarstar", {"q": 2, "supernode": "inductive-quad", "degree": 0}, without_bounce),
        ("pn", {"q": 2}, as_it_is),
        ("pn", {"q": 2}, without_protection),
        ("oft", {"q": 2}, without_bounce),
        ("oft", {"q": 2}, without_alternates),
    ],
    ids=lambda value: getattr(value, "__name__", str(value)),
)
def test_it_agrees_in_other_families(
    family: str, parameters: dict[str, int | str], spoil: Callable[[Build], Build]
) -> None:
    build = spoil(protected(family, **parameters))
    report = walk_failures(build, "link")
    assert (report.lost_pairs, report.looped, report.max_hops) == by_oracle(build, "link")


@pytest.mark.parametrize(
    ("spoil", "kind"),
    [
        (without_bounce, "link"),
        (without_protection, "link"),
        (without_protection, "node"),
        (shuffled, "link"),
    ],
)
def test_a_broken_rule_is_found(spoil: Callable[[Build], Build], kind: str) -> None:
    report = verify(spoil(protected("polarfly", q=3)), ProofOptions(failures=(kind,)))
    assert not report.passed
    assert report.broken[0].kind == kind
    assert report.broken[0].losses


def two_by_oracle(build: Build, sample: int = SAMPLE) -> tuple[int, int]:
    """Lost and looping pairs over cases of two failures."""
    walks, oracle = Walks.of(build), Oracle(build)
    lost = looped = 0
    cases = FailureCases.of_elements(walks, "2", sample)
    every = (
        combinations(range(walks.elements), 2) if cases.tried_cases is None else cases.tried_cases
    )
    for case in every:
        links = {
            frozenset(walks.link_ends[part].tolist()) for part in case if part < walks.cable_count
        }
        switches = {part - walks.cable_count for part in case if part >= walks.cable_count}
        oracle.fail(links, switches)
        for _, _, paths in oracle.outcomes():
            lost += any(outcome != ARRIVED for _, outcome in paths)
            looped += any(outcome == LOOPED for _, outcome in paths)
    return lost, looped


@pytest.mark.parametrize("spoil", [without_bounce, one_alternate])
def test_two_failures_agree_with_single_packets_and_losses_are_named(
    spoil: Callable[[Build], Build],
) -> None:
    build = spoil(protected("polarfly", q=2))
    report = walk_failures(build, "2")
    assert report.cases == report.all_cases == 120
    assert (report.lost_pairs, report.looped) == two_by_oracle(build)
    assert report.losses
    for loss in report.losses[::4]:
        parts = [part.split("-") for part in loss.failed.split(" and ")]
        links = {frozenset(map(int, part)) for part in parts if len(part) == 2}
        switches = {int(part[0]) for part in parts if len(part) == 1}
        paths = Oracle(build, links, switches).paths(loss.source, loss.destination)
        assert len(parts) == 2
        assert [outcome for _, outcome in paths if outcome != ARRIVED]


def test_two_failures_are_sampled_by_seed() -> None:
    build = without_bounce(protected("polarfly", q=4))

    def two(seed: int) -> FailureReport:
        return walk_failures(build, "2", sample=100, seed=seed)

    assert two(1) == two(1) != two(2)
    assert (two(1).cases, two(1).all_cases) == (100, 71 * 70 // 2)


def test_losses_are_named() -> None:
    report = walk_failures(without_protection(routed(q=3, protect="node")), "link")
    assert len(report.losses) == 10
    loss = report.losses[0]
    build = routed(q=3, protect="node")
    ends = frozenset(int(v) for v in loss.failed.split("-"))
    path = next(Oracle(build, set(), set()).paths(loss.source, loss.destination))[0]
    assert ends in {frozenset(pair) for pair in pairwise(path)}


def test_a_sample_agrees_with_single_packets() -> None:
    """Hosts with one way: without it they take the minimal one, which nobody else may take."""
    build = one_alternate(protected("polarstar", **{**POLARSTARS[0], "degree": 0}))
    report = walk_failures(build, "2", sample=60)
    assert (report.lost_pairs, report.looped) == two_by_oracle(build, 60)


def test_a_promise_that_was_not_made_cannot_be_broken() -> None:
    report = verify(routed(q=3), ProofOptions(failures=("link", "node")))
    assert report.passed
    assert report.failures[0].lost_pairs > 0


@pytest.mark.parametrize("kind", ["link", "node"])
def test_packets_that_are_home_meet_no_failure(kind: str) -> None:
    """Nothing is repaired, so no packet that met a failure was delivered."""
    report = walk_failures(routed(q=4), kind)
    assert report.lost_pairs > 0
    assert (report.max_hops, report.stretch) == (0, 0)
