"""Rollout of a build to a running fabric, round by round, and back after a refusal.

`controller.rollout.mover` makes a `Rollout` for each move and calls its `tick`. What a round sends
to each switch comes from `compilers.update`; `controller.switches.rounds` sends it. This is a state
machine without I/O:

- reading: every switch is read. The update begins if all hold their programs. Without
  `all_or_none` it leaves out those that do not: no traffic leads through them, and instead of the
  rounds' messages they are read and repaired after each round. An absent switch that traffic leads
  through is waited for.
- forth: each round is sent to all switches; the next follows when all have confirmed it and packets
  have had time to leave the links (`settle`).
- back: at the first refusal, lost switch or timeout the rounds are undone in reverse order, with
  the same pauses, and the old build stays. A switch that is away keeps its round, so before a
  second round is undone, those that are away and whose links are up are waited for: without a limit
  while half of the switches or more are, as management is away then, else for `patience`, and until
  traffic is led around them.
- waiting, as a part of forth or back: if the build that is left marks packets or writes
  intermediates into them, and the other one does not, the switches must not forget what that means
  while a switch goes on doing so that has lost its connection or refuses its rows, and whose links
  are up.

docs/how-to/move.md explains why no packet is lost either way.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from math import inf
from typing import Any, Literal

from compilers.update.programs import SwitchPrograms
from compilers.update.slots import BEGINNING
from controller.rollout.fabric_record import Record
from controller.rollout.round_programs import RoundPrograms
from controller.switches.conversation import ChangeOutcome
from controller.switches.current import Current
from controller.switches.events import BuildKept, MoveFinished, RoundStarted
from controller.switches.rounds import Messages, Rounds
from controller.switches.session import LiveFabric
from controller.switches.switch import AMISS
from inventory.problems import first_names

SETTLE = 0.05
"""Seconds between two rounds: longer than a packet stays on a link and in its queue."""
ROLLOUT_PATIENCE = 30.0
"""Most seconds without progress: until the next switch is read or confirms a round, and until a
switch confirms the round that it was sent."""
UNDO_PATIENCE = 120.0
"""Seconds after which undoing a round is given up and switches are read instead; longer than a
session waits for a silent switch."""
DETOUR_AFTER = 1.0
"""Seconds that a move waits for its record until its tables are led around new failures."""
MOVES_AT_ONCE = 256
"""Most switches that are sent a round and have not answered yet."""
MOST_NAMED = 5
"""Most switches that a reason names."""

State = Literal["reading", "forth", "back", "done", "failed"]
"""What a rollout does: the three states of the module's docstring, and two ends."""


