"""Long computations beside the loop that hears switches, each in a thread of its own.

NumPy lets go of the interpreter while it works on large arrays, so that echo requests are answered
and switches are programmed in the meantime. What is computed must not share anything that changes.
"""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import Future
from threading import Thread
from typing import Any

Start = Callable[[Callable[[], Any]], "Future[Any]"]
"""Starts a computation; the loop looks from time to time whether its future is done."""


def at_once(work: Callable[[], Any]) -> Future[Any]:
    """Compute here and now."""
    future: Future[Any] = Future()
    try:
        future.set_result(work())
    except Exception as error:
        future.set_exception(error)
    return future


def in_thread(work: Callable[[], Any]) -> Future[Any]:
    """Compute in a thread, which ends with the process."""
    future: Future[Any] = Future()

    def run() -> None:
        try:
            future.set_result(work())
        except BaseException as error:
            future.set_exception(error)

    Thread(target=run, daemon=True, name="repair").start()
    return future
