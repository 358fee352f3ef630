"""Machine code: the answers of Python, of the sources as they are now, whatever can be kept."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from itertools import takewhile
from pathlib import Path

import numpy as np
import pytest

from compilers.forwarding.machine_code import for_packets
from compilers.forwarding.tabulation import minimal_next
from compilers.forwarding.walks import Walks
from compilers.tables.folders.build_folder import load, save
from inventory.problems import InputError
from tests.compilers.routed import routed

ROOT = Path(__file__).parents[3]


def test_a_saved_build_needs_no_other_machine_code(tmp_path: Path) -> None:
    """The arrays of a folder are read-only, which is another type to numba."""
    build = routed(q=2)
    save(build, tmp_path / "build")
    walks = [Walks.of(one) for one in (build, load(tmp_path / "build"))]
    forms = [
        [
            (a.dtype, a.flags.writeable)
            for a in (*one.program, one.has_hosts, one.minimal_far)
            if isinstance(a, np.ndarray)
        ]
        for one in walks
    ]
    assert forms[0] == forms[1]


CALLER = """
import gc
from compilers.forwarding.machine_code import compiled, loop
from compilers.notes import listeners
from far.callee import MORE, step
listeners.append(print)
@loop
def twice(number):
    return step(step(number)) + MORE
number = compiled(twice)(3)
assert gc.isenabled()
print(number)
"""
CALLEE = """
from compilers.forwarding.machine_code import loop
from far.away.numbers import MORE
@loop
def step(number):
    return number + 1
"""
MADE = "machine code of twice is made, once on this machine, in up to half a minute"
NOWHERE = "machine code cannot be kept: set NUMBA_CACHE_DIR to a folder that can be written"


@pytest.fixture
def caller(tmp_path: Path) -> Path:
    """A program that prints what a loop gives, and what it is told; its loops are 5 + MORE."""
    (tmp_path / "far/away").mkdir(parents=True)
    (tmp_path / "far/away/numbers.py").write_text("MORE = 0\n")
    (tmp_path / "far/callee.py").write_text(CALLEE)
    (tmp_path / "caller.py").write_text(CALLER)
    return tmp_path / "caller.py"


def python(program: str, *paths: Path, **env: str) -> subprocess.CompletedProcess[str]:
    """Run a program with the modules of some folders, and with no machine code of other tests."""
    command = [sys.executable, "-B", "-c", program]
    where = {"env": environment(*paths, **env), "cwd": paths[0]}
    return subprocess.run(command, capture_output=True, text=True, check=True, **where)  # type: ignore[call-overload,no-any-return]


def environment(*paths: Path, **env: str) -> dict[str, str]:
    folders = os.pathsep.join(map(str, (*paths, ROOT)))
    return {**os.environ, "PYTHONPATH": folders, "NUMBA_CACHE_DIR": str(paths[0] / "kept"), **env}


def printed(caller: Path, before: str = "", **env: str) -> list[str]:
    """The lines of a program, after others of Python."""
    return python(f"{before}\nimport caller", caller.parent, **env).stdout.splitlines()


RUNS = """
import os, sys, numba, compilers.forwarding.machine_code
numba.njit("int64(int64)")(lambda number: number)  # numba is ready
for _ in sys.stdin:
    if not os.fork():
        import caller
        sys.stdout.flush()
        os._exit(0)
    os.wait()
    print("end", flush=True)
"""


@contextmanager
def runs_of(caller: Path) -> Iterator[Callable[[], list[str]]]:
    """The same as `printed` at each call, by processes that have numba from the one before them."""
    command = [sys.executable, "-B", "-c", RUNS]
    environ, pipe = environment(caller.parent), subprocess.PIPE
    with subprocess.Popen(command, env=environ, stdin=pipe, stdout=pipe, text=True) as process:
        assert process.stdin
        lines = iter(process.stdout or ())

        def run() -> list[str]:
            print(file=process.stdin, flush=True)
            return [line.rstrip() for line in takewhile(lambda line: line != "end\n", lines)]

        yield run
        process.stdin.close()


def test_machine_code_is_made_once_and_again_when_what_it_is_made_of_has_changed(
    caller: Path,
) -> None:
    """A number from elsewhere, and a rule in another file than the loop's, which numba misses."""
    with runs_of(caller) as run:
        assert run() == [MADE, "5"]
        assert run() == ["5"]
        (caller.parent / "far/away/numbers.py").write_text("MORE = 2\n")
        assert run() == [MADE, "7"]
        (caller.parent / "far/callee.py").write_text(CALLEE.replace("number + 1", "number + 2"))
        assert run() == [MADE, "9"]
        for file in (caller.parent / "kept").rglob("*.nbi"):
            file.write_bytes(b"")  # as a power failure may leave it; numba takes other bytes as old
        assert run()[-1] == "9"


def test_one_process_makes_it_for_all(caller: Path) -> None:
    env = environment(caller.parent)
    runs = [
        subprocess.Popen([sys.executable, "-B", caller], env=env, stdout=subprocess.PIPE, text=True)
        for _ in range(3)
    ]
    lines = [line for run in runs for line in run.communicate()[0].splitlines()]
    assert sorted(lines) == sorted([MADE, "5", "5", "5"])


def test_without_a_folder_it_is_made_for_the_process(caller: Path) -> None:
    """A package and a home that cannot be written leave numba the folder that it is told."""
    env = {"NUMBA_CACHE_LOCATOR_CLASSES": "UserProvidedCacheLocator"}
    assert printed(caller, NUMBA_CACHE_DIR="/proc/nowhere", **env) == [NOWHERE, "5"]


def test_a_full_disk_costs_time_only(caller: Path) -> None:
    full = "import resource; resource.setrlimit(resource.RLIMIT_FSIZE, (0, 0))"
    assert printed(caller, full) == [MADE, NOWHERE, "5"]


def test_another_word_in_the_environment_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("POLARFAB_LOOPS", "pyhton")
    with pytest.raises(InputError, match="POLARFAB_LOOPS: required python or machine"):
        for_packets(1, minimal_next)
