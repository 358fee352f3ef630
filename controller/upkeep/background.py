"""Long computations outside the loop that hears switches, each in a thread of its own.

NumPy lets go of the interpreter while it works on large arrays, so that echo requests are answered
and switches are programmed in the meantime. What is computed must not share anything that changes.
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
"""Seconds until a computation that has failed is tried again, at first and at most."""
SLICE = 0.01
"""Seconds of work in the loop before the sockets are served again."""

Start = Callable[[Callable[[], Any]], "Future[Any]"]
"""Starts a computation; the loop looks from time to time whether its future is done."""


def at_once(work: Callable[[], Any]) -> Future[Any]:
    """Compute here and now."""
    future: Future[Any] = Future()
    _compute(work, future)
    return future


def in_thread(work: Callable[[], Any]) -> Future[Any]:
    """Compute in a thread, which ends with the process."""
    future: Future[Any] = Future()
    Thread(target=_compute, args=(work, future), daemon=True, name="upkeep").start()
    return future


class InOrder:
    """Does one piece of work after the other, in a thread that ends with the process.

    Args:
        most: pieces that may wait.
        name: of the thread.
    """

    def __init__(self, most: int, name: str) -> None:
        self._most = most
        self._waiting: SimpleQueue[tuple[Callable[[], Any], Future[Any]]] = SimpleQueue()
        self._last: Future[Any] | None = None
        """The piece that was asked for last; None before the first."""
        Thread(target=self._work, daemon=True, name=name).start()

    def __call__(self, work: Callable[[], Any]) -> Future[Any] | None:
        """Do a piece of work soon; None, and it is left out, if too many wait."""
        return None if self._waiting.qsize() >= self._most else self.add(work)

    def add(self, work: Callable[[], Any]) -> Future[Any]:
        """Do a piece of work soon, however many wait."""
        future: Future[Any] = Future()
        self._last = future
        self._waiting.put((work, future))
        return future

    def finish(self, patience: float) -> bool:
        """Wait until all is done, for so many seconds at most; returns whether it is."""
        return self._last is None or bool(wait([self._last], patience).done)

    def _work(self) -> None:
        """Do what waits, for ever."""
        while True:
            _compute(*self._waiting.get())


def _compute(work: Callable[[], Any], future: Future[Any]) -> None:
    """Compute, and put the result or the exception into a future."""
    try:
        future.set_result(work())
    except BaseException as error:
        future.set_exception(error)


def freeze() -> None:
    """Have no garbage collection look again at what stays.

    What stayed until now, such as an earlier build, is looked at once more: else it would be kept
    for ever.
    """
    gc.unfreeze()
    gc.collect()
    gc.freeze()


@dataclass(slots=True)
class Slices:
    """Long work in the loop that hears switches, in slices of processor time.

    On a busy machine a slice of wall time is always over, and each rest costs a turn of the loop.
    """

    rest: Callable[[], object]
    """Lets other work of the loop go on."""
    clock: Callable[[], float] = thread_time
    """Processor seconds of this thread."""
    _began: float = field(init=False)
    """When the slice began."""

    def __post_init__(self) -> None:
        self._began = self.clock()

    def __call__(self) -> None:
        """Rest if the slice is over; called where other work may go on."""
        if self.clock() - self._began >= SLICE:
            self.rest()
            self._began = self.clock()


@dataclass(slots=True)
class Backoff:
    """The waits between tries of a computation that fails, each twice as long as the last."""

    clock: Callable[[], float]
    """Seconds on a clock that is never set."""
    error: str = ""
    """The error of the last try; "" if it did not fail."""
    tries: int = 0
    """The number of failures in a row."""
    again: float = -inf
    """When to try again."""

    @property
    def over(self) -> bool:
        """Whether the computation may be tried."""
        return self.clock() >= self.again

    def failed(self, error: Exception) -> bool:
        """A try has failed; returns whether with another error than the one before."""
        is_news = repr(error) != self.error
        wait = FIRST_WAIT * min(2**self.tries, LONGEST_WAIT / FIRST_WAIT)
        self.error, self.tries, self.again = repr(error), self.tries + 1, self.clock() + wait
        return is_news

    def succeeded(self) -> None:
        """A try has succeeded."""
        self.error, self.tries, self.again = "", 0, -inf

    def status(self) -> dict[str, Any] | None:
        """The failure for the status; None if the last try was none."""
        if not self.tries:
            return None
        left = round(max(self.again - self.clock(), 0.0), 1)
        return {"error": self.error, "tries": self.tries, "again_seconds": left}
