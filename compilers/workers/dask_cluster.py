"""Work on the workers of a Dask cluster (the extra `cluster`).

A *job*, the function and its shared data, is sent to every worker once, pickled. A build whose
folder all workers see under the same path, with the same identity, is loaded there instead of sent.
When a worker dies, Dask computes its pieces again, on other workers.
"""

from __future__ import annotations

import pickle
import platform
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from hashlib import sha256
from importlib.metadata import PackageNotFoundError, version
from io import BytesIO
from pathlib import Path
from threading import Lock
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple, TypeVar

import numpy as np

from compilers.tables.build import Build
from compilers.tables.folders.build_folder import load
from compilers.tables.folders.folder_contents import identity_in
from compilers.workers.shards import groups, in_window
from compilers.workers.source_digest import source_digest
from inventory.problems import InputError, install_extra

if TYPE_CHECKING:
    from distributed import Client, Future

PROTOCOLS = ("tcp", "tls", "ws", "wss")
"""Dask's protocols over sockets; its others need special hardware, or stay within a process."""
CONNECT_TIMEOUT, ANSWER_TIMEOUT = 2.0, 10.0
"""Seconds: how long a scheduler may take to accept a connection, and to answer."""
LONGEST_GREETING = 1 << 20
"""The most bytes of a scheduler's greeting; other servers do not begin with such a length."""
TASKS_OF_THREAD = 4
"""How many tasks for each thread of the workers may be under way, or done and not yet taken."""
MOST_SENDS = 4
"""The most times that a job is sent to the workers. It is sent again if it is lost with workers."""
SCHEDULER_OPTION = "scheduler"
"""The option that names the scheduler, for messages."""
INSTALL_SAME_VERSION = "install the same there"
"""What to do if a worker has other versions."""
G = TypeVar("G")
"""The type of the shared data."""
P = TypeVar("P")
"""The type of a piece."""
T = TypeVar("T")
"""The type of a result."""


class BuildPlace(NamedTuple):
    """Where a worker can load a build."""

    folder: str
    """The path of the build folder."""
    identity: str
    """The identity that the build there has to have."""


class DaskCluster:
    """The workers of a Dask scheduler."""

    remote: ClassVar[bool] = True
    """Shared data is sent to the workers."""

    def __init__(self, client: Client, folders: Sequence[tuple[Build, Path]] = ()) -> None:
        """Use a scheduler's workers.

        Args:
            client: of the scheduler.
            folders: builds that may be part of shared data, with their folders.
        """
        self._client, self._address = client, str(client.scheduler.address)
        places = [
            (build, BuildPlace(str(path.resolve()), build.identity)) for build, path in folders
        ]
        with self._errors_explained():
            seen_by_all = _seen_by_all(client, [place for _, place in places])
        self._shared = [(build, place) for build, place in places if place in seen_by_all]
        """The builds that every worker can load, which are not sent."""

    def over(
        self,
        prepare: Callable[[G], Callable[[P], T]],
        shared_data: G,
        pieces: Sequence[P],
        at_once: int = 1,
        least: int = 2,  # noqa: ARG002
    ) -> Iterator[T]:
        """Yield the results of all pieces (`compilers.workers.shards.Workers.over`).

        Raises:
            InputError: no worker is left, or several workers died at the same piece.
        """
        with self._errors_explained():
            job = _SentJob(self._client, _packed((prepare, shared_data), self._shared))
            window = TASKS_OF_THREAD * max(4, sum(self._client.nthreads().values()))
            try:
                for results in in_window(job.submit, groups(pieces, at_once), window):
                    yield from results
            finally:
                job.cancel()

    @contextmanager
    def _errors_explained(self) -> Iterator[None]:
        """Turn errors that Dask raises in the block into messages about the cluster.

        Raises:
            InputError: something in the block failed.
        """
        from concurrent.futures import CancelledError

        from distributed.comm import CommClosedError
        from distributed.scheduler import KilledWorker

        try:
            yield
        except KilledWorker as error:
            given = f"workers that end while they do it: {error.last_worker.address} was the last"
            todo = "give them more memory; their logs say more"
            raise self._error("workers that live through their work", given, todo) from error
        except (CancelledError, CommClosedError, TimeoutError, OSError) as error:
            given = "no worker any more that has what it needs, or no scheduler"
            todo = "start them again, and this command"
            raise self._error("workers, and a scheduler that knows them", given, todo) from error
        except ModuleNotFoundError as error:
            given = f"workers without it ({error})"
            raise self._error("polarfab on every worker", given, INSTALL_SAME_VERSION) from error

    def _error(self, required: str, given: str, todo: str) -> InputError:
        """Return an error about the scheduler."""
        return InputError.of(required, given, todo, self._address, key=SCHEDULER_OPTION)


