"""Copies of the builds that the shared record names, in the history of each controller.

Each controller looks every `COPY_PERIOD` seconds which builds the record names: that of the fabric,
the one before it, and those of a move or a trial. It takes from the store what it has not got, and
proves it. So another controller that becomes the leader has these builds at once. It still has them
if the store has lost its data, and it can return to the build before the last move.
"""

from __future__ import annotations

from concurrent.futures import Future
from functools import partial

from controller.cluster.shared_record import read, received
from controller.cluster.store import Etcd, Unavailable
from controller.rollout.build_history import BuildHistory
from controller.rollout.fabric_record import Record
from controller.switches import events
from controller.switches.session import LiveFabric
from controller.upkeep.background import Start, in_thread

COPY_PERIOD = 5.0
"""Seconds between two readings of the record."""
COPY_RETRY = 300.0
"""Seconds after which a build is tried again that could not be copied: to prove it takes long."""


class BuildCopies:
    """Copies builds from the store to the history of this controller.

    Args:
        fabric: gets an event where a build cannot be copied, and has the clock.
        store: the store, which nobody else uses: its connection is for one thread.
        history: the builds on this machine.
        start: runs a job in a thread.
        files: runs writes to the list of the history in a thread, one after the other.
    """

    def __init__(
        self,
        fabric: LiveFabric,
        store: Etcd,
        history: BuildHistory,
        start: Start = in_thread,
        files: Start = in_thread,
    ) -> None:
        self.fabric, self.history = fabric, history
        self._store, self._start, self._files = store, start, files
        self._job: Future[Record | None] | None = None
        """The copying under way; it returns the record. None while there is none."""
        self._next_at = fabric.clock()
        """When the record is read next."""
        self._trouble = ""
        """Why a build could not be copied last; "" if all could."""

    def tick(self, follows: bool) -> None:
        """Take the result of the last copying, or begin the next one; called at intervals.

        Args:
            follows: whether another controller leads. Then the list of the builds that the fabric
                held follows the record. A leader adds to the list what it moves to.
        """
        now = self.fabric.clock()
        if self._job is None:
            if now >= self._next_at:
                self._job = self._start(partial(copy_builds, self._store, self.history))
            return
        if not self._job.done():
            return
        job, self._job = self._job, None
        self._next_at = now + COPY_PERIOD
        try:
            record = job.result()
            self._trouble = ""
        except Unavailable:
            return  # the member of the cluster reports that
        except Exception as error:
            self._next_at = now + COPY_RETRY
            if str(error) != self._trouble:
                self._trouble = str(error)
                place = str(self.history.place)
                self.fabric.tell(events.FileUnwritable(place, self._trouble))
            return
        if record is not None and not record.to:
            held = [build for build in (record.previous, record.build) if build]
            write = partial(self.history.follow, held, record.named, begins=not follows)
            self._files(write)


def copy_builds(store: Etcd, history: BuildHistory) -> Record | None:
    """Copy the builds that the record names; those that are in no place are left out.

    Returns:
        The record; None if there is none.

    Raises:
        Unavailable: the store does not answer.
        InputError: a build cannot be used, or cannot be written.
        ValueError, TypeError: the record cannot be read.
    """
    record = read(store)
    for identity in sorted(record.named) if record else ():
        if identity in history.kept_builds():
            continue
        if history.has_one_of([identity]):
            history.keep(history.read(identity))
        else:
            received(store, identity, history)
    return record
