"""The action log: a line of JSON for each request that changes something, with its actor.

The management API (`controller.management.http_api`) writes a request and flushes it to the disk
before it carries it out. A request that cannot be written is refused, except a return to an earlier
build. If a request is refused, a second line says why. Lines are only ever appended, in a thread
and in order: other work goes on while a request waits for the disk.

A full file is numbered 1, and the numbers of earlier ones go up. Of more than `MOST_FULL_FILES`
files the oldest is deleted, but not before a week has passed since its last line: nobody can flush
actions out of the log. The file is opened for each line, so logrotate may move it at any time.
"""

from __future__ import annotations

import errno
import json
import os
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from time import monotonic, sleep, time
from typing import BinaryIO

from controller.switches.events import ActionTaken, Event, FileUnwritable, FolderFollowed, TrialOver
from controller.upkeep.background import InOrder
from inventory.problems import InputError

MOST_BYTES = 8 << 20
"""Size at which the log goes on in another file: some 40,000 lines."""
MOST_FULL_FILES = 12
"""Most full files that are kept whatever their age."""
TOKEN_BYTES, TOKEN_RATE = 1 << 20, 500.0
"""Bytes that the requests of one token may write to the log at once, and bytes a second in the long
run: 43 MB a day. `controller.management.http_api` refuses further ones, but never moves: a trial
has to be confirmed in time."""
WEEK = 7 * 86400.0
"""Seconds after its last line for which a full file is kept at least."""
MOST_LINES = 1000
"""Most lines that wait for the disk."""
PATIENCE = 5.0
"""Seconds that a request waits for the disk until it is refused."""
FIRST_POLL, LONGEST_POLL = 0.001, 0.05
"""First and longest seconds between two checks whether the disk has a line."""


@dataclass(frozen=True, slots=True)
class Actor:
    """The sender of a request."""

    name: str
    """The name of the token."""
    role: str
    """The role of the token."""
    address: str
    """The address that the request came from."""


CONTROLLER = Actor("controller", "", "")
"""The controller itself, as the actor where a trial is over or its folder has another build."""


