"""Mutants of sources, and those that no test sees.

    python -m tests.mutants --count 120 --seed 1 --minutes 60 --keep
    python -m tests.mutants --only compilers/proof/verification.py tests/compilers/proof/test_*.py

First every test file runs once, and which functions each test calls is noted. Then every mutant
runs in a process of its own: the tests that call its function, the quickest first, until one fails.
Exit code 1 where one survives that is not judged in `harmless.txt`. What a run found is kept in
`runs.txt`. After SIGTERM no test file is read any more, or no mutant begins: the run ends as when
its minutes are over. `nice -n -8` before it holds for every process of it.
"""

from __future__ import annotations

import argparse
import os
import signal
import sys
import threading
import time
from datetime import date
from itertools import takewhile
from pathlib import Path

from tests.mutants.planting import killed, recorded
from tests.mutants.source_mutants import ROOT, SourceMutant, chosen, harmless

SLOW = (
    *("test_edits.py", "test_pushing.py", "test_rendering_cores.py"),
    "test_local_processes.py",
)
"""They take long, and see nothing that others do not; the last does not end while it is traced."""
MORE = (
    *("polarfab/test_check_wiring.py", "polarfab/test_check_routes.py"),
    *("extensions/scale/test_plane_lines.py", "extensions/scale/test_star_program.py"),
)
RUNS = Path(__file__).with_name("runs.txt")
"""A block a run: its day, seed and rooms, what was found, and the survivors of that day."""


def main() -> int:
    """Print the mutants that survive; 1 where nobody has judged one of them."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--count", type=int, default=300)
    parser.add_argument("--minutes", type=float, default=100.0, help="of processor time, most")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--only", default="", help="FOLDER/, FILE, or FILE:LINE:, with commas")
    parser.add_argument("--keep", action="store_true", help="write what was found to runs.txt")
    parser.add_argument("tests", nargs="*", type=Path, help="test files, those of compilers else")
    words = parser.parse_args()
    files = [path.resolve() for path in words.tests] or _files()
    mutants = chosen(words.seed, words.count, words.only)
    judged = harmless()
    tried = [mutant for mutant in mutants if str(mutant) not in judged]
    start = time.monotonic()
    found = judge(tried, files, os.cpu_count() or 1, words.minutes)
    if found is None:
        return 2
    survived = [str(mutant) for mutant, how in found.items() if how == "survived"]
    untried = f", {len(tried) - len(found)} untried" * (len(found) < len(tried))
    report = (
        f"{date.today()}, seed {words.seed}, {words.only or 'compilers'}: {len(mutants)} mutants:"
        f" {len(found) - len(survived)} seen by a test"
        f" ({[*found.values()].count('endless')} as it did not end),"
        f" {len(mutants) - len(tried)} judged harmless, {len(survived)} survived{untried},"
        f" {(time.monotonic() - start) / 60:.0f} min, {_processor_minutes():.0f} of processor time"
    )
    print(report)
    if words.keep:
        with RUNS.open("a") as file:
            file.write("\n".join([report, *(f"  {text}" for text in sorted(survived))]) + "\n")
    return int(bool(survived))


def _processor_minutes() -> float:
    """Of this process and all that it waited for."""
    return sum(os.times()[:4]) / 60


def _files() -> list[Path]:
    tests = ROOT / "tests"
    extensions = (tests / "extensions" / name for name in ("infiniband", "host_paths", "lossless"))
    rooms = (tests / "compilers", *extensions)
    files = [f for room in rooms for f in room.glob("**/test_*.py") if f.name not in SLOW]
    return sorted([*files, tests / "mutants/test_array_mutants.py", *(tests / m for m in MORE)])


def judge(
    mutants: list[SourceMutant], files: list[Path], workers: int, minutes: float
) -> dict[SourceMutant, str] | None:
    """How the tests end on each mutant; None where no test file could be read.

    A file with a test that fails on the sources as they are is read again, then left out. After
    so many minutes of processor time no mutant begins, so that a run ends in half as many on
    two cores.
    """
    start = time.monotonic()
    stop = threading.Event()
    signal.signal(signal.SIGTERM, lambda *_: stop.set())
    calls = recorded(takewhile(lambda _: not stop.is_set(), files), workers)
    again = recorded([ROOT / name for name, there in calls.items() if there.failed], 1)
    for name, there in again.items():
        calls[name] = there
        if there.failed:  # twice: it sees nothing of a mutant
            print("left out, as it fails without any mutant:", name, *there.failed, flush=True)
            del calls[name]
    stop.clear()
    if not calls:
        return None
    print(
        f"{len(calls)} of {len(files)} test files read, {time.monotonic() - start:.0f} s,"
        f" {_processor_minutes():.0f} min of processor time",
        flush=True,
    )
    found = {}
    soon = takewhile(lambda _: _processor_minutes() < minutes and not stop.is_set(), mutants)
    for mutant, how in killed(soon, calls, workers):
        found[mutant] = how
        if how == "survived":
            print(f"survived, NOT JUDGED: line {mutant.line}: {mutant}", flush=True)
    return found


if __name__ == "__main__":
    sys.exit(main())
