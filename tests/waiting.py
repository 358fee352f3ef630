"""Waiting: poll with a limit, never sleep blindly."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TypeVar

T = TypeVar("T")


def until(true: Callable[[], T], what: str = "", limit: float = 90.0) -> T:
    """The first true value of `true`; fails after `limit` seconds."""
    end = time.monotonic() + limit
    while not (value := true()):
        assert time.monotonic() < end, f"{what or true}: not within {limit} s"
        time.sleep(0.02)
    return value
