"""Mutants of sources, and those that no test sees.

    python -m tests.mutants --count 120 --seed 1
    python -m tests.mutants --only compilers/proof/verification.py tests/compilers/proof/test_*.py

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
SLOW = ("test_pushing.py", "test_rendering_cores.py", "test_targets_agree.py")
"""They take long, and see nothing that others do not."""


def main() -> int:
    """Print the mutants that survive; 1 where nobody has judged one of them."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--count", type=int, default=300)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--only", default="", help="FILE, or FILE:LINE:")
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
    if failing := [f"{name}: {text}" for name, there in calls.items() for text in there.failed]:
        print("\n".join(["without any mutant these fail:", *failing]), file=sys.stderr)
        return 2
    print(f"{len(files)} test files read, {time.monotonic() - start:.0f} s", flush=True)
    tried = [mutant for mutant in mutants if str(mutant) not in judged]
    survived = 0
    for mutant, dead in killed(tried, calls, workers):
        if not dead:
            survived += 1
            print(f"survived, NOT JUDGED: line {mutant.line}: {mutant}", flush=True)
    print(
        f"{len(mutants)} mutants of sources: {len(tried) - survived} seen by a test,"
        f" {len(mutants) - len(tried)} judged harmless, {survived} survived that nobody judged"
        f" ({time.monotonic() - start:.0f} s)"
    )
    return int(bool(survived))


if __name__ == "__main__":
    sys.exit(main())
