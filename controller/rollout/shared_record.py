"""What controllers of one fabric agree on: the build that it holds, and how far a move is.

A leader writes how far a move is before it goes on, so when it dies the switches hold what they
should after the round that is written, or after the one before (going back: the other way round);
that is a mixture in which no packet is lost (docs/plan.md), and its successor goes on from there.
Builds lie in the store too, packed, so any instance can go on. Functions here block: for `Desk`.
"""

from __future__ import annotations

import json
import zlib
from collections.abc import Callable
from dataclasses import asdict, dataclass
from typing import Literal, Protocol

RECORD_CHUNK_BYTES = 512 * 1024
"""Bytes of a value: etcd takes requests of 1.5 MiB, and base64 makes them longer."""
QUICK = 1
"""zlib's level."""


@dataclass(frozen=True, slots=True)
class Record:
    """The identity of the build that switches hold; during a move that of the one to come, and the
    round that has begun, and whether it is carried out or taken back.
    """

    build: str
    to: str = ""
    round: int = 0
    way: Literal["forth", "back"] = "forth"


class Shelf(Protocol):
    """What is needed of a store; values are put while a term lasts only."""

    def get(self, key: str) -> bytes | None:
        """What stands under a key."""

    def put(self, key: str, value: bytes, term: int) -> bool:
        """Put a value; gives whether it did."""

    def delete(self, key: str, term: int) -> bool:
        """Delete all keys that begin like this; gives whether it did."""

    def keys(self, start: str) -> list[str]:
        """The keys that begin like this."""


def read(shelf: Shelf) -> Record | None:
    """The record; None where none was written."""
    found = shelf.get("record")
    return Record(**json.loads(found)) if found else None


def write(shelf: Shelf, term: int, record: Record, pack: Callable[[str], bytes | None]) -> bool:
    """Write the record, its builds first, and let go of other builds; gives whether the term lasts.

    pack gives a build, packed, by its identity; None where it has not got it.
    """
    there = {key.split("/")[1] for key in shelf.keys("builds/") if key.endswith("/parts")}
    needed = {record.build, record.to} - {""}
    for identity in sorted(needed - there):
        packed = pack(identity)
        if packed is not None and not _shelve(shelf, term, identity, packed):
            return False
    if not shelf.put("record", json.dumps(asdict(record)).encode(), term):
        return False
    return all(shelf.delete(f"builds/{identity}/", term) for identity in sorted(there - needed))


def fetch(shelf: Shelf, identity: str) -> bytes | None:
    """A build, packed; None where it is not in the store."""
    count = shelf.get(f"builds/{identity}/parts")
    if count is None:
        return None
    parts = [shelf.get(f"builds/{identity}/{number:06}") or b"" for number in range(int(count))]
    return zlib.decompress(b"".join(parts))


def _shelve(shelf: Shelf, term: int, identity: str, packed: bytes) -> bool:
    data = zlib.compress(packed, QUICK)
    parts = [
        data[start : start + RECORD_CHUNK_BYTES]
        for start in range(0, len(data), RECORD_CHUNK_BYTES)
    ]
    for number, part in enumerate(parts):
        if not shelf.put(f"builds/{identity}/{number:06}", part, term):
            return False
    return shelf.put(f"builds/{identity}/parts", str(len(parts)).encode(), term)
