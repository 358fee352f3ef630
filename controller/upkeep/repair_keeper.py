"""The keeper of a running fabric: repairs failures, and reports miswires.

It is the upkeep of a `LiveFabric`: a switch that connects gets the tables that hold now. One change
of tables is computed and sent at a time, round by round: no mixture of a round loops or drops
packets that the old tables delivered. Events in the meantime are handled together after it. A
change of many rows is computed in the background. The keeper pauses while a build is rolled out;
if that stops halfway, it says how both builds avoid what has failed (`Detour`). No I/O.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from concurrent.futures import Future
from dataclasses import dataclass, field, replace
from functools import partial
from math import inf
from time import perf_counter, time
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from compilers.routing.link_repair import Intact, Repaired, avoided_links, repaired
from compilers.tables.build import Build
from compilers.targets.openflow.encoder import Encoder, FlowProgram
from compilers.targets.openflow.profiles import Profile
from compilers.targets.openflow.protocol import PORT_STATS, Multipart
from compilers.update.repair_messages import Round, repair_messages
from compilers.update.repair_rounds import RepairRounds
from compilers.wiring.shared_risk import links_and_switches, resolve_name
from controller.openflow.multipart import ports_wanted, records
from controller.settings import Duties
from controller.switches.connections.sending import SendPriority
from controller.switches.conversation import ChangeOutcome
from controller.switches.current import Current, Upkeep
from controller.switches.events import Event, TablesRepaired
from controller.switches.reconcile import SwitchContent
from controller.switches.rounds import Messages, Rounds
from controller.switches.session import LiveFabric
from controller.switches.switch import AMISS
from controller.upkeep.background import Backoff, Start, at_once
from controller.upkeep.held_routes import Changes, RouteReader, held_instead
from controller.upkeep.link_silence import LinkSilence
from controller.upkeep.link_state import Links, requests_of
from inventory.problems import InputError, did_you_mean

ROWS_AT_ONCE = 20_000
"""Rows that a repair may change if the loop that hears switches is to wait for it."""
ROUND_PATIENCE = 5.0
"""Seconds that a round waits for its slowest switch if something has failed."""


@dataclass(frozen=True, slots=True, eq=False)
class Failures:
    """What traffic is to be routed around."""

    dead: NDArray[np.bool_]
    """bool[S, K], whether a link is dead."""
    drained: NDArray[np.bool_]
    """bool[S], whether a switch is drained."""

    @classmethod
    def of(cls, links: Links) -> Failures:
        """The failures at the last look at the links."""
        return cls(links.dead, links.drained)

    def __bool__(self) -> bool:
        """Whether there are any."""
        return bool(self.dead.any() or self.drained.any())

    def rows(self, intact: Intact) -> int:
        """About how many rows lead over these links and through these switches."""
        far = intact.wiring.far
        avoided = np.count_nonzero(avoided_links(far, self.dead, self.drained))
        return int(avoided * len(far) // far.shape[1])

    def alone(self, intact: Intact) -> set[int]:
        """The switches with no link left that leads on, of those that pass packets on or have
        hosts.
        """
        linked = intact.wiring.far >= 0
        live = linked & ~avoided_links(intact.wiring.far, self.dead, self.drained)
        needs_one = linked.any(axis=1) & (intact.endpoints | ~self.drained)
        return {*np.flatnonzero(needs_one & ~live.any(axis=1)).tolist()}

    def around(self, intact: Intact) -> Repaired:
        """The tables without them."""
        return repaired(intact, self.dead, self.drained)


class TableRepair(NamedTuple):
    """The change from one repair of a build to another."""

    tables: Repaired
    """The tables that route around the failures."""
    rounds: list[Round]
    """The messages, for switches that hold `programs` with the numbers of `generations`."""
    programs: Encoder
    """The programs of the repaired tables."""
    generations: NDArray[np.int64]
    """int64[S], the generation of class and group numbers at each switch."""
    report: Callable[..., Event]
    """Gives the event, by the seconds that the repair took."""


def _repair(
    failures: Failures,
    intact: Intact,
    before: Repaired,
    programs: Encoder,
    generations: NDArray[np.int64],
) -> TableRepair:
    """Compute the change. Arguments are read only.

    Args:
        failures: what traffic is to be routed around.
        intact: the tables without failures.
        before: the tables that are in force.
        programs: of these tables.
        generations: as of `TableRepair`.
    """
    began = perf_counter()
    tables = failures.around(intact)
    report = _report(failures, tables, perf_counter() - began)
    change = RepairRounds.between(before, tables)
    rounds = repair_messages(programs, tables.tables, change, generations)
    return TableRepair(tables, rounds, programs, generations, report)


def _report(failures: Failures, tables: Repaired, computed: float) -> Callable[..., Event]:
    """Gives the event that these tables are in force, by the seconds that this took."""
    return partial(
        TablesRepaired,
        dead_links=int(np.count_nonzero(failures.dead)) // 2,
        drained_switches=int(np.count_nonzero(failures.drained)),
        rows=len(tables.rows),
        classes=len(tables.classes),
        switches=len(tables.switches),
        cut_off_pairs=tables.cut_off,
        computed=computed,
    )


class Detour(NamedTuple):
    """Both builds of a move that has stopped between them, around what has failed since."""

    old: Build
    """The build that it left, with repaired tables."""
    new: Build
    """The build that it leads to, with repaired tables."""
    repair: Repaired
    """The tables of the old build."""
    report: Callable[..., Event]
    """Gives the event, by the seconds that the repair took."""


def _detour(
    failures: Failures, intact: Intact, old: Build, failures_then: Failures, new: Build
) -> Detour:
    """Compute the detour of a move. Arguments are read only.

    failures_then: what has failed, by the links and switches of the new build.
    """
    began = perf_counter()
    repair = failures.around(intact)
    after = failures_then.around(Intact.of(new)) if failures_then else None
    return Detour(
        replace(old, tables=repair.tables),
        replace(new, tables=after.tables) if after else new,
        repair,
        _report(failures, repair, perf_counter() - began),
    )


@dataclass(slots=True)
class _Kept:
    """A build under upkeep: its state before failures, and the current one."""

    build: Build
    """The build without failures."""
    programs: Encoder
    """The programs that switches hold."""
    intact: Intact
    """The tables without failures, prepared for repairs."""
    repair: Repaired
    """The tables that are in force."""
    links: Links
    """The state of each link."""
    backoff: Backoff
    """The waits between failed computations."""
    computing: Future[TableRepair] | None = None
    """The repair under computation; None without one."""
    stale: bool = False
    """Whether something has failed since the computation began."""
    since: float = 0.0
    """When the first failure was seen that the tables do not follow yet."""
    report: Callable[..., Event] | None = None
    """Gives the event of the repair under way."""
    urgent: bool = False
    """Whether something has failed that no change of tables follows yet."""
    is_change_urgent: bool = False
    """Whether the change under way follows a failure."""
    waits: float = -inf
    """How long a change that nothing urges waits for switches that are being read."""
    patient: bool = True
    """Whether it also waits for switches that are slow, or have left and do not count as gone."""
    refusing: set[int] = field(default_factory=set)
    """The switches for whose refusal rounds were ended since a change was in place."""
    fresh: set[int] = field(default_factory=set)
    """The switches that have not been in sync since they connected, or the build was loaded."""
    held: dict[int, Changes] = field(default_factory=dict)
    """The routes that switches hold instead of the routes of their programs, by vertex."""
    held_until: float = inf
    """How long these switches keep them while others have yet to be read."""
    readers: dict[tuple[Profile, int], RouteReader] = field(default_factory=dict)
    """The readers of routes by what switches can do and the generation of their numbers."""

    @property
    def hurries(self) -> bool:
        """Whether the change under way, or the next one, follows a failure."""
        return self.urgent or self.is_change_urgent


class Keeper(Upkeep):
    """The keeper of a fabric. Create it before switches connect.

    Args:
        fabric: whose tables it repairs.
        duties: what it does.
        start: starts long computations.

    Attributes:
        rounds: the change of tables that is being sent.
        repairs: how many changes were computed.
    """

    _kept: _Kept
    """The build under upkeep."""

    def __init__(
        self, fabric: LiveFabric, duties: Duties | None = None, start: Start = at_once
    ) -> None:
        self.fabric, self.duties, self._start = fabric, duties or Duties(), start
        self._now = fabric.heard
        self.rounds = Rounds(fabric, self._answered, self._finished)
        self._postponed: set[int] = set()
        """The switches that are read once the change under way has ended."""
        self.repairs, self._expects = 0, False
        """How many changes were computed; and whether switches may connect."""
        self.repair_seconds: float | None = None
        """Seconds of the last repair, until all switches held its tables; None before any."""
        fabric.watched_by(self)

    # For the status and the status page

    @property
    def dead(self) -> NDArray[np.bool_]:
        """bool[S, K]: links that traffic is routed around."""
        return self._kept.links.dead

    @property
    def drained(self) -> NDArray[np.bool_]:
        """bool[S]: switches that traffic is routed around."""
        return self._kept.links.drained

    def carries(self, vertex: int) -> bool:
        """Whether traffic is routed through a switch."""
        kept = self._watched(vertex)
        return kept is None or not kept.links.drained[vertex]

    @property
    def build(self) -> Build:
        """The build with its current tables, repaired."""
        return self._kept.programs.build

    @property
    def is_settled(self) -> bool:
        """Whether no change of tables is under way, and no switch holds routes of one that was."""
        kept = self._active()
        if kept is None:
            return True
        return not (self._changing(kept) or kept.held or self._unread(kept, patient=False))

    @property
    def change(self) -> int | None:
        """The number of the last change of tables; None while one, or a move, is under way."""
        return self.rounds.number if self._active() and not self.rounds.busy else None

    def status(self) -> dict[str, Any]:
        """Failures and miswires, for the status file."""
        kept = self._kept
        return {
            **kept.links.status(),
            "repaired_switches": len(kept.repair.switches),
            "cut_off_pairs": kept.repair.cut_off,
            "repairs": self.repairs,
            "repair_seconds": self.repair_seconds,
            "repairing": self._changing(kept) or bool(kept.held) or kept.stale,
            "repair_failure": kept.backoff.status(),
        }

    def foresee(self, build: Build) -> Build:
        """Another build with the tables it will have once loaded: repaired, if some of what is dead
        or drained is in it, too.
        """
        failures = Failures.of(self._links_of(build, self._kept))
        if not self.duties.repair or not failures:
            return build
        return replace(build, tables=failures.around(Intact.of(build)).tables)

    def _links_of(self, build: Build, before: _Kept | None) -> Links:
        """What is known of the links and switches of a build."""
        if before and _same_links(before, build):
            return before.links
        links = Links(build.wiring, self.duties, build.hardware)
        if before:
            known = before.links.as_record(self._now(), time(), build.wiring)
            links.take_over(known, self._now(), time())
        return links

    # While a move has stopped

    def detour(self, to: Build) -> Callable[[], Detour] | None:
        """What computes a detour of the move that has stopped on its way to a build; None where
        nothing has failed since. Then `follow` or `missed` has to be called.

        Discovery rests in a move: links are judged by their ports, switches by what was read.
        """
        kept = self._kept
        kept.links.return_switches()
        self._react(kept)
        if not kept.stale or not kept.backoff.over:
            return None
        kept.stale, kept.urgent, kept.since = False, False, self.fabric.clock()
        failures_then = Failures.of(self._links_of(to, kept))
        return partial(_detour, Failures.of(kept.links), kept.intact, kept.build, failures_then, to)

    def follow(self, detour: Detour) -> None:
        """Have the programs of the build that the move left avoid what has failed, as switches come
        to do.
        """
        kept = self._kept
        kept.backoff.succeeded()
        self.repairs += 1
        kept.repair, kept.report = detour.repair, detour.report
        kept.programs.set_tables(detour.repair.tables)

    def followed(self) -> None:
        """All switches that answer follow the detour."""
        self._tell_repaired(self._kept)

    def missed(self, error: Exception | None = None) -> bool:
        """The detour was not taken: it could not be computed, or the move went on meanwhile. What
        has failed is still to be avoided. Whether the error is news.
        """
        self._kept.stale = self._kept.urgent = True
        return error is not None and self._kept.backoff.failed(error)

    def drain(
        self, name: str, ends: bool = False, breathe: Callable[[], None] = lambda: None
    ) -> dict[str, Any]:
        """Route around a node, a link `A-B` or what shares a risk, such as `module:A/0`, until
        this is asked to end; returns what is drained by request, and the pairs without a path.

        breathe: called while many rows are computed, so that other work goes on.

        Raises:
            InputError: there is no such thing, or it is not drained, or pairs would have no path.
        """
        kept = self._active()
        if kept is None or not self.duties.repair:
            raise InputError.of("a controller that repairs its build, and no move", "another")
        links, before = kept.links, kept.links.requested
        requested = dict(before)
        if ends:
            if name not in requested:
                todo = did_you_mean(name, requested)
                raise InputError.of("what is drained by request", name, todo)
            del requested[name]
        else:
            requested[name] = resolve_name(kept.build.wiring, kept.build.hardware, name)
            dead, drained = links_and_switches(kept.build.wiring.far, [requested[name]])
            failures = Failures(links.dead | dead, links.drained | drained)
            alone = failures.alone(kept.intact) - Failures.of(links).alone(kept.intact)
            is_large = failures.rows(kept.intact) > ROWS_AT_ONCE
            start = self._start if is_large else at_once
            repair = start(partial(failures.around, kept.intact))
            while not repair.done():
                breathe()
            if self._active() is not kept or links.requested is not before:
                raise InputError.of("no other change meanwhile", "one; ask again", key=name)
            pairs_cut_off = repair.result().cut_off
            if alone or pairs_cut_off > kept.repair.cut_off:
                given = f"{pairs_cut_off} lost"
                if alone:
                    given = f"{self.fabric.names[min(alone)]} without a link"
                raise InputError.of("a path for every pair meanwhile", given, key=name)
        links.drain(requested)
        self._react(kept)
        return {"asked": [*requested], "cut_off_pairs": kept.repair.cut_off}

    # What is known, for the next process

    def known(self) -> dict[str, Any]:
        """What another process has to know of links and switches, as JSON."""
        return self._kept.links.as_record(self._now(), time())

    def take_over(self, record: dict[str, Any]) -> None:
        """Begin with what another process has known; call it before switches connect."""
        self._kept.links.take_over(record, self._now(), time())
        self._repaired_at_once(self._kept)

    def expect(self) -> None:
        """Switches may connect from now on; those that do not are gone."""
        self._expects = True
        self._kept.links.expect(self._now())

    def _repaired_at_once(self, kept: _Kept) -> None:
        """Have the programs avoid what is dead, before switches are read."""
        failures = Failures.of(kept.links)
        if self.duties.repair and failures:
            kept.repair = failures.around(kept.intact)
            kept.programs.set_tables(kept.repair.tables)

    # Called by the fabric

    def adopt(self, current: Current) -> Current:
        """A build is loaded; programs that are not the compiled ones are left to their owner."""
        self.rounds.forget()
        self._postponed.clear()  # all switches are read
        build, programs = current.build, current.programs
        before: _Kept | None = getattr(self, "_kept", None)  # None: it is the first one
        is_ours = before is not None and programs is before.programs
        if before is not None:
            before.held.clear()
            before.fresh.update(range(before.build.tables.switches))
        if is_ours or build is None or not isinstance(programs, Encoder):
            return current
        links = self._links_of(build, before)
        if before and links is not before.links and self._expects:
            links.expect(self._now())
        intact = Intact.of(build)
        self._kept = kept = _Kept(
            build=build,
            programs=programs.with_tables(build.tables, self.duties.discover),
            intact=intact,
            repair=repaired(intact, np.zeros(build.wiring.far.shape, np.bool_)),
            links=links,
            backoff=Backoff(self.fabric.clock),
            fresh={*range(build.tables.switches)},
        )
        self._repaired_at_once(kept)
        return replace(current, programs=kept.programs)

    def _active(self) -> _Kept | None:
        """The build under upkeep, unless another module controls the programs now."""
        kept = self._kept
        return kept if self.fabric.current.programs is kept.programs else None

    def _watched(self, vertex: int) -> _Kept | None:
        """The build under upkeep if this is one of its switches, whoever controls the programs."""
        kept = self._kept
        is_loaded = self.fabric.identity == kept.build.identity
        return kept if is_loaded and vertex < kept.build.tables.switches else None

    def described(self, vertex: int, ports: bytes) -> None:
        """A switch has described its ports, before its rows are read."""
        if kept := self._watched(vertex):
            kept.links.described(vertex, ports, self._now())
            if kept.links.links_changed:  # else the next tick is soon enough
                self._react(kept)

    def program_read(self, vertex: int, is_held: bool) -> None:
        """A switch was read to hold its program, or is known not to."""
        if kept := self._watched(vertex):
            if is_held:
                kept.fresh.discard(vertex)
                kept.held.pop(vertex, None)
                kept.links.program_held(vertex)
            else:
                kept.links.program_lost(vertex, self._now())

    def arrived(self, vertex: int) -> None:
        """A switch has connected; its ports are not known yet."""
        if kept := self._watched(vertex):
            kept.fresh.add(vertex)
            kept.links.connected(vertex, self._now())

    def postpones(self, vertex: int, program: FlowProgram, held: SwitchContent) -> bool:
        """Whether a switch is left with what it holds: no route changes on its own between rounds,
        or before the other switches of a change that an earlier process has begun are read.
        """
        kept = self._active()
        if kept is None or not self.duties.repair or not held.names(kept.build.identity):
            return False
        if self.rounds.busy:
            self._postponed.add(vertex)
            return True
        profile = kept.programs.profile(vertex)
        if vertex not in kept.fresh or profile.single:
            return False
        generation = self.fabric.present[vertex].generation
        reader = kept.readers.get((profile, generation))
        if reader is None:
            reader = RouteReader.of(kept.programs, profile, generation)
            kept.readers[profile, generation] = reader
        changes = reader.changes(program, held)
        if not changes:
            return False
        if not kept.held:
            kept.held_until = self._now() + self._patience
        kept.held[vertex] = changes
        return True

    def left(self, vertex: int) -> None:
        """A switch has left."""
        if kept := self._watched(vertex):
            kept.held.pop(vertex, None)
            kept.links.left(vertex, self._now())
            if self.rounds.busy and not kept.hurries and kept is self._active():
                self._interrupt(kept)

    def _interrupt(self, kept: _Kept) -> None:
        """End the rounds of a change that nothing urges, as a switch has refused its part, or has
        left and may not have changed: all are read, and the change goes on from what they hold once
        that one is back or counts as gone.
        """
        self.rounds.stop()
        kept.report, kept.stale = None, True
        self._postpone(kept)
        kept.fresh.update(range(kept.build.tables.switches))
        self._postponed.update(self.fabric.present)

    def port_status(self, vertex: int, message: bytes) -> None:
        """A switch reports a change of a port."""
        if kept := self._watched(vertex):
            kept.links.port_status(vertex, message, self._now())
            self._react(kept)

    def packet_in(self, vertex: int, message: bytes) -> None:
        """A switch sends a packet: one of discovery, perhaps."""
        kept = self._watched(vertex)
        if kept and kept.links.discovery:
            kept.links.discovery.received(vertex, message, self._now())

    def answered(self, vertex: int, turn: int) -> None:
        """A switch has answered the echo request after the frames of this turn of discovery."""
        kept = self._watched(vertex)
        discovery = kept.links.discovery if kept else None
        if discovery is None:
            return
        discovery.answered(vertex, turn)
        for direction, far, port in discovery.to_read():
            answer = partial(_count, discovery.silence, direction)
            if switch := self.fabric.present.get(far):
                switch.talk.ask(Multipart.PORT_STATS, ports_wanted(port), answer)

    def tick(self) -> None:
        """Time passes."""
        kept = self._active()
        if kept is None:
            return
        self.rounds.tick()
        discovery = kept.links.discovery
        for vertex, frames in discovery.due(self._now()) if discovery else ():
            if switch := self.fabric.present.get(vertex):
                switch.talk.send(SendPriority.URGENT, frames)
        kept.links.evaluate(self._now())
        self._react(kept)

    def _changing(self, kept: _Kept) -> bool:
        """Whether a change of tables is being computed or sent."""
        return self.rounds.busy or kept.computing is not None

    # Reactions

    def _react(self, kept: _Kept) -> None:
        """React to the links: report their events, compute other tables, and send what has been
        computed. While the fabric is being moved, only events are reported.
        """
        before = Failures.of(kept.links)
        has_changed, events = kept.links.update(self._now())
        for event in events:
            self.fabric.tell(event)
        kept.stale |= has_changed and self.duties.repair
        if has_changed:
            # A drain does not delay the repair of what has failed before it.
            kept.urgent |= _loses_packets(kept, before)
            self._postpone(kept)
        if not self._active():
            return
        if kept.held and not self._changing(kept):
            self._take_held(kept)
        is_due = kept.stale and (has_changed or kept.backoff.over)
        if is_due and not self._changing(kept) and not self._waits(kept):
            self._compute(kept)
        change = self._computed(kept)
        if change is not None:
            # The routes that these hold were compared with the tables before the change.
            self._postponed.update(kept.held)
            kept.held.clear()
            self._hurry(kept)
            self.rounds.send(map(self._messages, change.rounds))

    @property
    def _patience(self) -> float:
        """Seconds that a change which nothing urges waits for switches, at most: one that is
        missing counts as gone before.
        """
        return max(self.duties.patience, self.duties.arrival) + ROUND_PATIENCE

    def _postpone(self, kept: _Kept) -> None:
        """Have the next change wait until all switches are settled, unless it is urgent."""
        kept.waits = -inf if kept.urgent else self._now() + self._patience
        kept.patient = True
        self._hurry(kept)

    def _hurry(self, kept: _Kept) -> None:
        """Have the rounds go on without slow switches if something has failed. Else they wait until
        such a switch answers, or is cut off.
        """
        self.rounds.patience = ROUND_PATIENCE if kept.hurries else inf
        if kept.hurries:
            self.rounds.tick()

    def _waits(self, kept: _Kept) -> bool:
        """Whether the next change has to wait for switches."""
        is_patient = self._now() < kept.waits
        return bool(kept.held) or (is_patient and self._unread(kept, kept.patient))

    def _unread(self, kept: _Kept, patient: bool) -> bool:
        """Whether a switch is being read, those that hold other routes aside. Only if `patient`, a
        slow one counts, and one that is not connected and does not count as gone.
        """
        for vertex in set(kept.programs.by_datapath_id.values()) - kept.held.keys():
            switch = self.fabric.present.get(vertex)
            if switch is None:
                is_awaited = patient and not kept.links.drained[vertex]
            else:
                is_settled = switch.state in ("in sync", *AMISS)
                is_awaited = not is_settled and (patient or not switch.connection.is_slow)
            if is_awaited:
                return True
        return False

    def _take_held(self, kept: _Kept) -> None:
        """Begin with the routes that switches were read to hold, once all are read or time is up:
        they change in rounds from there. If a link is dead, neither absent nor slow ones are waited
        for.
        """
        links, far = kept.links, kept.build.wiring.far
        requested, _ = links_and_switches(far, links.requested.values())
        broken = bool((links.dead & ~requested).any())
        waits = not kept.urgent and self._now() < kept.held_until
        if waits and self._unread(kept, patient=not broken):
            return
        kept.repair = held_instead(kept.intact, kept.repair, kept.held)
        kept.programs.set_tables(kept.repair.tables)
        chosen, kept.held = [*kept.held], {}
        kept.stale, kept.patient = True, False
        kept.waits = -inf if kept.urgent else self._now() + ROUND_PATIENCE
        for vertex in chosen:
            kept.fresh.discard(vertex)
            if switch := self.fabric.present.get(vertex):
                switch.wait()

    def _compute(self, kept: _Kept) -> None:
        """Compute other tables, at once if these are few rows."""
        failures = Failures.of(kept.links)
        is_large = max(failures.rows(kept.intact), len(kept.repair.rows)) > ROWS_AT_ONCE
        work = partial(
            _repair,
            failures,
            kept.intact,
            kept.repair,
            kept.programs.as_now(),
            self._generations(self.fabric.in_sync),
        )
        kept.stale, kept.since = False, self.fabric.clock()
        kept.is_change_urgent, kept.urgent = kept.urgent, False
        self.repairs += 1
        kept.computing = (self._start if is_large else at_once)(work)

    def _computed(self, kept: _Kept) -> TableRepair | None:
        """The change that has been computed, if it has; the programs are those of its tables."""
        computing = kept.computing
        if computing is None or not computing.done():
            return None
        kept.computing = None
        try:
            change = computing.result()
        except Exception as error:  # an internal error: logged once, and tried again
            kept.stale, kept.urgent = True, kept.urgent or kept.is_change_urgent
            if kept.backoff.failed(error):
                raise
            return None
        kept.backoff.succeeded()
        kept.repair, kept.report = change.tables, change.report
        kept.programs.set_tables(change.tables.tables)
        self._leave_out(kept.programs, change)
        return change

    def _leave_out(self, programs: Encoder, change: TableRepair) -> None:
        """Switches whose rows have got other numbers meanwhile: they are read instead."""
        in_sync = self.fabric.in_sync
        for vertex in in_sync & set().union(*change.rounds):
            numbered = change.programs.profile(vertex), change.generations[vertex]
            if (programs.profile(vertex), self.fabric.present[vertex].generation) != numbered:
                for messages in change.rounds:
                    messages.pop(vertex, None)
                self.fabric.present[vertex].wait()

    def _messages(self, messages: Round) -> Messages:
        """What the switches of a round get that are in sync; others are read instead."""
        in_sync = self.fabric.in_sync
        for vertex, parts in messages.items():
            if vertex in in_sync:
                yield vertex, parts
            elif switch := self.fabric.present.get(vertex):
                switch.wait()

    def _answered(self, vertex: int, outcome: ChangeOutcome) -> None:
        """A switch that refuses a round is read. The others go on if something has failed, or if it
        refuses again.
        """
        if outcome.committed or outcome.lost:
            return
        kept = self._active()
        if kept and self.rounds.busy and not kept.hurries and vertex not in kept.refusing:
            kept.refusing.add(vertex)
            self._interrupt(kept)
        elif switch := self.fabric.present.get(vertex):
            switch.wait()

    def _finished(self) -> None:
        """Report a change whose last round all switches have confirmed."""
        postponed, self._postponed = self._postponed, set()
        for vertex in postponed:
            if switch := self.fabric.present.get(vertex):
                switch.wait()
        kept = self._active()
        if kept is None or kept.report is None:
            return
        self._tell_repaired(kept)
        if kept.stale:
            self._react(kept)

    def _tell_repaired(self, kept: _Kept) -> None:
        """Report that the change under way is in place."""
        if kept.report is not None:
            self.repair_seconds = self.fabric.clock() - kept.since
            self.fabric.tell(kept.report(seconds=self.repair_seconds))
            kept.report = None
            kept.refusing.clear()

    def _generations(self, vertices: Iterable[int]) -> NDArray[np.int64]:
        """int64[S]: the generation of the numbers in these switches."""
        generations = np.zeros(len(self.fabric.names), np.int64)
        for vertex in vertices:
            generations[vertex] = self.fabric.present[vertex].generation
        return generations


def _loses_packets(kept: _Kept, before: Failures) -> bool:
    """Whether packets are lost until the tables follow the links: something has failed, or what is
    back joins switches that had no path.
    """
    now = Failures.of(kept.links)
    dead, drained = links_and_switches(kept.build.wiring.far, kept.links.requested.values())
    # A link that is drained may have been in use, as the last way, until it broke.
    failed_links = now.dead & ~before.dead & (~dead | kept.links.broken)
    if failed_links.any() or (now.drained & ~before.drained & ~drained).any():
        return True
    if not ((before.dead & ~now.dead).any() or (before.drained & ~now.drained).any()):
        return False
    return kept.repair.cut_off > 0 or bool(before.alone(kept.intact) - now.alone(kept.intact))


def _count(silence: LinkSilence, direction: int, body: bytes | None) -> None:
    """A switch has told the counters of a port, or (None) does not."""
    for counters in records(body or b"", PORT_STATS):
        silence.counted(direction, int(counters["received_packets"]))


def _same_links(before: _Kept, after: Build) -> bool:
    """Whether the state of links of one build is that of another, name by name.

    It is where both have the same links, hosts and names, and the drains by request mean the same.
    """
    old, new = before.build.wiring, after.wiring
    same_switches = old.names == new.names and np.array_equal(old.datapath_id, new.datapath_id)
    if not (same_switches and old.same_ports(new) and np.array_equal(old.host_port, new.host_port)):
        return False
    requested = before.links.requested
    return requested == requests_of(requested, new, after.hardware)
