"""Goes on, at the start of a controller, where an earlier process of its build folder stopped.

The earlier process has left the folder, the history of builds, and maybe a journal. Where these do
not say which build the fabric holds, its switches are asked (`controller.rollout.survey`).
`controller.composition` makes the mover of a controller without a store (`mover_with_journal`); a
controller of a cluster that begins to lead without a shared record goes on by its folder, too
(`controller.cluster.cluster_member`).
"""

from __future__ import annotations

from contextlib import suppress
from functools import partial

from controller.rollout.build_history import BuildHistory
from controller.rollout.fabric_record import Record, record_from_json
from controller.rollout.move_journal import MoveJournal, journal_of
from controller.rollout.mover import Mover
from controller.switches import events
from controller.switches.session import LiveFabric
from controller.upkeep.background import Start, at_once, in_thread
from controller.upkeep.repair_keeper import Keeper
from inventory.problems import InputError


def mover_with_journal(
    fabric: LiveFabric,
    history: BuildHistory,
    keeper: Keeper,
    start: Start = in_thread,
    files: Start = at_once,
) -> Mover:
    """The mover of a controller without a store; it goes on where an earlier one was killed.

    Called before switches connect.

    Args:
        fabric: as in `Mover`.
        history: as in `Mover`.
        keeper: as in `Mover`.
        start: runs in a thread what takes long, also writes of the journal.
        files: as in `Mover`.

    Raises:
        InputError: the journal cannot be read.
    """
    journal = MoveJournal(history.folder, fabric, start)
    mover = Mover(fabric, keeper, history, journal, start=start, files=files)
    Resumption(mover, journal).begin()
    return mover


def restore_folder(history: BuildHistory) -> str:
    """Put the fabric's build into the controller's folder if the build there is damaged or gone.

    Called at the start of a controller without a store, if the folder cannot be read. The journal
    says which build the fabric has: without a journal that can be read nothing is done.

    Returns:
        What was damaged and what was done, in words; "" if nothing was done.

    Raises:
        InputError: another controller uses the folder, or the build cannot be written there.
    """
    journal = journal_of(history.folder)
    try:
        if not journal.is_file():
            return ""
        record = record_from_json(journal.read_bytes())
    except (OSError, ValueError, TypeError, RecursionError):
        return ""  # the start says what is wrong with the journal
    instead_of = record.builds | {record.folder_build}
    problem = history.restore_folder(record.build, instead_of)
    if problem is None:
        return ""
    done = f"build {record.build}, which the fabric has, is put into {history.folder} again"
    return f"{problem.file}: {problem.given}; {done}"


