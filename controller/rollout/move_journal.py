"""The move journal: the record of a controller without a store, in a file next to its build folder.

`controller.rollout.mover` has the journal write each round before it starts the round
(`controller.rollout.fabric_record`). After a start it reads what an earlier process has left.
"""

from __future__ import annotations

from concurrent.futures import Future
from concurrent.futures import wait as wait_for_futures
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

from compilers.tables.folders.leftover_parts import parts_of, remove_file_parts
from compilers.tables.folders.written_file import flush, replace_file
from controller.rollout.fabric_record import (
    LONGEST_WRITE,
    FabricRecord,
    Record,
    record_from_json,
    record_to_json,
)
from controller.switches.events import FileUnwritable, JournalDamaged
from controller.switches.session import LiveFabric
from controller.upkeep.background import Start, in_thread
from inventory.problems import InputError


@dataclass(frozen=True, slots=True)
class _WriteUnderWay:
    """A write of the journal that the disk has not answered."""

    error: Future[OSError | None]
    """Why it has failed; None if it has not."""
    folder_is_stale: bool
    """`MoveJournal.folder_is_stale` when it began."""
    old_file_misleads: bool
    """Whether the file that it replaces would mislead the next process (`MoveJournal._misleads`).
    If so, the file is emptied where the write fails."""
    began: float
    """When it began, by the fabric's clock."""


@dataclass(frozen=True, slots=True)
class _File:
    """What the writes that have ended have left in the journal's file."""

    record: Record | None = None
    """The record in the file; None where it has none, or where a write failed that had to replace
    it. It stays known while the next write is under way, when `FabricRecord._stored` is None."""
    folder_is_stale: bool = False
    """`MoveJournal.folder_is_stale` when the file was written last: it decides whether there has to
    be a file at all."""