@dataclass(slots=True)
class Rollout:
    """One update in progress. Call `tick` a few times a second."""

    fabric: LiveFabric
    """The fabric that is updated."""
    programs: SwitchPrograms
    """The programs that switches hold."""
    target: Current
    """The new build."""
    ensure_recorded: Callable[[Record], bool] = lambda _: True
    """Writes the progress to the fabric's record, so that another controller can go on. Called
    before each step, and again until it returns True."""
    inherited: Record | None = None
    """The record of another controller whose move this continues; None for a new move."""
    all_or_none: bool = True
    """Whether it begins only when every switch is in sync."""
    needs_most: bool = False
    """Whether it begins only while more than half of the switches of both builds are connected."""
    accepts_absent: bool = False
    """Whether it begins although traffic is routed through a switch that forwards and that no round
    can change."""
    settle: float = SETTLE
    """Seconds that packets in flight need before the next round."""
    patience: float = ROLLOUT_PATIENCE
    """Seconds after which a round that does not end is undone."""
    state: State = field(init=False, default="reading")
    """What the rollout does now."""
    round: int = field(init=False, default=BEGINNING)
    """The round that was sent last and is not undone; BEGINNING before the first."""
    reason: str = field(init=False, default="")
    """Why the move was undone; "" if it was not."""
    _before: Current = field(init=False)
    """The old build."""
    _round_programs: RoundPrograms = field(init=False)
    """The programs that switches hold between the builds."""
    _transit_switches: frozenset[int] = field(init=False)
    """The switches that traffic was routed through when the first round began, or that the new
    build routes traffic through."""
    _amiss_at_start: frozenset[int] = field(init=False, default=frozenset())
    """The switches that did not hold their program at the beginning."""
    _left_out: frozenset[int] = field(init=False, default=frozenset())
    """The switches that get no messages of the rounds: they are read and repaired instead."""
    _rounds: Rounds = field(init=False)
    """Sends the rounds."""
    _undoes: bool = field(init=False, default=False)
    """Whether a round is being undone."""
    _last_progress: float = field(init=False, default=0.0)
    """When a switch was last read or confirmed a round, or a step began, by the listening clock."""
    _switches_read: int = field(init=False, default=0)
    """How many switches were in sync at the last progress."""
    _round_end: float = field(init=False, default=0.0)
    """When all had answered the last round: since then packets leave the links."""
    has_detour: bool = field(init=False, default=False)
    """Whether it goes on by tables around something that has failed since it began."""
    _waits_since: float = field(init=False, default=inf)
    """Since when the next step has waited for its record or for switches; inf while it does not."""
    _awaited: list[int] = field(init=False, default_factory=list)
    """The switches that the next step waits for (`_has_to_await`)."""
    _latest_round: dict[int, int] = field(init=False, default_factory=dict)
    """Of each switch that is away while rounds are undone, the latest round that it may hold."""
    _away: list[int] = field(init=False, default_factory=list)
    """The switches that undoing waits for, as they may return (`_awaits_return`)."""
    _waits_for_return_until: float = field(init=False, default=inf)
    """When undoing goes on without them, by the listening clock; inf while it waits for none."""
    _may_hold_last: frozenset[int] = field(init=False, default=frozenset())
    """The switches that may have got the last round."""
    _on_replanned: Callable[[], None] | None = field(init=False, default=None)
    """Called when all switches hold the programs of `replan`; None while none are awaited."""

    def __post_init__(self) -> None:
        self._before, self._round_programs = self.fabric.current, RoundPrograms(self.programs)
        self._rounds = Rounds(self.fabric, self._take_answer, self._note_round_end, MOVES_AT_ONCE)
        self._last_progress = self.fabric.listening_clock()
        self._note_transit()
        connected = self.fabric.present
        self._amiss_at_start = frozenset(v for v in connected if self.fabric.state(v) in AMISS)
        if self.inherited is not None:
            # Switches hold this round or one next to it: reading brings all to this one.
            goes_back = self.inherited.direction == "back"
            self.round = self.inherited.round - 1 if goes_back else self.inherited.round
            self._round_programs.done = dict.fromkeys(self._round_programs.node, self.round)
            self._latest_round = dict.fromkeys(self._round_programs.node, self.inherited.round)
            if goes_back or self.round >= self.programs.update.last_round:
                self._may_hold_last = frozenset(self._round_programs.node)
        self._load()

    def _note_transit(self) -> None:
        """Note the switches that traffic is routed through, now or by the new build."""
        upkeep, update = self.fabric.upkeep, self.programs.update
        node_of = self._round_programs.node
        new_transit = upkeep.transit_switches(update.new)
        self._transit_switches = frozenset(
            vertex
            for vertex, node in node_of.items()
            if upkeep.has_transit(vertex) or int(update.nodes.new_vertex[node]) in new_transit
        )

    def _load(self) -> None:
        """Make the programs of this round those that the fabric's switches are to hold."""
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
            "waiting": len(self._unfinished()) if self._rounds.busy else 0,
            "reason": self.reason,
        }

    @property
    def seconds_waiting(self) -> float:
        """Seconds for which the next step has waited for its record, or for switches."""
        return max(self.fabric.clock() - self._waits_since, 0.0)

    @property
    def awaited(self) -> str:
        """The switches that the next step waits for, in words; "" if it does not wait for any."""
        awaited = self._awaited or self._away
        if not awaited:
            return ""
        names = [
            f"{self._round_programs.names[vertex]} ({self.fabric.state(vertex)})"
            for vertex in awaited
        ]
        return f"{first_names(names, MOST_NAMED)}, whose links are up"

    @property
    def last_step(self) -> Record:
        """The record of the last step that was taken, in the rounds of the present programs."""
        inherited = self.inherited
        goes_back = self._undoes or (inherited is not None and inherited.direction == "back")
        builds = self._before.identity, self.target.identity
        if goes_back:
            return Record(*builds, self.round + 1, "back")
        return Record(*builds, self.round, "forth")

    @property
    def waits(self) -> bool:
        """Whether the move waits between two rounds: for the first reading of all switches, or for
        the next step since `DETOUR_AFTER` seconds.
        """
        return not self.over and (self.state == "reading" or self.seconds_waiting >= DETOUR_AFTER)

    @property
    def leads_around_absent(self) -> bool:
        """Whether traffic is to be led around switches that are only disconnected while it waits.

        They may still forward, so before its limit the next step rather waits for them.
        """
        if self._away:
            return self.fabric.listening_clock() >= self._waits_for_return_until
        return self.state == "reading" or self.seconds_waiting >= self.patience

    def replan(self, programs: SwitchPrograms, on_replanned: Callable[[], None]) -> None:
        """Go on by other programs between the two builds; only while the move `waits`.

        Each switch is read, and brought to the same round of the new programs: this is no step of
        the move. Where the new programs have fewer rounds, all switches count as that many rounds
        back. A move that awaits switches waits before the same step of the new programs.

        Args:
            programs: the new programs.
            on_replanned: called when all switches hold them.
        """
        before, after = self._round_programs, RoundPrograms(programs)
        update, inherited = programs.update, self.inherited
        goes_back = self.state == "back" or (inherited and inherited.direction == "back")
        steps_left = 0 if goes_back else 1  # going forth, at least one round has to be left
        forgetting = update.forget_round(back=bool(goes_back))
        if self._awaited and forgetting is not None:
            rounds_back = self.round - (forgetting - steps_left)
        else:
            rounds_back = max(self.round - (update.last_round - steps_left), 0)
        after.done = {v: max(done - rounds_back, BEGINNING) for v, done in before.done.items()}
        after.generation_before = before.generation_before
        self.programs, self._round_programs, self.has_detour = programs, after, True
        self.round -= rounds_back
        self._latest_round = {v: last - rounds_back for v, last in self._latest_round.items()}
        if self.state == "reading":  # a switch that is drained now need not be waited for
            self._note_transit()
        self._rounds.forget()
        self._on_replanned, self._last_progress = on_replanned, self.fabric.listening_clock()
        self._load()

    def tick(self) -> None:
        """Take the next step, if it is possible; called a few times a second."""
        if self.over or not self._is_replanned():
            return
        # Switches are not late while the controller itself stood still.
        now = self.fabric.listening_clock()
        if self.state == "reading":
            self._begin_if_read(now - self._last_progress > self.patience)
        elif self.state == "forth":
            oldest = next(iter(self._rounds.sent.values()), self._last_progress)
            self._go_forth(now - min(oldest, self._last_progress) > self.patience)
        else:
            self._go_back(now - self._last_progress > UNDO_PATIENCE)

    # Going forth

    def _begin_if_read(self, late: bool) -> None:
        """Begin once all switches that have to be read are read, or time is up (`late`)."""
        fabric, connected = self.fabric, self.fabric.present
        if self.all_or_none:
            is_read = fabric.complete or bool(fabric.errors)
        else:
            are_read = all(fabric.state(v) in ("in sync", *AMISS) for v in connected)
            # A leader requests its role of switches that the move adds only now.
            have_role = not fabric.awaits_role(self._round_programs.by_datapath_id)
            is_read = are_read and have_role and not self._misses_transit()
        if not (is_read or late):
            switches_read = len(fabric.in_sync)
            if switches_read > self._switches_read:
                self._switches_read, self._last_progress = switches_read, fabric.listening_clock()
            return
        if self.needs_most and self._most_are_away():
            if late:
                self._stop("half of the switches or more are away")
            return
        self._round_programs.generation_before = {
            v: connected[v].generation for v in self._round_programs.node if v in connected
        }
        self._round_end = fabric.clock()
        if self.inherited is None and (fabric.complete or not self.all_or_none):
            self._left_out = frozenset(self._round_programs.node) - fabric.in_sync
            # Traffic was led around the switches that were amiss at the start, where that was
            # possible.
            left_out_since = self._transit_among(self._left_out - self._amiss_at_start)
            if amiss := [v for v in left_out_since if fabric.state(v) in AMISS]:
                names = ", ".join(fabric.names[v] for v in amiss[:MOST_NAMED])
                self._stop(f"{names} became amiss: ask again, traffic is led around it first")
                return
            if not self.accepts_absent and (forwarding := self._forwarding_unread()):
                names = first_names([fabric.names[v] for v in forwarding], MOST_NAMED)
                self._stop(
                    "traffic would be led through switches that forward and cannot be changed "
                    f"({names}): ask again; if traffic cannot be led around them, when they are in "
                    "sync, or when their links are down"
                )
                return
            self.state = "forth"
            self._start_next_round()
        elif fabric.complete and self.inherited and self.inherited.direction == "forth":
            self.state = "forth"
        else:
            self._give_up_beginning()

    def _most_are_away(self) -> bool:
        """Whether half of the switches that both builds have, or more, are not connected."""
        in_both = [v for v in self._round_programs.node if self._is_of_old_build(v)]
        connected = self.fabric.present.keys() & in_both
        return bool(in_both) and 2 * len(connected) <= len(in_both)

    def _misses_transit(self) -> bool:
        """Whether a switch is absent that traffic leads through: it may be about to connect."""
        return bool(self._transit_among(self._round_programs.node.keys() - self.fabric.present))

    def _forwarding_unread(self) -> list[int]:
        """The switches that get no rounds, although they forward and traffic leads through them."""
        fabric = self.fabric
        return [
            vertex
            for vertex in self._transit_among(self._left_out)
            if fabric.state(vertex) not in AMISS and fabric.upkeep.is_cabled(vertex)
        ]

    def _transit_among(self, vertices: Iterable[int]) -> list[int]:
        """The switches among these that the move's tables lead traffic through."""
        transit_switches = self._transit_switches.intersection(vertices)
        return sorted(filter(self._is_of_old_build, transit_switches))

    def _is_of_old_build(self, vertex: int) -> bool:
        """Whether a switch is of the old build: those that the move adds have later vertices."""
        return vertex < len(self.programs.update.old.wiring.names)

    def _give_up_beginning(self) -> None:
        """Stop a move that cannot begin after reading; undo one that another controller began."""
        fabric = self.fabric
        missing = fabric.missing()
        named = first_names(missing, MOST_NAMED)
        first_error = next((f"{name}: {text}" for name, text in fabric.errors.items()), None)
        reason = first_error or f"not in sync: {named}"
        if self.inherited is None:
            self._stop(reason)
            return
        self.reason = "another controller undid it" if fabric.complete else reason
        self.state, self._last_progress = "back", fabric.listening_clock()

    def _go_forth(self, late: bool) -> None:
        """Go on with the next round; undo all where a switch refused, left or is late."""
        if self.reason or late or self._lost_switches():
            self.reason = self.reason or self._silence_reason()
            self._rounds.stop()
            self.state = "back"
            self._last_progress = self.fabric.listening_clock()
            self._go_back(late=False)
        elif not self._rounds.busy and (unfinished := self._unfinished()):
            self.reason = (
                f"{self._round_programs.names[unfinished[0]]} got nothing after an internal error"
            )
        elif not self._rounds.busy and self._is_settled():
            self._start_next_round()

    def _start_next_round(self) -> None:
        """Start the next round once its record is written; finish after the last one."""
        update = self.programs.update
        forgets = self.round + 1 == update.forget_round()
        if self._has_to_await(self._left_out if forgets else ()):
            return
        if self.round == update.last_round:
            self._finish()
        elif self._may_step(self.round + 1, "forth"):
            self._send_round(self.round + 1)

    def _has_to_await(self, vertices: Iterable[int]) -> bool:
        """Whether the next step waits for some of these switches; while it does, none is late.

        They may write into packets what is forgotten in that step. It waits for those that have
        lost their connection or refuse their rows, but forward all the same.
        """
        fabric = self.fabric
        self._awaited = [
            vertex
            for vertex in sorted(vertices)
            if self._is_of_old_build(vertex)
            and fabric.state(vertex) != "in sync"
            and fabric.upkeep.is_cabled(vertex)
        ]
        if self._awaited:
            self._last_progress = fabric.listening_clock()
            self._waits_since = min(self._waits_since, fabric.clock())
        return bool(self._awaited)

    def _may_step(self, round: int, direction: Literal["forth", "back"]) -> bool:
        """Whether this step may be taken; while it may not, no switch counts as late."""
        record = Record(self._before.identity, self.target.identity, round, direction)
        may_step, now = self.ensure_recorded(record), self.fabric.clock()
        self._waits_since = inf if may_step else min(self._waits_since, now)
        if not may_step:
            self._last_progress = self.fabric.listening_clock()
        return may_step

    def _is_replanned(self) -> bool:
        """Whether no switch is awaited after `replan`: each holds the new programs, or is late."""
        if self._on_replanned is None:
            return True
        fabric = self.fabric
        unread = (v for v in fabric.present if v not in self._left_out and v not in fabric.in_sync)
        late = fabric.listening_clock() - self._last_progress > self.patience
        if not late and any(fabric.state(v) not in AMISS for v in unread):
            return False
        on_replanned, self._on_replanned = self._on_replanned, None
        if self.state != "reading":  # else the same reading is waited for
            self._last_progress = fabric.listening_clock()
        self._round_end = fabric.clock()
        on_replanned()
        return True

    def _send_round(self, round: int) -> None:
        """Send a round to all switches."""
        self.round, self._latest_round = round, {}
        self._last_progress = self.fabric.listening_clock()
        rounds = self.programs.update.rounds
        if round == self.programs.update.last_round:
            without_rows = self._left_out - self.fabric.in_sync
            self._may_hold_last = frozenset(self.fabric.present) - without_rows
        self.fabric.tell(RoundStarted(self.target.identity, round + 1, rounds))
        self._rounds.send([self._round_messages(self._round_programs.node, round)])

    def _unfinished(self) -> list[int]:
        """The switches that have not done the current round, or have it still to undo."""
        done = self._round_programs.done
        if self._undoes:
            return [vertex for vertex, last in done.items() if last == self.round]
        return [vertex for vertex, last in done.items() if last != self.round]

    def _round_messages(self, vertices: Iterable[int], round: int) -> Messages:
        """The messages after which switches hold a round; those that are left out are read."""
        programs, fabric = self._round_programs, self.fabric
        for vertex in vertices:
            absent = self._undoes and vertex not in fabric.present
            gets_none = absent or vertex in self._left_out
            parts = [] if gets_none else programs.step(vertex, self._undoes)
            if parts:
                yield vertex, parts
                continue
            programs.done[vertex] = round
            if vertex in self._left_out and (switch := fabric.present.get(vertex)):
                switch.request_reading()

    def _take_answer(self, vertex: int, outcome: ChangeOutcome) -> None:
        """Take a switch's answer to its messages of a round.

        One whose bundle has timed out gets it again; one that refuses it, or leaves, ends the move.
        """
        if self._undoes:  # a switch that refuses is repaired when the old build is loaded
            self._round_programs.done[vertex] = self.round - 1
        elif outcome.committed:
            self._round_programs.done[vertex] = self.round
            self._last_progress = self.fabric.listening_clock()
        elif outcome.timed_out and self.state == "forth" and not self.reason:
            self._rounds.add_to_round(self._round_messages([vertex], self.round))
        else:
            self.reason = self.reason or self._failure_reason(vertex, outcome)
            self._rounds.stop()

    def _note_round_end(self) -> None:
        """Note the time at which all have answered a round."""
        self._round_end = self.fabric.clock()

    def _finish(self) -> None:
        """Make the new build the fabric's."""
        self.state = "done"
        self.fabric.load(self.target)
        self.fabric.tell(MoveFinished(self.target.identity))

    # Going back

    def _go_back(self, late: bool) -> None:
        """Undo the current round, or stop where none is left, or time is up (`late`)."""
        if self._rounds.busy and not late:
            return  # first the changes under way have to be confirmed or refused
        if late or self.round == BEGINNING:
            self._stop(self.reason)
        elif (
            not self._awaits_way_back()
            and not self._awaits_return()
            and self._may_step(self.round, "back")
        ):
            self._undoes = True
            if unfinished := self._unfinished():
                self._last_progress = self.fabric.listening_clock()
                self._rounds.send([self._round_messages(unfinished, self.round - 1)])
            elif self._is_settled():
                if self.round == 0:
                    self._stop(self.reason)
                else:
                    self.round -= 1

    def _awaits_return(self) -> bool:
        """Whether undoing this round waits for switches that are away and forward all the same.

        They may hold a later round. Else they would be two rounds or more from the others, and
        packets would be lost. One that is back is at the others' round only once it has been read.
        The limit holds for all switches together. After it, only those are awaited that traffic
        cannot be led around.
        """
        fabric, now, lost = self.fabric, self.fabric.listening_clock(), self._lost_switches()
        read = {v for v in fabric.present if fabric.state(v) in ("in sync", *AMISS)}
        unread = self._latest_round.keys() - read - self._left_out
        latest = self._latest_round
        self._latest_round = {v: latest.get(v, self.round) for v in sorted({*lost, *unread})}
        away = [
            vertex
            for vertex, round in self._latest_round.items()
            if round > self.round
            and self._is_of_old_build(vertex)
            and fabric.upkeep.is_cabled(vertex)
        ]
        if not away:
            self._waits_for_return_until = inf
        elif 2 * len(lost) >= len(self._round_programs.node.keys() - self._left_out):
            self._waits_for_return_until = now + self.patience
        else:
            self._waits_for_return_until = min(self._waits_for_return_until, now + self.patience)
        has_transit = any(map(fabric.upkeep.has_transit, away))
        has_to_wait = bool(away) and (has_transit or now < self._waits_for_return_until)
        self._away = away if has_to_wait else []
        if has_to_wait:
            self._last_progress = now
            self._waits_since = min(self._waits_since, fabric.clock())
        return has_to_wait

    def _awaits_way_back(self) -> bool:
        """Whether undoing this round waits for switches that may hold the last one."""
        forgets = self.round == self.programs.update.forget_round(back=True)
        return self._has_to_await(self._may_hold_last if forgets else ())

    def _stop(self, reason: str) -> None:
        """Keep the old build; every switch is read again and reconciled."""
        self.state, self.reason = "failed", reason
        self._rounds.forget()
        self.fabric.load(self._before, silent=True)
        self.fabric.tell(BuildKept(self._before.identity, reason))

    # In both directions

    def _lost_switches(self) -> list[int]:
        """The switches that take part in the rounds and are not connected any more."""
        left_out, connected = self._left_out, self.fabric.present
        return [v for v in self._round_programs.node if v not in connected and v not in left_out]

    def _is_settled(self) -> bool:
        """Whether packets have had time to leave the links since the last round."""
        return self.fabric.clock() - self._round_end >= self.settle

    def _silence_reason(self) -> str:
        """Why a round has not ended: switches have left, or do not answer."""
        lost = [self._round_programs.names[v] for v in self._lost_switches()]
        names = lost or [self._round_programs.names[v] for v in sorted(self._rounds.sent)]
        fault = "left" if lost else "did not answer in time"
        return f"{', '.join(names[:MOST_NAMED])} {fault} in round {self.round + 1}"

    def _failure_reason(self, vertex: int, outcome: ChangeOutcome) -> str:
        """Why a switch did not do a round: it has left, or refused."""
        name = self._round_programs.names[vertex]
        if outcome.lost or outcome.error is None:
            return f"{name} left in round {self.round + 1}"
        entry = self._round_programs.describe(outcome.error.xid)
        error = outcome.error.words(self.fabric.error_names)
        return f"{name} refused round {self.round + 1}: {error} ({entry})"
