"""Mutants of sources, and those that no test sees.

    python -m tests.mutants --count 120 --seed 1
    python -m tests.mutants --only compilers/proof/port_use.py:57: tests/compilers/proof/test_*.py

First every test file runs once, and which functions each test calls is noted. Then every mutant
runs in a process of its own: the tests that call its function, the quickest first, until one fails.
Exit code 1 where one survives that is not judged in `harmless.txt`.
"""

from __future__ import annotations

import argparse
import os
import sys
import time
from pathlib import Path

from tests.mutants.planting import killed, recorded
from tests.mutants.source_mutants import ROOT, SourceMutant, chosen, harmless

TESTS = ("audit", "proof", "readers", "routing", "tables", "targets", "update")
BESIDE = (
    "compilers/wiring/test_parallel_cables.py",
    "polarfab/test_check_wiring.py",
    "polarfab/test_check_routes.py",
    "mutants/test_array_mutants.py",
)
SLOW = ("test_pushing.py", "test_rendering_cores.py")
"""They take long, and look at none of this."""


def main() -> int:
    """Print the mutants that survive; 1 where nobody has judged one of them."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--count", type=int, default=120)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--only", default="", help="FILE:LINE")
    parser.add_argument("tests", nargs="*", type=Path, help="test files, those of compilers else")
    words = parser.parse_args()
    files = [path.resolve() for path in words.tests] or _files()
    return judge(chosen(words.seed, words.count, words.only), files, os.cpu_count() or 1)


def _files() -> list[Path]:
    found = [f for t in TESTS for f in sorted((ROOT / "tests/compilers" / t).glob("test_*.py"))]
    files = [file for file in found if file.name not in SLOW]
    return [*files, *(ROOT / "tests" / file for file in BESIDE)]


def judge(mutants: list[SourceMutant], files: list[Path], workers: int) -> int:
    """Run the tests on each mutant; 1 where one survives that nobody has judged.

    2 where a test file fails as it is.
    """
    start, judged = time.monotonic(), harmless()
    calls = recorded(files, workers)
    if failing := [name for name, there in calls.items() if not there.passed]:
        print(f"these fail without any mutant: {', '.join(failing)}", file=sys.stderr)
        return 2
    print(f"{len(files)} test files read, {time.monotonic() - start:.0f} s", flush=True)
    words = {True: "harmless", False: "NOT JUDGED"}
    survived = []
    for mutant, dead in killed(mutants, calls, workers):
        if not dead:
            survived.append(str(mutant) in judged)
            print(f"survived, {words[survived[-1]]}: line {mutant.line}: {mutant}", flush=True)
    print(
        f"{len(mutants)} mutants of sources: {len(mutants) - len(survived)} seen by a test,"
        f" {sum(survived)} harmless, {survived.count(False)} survived that nobody judged"
        f" ({time.monotonic() - start:.0f} s)"
    )
    return int(not all(survived))


if __name__ == "__main__":
    sys.exit(main())
