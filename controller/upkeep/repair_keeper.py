"""The keeper of a running fabric: computes tables around failures, and has switches change to them.

A `Keeper` is the upkeep of a `LiveFabric`, which calls it when switches come, go or report a port
(`controller.switches.current.Upkeep`). The state of links and switches is in
`controller.upkeep.link_state`, the computations are in `controller.upkeep.table_repairs`. No I/O.

One change of tables is computed and sent at a time, round by round: while a round is under way, no
packet loops or is lost that the old tables delivered. A change goes through these states. Its
fields are in `_BuildUpkeep`: in `next_change` until its computation begins, from then on in
`change`.

| state | told by | begun by | ended by |
|---|---|---|---|
| none | none of the others | | |
| due | `next_change.is_due` | `_react`, as links have changed | `_compute` |
| waiting | due, and `_must_wait` | `_set_wait`, or held routes | time, or switches that are read |
| computing | `change.computing` | `_compute` | `_take_computed` |
| sending | `rounds.busy` | `_send` | `_finished`, called by `rounds` |
| interrupted | sending, no `change.make_event` | `_interrupt` | `_finished` |

- The next change may become due while another is computed or sent. It begins after the other has
  ended.
- A change that is interrupted, or whose computation failed, becomes due again. The programs are
  those before an interrupted change again; what switches hold of it is read as held routes.
- A change is *urgent* if it repairs a loss of packets. It does not wait for switches that are being
  read, and its rounds do not wait for slow ones. While a change is urgent, none is interrupted.
- *Held routes* are routes that a switch was read to hold instead of those of its program
  (`controller.upkeep.held_routes`). They are collected while no change is sent. A due change waits
  until `_start_from_held_routes` takes the held routes as the tables in force. If a change was
  being computed when routes were collected, it started from other tables. As soon as that change
  is sent, the held routes are dropped, and after it their switches are read again.
- While the fabric moves to another build, the keeper begins no change of its own. If the move waits
  halfway, the mover asks for `DetouredBuilds` in its place (`detour_work`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from concurrent.futures import Future
from dataclasses import dataclass, field, replace
from functools import partial
from math import inf
from time import time
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from compilers.routing.intact_build import IntactBuild
from compilers.routing.link_repair import RepairedTables
from compilers.tables.build import Build
from compilers.targets.openflow.encoder import Encoder, FlowProgram
from compilers.targets.openflow.protocol import PORT_STATS, Multipart
from compilers.update.repair_messages import Round
from compilers.wiring.shared_risk import RiskGroup, links_and_switches, resolve_name
from controller.openflow.multipart import ports_body, records
from controller.settings import Duties
from controller.switches.connections.sending import SendPriority
from controller.switches.conversation import ChangeOutcome
from controller.switches.current import Current, Upkeep
from controller.switches.events import ChangeWaits
from controller.switches.reconcile import SwitchContent
from controller.switches.rounds import Messages, Rounds
from controller.switches.session import LiveFabric
from controller.switches.switch import AMISS
from controller.upkeep.background import Backoff, Start, at_once
from controller.upkeep.discovery_alarms import MOST_NAMED
from controller.upkeep.held_routes import (
    HeldRouteReadings,
    UsedParts,
    held_routes_loop,
    parts_used,
    tables_as_held,
)
from controller.upkeep.link_silence import LinkSilence
from controller.upkeep.link_state import Links, requests_of
from controller.upkeep.management_outage import RETURN_LIMIT
from controller.upkeep.table_repairs import DetouredBuilds, EventMaker, Failures, TableRepair
from inventory.problems import InputError, did_you_mean, first_names

ROWS_AT_ONCE = 20_000
"""Most rows of a repair that is computed in the controller's loop; a larger one is computed in a
thread."""
ROUND_PATIENCE = 5.0
"""Most seconds that a round waits for its slowest switch if something has failed."""


@dataclass(slots=True)
class _NextChange:
    """The next change of tables, which is not computed yet."""

    is_due: bool = False
    """Whether the tables do not follow the links: these have changed since the computation of the
    last change began, or that change was not taken."""
    is_urgent: bool = False
    """Whether packets are lost until it is in place."""
    ends_loop: bool = False
    """Whether packets loop until it is in place, by routes that switches were read to hold."""
    waits_until: float = -inf
    """How long it waits for switches that are being read. An urgent change does not wait."""
    waits_for_slow: bool = True
    """Whether it also waits for switches that are slow, or have left and do not count as gone."""
    awaits_unreachable: frozenset[int] = frozenset()
    """The unreachable switches (`_unreachable`) that it waits for without limit, as it changes some
    of them."""


class _TablesBefore(NamedTuple):
    """Tables before a change, with what `_BuildUpkeep` says of them."""

    repair: RepairedTables
    failures: Failures
    held_parts: UsedParts | None


@dataclass(slots=True)
class _Change:
    """The change of tables that is being computed or sent, or the last one."""

    computing: Future[TableRepair | None] | None = None
    """Its computation; None once the result was taken."""
    wanted: Failures | None = None
    """What was to be routed around when its computation began; None before the first."""
    before: _TablesBefore | None = None
    """What was in force before the last change that was sent; None before any."""
    unreachable: frozenset[int] = frozenset()
    """The unreachable switches when its computation began."""
    began: float = 0.0
    """When its computation began."""
    is_urgent: bool = False
    """Whether packets are lost until the change is in place. Of the last change, whether they
    were."""
    make_event: EventMaker | None = None
    """Makes its event; None unless it is computed, and neither in place nor interrupted."""
    is_interrupted: bool = False
    """Whether its rounds were interrupted."""
    refusing_switches: set[int] = field(default_factory=set)
    """The switches whose refusal has interrupted a change since a change was last in place. If such
    a switch refuses again, it interrupts no change: a switch that always refuses does not keep the
    others from changing."""


class _Known(NamedTuple):
    """What is known of the links and switches of a build."""

    build: Build
    """The build, without failures."""
    links: Links
    """The state of each link."""
    failures: Failures
    """What the tables in force lead around."""


class _Foreseen(NamedTuple):
    """The build that a move leads to."""

    identity: str
    """The build's identity."""
    failures: Failures
    """What its tables lead around, as the move was planned."""


