"""The harness for mutants of sources: what it changes, and a planted survivor that it finds."""

from __future__ import annotations

import subprocess
import sys
from collections import Counter

import pytest

from tests.mutants.source_mutants import ROOT, all_mutants, chosen, harmless, mutants_of

FILE = "compilers/targets/openflow/flow_tables.py"
LOW_BYTE = "number | GENERATION_BIT * generation"


def test_every_kind_of_change_is_made() -> None:
    source = "def f(a: 1 | 2, b):\n    return a + 7 if a > b and b else g(a)\n"
    changes = {mutant.named(source).text for mutant in mutants_of("f.py", source)}
    assert changes == {
        f"return {changed}"
        for changed in (
            "a if a > b and b else g(a)",
            "a + 7 & 255 if a > b and b else g(a)",
            "a + 8 if a > b and b else g(a)",
            "a + 7 if a > b else g(a)",
            "a + 7 if a > b or b else g(a)",
            "a + 7 if a >= b and b else g(a)",
        )
    }


def test_stronger_changes_are_made() -> None:
    source = """def f(a, b):
    a[0] = b
    a |= ~b
    if not a.any():
        raise ValueError
    g(min(a, key=b))
    yield np.minimum(a & b, 2.5)
"""
    assert {mutant.named(source).text for mutant in mutants_of("f.py", source)} == {
        "without a[0] = b",
        "without a |= ~b",
        "without raise ValueError",
        "without g(min(a, key=b))",
        "without yield np.minimum(a & b, 2.5)",
        "a &= ~b",
        "a |= b",
        "a[1] = b",
        "if a.any():",
        "if not a.all():",
        "g(max(a, key=b))",
        "yield np.maximum(a & b, 2.5)",
        "yield np.minimum(a | b, 2.5)",
    }


def test_the_same_seed_chooses_the_same() -> None:
    assert [str(m) for m in chosen(3, 12)] == [str(m) for m in chosen(3, 12)]


def test_each_room_has_its_turn_however_soon_a_run_ends() -> None:
    rooms = [found for found in all_mutants() if found]
    files = [m.file for m in chosen(3, 2 * len(rooms))]
    for part in (files[: len(rooms)], files):
        assert len({*part}) > len(rooms) / 2
        assert all(any(m.file in part for m in found) for found in rooms)


def test_what_was_judged_is_still_there_and_has_a_reason() -> None:
    judged = harmless()
    assert all(judged.values())
    functions = Counter(f"{m.file} {m.function}" for found in all_mutants() for m in found)
    assert {text.split(": ")[0] for text in judged} <= functions.keys()
    files = {text.split(" ")[0] for text in judged}
    there = {
        str(mutant.named((ROOT / mutant.file).read_text()))
        for found in all_mutants()
        for mutant in found
        if mutant.file in files and any(f"{mutant.file} {mutant.function}:" in t for t in judged)
    }
    assert not [text for text in judged if text not in there]


def test_a_part_of_the_campaign() -> None:
    """Ten changes of one module, about 11 s of processor time; `make mutants` has all of them."""
    words = "--count", "10", "--only", "compilers/audit/cable_moves.py"
    file = "tests/compilers/audit/test_cable_moves.py"
    command = [sys.executable, "-m", "tests.mutants", *words, file]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.parametrize(
    ("tests", "code"),
    [
        ("tables/test_copy_on_write.py", 1),
        pytest.param("targets/test_large_numbers.py", 0, marks=pytest.mark.long),
    ],
)
def test_a_planted_survivor_is_found(tests: str, code: int) -> None:
    """Classes by their low byte: no test of copies sees it, one of messages does."""
    lines = (ROOT / FILE).read_text().splitlines()
    line = next(number for number, text in enumerate(lines, 1) if LOW_BYTE in text)
    words = "-m", "tests.mutants", "--only", f"{FILE}:{line}:", f"tests/compilers/{tests}"
    done = subprocess.run([sys.executable, *words], cwd=ROOT, capture_output=True, text=True)
    planted = f"NOT JUDGED: line {line}: {FILE} class_numbers: return ({LOW_BYTE}) & 255"
    assert done.returncode in (code, 1), done.stderr
    assert (planted in done.stdout) == bool(code)
