"""Threads for calls to the store, which block and so must not run in the hub."""

from __future__ import annotations

from collections.abc import Callable
from queue import SimpleQueue
from threading import Event, Thread
from typing import Any, TypeVar

from controller.cluster.leading import LEADER_PERIOD, Election, Unavailable

T = TypeVar("T")
STUCK = 30.0
"""Seconds without a tick after which the hub counts as stuck and the lease is not renewed."""


class StoreWorker:
    """A thread that runs one job at a time; answers are delivered in the thread that polls."""

    def __init__(self, store: Any) -> None:
        self._store = store
        self._jobs: SimpleQueue[tuple[Callable[[Any], Any], Callable[[Any], None]]] = SimpleQueue()
        self._done: SimpleQueue[tuple[Callable[[Any], None], Any]] = SimpleQueue()
        Thread(target=self._work, daemon=True, name="store").start()

    def do(self, job: Callable[[Any], T], answer: Callable[[T | Unavailable], None]) -> None:
        """Queue a job; answer gets its result, or the reason why it failed."""
        self._jobs.put((job, answer))

    def poll(self) -> None:
        """Deliver the answers that have arrived."""
        while not self._done.empty():
            answer, result = self._done.get()
            answer(result)

    def _work(self) -> None:
        while True:
            job, answer = self._jobs.get()
            try:
                result = job(self._store)
            except Unavailable as error:
                result = error
            except Exception as error:
                result = Unavailable(f"the store's content cannot be used: {error!r}")
            self._done.put((answer, result))


class Campaign:
    """A thread that runs an election for as long as the hub ticks."""

    def __init__(self, election: Election, clock: Callable[[], float]) -> None:
        self._election, self._clock = election, clock
        self._seen, self._over = clock(), Event()
        self._thread = Thread(target=self._work, daemon=True, name="election")
        self._thread.start()

    def tick(self) -> None:
        """The hub is alive."""
        self._seen = self._clock()

    def end(self) -> None:
        """Resign."""
        self._over.set()
        self._thread.join(5.0)
        self._election.resign()

    def _work(self) -> None:
        while not self._over.wait(LEADER_PERIOD):
            if self._clock() - self._seen < STUCK:
                self._election.step()
