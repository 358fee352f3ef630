"""The fabric's record in the store that several controllers share, so that any can take over.

The record (`controller.rollout.fabric_record.Record`) says which builds the fabric runs and moves
to, and what is drained. The store has it under `record`, and under `builds/IDENTITY/` each build
that it names, as a compressed archive in numbered parts. `controller.cluster.cluster_member` reads
a predecessor's record when this controller becomes the leader, and writes its own from then on.

The functions of this module wait for the store, so they run in a thread, one call at a time.
"""

from __future__ import annotations

import zlib
from collections.abc import Callable
from concurrent.futures import Future
from contextlib import suppress
from functools import partial
from typing import Any, NamedTuple

from controller.cluster.store import Etcd, Unavailable
from controller.rollout.build_history import BuildHistory
from controller.rollout.fabric_record import FabricRecord, Record, record_from_json, record_to_json
from controller.switches.current import Current
from controller.upkeep.background import Start, in_thread
from inventory.problems import InputError

RECORD_CHUNK_BYTES = 512 * 1024
"""Most bytes of a value: etcd takes requests of 1.5 MiB, and base64 lengthens them."""
UNVERIFIED = "unverified"
"""The last part of the key beside a build which says that the leader was told to take the build
unverified."""
FASTEST_COMPRESSION = 1
"""The level of zlib for builds in the store."""


Inherited = tuple[Record | None, dict[str, Current]]
"""A predecessor's record, None if there is none; and by identity the builds that it names, proved,
without the build that runs here."""


class _Job(NamedTuple):
    """A job for the store."""

    answer: Future[Any]
    """The store's answer."""
    deliver: Callable[[Any], None]
    """Takes the answer, or why there is none (`Unavailable`)."""


class SharedRecord(FabricRecord):
    """The record in the store; it is written while this controller leads, in `term`.

    Args:
        store: the store, such as an `Etcd`.
        history: the builds on this machine.
        start: runs a job in a thread. At most one runs at a time: a predecessor's record is read
            before the first one is written.
    """

    where = "the store"

    def __init__(self, store: Any, history: BuildHistory, start: Start = in_thread) -> None:
        super().__init__()
        self.history = history
        self.term = 0
        """The term in which this controller leads; 0 while it does not."""
        self._store, self._start = store, start
        self._job: _Job | None = None
        """The job under way; None without one."""
        self.trouble = ""
        """Why the record could not be written last; "" if it could."""

    def poll(self) -> None:
        """Deliver the store's answer, or why there is none, if it has arrived."""
        if self._job is None or not self._job.answer.done():
            return
        job, self._job = self._job, None
        try:
            answer = job.answer.result()
        except Unavailable as error:
            answer = error
        except Exception as error:
            answer = Unavailable(f"the store's content cannot be used: {error!r}")
        job.deliver(answer)

    def inherit(self, identity: str, deliver: Callable[[Inherited | Unavailable], None]) -> None:
        """Begin to read a predecessor's record and the builds that it names.

        Args:
            identity: the identity of the build that runs here, which is not read.
            deliver: takes the record and the builds, or why they cannot be had.
        """
        work = partial(_inherit, self._store, identity, self.history)
        self._job = _Job(self._start(work), deliver)

    def lead(self, term: int, record: Record | None) -> None:
        """Write records from now on, as the leader of this term.

        Args:
            term: the term of this controller's leadership.
            record: the record that the store has.
        """
        self.term, self._stored = term, record

    def _write(self, record: Record) -> None:
        """Begin to write the record, if this controller leads."""
        if not self.term:
            self._written(False)
            return
        work = partial(
            write_record, self._store, self.term, record, self._archive, self.history.is_verified
        )
        self._job = _Job(self._start(work), self._take_result)

    def _take_result(self, result: bool | Unavailable) -> None:
        """Note whether the store has the record.

        Args:
            result: as `write_record` returns it, or why the store could not be written.
        """
        self.trouble = str(result) if isinstance(result, Unavailable) else ""
        self._written(result is True)

    def _archive(self, identity: str) -> bytes | None:
        """The archive of a build on this machine; None if it cannot be read.

        Without its archive in the store no other controller can take over from this one.
        """
        try:
            return self.history.packed(identity)
        except InputError:
            return None


