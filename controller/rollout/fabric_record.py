"""The record of a fabric: its build, the progress of a move, and what is dead in it; in a store.

A controller records each round before it starts it. If it dies, every switch is at the recorded
round or the one before (when going back: the one after), a mixture in which no packet is lost
(docs/how-to/plan.md), and its successor continues from there. The store is a file beside the build
folder (`move_journal`), or that of several controllers (`controller.cluster.shared_record`).
"""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass, field, fields
from typing import Any, Literal

VERSION = 1
"""Of the record's form. Members may be added within one: who does not know them leaves them out."""


@dataclass(frozen=True, slots=True)
class Record:
    """The identity of the current build; during a move also that of the target, the round that has
    begun, and whether it is carried out ("forth") or undone ("back").

    known: dead links, drained switches and the like (`Keeper.known`).
    before, until: of a build on trial, the build that the fabric falls back to at this time, in
    seconds since the epoch, unless somebody confirms.
    """

    build: str
    to: str = ""
    round: int = 0
    way: Literal["forth", "back"] = "forth"
    before: str = ""
    until: float = 0.0
    known: dict[str, Any] = field(default_factory=dict)

    @property
    def builds(self) -> set[str]:
        """The identities of the builds that it names."""
        return {self.build, self.to, self.before} - {""}


class FabricRecord:
    """The record as its store has it; this one is kept nowhere."""

    def __init__(self) -> None:
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
    found = json.loads(text)
    if not isinstance(found, dict) or found.get("version", VERSION) > VERSION:
        raise ValueError("a record of a form that this version of polarfab does not know")
    said = {one.name: found[one.name] for one in fields(Record) if one.name in found}
    for name, value in asdict(Record("")).items():
        kind = (int, float) if isinstance(value, float) else type(value)
        if not isinstance(said.get(name, value), kind):
            raise ValueError(f"{name}: {said[name]!r}")
    return Record(**said)
