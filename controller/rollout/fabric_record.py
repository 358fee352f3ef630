"""The record of a fabric in a store: its build, the progress of a move, its dead links and drains.

`controller.rollout.mover` writes each round into the record before it starts the round
(`FabricRecord.ensure_stored`). If the controller dies, every switch is at the recorded round or at
the round before it (when going back: after it). No packet is lost in such a mixture
(docs/how-to/move.md), and the next controller continues from there. The store is a file next to the
build folder (`MoveJournal`), or that of several controllers (`controller.cluster.shared_record`).
"""

from __future__ import annotations

import json
import re
from concurrent.futures import Future, wait
from contextlib import suppress
from dataclasses import asdict, dataclass, field, fields, replace
from functools import partial
from pathlib import Path
from typing import Any, Literal

from compilers.tables.folders.written_file import flush, replace_file
from compilers.update.slots import BEGINNING
from controller.switches.events import FileUnwritable, JournalDamaged
from controller.switches.session import LiveFabric
from controller.upkeep.background import Start, in_thread
from inventory.problems import InputError

VERSION = 1
"""The version of the record's form. It stays where members are added: readers ignore unknown ones.
"""
IDENTITY = re.compile(r"[0-9a-f]{0,64}")
"""The identity of a build, as `894a6cb2bda0385a`; also "" for none."""
MOST_NUMBER = 1 << 53
"""All numbers of a record are smaller: seconds since the epoch, ports, rounds."""
LONGEST_WRITE = 5.0
"""Seconds after which a write of the journal that has not ended is reported as a failure."""


@dataclass(frozen=True, slots=True)
class Record:
    """The state of a fabric that the next controller needs."""

    build: str
    """The identity of the current build."""
    to: str = ""
    """The identity of the target during a move; "" without one."""
    round: int = 0
    """The round of the move that has begun; BEGINNING before the first."""
    direction: Literal["forth", "back"] = "forth"
    """Whether the move is carried out ("forth") or undone ("back")."""
    before: str = ""
    """For a build on trial, the identity of the build that the fabric falls back to."""
    until: float = 0.0
    """When the trial ends unless it is confirmed, in seconds since the epoch, for people and for
    versions that know no `left`."""
    left: float = 0.0
    """Seconds that were left of the trial when this was written; 0 where that is not known."""
    folder: str = ""
    """The identity of the build that the controller's folder has instead of the fabric's, as it
    could not be written."""
    previous: str = field(default="", compare=False)
    """The identity of the build that the fabric held before its last move; "" if that is not known.
    It changes only with `build`."""
    known: dict[str, Any] = field(default_factory=dict)
    """Dead links, drained switches and the like (`Keeper.known`)."""

    @property
    def position(self) -> tuple[str, str, int, str]:
        """Which builds the switches hold, and how far a move has come."""
        return self.build, self.to, self.round, self.direction

    def equals(self, other: Record | None) -> bool:
        """Whether it equals another record, apart from the seconds that are left of the trial."""
        return other is not None and replace(self, left=other.left) == other

    @property
    def builds(self) -> set[str]:
        """The identities of the builds that the next controller needs to go on."""
        return {self.build, self.to, self.before} - {""}

    @property
    def named(self) -> set[str]:
        """The identities of all builds that it names: also of one to which people may return."""
        return self.builds | ({self.previous} - {""})


class FabricRecord:
    """The record of a fabric, and how much of it a store has.

    This class is for a fabric without a store: each write succeeds at once, and nothing is kept.
    Its subclasses `MoveJournal` and `controller.cluster.shared_record.SharedRecord` have stores;
    they override `_write`, and call `_written` when the store has answered.

    A write goes through three states:

    1. No write is under way: `_writing` is None, and `_stored` is what the store has, if that is
       known.
    2. A write is under way: `_writing` is its record. What the store has is unknown, if the new
       record says something else than the old one.
    3. The store has answered. Back in state 1, `_stored` is the new record if the write succeeded.

    Attributes:
        where: the store, in words for people.
        damaged: whether the stored record is unusable or was lost, and `put_aside` was not called
            yet. Until then nothing is written.
        folder_is_stale: whether the folder has another build than the fabric, which is to be
            replaced. Then the next process needs the record to know which build the fabric has.
    """

    where = "the disk"

    def __init__(self) -> None:
        self.folder_is_stale = self.damaged = False
        self._stored: Record | None = None
        """The record that the store has; None if it has none, or if that is not known."""
        self._writing: Record | None = None
        """The record that is being written; None while none is."""

    def knows(self, known: dict[str, Any]) -> bool:
        """Whether the record in the store has this `Record.known`."""
        return self._stored is not None and self._stored.known == known

    def ensure_stored(self, record: Record, leads_back: bool = False) -> bool:  # noqa: ARG002
        """Start writing this record unless the store has it; returns whether the move may go on.

        It may go on when the store has the record. A subclass may name more cases.

        Args:
            record: the record. The store's may have more seconds left of the trial.
            leads_back: whether the next step leads back to the last build that was confirmed.
        """
        if self.damaged:
            return True
        if self._stored != record and self._writing is None:
            if not record.equals(self._stored):
                self._stored = None  # unknown from now on, even if the write fails
            self._writing = record
            self._write(record)
        return record.equals(self._stored)

    @property
    def is_stored(self) -> bool:
        """Whether the store is known to have a record of this controller."""
        return self._stored is not None

    def put_aside(self) -> None:
        """Give up a damaged record: the switches have been read instead."""
        self.damaged = False

    def wait(self, patience: float) -> bool:
        """Wait for the write under way, at the end of the process.

        Args:
            patience: most seconds to wait.

        Returns:
            Whether a write was waited for, and has ended. Here no write is ever waited for.
        """
        del patience
        return False

    def _write(self, record: Record) -> None:
        """Start to write a record; `_written` is called when the write has ended."""
        del record
        self._written(True)

    def _written(self, done: bool) -> None:
        """Note that the write under way has ended: with `done` the store has the record."""
        if done:
            self._stored = self._writing
        self._writing = None


