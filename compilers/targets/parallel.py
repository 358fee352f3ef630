"""Work on every core: switches are rendered apart from each other."""

from __future__ import annotations

import gc
import multiprocessing
import os
import signal
import sys
import warnings
from collections.abc import Callable, Iterator, Sequence
from typing import Any, TypeVar

LEAST_SWITCHES = 64
"""Pieces of work below which another process costs more than it saves."""
SWITCHES_A_TASK = 8
"""Pieces that a process takes at once."""
GARBAGE = 100_000
"""New objects after which a child looks for garbage."""
T = TypeVar("T")

_work: Callable[[int], Any]
"""What the processes do. They are forked, so neither it nor the build that it holds is pickled."""


def on_all_cores(work: Callable[[int], T], pieces: Sequence[int]) -> Iterator[T]:
    """The results of work(piece) for all pieces, in no order, as they come.

    Args:
        work: what to do; what it changes in memory may be lost.
        pieces: for what.

    Raises:
        Whatever `work` raises first; what is under way then is ended.
    """
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else 1
    if cores == 1 or len(pieces) < LEAST_SWITCHES:
        yield from map(work, pieces)
        return
    global _work
    _work = work
    with warnings.catch_warnings():
        # Python 3.12 warns where a progress bar has a thread. The children run our work only, and
        # that touches neither the bar nor its locks.
        warnings.simplefilter("ignore", DeprecationWarning)
        pool = multiprocessing.get_context("fork").Pool(cores, _ready)
    with pool:
        yield from pool.imap_unordered(_call, pieces, SWITCHES_A_TASK)


def _ready() -> None:
    """A child leaves Ctrl-C to its parent, and tidies up when that ends it.

    What the parent made stays, and most of what a child makes goes at once: garbage is rare.
    """
    gc.freeze()
    gc.set_threshold(GARBAGE)
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, lambda *_: sys.exit())


def _call(piece: int) -> Any:
    return _work(piece)
