"""The action log: who asked a controller for what, one line of JSON each, only ever appended.

A request is written and flushed to the disk before it is carried out; what cannot be written is not
done, but for a return to an earlier build. If it is refused a second line says why. A full file is
numbered 1, and those before move up. Of more than `KEPT` the oldest goes, but not before a week has
passed since its last line: nobody can wash away what was done. The file is opened for each line, so
logrotate may move it at any time.
"""

from __future__ import annotations

import errno
import json
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from time import time
from typing import BinaryIO

from controller.switches.events import ActionTaken, Event, FileUnwritable, TrialOver
from inventory.problems import InputError

MOST_BYTES = 8 << 20
"""Size at which the log goes on in another file: some 40,000 lines."""
KEPT = 12
"""Full files that are kept whatever their age."""
WEEK = 7 * 86400.0
"""Seconds after its last line for which a full file is kept at least."""


@dataclass(frozen=True, slots=True)
class Actor:
    """Who requests an action."""

    name: str
    """The name of the token."""
    role: str
    """The role of the token."""
    address: str
    """The address that the request came from."""


CONTROLLER = Actor("controller", "", "")
"""The controller itself, where time runs out."""


class ActionLog:
    """The action log of a controller, `.NAME.actions` next to its build folder.

    Args:
        folder: the build folder of the controller.
        tell: reports an event.

    Raises (all methods):
        InputError: the log cannot be written; nothing is done then.
    """

    def __init__(self, folder: Path, tell: Callable[[Event], None]) -> None:
        place = folder.resolve()
        self.file, self._tell = place.with_name(f".{place.name}.actions"), tell

    @contextmanager
    def recording(
        self, actor: Actor, action: str, what: str = "", returns: bool = False
    ) -> Iterator[None]:
        """Write down a request before what it asks for is done, and why it was refused.

        returns: it goes back to an earlier build, which is done on a full disk, too.
        """
        write = self._write_or_tell if returns else self.write
        write(actor, action, what, "asked")
        try:
            yield
        except InputError as error:
            write(actor, action, what, f"refused: {error}")
            raise

    def _write_or_tell(self, actor: Actor, action: str, what: str, outcome: str) -> None:
        """Append a line; where that fails, an event alone says who asked for what."""
        try:
            self.write(actor, action, what, outcome)
        except InputError as error:
            fields = actor.name, actor.role, actor.address, action, what, outcome
            self._tell(ActionTaken(*fields))
            self._tell(FileUnwritable(str(self.file), str(error)))

    def write(self, actor: Actor, action: str, what: str, outcome: str) -> None:
        """Append a line."""
        event = ActionTaken(actor.name, actor.role, actor.address, action, what, outcome)
        line = {"at": round(event.at, 3), **event.fields}
        try:
            self._make_room()
            with open(self.file, "a+b", buffering=0, opener=_private) as file:
                _append(file, json.dumps(line).encode() + b"\n")
                os.fsync(file.fileno())
        except OSError as error:
            given = error.strerror or str(error)
            required = "an action log that can be written: nothing is done without a record"
            raise InputError.of(required, given, file=str(self.file)) from error
        self._tell(event)

    def _make_room(self) -> None:
        """Begin another file if this one is full; one that may not be moved is written on."""
        with suppress(OSError):
            if self.file.stat().st_size < MOST_BYTES:
                return
            full = 0
            while self._full(full + 1).exists():
                full += 1
            while full >= KEPT and self._full(full).stat().st_mtime < time() - WEEK:
                self._full(full).unlink()
                full -= 1
            for number in range(full, 0, -1):
                self._full(number).rename(self._full(number + 1))
            self.file.rename(self._full(1))

    def _full(self, number: int) -> Path:
        """The full file of this number; the newest has number 1."""
        return self.file.with_name(f"{self.file.name}.{number}")

    def happened(self, event: Event) -> None:
        """Write down that the controller goes back by itself; also where that cannot be written."""
        if event.of is TrialOver:
            self._write_or_tell(CONTROLLER, "rollback", event.before, "not confirmed")


def _private(path: str, flags: int) -> int:
    """Open a file that only its owner can read, if it is made now."""
    return os.open(path, flags, 0o600)


def _append(file: BinaryIO, line: bytes) -> None:
    """Append a line, also behind one that was cut off."""
    if file.seek(0, os.SEEK_END):
        file.seek(-1, os.SEEK_END)
        line = line if file.read(1) == b"\n" else b"\n" + line
    if file.write(line) < len(line):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
