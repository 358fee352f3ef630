"""Moving a running fabric to another build, round by round, and back when something is refused.

A state machine without I/O. It has every switch read first: an update begins only when all hold
what they should. Then each round is sent to all switches; when all have confirmed it, and a pause
has passed in which packets leave the links, comes the next. At the first refusal, loss of a switch
or silence the rounds are taken back in their reverse order, with the same pauses, and the build
that stood stays. docs/plan.md says why no packet is lost either way.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Literal

from compilers.update.programs import SwitchPrograms
from compilers.update.slots import BEGINNING
from controller.rollout.round_programs import RoundPrograms
from controller.rollout.shared_record import Record
from controller.switches.current import Current
from controller.switches.events import BuildKept, MoveFinished, RoundStarted
from controller.switches.session import LiveFabric
from controller.switches.transaction import Outcome

SETTLE = 0.05
"""Seconds between two rounds: longer than a packet stays on a link and in its queue."""
ROLLOUT_PATIENCE = 30.0
"""Seconds that reading or a round may take."""
BACK = 120.0
"""Seconds after which a round that cannot be taken back in order is left to reading; longer than a
session waits for a silent switch."""
MOVES_AT_ONCE = 32
"""Switches that are sent a round at the same time."""

State = Literal["reading", "forth", "back", "done", "failed"]


@dataclass(slots=True)
class Rollout:
    """One update under way. `tick` is to be called a few times a second.

    target: the new build. agree: asked before each step whether it may be taken; asked again until
    it may. begun: how far another controller came, whose work is gone on with. reason: why it was
    taken back.
    """

    fabric: LiveFabric
    programs: SwitchPrograms
    target: Current
    agree: Callable[[Record], bool] = lambda _: True
    begun: Record | None = None
    settle: float = SETTLE
    patience: float = ROLLOUT_PATIENCE
    state: State = field(init=False, default="reading")
    round: int = field(init=False, default=BEGINNING)
    reason: str = field(init=False, default="")
    _before: Current = field(init=False)
    _moment: RoundPrograms = field(init=False)
    _waiting: deque[int] = field(init=False, default_factory=deque)
    _sent: set[int] = field(init=False, default_factory=set)
    _since: float = field(init=False, default=0.0)
    _rest: float = field(init=False, default=0.0)

    def __post_init__(self) -> None:
        self._before, self._moment = self.fabric.current, RoundPrograms(self.programs)
        self._since = self.fabric.clock()
        if self.begun is not None:
            # Switches hold what they should after this round or beside it: reading evens that out.
            self.round = self.begun.round - (self.begun.way == "back")
            self._moment.done = dict.fromkeys(self._moment.node, self.round)
        old = self.programs.update.old
        self.fabric.load(Current(old.identity, self._moment.names, self._moment, old))

    @property
    def over(self) -> bool:
        """Whether it has come to its end, good or bad."""
        return self.state in ("done", "failed")

    def status(self) -> dict[str, Any]:
        """How far it is."""
        return {
            "from": self._before.identity,
            "to": self.target.identity,
            "state": self.state,
            "round": max(self.round, 0),
            "rounds": self.programs.update.rounds,
            "switches": len(self._moment.node),
            "waiting": len(self._waiting) + len(self._sent),
            "reason": self.reason,
        }

    def tick(self) -> None:
        """Go on, as far as that is possible now."""
        if self.over:
            return
        passed = self.fabric.clock() - self._since
        if self.state == "reading":
            self._read(passed > self.patience)
        elif self.state == "forth":
            self._forth(passed > self.patience)
        else:
            self._back(passed > BACK)

    # Going forth

    def _read(self, late: bool) -> None:
        fabric = self.fabric
        if not (fabric.complete or fabric.errors or late):
            return
        there = fabric.connections
        self._moment.generation = {v: fabric.generation(v) for v in self._moment.node if v in there}
        self._rest = fabric.clock()
        if fabric.complete and self.begun is None:
            self.state = "forth"
            self._next()
        elif fabric.complete and self.begun and self.begun.way == "forth":
            self.state = "forth"
        else:
            self._cannot()

    def _cannot(self) -> None:
        """What was read does not let it begin, or it is to be taken back."""
        fabric = self.fabric
        named = ", ".join(fabric.missing()[:5])
        first = next(iter(fabric.errors.items()), None)
        reason = f"{first[0]}: {first[1]}" if first else f"not in sync: {named}"
        if self.begun is None:
            self._stop(reason)
            return
        self.reason = "another controller took it back" if fabric.complete else reason
        self.state, self._since = "back", fabric.clock()

    def _forth(self, late: bool) -> None:
        if self.reason or late or self._left():
            self.reason = self.reason or self._silent()
            self._waiting.clear()
            self.state = "back"
            self._since = self.fabric.clock()
            self._back(late=False)
        elif self._waiting:
            self._fill()
        elif not self._sent and self._rested():
            self._next()

    def _next(self) -> None:
        """The round after this one, if there is one and it is agreed."""
        if self.round == self.programs.update.last:
            self._finish()
        elif self._agreed(self.round + 1, "forth"):
            self._begin(self.round + 1)

    def _agreed(self, round: int, way: Literal["forth", "back"]) -> bool:
        return self.agree(Record(self._before.identity, self.target.identity, round, way))

    def _begin(self, round: int) -> None:
        self.round, self._since = round, self.fabric.clock()
        self._waiting.extend(self._moment.node)
        rounds = self.programs.update.rounds
        self.fabric.tell(RoundStarted(self.target.identity, round + 1, rounds))
        self._fill()

    def _fill(self) -> None:
        moment = self._moment
        while self._waiting and len(self._sent) < MOVES_AT_ONCE and not self.reason:
            vertex = self._waiting.popleft()
            parts = moment.forth(vertex)
            if not parts:
                moment.done[vertex] = self.round
                continue
            self._send(vertex, parts, self._committed)
        if not self._waiting and not self._sent:
            self._rest = self.fabric.clock()

    def _committed(self, vertex: int, outcome: Outcome) -> None:
        if outcome.committed:
            self._moment.done[vertex] = self.round
        else:
            self.reason = self.reason or self._words(vertex, outcome)
        if self.state == "forth":
            self._fill()

    def _finish(self) -> None:
        self.state = "done"
        self.fabric.load(self.target)
        self.fabric.tell(MoveFinished(self.target.identity))

    # Coming back

    def _back(self, late: bool) -> None:
        if self._sent and not late:
            return  # what is under way has to end first, one way or the other
        moment = self._moment
        if late or self.round == BEGINNING:
            self._stop(self.reason)
            return
        if not self._agreed(self.round, "back"):
            return
        self._waiting.extend(v for v in moment.node if moment.done[v] == self.round)
        if self._waiting:
            self._since = self.fabric.clock()
            self._take_back()
        elif self._rested():
            if self.round == 0:
                self._stop(self.reason)
            else:
                self.round -= 1

    def _take_back(self) -> None:
        moment, connected = self._moment, self.fabric.connections
        while self._waiting:
            vertex = self._waiting.popleft()
            parts = moment.back(vertex) if vertex in connected else []
            if not parts:
                moment.done[vertex] = self.round - 1
                continue
            self._send(vertex, parts, self._taken_back)
        self._rest = self.fabric.clock()

    def _taken_back(self, vertex: int, outcome: Outcome) -> None:
        # One that refuses or leaves is read and put right when the old build is loaded.
        del outcome
        self._moment.done[vertex] = self.round - 1
        self._rest = self.fabric.clock()

    def _stop(self, reason: str) -> None:
        """The build that stood stays; every switch is read again and put right."""
        self.state, self.reason = "failed", reason
        self.fabric.load(self._before)
        self.fabric.tell(BuildKept(self._before.identity, reason))

    # Both

    def _send(self, vertex: int, parts: list[bytes], done: Callable[[int, Outcome], None]) -> None:
        self._sent.add(vertex)

        def told(outcome: Outcome) -> None:
            self._sent.discard(vertex)
            done(vertex, outcome)

        try:
            self.fabric.change(vertex, parts, told)
        except KeyError:
            told(Outcome(False, lost=True))

    def _rested(self) -> bool:
        return self.fabric.clock() - self._rest >= self.settle

    def _left(self) -> bool:
        """Whether a switch has gone that the update needs."""
        connected = self.fabric.connections
        return any(vertex not in connected for vertex in self._moment.node)

    def _silent(self) -> str:
        connected = self.fabric.connections
        gone = [self._moment.names[v] for v in self._moment.node if v not in connected]
        names = gone or [self._moment.names[v] for v in sorted(self._sent)]
        what = "left" if gone else "did not answer in time"
        return f"{', '.join(names[:5])} {what} in round {self.round + 1}"

    def _words(self, vertex: int, outcome: Outcome) -> str:
        name = self._moment.names[vertex]
        if outcome.lost or outcome.error is None:
            return f"{name} left in round {self.round + 1}"
        what = self._moment.describe(outcome.error.xid)
        words = outcome.error.words(self.fabric.error_names)
        return f"{name} refused round {self.round + 1}: {words} ({what})"
