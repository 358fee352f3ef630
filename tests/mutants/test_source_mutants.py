"""The harness for mutants of sources: what it changes, and a planted survivor that it finds."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.mutants.source_mutants import ROOT, Scratch, chosen, mutants_of

FILE = "compilers/targets/openflow/flow_tables.py"
LOW_BYTE = "(number | INGRESS_BIT) & 255"


def test_every_kind_of_change_is_made() -> None:
    source = "def f(a: 1 | 2, b):\n    return a + 7 if a > b and b else g(a)\n"
    changes = {mutant.change for mutant in mutants_of("f.py", source)}
    assert changes == {"a", "a + 7 & 255", "a > b", "a >= b", "8"}


def test_the_same_seed_chooses_the_same() -> None:
    assert [str(m) for m in chosen(3, 12)] == [str(m) for m in chosen(3, 12)]


@pytest.mark.long
def test_a_planted_survivor_is_found(tmp_path: Path) -> None:
    """The low byte of a class dies by a test of messages, and survives one of something else."""
    source = (ROOT / FILE).read_text()
    planted = next(m for m in mutants_of(FILE, source) if m.change == LOW_BYTE)
    scratch = Scratch(tmp_path, 1)
    assert scratch.survives(planted, ("tests/compilers/topology/test_field.py",))
    assert not scratch.survives(planted, ("tests/compilers/targets/test_openflow_wire.py",))
    assert (tmp_path / "0" / FILE).read_text() == source