def _inherit(store: Etcd, identity_here: str, history: BuildHistory) -> Inherited:
    """Read the record and its builds: from this machine, else from the store.

    A build from the store is proved, and added to the builds on this machine. One that the leader
    was told to take unverified is added although its walk finds faults: the fabric holds it.

    Raises:
        Unavailable: the store does not answer, or a build is nowhere or cannot be used.
    """
    record = read_record(store)
    builds = {}
    for identity in sorted(record.builds - {identity_here}) if record else ():
        if identity in history.kept_builds():
            with suppress(InputError):  # a damaged one is replaced by that of the store
                builds[identity] = history.read(identity)
                continue
        try:
            build = receive_build(store, identity, history)
            if build is None:
                raise Unavailable(f"build {identity} is neither on this machine nor in the store")
            builds[identity] = build
        except InputError as error:
            raise Unavailable(str(error)) from error
    return record, builds


def receive_build(store: Etcd, identity: str, history: BuildHistory) -> Current | None:
    """Fetch a build from the store, prove it, and add it to the builds on this machine.

    Returns:
        The build; None if the store does not have it.

    Raises:
        Unavailable: the store does not answer.
        InputError: the build cannot be used, or cannot be written.
    """
    packed = fetch_archive(store, identity)
    if packed is None:
        return None
    is_unverified = store.get(f"builds/{identity}/{UNVERIFIED}") is not None
    return history.receive(packed, is_unverified, expect=identity)


def read_record(store: Etcd) -> Record | None:
    """The record, or None if there is none."""
    stored = store.get("record")
    return record_from_json(stored) if stored else None


def write_record(
    store: Etcd,
    term: int,
    record: Record,
    pack: Callable[[str], bytes | None],
    is_verified: Callable[[str], bool] = lambda _: True,
) -> bool:
    """Write the record, its builds first, and delete builds that it does not name.

    Args:
        store: the store.
        term: the term in which this controller leads.
        record: the record.
        pack: returns the archive of a build by its identity; None if it cannot be read.
        is_verified: whether a build is verified, by its identity.

    Returns:
        Whether all was written; False if another controller leads by now.
    """
    # A build whose key `builds/IDENTITY/parts` is there is stored completely.
    stored = {key.split("/")[1] for key in store.keys("builds/") if key.endswith("/parts")}
    needed = record.named
    for identity in sorted(needed - stored):
        packed = pack(identity)
        if packed is None:
            continue
        unverified_key = f"builds/{identity}/{UNVERIFIED}"
        if not is_verified(identity) and not store.put(unverified_key, b"1", term):
            return False
        if not _put_build(store, term, identity, packed):
            return False
    if not store.put("record", record_to_json(record), term):
        return False
    return all(store.delete(f"builds/{identity}/", term) for identity in sorted(stored - needed))


def fetch_archive(store: Etcd, identity: str) -> bytes | None:
    """The archive of a build in the store; None if the store does not have it."""
    count = store.get(f"builds/{identity}/parts")
    if count is None:
        return None
    parts = [store.get(f"builds/{identity}/{number:06}") or b"" for number in range(int(count))]
    return zlib.decompress(b"".join(parts))


def _put_build(store: Etcd, term: int, identity: str, packed: bytes) -> bool:
    """Write the archive of a build in parts, then their number.

    Returns:
        Whether all was written; False if another controller leads by now.
    """
    data = zlib.compress(packed, FASTEST_COMPRESSION)
    parts = [
        data[start : start + RECORD_CHUNK_BYTES]
        for start in range(0, len(data), RECORD_CHUNK_BYTES)
    ]
    for number, part in enumerate(parts):
        if not store.put(f"builds/{identity}/{number:06}", part, term):
            return False
    return store.put(f"builds/{identity}/parts", str(len(parts)).encode(), term)
