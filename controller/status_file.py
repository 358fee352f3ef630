"""Writes the status file in a thread, so that no switch waits for a disk that does not answer.

`controller.reporter` passes the status, a JSON text. The file is replaced in one step, so it always
has a complete status.
"""

from __future__ import annotations

import errno
from collections.abc import Callable
from concurrent.futures import Future, wait
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from controller.upkeep.background import Start

MISNAMED = frozenset(
    {
        errno.ENOENT,
        errno.ENOTDIR,
        errno.EISDIR,
        errno.EACCES,
        errno.EPERM,
        errno.ENAMETOOLONG,
        errno.ELOOP,
    }
)
"""Errors of a path that the user has to change. A disk may fail by others."""
LONGEST_WRITE = 5.0
"""Seconds after which a write that has not ended counts as a failure of the disk."""


@dataclass(slots=True)
class StatusFile:
    """Writes one status at a time; a status that comes while another is written is dropped."""

    path: Path
    """The file."""
    start: Start
    """Runs a write, in a thread or at once."""
    clock: Callable[[], float]
    """Seconds on a monotonic clock."""
    trouble: str = ""
    """Why the file could not be written last; "" if it could."""
    is_misnamed: bool = False
    """Whether it could not since its path can name no file, or none that we may write."""
    _written: str = ""
    """The status that is in the file."""
    _status_in_write: str = ""
    """The status that is being written."""
    _write: Future[None] | None = None
    """The write under way; None while there is none."""
    _write_start: float = 0.0
    """When the write under way began, by `clock`."""

    def is_writing(self) -> bool:
        """Whether a write is still under way, after taking the result of one that has ended."""
        self._take_result()
        return self._write is not None

    def _take_result(self) -> None:
        """Take the result of the write under way, or note that it takes too long."""
        write = self._write
        if write is None:
            return
        if not write.done():
            if self.clock() - self._write_start > LONGEST_WRITE:
                self.trouble = "the disk does not answer"
            return
        self._write, error = None, write.exception()
        if error is None:
            self._written, self.trouble, self.is_misnamed = self._status_in_write, "", False
        elif isinstance(error, OSError):
            self.trouble = error.strerror or str(error)
            self.is_misnamed = error.errno in MISNAMED
        else:
            raise error

    def put(self, status: str, patience: float) -> None:
        """Begin to write a status, unless an earlier one is still being written.

        Args:
            status: the status.
            patience: most seconds to wait for the end of the write. A disk that works takes less
                than a millisecond.
        """
        if self.is_writing() or status == self._written:
            return
        self._status_in_write, self._write_start = status, self.clock()
        self._write = self.start(partial(_replace, self.path, status))
        wait([self._write], patience)
        self._take_result()

    def wait(self, patience: float) -> None:
        """Wait for the end of the write under way, at most so many seconds."""
        if self._write is not None:
            wait([self._write], patience)


def _replace(path: Path, status: str) -> None:
    """Write the file under another name, then rename it: readers never see a part."""
    part = path.with_name(f".{path.name}.part")
    part.write_text(status)
    part.rename(path)
