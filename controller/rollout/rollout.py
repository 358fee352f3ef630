"""Rollout of a build to a running fabric, round by round, and back after a refusal.

A state machine without I/O. First every switch is read: an update begins only if all hold their
programs, or, where that is asked for, without those that do not: they get no transit, and are
brought to each round by reading them. One that is away and has transit is waited for. Then each
round is sent to all switches; the next follows when all have confirmed it and packets have had time
to leave the links. At the first refusal, lost switch or timeout the rounds are undone in reverse
order, with the same pauses, and the old build stays. docs/how-to/move.md explains why no packet is
lost either way.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from math import inf
from typing import Any, Literal

import numpy as np

from compilers.targets.openflow.encoder import FlowProgram
from compilers.targets.openflow.flow_tables import RowKind
from compilers.targets.openflow.group_and_flow_bytes import kind_of
from compilers.targets.openflow.message_parts import Block
from compilers.targets.openflow.profiles import Profile
from compilers.update.programs import SwitchPrograms
from compilers.update.slots import BEGINNING, messages
from controller.rollout.fabric_record import Record
from controller.switches.conversation import TransactionOutcome
from controller.switches.current import Current
from controller.switches.events import BuildKept, MoveFinished, RoundStarted
from controller.switches.rounds import Messages, Rounds
from controller.switches.session import LiveFabric
from controller.switches.switch import AMISS


class RoundPrograms:
    """The programs of the new build's switches, each after its last completed round.

    Switches of the old build keep their vertices; new ones follow. Switches that only the old build
    has are left unchanged.

    Attributes:
        node: the number in the update of each vertex.
        names: the nodes' names by vertex.
        done: the last completed round of each vertex.
        generation: of each vertex's class and group numbers before the update.
    """

    def __init__(self, programs: SwitchPrograms) -> None:
        self.programs, update = programs, programs.update
        nodes = update.nodes
        names = list(update.old.wiring.names)
        self.node: dict[int, int] = {}
        for node in np.flatnonzero(nodes.after >= 0).tolist():
            vertex = int(nodes.before[node])
            if vertex < 0:
                vertex = len(names)
                names.append(update.new.wiring.names[nodes.after[node]])
            self.node[vertex] = node
        self.names: Sequence[str] = tuple(names)
        self.by_datapath_id: Mapping[int, int] = {
            int(nodes.datapath_id[node]): vertex for vertex, node in self.node.items()
        }
        self.done = dict.fromkeys(self.node, BEGINNING)
        self.generation: dict[int, int] = {}

    def program(self, vertex: int, generation: int) -> FlowProgram:
        """The vertex's current program."""
        numbers_generation = self.generation.get(vertex, generation)
        standing: list[Block] = []
        for slots in self.programs.slots(self.node[vertex], numbers_generation):
            standing += slots.held_after(self.done[vertex])
        groups = tuple(block for block in standing if kind_of(block) == RowKind.GROUP)
        flows = tuple(block for block in standing if kind_of(block) != RowKind.GROUP)
        return FlowProgram(groups, flows)

    def profile(self, vertex: int) -> Profile:
        """What the vertex's switch can do."""
        return self.programs.profile(self.node[vertex])

    def restrict(self, vertex: int, able: Profile) -> None:
        """The vertex's switch has shown that it can do no more than this."""
        self.programs.restrict(self.node[vertex], able)

    def step(self, vertex: int, back: bool) -> list[bytes]:
        """The messages of a vertex's next round, or those that undo its last one."""
        slots = self.programs.slots(self.node[vertex], self.generation.get(vertex, 0))
        turned = [slot.way_back() for slot in slots] if back else slots
        return [block.tobytes() for block in messages(turned, self.done[vertex] + (not back))]

    def describe(self, number: int) -> str:
        """A description of the program entry behind the message with this xid."""
        return self.programs.describe(number)


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
    """One update in progress. Call `tick` a few times a second."""

    fabric: LiveFabric
    """The fabric that is updated."""
    programs: SwitchPrograms
    """The programs that switches hold."""
    target: Current
    """The new build."""
    agree: Callable[[Record], bool] = lambda _: True
    """Called before each step, and again until it returns True."""
    begun: Record | None = None
    """The progress of another controller whose move this continues."""
    all_or_none: bool = True
    """Whether it waits to begin until every switch is in sync."""
    settle: float = SETTLE
    """Seconds that packets in flight need before the next round."""
    patience: float = ROLLOUT_PATIENCE
    """Seconds after which a round that does not end is undone."""
    state: State = field(init=False, default="reading")
    """What the rollout does now."""
    round: int = field(init=False, default=BEGINNING)
    """The round that it is in."""
    reason: str = field(init=False, default="")
    """Why the move was undone; "" if it was not."""
    _before: Current = field(init=False)
    """The old build."""
    _round_programs: RoundPrograms = field(init=False)
    """The programs that switches hold between the builds."""
    _carries: frozenset[int] = field(init=False)
    """The switches that traffic was routed through at the beginning."""
    _amiss: frozenset[int] = field(init=False, default=frozenset())
    """The switches that did not hold their program at the beginning."""
    _out: frozenset[int] = field(init=False, default=frozenset())
    """The switches that the move goes without; they are read instead."""
    _rounds: Rounds = field(init=False)
    """Sends the rounds."""
    _undoes: bool = field(init=False, default=False)
    """Whether a round is being undone."""
    _since: float = field(init=False, default=0.0)
    """When the last switch was read, or the last step began."""
    _read_by_now: int = field(init=False, default=0)
    """How many switches have been read."""
    _rest: float = field(init=False, default=0.0)
    """When the last round was confirmed: since then packets leave the links."""
    _refused: float = field(init=False, default=inf)
    """Since when `agree` has not allowed the next step; inf while it does."""
    _mended: Callable[[], None] | None = field(init=False, default=None)
    """Called when all switches are read that are brought to other programs; None if none are."""

    def __post_init__(self) -> None:
        self._before, self._round_programs = self.fabric.current, RoundPrograms(self.programs)
        self._rounds = Rounds(self.fabric, self._answered, self._rests, MOVES_AT_ONCE)
        self._since = self.fabric.clock()
        self._carries = frozenset(filter(self.fabric.upkeep.carries, self._round_programs.node))
        connected = self.fabric.present
        self._amiss = frozenset(v for v in connected if self.fabric.state(v) in AMISS)
        if self.begun is not None:
            # Switches are at this round or next to it: reading evens that out.
            self.round = self.begun.round - (self.begun.direction == "back")
            self._round_programs.done = dict.fromkeys(self._round_programs.node, self.round)
        self._load()

    def _load(self) -> None:
        """Have the fabric hold what switches hold in this round."""
        old, programs = self.programs.update.old, self._round_programs
        between = Current(old.identity, programs.names, programs, old, self._before.proved)
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
            "waiting": len(self._ahead()) if self._rounds.busy else 0,
            "reason": self.reason,
        }

    @property
    def unwritten(self) -> float:
        """Seconds for which `agree` has not allowed the next step."""
        return max(self.fabric.clock() - self._refused, 0.0)

    def replan(self, programs: SwitchPrograms, mended: Callable[[], None]) -> None:
        """Go on by other programs between the two builds; only while the next step is `unwritten`.

        Each switch is read, and brought to the round of these that it holds of the others: this is
        no step of the move. There may be fewer rounds now. mended: called when all have been read.
        """
        before, after = self._round_programs, RoundPrograms(programs)
        # Going forth, the last round is one that is not done yet.
        most = programs.update.last - (self.state == "forth")
        less = max(self.round - most, 0)
        after.done = {v: max(done - less, BEGINNING) for v, done in before.done.items()}
        after.generation = before.generation
        self.programs, self._round_programs = programs, after
        self.round -= less
        self._rounds.forget()
        self._mended, self._since = mended, self.fabric.clock()
        self._load()

    def tick(self) -> None:
        """Time passes: take the next steps that are possible."""
        if self.over or not self._in_place():
            return
        passed = self.fabric.clock() - self._since
        if self.state == "reading":
            self._read(passed > self.patience)
        elif self.state == "forth":
            oldest = next(iter(self._rounds.sent.values()), self._since)
            self._forth(self.fabric.clock() - min(oldest, self._since) > self.patience)
        else:
            self._back(passed > BACK)

    # Going forth

    def _read(self, late: bool) -> None:
        """Begin once all switches are read that have to be, or time is up."""
        fabric, connected = self.fabric, self.fabric.present
        if self.all_or_none:
            read = fabric.complete or bool(fabric.errors)
        else:
            read = all(fabric.state(v) in ("in sync", *AMISS) for v in connected)
            read &= not self._missed()
        if not (read or late):
            done = len(fabric.in_sync)
            if done > self._read_by_now:
                self._read_by_now, self._since = done, fabric.clock()
            return
        self._round_programs.generation = {
            v: connected[v].generation for v in self._round_programs.node if v in connected
        }
        self._rest = fabric.clock()
        if self.begun is None and (fabric.complete or not self.all_or_none):
            self._out = frozenset(self._round_programs.node) - fabric.in_sync
            # Those that were amiss before, and not avoided, will not be: they are too many.
            new = self._out - self._amiss
            if amiss := [v for v in self._carrying(new) if fabric.state(v) in AMISS]:
                names = ", ".join(fabric.names[v] for v in amiss[:5])
                self._stop(f"{names} became amiss: ask again, traffic is led around it first")
                return
            self.state = "forth"
            self._next()
        elif fabric.complete and self.begun and self.begun.direction == "forth":
            self.state = "forth"
        else:
            self._cannot()

    def _missed(self) -> bool:
        """Whether a switch is away that traffic leads through: it may be about to connect."""
        return bool(self._carrying(self._round_programs.node.keys() - self.fabric.present))

    def _carrying(self, vertices: Iterable[int]) -> list[int]:
        """The switches among these that the move's tables lead traffic through."""
        old = len(self.programs.update.old.wiring.names)
        return sorted(v for v in self._carries.intersection(vertices) if v < old)

    def _cannot(self) -> None:
        """The move cannot begin after reading, or has to be undone."""
        fabric = self.fabric
        missing = fabric.missing()
        more = f" and {len(missing) - 5} more" if len(missing) > 5 else ""
        named = ", ".join(missing[:5]) + more
        first = next(iter(fabric.errors.items()), None)
        reason = f"{first[0]}: {first[1]}" if first else f"not in sync: {named}"
        if self.begun is None:
            self._stop(reason)
            return
        self.reason = "another controller undid it" if fabric.complete else reason
        self.state, self._since = "back", fabric.clock()

    def _forth(self, late: bool) -> None:
        """Go on with the next round, or undo them all where something has gone wrong."""
        if self.reason or late or self._gone():
            self.reason = self.reason or self._silent()
            self._rounds.stop()
            self.state = "back"
            self._since = self.fabric.clock()
            self._back(late=False)
        elif not self._rounds.busy and (left_out := self._ahead()):
            self.reason = (
                f"{self._round_programs.names[left_out[0]]} got nothing after an internal error"
            )
        elif not self._rounds.busy and self._rested():
            self._next()

    def _next(self) -> None:
        """Start the next round, if there is one and `agree` allows it."""
        if self.round == self.programs.update.last:
            self._finish()
        elif self._agreed(self.round + 1, "forth"):
            self._begin(self.round + 1)

    def _agreed(self, round: int, direction: Literal["forth", "back"]) -> bool:
        """Whether this step may be taken. While it may not, no switch is late."""
        record = Record(self._before.identity, self.target.identity, round, direction)
        agreed, now = self.agree(record), self.fabric.clock()
        self._refused = inf if agreed else min(self._refused, now)
        if not agreed:
            self._since = now
        return agreed

    def _in_place(self) -> bool:
        """Whether all switches have been read that are brought to other programs, or do not answer
        in time.
        """
        if self._mended is None:
            return True
        fabric = self.fabric
        left = (v for v in fabric.present if v not in self._out and v not in fabric.in_sync)
        late = fabric.clock() - self._since > self.patience
        if not late and any(fabric.state(v) not in AMISS for v in left):
            return False
        mended, self._mended = self._mended, None
        self._since = self._rest = fabric.clock()
        mended()
        return True

    def _begin(self, round: int) -> None:
        self.round, self._since = round, self.fabric.clock()
        rounds = self.programs.update.rounds
        self.fabric.tell(RoundStarted(self.target.identity, round + 1, rounds))
        self._rounds.send([self._messages(self._round_programs.node, round)])

    def _ahead(self) -> list[int]:
        """The switches that are not where this round leads."""
        done, undone = self._round_programs.done, self.round
        return [v for v, last in done.items() if (last == undone) == self._undoes]

    def _messages(self, vertices: Iterable[int], round: int) -> Messages:
        """What switches get that are to come to hold a round; who takes no part is read."""
        programs, fabric = self._round_programs, self.fabric
        for vertex in vertices:
            absent = self._undoes and vertex not in fabric.present
            out = absent or vertex in self._out
            parts = [] if out else programs.step(vertex, self._undoes)
            if parts:
                yield vertex, parts
                continue
            programs.done[vertex] = round
            if vertex in self._out and (switch := fabric.present.get(vertex)):
                switch.wait()

    def _answered(self, vertex: int, outcome: TransactionOutcome) -> None:
        """A switch that has given the bundle up gets it again; one that refuses ends the move."""
        if self._undoes:  # who refuses or leaves is reconciled when the old build is loaded
            self._round_programs.done[vertex] = self.round - 1
        elif outcome.committed:
            self._round_programs.done[vertex] = self.round
            self._since = self.fabric.clock()
        elif outcome.timed_out and self.state == "forth" and not self.reason:
            self._rounds.also(self._messages([vertex], self.round))
        else:
            self.reason = self.reason or self._words(vertex, outcome)
            self._rounds.stop()

    def _rests(self) -> None:
        """Note the time at which all have answered: packets get time to leave the links."""
        self._rest = self.fabric.clock()

    def _finish(self) -> None:
        self.state = "done"
        self.fabric.load(self.target)
        self.fabric.tell(MoveFinished(self.target.identity))

    # Coming back

    def _back(self, late: bool) -> None:
        if self._rounds.busy and not late:
            return  # outstanding changes have to end first, one way or the other
        if late or self.round == BEGINNING:
            self._stop(self.reason)
        elif self._agreed(self.round, "back"):
            self._undoes = True
            if again := self._ahead():
                self._since = self.fabric.clock()
                self._rounds.send([self._messages(again, self.round - 1)])
            elif self._rested():
                if self.round == 0:
                    self._stop(self.reason)
                else:
                    self.round -= 1

    def _stop(self, reason: str) -> None:
        """Keep the old build; every switch is read again and reconciled."""
        self.state, self.reason = "failed", reason
        self._rounds.forget()
        self.fabric.load(self._before, silent=True)
        self.fabric.tell(BuildKept(self._before.identity, reason))

    # Both

    def _gone(self) -> list[int]:
        """The switches that the update needs and that have left."""
        connected = self.fabric.present
        return [v for v in self._round_programs.node if v not in connected and v not in self._out]

    def _rested(self) -> bool:
        return self.fabric.clock() - self._rest >= self.settle

    def _silent(self) -> str:
        gone = [self._round_programs.names[v] for v in self._gone()]
        names = gone or [self._round_programs.names[v] for v in sorted(self._rounds.sent)]
        what = "left" if gone else "did not answer in time"
        return f"{', '.join(names[:5])} {what} in round {self.round + 1}"

    def _words(self, vertex: int, outcome: TransactionOutcome) -> str:
        name = self._round_programs.names[vertex]
        if outcome.lost or outcome.error is None:
            return f"{name} left in round {self.round + 1}"
        what = self._round_programs.describe(outcome.error.xid)
        words = outcome.error.words(self.fabric.error_names)
        return f"{name} refused round {self.round + 1}: {words} ({what})"