def record_to_json(record: Record) -> bytes:
    """The record as JSON."""
    return json.dumps({"version": VERSION} | asdict(record)).encode()


def record_from_json(text: bytes) -> Record:
    """A record from JSON, also one of another version of polarfab.

    Raises:
        ValueError, TypeError: it is none, or of a later version.
    """
    members = json.loads(text)
    if not isinstance(members, dict) or members.get("version", VERSION) > VERSION:
        raise ValueError("a record of a form that this version of polarfab does not know")
    names = [member.name for member in fields(Record)]
    values = {name: members[name] for name in names if name in members}
    for name, value in asdict(Record("")).items():
        kind = (int, float) if isinstance(value, float) else type(value)
        if not isinstance(values.get(name, value), kind):
            raise ValueError(f"{name}: {values[name]!r:.100}")
    _require_bounded(values)
    record = Record(**values)
    identities = record.build, record.to, record.before, record.folder, record.previous
    for identity in identities:
        if not IDENTITY.fullmatch(identity):  # it becomes a part of a path
            raise ValueError(f"the build {identity!r:.100}")
    if record.round < BEGINNING or record.direction not in ("forth", "back"):
        raise ValueError(f"round {record.round} {record.direction!r:.100}")
    return record


def _require_bounded(value: Any) -> None:
    """Require that all numbers in a value of JSON are finite and below `MOST_NUMBER`.

    Python reads `NaN`, `1e999`, and integers of any length from JSON, too.

    Raises:
        ValueError: there is another one.
    """
    if isinstance(value, dict | list):
        for part in value.values() if isinstance(value, dict) else value:
            _require_bounded(part)
    elif isinstance(value, int | float) and not abs(value) < MOST_NUMBER:
        raise ValueError(f"the number {value!r:.100}")


