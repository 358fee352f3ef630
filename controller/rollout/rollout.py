"""Rollout of a build to a running fabric, round by round, and back after a refusal.

A state machine without I/O. First every switch is read: an update begins only if all hold their
programs, or, where that is asked for, without those that do not: they get no transit, and are
brought to each round by reading them. One that is away and has transit is waited for. Then each
round is sent to all switches; the next follows when all have confirmed it and packets have had time
to leave the links. At the first refusal, lost switch or timeout the rounds are undone in reverse
order, with the same pauses, and the old build stays. docs/how-to/plan.md explains why no packet is
lost either way.
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
from controller.switches.switch import AMISS
from controller.switches.transaction import Outcome

SETTLE = 0.05
"""Seconds between two rounds: longer than a packet stays on a link and in its queue."""
ROLLOUT_PATIENCE = 30.0
"""Most seconds in which no switch is read or confirms a round, and for a switch to confirm one."""
BACK = 120.0
"""Seconds after which undoing a round is given up and switches are read instead; longer than a
session waits for a silent switch."""
MOVES_AT_ONCE = 256
"""Switches that get a round at the same time."""

State = Literal["reading", "forth", "back", "done", "failed"]


@dataclass(slots=True)
class Rollout:
    """One update in progress. Call `tick` a few times a second.

    target: the new build. agree: called before each step, and again until it returns True. begun:
    the progress of another controller whose move this continues. all_or_none: it does not begin
    while a switch is not in sync. reason: why the move was undone.
    """

    fabric: LiveFabric
    programs: SwitchPrograms
    target: Current
    agree: Callable[[Record], bool] = lambda _: True
    begun: Record | None = None
    all_or_none: bool = True
    settle: float = SETTLE
    patience: float = ROLLOUT_PATIENCE
    state: State = field(init=False, default="reading")
    round: int = field(init=False, default=BEGINNING)
    reason: str = field(init=False, default="")
    _before: Current = field(init=False)
    _round_programs: RoundPrograms = field(init=False)
    _out: frozenset[int] = field(init=False, default=frozenset())
    _waiting: deque[int] = field(init=False, default_factory=deque)
    _sent: dict[int, float] = field(init=False, default_factory=dict)
    _since: float = field(init=False, default=0.0)
    _read_by_now: int = field(init=False, default=0)
    _rest: float = field(init=False, default=0.0)

    def __post_init__(self) -> None:
        self._before, self._round_programs = self.fabric.current, RoundPrograms(self.programs)
        self._since = self.fabric.clock()
        if self.begun is not None:
            # Switches are at this round or next to it: reading evens that out.
            self.round = self.begun.round - (self.begun.way == "back")
            self._round_programs.done = dict.fromkeys(self._round_programs.node, self.round)
        old = self.programs.update.old
        programs = self._round_programs
        proved = self._before.proved
        between = Current(old.identity, programs.names, programs, old, proved)
        self.fabric.load(between, silent=True)

    @property
    def over(self) -> bool:
        """Whether the move has ended, successfully or not."""
        return self.state in ("done", "failed")

    def status(self) -> dict[str, Any]:
        """The progress of the move."""
        return {
            "from": self._before.identity,
            "to": self.target.identity,
            "state": self.state,
            "round": max(self.round, 0),
            "rounds": self.programs.update.rounds,
            "switches": len(self._round_programs.node),
            "waiting": len(self._waiting) + len(self._sent),
            "reason": self.reason,
        }

    def tick(self) -> None:
        """Time passes: take the next steps that are possible."""
        if self.over:
            return
        passed = self.fabric.clock() - self._since
        if self.state == "reading":
            self._read(passed > self.patience)
        elif self.state == "forth":
            oldest = next(iter(self._sent.values()), self._since)
            self._forth(self.fabric.clock() - min(oldest, self._since) > self.patience)
        else:
            self._back(passed > BACK)

    # Going forth

    def _read(self, late: bool) -> None:
        fabric, there = self.fabric, self.fabric.connections
        if self.all_or_none:
            known = fabric.complete or bool(fabric.errors)
        else:
            known = all(fabric.state(v) in ("in sync", *AMISS) for v in there)
            known &= not self._missed()
        if not (known or late):
            done = len(fabric.in_sync)
            if done > self._read_by_now:
                self._read_by_now, self._since = done, fabric.clock()
            return
        self._round_programs.generation = {
            v: fabric.generation(v) for v in self._round_programs.node if v in there
        }
        self._rest = fabric.clock()
        if self.begun is None and (fabric.complete or not self.all_or_none):
            self._out = frozenset(self._round_programs.node) - fabric.in_sync
            self.state = "forth"
            self._next()
        elif fabric.complete and self.begun and self.begun.way == "forth":
            self.state = "forth"
        else:
            self._cannot()

    def _missed(self) -> bool:
        """Whether a switch is away that traffic leads through: it may be about to connect."""
        upkeep, old = self.fabric.upkeep, len(self.programs.update.old.wiring.names)
        away = self._round_programs.node.keys() - self.fabric.connections
        return upkeep is not None and any(v < old and not upkeep.avoids(v) for v in away)

    def _cannot(self) -> None:
        """The move cannot begin after reading, or has to be undone."""
        fabric = self.fabric
        named = ", ".join(fabric.missing()[:5])
        first = next(iter(fabric.errors.items()), None)
        reason = f"{first[0]}: {first[1]}" if first else f"not in sync: {named}"
        if self.begun is None:
            self._stop(reason)
            return
        self.reason = "another controller undid it" if fabric.complete else reason
        self.state, self._since = "back", fabric.clock()

    def _forth(self, late: bool) -> None:
        if self.reason or late or self._gone():
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
        """Start the next round, if there is one and `agree` allows it."""
        if self.round == self.programs.update.last:
            self._finish()
        elif self._agreed(self.round + 1, "forth"):
            self._begin(self.round + 1)

    def _agreed(self, round: int, way: Literal["forth", "back"]) -> bool:
        return self.agree(Record(self._before.identity, self.target.identity, round, way))

    def _begin(self, round: int) -> None:
        self.round, self._since = round, self.fabric.clock()
        self._waiting.extend(self._round_programs.node)
        rounds = self.programs.update.rounds
        self.fabric.tell(RoundStarted(self.target.identity, round + 1, rounds))
        self._fill()

    def _fill(self) -> None:
        programs = self._round_programs
        while self._waiting and len(self._sent) < MOVES_AT_ONCE and not self.reason:
            vertex = self._waiting.popleft()
            if vertex in self._out:
                self._read_to(vertex, self.round)
                continue
            parts = programs.forth(vertex)
            if not parts:
                programs.done[vertex] = self.round
                continue
            self._send(vertex, parts, self._committed)
        if not self._waiting and not self._sent:
            self._rest = self.fabric.clock()

    def _committed(self, vertex: int, outcome: Outcome) -> None:
        if outcome.committed:
            self._round_programs.done[vertex] = self.round
            self._since = self.fabric.clock()
        elif outcome.timed_out and self.state == "forth":
            self._waiting.append(vertex)
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
            return  # outstanding changes have to end first, one way or the other
        programs = self._round_programs
        if late or self.round == BEGINNING:
            self._stop(self.reason)
            return
        if not self._agreed(self.round, "back"):
            return
        self._waiting.extend(v for v in programs.node if programs.done[v] == self.round)
        if self._waiting:
            self._since = self.fabric.clock()
            self._take_back()
        elif self._rested():
            if self.round == 0:
                self._stop(self.reason)
            else:
                self.round -= 1

    def _take_back(self) -> None:
        programs, connected = self._round_programs, self.fabric.connections
        while self._waiting:
            vertex = self._waiting.popleft()
            if vertex in self._out:
                self._read_to(vertex, self.round - 1)
                continue
            parts = programs.back(vertex) if vertex in connected else []
            if not parts:
                programs.done[vertex] = self.round - 1
                continue
            self._send(vertex, parts, self._taken_back)
        self._rest = self.fabric.clock()

    def _taken_back(self, vertex: int, outcome: Outcome) -> None:
        # A switch that refuses or leaves is reconciled when the old build is loaded.
        del outcome
        self._round_programs.done[vertex] = self.round - 1
        self._rest = self.fabric.clock()

    def _stop(self, reason: str) -> None:
        """Keep the old build; every switch is read again and reconciled."""
        self.state, self.reason = "failed", reason
        self.fabric.load(self._before, silent=True)
        self.fabric.tell(BuildKept(self._before.identity, reason))

    # Both

    def _send(self, vertex: int, parts: list[bytes], done: Callable[[int, Outcome], None]) -> None:
        self._sent[vertex] = self.fabric.clock()

        def told(outcome: Outcome) -> None:
            self._sent.pop(vertex, None)
            done(vertex, outcome)

        try:
            self.fabric.change(vertex, parts, told)
        except KeyError:
            told(Outcome(False, lost=True))

    def _read_to(self, vertex: int, round: int) -> None:
        """A switch that takes no part comes to hold a round, if it can."""
        self._round_programs.done[vertex] = round
        if self.fabric.connected_now(vertex):
            self.fabric.reconcile(vertex)

    def _gone(self) -> list[int]:
        """The switches that the update needs and that have left."""
        connected = self.fabric.connections
        return [v for v in self._round_programs.node if v not in connected and v not in self._out]

    def _rested(self) -> bool:
        return self.fabric.clock() - self._rest >= self.settle

    def _silent(self) -> str:
        gone = [self._round_programs.names[v] for v in self._gone()]
        names = gone or [self._round_programs.names[v] for v in sorted(self._sent)]
        what = "left" if gone else "did not answer in time"
        return f"{', '.join(names[:5])} {what} in round {self.round + 1}"

    def _words(self, vertex: int, outcome: Outcome) -> str:
        name = self._round_programs.names[vertex]
        if outcome.lost or outcome.error is None:
            return f"{name} left in round {self.round + 1}"
        what = self._round_programs.describe(outcome.error.xid)
        words = outcome.error.words(self.fabric.error_names)
        return f"{name} refused round {self.round + 1}: {words} ({what})"
