"""The keeper of a running fabric: computes tables around failures, and has switches change to them.

A `Keeper` is the upkeep of a `LiveFabric`, which calls it when switches come, go or report a port
(`controller.switches.current.Upkeep`). The state of links and switches is in
`controller.upkeep.link_state`. One change of tables is computed and sent at a time, round by round:
while a round is under way, no packet loops or is lost that the old tables delivered. Events
meanwhile are handled together after the change. A change of many rows is computed in a thread. The
keeper pauses while the fabric moves to another build. If the move waits halfway, the keeper
computes how both builds lead around new failures (`Detour`). No I/O.
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

from compilers.routing.intact_build import Intact
from compilers.routing.link_repair import Repaired, avoided_links, repaired
from compilers.tables.build import Build
from compilers.targets.openflow.encoder import Encoder, FlowProgram
from compilers.targets.openflow.profiles import Profile
from compilers.targets.openflow.protocol import PORT_STATS, Multipart
from compilers.update.repair_messages import Round, repair_messages
from compilers.update.repair_rounds import RepairRounds
from compilers.wiring.shared_risk import RiskGroup, links_and_switches, resolve_name
from controller.openflow.multipart import ports_body, records
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
"""Most rows of a repair that is computed in the controller's loop; a larger one is computed in a
thread."""
ROUND_PATIENCE = 5.0
"""Most seconds that a round waits for its slowest switch if something has failed."""


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
        """About how many rows lead over these links and through these switches.

        A switch has a row for each of the S destinations, spread over its K links.
        """
        far = intact.wiring.far
        avoided = np.count_nonzero(avoided_links(far, self.dead, self.drained))
        switches, links = far.shape
        return int(avoided * switches // links)

    def isolated(self, intact: Intact) -> set[int]:
        """The switches that have no link left which leads on.

        A drained switch without hosts does not count: it needs no link.
        """
        linked = intact.wiring.far >= 0  # bool[S, K], as `live`
        live = linked & ~avoided_links(intact.wiring.far, self.dead, self.drained)
        needs_link = linked.any(axis=1) & (intact.endpoints | ~self.drained)
        return {*np.flatnonzero(needs_link & ~live.any(axis=1)).tolist()}

    def around(self, intact: Intact) -> Repaired:
        """The tables that lead around these failures."""
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
    """Makes the event of the repair, from the seconds that it took."""


def _repair(
    failures: Failures,
    intact: Intact,
    before: Repaired,
    programs: Encoder,
    generations: NDArray[np.int64],
) -> TableRepair:
    """Compute a change of tables; runs in a thread, so the arguments are only read.

    Args:
        failures: what traffic is to be routed around.
        intact: the tables without failures.
        before: the tables that are in force.
        programs: the programs of the tables in force.
        generations: int64[S], the generation of class and group numbers at each switch.
    """
    began = perf_counter()
    tables = failures.around(intact)
    report = _report(failures, tables, perf_counter() - began)
    change = RepairRounds.between(before, tables)
    rounds = repair_messages(programs, tables.tables, change, generations)
    return TableRepair(tables, rounds, programs, generations, report)


def _report(failures: Failures, tables: Repaired, computed: float) -> Callable[..., Event]:
    """A function that makes the event of a repair, from the seconds that the repair took.

    Args:
        failures: what the tables lead around.
        tables: the repaired tables.
        computed: the seconds that computing them took.
    """
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
    """Both builds of a move that waits halfway, with tables around what has failed since."""

    old: Build
    """The build that the move left, with repaired tables."""
    new: Build
    """The build that the move leads to, with repaired tables."""
    repair: Repaired
    """The repaired tables of the old build."""
    report: Callable[..., Event]
    """Makes the event of the repair, from the seconds that it took."""


def _detour(
    failures: Failures, intact: Intact, old: Build, new_failures: Failures, new: Build
) -> Detour:
    """Compute the detour of a move; runs in a thread, so the arguments are only read.

    Args:
        failures: what has failed, by the links and switches of the old build.
        intact: the old build's tables without failures.
        old: the old build.
        new_failures: what has failed, by the links and switches of the new build.
        new: the new build.
    """
    began = perf_counter()
    repair = failures.around(intact)
    new_repair = new_failures.around(Intact.of(new)) if new_failures else None
    return Detour(
        replace(old, tables=repair.tables),
        replace(new, tables=new_repair.tables) if new_repair else new,
        repair,
        _report(failures, repair, perf_counter() - began),
    )


@dataclass(slots=True)
class _BuildUpkeep:
    """The upkeep of a build: its tables before failures, and the state of its repair."""

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
    needs_repair: bool = False
    """Whether the links have changed since the last computation of tables began."""
    change_began: float = 0.0
    """When the computation of the change under way began."""
    report: Callable[..., Event] | None = None
    """Makes the event of the repair under way; None while there is none."""
    is_urgent: bool = False
    """Whether packets are lost until a change of tables is in place that is not computed yet."""
    is_change_urgent: bool = False
    """Whether packets are lost until the change under way is in place."""
    waits_until: float = -inf
    """How long a change that is not urgent waits for switches that are being read."""
    waits_for_slow: bool = True
    """Whether it also waits for switches that are slow, or have left and do not count as gone."""
    refusing_switches: set[int] = field(default_factory=set)
    """The switches for whose refusal rounds were ended since the last change was in place."""
    not_yet_in_sync: set[int] = field(default_factory=set)
    """The switches that have not been in sync since they connected, or the build was loaded."""
    held_routes: dict[int, Changes] = field(default_factory=dict)
    """By vertex, the routes that a switch holds instead of the routes of its program."""
    held_routes_until: float = inf
    """How long switches keep their `held_routes` while others have yet to be read."""
    readers: dict[tuple[Profile, int], RouteReader] = field(default_factory=dict)
    """The readers of routes, by the profile of a switch and the generation of its numbers."""

    @property
    def hurries(self) -> bool:
        """Whether the change under way, or the next one, follows a failure."""
        return self.is_urgent or self.is_change_urgent


class Keeper(Upkeep):
    """The keeper of a fabric. Create it before switches connect.

    Args:
        fabric: whose tables it repairs.
        duties: what it does.
        start: starts long computations.
    """

    _upkeep: _BuildUpkeep
    """The upkeep of the loaded build."""

    def __init__(
        self, fabric: LiveFabric, duties: Duties | None = None, start: Start = at_once
    ) -> None:
        self.fabric, self.duties, self._start = fabric, duties or Duties(), start
        self._now = fabric.listening_clock
        self.rounds = Rounds(fabric, self._answered, self._finished)
        """The change of tables that is being sent."""
        self._postponed: set[int] = set()
        """The switches that are read once the change under way has ended."""
        self.repairs = 0
        """How many changes were computed."""
        self._expects = False
        """Whether switches may connect (`expect`)."""
        self.repair_seconds: float | None = None
        """Seconds of the last repair, until all switches held its tables; None before any."""
        fabric.watched_by(self)

    # For the status and the status page

    @property
    def dead(self) -> NDArray[np.bool_]:
        """bool[S, K]: links that traffic is routed around."""
        return self._upkeep.links.dead

    @property
    def drained(self) -> NDArray[np.bool_]:
        """bool[S]: switches that traffic is routed around."""
        return self._upkeep.links.drained

    def has_transit(self, vertex: int) -> bool:
        """Whether traffic is routed through a switch."""
        upkeep = self._watched(vertex)
        return upkeep is None or not upkeep.links.drained[vertex]

    def is_cabled(self, vertex: int) -> bool:
        """Whether a switch that is not in sync may forward, as far as its neighbours report."""
        upkeep = self._watched(vertex)
        return upkeep is not None and upkeep.links.is_cabled(vertex)

    @property
    def build(self) -> Build:
        """The build with its current tables, repaired."""
        return self._upkeep.programs.build

    @property
    def is_settled(self) -> bool:
        """Whether no change of tables is under way and no switch holds routes of an earlier one."""
        upkeep = self._active()
        if upkeep is None:
            return True
        if self._changing(upkeep) or upkeep.held_routes:
            return False
        return not self._awaits_switch(upkeep, patient=False)

    @property
    def change(self) -> int | None:
        """The number of the last change of tables; None while one, or a move, is under way."""
        return self.rounds.number if self._active() and not self.rounds.busy else None

    def status(self) -> dict[str, Any]:
        """Failures and miswires, for the status file."""
        upkeep = self._upkeep
        return {
            **upkeep.links.status(),
            "repaired_switches": len(upkeep.repair.switches),
            "cut_off_pairs": upkeep.repair.cut_off,
            "repairs": self.repairs,
            "repair_seconds": self.repair_seconds,
            "repairing": self._changing(upkeep) or bool(upkeep.held_routes) or upkeep.needs_repair,
            "repair_failure": upkeep.backoff.status(),
        }

    def foresee(self, build: Build) -> Build:
        """Another build with the tables that it will have once it is loaded.

        They are repaired if some dead links or drained switches are in that build, too.
        """
        failures = Failures.of(self._links_of(build, self._upkeep))
        if not self.duties.repair or not failures:
            return build
        return replace(build, tables=failures.around(Intact.of(build)).tables)

    def _links_of(self, build: Build, before: _BuildUpkeep | None) -> Links:
        """The state of a build's links and switches, as far as it is known from another build.

        Args:
            build: the build.
            before: the upkeep of the other build; None without one.
        """
        if before and _same_links(before, build):
            return before.links
        links = Links(build.wiring, self.duties, build.hardware)
        if before:
            known = before.links.as_record(self._now(), time(), build.wiring)
            links.take_over(known, self._now(), time())
        return links

    # While a move waits halfway

    def detour(self, to: Build) -> Callable[[], Detour] | None:
        """A function that computes a detour of the move that waits on its way to a build.

        None if nothing has failed since the last detour. After a computation `follow` or `missed`
        has to be called. Discovery rests in a move: links are judged by their ports, switches by
        what was read.
        """
        upkeep = self._upkeep
        upkeep.links.return_switches()
        self._react(upkeep)
        if not upkeep.needs_repair or not upkeep.backoff.is_over:
            return None
        upkeep.needs_repair = upkeep.is_urgent = False
        upkeep.change_began = self.fabric.clock()
        failures, new_failures = Failures.of(upkeep.links), Failures.of(self._links_of(to, upkeep))
        return partial(_detour, failures, upkeep.intact, upkeep.build, new_failures, to)

    def follow(self, detour: Detour) -> None:
        """Make the detour's tables those of the old build, so that its switches change to them."""
        upkeep = self._upkeep
        upkeep.backoff.succeeded()
        self.repairs += 1
        upkeep.repair, upkeep.report = detour.repair, detour.report
        upkeep.programs.set_tables(detour.repair.tables)

    def followed(self) -> None:
        """Report that all switches which answer follow the detour."""
        self._report_repaired(self._upkeep)

    def missed(self, error: Exception | None = None) -> bool:
        """Note that the detour was not taken: the failures are still to be avoided.

        Args:
            error: why it could not be computed; None if the move went on meanwhile.

        Returns:
            Whether the error is another than the last one.
        """
        self._upkeep.needs_repair = self._upkeep.is_urgent = True
        return error is not None and self._upkeep.backoff.failed(error)

    def drain(
        self, name: str, ends: bool = False, yield_to_others: Callable[[], None] = lambda: None
    ) -> dict[str, Any]:
        """Route around something until it is undrained.

        Args:
            name: a node, a link `A-B`, or a group that shares a risk, such as `module:A/0`.
            ends: whether to undrain it instead.
            yield_to_others: called while many rows are computed, so that other work goes on.

        Returns:
            For JSON: all that is drained by request, and the number of pairs without a path.

        Raises:
            InputError: there is no such thing, it is not drained, or pairs would have no path.
        """
        upkeep = self._active()
        if upkeep is None or not self.duties.repair:
            raise InputError.of("a controller that repairs its build, and no move", "another")
        requested = dict(upkeep.links.requested)
        if ends:
            if name not in requested:
                todo = did_you_mean(name, requested)
                raise InputError.of("what is drained by request", name, todo)
            del requested[name]
        else:
            requested[name] = resolve_name(upkeep.build.wiring, upkeep.build.hardware, name)
            self._require_paths_around(name, requested[name], upkeep, yield_to_others)
        upkeep.links.drain(requested)
        self._react(upkeep)
        return {"asked": [*requested], "cut_off_pairs": upkeep.repair.cut_off}

    def _require_paths_around(
        self,
        name: str,
        group: RiskGroup,
        upkeep: _BuildUpkeep,
        yield_to_others: Callable[[], None],
    ) -> None:
        """Pass when no more pairs than now are without a path while something is drained.

        Args:
            name: what is to be drained, as it was requested.
            group: its links and switches.
            upkeep: of the build.
            yield_to_others: called while many rows are computed, so that other work goes on.

        Raises:
            InputError: pairs would have no path, or something else was changed meanwhile.
        """
        links, requested_before = upkeep.links, upkeep.links.requested
        dead, drained = links_and_switches(upkeep.build.wiring.far, [group])
        failures = Failures(links.dead | dead, links.drained | drained)
        isolated_before = Failures.of(links).isolated(upkeep.intact)
        isolated = failures.isolated(upkeep.intact) - isolated_before
        is_large = failures.rows(upkeep.intact) > ROWS_AT_ONCE
        start = self._start if is_large else at_once
        repair = start(partial(failures.around, upkeep.intact))
        while not repair.done():
            yield_to_others()
        if self._active() is not upkeep or links.requested is not requested_before:
            raise InputError.of("no other change meanwhile", "one; ask again", key=name)
        pairs_cut_off = repair.result().cut_off
        if isolated or pairs_cut_off > upkeep.repair.cut_off:
            given = f"{pairs_cut_off} lost"
            if isolated:
                given = f"{self.fabric.names[min(isolated)]} without a link"
            raise InputError.of("a path for every pair meanwhile", given, key=name)

    # The record for the next process

    def known(self) -> dict[str, Any]:
        """The state of links and switches that the next process needs, for JSON."""
        return self._upkeep.links.as_record(self._now(), time())

    def take_over(self, record: dict[str, Any], named_by: Build | None = None) -> None:
        """Begin with the record (`known`) of another process; call it before switches connect.

        Args:
            record: the record.
            named_by: the build whose names it has; None: the build under upkeep.
        """
        now, wall, wiring = self._now(), time(), self._upkeep.build.wiring
        if named_by is not None and named_by.wiring.names != wiring.names:
            links = Links(named_by.wiring, self.duties, named_by.hardware)
            links.take_over(record, now, wall)
            record = links.as_record(now, wall, wiring)
        self._upkeep.links.take_over(record, now, wall)
        self._avoid_failures(self._upkeep)

    def expect(self) -> None:
        """Expect switches to connect from now on; those that do not in time count as gone."""
        self._expects = True
        self._upkeep.links.expect(self._now())

    def _avoid_failures(self, upkeep: _BuildUpkeep) -> None:
        """Have the programs lead around present failures, before switches are read."""
        failures = Failures.of(upkeep.links)
        if self.duties.repair and failures:
            upkeep.repair = failures.around(upkeep.intact)
            upkeep.programs.set_tables(upkeep.repair.tables)

    # Called by the fabric

    def adopt(self, current: Current) -> Current:
        """Begin the upkeep of a build that is loaded.

        Programs that do not come from an `Encoder`, such as those of a move, stay as they are.
        """
        self.rounds.forget()
        self._postponed.clear()  # all switches are read
        build, programs = current.build, current.programs
        before: _BuildUpkeep | None = getattr(self, "_upkeep", None)  # None for the first build
        is_ours = before is not None and programs is before.programs
        if before is not None:
            before.held_routes.clear()
            before.not_yet_in_sync.update(range(before.build.tables.switches))
        if is_ours or build is None or not isinstance(programs, Encoder):
            return current
        links = self._links_of(build, before)
        if before and links is not before.links and self._expects:
            links.expect(self._now())
        intact = Intact.of(build)
        self._upkeep = upkeep = _BuildUpkeep(
            build=build,
            programs=programs.with_tables(build.tables, self.duties.discover),
            intact=intact,
            repair=repaired(intact, np.zeros(build.wiring.far.shape, np.bool_)),
            links=links,
            backoff=Backoff(self.fabric.clock),
            not_yet_in_sync={*range(build.tables.switches)},
        )
        self._avoid_failures(upkeep)
        return replace(current, programs=upkeep.programs)

    def _active(self) -> _BuildUpkeep | None:
        """The upkeep of the build, unless another module, such as a move, has the programs now."""
        upkeep = self._upkeep
        return upkeep if self.fabric.current.programs is upkeep.programs else None

    def _watched(self, vertex: int) -> _BuildUpkeep | None:
        """The upkeep of the build if this is one of its switches, whoever has the programs now."""
        upkeep = self._upkeep
        is_loaded = self.fabric.identity == upkeep.build.identity
        return upkeep if is_loaded and vertex < upkeep.build.tables.switches else None

    def described(self, vertex: int, ports: bytes) -> None:
        """Take the ports that a switch has described, before its rows are read."""
        if upkeep := self._watched(vertex):
            upkeep.links.described(vertex, ports, self._now())
            if upkeep.links.links_changed:  # else the next tick is soon enough
                self._react(upkeep)

    def program_read(self, vertex: int, is_held: bool) -> None:
        """Note that a switch was read to hold its program, or that it is known not to."""
        if upkeep := self._watched(vertex):
            if is_held:
                upkeep.not_yet_in_sync.discard(vertex)
                upkeep.held_routes.pop(vertex, None)
                upkeep.links.program_held(vertex)
            else:
                upkeep.links.program_lost(vertex, self._now())

    def arrived(self, vertex: int) -> None:
        """Note that a switch has connected; its ports are not known yet."""
        if upkeep := self._watched(vertex):
            upkeep.not_yet_in_sync.add(vertex)
            upkeep.links.connected(vertex, self._now())

    def postpones(self, vertex: int, program: FlowProgram, held: SwitchContent) -> bool:
        """Whether a switch is left unchanged for now, although it does not hold its program.

        Between rounds no route changes on its own. The same is so where an earlier process has
        begun a change of routes, until the other switches are read.
        """
        upkeep = self._active()
        if (
            upkeep is None
            or not self.duties.repair
            or not held.has_marker_of(upkeep.build.identity)
        ):
            return False
        if self.rounds.busy:
            self._postponed.add(vertex)
            return True
        profile = upkeep.programs.profile(vertex)
        if vertex not in upkeep.not_yet_in_sync or profile.single:
            return False
        generation = self.fabric.present[vertex].generation
        reader = upkeep.readers.get((profile, generation))
        if reader is None:
            reader = RouteReader.of(upkeep.programs, profile, generation)
            upkeep.readers[profile, generation] = reader
        changes = reader.changes(program, held)
        if not changes:
            return False
        if not upkeep.held_routes:
            upkeep.held_routes_until = self._now() + self._patience
        upkeep.held_routes[vertex] = changes
        return True

    def left(self, vertex: int) -> None:
        """Note that a switch has left; a change that is not urgent is interrupted."""
        if upkeep := self._watched(vertex):
            upkeep.held_routes.pop(vertex, None)
            upkeep.links.left(vertex, self._now())
            if self.rounds.busy and not upkeep.hurries and upkeep is self._active():
                self._interrupt(upkeep)

    def _interrupt(self, upkeep: _BuildUpkeep) -> None:
        """End the rounds of a change that is not urgent, as a switch has refused its part or left.

        A switch that has left may not have changed. All switches are read. The change goes on from
        what they hold, once the switch is back or counts as gone.
        """
        self.rounds.stop()
        upkeep.report, upkeep.needs_repair = None, True
        self._postpone(upkeep)
        upkeep.not_yet_in_sync.update(range(upkeep.build.tables.switches))
        self._postponed.update(self.fabric.present)

    def port_status(self, vertex: int, message: bytes) -> None:
        """Take a switch's report of a change of a port."""
        if upkeep := self._watched(vertex):
            upkeep.links.port_status(vertex, message, self._now())
            self._react(upkeep)

    def packet_in(self, vertex: int, message: bytes) -> None:
        """Take a packet that a switch has sent to the controller: it may be one of discovery."""
        upkeep = self._watched(vertex)
        if upkeep and upkeep.links.discovery:
            upkeep.links.discovery.received(vertex, message, self._now())

    def answered(self, vertex: int, turn: int) -> None:
        """Take a switch's answer to the echo request after the frames of a turn of discovery."""
        upkeep = self._watched(vertex)
        discovery = upkeep.links.discovery if upkeep else None
        if discovery is None:
            return
        discovery.answered(vertex, turn)
        for direction, reader, port in discovery.to_read():
            take_counters = partial(_take_counters, discovery.silence, direction)
            if switch := self.fabric.present.get(reader):
                switch.talk.ask(Multipart.PORT_STATS, ports_body(port), take_counters)

    def tick(self) -> None:
        """Send discovery's frames that are due, and react to the links; called at intervals."""
        upkeep = self._active()
        if upkeep is None:
            return
        self.rounds.tick()
        discovery = upkeep.links.discovery
        for vertex, frames in discovery.due(self._now()) if discovery else ():
            if switch := self.fabric.present.get(vertex):
                switch.talk.send(SendPriority.URGENT, frames)
        upkeep.links.evaluate(self._now())
        self._react(upkeep)

    def _changing(self, upkeep: _BuildUpkeep) -> bool:
        """Whether a change of tables is being computed or sent."""
        return self.rounds.busy or upkeep.computing is not None

    # Reactions

    def _react(self, upkeep: _BuildUpkeep) -> None:
        """React to the links: report their events, compute other tables, send the computed change.

        While the fabric is being moved, only events are reported.
        """
        before = Failures.of(upkeep.links)
        has_changed, events = upkeep.links.update(self._now())
        for event in events:
            self.fabric.tell(event)
        upkeep.needs_repair |= has_changed and self.duties.repair
        if has_changed:
            # A drain after a failure does not delay the repair of the failure.
            upkeep.is_urgent |= _loses_packets(upkeep, before)
            self._postpone(upkeep)
        if not self._active():
            return
        if upkeep.held_routes and not self._changing(upkeep):
            self._start_from_held_routes(upkeep)
        is_due = upkeep.needs_repair and (has_changed or upkeep.backoff.is_over)
        if is_due and not self._changing(upkeep) and not self._must_wait(upkeep):
            self._compute(upkeep)
        change = self._computed(upkeep)
        if change is not None:
            # The routes that these switches hold were compared with the tables before the change.
            self._postponed.update(upkeep.held_routes)
            upkeep.held_routes.clear()
            self._hurry(upkeep)
            self.rounds.send(map(self._messages, change.rounds))

    @property
    def _patience(self) -> float:
        """Most seconds that a change which is not urgent waits for switches.

        A missing switch counts as gone before they are over.
        """
        return max(self.duties.patience, self.duties.arrival) + ROUND_PATIENCE

    def _postpone(self, upkeep: _BuildUpkeep) -> None:
        """Have the next change wait until all switches are settled, unless it is urgent."""
        upkeep.waits_until = -inf if upkeep.is_urgent else self._now() + self._patience
        upkeep.waits_for_slow = True
        self._hurry(upkeep)

    def _hurry(self, upkeep: _BuildUpkeep) -> None:
        """Have the rounds go on without slow switches if packets are lost meanwhile.

        Else the rounds wait until a slow switch answers or is disconnected.
        """
        self.rounds.patience = ROUND_PATIENCE if upkeep.hurries else inf
        if upkeep.hurries:
            self.rounds.tick()

    def _must_wait(self, upkeep: _BuildUpkeep) -> bool:
        """Whether the next change has to wait for switches."""
        if upkeep.held_routes:
            return True
        has_time = self._now() < upkeep.waits_until
        return has_time and self._awaits_switch(upkeep, upkeep.waits_for_slow)

    def _awaits_switch(self, upkeep: _BuildUpkeep, patient: bool) -> bool:
        """Whether a switch is being read, or programmed. Those with `held_routes` do not count.

        Args:
            upkeep: the upkeep of the build.
            patient: whether slow switches count, too, and those that are disconnected but do not
                count as gone yet.
        """
        for vertex in set(upkeep.programs.by_datapath_id.values()) - upkeep.held_routes.keys():
            switch = self.fabric.present.get(vertex)
            if switch is None:
                is_awaited = patient and not upkeep.links.drained[vertex]
            else:
                is_settled = switch.state in ("in sync", *AMISS)
                is_awaited = not is_settled and (patient or not switch.connection.is_slow)
            if is_awaited:
                return True
        return False

    def _start_from_held_routes(self, upkeep: _BuildUpkeep) -> None:
        """Take the routes that switches were read to hold as the tables that are in force.

        The next change leads from there in rounds. This waits until all switches are read, or time
        is up. If a link is dead, neither absent nor slow switches are waited for.
        """
        links, far = upkeep.links, upkeep.build.wiring.far
        requested, _ = links_and_switches(far, links.requested.values())
        has_failed_link = bool((links.dead & ~requested).any())
        waits = not upkeep.is_urgent and self._now() < upkeep.held_routes_until
        if waits and self._awaits_switch(upkeep, patient=not has_failed_link):
            return
        upkeep.repair = held_instead(upkeep.intact, upkeep.repair, upkeep.held_routes)
        upkeep.programs.set_tables(upkeep.repair.tables)
        vertices, upkeep.held_routes = [*upkeep.held_routes], {}
        upkeep.needs_repair, upkeep.waits_for_slow = True, False
        upkeep.waits_until = -inf if upkeep.is_urgent else self._now() + ROUND_PATIENCE
        for vertex in vertices:
            upkeep.not_yet_in_sync.discard(vertex)
            if switch := self.fabric.present.get(vertex):
                switch.request_reading()

    def _compute(self, upkeep: _BuildUpkeep) -> None:
        """Begin to compute tables around the present failures; few rows are computed at once."""
        failures = Failures.of(upkeep.links)
        is_large = max(failures.rows(upkeep.intact), len(upkeep.repair.rows)) > ROWS_AT_ONCE
        work = partial(
            _repair,
            failures,
            upkeep.intact,
            upkeep.repair,
            upkeep.programs.as_now(),
            self._generations(self.fabric.in_sync),
        )
        upkeep.needs_repair, upkeep.change_began = False, self.fabric.clock()
        upkeep.is_change_urgent, upkeep.is_urgent = upkeep.is_urgent, False
        self.repairs += 1
        upkeep.computing = (self._start if is_large else at_once)(work)

    def _computed(self, upkeep: _BuildUpkeep) -> TableRepair | None:
        """The change of tables once it is computed; then the programs get its tables."""
        computing = upkeep.computing
        if computing is None or not computing.done():
            return None
        upkeep.computing = None
        try:
            change = computing.result()
        except Exception as error:  # an internal error: logged once, and tried again
            upkeep.needs_repair = True
            upkeep.is_urgent |= upkeep.is_change_urgent
            if upkeep.backoff.failed(error):
                raise
            return None
        upkeep.backoff.succeeded()
        upkeep.repair, upkeep.report = change.tables, change.report
        upkeep.programs.set_tables(change.tables.tables)
        self._leave_out(upkeep.programs, change)
        return change

    def _leave_out(self, programs: Encoder, change: TableRepair) -> None:
        """Drop the messages for switches that have got another profile or generation meanwhile.

        The numbers of rows in these messages are not theirs any more, so the switches are read.
        """
        in_sync = self.fabric.in_sync
        for vertex in in_sync & set().union(*change.rounds):
            computed_for = change.programs.profile(vertex), change.generations[vertex]
            now = programs.profile(vertex), self.fabric.present[vertex].generation
            if now != computed_for:
                for messages in change.rounds:
                    messages.pop(vertex, None)
                self.fabric.present[vertex].request_reading()

    def _messages(self, messages: Round) -> Messages:
        """The messages for the switches of a round that are in sync; others are read instead."""
        in_sync = self.fabric.in_sync
        for vertex, parts in messages.items():
            if vertex in in_sync:
                yield vertex, parts
            elif switch := self.fabric.present.get(vertex):
                switch.request_reading()

    def _answered(self, vertex: int, outcome: ChangeOutcome) -> None:
        """Take a switch's answer to its messages of a round; one that refuses them is read.

        At its first refusal a change that is not urgent is interrupted; else the others go on.
        """
        if outcome.committed or outcome.lost:
            return
        upkeep = self._active()
        may_interrupt = upkeep is not None and self.rounds.busy and not upkeep.hurries
        if upkeep and may_interrupt and vertex not in upkeep.refusing_switches:
            upkeep.refusing_switches.add(vertex)
            self._interrupt(upkeep)
        elif switch := self.fabric.present.get(vertex):
            switch.request_reading()

    def _finished(self) -> None:
        """Report a change whose last round all switches have confirmed."""
        postponed, self._postponed = self._postponed, set()
        for vertex in postponed:
            if switch := self.fabric.present.get(vertex):
                switch.request_reading()
        upkeep = self._active()
        if upkeep is None or upkeep.report is None:
            return
        self._report_repaired(upkeep)
        if upkeep.needs_repair:
            self._react(upkeep)

    def _report_repaired(self, upkeep: _BuildUpkeep) -> None:
        """Report that the change under way is in place."""
        if upkeep.report is not None:
            self.repair_seconds = self.fabric.clock() - upkeep.change_began
            self.fabric.tell(upkeep.report(seconds=self.repair_seconds))
            upkeep.report = None
            upkeep.refusing_switches.clear()

    def _generations(self, vertices: Iterable[int]) -> NDArray[np.int64]:
        """int64[S]: the generation of the numbers in these switches."""
        generations = np.zeros(len(self.fabric.names), np.int64)
        for vertex in vertices:
            generations[vertex] = self.fabric.present[vertex].generation
        return generations


