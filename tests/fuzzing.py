"""Ten minutes of a fuzzer: no bug, no hang, no more than 2 GiB, messages that name a file.

A case is made by chance from a seed, and a message has the seed. `FUZZ_SECONDS` says another time.
"""

from __future__ import annotations

import os
import random
import resource
import signal
import sys
import traceback
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from time import monotonic

from inventory.problems import InputError

TIME = float(os.environ.get("FUZZ_SECONDS", "600"))
HANG, MOST = 20, 2 << 30
"""Seconds that a case may take, bytes that the process may have."""
MOST_WRONG = 50
"""Findings that are listed."""
Case = Callable[[random.Random], str]
"""A case by chance: "accepted", "refused", or what is wrong."""


def reading(work: Callable[[], object], folder: Path) -> str:
    """What became of reading: problems name a file in the folder, in few printable letters."""
    try:
        work()
    except InputError as error:
        wrong = [
            str(problem)
            for problem in error.problems
            if not problem.file.startswith((str(folder), "<stdin>"))
            or not str(problem).isprintable()
            or len(str(problem)) > 600 + len(problem.file)
        ]
        return f"message: {wrong}" if wrong or not error.problems else "refused"
    return "accepted"


def running(words: object, code: int, err: str) -> str:
    """What became of a verb."""
    if code not in (0, 1, 2) or "Traceback" in err:
        return f"{words}: exit code {code}: {err[-500:]}"
    return "refused" if code == 2 else "accepted"


def ten_minutes(name: str, case: Case) -> None:
    """Try cases by the seeds 1, 2, …; how many there were is printed."""
    found, count = list[str](), Counter[str]()
    before = signal.signal(signal.SIGALRM, _late)
    most = max(MOST, _memory())
    seed, end = 0, monotonic() + TIME
    while monotonic() < end and len(found) < MOST_WRONG:
        seed += 1
        signal.setitimer(signal.ITIMER_REAL, HANG)
        try:
            said = case(random.Random(seed))  # noqa: S311
        except (Exception, SystemExit) as error:
            place = traceback.extract_tb(error.__traceback__)[-1]
            said = f"{type(error).__name__} {error!s:.200} at {place.filename}:{place.lineno}"
        finally:
            signal.setitimer(signal.ITIMER_REAL, 0)
        good = said in ("accepted", "refused")
        count[said if good else "wrong"] += 1
        if not good:
            found.append(f"seed {seed}: {said}")
        if _memory() > most:
            most = _memory()
            found.append(f"seed {seed}: {most >> 20} MiB")
    signal.signal(signal.SIGALRM, before)
    print(f"{name}: {seed} cases, {dict(count)}", file=sys.__stdout__)
    assert not found, "\n".join(found)


def _memory() -> int:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss << 10


def _late(*_: object) -> None:
    raise TimeoutError(f"more than {HANG} s")
