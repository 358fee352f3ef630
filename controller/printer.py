"""The printer of a controller's output: a thread, so that nobody who reads it holds up a repair.

A terminal whose user has typed Ctrl-S takes nothing, nor does a pipe whose reader stands still, and
a log file may be on a full disk. Then lines wait, and beyond `MOST_LINES` further ones are left
out; switches are served and repaired all the same.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from queue import SimpleQueue
from threading import Event, Thread
from time import monotonic

MOST_LINES = 10_000
"""Lines that may wait."""
LONGEST = 5.0
"""Seconds that a line may take until it counts as not printed."""


class Printer:
    """Prints lines one after the other, in a thread that ends with the process.

    write: prints a line, however long that takes.
    """

    def __init__(self, write: Callable[[str], None]) -> None:
        self._write = write
        self._lines: SimpleQueue[str | Event] = SimpleQueue()
        self._refused = ""
        self._since: float | None = None
        """When the line was begun that is printed now; None while there is none."""
        Thread(target=self._work, daemon=True, name="printer").start()

    def __call__(self, line: str) -> None:
        """Print a line soon; it is left out if too many wait."""
        if self._lines.qsize() < MOST_LINES:
            self._lines.put(line)

    @property
    def trouble(self) -> str:
        """Why nothing can be printed now; "" while that works."""
        since = self._since
        if since is not None and monotonic() - since > LONGEST:
            return "nobody takes the output"
        return self._refused

    def finish(self, patience: float) -> None:
        """Wait until all lines are printed, for so many seconds at most."""
        self._lines.put(printed := Event())
        printed.wait(patience)

    def _work(self) -> None:
        while True:
            line = self._lines.get()
            if isinstance(line, Event):
                line.set()
                continue
            self._since = monotonic()
            try:
                self._write(line)
            except (OSError, ValueError) as error:
                self._refused = getattr(error, "strerror", None) or str(error)
            else:
                self._refused = ""
            self._since = None


def to_output(line: str) -> None:
    """Print a line on standard output, past Python's buffer: a thread that waits in there would
    have the process hang when it ends. Nothing is printed by a process that was started without it
    (`>&-`): its number is that of another file or connection then.

    Raises:
        OSError: it cannot be written.
    """
    if sys.stdout is None:
        return
    data = memoryview(f"{line}\n".encode(errors="backslashreplace"))
    while data:
        data = data[os.write(1, data) :]