def _loses_packets(upkeep: _BuildUpkeep, before: Failures) -> bool:
    """Whether packets are lost until the tables follow the links.

    They are if a link or a switch has failed, or if one that is back joins switches that had no
    path.

    Args:
        upkeep: the upkeep of the build, with the links of now.
        before: the failures before the links changed.
    """
    now = Failures.of(upkeep.links)
    dead, drained = links_and_switches(upkeep.build.wiring.far, upkeep.links.requested.values())
    # A link that is drained may have been in use, as the last way, until it broke.
    failed_links = now.dead & ~before.dead & (~dead | upkeep.links.broken)
    if failed_links.any() or (now.drained & ~before.drained & ~drained).any():
        return True
    if not ((before.dead & ~now.dead).any() or (before.drained & ~now.drained).any()):
        return False
    rejoined = before.isolated(upkeep.intact) - now.isolated(upkeep.intact)
    return upkeep.repair.cut_off > 0 or bool(rejoined)


def _take_counters(silence: LinkSilence, direction: int, body: bytes | None) -> None:
    """Pass the received packets of a port on to `silence`; None if the switch does not answer."""
    for counters in records(body or b"", PORT_STATS):
        silence.counted(direction, int(counters["received_packets"]))


def _same_links(before: _BuildUpkeep, after: Build) -> bool:
    """Whether the state of links of one build is that of another, name by name.

    It is where both have the same links, hosts and names, and the drains by request mean the same.
    """
    old, new = before.build.wiring, after.wiring
    same_switches = old.names == new.names and np.array_equal(old.datapath_id, new.datapath_id)
    if not (same_switches and old.same_ports(new) and np.array_equal(old.host_port, new.host_port)):
        return False
    requested = before.links.requested
    return requested == requests_of(requested, new, after.hardware)