class MoveJournal(FabricRecord):
    """The record of a controller without a store, in `.NAME.journal` next to its build folder.

    Each round is on the disk before it is sent, so a controller that was killed goes on with the
    move when it starts again. Between moves there is a file where a build is on trial, or links or
    switches are dead. It is written in a thread: while the disk does not answer, a move waits, and
    between moves repairs go on.

    Args:
        folder: the build folder.
        fabric: gets events where the journal cannot be read or written.
        start: runs a write in a thread. At most one runs at a time.
    """

    def __init__(self, folder: Path, fabric: LiveFabric, start: Start = in_thread) -> None:
        super().__init__()
        path = folder.resolve()
        self.file, self.fabric = path.with_name(f".{path.name}.journal"), fabric
        self._start = start
        self._unanswered_write: _Write | None = None
        """The write that the disk has not answered; None while there is none."""

        # What the last write has left.
        self._record_in_file: Record | None = None
        """The record that the file has. Unlike `_stored` it is known while a write is under way.
        None where the file has none, or where a write failed that had to replace it."""
        self._was_stale_at_last_write = False
        """The value of `folder_is_stale` when the file was written last."""
        self._failed_record: Record | None = None
        """The record whose last write failed; None if the last write did not fail."""
        self._failure_was_reported = False
        """Whether it was reported that the journal cannot be written. It is reported once until a
        write succeeds."""

        # What the next write has to do first.
        self._will_rename_damaged = False
        """Whether the next write renames the file first, since it is damaged."""

    def read(self) -> Record | None:
        """The record that an earlier process left, or None.

        A damaged file stays until `put_aside`. So a process that starts before that also reads
        the switches.

        Raises:
            InputError: it cannot be read.
        """
        if self.file.is_fifo():  # reading it would wait for ever
            given = "a named pipe"
            raise InputError.of("a journal that can be read", given, file=str(self.file))
        try:
            self._stored = self._record_in_file = record_from_json(self.file.read_bytes())
        except FileNotFoundError:
            return None
        except OSError as error:
            given = error.strerror or str(error)
            raise InputError.of("a journal that can be read", given, file=str(self.file)) from error
        except (ValueError, TypeError, RecursionError) as error:
            self.fabric.tell(JournalDamaged(str(self.file), str(error)))
            self.damaged = True
        return self._stored

    def put_aside(self) -> None:
        """Have the next write rename a damaged journal, which is kept under that name."""
        self.damaged, self._will_rename_damaged = False, self.damaged
        if self._will_rename_damaged:
            self._stored = self._record_in_file = None

    def ensure_stored(self, record: Record, leads_back: bool = False) -> bool:
        """Start writing this record unless it is on the disk; returns whether the move may go on.

        The move may go on once the record is on the disk, or could not be written. A move that
        leads back goes on, too, while the disk does not answer, although packets may then be lost
        if the controller is killed.
        """
        if self.damaged:
            return True
        self._take_answer()
        if self.folder_is_stale is not self._was_stale_at_last_write:
            self._stored = None  # the same record may have to be written now, or removed
        super().ensure_stored(record)
        self._take_answer()
        may_go_on = record.equals(self._stored) or record.equals(self._failed_record)
        return may_go_on or (leads_back and self._hangs)

    def retire(self) -> Future[bool]:
        """Rename the journal in a thread, as several controllers share a record from now on.

        Returns:
            Whether there was one, once it is renamed.
        """
        return self._start(partial(_rename, self.file, self.retired_file))

    @property
    def retired_file(self) -> Path:
        """The name of a journal of a time before the controllers shared a record."""
        return self.file.with_name(f"{self.file.name}.old")

    @property
    def _hangs(self) -> bool:
        """Whether the disk has not answered for long."""
        write = self._unanswered_write
        return write is not None and self.fabric.clock() - write.began > LONGEST_WRITE

    def wait(self, patience: float) -> bool:
        """See `FabricRecord.wait`; reports a write that has not ended."""
        write = self._unanswered_write
        if write and wait([write.error], max(patience, 0.0)).done:
            return True
        self.fabric.tell(FileUnwritable(str(self.file), "the disk did not answer before the end"))
        return False

    def _write(self, record: Record) -> None:
        """Start to write the record, or to remove the file where the next process needs none."""
        is_needed = record.to or record.before or record.known or self.folder_is_stale
        misleads, began = self._misleads(record), self.fabric.clock()
        renames, self._will_rename_damaged = self._will_rename_damaged, False
        content = record_to_json(record) if is_needed else None
        work = partial(_put, self.file, content, misleads, renames)
        self._unanswered_write = _Write(self._start(work), self.folder_is_stale, misleads, began)

    def _take_answer(self) -> None:
        """Take the result of the write under way, if it has ended.

        A failure, or a disk that does not answer, is reported once until a write succeeds again.
        """
        write = self._unanswered_write
        if write is None:
            return
        if not write.error.done():
            if self._hangs:
                self._report_once("the disk does not answer")
            return
        self._unanswered_write, record = None, self._writing
        error = write.error.exception() or write.error.result()
        if error is not None:
            reason = error.strerror if isinstance(error, OSError) else None
            self._report_once(reason or str(error))
            self._failed_record = record
            if write.misleads:
                self._record_in_file = None
        else:
            self._record_in_file, self._was_stale_at_last_write = record, write.folder_is_stale
            self._failed_record, self._failure_was_reported = None, False
        self._written(error is None)

    def _report_once(self, reason: str) -> None:
        """Report that the journal cannot be written, unless that was reported."""
        if not self._failure_was_reported:
            self.fabric.tell(FileUnwritable(str(self.file), reason))
        self._failure_was_reported = True

    def _misleads(self, record: Record) -> bool:
        """Whether the file names another build or round than switches will hold.

        A missing file misleads, too, if the switches will not hold the folder's build: the next
        process would load the folder's build on all switches at once.
        """
        if self._record_in_file is None:
            return bool(record.to) or self.folder_is_stale
        return record.position != self._record_in_file.position


@dataclass(frozen=True, slots=True)
class _Write:
    """A write of the journal that has begun."""

    error: Future[OSError | None]
    """Why it has failed; None if it has not."""
    folder_is_stale: bool
    """`MoveJournal.folder_is_stale`, as it was then."""
    misleads: bool
    """Whether the file that was there would mislead the next process."""
    began: float
    """When it began, by the fabric's clock."""


def _put(file: Path, content: bytes | None, misleads: bool, renames: bool) -> OSError | None:
    """Write the journal, or remove it where there is no content; returns the error if that fails.

    Args:
        file: the journal.
        content: the encoded record.
        misleads: whether the old file has to be emptied if that fails.
        renames: whether the old file is damaged, and kept under another name.
    """
    if renames:
        with suppress(OSError):
            file.replace(file.with_name(f"{file.name}.damaged"))
    try:
        if content is None:
            file.unlink(missing_ok=True)
        else:
            replace_file(file, [content])
            flush(file.parent)
    except OSError as error:
        if misleads:
            with suppress(OSError):
                file.write_bytes(b"")  # needs no space; the next process then reads the switches
        return error
    return None


def _rename(file: Path, to: Path) -> bool:
    """Rename a file; returns whether there was one."""
    try:
        file.replace(to)
    except FileNotFoundError:
        return False
    return True