class ActionLog:
    """The action log of a controller, `.NAME.actions` next to its build folder.

    Args:
        folder: the build folder of the controller.
        tell: reports an event.
        pause: lets other work go on for so many seconds, while a request waits for the disk.
        clock: seconds on a monotonic clock.
    """

    def __init__(
        self,
        folder: Path,
        tell: Callable[[Event], None],
        pause: Callable[[float], object] = sleep,
        clock: Callable[[], float] = monotonic,
    ) -> None:
        path = folder.resolve()
        self.file = path.with_name(f".{path.name}.actions")
        """The file of the log."""
        self._tell, self._pause, self._clock = tell, pause, clock
        self._in_order = InOrder(MOST_LINES, "action log")
        """Writes lines in a thread, one after the other."""
        self._dropped_lines = 0
        """The number of lines that were dropped, as too many waited for the disk."""
        self._unawaited: list[Future[None]] = []
        """The writes under way for which no request waits."""
        self._trouble = ""
        """Why the last line could not be written; "" if it could be."""
        self._room: dict[str, tuple[float, float]] = {}
        """By the name of a token, the bytes that it could still write, and when that was so."""

    def seconds_until_room(self, actor: Actor) -> float:
        """Seconds until this token has room in the log again (`TOKEN_BYTES`); 0 if it has now."""
        return max(-self._room_now(actor.name) / TOKEN_RATE, 0.0)

    def _room_now(self, name: str) -> float:
        """The bytes that the token of this name may still write; negative after too many."""
        room, at = self._room.get(name, (TOKEN_BYTES, self._clock()))
        return min(room + (self._clock() - at) * TOKEN_RATE, TOKEN_BYTES)

    @contextmanager
    def recording(
        self, actor: Actor, action: str, what: str = "", returns: bool = False
    ) -> Iterator[None]:
        """A context that carries out a request: it logs the request before, and a refusal after.

        Args:
            actor: the sender of the request.
            action: the action, such as "drain".
            what: the object of the action, such as the name of a switch.
            returns: whether it is a return to an earlier build, which a full disk does not prevent.

        Raises:
            InputError: the request cannot be written; nothing is done then.
        """
        write = self._write_or_report if returns else self._write_or_refuse
        write(actor, action, what, "asked")
        try:
            yield
        except InputError as error:
            self.note(actor, action, what, f"refused: {error}")
            raise

    def _write_or_refuse(self, actor: Actor, action: str, what: str, outcome: str) -> None:
        """Append a line; if that takes too long, also one that says that it was refused.

        Raises:
            InputError: it cannot be written, or not soon.
        """
        try:
            self.write(actor, action, what, outcome)
        except InputError as error:
            # A late line may still reach the disk: the second one says that nothing was done.
            if isinstance(error.__cause__, TimeoutError):
                self.note(actor, action, what, f"refused: {error}")
            raise

    def _write_or_report(self, actor: Actor, action: str, what: str, outcome: str) -> None:
        """Append a line; where that fails, report the request by events only."""
        try:
            self.write(actor, action, what, outcome)
        except InputError as error:
            self._tell(_event(actor, action, what, outcome))
            reason = str(error).removeprefix(f"{self.file}: ")
            self._tell(FileUnwritable(str(self.file), reason))

    def write(self, actor: Actor, action: str, what: str, outcome: str) -> None:
        """Append a line, and wait until it is on the disk.

        Raises:
            InputError: it cannot be written, or not soon.
        """
        event = _event(actor, action, what, outcome)
        written, until, poll = self._append(event), monotonic() + PATIENCE, FIRST_POLL
        try:
            while not written.done():
                if monotonic() > until:
                    raise TimeoutError(errno.ETIMEDOUT, "a disk that does not answer")
                self._pause(poll)
                poll = min(2 * poll, LONGEST_POLL)
            written.result()
        except OSError as error:
            given = error.strerror or str(error)
            required = "an action log that can be written: nothing is done without a record"
            raise InputError.of(required, given, file=str(self.file)) from error
        self._tell(event)

    def note(self, actor: Actor, action: str, what: str, outcome: str) -> None:
        """Append a line without waiting for the disk; `tick` reports if that fails."""
        event = _event(actor, action, what, outcome)
        self._unawaited.append(self._append(event))
        self._tell(event)

    def tick(self) -> None:
        """Report lines of `note` that could not be written; called at intervals."""
        writes, self._unawaited = self._unawaited, []
        for write in writes:
            if not write.done():
                self._unawaited.append(write)
                continue
            error, before = write.exception(), self._trouble
            self._trouble = (getattr(error, "strerror", None) or str(error)) if error else ""
            if self._trouble not in ("", before):
                self._tell(FileUnwritable(str(self.file), self._trouble))

    def finish(self, patience: float) -> None:
        """Wait at the end of the process, at most so many seconds, until all lines are on the disk;
        report it if they are not.
        """
        if not self._in_order.finish(patience):
            reason = "the disk has not taken the last lines before the end"
            self._tell(FileUnwritable(str(self.file), reason))
        self.tick()

    def _append(self, event: Event) -> Future[None]:
        """Append a line in the thread; the future is done when the disk has it."""
        line = json.dumps({"at": round(event.at, 3), **event.fields}).encode() + b"\n"
        self._room[event.who] = self._room_now(event.who) - len(line), self._clock()
        written = self._in_order(partial(self._put, line))
        if written is None:
            self._dropped_lines += 1
            reason = (
                f"{MOST_LINES:,} lines wait for the disk, and {self._dropped_lines:,} are left out"
            )
            written = Future()
            written.set_exception(OSError(errno.ENOBUFS, reason))
        return written

    def _put(self, line: bytes) -> None:
        """Append a line and flush it to the disk; runs in the thread."""
        self._make_room()
        with open(self.file, "a+b", buffering=0, opener=_private) as file:
            _append_line(file, line)
            os.fsync(file.fileno())

    def _make_room(self) -> None:
        """Begin another file if this one is full; where it cannot be renamed, it stays in use."""
        with suppress(OSError):
            if self.file.stat().st_size < MOST_BYTES:
                return
            full = 0
            while self._full_file(full + 1).exists():
                full += 1
            while full >= MOST_FULL_FILES and self._full_file(full).stat().st_mtime < time() - WEEK:
                self._full_file(full).unlink()
                full -= 1
            for number in range(full, 0, -1):
                self._full_file(number).rename(self._full_file(number + 1))
            self.file.rename(self._full_file(1))

    def _full_file(self, number: int) -> Path:
        """The full file of this number; the newest has number 1."""
        return self.file.with_name(f"{self.file.name}.{number}")

    def happened(self, event: Event) -> None:
        """Log the events in which the controller moves the fabric by itself."""
        if event.type is TrialOver:
            self.note(CONTROLLER, "rollback", event.before, "not confirmed")
        elif event.type is FolderFollowed:
            self.note(CONTROLLER, "reload", event.build, "the folder's build, at a start")


def _event(actor: Actor, action: str, what: str, outcome: str) -> Event:
    """The event of a request."""
    return ActionTaken(actor.name, actor.role, actor.address, action, what, outcome)


def _private(path: str, flags: int) -> int:
    """Open a file that only its owner can read, if it is made now."""
    return os.open(path, flags, 0o600)


def _append_line(file: BinaryIO, line: bytes) -> None:
    """Append a line; an unfinished line before it is ended first."""
    if file.seek(0, os.SEEK_END):
        file.seek(-1, os.SEEK_END)
        line = line if file.read(1) == b"\n" else b"\n" + line
    if file.write(line) < len(line):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
