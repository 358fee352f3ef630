"""What `verify` walks, against the rule in plain Python: builds of every kind, and broken ones."""

from __future__ import annotations

import random
from collections.abc import Collection, Iterator
from dataclasses import replace
from functools import cache
from itertools import combinations
from typing import Any

import numpy as np
import pytest

from compilers.forwarding import machine_code
from compilers.forwarding.program import program_of
from compilers.proof.failures.failure_walks import walk, walk_failures
from compilers.proof.walks.minimal_walk import walk_minimal
from compilers.tables.build import Build
from compilers.tables.intermediate_form import local, no_route
from inventory.problems import InputError
from tests.compilers.build_digests import Case, cases
from tests.compilers.proof.oracle import Element, LinkJudgement, Losses, Oracle, judged, losses

SINGLE = ("link", "node")
TRANSIT = Case(
    "hx222-transit-node",
    {"family": "hyperx", "sides": "2x2x2"},
    {"balance": "ecmp", "transit": "ecmp", "protect": "node"},
)
RANDOM = Case(
    "jf12-compact-valiant-node",
    {"family": "jellyfish", "nodes": 12, "degree": 4, "seed": 1},
    {"balance": "compact-valiant", "protect": "node"},
)
QUICK = (
    *("pf3-compact-valiant-node", "pf3-minimal-none", "pf3-spread-node", "pf3-spread-none"),
    *("ft4-ecmp-link", TRANSIT.name, RANDOM.name),
)
MUTATED = (
    *("pf5-compact-valiant-node", "pf5-spread-node", "ps3iq3-compact-valiant-node"),
    *("oft3-spread-node", "oft3-ecmp-link", "df2-transit-node", "pf5-damaged-0"),
    *("sf5-compact-valiant-node", "ft4-ecmp-link"),
)


@cache
def known() -> dict[str, Case]:
    return {case.name: case for case in (*cases(), TRANSIT, RANDOM)}


def accepted(name: str) -> Build | None:
    """The build of a case; None where it is refused, as the digests say."""
    try:
        return known()[name].compiled()
    except InputError:
        return None


def failing(build: Build, kind: str) -> list[tuple[Element, ...]]:
    far = build.wiring.far
    links = [frozenset((s, int(t))) for s, row in enumerate(far) for t in row if t > s]
    nodes = [s for s, row in enumerate(far) if (row >= 0).any()]
    if kind == "2":
        return list(combinations((*links, *nodes), 2))
    return [(element,) for element in (links if kind == "link" else nodes)]


def by_walks(build: Build) -> tuple[LinkJudgement, list[Losses]]:
    counts = walk_minimal(build, None).hop_counts
    found = walk(build, SINGLE)
    alternates = found.alternates
    most = 0 if alternates.strays else alternates.max_hops
    return LinkJudgement(counts, alternates.paths, bool(alternates.strays), most), [
        Losses(each.lost_pairs, each.looped, each.max_hops, each.stretch) for each in found.failures
    ]


@cache
def expected_of(name: str) -> tuple[LinkJudgement, list[Losses]]:
    return by_oracle(known()[name].compiled())


@cache
def ring() -> tuple[Build, Losses]:
    routing = {"balance": "compact-valiant", "protect": "link"}
    build = Case("ring", {"family": "dragonfly", "h": 1}, routing).compiled()
    return build, losses(Oracle(build), failing(build, "2"))


def by_oracle(build: Build) -> tuple[LinkJudgement, list[Losses]]:
    oracle = Oracle(build)
    found = judged(oracle)
    found = found._replace(max_hops=0) if found.strays else found
    return found, [losses(oracle, failing(build, kind)) for kind in SINGLE]


def assert_same(build: Build, by_rule: tuple[LinkJudgement, list[Losses]] | None = None) -> None:
    (found, failures), (expected, losing) = by_walks(build), by_rule or by_oracle(build)
    assert found == expected
    ends = int(build.topology.endpoints.sum())
    if not found.strays and sum(found.hop_counts) == ends * (ends - 1):
        assert failures == losing  # else `verify` reports what is lost without a failure, and stops


