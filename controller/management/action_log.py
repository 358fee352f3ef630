"""The action log: who asked a controller for what, one line of JSON each, only ever appended.

A request is written and flushed to the disk before it is carried out; what cannot be written is not
done. If it is refused a second line says why. A full file is numbered 1, those before move up, and
the oldest goes. The file is opened for each line, so logrotate may move it at any time.
"""

from __future__ import annotations

import errno
import json
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from logging.handlers import RotatingFileHandler
from pathlib import Path
from typing import BinaryIO

from controller.switches.events import ActionTaken, Event, TrialOver
from inventory.problems import InputError

MOST_BYTES = 8 << 20
"""Size at which the log goes on in another file: some 40,000 lines."""
KEPT = 12
"""Full files that are kept."""


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
    def recording(self, actor: Actor, action: str, what: str = "") -> Iterator[None]:
        """Write down a request before what it asks for is done, and why it was refused."""
        self.write(actor, action, what, "asked")
        try:
            yield
        except InputError as error:
            self.write(actor, action, what, f"refused: {error}")
            raise

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
            if self.file.stat().st_size >= MOST_BYTES:
                RotatingFileHandler(self.file, backupCount=KEPT, delay=True).doRollover()

    def happened(self, event: Event) -> None:
        """Write down that the controller goes back by itself; also where that cannot be written."""
        if event.of is TrialOver:
            try:
                self.write(CONTROLLER, "rollback", event.before, "not confirmed")
            except InputError:
                return  # a fabric is not left on trial for the sake of a line


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
