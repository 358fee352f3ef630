"""The move journal of a controller without a store: its `Record` in a file beside the build folder.

Each round is on the disk before it is sent, so a controller that was killed goes on with the move
when it starts again, as its successor would with a store. Between moves there is a file where a
build is on trial, or links or switches are dead. Where a journal is damaged the switches are asked
what they hold (`Mover.survey`).
"""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path

from compilers.tables.folders.artefact import flush, replace_file
from controller.rollout.build_history import BuildHistory
from controller.rollout.fabric_record import FabricRecord, Record, decoded, encoded
from controller.rollout.mover import Mover
from controller.switches.events import FileUnwritable, JournalDamaged
from controller.switches.session import LiveFabric
from controller.upkeep.repair_keeper import Keeper
from inventory.problems import InputError


class MoveJournal(FabricRecord):
    """The record in `.NAME.journal` beside a build folder.

    damaged: it could not be read, and the switches have not yet said what they hold.
    """

    def __init__(self, folder: Path, fabric: LiveFabric) -> None:
        super().__init__()
        place = folder.resolve()
        self.file, self.fabric = place.with_name(f".{place.name}.journal"), fabric
        self._unwritable = self.damaged = False

    def read(self) -> Record | None:
        """The record that an earlier process left, or None; one that is damaged stays until
        `put_aside`, so that a process that ends before asks the switches, too.

        Raises:
            InputError: it cannot be read.
        """
        try:
            self._kept = decoded(self.file.read_bytes())
        except FileNotFoundError:
            return None
        except OSError as error:
            given = error.strerror or str(error)
            raise InputError.of("a journal that can be read", given, file=str(self.file)) from error
        except (ValueError, TypeError) as error:
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
            super().agree(record)
        return True

    def _write(self, record: Record) -> None:
        """Write it; a failure is told once, until a record can be written again."""
        try:
            if record.to or record.before or record.known:
                replace_file(self.file, [encoded(record)])
                flush(self.file.parent)
            else:
                self.file.unlink(missing_ok=True)
        except OSError as error:
            if not self._unwritable:
                self.fabric.tell(FileUnwritable(str(self.file), error.strerror or str(error)))
            self._unwritable = True
        else:
            self._unwritable = False
        self._written(not self._unwritable)


def journalled(fabric: LiveFabric, history: BuildHistory, keeper: Keeper | None = None) -> Mover:
    """The mover of a controller without a store; it goes on where one was killed: its move,
    and what it knew of links and switches.

    Call it before switches connect.

    Raises:
        InputError: the journal cannot be read.
    """
    journal = MoveJournal(history.folder, fabric)
    mover = Mover(fabric, keeper, history, journal)
    if record := journal.read():
        try:
            mover.go_on(record, history.read)
        except InputError as error:
            fabric.cannot_load(f"the move in {journal.file.name} cannot be continued: {error}")
    if journal.damaged:
        mover.survey()
    return mover
