"""The printer of a controller's output: a thread, so that nobody who reads it holds up a repair.

A terminal whose user has typed Ctrl-S takes nothing, nor does a pipe whose reader stands still, and
a log file may be on a full disk. Then lines wait, and beyond `MOST_LINES` further ones are left
out; switches are served and repaired all the same.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from functools import partial
from time import monotonic

from controller.upkeep.background import InOrder

MOST_LINES = 10_000
"""Lines that may wait."""
LONGEST = 5.0
"""Seconds that a line may take until it counts as not printed."""


class Printer:
    """Prints lines one after the other, in a thread that ends with the process.

    Args:
        write: prints a line, however long that takes.
    """

    def __init__(self, write: Callable[[str], None]) -> None:
        self._write, self._in_order = write, InOrder(MOST_LINES, "printer")
        self._refused = ""
        """Why the last line could not be printed; "" if it could."""
        self._since: float | None = None
        """When the line was begun that is printed now; None while there is none."""

    def __call__(self, line: str) -> None:
        """Print a line soon; it is left out if too many wait."""
        self._in_order(partial(self._print, line))

    @property
    def trouble(self) -> str:
        """Why nothing can be printed now; "" while that works."""
        since = self._since
        if since is not None and monotonic() - since > LONGEST:
            return "nobody takes the output"
        return self._refused

    def finish(self, patience: float) -> None:
        """Wait until all lines are printed, for so many seconds at most."""
        self._in_order.finish(patience)

    def _print(self, line: str) -> None:
        """Print a line now."""
        self._since = monotonic()
        try:
            self._write(line)
        except (OSError, ValueError) as error:
            self._refused = getattr(error, "strerror", None) or str(error)
        else:
            self._refused = ""
        finally:
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
