"""Machine code: the same answers however the loops run, also without a compiler."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from compilers.forwarding import machine_code
from compilers.forwarding.program import LOOPS, program_of
from tests.compilers.routed import routed

MANY = 1 << 30
SMALL = replace(
    LOOPS, name="small", modules=LOOPS.modules[:2], exported=("tabulate", "minimal_next")
)
"""The loops that are translated quickly."""


def kernels(choice: str, monkeypatch: pytest.MonkeyPatch) -> object:
    monkeypatch.setenv(machine_code.CHOICE, choice)
    return replace(SMALL).kernels(MANY)


@pytest.mark.parametrize("choice", ["jit", "machine"])
def test_tabulation_is_the_same_in_machine_code(
    choice: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    program = program_of(routed(q=5, spread=True, protect="node"))
    plain, fast = kernels("python", monkeypatch), kernels(choice, monkeypatch)
    for name in ("tabulate", "minimal_next"):
        expected, found = getattr(plain, name)(program), getattr(fast, name)(program)
        for one, other in zip(expected, found, strict=True):
            np.testing.assert_array_equal(one, other)


def test_few_packets_need_no_machine_code(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.delenv(machine_code.CHOICE, raising=False)
    monkeypatch.setattr(machine_code, "kept_in", lambda: [tmp_path])
    library = replace(SMALL)
    assert library.kernels(machine_code.PYTHON_UP_TO) is library.python
    assert not any(tmp_path.rglob("*.so"))


def test_without_a_c_compiler_numba_translates_while_the_program_runs(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.delenv(machine_code.CHOICE, raising=False)
    monkeypatch.setattr(machine_code, "kept_in", lambda: [tmp_path])
    monkeypatch.setenv("CC", "/nonexistent/cc")
    monkeypatch.setenv("PATH", str(tmp_path))
    told: list[str] = []
    monkeypatch.setattr("compilers.notes.listeners", [told.append])
    library = replace(SMALL)
    assert library.kernels(MANY) is library.jit
    assert told == ["machine code of small walks is made, once on this machine, in about 10 s"]
    assert not any(tmp_path.rglob("*.so"))


def test_a_library_that_does_not_load_is_not_used(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.delenv(machine_code.CHOICE, raising=False)
    monkeypatch.setattr(machine_code, "kept_in", lambda: [tmp_path])
    library = replace(SMALL)
    folder = tmp_path / "polarfab"
    monkeypatch.setattr(machine_code, "kept_in", lambda: [folder])
    folder.mkdir()
    (folder / library._file_name).write_bytes(b"no library")
    assert library.kernels(machine_code.PYTHON_UP_TO) is library.python
