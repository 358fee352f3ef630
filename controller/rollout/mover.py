"""Moves a running fabric between builds, one move at a time.

`controller.rollout.resumption` makes the `Mover` of a controller without a store, and lets it go on
where an earlier process stopped. `controller.composition` calls `tick`; the management API calls
`receive`, `move`, `confirm` and `roll_back`. Each move is a `controller.rollout.rollout.Rollout`.
Beside it the mover has:

- a *record*, which says how far a move is: each step waits until its record is written
  (`controller.rollout.fabric_record`), so that another controller can go on;
- a *trial*, a move that has to be confirmed in time, else the fabric falls back to the old build
  (`controller.rollout.trial`);
- a *survey*, which reads from the switches which build they hold, after a start without a usable
  record (`controller.rollout.survey`);
- the build folder and the history, to which the fabric's build is written in a thread
  (`controller.rollout.folder_sync`);
- a *detour*, which leads the tables of a move that waits around new failures
  (`controller.rollout.move_detour`).
"""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import Future
from contextlib import suppress
from dataclasses import replace
from functools import partial
from math import inf
from time import monotonic, time
from typing import Any

from compilers.tables.build import Build
from compilers.targets.openflow.encoder import Encoder
from compilers.update.loss import pair_loss
from compilers.update.move_plan import Update, plan
from compilers.update.programs import SwitchPrograms
from compilers.update.slots import BEGINNING
from controller.rollout.build_history import LIST, BuildHistory
from controller.rollout.fabric_record import LONGEST_WRITE, FabricRecord, Record
from controller.rollout.file_writes import FileWrites, ignore_error
from controller.rollout.folder_sync import FolderSync
from controller.rollout.move_detour import MoveDetour
from controller.rollout.move_loss import loss_problem
from controller.rollout.rollout import MOST_NAMED, Rollout
from controller.rollout.survey import Survey
from controller.rollout.trial import RETURN_PATIENCE, Trial, seconds_left_of
from controller.switches import events
from controller.switches.current import Current, read_build
from controller.switches.session import LiveFabric
from controller.upkeep.background import Start, at_once
from controller.upkeep.repair_keeper import Keeper
from inventory.problems import InputError

WRITE_POLL = 0.005
"""Seconds between two checks of a request whether the write that it waits for has ended."""
SETTLE_PATIENCE = 10.0
"""Most seconds that a move waits for the end of the rounds of a repair or a drain."""
SETTLE_POLL = 0.02
"""Seconds between two checks whether the rounds of a repair or a drain have ended."""
RECEIVE_PATIENCE = 20.0
"""Most seconds without progress while a build is unpacked, proved and written."""
SWITCHES_ALLOWED = 100
"""Switches that a received build may have, however small the fabric is."""
GROWTH = 4
"""A received build may have so many times the switches of the fabric, if that is more."""


