"""A pytest plug-in that writes what each test takes: `pytest -p tests.processor_time`.

A line a test goes to `processor_time.txt`: the seconds of processor time of the test and the
processes that it started and waited for, those that passed, and its name. Cases above two seconds
belong into `tests/long_cases.txt`, unless no other test of `make test` would find the same fault.
"""

from __future__ import annotations

import os
import time
from collections.abc import Generator
from pathlib import Path

import pytest

FILE = Path("processor_time.txt")


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item: pytest.Item) -> Generator[None, object, object]:
    """Measure a test with what is set up and torn down for it."""
    before, began = os.times(), time.monotonic()
    result = yield
    after, ended = os.times(), time.monotonic()
    processor = sum(after[:4]) - sum(before[:4])
    with FILE.open("a") as file:
        file.write(f"{processor:.2f} {ended - began:.2f} {item.nodeid}\n")
    return result
