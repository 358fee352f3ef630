"""All states of whole fabrics, proved by class, against walks: good builds, and spoilt ones."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import numpy as np
import pytest

from compilers.proof.local.local_proof import PROVABLE_KINDS, LocalProof, local_proof
from compilers.proof.walks.minimal_walk import walk_minimal
from compilers.tables import computed_array
from compilers.tables.build import Build
from compilers.tables.line_rows import LineEgress
from extensions.scale.plane_lines import proved_lines
from extensions.scale.plane_states import plane_states
from extensions.scale.star_certificate import star_certificate
from extensions.scale.star_classes import StarClasses
from extensions.scale.star_program import proved_program
from tests.compilers.proof.test_star_states import require_walks_agree, spoilt
from tests.compilers.routed import by_class, routed

STARS = [(2, "inductive-quad", 3), (3, "complete", 2)]
PLANES = [3, 4, 5]


@pytest.fixture(autouse=True, scope="module")
def packed() -> Iterator[None]:
    """Rows are computed in builds of this module, and kept for no other module's tests."""
    routed.cache_clear()
    by_class.cache_clear()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(computed_array, "STORED_CELLS", 0)
        yield
    routed.cache_clear()
    by_class.cache_clear()


def plane(q: int, spread: bool = True, protect: str = "node") -> Build:
    return routed(q=q, spread=spread, protect=protect)


def of_plane(build: Build, kinds: tuple[str, ...] = PROVABLE_KINDS) -> LocalProof | None:
    counts = proved_lines(build)
    return plane_states(build, counts, kinds) if counts else None


def of_star(build: Build) -> LocalProof | None:
    return star_certificate(build, PROVABLE_KINDS) if proved_program(build) else None


@pytest.mark.parametrize(
    ("q", "spread", "kinds"),
    [
        *((q, spread, PROVABLE_KINDS) for q in PLANES for spread in (False, True)),
        *((4, True, kinds) for kinds in (("link",), ())),
    ],
)
def test_a_plane_by_class_is_what_it_is_by_destination(
    q: int, spread: bool, kinds: tuple[str, ...]
) -> None:
    build = plane(q, spread)
    assert isinstance(build.tables.routes.egress, LineEgress)
    found, every = of_plane(build, kinds), local_proof(build, kinds)
    assert found
    assert not len(found.unproved_destinations)
    assert not len(every.unproved_destinations)
    assert found.choices.sum() == every.choices.sum()
    assert np.array_equal(found.hop_counts.sum(axis=0), every.hop_counts.sum(axis=0))
    assert found.longest.tolist() == every.longest.tolist()
    for kind in kinds:
        assert found.stretch[kind].tolist() == every.stretch[kind].tolist()
        assert found.hops[kind].tolist() == every.hops[kind].tolist()
    require_walks_agree(build, found)


def test_a_spoilt_plane_is_proved_only_where_each_destination_is() -> None:
    build, left = plane(3), 0
    for mutant in spoilt(build, 16, np.random.default_rng(7)):
        found = of_plane(mutant)
        left += found is None
        if found:
            assert not len(local_proof(mutant, PROVABLE_KINDS).unproved_destinations)
            require_walks_agree(mutant, found)
    assert left


@pytest.mark.parametrize("fabric", STARS)
@pytest.mark.parametrize("spread", [False, True])
def test_a_star_by_class_is_what_walks_find(fabric: tuple[int, str, int], spread: bool) -> None:
    build = by_class(*fabric, spread)
    found = of_star(build)
    assert found
    assert not len(found.unproved_destinations)
    walked = walk_minimal(build, None)
    assert tuple(np.trim_zeros(found.hop_counts[0], "b").tolist()) == walked.hop_counts
    require_walks_agree(build, found)


def test_a_spoilt_star_is_proved_only_where_walks_agree() -> None:
    build, left = by_class(2, "complete", 2), 0
    for mutant in spoilt(build, 8, np.random.default_rng(11)):
        found = of_star(mutant)
        left += found is None
        if found:
            require_walks_agree(mutant, found)
    assert left


def test_a_star_without_these_classes_is_left_to_others() -> None:
    minimal = routed("polarstar", q=3, supernode="paley", degree=2)
    assert StarClasses.of(minimal) is None
    searched = routed("polarstar", q=3, spread=True, supernode="paley", degree=2)
    assert star_certificate(searched, PROVABLE_KINDS) is None
    build = by_class(*STARS[0])
    marked = replace(build, forwarding=replace(build.forwarding, marks=True))
    assert star_certificate(marked, PROVABLE_KINDS) is None
