"""Writes to the build folder and the history in a thread, one after the other, while moves go on.

`controller.rollout.mover` adds writes, and takes their results at each tick. No move waits for a
disk that does not answer.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from concurrent.futures import Future, wait
from dataclasses import dataclass

from controller.rollout.build_history import BuildHistory
from controller.rollout.fabric_record import LONGEST_WRITE
from controller.switches.events import FileUnwritable
from controller.switches.session import LiveFabric
from controller.upkeep.background import Start
from inventory.problems import InputError

Done = Callable[[InputError | None], None]
"""Called once a write has ended, with its error, or None."""


@dataclass(slots=True)
class _Write:
    """A write that has begun."""

    result: Future[object]
    """The result of the write."""
    done: Done
    """Called with its error, or None."""
    began: float
    """When the write was requested, by the fabric's clock."""
    is_late: bool = False
    """Whether it has not ended in `LONGEST_WRITE`."""


class FileWrites:
    """The writes that have begun.

    Args:
        fabric: gets events where the disk cannot be written.
        history: the history of builds, whose folder these events name.
        start: runs writes in a thread, one after the other.

    Attributes:
        trouble: why the last write that reports its error has failed; "" if it has not.
    """

    def __init__(self, fabric: LiveFabric, history: BuildHistory, start: Start) -> None:
        self._fabric, self._history, self._start = fabric, history, start
        self._writes: deque[_Write] = deque()
        self.trouble = ""

    @property
    def is_under_way(self) -> bool:
        """Whether a write is under way, and the disk has not failed to answer in time."""
        return bool(self._writes) and not self._writes[0].is_late

    def will_call(self, done: Done) -> bool:
        """Whether a write is under way, or waits, that will call this function."""
        return any(write.done == done for write in self._writes)

    def add(self, work: Callable[[], object], done: Done) -> Future[object]:
        """Write after the writes that were added before.

        Args:
            work: writes; it may raise an InputError.
            done: called with the error, or None.
        """
        result = self._start(work)
        self._writes.append(_Write(result, done, self._fabric.clock()))
        self.take_results()
        return result

    def take_results(self) -> None:
        """Take the results of writes, in order, and report once that the disk does not answer."""
        while self._writes and self._writes[0].result.done():
            write = self._writes.popleft()
            error = write.result.exception()
            if error is not None and not isinstance(error, InputError):
                raise error
            write.done(error)
        for write in self._writes:
            if not write.is_late and self._fabric.clock() - write.began > LONGEST_WRITE:
                write.is_late = True
                if write is self._writes[0]:
                    self._report("the disk does not answer")

    def wait(self, patience: float) -> None:
        """Wait for all writes, at most so many seconds, and take their results."""
        wait([write.result for write in self._writes], patience)
        self.take_results()

    def report(self, error: InputError | None) -> None:
        """Report the error of a write, or note that there is none; a `Done`."""
        self.trouble = str(error) if error else ""
        if error:
            self._report(str(error))

    def _report(self, reason: str) -> None:
        """Report that the history, or the folder, cannot be written."""
        self._fabric.tell(FileUnwritable(str(self._history.place), reason))


def ignore_error(_: InputError | None) -> None:
    """Do nothing with the error of a write: its caller waits for the result, and sees it there."""
