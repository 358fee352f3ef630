"""Waiting: poll with a limit, never sleep blindly."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TypeVar

T = TypeVar("T")


def until(true: Callable[[], T], what: str = "", limit: float = 90.0) -> T:
    """The first true value of `true`; fails after `limit` seconds."""
    began = time.monotonic()
    end = began + limit
    while not (value := true()):
        now = time.monotonic()
        assert now < end, f"{what or true}: not within {limit} s"
        time.sleep(min(1, max(0.02, 2 * (now - began))))  # a dear look is taken less often
        began = time.monotonic()
    return value
