"""Rounds of changes of many switches: one begins when all have confirmed the one before. No I/O.

What follows an answer is for the one who sends them to say: a repair goes on, a move is taken back.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from itertools import chain
from math import inf

from controller.switches.conversation import TransactionOutcome
from controller.switches.session import LiveFabric

Messages = Iterable[tuple[int, Sequence[bytes]]]
"""What each switch of a round gets, by vertex; made one after the other, as there is room."""


class Rounds:
    """The rounds being sent.

    Args:
        fabric: of the switches.
        answered: gets how the change of each switch has ended.
        finished: called when the last round is done.
        at_once: switches that get a round at the same time.

    Attributes:
        patience: seconds that a round waits for its slowest switch; then, and where one seems to be
            hung, the next one follows. Infinite: all are waited for. It may change at any time.
        sent: the switches that have not answered, and since when, the oldest first.
        number: the number of the last round.
        busy: whether rounds are left to be sent or answered.
    """

    def __init__(
        self,
        fabric: LiveFabric,
        answered: Callable[[int, TransactionOutcome], None],
        finished: Callable[[], None],
        at_once: float = inf,
    ) -> None:
        self.fabric, self._answered, self._finished = fabric, answered, finished
        self._at_once, self.patience = at_once, inf
        self.sent: dict[int, float] = {}
        self.busy, self.number = False, 0
        self._began = 0.0
        """When this round began."""
        self._left: deque[Messages] = deque()
        """The rounds that have not begun."""
        self._round: Iterator[tuple[int, Sequence[bytes]]] = iter(())
        """What is left of the round under way."""

    def send(self, rounds: Iterable[Messages] | None = None) -> None:
        """Send what may be sent now; with rounds, these follow, be it that there are none."""
        if rounds is not None:
            self._left.extend(rounds)
            self.busy = True
        while self.busy and len(self.sent) < self._at_once:
            switch_messages = next(self._round, None)
            if switch_messages is not None:
                self._send_to(*switch_messages)
            elif self.sent:
                return
            elif self._left:
                self._round, self.number = iter(self._left.popleft()), self.number + 1
                self._began = self.fabric.heard()
            else:
                self.busy = False
                self._finished()

    def _send_to(self, vertex: int, parts: Sequence[bytes]) -> None:
        """Send a switch its part of the round."""
        switch = self.fabric.present.get(vertex)
        if switch is None:
            self._answered(vertex, TransactionOutcome(False, lost=True))
            return
        if self.patience == inf or not switch.connection.is_slow:
            self.sent[vertex] = self.fabric.clock()
        switch.note_change()
        switch.talk.change(parts, partial(self._done, vertex, self.number))

    def tick(self) -> None:
        """Time passes: those that are waited for are asked whether they live."""
        if not self.busy:
            return
        late = self.fabric.heard() >= self._began + self.patience
        for vertex in list(self.sent):
            switch = self.fabric.present.get(vertex)
            if switch is not None:
                switch.probe()
            is_slow = switch is not None and switch.connection.is_slow
            if late or (is_slow and self.patience < inf):
                del self.sent[vertex]
        if not self.sent:
            self.send()

    def also(self, messages: Messages) -> None:
        """Send these messages in the round under way, too."""
        self._round = chain(self._round, messages)

    def stop(self) -> None:
        """Send nothing more; what was sent is waited for."""
        self._left.clear()
        self._round = iter(())

    def forget(self) -> None:
        """Drop all rounds: other programs are current now."""
        self.stop()
        self.sent.clear()
        self.busy, self.number = False, self.number + 1

    def _done(self, vertex: int, number: int, outcome: TransactionOutcome) -> None:
        """A switch has answered in the round of this number."""
        waited = number == self.number and self.sent.pop(vertex, None) is not None
        self._answered(vertex, outcome)
        if waited:
            self.send()