@dataclass(frozen=True, slots=True)
class _Submission:
    """A group of pieces that workers compute."""

    results: Future
    """Gives the results."""
    sends: int
    """How often the job had been sent when the group was submitted (`_SentJob._sends`)."""


class _SentJob:
    """A job on all workers, and the groups of pieces that they compute by it.

    Dask cannot make the job again. When the last worker that holds it dies, the job is lost, and so
    is all work that waits for it (dask/distributed issue 3149). Then it has to be sent again.
    """

    def __init__(self, client: Client, job: bytes) -> None:
        self._client, self._job = client, job
        self._versions = _versions_and_sources()
        self._digest = sha256(job + str(self._versions).encode()).hexdigest()
        """Of the job and the versions, by which a worker knows a job that it has prepared."""
        self._under_way: set[Future] = set()
        """The results that are awaited."""
        self._on_workers = self._scatter()
        """The job on the workers, as Dask names it."""
        self._sends = 1
        """How often the job has been sent."""

    def submit(self, group: tuple[Any, ...]) -> Callable[[], list[Any]]:
        """Let a worker compute a group of pieces; returns a function that waits for the results."""
        return partial(self._wait_for, group, self._submit_once(group))

    def cancel(self) -> None:
        """Give up the groups that are not yet computed."""
        if self._under_way:
            self._client.cancel(list(self._under_way), force=True)

    def _submit_once(self, group: tuple[Any, ...]) -> _Submission:
        """Let a worker compute a group of pieces, by the job that was sent last."""
        future = self._client.submit(
            _run, self._on_workers, self._digest, self._versions, group, pure=False
        )
        self._under_way.add(future)
        return _Submission(future, self._sends)

    def _wait_for(self, group: tuple[Any, ...], submission: _Submission) -> list[Any]:
        """Wait for the results of a group, and submit it again if the job is lost.

        Raises:
            CancelledError: the job was lost `MOST_SENDS`, or the client is closed.
        """
        from concurrent.futures import CancelledError

        while True:
            try:
                results: list[Any] = submission.results.result()
            except CancelledError:
                self._under_way.discard(submission.results)
                self._send_again(submission.sends)
                submission = self._submit_once(group)
            else:
                self._under_way.discard(submission.results)
                return results

    def _send_again(self, sends: int) -> None:
        """Send the job again, unless that has already been done for another group.

        Args:
            sends: how often the job had been sent when the group was submitted that was lost.

        Raises:
            CancelledError: it was lost `MOST_SENDS`, or the client is closed.
        """
        from concurrent.futures import CancelledError

        if sends == MOST_SENDS or self._client.status != "running":
            raise CancelledError
        if sends == self._sends:
            self._on_workers, self._sends = self._scatter(), sends + 1

    def _scatter(self) -> Future:
        """Send the job to all workers."""
        # A name by its content would be that of the job before, which may be about to be removed.
        return self._client.scatter(self._job, broadcast=True, hash=False)


@contextmanager
def connected(address: str, folders: Sequence[tuple[Build, Path]] = ()) -> Iterator[DaskCluster]:
    """Yield the workers of a scheduler, all with the same polarfab, Python and NumPy as here.

    Args:
        address: of the scheduler, HOST:PORT or another form that Dask takes.
        folders: builds that may be worked on, with their folders. Their arrays are not sent to
            workers that see the folders.

    Raises:
        InputError: Dask is not installed, no scheduler answers, it has no workers, or a worker has
            other versions.
    """
    try:
        from distributed import Client
    except ImportError as error:
        given = "a Python without Dask"
        todo = f"install it: {install_extra('cluster')}"
        raise InputError.of(
            "Dask, to reach a scheduler", given, todo, key=SCHEDULER_OPTION
        ) from error
    try:
        _require_listener(address)
        client = Client(address, timeout=ANSWER_TIMEOUT, set_as_default=False)
    except (OSError, ValueError, TimeoutError) as error:
        required = "the address of a Dask scheduler, such as 192.0.2.1:8786"
        todo = "start one: dask scheduler"
        raise InputError.of(required, address, todo, key=SCHEDULER_OPTION) from error
    with client:
        _require_same_versions(client, address)
        yield DaskCluster(client, folders)


def _require_listener(address: str) -> None:
    """Pass when the address has one of `PROTOCOLS`, a port, and a scheduler's greeting.

    Dask's client would try for long where nothing listens, and wait for ever for a silent server. A
    scheduler speaks first: the length of its greeting, then the greeting.

    Raises:
        ValueError: the address has no port, or another protocol.
        OSError: the host has no address, or no scheduler accepts a connection there.
    """
    import socket

    from distributed.comm.addressing import parse_address, parse_host_port

    scheme, host_and_port = parse_address(address)
    if scheme not in PROTOCOLS:
        raise ValueError("another protocol")
    with socket.create_connection(parse_host_port(host_and_port), CONNECT_TIMEOUT) as stream:
        if scheme == "tcp":  # with the others, the client speaks first
            stream.settimeout(ANSWER_TIMEOUT)
            length = stream.recv(8, socket.MSG_WAITALL)
            if not 0 < int.from_bytes(length, sys.byteorder) <= LONGEST_GREETING:
                raise ConnectionError("no scheduler")


