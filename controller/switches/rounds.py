"""Sends changes to many switches in rounds: each begins when all switches have confirmed the last.

A repair (`controller.upkeep.repair_keeper`) and a move (`controller.rollout.rollout`) each have a
`Rounds`. Its owner decides what a refusal leads to: a repair goes on, a move is undone. No I/O.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from itertools import chain
from math import inf

from controller.switches.conversation import ChangeOutcome
from controller.switches.reconcile import without_borrowed_deletions
from controller.switches.session import LiveFabric

Messages = Iterable[tuple[int, Sequence[bytes]]]
"""The vertex of each switch of a round, and its messages; made only when they can be sent."""


class Rounds:
    """The rounds being sent.

    Args:
        fabric: has the switches.
        answered: called with each switch and the outcome of its change.
        finished: called when the last round is done.
        at_once: most switches that have a round's messages and have not answered yet.

    Attributes:
        patience: most seconds that a round waits for its switches; it does not wait for one whose
            connection is slow. Infinite: it waits for all. It may change at any time.
        sent: when each switch that has not answered was sent its messages, by the fabric's
            listening clock, the oldest first.
        number: the number of the last round.
        busy: whether rounds remain to be sent or answered.
    """

    def __init__(
        self,
        fabric: LiveFabric,
        answered: Callable[[int, ChangeOutcome], None],
        finished: Callable[[], None],
        at_once: float = inf,
    ) -> None:
        self.fabric, self._answered, self._finished = fabric, answered, finished
        self._at_once, self.patience = at_once, inf
        self.sent: dict[int, float] = {}
        self.busy, self.number = False, 0
        self._round_start = 0.0
        """When the current round began, by the fabric's listening clock."""
        self._rounds: deque[Messages] = deque()
        """The rounds that have not begun."""
        self._unsent: Iterator[tuple[int, Sequence[bytes]]] = iter(())
        """The messages of the current round that are not sent yet."""

    def send(self, rounds: Iterable[Messages] | None = None) -> None:
        """Send the messages that may be sent now.

        Args:
            rounds: further rounds, to be sent after the others; even an empty list makes `finished`
                be called again. None: only go on with the others.
        """
        if rounds is not None:
            self._rounds.extend(rounds)
            self.busy = True
        while self.busy and len(self.sent) < self._at_once:
            switch_messages = next(self._unsent, None)
            if switch_messages is not None:
                self._send_to(*switch_messages)
            elif self.sent:
                return
            elif self._rounds:
                self._unsent, self.number = iter(self._rounds.popleft()), self.number + 1
                self._round_start = self.fabric.listening_clock()
            else:
                self.busy = False
                self._finished()

    def _send_to(self, vertex: int, parts: Sequence[bytes]) -> None:
        """Send a switch its messages of the round."""
        switch = self.fabric.present.get(vertex)
        if switch is None:
            self._answered(vertex, ChangeOutcome(False, lost=True))
            return
        if self.patience == inf or not switch.connection.is_slow:
            self.sent[vertex] = self.fabric.listening_clock()
        switch.note_change()
        if borrowed := switch.foreign.borrowed_groups:
            parts = [*without_borrowed_deletions(parts, borrowed)]
        switch.talk.change(parts, partial(self._take_answer, vertex, self.number))

    def tick(self) -> None:
        """Probe the switches that have not answered, and stop waiting for late and slow ones."""
        if not self.busy:
            return
        late = self.fabric.listening_clock() >= self._round_start + self.patience
        for vertex in list(self.sent):
            switch = self.fabric.present.get(vertex)
            if switch is not None:
                switch.probe()
            is_slow = switch is not None and switch.connection.is_slow
            if late or (is_slow and self.patience < inf):
                del self.sent[vertex]
        if not self.sent:
            self.send()

    def add_to_round(self, messages: Messages) -> None:
        """Send further messages in the current round."""
        self._unsent = chain(self._unsent, messages)

    def stop(self) -> None:
        """Send nothing more, but wait for answers to what was sent."""
        self._rounds.clear()
        self._unsent = iter(())

    def forget(self) -> None:
        """Send nothing more, and wait for no answers: the switches get other programs."""
        self.stop()
        self.sent.clear()
        self.busy, self.number = False, self.number + 1

    def _take_answer(self, vertex: int, number: int, outcome: ChangeOutcome) -> None:
        """Take a switch's answer to its messages of the round of this number."""
        is_awaited = number == self.number and self.sent.pop(vertex, None) is not None
        self._answered(vertex, outcome)
        if is_awaited:
            self.send()
