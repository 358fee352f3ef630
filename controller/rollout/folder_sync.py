"""Keeps the controller's folder the same as the fabric's build.

The next process of the controller starts with the build of the folder. So after each move the
fabric's build is written there, in a thread (`controller.rollout.file_writes`). The other way
round, if people have put a build into the folder while no controller ran, the fabric moves to it.
`controller.rollout.mover` says which of the two has to follow, and carries out the moves.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from enum import Enum, auto
from math import inf

from controller.rollout.build_history import BuildHistory
from controller.rollout.fabric_record import FabricRecord
from controller.rollout.file_writes import FileWrites
from controller.rollout.trial import RETURN_PATIENCE
from controller.switches.session import LiveFabric
from inventory.problems import InputError

FOLDER_RETRY = 30.0
"""Seconds until a write of the folder that failed is tried again."""


class SyncState(Enum):
    """What the folder has, and what becomes of it. In all states but `SETTLED` it is stale."""

    SETTLED = auto()
    """It has the fabric's build, or one that people put there and that stays."""
    UNKNOWN = auto()
    """It has another build, and which one is not known. It is written after the next move."""
    WRITING = auto()
    """The fabric's build is being written there, in place of the stale one."""
    WAITING = auto()
    """The last write has failed, or was that of an earlier process. The next one comes later."""


class FolderSync:
    """Decides who follows whom, the folder the fabric or the fabric the folder, and writes it.

    The folder follows the fabric where it is stale (`SyncState`). The record of the fabric then
    names the folder's build, and the next process goes on with the write. The fabric follows the
    folder where `moves_to_folder` is set.

    Args:
        fabric: the fabric.
        history: the builds that the fabric held, and the controller's folder.
        record: the record of the fabric, which says whether the folder is stale.
        writes: the writes to the folder and the history.

    Attributes:
        moves_to_folder: whether the fabric is to move to the folder's build.
    """

    def __init__(
        self, fabric: LiveFabric, history: BuildHistory, record: FabricRecord, writes: FileWrites
    ) -> None:
        self._fabric, self._history = fabric, history
        self._record, self._writes = record, writes
        self._state = SyncState.SETTLED
        self._known_build = ""
        """The identity of the last stale build that was known; "" if none was."""
        self._next_write = inf
        """When the folder is written again in the state `WAITING`; inf before the first write."""
        self.moves_to_folder = False
        self._move_by = inf
        """When the move to the folder's build begins without the switches that are missing; inf
        before the first switch was read."""

    # The folder follows the fabric

    def _become(self, state: SyncState) -> None:
        """Note the state of the folder, here and in the record."""
        self._state = state
        self._record.folder_is_stale = state is not SyncState.SETTLED

    @property
    def stale_build(self) -> str:
        """The identity of the folder's build if it is stale and known; else ""."""
        return "" if self._state is SyncState.SETTLED else self._known_build

    def note_other_build(self) -> None:
        """Note that the folder has another build than the fabric has come to hold.

        If this process has written the folder before, it does so again.
        """
        if self._writes.will_call(self._take_result):
            self._become(SyncState.WRITING)
        else:
            self._become(SyncState.WAITING if self._known_build else SyncState.UNKNOWN)

    def leave_as_is(self) -> None:
        """Leave the folder's build there, although the fabric has another one: people want it."""
        self._become(SyncState.SETTLED)

    def write_later(self, stale_build: str) -> None:
        """Write the fabric's build into the folder in a while, as an earlier process could not.

        Args:
            stale_build: the identity of the build in the folder.
        """
        self._become(SyncState.WAITING)
        self._known_build = stale_build
        self._next_write = self._fabric.clock() + FOLDER_RETRY

    def write_is_due(self) -> bool:
        """Whether a write that has failed is to be tried again now: the disk may have room."""
        return self._state is SyncState.WAITING and self._fabric.clock() >= self._next_write

    def write(self, before: str, by: str, spare: Collection[str]) -> None:
        """Write the fabric's build into the folder and the history.

        Args:
            before: the identity of the build that the fabric held before.
            by: the name of the token that requested the build.
            spare: the identities of builds that the history keeps whatever their age.
        """
        # Only these builds are replaced in the folder, and only if nobody has changed it since (the
        # stamp). If earlier writes have failed, it still has the build from before these.
        is_stale = self._state is not SyncState.SETTLED
        replaceable = {before, self._known_build} if is_stale else {before}
        self._known_build = self.stale_build or before
        self._become(SyncState.WRITING)
        current, stamp = self._fabric.current, self._history.stamp()
        may_install = self._history.has_one_of(replaceable)

        def write() -> None:
            self._history.record_held(current, by, spare)
            # Not where somebody has put another build there meanwhile, or the same one again.
            if may_install:
                self._history.keep(current)
                self._history.install(current.identity, replaceable, stamp)

        self._writes.add(write, self._take_result)

    def _take_result(self, error: InputError | None) -> None:
        """Note whether the folder was written; if not, that is tried again later."""
        self._writes.report(error)
        if self._writes.will_call(self._take_result):
            return  # a later write puts another build there
        self._become(SyncState.SETTLED if error is None else SyncState.WAITING)
        self._next_write = self._fabric.clock() + FOLDER_RETRY

    # The fabric follows the folder

    def follow_folder(self) -> None:
        """Have the fabric move to the folder's build, compiled while no controller ran.

        Loaded on all switches at once it would lose packets, so the fabric moves to it in rounds.
        """
        self._become(SyncState.SETTLED)
        self.moves_to_folder, self._move_by = True, inf

    def move_is_due(self, is_in_place: Callable[[], bool]) -> bool:
        """Whether the move to the folder's build is to begin now.

        It begins once all switches are in place, or `RETURN_PATIENCE` after the first was read.

        Args:
            is_in_place: returns whether all switches hold their programs, and none of these is
                being changed.
        """
        if not self.moves_to_folder:
            return False
        now = self._fabric.clock()
        if self._fabric.in_sync:
            self._move_by = min(self._move_by, now + RETURN_PATIENCE)
        return now >= self._move_by or is_in_place()