def _require_same_versions(client: Client, address: str) -> None:
    """Pass when there are workers, and all have the versions of this process.

    Raises:
        InputError: there are no workers, or one of them has other versions.
    """
    workers = client.get_versions(packages=["polarfab"])["workers"]
    if not workers:
        todo = f"start one: dask worker {address}"
        raise InputError.of(
            "a scheduler with workers", "one without", todo, address, key=SCHEDULER_OPTION
        )
    for worker, versions in workers.items():
        packages = versions["packages"]
        python = ".".join(packages["python"].split(".")[:2])
        _require_versions(packages | {"Python": python}, worker, _versions())


def _require_versions(
    of_worker: Mapping[str, str | None], worker: str, required: Mapping[str, str]
) -> None:
    """Pass when a worker has the required versions.

    Args:
        of_worker: its versions, by the names of packages.
        worker: its address.
        required: the versions that it must have, by the names of packages.

    Raises:
        InputError: it has others.
    """
    for name, version_here in required.items():
        version_there = of_worker.get(name) or "none"
        if version_there != version_here:
            expected = f"{name} {version_here} on worker {worker}, as here"
            raise InputError.of(expected, version_there, INSTALL_SAME_VERSION, key=SCHEDULER_OPTION)


def _versions() -> dict[str, str]:
    """Return the versions of this process that results may depend on."""
    try:
        polarfab = version("polarfab")
    except PackageNotFoundError:
        polarfab = "none"
    python = ".".join(platform.python_version_tuple()[:2])
    return {"polarfab": polarfab, "Python": python, "numpy": np.__version__}


def _versions_and_sources() -> dict[str, str]:
    """Return the versions, and a digest that tells checkouts of the same version apart."""
    return {**_versions(), "polarfab with sources": source_digest()[:16]}


def _seen_by_all(client: Client, places: Sequence[BuildPlace]) -> set[BuildPlace]:
    """Return the build folders that every worker sees."""
    seen_by_worker = client.run(_visible, places) if places else {}
    return set(places).intersection(*seen_by_worker.values())


def _visible(places: Sequence[BuildPlace]) -> list[BuildPlace]:
    """Return the build folders that a worker sees; runs on the worker."""
    return [place for place in places if identity_in(Path(place.folder)) == place.identity]


def _packed(job: object, shared: Sequence[tuple[Build, BuildPlace]]) -> bytes:
    """Pickle a job; a build that all workers see is replaced by its folder and identity."""
    stream = BytesIO()
    pickler = pickle.Pickler(stream, pickle.HIGHEST_PROTOCOL)
    places = {id(build): place for build, place in shared}
    pickler.persistent_id = lambda value: places.get(id(value))  # type: ignore[method-assign]
    pickler.dump(job)
    return stream.getvalue()


def _unpacked(job: bytes) -> Any:
    """Unpickle a job, and load the builds that it names; runs on a worker."""
    unpickler = pickle.Unpickler(BytesIO(job))  # noqa: S301
    unpickler.persistent_load = _load  # type: ignore[method-assign]
    return unpickler.load()


def _load(place: BuildPlace) -> Build:
    """Load a build from its folder; runs on a worker."""
    return load(Path(place.folder), place.identity)


class _PreparedJob(NamedTuple):
    """The last job that a worker has prepared."""

    digest: str
    """The digest of the job (`_SentJob`)."""
    work: Callable[[Any], Any]
    """Its function of a piece."""


_lock = Lock()
"""On a worker: held while a job is prepared, as several threads may work on its pieces."""
_prepared: _PreparedJob | None = None
"""On a worker: the last job; None before the first."""


def _run(job: bytes, digest: str, versions: Mapping[str, str], group: Sequence[Any]) -> list[Any]:
    """Compute the results of a group of pieces; runs on a worker.

    Args:
        job: the function and its shared data, pickled.
        digest: of the job and the versions (`_SentJob`). A job with the digest of the last one is
            not prepared again.
        versions: the versions and sources that the worker must have.
        group: the pieces.
    """
    from distributed import get_worker

    global _prepared
    with _lock:
        if _prepared is None or _prepared.digest != digest:
            _require_versions(_versions_and_sources(), get_worker().address, versions)
            prepare, shared_data = _unpacked(job)
            _prepared = _PreparedJob(digest, prepare(shared_data))
        work = _prepared.work
    return [work(piece) for piece in group]
