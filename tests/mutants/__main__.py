"""Mutants of sources, and those that no test sees.

    python -m tests.mutants --keep
    python -m tests.mutants --only compilers/proof/verification.py tests/compilers/proof/test_*.py

First every test file runs once, and which functions each test calls is noted; that is kept until it
or a source changes. Then every mutant runs in a process of its own: the tests that call its
function, the quickest first, until one fails. Exit code 1 where one survives that is not judged in
`harmless.txt`. What a run found is kept in `runs.txt`. `nice -n -8` before it holds for every
process of it.
"""

from __future__ import annotations

import argparse
import os
import sys
import time
from datetime import date
from itertools import takewhile
from pathlib import Path

from tests.mutants.planting import Calls, killed, recorded
from tests.mutants.source_mutants import ROOT, chosen, harmless

ROOMS = (
    "compilers",
    *(f"extensions/{x}" for x in ("infiniband", "host_paths", "lossless", "scale")),
)
MORE = (
    *("test_check_wiring.py", "test_check_routes.py", "test_guided_path.py"),
    *("test_fabric.py", "test_plan_diff.py"),
)
"""Tests of verbs that see what is far from the files of a room."""
OPEN = ("survived", "endless")
"""How no test fails: that it has not ended says little of a loop that runs as Python."""
RUNS = Path(__file__).with_name("runs.txt")
"""A block a run: its day, seed and rooms, what was found, and what no test failed on that day."""


def main() -> int:
    """Print the mutants that survive; 1 where nobody has judged one of them."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--count", type=int, default=108)
    parser.add_argument("--minutes", type=float, default=110.0, help="of processor time, most")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--only", default="", help="FOLDER/, FILE, or FILE:LINE:, with commas")
    parser.add_argument("--keep", action="store_true", help="write what was found to runs.txt")
    parser.add_argument("tests", nargs="*", type=Path, help="test files, those of compilers else")
    words = parser.parse_args()
    start = time.monotonic()
    mutants = chosen(words.seed, words.count, words.only)
    judged = harmless()
    tried = [mutant for mutant in mutants if str(mutant) not in judged]
    calls = _calls([path.resolve() for path in words.tests] or _files(), os.cpu_count() or 1)
    if not calls:
        return 2
    print(f"{len(calls)} test files read, {_spent(start)}", flush=True)
    found: dict[str, str] = {}
    soon = takewhile(lambda _: _processor_minutes() < words.minutes, tried)
    for mutant, how in killed(soon, calls, os.cpu_count() or 1):
        found[str(mutant)] = how
        if how in OPEN:
            print(f"{how}, NOT JUDGED: line {mutant.line}: {mutant}", flush=True)
    left = sorted(f"  {how}: {text}" for text, how in found.items() if how in OPEN)
    report = (
        f"{date.today()}, seed {words.seed}, {words.only or 'compilers'}: {len(mutants)} mutants:"
        f" {len(found) - len(left)} seen by a test, {len(mutants) - len(tried)} judged harmless,"
        f" {len(left)} not judged, {len(tried) - len(found)} untried, {_spent(start)}"
    )
    print(report)
    if words.keep:
        with RUNS.open("a") as file:
            file.write("\n".join([report, *left]) + "\n")
    return int(bool(left))


def _processor_minutes() -> float:
    """Of this process and all that it waited for."""
    return sum(os.times()[:4]) / 60


def _spent(start: float) -> str:
    minutes = (time.monotonic() - start) / 60
    return f"{minutes:.0f} min, {_processor_minutes():.0f} of processor time"


def _files() -> list[Path]:
    tests = ROOT / "tests"
    files = [file for room in ROOMS for file in (tests / room).glob("**/test_*.py")]
    verbs = [tests / "polarfab" / name for name in MORE]
    return sorted([*files, *verbs, tests / "mutants/test_array_mutants.py"])


def _calls(files: list[Path], workers: int) -> dict[str, Calls]:
    """What the test files call, but for those of which a test fails on the sources as they are."""
    calls = recorded(files, workers)
    calls |= recorded([ROOT / name for name, there in calls.items() if there.failed], 1)
    for name in [name for name, there in calls.items() if there.failed]:
        print("left out, as it fails without any mutant:", name, *calls.pop(name).failed)
    return calls


if __name__ == "__main__":
    sys.exit(main())