class MoveJournal(FabricRecord):
    """The record of a controller without a store, in `.NAME.journal` next to its build folder.

    Each round is on the disk before it is sent, so a controller that was killed goes on with the
    move when it starts again. Between moves there is a file where a build is on trial, or links or
    switches are dead. It is written in a thread: while the disk does not answer, a move waits, and
    between moves repairs go on.

    Four attributes come from `FabricRecord`: `damaged` and `folder_is_stale` (described there),
    `_stored`, the record that is known to be in the file, and `_writing`, the record of the write
    under way.

    Beside the states of a `FabricRecord`, which say whether a write is under way, the last write
    leaves one of three:

    ==============  ==================  =======================  =====================
    the last write  `_write_under_way`  `_failed_record`         a move may go on with
    ==============  ==================  =======================  =====================
    has succeeded   None                None                     the record in the file
    has failed      None                the record of the write  `_failed_record`
    does not end    older than          that of the write        steps that lead back
    (`_hangs`)      `LONGEST_WRITE`     before, if it failed
    ==============  ==================  =======================  =====================

    In the last two states the failure is reported once, until a write succeeds.

    A damaged file goes through three states: `damaged`, from `read` until `put_aside`; then
    `_will_rename_damaged`, until the next write begins; then it has another name.

    Args:
        folder: the build folder.
        fabric: gets events where the journal cannot be read or written.
        start: runs a write in a thread. At most one runs at a time.
    """

    def __init__(self, folder: Path, fabric: LiveFabric, start: Start = in_thread) -> None:
        super().__init__()
        self.file, self.fabric = journal_of(folder), fabric
        self._start = start
        self._write_under_way: _WriteUnderWay | None = None
        """The write that the disk has not answered; None while there is none."""
        self._in_file = _File()
        """What the file has."""
        self._failed_record: Record | None = None
        """The record whose last write failed; None if the last write that has ended did not."""
        self._failure_was_reported = False
        """Whether it was reported that the journal cannot be written, since a write succeeded."""
        self._will_rename_damaged = False
        """Whether the next write renames the file first, since it is damaged."""

    def read(self) -> Record | None:
        """The record that an earlier process left, or None.

        A damaged file stays until `put_aside`. So a process that starts before that also reads
        the switches. What a process left that was killed while it wrote the file is removed.

        Raises:
            InputError: it cannot be read.
        """
        with suppress(OSError):
            if parts := parts_of(self.file):  # before this process writes one
                self._start(partial(remove_file_parts, self.file, parts))
        if self.file.is_fifo():  # reading it would wait for ever
            given = "a named pipe"
            raise InputError.of("a journal that can be read", given, file=str(self.file))
        try:
            self._stored = record_from_json(self.file.read_bytes())
            self._in_file = replace(self._in_file, record=self._stored)
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
        """Have the next write rename a damaged journal to `.NAME.journal.damaged`, and keep it."""
        self._will_rename_damaged = self.damaged
        self.damaged = False
        if self._will_rename_damaged:
            self._stored, self._in_file = None, replace(self._in_file, record=None)

    def ensure_stored(self, record: Record, leads_back: bool = False) -> bool:
        """Start writing this record unless it is on the disk; returns whether the move may go on.

        The move may go on once the record is on the disk, or could not be written. A move that
        leads back goes on, too, while the disk does not answer, although packets may then be lost
        if the controller is killed.
        """
        if self.damaged:
            return True
        self._take_answer()
        if self.folder_is_stale is not self._in_file.folder_is_stale:
            self._stored = None  # the same record may have to be written now, or removed
        super().ensure_stored(record)
        self._take_answer()
        may_go_on = record.equals(self._stored) or record.equals(self._failed_record)
        return may_go_on or (leads_back and self._hangs)

    def retire(self) -> Future[bool]:
        """Rename the journal in a thread, as several controllers share a record from now on.

        Returns:
            The renaming in the thread; its result is whether there was a journal.
        """
        return self._start(partial(_rename, self.file, self.retired_file))

    @property
    def retired_file(self) -> Path:
        """The name of a journal of a time before the controllers shared a record."""
        return self.file.with_name(f"{self.file.name}.old")

    @property
    def _hangs(self) -> bool:
        """Whether the disk has not answered a write for longer than `LONGEST_WRITE`."""
        write = self._write_under_way
        return write is not None and self.fabric.clock() - write.began > LONGEST_WRITE

    def wait(self, patience: float) -> bool:
        """See `FabricRecord.wait`; reports a write that has not ended."""
        write = self._write_under_way
        if write and wait_for_futures([write.error], max(patience, 0.0)).done:
            return True
        self.fabric.tell(FileUnwritable(str(self.file), "the disk did not answer before the end"))
        return False

    def _write(self, record: Record) -> None:
        """Start to write the record, or to remove the file where the next process needs none."""
        is_needed = record.target or record.fallback or record.link_state or self.folder_is_stale
        content = record_to_json(record) if is_needed else None
        old_file_misleads, began = self._misleads(record), self.fabric.clock()
        renames_damaged, self._will_rename_damaged = self._will_rename_damaged, False
        work = partial(_put, self.file, content, old_file_misleads, renames_damaged)
        self._write_under_way = _WriteUnderWay(
            self._start(work), self.folder_is_stale, old_file_misleads, began
        )

    def _take_answer(self) -> None:
        """Take the result of the write under way, if it has ended.

        A failure, or a disk that does not answer, is reported once until a write succeeds again.
        """
        write = self._write_under_way
        if write is None:
            return
        if not write.error.done():
            if self._hangs:
                self._report_once("the disk does not answer")
            return
        self._write_under_way, record = None, self._writing
        error = write.error.exception() or write.error.result()
        if error is not None:
            reason = error.strerror if isinstance(error, OSError) else None
            self._report_once(reason or str(error))
            self._failed_record = record
            if write.old_file_misleads:
                self._in_file = replace(self._in_file, record=None)
        else:
            self._in_file = _File(record, write.folder_is_stale)
            self._failed_record, self._failure_was_reported = None, False
        self._written(error is None)

    def _report_once(self, reason: str) -> None:
        """Report that the journal cannot be written, unless that was reported."""
        if not self._failure_was_reported:
            self.fabric.tell(FileUnwritable(str(self.file), reason))
        self._failure_was_reported = True

    def _misleads(self, record: Record) -> bool:
        """Whether the present file misleads the next process once this record is the fabric's.

        It does if it names other builds, or another round, than switches will hold. A missing file
        misleads, too, if the switches will not hold the folder's build: the next process would load
        the folder's build on all switches at once.
        """
        if self._in_file.record is None:
            return bool(record.target) or self.folder_is_stale
        return record.position != self._in_file.record.position


def journal_of(folder: Path) -> Path:
    """The journal of the controller of a build folder."""
    path = folder.resolve()
    return path.with_name(f".{path.name}.journal")


def _put(
    file: Path, content: bytes | None, empties_on_failure: bool, renames_damaged: bool
) -> OSError | None:
    """Write the journal, or remove it where there is no content; returns the error if that fails.

    Args:
        file: the journal.
        content: the encoded record; None if the next process needs none.
        empties_on_failure: whether to empty the old file if that fails.
        renames_damaged: whether the old file is damaged, and kept under another name.
    """
    if renames_damaged:
        with suppress(OSError):
            file.replace(file.with_name(f"{file.name}.damaged"))
    try:
        if content is None:
            file.unlink(missing_ok=True)
        else:
            replace_file(file, [content])
            flush(file.parent)
    except OSError as error:
        if empties_on_failure:
            with suppress(OSError):
                file.write_bytes(b"")  # needs no space; the next process then reads the switches
        return error
    return None


def _rename(file: Path, new_name: Path) -> bool:
    """Rename a file; returns whether there was one."""
    try:
        file.replace(new_name)
    except FileNotFoundError:
        return False
    return True