class Mover:
    """Moves a fabric to other builds.

    What the keeper knows of links and switches goes into each record, and into the tables that the
    switches of another build will hold.

    Args:
        fabric: the fabric that is moved.
        keeper: knows which links and switches are dead.
        history: the builds that the fabric held.
        record: takes the record of each step before the step.
        time_of_day: seconds since the epoch, for people, and for records of earlier versions.
        start: runs in a thread what takes long: to prove a build, and to compute detours for a move
            that waits.
        files: runs writes to the folder and the history in a thread, one after the other.
    """

    def __init__(
        self,
        fabric: LiveFabric,
        keeper: Keeper,
        history: BuildHistory,
        record: FabricRecord | None = None,
        time_of_day: Callable[[], float] = time,
        start: Start = at_once,
        files: Start = at_once,
    ) -> None:
        self.fabric, self.keeper, self.history = fabric, keeper, history
        self.rollout: Rollout | None = None
        """The last move; None if nothing had to move."""
        self.trial: Trial | None = None
        """The build on trial that the fabric holds or is moved to; None without one."""
        self.by = ""
        """The name of the token that requested the last move."""
        self.record = record or FabricRecord()
        """The record of the fabric, in a store."""
        self.survey = Survey(fabric, history)
        """The survey of what the switches hold."""
        self.writes = FileWrites(fabric, history, files)
        """The writes to the folder and the history."""
        self.folder_sync = FolderSync(fabric, history, self.record, self.writes)
        """Whether the folder follows the fabric, or the fabric the folder."""
        self._start, self._time_of_day = start, time_of_day
        self._detour = MoveDetour(keeper, start)
        """Leads the tables of a move that waits around new failures."""
        self._wait_reported = False
        """Whether an event has said that the next step waits for its record."""
        self._prepared: list[str] = []
        """The identities of builds that are being written to the history, to move to them."""
        self._last_record = Record(fabric.identity)
        """The record of the last step, without what `ensure_recorded` adds."""
        self._planned_around: dict[str, Any] = {}
        """The state of links and switches when the last move was planned, as the keeper records it.
        A successor plans the move again, and has to come to the same plan."""
        self._previous = ""
        """The identity of the build that the fabric held before its last move; "" if that is not
        known."""
        self._first_build_noted = False
        """Whether the build that the fabric came to hold first is in the history."""
        self._majority_since = inf
        """Since when most switches have been in sync; inf while they are not."""

    @property
    def busy(self) -> bool:
        """Whether a move is in progress."""
        return self.rollout is not None and not self.rollout.over

    def status(self) -> dict[str, Any] | None:
        """The progress of the last move, and a build on trial; None if there is neither."""
        return self.progress() if self.rollout or self.trial else None

    def progress(self) -> dict[str, Any]:
        """The progress of the last move; the state is "none" if there was none."""
        no_move = {"state": "none", "build": self.fabric.identity}
        progress = self.rollout.status() if self.rollout else no_move
        if progress["state"] == "done" and self.writes.is_under_way:
            progress["state"] = "writing"
        trial: dict[str, Any] = {"before": "", "until": None}
        if self.trial:
            seconds_left = self.trial.ends - self.fabric.clock()
            trial = {
                "before": self.trial.fallback,
                "until": round(self._time_of_day() + seconds_left),
            }
        return progress | trial | {"waits_for": self.waits_for, "unwritten": self.writes.trouble}

    @property
    def waits_for(self) -> str:
        """What the next step has waited for, for long: switches, or a store that does not write; ""
        if there is nothing.
        """
        rollout = self.rollout
        if rollout is None or not self.busy or rollout.seconds_waiting <= LONGEST_WRITE:
            return ""
        return rollout.awaited or self.record.where

    def require_settled(self) -> None:
        """Refuse where a move is in progress, or a build is on trial.

        Raises:
            InputError: it is.
        """
        self._require_idle()
        if self.trial:
            raise InputError.of(
                required="a fabric whose build is confirmed",
                given=f"build {self.fabric.identity} on trial",
                todo="confirm it, or roll it back",
            )

    def _require_idle(self) -> None:
        """Refuse where a move is in progress, or a survey.

        Raises:
            InputError: it is.
        """
        if self.busy:
            raise InputError.of(
                required="a fabric without a move in progress",
                given="one that moves to a build",
            )
        if self.fabric.survey is not None:
            raise InputError.of(
                "a fabric that was read",
                "one whose switches are asked what they hold",
                "wait 30 s; if none of the switches that connect is of the folder's build, restart "
                "the controller with the right folder",
            )

    def move(
        self,
        target: Current,
        accept_loss: bool = False,
        by: str = "",
        within: float = 0.0,
        all_or_none: bool = True,
    ) -> None:
        """Move to a build, round by round; for the current build, read all switches again.

        `prepare` comes before it, and checks the copies of both builds in the history.

        Args:
            target: the build.
            accept_loss: whether pairs may lose packets if that is unavoidable.
            by: the name of the token that requests it.
            within: seconds in which the move has to be confirmed, else the fabric falls back; 0:
                no confirmation.
            all_or_none: whether all switches have to be in sync; else those that are not are left
                out of the rounds, if traffic can be led around them.

        Raises:
            InputError: a move is in progress, the current build is on trial, the build has none of
                the connected switches, pairs would lose packets, or no order is safe.
        """
        self.require_settled()
        keep = partial(self.history.keep_both, are_checked=True)
        if target.identity != self.fabric.identity and within:
            fallback = self.fabric.current
            self.trial = self._new_trial(target.identity, fallback.identity, within, fallback)
        try:
            self._move(target, accept_loss, by, all_or_none, keep)
        except InputError:
            self.trial = None
            raise

    def _move(
        self,
        target: Current,
        accept_loss: bool,
        by: str,
        all_or_none: bool,
        keep: Callable[[Current, Current], None],
        needs_most: bool = False,
        is_return: bool = False,
    ) -> None:
        """Begin a move.

        Args:
            target: the build.
            accept_loss: as in `move`.
            by: as in `move`.
            all_or_none: as in `move`.
            keep: writes the builds before and after the move to the history.
            needs_most: whether it waits until more than half of the switches are connected.
            is_return: whether it returns to an earlier build. Then it begins although a switch
                forwards that it cannot change.
        """
        ends_trial = self.trial is not None and target.identity == self.trial.fallback
        if not ends_trial and self.fabric.is_of_others(target):
            connected = len(self.fabric.present)
            raise InputError.of(
                "a build of this fabric",
                f"build {target.identity}, which has none of the {connected} connected switches",
                "name the build's own controller, if it is of another fabric or plane",
            )
        if misnamed := self.fabric.misnamed(target):
            required = "names in the new build that the certificates of its switches have"
            raise InputError.of(
                required, f"{', '.join(misnamed[:MOST_NAMED])}, which none of them has"
            )
        old, new = _with_current_tables(self.fabric.current), target.build
        if old is None or new is None or target.identity == self.fabric.identity:
            self.by, self.rollout = by, None
            self.folder_sync.moves_to_folder = False
            self.fabric.load(target)
            return
        self._planned_around = self.keeper.links_record()
        update = plan(old, self.keeper.foresee(new))
        if not accept_loss and not (lost := pair_loss(update)).loses_nothing:
            raise InputError(loss_problem(lost))
        keep(self.fabric.current, target)
        self._first_build_noted = True
        self.by, self.folder_sync.moves_to_folder = by, False
        self.ensure_recorded(Record(self.fabric.identity, target.identity, BEGINNING))
        self.rollout = Rollout(
            self.fabric,
            self._programs_of(update),
            target,
            self.ensure_recorded,
            all_or_none=all_or_none,
            needs_most=needs_most,
            accepts_absent=is_return,
        )

    def settle(self, pause: Callable[[float], object]) -> None:
        """Wait for a while until the rounds of a repair or a drain have ended.

        A move that begins between them would correct each switch as it is read, in no order.

        Args:
            pause: lets other work go on for so many seconds.

        Raises:
            InputError: a move is in progress that does not wait for switches.
        """
        if self.rollout and self.rollout.awaited:
            return
        self._require_idle()
        until = self.fabric.clock() + SETTLE_PATIENCE
        while not self.keeper.is_settled and self.fabric.clock() < until:
            pause(SETTLE_POLL)

    def prepare(self, target: Current, pause: Callable[[float], object]) -> None:
        """Write the builds before and after a move to the history, so that `move` need not.

        A damaged copy is written again, or the fabric could not return to that build.

        Then wait for the end of the rounds of a repair or a drain.

        Args:
            target: the build after it.
            pause: lets other work go on for so many seconds, while the disk writes.

        Raises:
            InputError: as `move`, the builds cannot be written in time, or the tables are still
                being changed.
        """
        self.require_settled()
        current = self.fabric.current
        if current.build is None or target.identity == current.identity:
            return
        self._prepared.append(target.identity)
        try:
            write = self.writes.add(partial(self.history.keep_both, current, target), ignore_error)
            required = "a history that can be written before a move"
            self._await(write, pause, LONGEST_WRITE, required)
        finally:
            self._prepared.remove(target.identity)
        write.result()
        self.settle(pause)
        if self.keeper.holds_mixture:
            raise InputError.of(
                "a fabric whose tables are in place",
                "one whose switches are still changing to other tables",
                "ask again when these are in place; `polarfab status` names the disconnected "
                "switches that they wait for",
            )

    @property
    def most_switches(self) -> int:
        """The most switches that a received build may have, planned nodes among them."""
        return max(SWITCHES_ALLOWED, GROWTH * len(self.fabric.names))

    def receive(
        self,
        data: bytes,
        unverified: bool = False,
        pause: Callable[[float], object] = lambda _: None,
    ) -> Current:
        """Prove a build that was received, and write it to the history, to move to it.

        Args:
            data: the build as an archive.
            unverified: whether it is accepted although it cannot be proved.
            pause: lets other work go on for so many seconds, while a thread proves the build.

        Raises:
            InputError: a move is in progress, or a build is on trial; the archive is no build, its
                build loses packets or has more switches than this fabric can grow to; or the build
                cannot be written in time.
        """
        self.require_settled()
        spare = {*self._prepared, *self._spared_builds}
        tidy = self.writes.add(partial(self.history.remove_refused, spare), ignore_error)
        self._await(tidy, pause, LONGEST_WRITE, "a history that can be written")
        tidy.result()
        last_progress = self.fabric.clock()

        def note_progress() -> None:
            nonlocal last_progress
            last_progress = self.fabric.clock()

        # Not in the queue of writes: a proof may take minutes, and a fall back writes meanwhile.
        receive = partial(
            self.history.receive, data, unverified, note_progress, switches=self.most_switches
        )
        received: Future[Current] = self._start(receive)
        self._await(
            received,
            pause,
            RECEIVE_PATIENCE,
            "a disk that takes the build, and a proof that makes progress",
            "a disk that does not answer, or a proof that takes too long",
            lambda: last_progress,
        )
        return received.result()

    def _await(
        self,
        work: Future[Any],
        pause: Callable[[float], object],
        patience: float,
        required: str,
        given: str = "a disk that does not answer",
        last_progress: Callable[[], float] = lambda: -inf,
    ) -> None:
        """Wait until a thread has done its work.

        Args:
            work: the thread's work.
            pause: lets other work go on for so many seconds.
            patience: most seconds from now, and from the thread's last progress.
            required: what is missing if it takes longer, for the error.
            given: what there is in its place, for the error.
            last_progress: returns when the thread has last made progress.

        Raises:
            InputError: it takes longer.
        """
        began = self.fabric.clock()
        while not work.done():
            if self.fabric.clock() > max(began, last_progress()) + patience:
                place = str(self.history.place)
                raise InputError.of(required, given, file=place)
            pause(WRITE_POLL)

    def packed(self, identity: str) -> bytes:
        """The archive of the build that the switches hold.

        This only reads files, so it may run in a thread.

        Raises:
            InputError: the folder has another build.
        """
        packed = self.history.packed(identity)
        if packed is None:
            given = f"no build {identity} in {self.history.folder}"
            raise InputError.of("the running build in its folder", given)
        return packed

    def confirm(self) -> None:
        """End the trial, and keep its build.

        Raises:
            InputError: there is no trial, or a move is in progress.
        """
        if self.busy or self.trial is None or self.survey.unverified_record is not None:
            given = "none" if self.trial is None else "a move in progress, or one to be read"
            raise InputError.of("a build on trial", given, "`confirm_within` begins a trial")
        self.trial = None
        self.record_state()

    def record_state(self) -> bool:
        """Start writing the current record unless it is stored; returns whether it is stored."""
        return self.ensure_recorded(
            self._last_record if self.busy else Record(self.fabric.identity)
        )

    def finish(self, patience: float) -> None:
        """Write the current record at the end of the process, for so many seconds at most."""
        until = monotonic() + patience
        self.writes.wait(patience)
        while not self.record_state() and self.record.wait(until - monotonic()):
            pass  # the write of an earlier record was waited for

    def records_links(self) -> bool:
        """Whether the stored record has all dead links and drains; if not, start writing it."""
        return self.record_state() and self.record.has_link_state(self.keeper.links_record())

    def roll_back(self, build: str = "", by: str = "") -> None:
        """Return to a build of the history; a trial ends once the fabric holds it.

        The build before a move that waits for switches is the build that it left.

        Args:
            build: the build's identity; "" for the build before.
            by: the name of the token that requests it.

        Raises:
            InputError: it is not kept, a move is in progress, or no order of rows is safe.
        """
        rollout = self.rollout
        if rollout and rollout.state == "forth" and rollout.awaited and not build:
            rollout.reason = f"undone by {by}"
            return
        self._require_idle()
        trial = self.trial
        identity = build or (trial.fallback if trial else self._previous)
        identity = identity or self.history.previous_build(self.fabric.identity)
        if trial and identity == trial.fallback and trial.fallback_build:
            target = trial.fallback_build  # it need not be read: the disk may hang
        else:
            target = self.history.read(identity)
        needs_most = trial is not None and trial.held_by_most
        self._move(
            target,
            True,
            by,
            all_or_none=False,
            keep=self._keep_later,
            needs_most=needs_most,
            is_return=True,
        )

    def ensure_recorded(self, record: Record) -> bool:
        """Add the trial, dead links and drains to a record; start writing it unless it is stored.

        In a move, these are the dead links and drains that it was planned around.

        Returns:
            Whether the next step may be taken: the record is stored, or need not be.
        """
        self._last_record = record
        if self.survey.unverified_record is not None:
            return self.record.ensure_stored(self.with_trial(self.survey.unverified_record))
        record = replace(
            record,
            link_state=self._planned_around if record.target else self.keeper.links_record(),
            folder_build=self.folder_sync.stale_build,
            previous=self._previous,
        )
        record = self.with_trial(record)
        return self.record.ensure_stored(record, self._leads_back(record))

    def with_trial(self, record: Record) -> Record:
        """A record with the trial, if there is one."""
        return self.trial.added_to(record, self.fabric.clock()) if self.trial else record

    def _leads_back(self, record: Record) -> bool:
        """Whether the next step leads back to the last build that was confirmed.

        Such a step does not wait for the disk.
        """
        return self.trial is not None and self.trial.step_leads_back(record, self.fabric.clock())

    def _new_trial(
        self, build: str, fallback: str, seconds: float, fallback_build: Current | None
    ) -> Trial:
        """A trial of so many seconds from now."""
        time_of_day = round(self._time_of_day() + seconds, 3)
        return Trial(build, fallback, self.fabric.clock() + seconds, time_of_day, fallback_build)

    def go_on(
        self, record: Record, read: Callable[[str], Current], links_are_known: bool = False
    ) -> None:
        """Go on where an earlier controller stopped; called before switches connect.

        Args:
            record: the record that it left.
            read: returns a build by its identity.
            links_are_known: whether the keeper has taken over the links and switches of the record
                before. They may have changed since, so the record must not bring them back.

        Raises:
            InputError: a build cannot be had, or no order of rows is safe.
        """
        current = self.fabric.current
        old, new = (
            current if name == current.identity else read(name)
            for name in (record.build, record.target or record.build)
        )
        if not links_are_known:
            self.keeper.take_over(record.link_state, old.build)
        trial = self.trial_of(record, read)
        update = self._plan_again(record, old, new) if record.target else None
        self._last_record, self._previous = record, record.previous
        self.trial = trial
        if current.identity not in (record.build, record.target):
            self.folder_sync.note_other_build()
            self.fabric.tell(events.BuildInherited(record.target or record.build, current.identity))
        if old is not current:
            self.fabric.load(old)
        if links_are_known:
            self.keeper.take_over_tables(record.link_state)
        elif old is not current:
            self.keeper.take_over(record.link_state)  # by the names of its own build
        self._planned_around = record.link_state
        if update is None:
            return
        if record.round >= update.last_round:
            self.fabric.load(new)
            self._previous = old.identity
            self.write_folder(old.identity)
        elif record.direction == "forth" or record.round > 0:
            self.rollout = Rollout(
                self.fabric, self._programs_of(update), new, self.ensure_recorded, record
            )

    def _programs_of(self, update: Update) -> SwitchPrograms:
        """The programs of switches in a move; they send LLDP frames as before and after it."""
        return SwitchPrograms(update, self.keeper.duties.discover)

    def trial_of(self, record: Record, read: Callable[[str], Current]) -> Trial | None:
        """The trial of a record; None if it has none."""
        if not record.fallback:
            return None
        seconds, fallback_build = seconds_left_of(record, self._time_of_day()), None
        with suppress(InputError, LookupError):
            is_current = record.fallback == self.fabric.identity
            fallback_build = self.fabric.current if is_current else read(record.fallback)
        build = record.target if record.build == record.fallback else record.build
        trial = self._new_trial(build, record.fallback, seconds, fallback_build)
        trial.held_by_most = record.trial_held
        return trial

    def _plan_again(self, record: Record, old: Current, new: Current) -> Update:
        """Plan a move of an earlier controller as it was planned, around what was dead or drained.

        The switches hold such rows.

        Args:
            record: the record that it left.
            old: the build that the move leaves.
            new: the build that it leads to.
        """
        if old.build is None or new.build is None:
            raise ValueError("a move needs two builds")
        return plan(*self.keeper.foresee_move(record.link_state, old.build, new.build))

    def tick(self) -> None:
        """Take the next steps of a move, a trial or a survey; called a few times a second."""
        self.writes.take_results()
        if damage := self.history.take_damage_report():
            self.fabric.tell(events.HistoryDamaged(str(self.history.place / LIST), damage))
        for file, damage in self.history.take_damaged_copies():
            self.fabric.tell(events.CopyDamaged(file, damage))
        self.survey.tick()
        if self.rollout is not None and not self.rollout.over:
            self.rollout.tick()
            self._undo_overdue_move(self.rollout)
            self._report_wait(self.rollout)
            link_state = self._detour.tick(self.rollout)
            if link_state is not None:
                self._planned_around = link_state
                self._last_record = self.rollout.last_step
            if self.busy and self.rollout.has_detour:
                self.record_state()
            if self.rollout.state == "done":
                self._previous = self.rollout.status()["from"]
                self.write_folder(self._previous)
        if not self.busy:
            if self.trial and self.trial.build == self.fabric.identity and self._most_are_in_sync:
                self.trial.held_by_most = True
            self._tick_between_moves()

    def _undo_overdue_move(self, rollout: Rollout) -> None:
        """Undo a move whose trial is over while its next round waits for the disk."""
        trial = self.trial
        if trial is None or rollout.over or rollout.target.identity == trial.fallback:
            return
        waits_for_disk = rollout.seconds_waiting > LONGEST_WRITE and not rollout.awaited
        is_overdue = waits_for_disk and trial.is_over(self.fabric.clock())
        if is_overdue and not rollout.reason:
            rollout.reason = "not confirmed in time, as the next round could not be written down"
            self.fabric.tell(events.TrialOver(rollout.target.identity, trial.fallback))

    def _report_wait(self, rollout: Rollout) -> None:
        """Report once that the next step waits for its record, until it has been taken."""
        if self.waits_for and not self._wait_reported:
            status = rollout.status()
            build, round, rounds = status["to"], status["round"], status["rounds"]
            self.fabric.tell(events.MoveWaits(build, self.waits_for, round, rounds))
        self._wait_reported = bool(self.waits_for)

    def _tick_between_moves(self) -> None:
        """Do what is due between moves: write builds and the record, begin a move to the folder's
        build, and end a trial whose time is over.
        """
        if not self._first_build_noted and self._is_held():
            self._first_build_noted = True
            keep = partial(self._keep_first, self.fabric.current, self._spared_builds)
            self.writes.add(keep, self.writes.report)
        if self.survey.unverified_record is not None:
            self.record_state()
            return
        may_move = self.fabric.survey is None and not self.keeper.holds_mixture
        if may_move and self.folder_sync.move_is_due(self._is_in_place):
            self._prepare_move_to_folder()
        if self.trial and self.fabric.identity != self.trial.build:
            self.trial = None
        if self.folder_sync.write_is_due():
            self.write_folder(self.folder_sync.stale_build)
        if self.record_state() and self.trial:
            self._fall_back_in_time(self.trial)

    def _is_in_place(self) -> bool:
        """Whether all switches hold their programs, and none of these is being changed."""
        return self.fabric.complete and self.keeper.is_settled

    @property
    def _most_are_in_sync(self) -> bool:
        """Whether more than half of the switches were read to hold their program."""
        return 2 * len(self.fabric.in_sync) > self.fabric.expected

    def _is_held(self) -> bool:
        """Whether all switches hold the build, or most have held it for `RETURN_PATIENCE`.

        Some may be absent for days.
        """
        fabric = self.fabric
        since = min(self._majority_since, fabric.clock())
        self._majority_since = since if self._most_are_in_sync else inf
        return fabric.complete or fabric.clock() >= self._majority_since + RETURN_PATIENCE

    def _prepare_move_to_folder(self) -> None:
        """Read the folder's build, and write it to the history, to move to it."""
        fabric = self.fabric
        self.folder_sync.moves_to_folder = False
        current = fabric.current
        try:
            target = read_build(self.history.folder, self.history.unverified)
        except InputError as error:
            fabric.tell(events.BuildKept(fabric.identity, str(error)))
            return
        keep = partial(self.history.keep_both, current, target)
        self.writes.add(keep, partial(self._move_to_folder, current, target))

    def _move_to_folder(self, current: Current, target: Current, error: InputError | None) -> None:
        """Begin the move to the folder's build, unless another move came first.

        Args:
            current: the build before it.
            target: the folder's build.
            error: why both could not be written to the history; None if they were.
        """
        fabric = self.fabric
        if self.busy or fabric.current is not current:
            return
        if self.keeper.holds_mixture:
            self.folder_sync.moves_to_folder = True  # later
            return
        try:
            if error is not None:
                raise error
            self.move(target, True, "the folder, at a start", all_or_none=False)
            fabric.tell(events.FolderFollowed(target.identity, current.identity))
        except InputError as error:
            fabric.tell(events.BuildKept(fabric.identity, str(error)))

    def _fall_back_in_time(self, trial: Trial) -> None:
        """Fall back once the time of the trial is over; report once why that is refused."""
        fabric = self.fabric
        # If most have held the build on trial and are away, then management is: the fabric forwards
        # meanwhile. A move would come to each switch as it returns, and not in rounds.
        if trial.held_by_most and 2 * len(fabric.present) <= fabric.expected:
            return
        if not trial.should_fall_back(fabric.clock(), self._is_in_place):
            return
        try:
            self.roll_back(by="not confirmed")
        except InputError as error:
            if trial.refusal != str(error):
                trial.refusal = str(error)
                fabric.tell(events.ReturnRefused(trial.build, trial.fallback, trial.refusal))
            return
        fabric.tell(events.TrialOver(trial.build, trial.fallback))

    @property
    def _spared_builds(self) -> set[str]:
        """The builds that the history keeps whatever their age: that before a trial, and that
        before the last move.
        """
        fallback = self.trial.fallback if self.trial else ""
        return {fallback, self._previous} - {""}

    def _keep_first(self, current: Current, spare: set[str]) -> None:
        """List the first build that the fabric holds in the history, and keep it there.

        The folder may have another build by the next move.

        Args:
            current: the build.
            spare: builds that the history keeps whatever their age.
        """
        self.history.record_held(current, "", spare)
        self.history.keep(current)

    def _keep_later(self, old: Current, target: Current) -> None:
        """Write the builds before and after a return to the history; the return does not wait."""
        self.writes.add(partial(self.history.keep_both, old, target), self.writes.report)

    def write_folder(self, before: str, spare: str = "") -> None:
        """Write the fabric's build into the folder and the history.

        Args:
            before: the identity of the build that the fabric held before.
            spare: the identity of a build that the history keeps whatever its age; "" for none.
        """
        self.folder_sync.write(before, self.by, {spare, *self._spared_builds})


def _with_current_tables(current: Current) -> Build | None:
    """The build with its current tables: repaired, and with shifted weights."""
    return current.programs.build if isinstance(current.programs, Encoder) else current.build