class Resumption:
    """What this process has found at its start, and how its mover goes on from there.

    What `begin` does:

    =======================  =======================================================================
    the journal has          the mover
    =======================  =======================================================================
    a record with a trial    surveys the switches first: the fabric may have fallen back already
    another record           goes on with the record (`_go_on`)
    no record                surveys the switches if the folder has a build that the fabric has not
                             held yet, and then moves to it; else it takes the folder's build
    nothing that is usable   surveys the switches (`_take_surveyed_build`)
    =======================  =======================================================================

    Args:
        mover: the mover.
        journal: the folder's journal.
    """

    def __init__(self, mover: Mover, journal: MoveJournal) -> None:
        self._mover, self._journal = mover, journal
        self._fabric, self._history = mover.fabric, mover.history
        self._folder_build = mover.fabric.identity
        """The identity of the folder's build."""
        self._last_build = ""
        """The identity of the build that the fabric held last, as the history says; that of the
        folder if the history has none."""
        self._folder_build_is_foreign = False
        """Whether the folder's build has none of the fabric's switches, so that the last build was
        kept instead."""

    def begin(self, shares_record: bool = False) -> None:
        """Go on where an earlier process of this folder stopped; called before switches connect.

        Without a journal, the folder may have a build that was compiled while no controller ran.

        Args:
            shares_record: whether this is a member of a cluster whose shared record is missing.
                Then the switches are asked what they hold. The folder's build counts as new only if
                the fabric never held it, as a move by another member does not change this folder.

        Raises:
            InputError: the journal cannot be read.
        """
        entries = self._history.entries()
        self._last_build = entries[-1].build if entries else self._folder_build
        record = self._journal.read()
        known_builds = {self._last_build}
        if record:
            known_builds |= {record.build, record.target, record.fallback, record.folder_build}
        self._folder_build_is_foreign = (
            self._folder_build not in known_builds and self._keeps_last_build()
        )
        if record and record.fallback:
            self._survey_trial(record)
        elif record:
            self._go_on(record)
        else:
            held = {entry.build for entry in entries} if shares_record else {self._last_build}
            is_new = bool(entries) and self._folder_build not in held
            may_follow = is_new and self._last_build in self._history.kept_builds()
            if may_follow and not self._journal.damaged and not self._folder_build_is_foreign:
                self._mover.folder_sync.follow_folder()
                self._survey()
            # Nothing is recorded before the survey is decided: another leader would believe it.
            self._mover.record.damaged |= shares_record
        if self._journal.damaged or self._mover.record.damaged:
            self._survey()

    def _keeps_last_build(self) -> bool:
        """Keep the fabric's last build where the folder's has none of its switches.

        The folder's build is then of another fabric, or of another plane of this one.

        Returns:
            Whether it was kept.
        """
        datapath_ids = set(self._fabric.current.programs.by_datapath_id)
        with suppress(InputError, LookupError):
            last = self._history.read(self._last_build)
            if datapath_ids.isdisjoint(last.programs.by_datapath_id):
                self._mover.go_on(Record(self._last_build), {self._last_build: last}.__getitem__)
                self._mover.folder_sync.leave_as_is()
                reason = (
                    f"build {self._folder_build} of the folder has none of the switches that the "
                    "fabric had; if it is for another fabric from now on, remove "
                    f"{self._history.place}"
                )
                self._fabric.tell(events.BuildKept(self._last_build, reason))
                return True
        return False

    def _go_on(self, record: Record, links_are_known: bool = False) -> None:
        """Go on with the record of an earlier process.

        The folder may have a third build, beside those of the record. If an earlier process could
        not replace it, that is tried again. If people put it there, it stays where it is of another
        fabric, else the fabric moves to it. If the record cannot be continued, the switches have to
        be surveyed, which `FabricRecord.damaged` says.

        Args:
            record: the record.
            links_are_known: as in `Mover.go_on`.
        """
        folder_sync = self._mover.folder_sync
        try:
            self._mover.go_on(record, self._history.read, links_are_known)
            if self._folder_build in (record.build, record.target):
                return
            if self._folder_build in (record.folder_build, self._last_build):
                folder_sync.write_later(self._folder_build)
            elif self._folder_build_is_foreign:
                folder_sync.leave_as_is()
            else:
                folder_sync.follow_folder()
        except InputError as error:
            reason = f"what {self._journal.file.name} says cannot be continued: {error}"
            self._fabric.tell(events.BuildKept(self._fabric.identity, reason))
            self._mover.trial, self._mover.record.damaged = None, True

    # After a survey

    def _survey(self) -> None:
        """Survey the switches."""
        self._mover.survey.begin(self._take_surveyed_build)

    def _survey_trial(self, record: Record) -> None:
        """Survey the switches before going on with the record of a trial.

        The fabric may have fallen back to the old build without a record, if the disk took none.

        Args:
            record: the record.
        """
        named_by = self._fabric.current
        with suppress(InputError, LookupError):
            if record.build != named_by.identity:
                named_by = self._history.read(record.build)
        self._mover.keeper.take_over(record.link_state, named_by.build)
        self._mover.trial = self._mover.trial_of(record, self._history.read)
        self._mover.survey.unverified_record = record
        self._survey()

    def _take_surveyed_build(self, build: str) -> None:
        """Go on after a survey, and correct all switches to the build that is the fabric's now.

        Args:
            build: the identity of the build that most switches name.
        """
        unverified_record = self._mover.survey.unverified_record
        try:
            if unverified_record is not None:
                self._go_on_unless_fallen_back(unverified_record, build)
            else:
                self._follow_survey(build)
        except InputError as error:
            self._fabric.tell(events.BuildKept(self._fabric.identity, str(error)))
        if unverified_record is None:
            self._mover.record.put_aside()
        elif self._mover.record.damaged:
            self._survey()
        for switch in self._fabric.present.values():
            switch.request_reading()

    def _follow_survey(self, build: str) -> None:
        """Make the build that most switches hold the fabric's, after a survey without a record.

        Args:
            build: the identity of the build.

        Raises:
            InputError: the build cannot be read.
        """
        folder_sync = self._mover.folder_sync
        moves_to_folder, folder_sync.moves_to_folder = folder_sync.moves_to_folder, False
        if build == self._fabric.identity:
            return
        if moves_to_folder:
            self._mover.go_on(Record(build), self._history.read)
            folder_sync.follow_folder()
        else:
            self._inherit(build)

    def _go_on_unless_fallen_back(self, unverified_record: Record, build: str) -> None:
        """Go on with the record, unless most switches name the build that the fabric fell back to.

        A switch names the build that it comes to only in the last round, so the others hold the
        round before at least.

        Args:
            unverified_record: the record that has waited for the survey.
            build: the identity of the build that most switches name.

        Raises:
            InputError: that build cannot be read.
        """
        record = self._mover.with_trial(unverified_record)
        self._mover.survey.unverified_record = self._mover.trial = None
        has_fallen_back = build == record.fallback and build != record.build
        if not has_fallen_back:
            self._go_on(record, links_are_known=True)  # `_survey_trial` has taken them over
        elif build != self._fabric.identity:
            self._inherit(build)

    def _inherit(self, build: str) -> None:
        """Take the build that the switches hold as the fabric's, and write it into the folder.

        Else the next process would load the folder's build on all switches at once.

        Args:
            build: the identity of the build, which is one of the history.

        Raises:
            InputError: it cannot be read.
        """
        mover, before = self._mover, self._fabric.current
        mover.go_on(Record(build), self._history.read)
        mover.writes.add(partial(self._history.keep, before), mover.writes.report)
        mover.write_folder(before.identity, spare=before.identity)