@dataclass(slots=True)
class _BuildUpkeep:
    """A build under upkeep: its tables before failures, and the state of its repair."""

    build: Build
    """The build without failures."""
    encoder: Encoder
    """Encodes the programs that switches hold, by the tables in force."""
    intact: IntactBuild
    """The tables without failures, prepared for repairs."""
    repair: RepairedTables
    """The tables that are in force."""
    failures: Failures
    """What the tables of the programs lead around."""
    links: Links
    """The state of each link."""
    backoff: Backoff
    """The waits between failed computations."""
    held_routes: HeldRouteReadings
    """The routes that switches hold instead of the routes of their programs."""
    next_change: _NextChange = field(default_factory=_NextChange)
    """The change that is not computed yet."""
    change: _Change = field(default_factory=_Change)
    """The change under way, or the last one."""
    held_parts: UsedParts | None = None
    """What the routes of `repair` lead over that switches were read to hold; None unless it has
    such routes. A switch that was not read may not fit to them."""
    is_told_to_wait: bool = False
    """Whether it was reported that a change waits, since one was last made as a whole."""

    @property
    def known(self) -> _Known:
        """What is known of the links and switches of the build."""
        return _Known(self.build, self.links, self.failures)

    @property
    def in_force(self) -> Failures:
        """What the rows of the switches lead around: `failures`, without the broken links and the
        failed switches that held routes lead over.
        """
        held = self.held_parts
        if held is None:
            return self.failures
        links = self.links
        failed_links = links.dead & links.broken_or_recorded
        return self.failures.without(held.links & failed_links, held.transit & self._lacking)

    @property
    def _lacking(self) -> NDArray[np.bool_]:
        """bool[S], the drained switches that were read not to hold their program."""
        return self.links.drained & self.links.lacking_program

    def leads_through(self, vertex: int) -> bool:
        """Whether the rows of other switches lead packets through a switch, for others."""
        if not self.failures.drained[vertex]:
            return True
        held = self.held_parts
        return held is not None and bool(held.transit[vertex] & self._lacking[vertex])

    @property
    def is_waiting(self) -> bool:
        """Whether the next change, or a part of the last one, waits for unreachable switches."""
        return self.next_change.is_due and self.is_told_to_wait

    @property
    def has_urgent_change(self) -> bool:
        """Whether the change under way, or the next one, is urgent."""
        return self.next_change.is_urgent or self.change.is_urgent


