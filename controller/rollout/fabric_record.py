"""The record of a fabric in a store: its build, the progress of a move, its dead links and drains.

`controller.rollout.mover` writes each round into the record before it starts the round
(`FabricRecord.ensure_stored`). If the controller dies, every switch is at the recorded round or at
the round before it (when going back: after it). No packet is lost in such a mixture
(docs/how-to/move.md), and the next controller continues from there. The store is a file next to the
build folder (`controller.rollout.move_journal`), or that of several controllers
(`controller.cluster.shared_record`).
"""

from __future__ import annotations

import hashlib
import json
import re
from dataclasses import asdict, dataclass, field, replace
from typing import Any, Literal

from compilers.update.slots import BEGINNING

VERSION = 1
"""The version of the record's form. It stays where members are added: readers ignore unknown ones.
"""
DIGEST = "digest"
"""The key of the digest of all other members in the JSON. Without it, most damage would leave a
valid record: unknown keys are ignored, and members that are missing have defaults."""
IDENTITY = re.compile(r"[0-9a-f]{0,64}")
"""The identity of a build, as `894a6cb2bda0385a`; also "" for none."""
NUMBER_LIMIT = 1 << 53
"""All numbers of a record are smaller: seconds since the epoch, ports, rounds. Up to
here a float has every integer."""
LONGEST_WRITE = 5.0
"""Seconds after which a write to the disk that has not ended is reported as a failure."""


@dataclass(frozen=True, slots=True)
class Record:
    """The state of a fabric that the next controller needs."""

    build: str
    """The identity of the current build."""
    target: str = ""
    """The identity of the build that a move leads to; "" without a move."""
    round: int = 0
    """The round of the move that has begun; BEGINNING before the first."""
    direction: Literal["forth", "back"] = "forth"
    """Whether the move is carried out ("forth") or undone ("back")."""
    fallback: str = ""
    """During a trial, the identity of the build that the fabric falls back to; "" without one."""
    trial_ends: float = 0.0
    """When the trial ends unless it is confirmed, in seconds since the epoch, for people and for
    versions that do not know `trial_seconds_left`."""
    trial_seconds_left: float = 0.0
    """Seconds that were left of the trial when this was written; 0 where that is not known."""
    trial_held: bool = False
    """Whether most switches were read to hold the build on trial."""
    folder_build: str = ""
    """The identity of the build in the controller's folder, where it is not the fabric's because
    the folder could not be written; else ""."""
    previous: str = field(default="", compare=False)
    """The identity of the build that the fabric held before its last move; "" if that is not known.
    It changes only with `build`."""
    link_state: dict[str, Any] = field(default_factory=dict)
    """Dead links, drained switches and the like, as `Keeper.links_record` returns them."""

    @property
    def position(self) -> tuple[str, str, int, str]:
        """Which builds the switches hold, and how far a move has come."""
        return self.build, self.target, self.round, self.direction

    def equals(self, other: Record | None) -> bool:
        """Whether it equals another record, apart from the seconds that are left of the trial."""
        if other is None:
            return False
        return replace(self, trial_seconds_left=other.trial_seconds_left) == other

    @property
    def builds(self) -> set[str]:
        """The identities of the builds that the next controller needs to go on."""
        return {self.build, self.target, self.fallback} - {""}

    @property
    def named(self) -> set[str]:
        """The identities of all builds that it names: also of one to which people may return."""
        return self.builds | ({self.previous} - {""})


JSON_KEYS = {
    "target": "to",
    "fallback": "before",
    "trial_ends": "until",
    "trial_seconds_left": "left",
    "folder_build": "folder",
    "link_state": "known",
}
"""By field of a `Record`, its key in the JSON where that has another name. The keys are as they
were in the first versions, so that all versions read them."""


class FabricRecord:
    """The record of a fabric, and how much of it a store has.

    This class is for a fabric without a store: each write succeeds at once, and nothing is kept.
    Its subclasses `controller.rollout.move_journal.MoveJournal` and
    `controller.cluster.shared_record.SharedRecord` have stores; they override `_write`, and call
    `_written` when the store has answered.

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

    def has_link_state(self, link_state: dict[str, Any]) -> bool:
        """Whether the record in the store has this `Record.link_state`."""
        return self._stored is not None and self._stored.link_state == link_state

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

    def _written(self, has_succeeded: bool) -> None:
        """Note that the write under way has ended: if it succeeded, the store has the record."""
        if has_succeeded:
            self._stored = self._writing
        self._writing = None


def record_to_json(record: Record) -> bytes:
    """The record as JSON."""
    members = {JSON_KEYS.get(name, name): value for name, value in asdict(record).items()}
    members = {"version": VERSION} | members
    return json.dumps(members | {DIGEST: digest_of(members)}).encode()


def digest_of(members: dict[str, Any]) -> str:
    """The digest of all members of a JSON object but `DIGEST`, in whatever order they are."""
    others = {key: value for key, value in members.items() if key != DIGEST}
    return hashlib.sha256(json.dumps(others, sort_keys=True).encode()).hexdigest()


def record_from_json(text: bytes) -> Record:
    """A record from JSON, also one of another version of polarfab.

    A record of an early version has no digest.

    Raises:
        ValueError, TypeError: it is none, or of a later version, or differs from its digest.
    """
    members = json.loads(text)
    if not isinstance(members, dict) or members.get("version", VERSION) > VERSION:
        raise ValueError("a record of a form that this version of polarfab does not know")
    if DIGEST in members and members[DIGEST] != digest_of(members):
        raise ValueError("a record that differs from its digest")
    values = {}
    for name, default in asdict(Record("")).items():
        key = JSON_KEYS.get(name, name)
        kind = (int, float) if isinstance(default, float) else type(default)
        if not isinstance(members.get(key, default), kind):
            raise ValueError(f"{key}: {members[key]!r:.100}")
        if key in members:
            values[name] = members[key]
    _require_bounded(values)
    record = Record(**values)
    identities = (
        record.build,
        record.target,
        record.fallback,
        record.folder_build,
        record.previous,
    )
    for identity in identities:
        if not IDENTITY.fullmatch(identity):  # it becomes a part of a path
            raise ValueError(f"the build {identity!r:.100}")
    if record.round < BEGINNING or record.direction not in ("forth", "back"):
        raise ValueError(f"round {record.round} {record.direction!r:.100}")
    return record


def _require_bounded(value: Any) -> None:
    """Require that all numbers in a value of JSON are finite and below `NUMBER_LIMIT`.

    Python reads `NaN`, `1e999`, and integers of any length from JSON, too.

    Raises:
        ValueError: one is not.
    """
    if isinstance(value, dict | list):
        for member in value.values() if isinstance(value, dict) else value:
            _require_bounded(member)
    elif isinstance(value, int | float) and not abs(value) < NUMBER_LIMIT:
        raise ValueError(f"the number {value!r:.100}")
