"""The proof of a program against walks of the rows that are computed from it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import numpy as np
import pytest

from compilers.proof.proof_options import ProofOptions
from compilers.proof.soundness.build_soundness import unwalkable_values
from compilers.proof.walks.delivery import verify
from compilers.proof.walks.minimal_walk import walk_minimal
from compilers.routing import polarstar_minimal
from compilers.tables import computed_array
from compilers.tables.build import Build
from compilers.tables.star_rows import StarEgress, StarPrefixes, StarProgram
from extensions.scale.row_sample import sampled_rows_minimal
from extensions.scale.star_program import proved_program
from tests.compilers.proof.makers import swapped_cables, swapped_ports
from tests.compilers.routed import routed

FABRICS: list[tuple[int, str, int]] = [
    (2, "inductive-quad", 0),
    (4, "inductive-quad", 3),
    (5, "paley", 2),
    (4, "complete", 3),
    (3, "bdf", 5),
    (2, "cayley", 1),
]
FIELDS = ("around", "links", "step", "case", "within", "loop")


def computed(q: int, supernode: str, degree: int) -> Build:
    build = routed("polarstar", q=q, supernode=supernode, degree=degree)
    routes = polarstar_minimal.routes(build.topology)
    return replace(build, tables=replace(build.tables, routes=routes))


def with_program(build: Build, program: StarProgram) -> Build:
    routes = replace(
        build.tables.routes,
        egress=StarEgress(program),  # type: ignore[arg-type]
        prefix=StarPrefixes(program),  # type: ignore[arg-type]
    )
    return replace(build, tables=replace(build.tables, routes=routes))


def stored(build: Build) -> Build:
    """The build with its rows, which a walk then reads as they would be emitted."""
    routes = build.tables.routes
    routes = replace(routes, prefix=np.asarray(routes.prefix), egress=np.asarray(routes.egress))
    return replace(build, tables=replace(build.tables, routes=routes))


@pytest.fixture(autouse=True)
def packed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(computed_array, "STORED_CELLS", 0)


@pytest.mark.parametrize("fabric", FABRICS)
def test_a_program_proves_what_its_rows_do(fabric: tuple[int, str, int]) -> None:
    build = computed(*fabric)
    walked = walk_minimal(stored(build), None)
    assert proved_program(build) == walked.hop_counts
    assert sampled_rows_minimal(build, 1)
    report = verify(build, ProofOptions(failures=(), method="local"))
    assert report.passed
    assert report.local
    assert report.local.program
    assert proved_program(stored(build)) is None


def mutants(build: Build, count: int, random: np.random.Generator) -> Iterator[tuple[str, Build]]:
    """The build with one value of its program changed, or two ports or cables of a switch."""
    program: StarProgram = build.tables.routes.egress.packed  # type: ignore[union-attr]
    for number in range(count):
        if number % 10 == 0:
            yield "ports", swapped_ports(build, random)
        if number % 10 == 5:
            yield "cables", swapped_cables(build, random)
        word = FIELDS[number % len(FIELDS)]
        changed = getattr(program, word).copy()
        place = tuple(random.integers(changed.shape))
        values = np.unique(changed)
        changed[place] = random.choice(values[values != changed[place]]) if len(values) > 1 else 1
        yield (
            f"{word}{place}: {changed[place]}",
            with_program(build, replace(program, **{word: changed})),
        )


@pytest.mark.parametrize(
    ("fabric", "count"),
    [
        ((2, "inductive-quad", 3), 40),
        *(pytest.param(fabric, 300, marks=pytest.mark.long) for fabric in FABRICS),
    ],
)
def test_a_program_proves_nothing_that_is_not_so(fabric: tuple[int, str, int], count: int) -> None:
    """No mutant that loses a pair, or takes a detour, is proved."""
    random, harmful = np.random.default_rng(3), 0
    for note, mutant in mutants(computed(*fabric), count, random):
        if unwalkable_values(mutant).count:
            harmful += 1
            continue
        counts, walked = proved_program(mutant), walk_minimal(stored(mutant), None)
        assert counts in (None, walked.hop_counts), note
        assert counts is None or walked.minimal == walked.pairs, note
        harmful += walked.minimal < walked.pairs
    assert harmful >= count / 2
