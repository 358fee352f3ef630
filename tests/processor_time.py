"""A pytest plug-in that writes what each test takes: `pytest -p tests.processor_time`.

A line a test goes to `processor_time.txt`: the seconds of processor time of the test and the
processes that it started, those that passed, and its name. Cases above two seconds
belong into `tests/long_cases.txt`, unless no other test of `make test` would find the same fault.
"""

from __future__ import annotations

import os
import time
from collections.abc import Generator
from contextlib import suppress
from pathlib import Path

import pytest

FILE = Path("processor_time.txt")
TICKS = os.sysconf("SC_CLK_TCK")


def processor_time() -> float:
    """Seconds that this process has used, and its children, with those that they waited for."""
    seconds = sum(os.times()[:4])
    numbers = list[str]()
    for children in Path("/proc/self/task").glob("*/children"):
        with suppress(OSError):  # the thread has just ended
            numbers += children.read_text().split()
    for child in numbers:
        with suppress(OSError):  # it has just ended, and its parent counts it
            stat = Path(f"/proc/{child}/stat").read_text().rpartition(")")[2].split()
            seconds += sum(map(int, stat[11:15])) / TICKS
    return seconds


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item: pytest.Item) -> Generator[None, object, object]:
    """Measure a test with what is set up and torn down for it."""
    before, began = processor_time(), time.monotonic()
    result = yield
    processor, ended = processor_time() - before, time.monotonic()
    with FILE.open("a") as file:
        file.write(f"{processor:.2f} {ended - began:.2f} {item.nodeid}\n")
    return result
