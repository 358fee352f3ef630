"""Rounds of changes: each is sent when every switch has confirmed the one before.

A switch that takes long is asked whether it is alive; one that does not answer is not waited for.
One that refuses is read and reconciled. No I/O.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable

from compilers.update.repair_messages import Round
from controller.switches.session import LiveFabric
from controller.switches.transaction import Done, Outcome

ROUND_PATIENCE = 5.0
"""Seconds that a round waits for its slowest switch."""


class Rounds:
    """The rounds being sent. finished is called when the last one is done."""

    def __init__(
        self, switches: LiveFabric, finished: Callable[[], None], clock: Callable[[], float]
    ) -> None:
        self._switches, self._finished, self._clock = switches, finished, clock
        self._left: deque[Round] = deque()
        self._waits: set[int] = set()
        self._until = 0.0
        self._number = 0

    @property
    def busy(self) -> bool:
        """Whether rounds are being sent or wait."""
        return bool(self._left or self._waits)

    @property
    def number(self) -> int | None:
        """The number of the last round; None while rounds are being sent or wait."""
        return None if self.busy else self._number

    def start(self, rounds: Iterable[Round]) -> None:
        """Send these rounds, the first at once.

        A switch that is being reconciled is read once more afterwards.
        """
        self._left.extend(rounds)
        self._next()

    def tick(self) -> None:
        """Time passes."""
        if not self._waits:
            return
        for vertex in self._waits:
            if self._switches.connected_now(vertex):
                self._switches.probe(vertex)
        self._waits -= self._switches.slow
        if self._clock() >= self._until:
            self._waits.clear()
        if not self._waits:
            self._next()

    def forget(self) -> None:
        """Drop all rounds: other programs are current now."""
        self._left.clear()
        self._waits.clear()
        self._number += 1

    def _next(self) -> None:
        while self._left and not self._waits:
            messages = self._left.popleft()
            self._until = self._clock() + ROUND_PATIENCE
            self._number += 1
            there = self._switches.in_sync
            self._waits = set(messages) & there - self._switches.slow
            for vertex, parts in messages.items():
                if vertex in there:
                    self._switches.change(vertex, parts, self._done(vertex, self._number))
                elif self._switches.connected_now(vertex):
                    self._switches.reconcile(vertex)
        if not self.busy:
            self._finished()

    def _done(self, vertex: int, number: int) -> Done:
        def done(outcome: Outcome) -> None:
            if not outcome.committed and not outcome.lost:
                self._switches.reconcile(vertex)
            if number == self._number:
                self._waits.discard(vertex)
                if not self._waits:
                    self._next()

        return done