@pytest.mark.parametrize(
    ("name", "choice"),
    [
        *((name, "") for name in QUICK),
        ("pf3-spread-node", "machine"),
        (TRANSIT.name, "machine"),
    ],
)
def test_walks_are_those_of_the_oracle(
    name: str, choice: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(machine_code.LOOPS_VARIABLE, choice)
    assert_same(known()[name].compiled(), expected_of(name))


@pytest.mark.long
@pytest.mark.parametrize("name", sorted(set(known()) - set(QUICK)))
def test_walks_of_all_builds_are_those_of_the_oracle(name: str) -> None:
    build = accepted(name)
    if build and build.tables.switches <= 100:
        assert_same(build)


@pytest.mark.long
@pytest.mark.parametrize(
    "name", [name for name in known() if name.startswith(("pf2", "pf3", "pn"))]
)
def test_two_failures_are_those_of_the_oracle(name: str) -> None:
    build = accepted(name)
    if not build or build.forwarding.marks or build.tables.switches > 40:
        return
    cases_of_two = failing(build, "2")
    found = walk_failures(build, "2", sample=len(cases_of_two))
    expected = losses(Oracle(build), cases_of_two)
    assert (found.lost_pairs, found.looped) == expected[:2]
    assert (found.max_hops, found.stretch) == expected[2:]


@pytest.mark.parametrize("choice", ["python", "machine"])
def test_two_failures_of_a_ring_are_those_of_the_oracle(
    choice: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    # What a repair takes is the whole ring, so no other link or switch can fail as well.
    monkeypatch.setenv(machine_code.LOOPS_VARIABLE, choice)
    build, expected = ring()
    found = walk_failures(build, "2", sample=len(failing(build, "2")))
    assert (found.lost_pairs, found.looped, found.max_hops, found.stretch) == expected


def mutants(seed: int, count: int, names: Collection[str]) -> Iterator[Build]:
    """Builds with one value of a class or a route changed."""
    draw = random.Random(seed)  # noqa: S311
    good = [case.compiled() for name, case in known().items() if name in names]
    for _ in range(count):
        build = draw.choice(good)
        classes, routes = build.tables.classes, build.tables.routes
        word = draw.choice(
            ["egress", "egress", "port", "alternate", "weight", "protection", "bounce"]
        )
        given = np.array(routes.egress if word == "egress" else getattr(classes, word))
        if not given.size:
            continue
        at = tuple(draw.randrange(n) for n in given.shape)
        if word == "egress":
            given[at] = draw.choice([draw.randrange(classes.port.shape[1]), no_route(given)])
            tables: Any = replace(build.tables, routes=replace(routes, egress=given))
        else:
            ports = build.wiring.port[at[0]].tolist()
            given[at] = draw.choice([0, draw.choice(ports)])
            tables = replace(build.tables, classes=replace(classes, **{word: given}))
        yield replace(build, tables=tables)


def test_walks_of_broken_builds_are_those_of_the_oracle() -> None:
    for build in mutants(1, 8, (*QUICK[:4], TRANSIT.name)):
        assert_same(build)


@pytest.mark.long
@pytest.mark.parametrize("seed", range(2, 32))
def test_walks_of_many_broken_builds_are_those_of_the_oracle(seed: int) -> None:
    for build in mutants(seed, 20, MUTATED):
        assert_same(build)


@pytest.mark.parametrize("name", ["pf3-spread-node", "oft3-spread-node"])
def test_the_program_of_one_switch_is_that_of_all_at_its_row(name: str) -> None:
    build = known()[name].compiled()
    every = program_of(build)
    for switch in range(build.tables.switches):
        one = program_of(build, switch)
        for part in ("far", "order", "bounce", "shares", "onward"):
            row = getattr(every, part)[switch : switch + 1]
            assert np.array_equal(getattr(one, part), row), part


@pytest.mark.parametrize("name", [TRANSIT.name, "pf3-compact-valiant-node"])
def test_a_switch_that_delivers_what_is_not_its_own_loses_packets(name: str) -> None:
    build = known()[name].compiled()
    routes = build.tables.routes
    egress, d = np.array(routes.egress), int(np.flatnonzero(build.topology.endpoints)[1])
    transit = int(build.wiring.far[d, 0])
    egress[transit, d] = local(egress)
    tables = replace(build.tables, routes=replace(routes, egress=egress))
    broken = replace(build, tables=tables)
    expected = by_oracle(broken)
    assert expected[0].strays
    assert_same(broken, expected)
    assert walk(broken, ()).alternates.strays
