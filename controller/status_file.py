"""The status file, which a thread writes: a disk that does not answer keeps no switch waiting."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import Future, wait
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from controller.upkeep.background import Start

LONGEST = 5.0
"""Seconds that the disk may take for a status until that is told."""


@dataclass(slots=True)
class StatusFile:
    """Writes one status at a time; those that come while the disk does not answer are left out."""

    path: Path
    """The file."""
    start: Start
    """Starts a write."""
    clock: Callable[[], float]
    """Seconds on a clock that is never set."""
    trouble: str = ""
    """Why the file could not be written last; "" if it could."""
    _written: str = ""
    """The status that is in the file."""
    _coming: str = ""
    """The one that is being written."""
    _write: Future[None] | None = None
    """Its write; None while there is none."""
    _began: float = 0.0
    """When that began."""

    def awaits_disk(self) -> bool:
        """Take the disk's answer if there is one; returns whether it is still awaited."""
        write = self._write
        if write is None:
            return False
        if not write.done():
            if self.clock() - self._began > LONGEST:
                self.trouble = "the disk does not answer"
            return True
        self._write, error = None, write.exception()
        if error is None:
            self._written, self.trouble = self._coming, ""
        elif isinstance(error, OSError):
            self.trouble = error.strerror or str(error)
        else:
            raise error
        return False

    def put(self, status: str, patience: float) -> None:
        """Have the file say this soon, unless an earlier status is still being written.

        patience: seconds to wait for that; a disk that answers takes less than a millisecond.
        """
        if self.awaits_disk() or status == self._written:
            return
        self._coming, self._began = status, self.clock()
        self._write = self.start(partial(_replace, self.path, status))
        wait([self._write], patience)
        self.awaits_disk()

    def wait(self, patience: float) -> None:
        """Wait until nothing is being written, for so many seconds at most."""
        if self._write is not None:
            wait([self._write], patience)


def _replace(path: Path, status: str) -> None:
    """Write the file whole."""
    part = path.with_name(f".{path.name}.part")
    part.write_text(status)
    part.rename(path)
