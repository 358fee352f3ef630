"""Machine code: the same answers however the loops run, also without a compiler."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from compilers.forwarding import machine_code
from compilers.forwarding.program import LOOPS, program_of
from tests.compilers.routed import routed

MANY = 1 << 30
SMALL = machine_code.Library(
    "small", ("tests.compilers.forwarding.few_loops",), ("twice", "two_more"), "P", ""
)
LESS = replace(SMALL, exported=("twice",))


@pytest.fixture(scope="module")
def less(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The file of the library with one loop."""
    folder = tmp_path_factory.mktemp("less")
    with pytest.MonkeyPatch.context() as patch:
        patch.delenv(machine_code.CHOICE, raising=False)
        patch.setattr(machine_code, "kept_in", lambda: [folder])
        assert replace(LESS).made()
    return folder / LESS._file_name


def kernels(library: machine_code.Library, choice: str, monkeypatch: pytest.MonkeyPatch) -> object:
    monkeypatch.setenv(machine_code.CHOICE, choice)
    return replace(library).kernels(MANY)


@pytest.mark.parametrize("choice", ["jit", "machine"])
def test_tabulation_is_the_same_in_machine_code(
    choice: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    program = program_of(routed(q=5, spread=True, protect="node"))
    plain, fast = (kernels(LOOPS, each, monkeypatch) for each in ("python", choice))
    for name in ("tabulate", "minimal_next"):
        expected, found = getattr(plain, name)(program), getattr(fast, name)(program)
        for one, other in zip(expected, found, strict=True):
            np.testing.assert_array_equal(one, other)


CALLER = """
from callee import step
from compilers.forwarding.machine_code import kernel
@kernel("int64(int64)")
def twice(number):
    return step(step(number))
"""
CALLEE = """
from compilers.forwarding.machine_code import loop
@loop
def step(number):
    return number + {}
"""
CALL = """
from compilers.forwarding.machine_code import Library
print(Library("called", ("callee", "caller"), ("twice",), "P", "").jit.twice(3))
"""


def test_a_loop_is_translated_again_when_one_that_it_calls_has_changed(tmp_path: Path) -> None:
    """Numba itself compares the caller's file alone."""
    (tmp_path / "caller.py").write_text(CALLER)
    paths = os.pathsep.join((str(tmp_path), str(Path(__file__).parents[3])))
    env = {**os.environ, "PYTHONPATH": paths, "NUMBA_CACHE_DIR": str(tmp_path / "kept")}
    for more, expected in ((1, "5"), (2, "7"), (2, "7")):
        (tmp_path / "callee.py").write_text(CALLEE.format(more))
        command = [sys.executable, "-B", "-c", CALL]
        run = subprocess.run(command, env=env, capture_output=True, text=True, check=True)
        assert run.stdout.strip() == expected


@pytest.fixture
def empty(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """A folder for machine code, with none in it."""
    monkeypatch.delenv(machine_code.CHOICE, raising=False)
    monkeypatch.setattr(machine_code, "kept_in", lambda: [tmp_path])
    return tmp_path


def waited_for(found: Callable[[], object]) -> bool:
    """Whether something comes true within two minutes."""
    for _ in range(2400):
        if found():
            return True
        time.sleep(0.05)
    return False


def test_few_packets_are_followed_in_python_while_machine_code_is_made_for_later(
    empty: Path,
) -> None:
    first, again = replace(SMALL), replace(SMALL)
    assert first.kernels(machine_code.PYTHON_UP_TO) is first.python
    assert again.kernels(machine_code.PYTHON_UP_TO) is again.python
    assert waited_for(lambda: [*empty.glob("*.so")])
    assert waited_for(lambda: not processes_with(str(empty)))
    assert [file.suffix for file in empty.iterdir()] == [".so"]
    later = replace(SMALL)
    assert later.kernels(1) is later._loaded() is not None


def test_what_a_killed_process_leaves_is_removed_by_the_next(
    empty: Path, monkeypatch: pytest.MonkeyPatch, tmp_path_factory: pytest.TempPathFactory
) -> None:
    """It leaves nothing in the temporary folder."""
    work = tmp_path_factory.mktemp("work")
    monkeypatch.setenv("TMPDIR", str(work))
    replace(SMALL)._begin()
    assert waited_for(lambda: [*empty.glob("making-*/*")])
    for process in processes_with(str(empty)):
        with suppress(ProcessLookupError):  # a compiler that has just ended
            os.kill(process, signal.SIGKILL)
    assert waited_for(lambda: not processes_with(str(empty)))
    assert [*empty.glob("making-*")]
    assert not [*work.iterdir()]
    assert replace(SMALL).made()
    assert [file.suffix for file in empty.iterdir()] == [".so"]


def test_one_process_at_a_time_makes_machine_code(
    empty: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    begun: list[object] = []
    monkeypatch.setattr("subprocess.run", lambda *words, **_: begun.append(words))
    with machine_code.one_at_a_time(empty):
        assert replace(SMALL).kernels(1)
        assert not begun
    assert replace(SMALL).kernels(1)
    assert len(begun) == 1


@pytest.mark.parametrize("choice", ["python", "jit"])
@pytest.mark.usefixtures("empty")
def test_nothing_is_made_that_was_not_asked_for(
    choice: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("subprocess.run", None)
    assert kernels(SMALL, choice, monkeypatch)


@pytest.mark.usefixtures("empty")
def test_what_can_be_written_nowhere_is_not_begun(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("subprocess.run", None)
    monkeypatch.setattr(machine_code, "kept_in", lambda: [Path("/proc/nowhere")])
    library = replace(SMALL)
    assert library.kernels(1) is library.python


def processes_with(word: str) -> list[int]:
    """The processes that have a word in their command."""
    found = []
    for file in Path("/proc").glob("[0-9]*/cmdline"):
        with suppress(OSError):
            if word.encode() in file.read_bytes() and int(file.parent.name) != os.getpid():
                found.append(int(file.parent.name))
    return found


def test_without_a_c_compiler_numba_translates_while_the_program_runs(
    empty: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CC", "/nonexistent/cc")
    told: list[str] = []
    monkeypatch.setattr("compilers.notes.listeners", [told.append])
    library = replace(SMALL)
    assert library.kernels(MANY) is library.jit
    assert told == ["machine code of small walks is made, once on this machine, in about 10 s"]
    assert [file.suffix for file in empty.iterdir()] == [".failed"]
    told.clear()
    monkeypatch.setattr("subprocess.run", None)  # for a day it is not tried again
    library = replace(SMALL)
    assert library.kernels(MANY) is library.jit
    assert library.kernels(1) is library.python


def test_a_library_that_does_not_load_is_not_used(
    empty: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    library = replace(SMALL)
    monkeypatch.setattr("subprocess.run", lambda *_, **__: None)
    (empty / library._file_name).write_bytes(b"no library")
    assert library.kernels(machine_code.PYTHON_UP_TO) is library.python


def test_a_library_without_a_loop_is_not_used(
    empty: Path, less: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As a process finds it whose sources were exchanged while it ran."""
    library = replace(SMALL)
    shutil.copy(less, empty / library._file_name)
    monkeypatch.setattr("subprocess.run", lambda *_, **__: None)
    assert library.kernels(machine_code.PYTHON_UP_TO) is library.python


@pytest.mark.parametrize("fault", ["everybody can write to it", "another's", "a link to another"])
def test_machine_code_that_others_could_have_written_is_neither_loaded_nor_made(
    fault: str, less: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.delenv(machine_code.CHOICE, raising=False)
    folder = tmp_path / "polarfab"
    monkeypatch.setattr(machine_code, "kept_in", lambda: [folder])
    folder.mkdir(0o700)
    shutil.copy(less, folder)
    assert replace(LESS)._loaded()
    if fault == "another's":
        monkeypatch.setattr("os.getuid", lambda: os.geteuid() + 1)
    elif fault == "a link to another":
        folder.rename(tmp_path / "elsewhere")
        folder.symlink_to(tmp_path / "elsewhere")
    else:
        folder.chmod(0o777)
    library = replace(LESS)
    assert library._loaded() is None
    assert library._file is None


def test_a_folder_that_another_user_makes_first_keeps_nothing_of_numbas(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.delenv("NUMBA_CACHE_DIR", raising=False)
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    monkeypatch.setattr("os.access", lambda place, _: Path(place).is_relative_to(tmp_path))
    taken = machine_code.kept_in()[-1]
    assert taken.parent == tmp_path
    taken.mkdir(0o777)
    taken.chmod(0o777)
    machine_code.keep_somewhere()
    chosen = Path(os.environ["NUMBA_CACHE_DIR"])
    assert chosen.parent == tmp_path
    assert chosen != taken
    monkeypatch.delenv("NUMBA_CACHE_DIR")
    taken.chmod(0o700)
    machine_code.keep_somewhere()
    assert Path(os.environ["NUMBA_CACHE_DIR"]) == taken
    monkeypatch.delenv("NUMBA_CACHE_DIR")
    monkeypatch.setattr("os.access", lambda *_: True)
    machine_code.keep_somewhere()
    assert "NUMBA_CACHE_DIR" not in os.environ


@pytest.mark.parametrize("packets", [1, MANY])
def test_a_library_is_made_where_it_can_be_or_not_at_all(
    packets: int, empty: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    begun: list[tuple[str, ...]] = []
    monkeypatch.setattr("subprocess.run", lambda words, **_: begun.append(words))
    given_up = iter((False, *[True] * 9))  # by another process, after this one has looked
    monkeypatch.setattr(machine_code, "_gave_up", lambda _: next(given_up))
    library = replace(SMALL)
    (library.made if packets == MANY else library._begin)()
    assert [Path(words[-1]).parent for words in begun] == [empty]
