"""Verification refuses every build that an outside walker objects to."""

from __future__ import annotations

import pytest

from tests.compilers.proof.soundness.array_mutants import Nursery


@pytest.fixture(scope="module")
def nursery(tmp_path_factory: pytest.TempPathFactory) -> Nursery:
    return Nursery(tmp_path_factory.mktemp("nursery"))


def test_nobody_objects_to_good_builds(nursery: Nursery) -> None:
    assert not nursery.objects()


def test_no_harmful_edit_is_passed(nursery: Nursery) -> None:
    mutants = list(nursery.mutants(seed=1, count=60))
    assert not [m for m in mutants if m.harm and m.survived]
    assert sum(bool(m.harm) for m in mutants) > len(mutants) // 3
    assert sum(not m.survived for m in mutants) > len(mutants) // 2


@pytest.mark.long
@pytest.mark.parametrize("seed", range(2, 8))
def test_none_of_many_is_passed(nursery: Nursery, seed: int) -> None:
    assert not [m for m in nursery.mutants(seed, 120) if m.harm and m.survived]
