"""Verification refuses every build that an outside walker objects to."""

from __future__ import annotations

from pathlib import Path

import pytest

from compilers.pipeline import compile_fabric
from compilers.proof import verification
from compilers.proof.soundness.unsound import Unsound
from compilers.proof.walks import delivery
from compilers.spec.fabric_file import load_fabric
from compilers.tables.folders.build_folder import save
from tests.compilers.proof.makers import without_goals
from tests.mutants.array_mutants import FABRICS, Nursery
from tests.mutants.outside import objections


@pytest.fixture(scope="module")
def nursery(tmp_path_factory: pytest.TempPathFactory) -> Nursery:
    return Nursery(tmp_path_factory.mktemp("nursery"))


def test_nobody_objects_to_good_builds(nursery: Nursery) -> None:
    assert not nursery.objects()


def test_no_harmful_edit_is_passed(nursery: Nursery) -> None:
    mutants = list(nursery.mutants(seed=1, count=60))
    assert not [m for m in mutants if m.harm]
    assert sum(not m.survived for m in mutants) > len(mutants) // 2


@pytest.mark.long
@pytest.mark.parametrize("seed", range(2, 8))
def test_none_of_many_is_passed(nursery: Nursery, seed: int) -> None:
    assert not [m for m in nursery.mutants(seed, 120) if m.harm]


def test_a_verifier_that_looks_past_things_is_told(
    nursery: Nursery, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The harness finds what it is there to find."""
    for module, word in ((delivery, "walkable"), (delivery, "unsound"), (delivery, "promise")):
        monkeypatch.setattr(module, word, lambda *_, **__: Unsound())
    monkeypatch.setattr(verification, "unsound", lambda _: Unsound())
    assert [m for m in nursery.mutants(seed=1, count=24) if m.harm]


def test_what_two_failures_lose_is_objected_to(
    nursery: Nursery, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    without_goals(monkeypatch, "repairing")
    save(compile_fabric(load_fabric({"name": "polarfly", **FABRICS["polarfly"]})), tmp_path / "b")
    found = list(objections(tmp_path / "b", nursery.good["polarfly"]))
    assert found
    assert all(" and " in objection for objection in found)