class Keeper(Upkeep):
    """The keeper of a fabric. Create it before switches connect.

    Args:
        fabric: whose tables it repairs.
        duties: what it does.
        start: starts long computations.
    """

    _upkeep: _BuildUpkeep
    """The upkeep of the last build that was adopted.

    `_upkeep_of_switch` is this upkeep if the build is loaded and has the switch. Methods that only
    note what a switch reports use it. `_upkeep_in_charge` is this upkeep if the fabric uses its
    programs, so if no move is under way. Methods that begin or end a change of tables use it."""

    def __init__(
        self, fabric: LiveFabric, duties: Duties | None = None, start: Start = at_once
    ) -> None:
        self.fabric, self.duties, self._start = fabric, duties or Duties(), start
        self._now = fabric.listening_clock
        self.rounds = Rounds(fabric, self._answered, self._finished)
        """The change of tables that is being sent."""
        self._read_after_change: set[int] = set()
        """The switches that are read once the change under way has ended."""
        self.repairs = 0
        """How many changes were computed."""
        self._expects_switches = False
        """Whether switches may connect (`expect`)."""
        self._foreseen: _Foreseen | None = None
        """The build that the last planned move leads to, until it is loaded; None without one."""
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
        upkeep = self._upkeep_of_switch(vertex)
        return upkeep is None or upkeep.leads_through(vertex)

    def is_cabled(self, vertex: int) -> bool:
        """Whether a switch that is not in sync may forward, as far as its neighbours report."""
        upkeep = self._upkeep_of_switch(vertex)
        return upkeep is not None and upkeep.links.is_cabled(vertex)

    @property
    def build(self) -> Build:
        """The build with its current tables, repaired."""
        return self._upkeep.encoder.build

    @property
    def is_settled(self) -> bool:
        """Whether no change of tables is under way and no switch holds routes of an earlier one."""
        upkeep = self._upkeep_in_charge()
        if upkeep is None:
            return True
        if upkeep.change.computing is not None or self.holds_mixture:
            return False
        return not self._awaits_switch(upkeep, counts_slow=False)

    @property
    def holds_mixture(self) -> bool:
        """Whether switches may hold routes of several tables, as rounds are under way or were
        interrupted. Then a switch that is corrected by itself could loop packets.
        """
        upkeep = self._upkeep_in_charge()
        if upkeep is None:
            return False
        return self.rounds.busy or bool(upkeep.held_routes) or upkeep.held_parts is not None

    @property
    def change_number(self) -> int | None:
        """The number of the last change of tables; None while one, or a move, is under way."""
        return self.rounds.number if self._upkeep_in_charge() and not self.rounds.busy else None

    def status(self) -> dict[str, Any]:
        """Failures and miswires, for the status file."""
        upkeep = self._upkeep
        return {
            **upkeep.links.status(),
            "repaired_switches": len(upkeep.repair.switches),
            "cut_off_pairs": upkeep.repair.cut_off_pairs,
            "repairs": self.repairs,
            "repair_seconds": self.repair_seconds,
            "repairing": self._is_repairing(upkeep),
            "waits_for": self._names(self._unreachable(upkeep) if upkeep.is_waiting else ()),
            "repair_failure": upkeep.backoff.status(),
        }

    def foresee(self, build: Build) -> Build:
        """Another build with the tables that a move leads to.

        They are repaired if some dead links or drained switches are in that build, too. In a build
        with the same links they lead around what the tables in force lead around, and what has
        failed for certain since. These tables are in force once the build is loaded (`adopt`).
        """
        return self._foresee(build, self._failures_in(build, self._upkeep.known))

    def _foresee(self, build: Build, failures: Failures) -> Build:
        """The build that a move leads to, with tables that lead around failures."""
        self._foreseen = _Foreseen(build.identity, failures)
        return _around(build, failures)

    def foresee_move(
        self, link_state: dict[str, Any], old: Build, new: Build
    ) -> tuple[Build, Build]:
        """Both builds of another process's move, with the tables that it planned the move with.

        Args:
            link_state: the record of that process, from `links_record`.
            old: the build that the move leaves, by whose names the record is.
            new: the build that it leads to.
        """
        links = self._links_recorded(link_state, old)
        known = _Known(old, links, _recorded_failures(link_state, links))
        return (
            _around(old, self._failures_in(old, known)),
            self._foresee(new, self._failures_in(new, known)),
        )

    def transit_switches(self, build: Build) -> frozenset[int]:
        """The switches that traffic will be routed through once another build is loaded."""
        failures = self._failures_in(build, self._upkeep.known)
        return frozenset(np.flatnonzero(~failures.drained).tolist())

    def _failures_in(self, build: Build, known: _Known) -> Failures:
        """What the tables of a build will lead around once it is loaded.

        Args:
            build: the build.
            known: what is known of the build before it.
        """
        links = self._links_of(build, known)
        if not self.duties.repair:
            return Failures(np.zeros_like(links.dead), np.zeros_like(links.drained))
        if links is known.links:
            return self._failed_for_certain(known)
        return Failures.of(links)

    def _links_of(self, build: Build, before: _Known | None) -> Links:
        """The state of a build's links and switches, as far as it is known from another build.

        Args:
            build: the build.
            before: what is known of the other build; None without one.
        """
        if before and _same_links(before, build):
            return before.links
        links = Links(build.wiring, self.duties, build.hardware)
        if before:
            known = before.links.as_record(self._now(), time(), build.wiring)
            links.take_over(known, self._now(), time())
        return links

    # While a move waits halfway

    def detour_work(
        self, to: Build, only_certain: bool = False, only_if_failed: bool = False
    ) -> Callable[[], DetouredBuilds] | None:
        """A function that computes a detour of the move that waits on its way to a build.

        It may be called in a thread. Then `take_detour` or `discard_detour` has to be called.

        Args:
            to: the build that the move leads to.
            only_certain: whether only what has failed for certain is led around: switches change to
                a detour as they are read, and not in rounds. It is so in any case while a switch
                in use cannot change.
            only_if_failed: whether there is no detour unless something has failed for certain: the
                move can wait, and a detour may lose packets at switches that return.

        Returns:
            The function; None if nothing has failed since the last detour, or if computing that one
            failed a short time ago.
        """
        upkeep = self._upkeep
        upkeep.links.return_switches()
        self._react(upkeep)
        if not upkeep.next_change.is_due or not upkeep.backoff.is_over:
            return None
        failures = wanted = Failures.of(upkeep.links)
        only_certain = only_certain or bool(self._unreachable(upkeep))
        if only_certain or only_if_failed:
            certain = self._failed_for_certain(upkeep.known)
            if certain.equals(upkeep.in_force):
                return None
            failures = certain if only_certain else wanted
        to_links = self._links_of(to, upkeep.known)
        new_failures = failures if to_links is upkeep.links else Failures.of(to_links)
        upkeep.next_change.is_due = not failures.equals(wanted)
        upkeep.next_change.is_urgent, upkeep.change.began = False, self.fabric.clock()
        link_state = upkeep.links.as_record(self._now(), time())
        link_state |= upkeep.links.named_parts(failures.dead, failures.drained)
        return partial(
            DetouredBuilds.of, failures, upkeep.intact, upkeep.build, new_failures, to, link_state
        )

    def take_detour(self, detour: DetouredBuilds) -> None:
        """Make the detour's tables those of the old build, so that its switches change to them."""
        upkeep = self._upkeep
        upkeep.backoff.succeeded()
        self.repairs += 1
        upkeep.repair, upkeep.failures = detour.repair, detour.failures
        upkeep.held_parts = None
        self._foreseen = _Foreseen(detour.new.identity, detour.new_failures)
        upkeep.change.make_event = detour.make_event
        upkeep.encoder.set_tables(detour.repair.tables)

    def report_detour(self) -> None:
        """Report that all switches which answer hold the tables of the detour."""
        self._report_repaired(self._upkeep)

    def discard_detour(self, error: Exception | None = None) -> bool:
        """Note that the detour was not taken: the failures are still to be avoided.

        Args:
            error: why it could not be computed; None if the move went on meanwhile.

        Returns:
            Whether the error is another than the last one.
        """
        upkeep = self._upkeep
        upkeep.next_change.is_due = upkeep.next_change.is_urgent = True
        return error is not None and upkeep.backoff.failed(error)

    def named_group(self, name: str, ends: bool = False) -> RiskGroup:
        """The links and switches that a name stands for, of which a drain may begin or end.

        Args:
            name: a node, a link `A-B`, or a group that shares a risk, such as `module:A/0`.
            ends: whether a drain is to end.

        Raises:
            InputError: there is no such thing, it is not drained, or a move is under way.
        """
        upkeep = self._upkeep_in_charge()
        if upkeep is None or not self.duties.repair:
            raise InputError.of("a controller that repairs its build, and no move", "another")
        if not ends:
            return resolve_name(upkeep.build.wiring, upkeep.build.hardware, name)
        requested = upkeep.links.requested
        if name not in requested:
            todo = did_you_mean(name, requested)
            raise InputError.of("what is drained by request", name, todo)
        return requested[name]

    def drain(
        self, name: str, ends: bool = False, yield_to_others: Callable[[], None] = lambda: None
    ) -> dict[str, Any]:
        """Route around something until it is undrained.

        Args:
            name: a node, a link `A-B`, or a group that shares a risk, such as `module:A/0`.
            ends: whether to undrain it instead.
            yield_to_others: called while many rows are computed, so that other work goes on.

        Returns:
            For JSON: all that is drained by request, the number of pairs without a path, and
            whether the tables are still to be changed.

        Raises:
            InputError: there is no such thing, it is not drained, or pairs would have no path.
        """
        group, upkeep = self.named_group(name, ends), self._upkeep
        requested = dict(upkeep.links.requested)
        if ends:
            del requested[name]
        else:
            requested[name] = group
            self._require_paths_around(name, group, upkeep, yield_to_others)
        upkeep.links.drain(requested)
        self._react(upkeep)
        return {
            "asked": [*requested],
            "cut_off_pairs": upkeep.repair.cut_off_pairs,
            "repairing": self._is_repairing(upkeep),
        }

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
        isolated_before = Failures.of(links).isolated_switches(upkeep.intact)
        isolated = failures.isolated_switches(upkeep.intact) - isolated_before
        is_large = failures.affected_rows(upkeep.intact) > ROWS_AT_ONCE
        start = self._start if is_large else at_once
        repair = start(partial(failures.tables_around, upkeep.intact))
        while not repair.done():
            yield_to_others()
        if self._upkeep_in_charge() is not upkeep or links.requested is not requested_before:
            raise InputError.of("no other change meanwhile", "one; ask again", key=name)
        pairs_cut_off = repair.result().cut_off_pairs
        if isolated or pairs_cut_off > upkeep.repair.cut_off_pairs:
            given = f"{pairs_cut_off} lost"
            if isolated:
                given = f"{self.fabric.names[min(isolated)]} without a link"
            raise InputError.of("a path for every pair meanwhile", given, key=name)

    # The record for the next process

    def links_record(self) -> dict[str, Any]:
        """The state of links and switches that the next process needs, for JSON.

        If a change of tables is due or under way, `avoided_links` and `avoided_switches` have what
        the tables before it lead around, like `unseen` and `drained` (`Links.as_record`).
        """
        upkeep = self._upkeep
        record = upkeep.links.as_record(self._now(), time())
        failures = self._failures_before_rounds(upkeep)
        if not failures.equals(Failures.of(upkeep.links)):
            record |= upkeep.links.named_parts(failures.dead, failures.drained)
        return record

    def _failures_before_rounds(self, upkeep: _BuildUpkeep) -> Failures:
        """What the tables lead around, without the change that is being sent."""
        before = upkeep.change.before
        return before.failures if self.rounds.busy and before is not None else upkeep.failures

    def take_over(self, record: dict[str, Any], named_by: Build | None = None) -> None:
        """Begin with the record of another process; call it before switches connect.

        Args:
            record: the record, from `links_record`.
            named_by: the build whose names it has; None: the build under upkeep.
        """
        now, wall, wiring = self._now(), time(), self._upkeep.build.wiring
        if named_by is not None and named_by.wiring.names != wiring.names:
            record = self._links_recorded(record, named_by).as_record(now, wall, wiring)
        links = self._upkeep.links
        links.take_over(record, now, wall)
        self._lead_around(self._upkeep, _recorded_failures(record, links))

    def take_over_tables(self, record: dict[str, Any]) -> None:
        """Have the tables lead around what those of another process led around.

        The links and switches stay as they are known now. What has changed since is due.

        Args:
            record: the record of that process, by the names of the build under upkeep.
        """
        links = self._links_recorded(record, self._upkeep.build)
        self._lead_around(self._upkeep, _recorded_failures(record, links))

    def _links_recorded(self, record: dict[str, Any], named_by: Build) -> Links:
        """The links and switches of a build as a record has them, which is by its names."""
        links = Links(named_by.wiring, self.duties, named_by.hardware)
        links.take_over(record, self._now(), time())
        return links

    def expect(self) -> None:
        """Expect switches to connect from now on; those that do not in time count as gone."""
        self._expects_switches = True
        self._upkeep.links.expect(self._now())

    def _lead_around(self, upkeep: _BuildUpkeep, failures: Failures) -> None:
        """Have the programs lead around failures, before switches are read.

        Args:
            upkeep: the upkeep of a build that is loaded, or taken over from another process.
            failures: what the tables in force lead around; what else is to be avoided is due.
        """
        if not self.duties.repair:
            return
        if not failures.equals(upkeep.failures):
            upkeep.failures, upkeep.held_parts = failures, None
            upkeep.repair = failures.tables_around(upkeep.intact)
            upkeep.encoder.set_tables(upkeep.repair.tables)
        upkeep.next_change.is_due = not failures.equals(Failures.of(upkeep.links))
        if upkeep.next_change.is_due:
            upkeep.next_change.is_urgent |= _loses_packets(upkeep, Failures.of(upkeep.links))
            self._delay_next_change(upkeep)

    # Called by the fabric

    def adopt(self, current: Current) -> Current:
        """Begin the upkeep of a build that is loaded.

        Programs that do not come from an `Encoder`, such as those of a move, stay as they are.
        """
        build, programs = current.build, current.programs
        before: _BuildUpkeep | None = getattr(self, "_upkeep", None)  # None for the first build
        before_rounds = self._failures_before_rounds(before) if before else None
        self.rounds.forget()
        self._read_after_change.clear()  # all switches are read
        is_ours = before is not None and programs is before.encoder
        if before is not None:
            before.held_routes.clear()
            before.held_routes.expect(range(before.build.tables.switches))
        if is_ours or build is None or not isinstance(programs, Encoder):
            return current
        links = self._links_of(build, before.known if before else None)
        if before and links is not before.links and self._expects_switches:
            links.expect(self._now())
        intact = IntactBuild.of(build)
        no_failures = Failures.none(intact)
        self._upkeep = upkeep = _BuildUpkeep(
            build=build,
            encoder=programs.with_tables(build.tables, self.duties.discover),
            intact=intact,
            repair=no_failures.tables_around(intact),
            failures=no_failures,
            links=links,
            backoff=Backoff(self.fabric.clock),
            held_routes=HeldRouteReadings({*range(build.tables.switches)}),
        )
        led_around = Failures.of(links)
        if self._foreseen and self._foreseen.identity == build.identity:
            led_around, self._foreseen = self._foreseen.failures, None
        elif before is not None and before_rounds is not None and links is before.links:
            led_around = before_rounds
        self._lead_around(upkeep, led_around)
        return replace(current, programs=upkeep.encoder)

    def _upkeep_in_charge(self) -> _BuildUpkeep | None:
        """The upkeep if the fabric uses its programs; None in a move, which has its own."""
        upkeep = self._upkeep
        return upkeep if self.fabric.current.programs is upkeep.encoder else None

    def _upkeep_of_switch(self, vertex: int) -> _BuildUpkeep | None:
        """The upkeep if its build is loaded and has this switch, also while a move is under way."""
        upkeep = self._upkeep
        has_switch = vertex < upkeep.build.tables.switches
        return upkeep if has_switch and self._is_loaded(upkeep) else None

    def _is_loaded(self, upkeep: _BuildUpkeep) -> bool:
        """Whether the fabric holds the build of this upkeep, or is moved from it to another one."""
        return self.fabric.identity == upkeep.build.identity

    def described(self, vertex: int, ports: bytes) -> None:
        """Take the ports that a switch has described, before its rows are read."""
        if upkeep := self._upkeep_of_switch(vertex):
            upkeep.links.described(vertex, ports, self._now())
            if upkeep.links.links_changed:  # else the next tick is soon enough
                self._react(upkeep)

    def program_read(self, vertex: int, is_held: bool) -> None:
        """Note that a switch was read to hold its program, or that it is known not to."""
        if upkeep := self._upkeep_of_switch(vertex):
            if is_held:
                upkeep.held_routes.note_in_sync(vertex)
                upkeep.links.program_held(vertex)
            else:
                upkeep.links.program_lost(vertex, self._now())

    def arrived(self, vertex: int) -> None:
        """Note that a switch has connected; its ports are not known yet."""
        if upkeep := self._upkeep_of_switch(vertex):
            upkeep.held_routes.expect([vertex])
            upkeep.links.connected(vertex, self._now())

    def leaves_unchanged(self, vertex: int, program: FlowProgram, content: SwitchContent) -> bool:
        """Whether a switch is left unchanged for now, although it does not hold its program.

        During a change a switch is not corrected by itself, since that could loop packets; nor at
        start-up, until we know whether an earlier controller died in mid-change.
        """
        upkeep = self._upkeep_in_charge()
        if (
            upkeep is None
            or not self.duties.repair
            or not content.has_marker_of(upkeep.build.identity)
        ):
            return False
        if self.rounds.busy:
            self._read_after_change.add(vertex)
            return True
        return upkeep.held_routes.collect(
            vertex,
            content,
            upkeep.encoder,
            self.fabric.present[vertex].generation,
            program,
            deadline=self._now() + self._longest_wait,
        )

    def left(self, vertex: int) -> None:
        """Note that a switch has left; a change that is not urgent is interrupted."""
        if upkeep := self._upkeep_of_switch(vertex):
            upkeep.held_routes.forget(vertex)
            upkeep.links.left(vertex, self._now())
            is_in_charge = upkeep is self._upkeep_in_charge()
            if is_in_charge and self.rounds.busy and not upkeep.has_urgent_change:
                self._interrupt(upkeep)

    def _interrupt(self, upkeep: _BuildUpkeep) -> None:
        """End the rounds of a change that is not urgent, as a switch has refused its part or left.

        A switch that has left may not have changed. All switches are read. The change goes on from
        what they hold, once the switch is back or counts as gone.
        """
        self.rounds.stop()
        upkeep.change.make_event, upkeep.change.is_interrupted = None, True
        if upkeep.change.before is not None:  # what switches have of it is read as held routes
            upkeep.repair, upkeep.failures, upkeep.held_parts = upkeep.change.before
            upkeep.encoder.set_tables(upkeep.repair.tables)
        upkeep.next_change.is_due = True
        self._delay_next_change(upkeep)
        upkeep.held_routes.expect(range(upkeep.build.tables.switches))
        self._read_after_change.update(self.fabric.present)

    def port_status(self, vertex: int, message: bytes) -> None:
        """Take a switch's report of a change of a port."""
        if upkeep := self._upkeep_of_switch(vertex):
            upkeep.links.port_status(vertex, message, self._now())
            self._react(upkeep)

    def packet_in(self, vertex: int, message: bytes) -> None:
        """Take a packet that a switch has sent to the controller: it may be one of discovery."""
        upkeep = self._upkeep_of_switch(vertex)
        if upkeep and upkeep.links.discovery:
            upkeep.links.discovery.received(vertex, message, self._now())

    def answered(self, vertex: int, turn: int) -> None:
        """Take a switch's answer to the echo request after the frames of a turn of discovery."""
        upkeep = self._upkeep_of_switch(vertex)
        discovery = upkeep.links.discovery if upkeep else None
        if discovery is None:
            return
        discovery.answered(vertex, turn)
        for direction, reader, port in discovery.next_readings():
            take_counters = partial(_take_counters, discovery.silence, direction)
            if switch := self.fabric.present.get(reader):
                switch.talk.ask(Multipart.PORT_STATS, ports_body(port), take_counters)

    def tick(self) -> None:
        """Send discovery's frames that are due, and react to the links; called at intervals.

        While the fabric is moved to another build, only discovery goes on. Switches are drained and
        return after the move, or while it waits (`detour_work`).
        """
        upkeep = self._upkeep
        if not self._is_loaded(upkeep):
            return
        links, discovery = upkeep.links, upkeep.links.discovery
        for vertex, frames in discovery.due(self._now()) if discovery else ():
            if switch := self.fabric.present.get(vertex):
                switch.talk.send(SendPriority.URGENT, frames)
        links.evaluate(self._now())
        if self._upkeep_in_charge():
            self.rounds.tick()
            links.return_switches()
        elif not links.links_changed:
            return
        self._react(upkeep)

    def _is_changing(self, upkeep: _BuildUpkeep) -> bool:
        """Whether a change of tables is being computed or sent."""
        return self.rounds.busy or upkeep.change.computing is not None

    def _is_repairing(self, upkeep: _BuildUpkeep) -> bool:
        """Whether the tables are being changed, or are to be changed."""
        return self._is_changing(upkeep) or bool(upkeep.held_routes) or upkeep.next_change.is_due

    # Reactions

    def _react(self, upkeep: _BuildUpkeep) -> None:
        """React to the links: report their events, compute other tables, send the computed change.

        While the fabric is being moved, or surveyed, only events are reported: no switch would
        change, and the tables would not be those in force any more.
        """
        links_changed = self._note_changed_links(upkeep)
        if not self._upkeep_in_charge() or self.fabric.survey is not None:
            return
        if upkeep.held_routes and not self._is_changing(upkeep):
            self._start_from_held_routes(upkeep)
        is_due = upkeep.next_change.is_due and (links_changed or upkeep.backoff.is_over)
        if is_due and not self._is_changing(upkeep) and not self._must_wait(upkeep):
            self._compute(upkeep)
        repair = self._take_computed(upkeep)
        if repair is not None:
            self._send(upkeep, repair)

    def _note_changed_links(self, upkeep: _BuildUpkeep) -> bool:
        """Report the events of the links, and make a change due if they have changed.

        Returns:
            Whether they have changed.
        """
        before = Failures.of(upkeep.links)
        have_changed, events = upkeep.links.update(self._now())
        for event in events:
            self.fabric.tell(event)
        if have_changed:
            next_change = upkeep.next_change
            # A drain after a failure does not delay the repair of the failure.
            next_change.is_urgent |= _loses_packets(upkeep, before)
            next_change.awaits_unreachable = frozenset()
            if next_change.is_urgent or not next_change.is_due:  # else it has waited for a while
                self._delay_next_change(upkeep)
            next_change.is_due |= self.duties.repair
        return have_changed

    @property
    def _longest_wait(self) -> float:
        """Most seconds that a change which is not urgent waits for switches.

        A missing switch counts as gone before they are over, also after an outage of management.
        """
        return max(self.duties.patience, self.duties.arrival, RETURN_LIMIT) + ROUND_PATIENCE

    def _delay_next_change(self, upkeep: _BuildUpkeep) -> None:
        """Have the next change wait until all switches are settled, unless it is urgent."""
        self._set_wait(upkeep.next_change, self._longest_wait, for_slow=True)
        self._set_round_patience(upkeep)

    def _set_wait(self, next_change: _NextChange, seconds: float, for_slow: bool) -> None:
        """Have the next change wait for at most so many seconds from now, unless it is urgent."""
        next_change.waits_until = -inf if next_change.is_urgent else self._now() + seconds
        next_change.waits_for_slow = for_slow

    def _set_round_patience(self, upkeep: _BuildUpkeep) -> None:
        """Have the rounds go on without slow switches if a change is urgent.

        Otherwise they wait until a slow switch answers or is disconnected.
        """
        self.rounds.patience = ROUND_PATIENCE if upkeep.has_urgent_change else inf
        if upkeep.has_urgent_change:
            self.rounds.tick()

    def _must_wait(self, upkeep: _BuildUpkeep) -> bool:
        """Whether the next change has to wait for switches."""
        next_change = upkeep.next_change
        if upkeep.held_routes:
            return True
        awaited = next_change.awaits_unreachable
        if awaited and not any(self._can_follow(upkeep, vertex) for vertex in awaited):
            return True
        has_time = self._now() < next_change.waits_until
        return has_time and self._awaits_switch(upkeep, next_change.waits_for_slow)

    def _unreachable(self, upkeep: _BuildUpkeep) -> frozenset[int]:
        """The switches that forward, as far as is known, and cannot change: they are disconnected,
        or not read yet, traffic is not to be routed around them, and links of theirs are up.
        """
        not_in_sync = set(upkeep.encoder.by_datapath_id.values()) - self.fabric.in_sync
        return frozenset(
            vertex
            for vertex in not_in_sync
            if not self._can_follow(upkeep, vertex) and upkeep.links.is_cabled(vertex)
        )

    def _can_follow(self, upkeep: _BuildUpkeep, vertex: int) -> bool:
        """Whether a switch can follow a change, or need not, as traffic is to be led around it."""
        is_read = self.fabric.state(vertex) in ("in sync", *AMISS)
        return is_read or bool(upkeep.links.drained[vertex])

    def _awaits_switch(self, upkeep: _BuildUpkeep, counts_slow: bool) -> bool:
        """Whether a switch is being read, or programmed. Switches with held routes do not count.

        Args:
            upkeep: the upkeep of the build.
            counts_slow: whether slow switches count, too, and those that are disconnected, but not
                those that count as gone.
        """
        switches = set(upkeep.encoder.by_datapath_id.values())
        for vertex in switches - upkeep.held_routes.by_vertex.keys():
            switch = self.fabric.present.get(vertex)
            if switch and switch.state in ("in sync", *AMISS):
                continue
            answers = switch is not None and not switch.connection.is_slow
            if answers or (counts_slow and not upkeep.links.avoided[vertex]):
                return True
        return False

    def _start_from_held_routes(self, upkeep: _BuildUpkeep) -> None:
        """Take the routes that switches were read to hold as the tables that are in force.

        The next change leads from there in rounds. This waits until all switches are read, or time
        is up. If a link is dead, neither absent nor slow switches are waited for.
        """
        links, far, held_routes = upkeep.links, upkeep.build.wiring.far, upkeep.held_routes
        requested, _ = links_and_switches(far, links.requested.values())
        has_failed_link = bool((links.dead & ~requested).any())
        waits = not upkeep.next_change.is_urgent and self._now() < held_routes.deadline
        if waits and self._awaits_switch(upkeep, counts_slow=not has_failed_link):
            return
        upkeep.repair = tables_as_held(upkeep.intact, upkeep.repair, held_routes.by_vertex)
        used = parts_used(upkeep.intact, held_routes.by_vertex)
        upkeep.held_parts = used.joined_with(upkeep.held_parts)
        upkeep.encoder.set_tables(upkeep.repair.tables)
        upkeep.next_change.is_due = True
        unread = held_routes.not_yet_in_sync - held_routes.by_vertex.keys()
        upkeep.next_change.ends_loop = held_routes_loop(
            upkeep.repair, held_routes.by_vertex, unread
        )
        is_broken = not upkeep.in_force.equals(upkeep.failures)
        upkeep.next_change.is_urgent |= is_broken or upkeep.next_change.ends_loop
        upkeep.next_change.awaits_unreachable = frozenset()
        self._set_wait(upkeep.next_change, ROUND_PATIENCE, for_slow=False)
        for vertex in held_routes.take():
            if switch := self.fabric.present.get(vertex):
                switch.request_reading()

    def _compute(self, upkeep: _BuildUpkeep) -> None:
        """Begin to compute tables around the present failures; few rows are computed at once."""
        failures, change = Failures.of(upkeep.links), upkeep.change
        rows = max(failures.affected_rows(upkeep.intact), len(upkeep.repair.changed_rows))
        between = partial(
            TableRepair.between,
            upkeep.repair,
            intact=upkeep.intact,
            programs=upkeep.encoder.as_now(),
            generations=self._generations(self.fabric.in_sync),
        )
        change.wanted, change.unreachable = failures, self._unreachable(upkeep)
        certain = self._failed_for_certain(upkeep.known) if change.unreachable else failures
        upkeep.next_change.awaits_unreachable = frozenset()
        change.is_interrupted = False
        work = partial(
            TableRepair.within_reach,
            between,
            failures,
            certain,
            upkeep.in_force,
            change.unreachable,
            unread=not change.unreachable.isdisjoint(upkeep.held_routes.not_yet_in_sync),
            packets_loop=upkeep.next_change.ends_loop,
        )
        upkeep.next_change.is_due, change.began = False, self.fabric.clock()
        change.is_urgent, upkeep.next_change.is_urgent = upkeep.next_change.is_urgent, False
        upkeep.next_change.ends_loop = False
        self.repairs += 1
        change.computing = (self._start if rows > ROWS_AT_ONCE else at_once)(work)

    def _take_computed(self, upkeep: _BuildUpkeep) -> TableRepair | None:
        """Take the change of tables if it is computed, and put its tables into the programs.

        Returns:
            The change; None without one that is computed.
        """
        computing = upkeep.change.computing
        if computing is None or not computing.done():
            return None
        upkeep.change.computing = None
        try:
            repair = computing.result()
        except Exception as error:  # an internal error: logged once, and tried again
            upkeep.next_change.is_due = True
            upkeep.next_change.is_urgent |= upkeep.change.is_urgent
            if upkeep.backoff.failed(error):
                raise
            return None
        upkeep.backoff.succeeded()
        unreachable_since = self._unreachable(upkeep) - upkeep.change.unreachable
        if repair and repair.changes(unreachable_since) and not upkeep.change.is_urgent:
            upkeep.next_change.is_due = True
            return None
        if repair is None or repair.failures is not upkeep.change.wanted:
            self._await_unreachable(upkeep)
        else:
            upkeep.is_told_to_wait = False
        if repair is None:
            upkeep.change.is_urgent = False
            return None
        upkeep.change.before = _TablesBefore(upkeep.repair, upkeep.failures, upkeep.held_parts)
        upkeep.repair, upkeep.failures = repair.tables, repair.failures
        upkeep.held_parts = None
        upkeep.change.make_event = repair.make_event
        upkeep.encoder.set_tables(repair.tables.tables)
        self._drop_outdated_messages(upkeep.encoder, repair)
        return repair

    def _await_unreachable(self, upkeep: _BuildUpkeep) -> None:
        """Have the rest of a change wait for the switches that could not follow it."""
        if upkeep.next_change.is_due:  # the links have changed meanwhile
            return
        unreachable = upkeep.change.unreachable
        upkeep.next_change.is_due, upkeep.next_change.awaits_unreachable = True, unreachable
        if upkeep.is_told_to_wait:
            return
        upkeep.is_told_to_wait = True
        names = self._names(unreachable)
        self.fabric.tell(ChangeWaits(len(names), first_names(names, MOST_NAMED)))

    def _send(self, upkeep: _BuildUpkeep, repair: TableRepair) -> None:
        """Begin to send the rounds of a change."""
        # Held routes were compared with the tables before the change.
        self._read_after_change.update(upkeep.held_routes.clear())
        self._set_round_patience(upkeep)
        self.rounds.send(map(self._messages, repair.rounds))

    def _drop_outdated_messages(self, encoder: Encoder, repair: TableRepair) -> None:
        """Drop the messages for switches that have got another profile or generation meanwhile.

        Such a switch numbers its rows otherwise than the messages do, so it is read instead.
        """
        in_sync = self.fabric.in_sync
        for vertex in in_sync & set().union(*repair.rounds):
            computed_for = repair.programs.profile(vertex), repair.generations[vertex]
            now = encoder.profile(vertex), self.fabric.present[vertex].generation
            if now != computed_for:
                for messages in repair.rounds:
                    messages.pop(vertex, None)
                self.fabric.present[vertex].request_reading()

    def _messages(self, messages: Round) -> Messages:
        """The messages for the switches of a round that are in sync; others are read later."""
        in_sync = self.fabric.in_sync
        for vertex, parts in messages.items():
            if vertex in in_sync:
                yield vertex, parts
                continue
            if switch := self.fabric.present.get(vertex):
                switch.request_reading()
            else:  # what it holds is not known any more
                self._upkeep.held_routes.expect([vertex])

    def _answered(self, vertex: int, outcome: ChangeOutcome) -> None:
        """Take a switch's answer to its messages of a round.

        If a switch refuses for the first time and the change is not urgent, the change is
        interrupted. Otherwise only this switch is read, and the change goes on at the others.
        """
        if outcome.committed or outcome.lost:
            return
        upkeep = self._upkeep_in_charge()
        may_interrupt = upkeep is not None and self.rounds.busy and not upkeep.has_urgent_change
        if upkeep and may_interrupt and vertex not in upkeep.change.refusing_switches:
            upkeep.change.refusing_switches.add(vertex)
            self._interrupt(upkeep)
        elif switch := self.fabric.present.get(vertex):
            switch.request_reading()

    def _finished(self) -> None:
        """Report a change whose last round is done, and read the switches that wait for its end."""
        unread, self._read_after_change = self._read_after_change, set()
        for vertex in unread:
            if switch := self.fabric.present.get(vertex):
                switch.request_reading()
        upkeep = self._upkeep_in_charge()
        if upkeep is None or upkeep.change.make_event is None:
            return
        self._report_repaired(upkeep)
        if upkeep.next_change.is_due:
            self._react(upkeep)

    def _report_repaired(self, upkeep: _BuildUpkeep) -> None:
        """Report that the change under way is in place, unless it was interrupted."""
        change = upkeep.change
        if change.make_event is not None:
            self.repair_seconds = self.fabric.clock() - change.began
            self.fabric.tell(change.make_event(seconds=self.repair_seconds))
            change.make_event = None
            change.refusing_switches.clear()

    def _failed_for_certain(self, known: _Known) -> Failures:
        """What has failed for certain, as the links of a build are now."""
        return Failures.certain(known.links, known.failures, self._now())

    def _names(self, vertices: Iterable[int]) -> list[str]:
        """The names of switches, in the order of their vertices."""
        return [self.fabric.names[vertex] for vertex in sorted(vertices)]

    def _generations(self, vertices: Iterable[int]) -> NDArray[np.int64]:
        """int64[S]: the generation of the numbers in these switches."""
        generations = np.zeros(len(self.fabric.names), np.int64)
        for vertex in vertices:
            generations[vertex] = self.fabric.present[vertex].generation
        return generations


