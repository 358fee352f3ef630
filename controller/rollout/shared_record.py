"""The record of a fabric: its build, the progress of a move, and what is dead in it; in a store.

A controller records each round before it starts it. If it dies, every switch is at the recorded
round or the one before (when going back: the one after), a mixture in which no packet is lost
(docs/how-to/plan.md), and its successor continues from there. The record of a controller without a
store is in a file (`move_journal`). Packed builds are in the store too, so any instance can
continue. Functions here block: call them in a `StoreWorker`.
"""

from __future__ import annotations

import json
import zlib
from collections.abc import Callable
from dataclasses import asdict, dataclass, field, fields
from typing import Any, Literal, Protocol

RECORD_CHUNK_BYTES = 512 * 1024
"""Most bytes of a value: etcd takes requests of 1.5 MiB, and base64 lengthens them."""
QUICK = 1
"""The level of zlib."""
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


class RecordStore(Protocol):
    """The store of a record; values are written only while a term lasts."""

    def get(self, key: str) -> bytes | None:
        """The value of a key, or None."""

    def put(self, key: str, value: bytes, term: int) -> bool:
        """Write a value; returns whether it was written."""

    def delete(self, key: str, term: int) -> bool:
        """Delete all keys with this prefix; returns whether it did."""

    def keys(self, start: str) -> list[str]:
        """The keys with this prefix."""


def read(store: RecordStore) -> Record | None:
    """The record, or None if there is none."""
    found = store.get("record")
    return decoded(found) if found else None


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


def write(
    store: RecordStore, term: int, record: Record, pack: Callable[[str], bytes | None]
) -> bool:
    """Write the record, its builds first, and delete other builds; returns whether the term lasts.

    pack: returns a build, packed, by its identity, or None.
    """
    stored = {key.split("/")[1] for key in store.keys("builds/") if key.endswith("/parts")}
    needed = record.builds
    for identity in sorted(needed - stored):
        packed = pack(identity)
        if packed is not None and not _put_build(store, term, identity, packed):
            return False
    if not store.put("record", encoded(record), term):
        return False
    return all(store.delete(f"builds/{identity}/", term) for identity in sorted(stored - needed))


def fetch(store: RecordStore, identity: str) -> bytes | None:
    """A build of the store, packed, or None."""
    count = store.get(f"builds/{identity}/parts")
    if count is None:
        return None
    parts = [store.get(f"builds/{identity}/{number:06}") or b"" for number in range(int(count))]
    return zlib.decompress(b"".join(parts))


def _put_build(store: RecordStore, term: int, identity: str, packed: bytes) -> bool:
    data = zlib.compress(packed, QUICK)
    parts = [
        data[start : start + RECORD_CHUNK_BYTES]
        for start in range(0, len(data), RECORD_CHUNK_BYTES)
    ]
    for number, part in enumerate(parts):
        if not store.put(f"builds/{identity}/{number:06}", part, term):
            return False
    return store.put(f"builds/{identity}/parts", str(len(parts)).encode(), term)
