"""The printer of a controller's output: it prints in a thread, so that output holds up no repair.

`controller.composition` makes a `Printer`, to which the reporter passes its lines, and another, to
which the watchdog passes the tracebacks of internal errors. A terminal takes no output after
Ctrl-S, a pipe takes none while its reader stands still, and a log file may be on a full disk. Then
lines wait, and beyond `MOST_LINES` further ones are left out; switches are served and repaired all
the same.
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
LINE_PATIENCE = 5.0
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
        self._line_start: float | None = None
        """When the printing of the present line began; None while no line is being printed."""

    def __call__(self, line: str) -> None:
        """Print a line soon; it is left out if too many wait."""
        self._in_order(partial(self._print, line))

    @property
    def trouble(self) -> str:
        """Why nothing can be printed now; "" while that works."""
        line_start = self._line_start
        if line_start is not None and monotonic() - line_start > LINE_PATIENCE:
            return "nobody takes the output"
        return self._refused

    def finish(self, patience: float) -> None:
        """Wait until all lines are printed, for so many seconds at most."""
        self._in_order.finish(patience)

    def _print(self, line: str) -> None:
        """Print a line now."""
        self._line_start = monotonic()
        try:
            self._write(line)
        except (OSError, ValueError) as error:
            self._refused = getattr(error, "strerror", None) or str(error)
        else:
            self._refused = ""
        finally:
            self._line_start = None


def to_output(line: str) -> None:
    """Print a line on standard output, without Python's buffer.

    Python flushes the buffer when the process ends. If a thread were waiting in it, the process
    would hang.

    Raises:
        OSError: standard output cannot be written.
    """
    if sys.stdout is not None:  # started with `>&-`: descriptor 1 is another file or connection
        _write_line(1, line)


def to_errors(text: str) -> None:
    """Print text on standard error, as `to_output` does.

    Raises:
        OSError: standard error cannot be written.
    """
    if sys.stderr is not None:
        _write_line(2, text)


def _write_line(descriptor: int, line: str) -> None:
    """Write a line to a file, however long that takes."""
    data = memoryview(f"{line}\n".encode(errors="backslashreplace"))
    while data:
        data = data[os.write(descriptor, data) :]
