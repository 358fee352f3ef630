"""Copies of the builds that the shared record names, in the history of each controller.

Each controller looks every `COPY_PERIOD` seconds which builds the record names: that of the fabric,
the one before it, and those of a move or a trial. It takes from the store what it has not got, and
proves it. So another controller that becomes the leader has these builds at once. It still has them
if the store has lost its data, and it can return to the build before the last move.
"""

from __future__ import annotations

import zlib
from concurrent.futures import Future
from functools import partial
from typing import NamedTuple

from controller.cluster.shared_record import read_record, receive_build
from controller.cluster.store import Etcd, Unavailable
from controller.rollout.build_history import BuildHistory
from controller.rollout.fabric_record import Record
from controller.switches import events
from controller.switches.session import LiveFabric
from controller.upkeep.background import Start, in_thread
from inventory.problems import InputError

COPY_PERIOD = 5.0
"""Seconds between two readings of the record."""
COPY_RETRY = 300.0
"""Seconds after which a build is tried again that could not be copied: to prove it takes long."""


class CopyResult(NamedTuple):
    """The result of one round of copying."""

    record: Record | None
    """The record; None if there is none, or if it cannot be read."""
    fault: str
    """Why a build could not be copied, or the record not be read; "" if all could."""


class BuildCopies:
    """Copies builds from the store to the history of this controller.

    Args:
        fabric: gets an event where a build cannot be copied, and has the clock.
        store: the store, which nobody else uses: its connection is for one thread.
        history: the builds on this machine.
        start: runs a job in a thread.
        start_write: runs a write to the list of the history in a thread; writes run one after the
            other.

    Attributes:
        found_record: whether the store has had a record.
    """

    def __init__(
        self,
        fabric: LiveFabric,
        store: Etcd,
        history: BuildHistory,
        start: Start = in_thread,
        start_write: Start = in_thread,
    ) -> None:
        self.fabric, self.history = fabric, history
        self._store, self._start, self._start_write = store, start, start_write
        self.found_record = False
        self._copying: Future[CopyResult] | None = None
        """The round of copying under way; None while there is none."""
        self._list_write: Future[None] | None = None
        """The write to the list of the history under way; None while there is none."""
        self._next_at = fabric.clock()
        """When the record is read next."""
        self._fault = ""
        """The fault of the last round; "" if it had none."""
        self._reported_faults: set[str] = set()
        """Why builds could not be copied or listed, as was reported since both worked last."""

    def tick(self, is_follower: bool) -> None:
        """Take the next step of a round of copying; called at intervals.

        A round has three steps: the builds are copied in a thread; the result is taken, and builds
        that the record says the fabric has held are added to the list of the history, also in a
        thread; the next round begins at `_next_at`.

        Args:
            is_follower: whether another controller leads. A leader adds to the list itself what it
                moves to, so here builds are added only while the list is empty.
        """
        if self._list_write is not None:
            if not self._list_write.done():
                return
            error, self._list_write = self._list_write.exception(), None
            self._report(str(error) if error else self._fault)
        if self._copying is None:
            if self.fabric.clock() >= self._next_at:
                self._copying = self._start(partial(copy_builds, self._store, self.history))
        elif self._copying.done():
            copying, self._copying = self._copying, None
            self._take_copies(copying, is_follower)

    def _take_copies(self, copying: Future[CopyResult], is_follower: bool) -> None:
        """Take the result of a round of copying, and list the builds that the fabric has held.

        Args:
            copying: the round, which has ended.
            is_follower: whether another controller leads.
        """
        now = self.fabric.clock()
        self._next_at = now + COPY_PERIOD
        try:
            record, self._fault = copying.result()
        except Unavailable:
            return  # the member of the cluster reports that
        if self._fault:
            self._next_at = now + COPY_RETRY
            self._report(self._fault)
        self.found_record |= record is not None
        if record is not None and not record.target:  # no move is under way
            held = [build for build in (record.previous, record.build) if build]
            write = partial(
                self.history.record_held_elsewhere,
                held,
                record.named,
                only_if_empty=not is_follower,
            )
            self._list_write = self._start_write(write)

    def _report(self, fault: str) -> None:
        """Report a fault once until there is none ("")."""
        if not fault:
            self._reported_faults.clear()
        elif fault not in self._reported_faults:
            self._reported_faults.add(fault)
            self.fabric.tell(events.FileUnwritable(str(self.history.place), fault))


def copy_builds(store: Etcd, history: BuildHistory) -> CopyResult:
    """Copy the builds that the record names; builds that the store has not got are skipped.

    If a build cannot be used, or cannot be written, the others are copied all the same.

    Raises:
        Unavailable: the store does not answer.
    """
    try:
        record = read_record(store)
    except (ValueError, TypeError, RecursionError) as error:
        return CopyResult(None, f"the store's record cannot be read: {error!r}")
    fault = ""
    for identity in sorted(record.named) if record else ():
        try:
            _copy(identity, store, history)
        except (InputError, OSError, ValueError, zlib.error) as error:
            fault = fault or f"build {identity} of the store: {error}"
    return CopyResult(record, fault)


def _copy(identity: str, store: Etcd, history: BuildHistory) -> None:
    """Copy a build to the history unless it is there undamaged: from the folder, else the store."""
    if history.has_undamaged(identity):
        return
    if history.folder_build == identity:
        history.keep(history.read(identity))
    else:
        receive_build(store, identity, history)