def _loses_packets(upkeep: _BuildUpkeep, before: Failures) -> bool:
    """Whether packets are lost until the tables follow the links.

    Packets are lost if a link is broken, or a switch does not hold its program. A switch that is
    only disconnected may still forward. Packets are lost as well if a link or a switch is back that
    gives a path to switches without one: until the tables use it, these stay cut off.

    Args:
        upkeep: the upkeep of the build, with the links of now.
        before: the failures before the links changed.
    """
    now = Failures.of(upkeep.links)
    failed, in_force = Failures.broken(upkeep.links), upkeep.in_force
    if failed.exceed(in_force):
        return True
    if not before.exceed(now):
        return False
    rejoined = before.isolated_switches(upkeep.intact) - now.isolated_switches(upkeep.intact)
    return upkeep.repair.cut_off_pairs > 0 or bool(rejoined)


def _take_counters(silence: LinkSilence, direction: int, body: bytes | None) -> None:
    """Pass the received packets of a port on to `silence`; None if the switch does not answer."""
    for counters in records(body or b"", PORT_STATS):
        silence.counted(direction, int(counters["received_packets"]))


def _around(build: Build, failures: Failures) -> Build:
    """A build with tables that lead around failures."""
    if not failures:
        return build
    return replace(build, tables=failures.tables_around(IntactBuild.of(build)).tables)


def _recorded_failures(record: dict[str, Any], links: Links) -> Failures:
    """What tables led around when a record of links and switches was made.

    Args:
        record: the record, from `Keeper.links_record`.
        links: the links and switches as the record has them.
    """
    parts = links.parts_named(record)
    return Failures(*parts) if parts else Failures.of(links)


def _same_links(before: _Known, after: Build) -> bool:
    """Whether the state of links of one build is that of another, name by name.

    That is so if both builds have the same links, hosts and names, and the requested drains mean
    the same links and switches in both.
    """
    old, new = before.build.wiring, after.wiring
    same_switches = old.names == new.names and np.array_equal(old.datapath_id, new.datapath_id)
    if not (same_switches and old.same_ports(new) and np.array_equal(old.host_port, new.host_port)):
        return False
    requested = before.links.requested
    return requested == requests_of(requested, new, after.hardware)
