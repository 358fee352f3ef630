"""The record of several controllers: in their store, with packed builds, so any can go on.

Functions here block: they run in threads, one at a time.
"""

from __future__ import annotations

import zlib
from collections.abc import Callable
from concurrent.futures import Future
from functools import partial
from typing import Any

from controller.cluster.store import Etcd, Unavailable
from controller.rollout.build_history import BuildHistory
from controller.rollout.fabric_record import FabricRecord, Record, decoded, encoded
from controller.switches.current import Current
from controller.upkeep.background import Start, in_thread
from inventory.problems import InputError

RECORD_CHUNK_BYTES = 512 * 1024
"""Most bytes of a value: etcd takes requests of 1.5 MiB, and base64 lengthens them."""
QUICK = 1
"""The level of zlib."""


Inherited = tuple[Record | None, dict[str, Current]]
"""A predecessor's record, and the builds it names that we do not have, proved."""


class SharedRecord(FabricRecord):
    """The record in the store; it is written while this instance leads, in `term`.

    Args:
        store: as `Etcd`.
        history: the builds on this machine.
        start: starts a job. There is one at a time: a predecessor's record is read before the first
            is written.
    """

    where = "the store"

    def __init__(self, store: Any, history: BuildHistory, start: Start = in_thread) -> None:
        super().__init__()
        self.history, self.term = history, 0
        self._store, self._start = store, start
        self._job: tuple[Future[Any], Callable[[Any], None]] | None = None
        """The job under way, and who gets its answer; None without one."""
        self.trouble = ""
        """Why the record could not be written last; "" if it could."""

    def poll(self) -> None:
        """Deliver the store's answer, or why there is none, if it has arrived."""
        if self._job is None or not self._job[0].done():
            return
        (future, deliver), self._job = self._job, None
        try:
            answer = future.result()
        except Unavailable as error:
            answer = error
        except Exception as error:
            answer = Unavailable(f"the store's content cannot be used: {error!r}")
        deliver(answer)

    def inherit(self, identity: str, answer: Callable[[Inherited | Unavailable], None]) -> None:
        """Read a predecessor's record, and those of its builds that are not this own one."""
        self._job = self._start(partial(_inherit, self._store, identity, self.history)), answer

    def lead(self, term: int, record: Record | None) -> None:
        """We lead from now on, and the store has this record."""
        self.term, self._kept = term, record

    def _write(self, record: Record) -> None:
        """Begin to write the record, if we lead."""
        if not self.term:
            self._written(False)
            return
        job = partial(write, self._store, self.term, record, self._packed)
        self._job = self._start(job), self._wrote

    def _wrote(self, done: bool | Unavailable) -> None:
        """The store has the record, or not."""
        self.trouble = str(done) if isinstance(done, Unavailable) else ""
        self._written(done is True)

    def _packed(self, identity: str) -> bytes | None:
        """A build of ours, packed; None if it cannot be read (then only we can continue)."""
        try:
            return self.history.packed(identity)
        except InputError:
            return None


def _inherit(store: Etcd, identity_here: str, history: BuildHistory) -> Inherited:
    """Read the record; prove and keep its builds that are only in the store."""
    record = read(store)
    builds = {}
    for identity in sorted(record.builds - {identity_here}) if record else ():
        try:
            if identity in history.kept():
                builds[identity] = history.read(identity)
                continue
            packed = fetch(store, identity)
            if packed is None:
                raise Unavailable(f"build {identity} is neither on this machine nor in the store")
            builds[identity] = history.receive(packed, expect=identity)
        except InputError as error:
            raise Unavailable(str(error)) from error
    return record, builds


def read(store: Etcd) -> Record | None:
    """The record, or None if there is none."""
    stored = store.get("record")
    return decoded(stored) if stored else None


def write(store: Etcd, term: int, record: Record, pack: Callable[[str], bytes | None]) -> bool:
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


def fetch(store: Etcd, identity: str) -> bytes | None:
    """A build of the store, packed, or None."""
    count = store.get(f"builds/{identity}/parts")
    if count is None:
        return None
    parts = [store.get(f"builds/{identity}/{number:06}") or b"" for number in range(int(count))]
    return zlib.decompress(b"".join(parts))


def _put_build(store: Etcd, term: int, identity: str, packed: bytes) -> bool:
    """Write a build in parts; returns whether the term lasts."""
    data = zlib.compress(packed, QUICK)
    parts = [
        data[start : start + RECORD_CHUNK_BYTES]
        for start in range(0, len(data), RECORD_CHUNK_BYTES)
    ]
    for number, part in enumerate(parts):
        if not store.put(f"builds/{identity}/{number:06}", part, term):
            return False
    return store.put(f"builds/{identity}/parts", str(len(parts)).encode(), term)
