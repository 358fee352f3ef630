"""Runs long work beside the controller's loop: in threads, or in slices of the loop.

The keeper, the mover and the management API use it. NumPy releases Python's interpreter lock while
it works on large arrays, so that echo requests are answered and switches are programmed in the
meantime. Work in a thread must not share anything that changes.
"""

from __future__ import annotations

import gc
from collections.abc import Callable
from concurrent.futures import Future, wait
from dataclasses import dataclass, field
from math import inf
from queue import SimpleQueue
from threading import Thread
from time import thread_time
from typing import Any

FIRST_WAIT, LONGEST_WAIT = 1.0, 60.0
"""Seconds until a computation that has failed is tried again: the first time, and at most."""
NO_LIMIT = inf
"""The number of functions that may wait in an `InOrder` that drops none."""
SLICE = 0.01
"""Seconds of work in the loop before the sockets are served again."""

Start = Callable[[Callable[[], Any]], "Future[Any]"]
"""Starts a computation, and returns its future; the loop checks at intervals whether it is done."""


def at_once(work: Callable[[], Any]) -> Future[Any]:
    """Compute now, in this thread and before returning; the future is done then."""
    future: Future[Any] = Future()
    _compute(work, future)
    return future


def in_thread(work: Callable[[], Any]) -> Future[Any]:
    """Compute in a thread, which ends with the process."""
    future: Future[Any] = Future()
    Thread(target=_compute, args=(work, future), daemon=True, name="upkeep").start()
    return future


class InOrder:
    """Runs one function after the other, in a thread that ends with the process.

    Args:
        most: how many functions may wait, or NO_LIMIT.
        name: the name of the thread.
    """

    def __init__(self, most: float, name: str) -> None:
        self._most = most
        self._waiting: SimpleQueue[tuple[Callable[[], Any], Future[Any]]] = SimpleQueue()
        self._last: Future[Any] | None = None
        """The future of the function that was added last; None before the first."""
        Thread(target=self._work, daemon=True, name=name).start()

    def __call__(self, work: Callable[[], Any]) -> Future[Any] | None:
        """Run a function after those that wait, or drop it if `most` wait (`add` drops none).

        Returns:
            The future of its result; None if it is dropped.
        """
        return None if self._waiting.qsize() >= self._most else self.add(work)

    def add(self, work: Callable[[], Any]) -> Future[Any]:
        """Run a function after those that wait, however many there are."""
        future: Future[Any] = Future()
        self._last = future
        self._waiting.put((work, future))
        return future

    def finish(self, patience: float) -> bool:
        """Wait until all functions have ended, for so many seconds at most; returns whether so."""
        return self._last is None or bool(wait([self._last], patience).done)

    def _work(self) -> None:
        """Run the functions that wait, for ever."""
        while True:
            _compute(*self._waiting.get())


def _compute(work: Callable[[], Any], future: Future[Any]) -> None:
    """Compute, and put the result or the exception into a future."""
    try:
        future.set_result(work())
    except BaseException as error:
        future.set_exception(error)


def freeze() -> None:
    """Exclude the objects that exist now from garbage collection.

    Objects that an earlier call has excluded, such as an earlier build, are collected first if
    nothing uses them: else they would be kept for ever.
    """
    gc.unfreeze()
    gc.collect()
    gc.freeze()


@dataclass(slots=True)
class Slices:
    """Divides long work in the controller's loop into slices of processor time.

    Not into slices of elapsed time: on a busy machine each would be over at once, and each
    yielding costs a turn of the loop.
    """

    yield_to_others: Callable[[], object]
    """Yields to other work of the loop."""
    clock: Callable[[], float] = thread_time
    """Processor seconds of this thread."""
    _slice_start: float = field(init=False)
    """When the slice began, by `clock`."""

    def __post_init__(self) -> None:
        self._slice_start = self.clock()

    def __call__(self) -> None:
        """Yield if the slice is over; called where other work may go on."""
        if self.clock() - self._slice_start >= SLICE:
            self.yield_to_others()
            self._slice_start = self.clock()


@dataclass(slots=True)
class Backoff:
    """The waits between tries of a computation that fails, each twice as long as the last."""

    clock: Callable[[], float]
    """Seconds on a monotonic clock."""
    error: str = ""
    """The error of the last try; "" if it did not fail."""
    tries: int = 0
    """The number of failures in a row."""
    retry_at: float = -inf
    """When to try again."""

    @property
    def is_over(self) -> bool:
        """Whether the wait is over, so that the computation may be tried."""
        return self.clock() >= self.retry_at

    def failed(self, error: Exception) -> bool:
        """Note that a try has failed; returns whether with another error than the last one."""
        is_new = repr(error) != self.error
        wait = FIRST_WAIT * min(2**self.tries, LONGEST_WAIT / FIRST_WAIT)
        self.error, self.tries, self.retry_at = repr(error), self.tries + 1, self.clock() + wait
        return is_new

    def succeeded(self) -> None:
        """Note that a try has succeeded."""
        self.error, self.tries, self.retry_at = "", 0, -inf

    def status(self) -> dict[str, Any] | None:
        """The failure for the status; None if the last try did not fail."""
        if not self.tries:
            return None
        left = round(max(self.retry_at - self.clock(), 0.0), 1)
        return {"error": self.error, "tries": self.tries, "again_seconds": left}
