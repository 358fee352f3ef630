"""Rows shared out over the cores: for kernels that release the GIL."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

T = TypeVar("T")


def over_rows(rows: int, chunk: int, work: Callable[[int, int], T]) -> Iterator[T]:
    """Call work(first, last) on consecutive runs of `chunk` rows, in parallel; yield in order."""
    starts = range(0, rows, chunk)
    if len(starts) <= 1:
        yield from (work(first, min(first + chunk, rows)) for first in starts)
        return
    with ThreadPoolExecutor(max_workers=os.process_cpu_count() if hasattr(os, "process_cpu_count") else os.cpu_count()) as pool:
        yield from pool.map(lambda first: work(first, min(first + chunk, rows)), starts)
