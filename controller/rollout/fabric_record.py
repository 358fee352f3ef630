"""The record of a fabric: its build, the progress of a move, and what is dead in it; in a store.

A controller records each round before it starts it. If it dies, every switch is at the recorded
round or the one before (when going back: the one after), a mixture in which no packet is lost
(docs/how-to/move.md), and its successor continues from there. The store is a file next to the build
folder (`MoveJournal`), or that of several controllers (`controller.cluster.shared_record`).
"""

from __future__ import annotations

import json
from contextlib import suppress
from dataclasses import asdict, dataclass, field, fields
from pathlib import Path
from typing import Any, Literal

from compilers.tables.folders.written_file import flush, replace_file
from controller.switches.events import FileUnwritable, JournalDamaged
from controller.switches.session import LiveFabric
from inventory.problems import InputError

VERSION = 1
"""Of the record's form. Members may be added within one: who does not know them leaves them out."""
MOST_NUMBER = 1 << 53
"""All numbers of a record are smaller: seconds since the epoch, ports, rounds."""


@dataclass(frozen=True, slots=True)
class Record:
    """The progress of a fabric, as it is kept for the next controller."""

    build: str
    """The identity of the current build."""
    to: str = ""
    """The identity of the target during a move; "" without one."""
    round: int = 0
    """The round of the move that has begun."""
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
    known: dict[str, Any] = field(default_factory=dict)
    """Dead links, drained switches and the like (`Keeper.known`)."""

    @property
    def place(self) -> tuple[str, str, int, str]:
        """Which builds switches hold, and how far a move has come."""
        return self.build, self.to, self.round, self.direction

    @property
    def builds(self) -> set[str]:
        """The identities of the builds that it names."""
        return {self.build, self.to, self.before} - {""}


class FabricRecord:
    """The record as its store has it; this one is kept nowhere.

    needed: whether the next process needs it to know the fabric's build, as the folder has another.
    """

    def __init__(self) -> None:
        self.needed = False
        self._kept: Record | None = None
        self._writing: Record | None = None

    def knows(self, known: dict[str, Any]) -> bool:
        """Whether the store has a record with this: also where its last record is being written."""
        return self._kept is not None and self._kept.known == known

    def agree(self, record: Record) -> bool:
        """Whether the store has this record; if not, start writing it."""
        if self._kept != record and self._writing is None:
            self._kept, self._writing = None, record  # a write that fails may have been done
            self._write(record)
        return self._kept == record

    def put_aside(self) -> None:
        """The switches have said what they hold: a damaged record is not needed any more."""

    def _write(self, record: Record) -> None:
        """Write a record, and say whether it is written (`_written`), at once or later."""
        del record
        self._written(True)

    def _written(self, done: bool) -> None:
        if done:
            self._kept = self._writing
        self._writing = None


def encoded(record: Record) -> bytes:
    """The record as JSON."""
    return json.dumps({"version": VERSION} | asdict(record)).encode()


def decoded(text: bytes) -> Record:
    """A record from JSON, also one of another version of polarfab.

    Raises:
        ValueError, TypeError: it is none, or of a form that we do not know.
    """
    members = json.loads(text)
    if not isinstance(members, dict) or members.get("version", VERSION) > VERSION:
        raise ValueError("a record of a form that this version of polarfab does not know")
    values = {one.name: members[one.name] for one in fields(Record) if one.name in members}
    for name, value in asdict(Record("")).items():
        kind = (int, float) if isinstance(value, float) else type(value)
        if not isinstance(values.get(name, value), kind):
            raise ValueError(f"{name}: {values[name]!r:.100}")
    _require_bounded(values)
    record = Record(**values)
    if record.round < 0 or record.direction not in ("forth", "back"):
        raise ValueError(f"round {record.round} {record.direction!r:.100}")
    return record


def _require_bounded(value: Any) -> None:
    """Pass if all numbers in a value of JSON can be computed with: Python reads `NaN`, `1e999`, and
    integers of any length, too.

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
    switches are dead.

    damaged: it could not be read or followed, and the switches have not yet said what they hold.
    """

    def __init__(self, folder: Path, fabric: LiveFabric) -> None:
        super().__init__()
        place = folder.resolve()
        self.file, self.fabric = place.with_name(f".{place.name}.journal"), fabric
        self._unwritable = self.damaged = False
        self._was_needed = False
        """Whether the record was needed when it was written last."""
        self._on_disk: Record | None = None

    def read(self) -> Record | None:
        """The record that an earlier process left, or None; one that is damaged stays until
        `put_aside`, so that a process that ends before asks the switches, too.

        Raises:
            InputError: it cannot be read.
        """
        try:
            self._kept = self._on_disk = decoded(self.file.read_bytes())
        except FileNotFoundError:
            return None
        except OSError as error:
            given = error.strerror or str(error)
            raise InputError.of("a journal that can be read", given, file=str(self.file)) from error
        except (ValueError, TypeError, RecursionError) as error:
            self.fabric.tell(JournalDamaged(str(self.file), str(error)))
            self.damaged = True
        return self._kept

    def put_aside(self) -> None:
        """Keep a damaged journal under another name."""
        with suppress(OSError):
            self.file.replace(self.file.with_name(f"{self.file.name}.damaged"))
        self.damaged = False

    def agree(self, record: Record) -> bool:
        """Write the record; True, also where that fails: then a kill may cost packets."""
        if not self.damaged:
            if self.needed is not self._was_needed:
                self._kept = None  # the same record may have to be written, or to go
            super().agree(record)
        return True

    def _write(self, record: Record) -> None:
        """Write it; a failure is reported once, until a record can be written again."""
        try:
            if record.to or record.before or record.known or self.needed:
                replace_file(self.file, [encoded(record)])
                flush(self.file.parent)
            else:
                self.file.unlink(missing_ok=True)
        except OSError as error:
            if not self._unwritable:
                self.fabric.tell(FileUnwritable(str(self.file), error.strerror or str(error)))
            self._unwritable = True
            if self._misleads(record):
                with suppress(OSError):
                    self.file.write_bytes(b"")  # that needs no room; then the switches are asked
                self._on_disk = None
        else:
            self._unwritable, self._on_disk = False, record
            self._was_needed = self.needed
        self._written(not self._unwritable)

    def _misleads(self, record: Record) -> bool:
        """Whether the file names another build or round than switches will hold. Where there is
        none, the next process would load the folder's build on all of them at once.
        """
        if self._on_disk is None:
            return bool(record.to) or self.needed
        return record.place != self._on_disk.place
