"""Work on the workers of a Dask cluster (the extra `cluster`).

What is given travels to every worker once. A build whose folder they see under the same path, with
the same identity, is loaded there instead. Dask repeats the pieces of a worker that dies on others.
"""

from __future__ import annotations

import pickle
import platform
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from hashlib import sha256
from importlib.metadata import PackageNotFoundError, version
from io import BytesIO
from pathlib import Path
from threading import Lock
from typing import TYPE_CHECKING, Any, ClassVar, TypeVar

import numpy as np

from compilers.tables.build import Build
from compilers.tables.folders.build_folder import load
from compilers.tables.folders.generations import identity_in
from compilers.workers.shards import groups, in_window
from compilers.workers.source_digest import source_digest
from inventory.problems import InputError, install_extra

if TYPE_CHECKING:
    from distributed import Client, Future

PROTOCOLS = ("tcp", "tls", "ws", "wss")
"""Over sockets; Dask's others need what is not there, or are within a process."""
LISTENS_IN, ANSWERS_IN = 2.0, 10.0
"""Seconds that a scheduler may take to accept a connection, and to answer."""
LONGEST_GREETING = 1 << 20
"""Bytes that a scheduler greets with at most; what others say is no such length."""
WAITING_A_THREAD = 4
"""Tasks a thread of the workers that may be under way, or done and not yet taken."""
MOST_TIMES = 4
"""A job is sent to the workers, when it is lost with some of them."""
OPTION = "scheduler"
SAME = "install the same there"
G = TypeVar("G")
P = TypeVar("P")
T = TypeVar("T")
Place = tuple[str, str]
"""The folder and the identity of a build."""


class DaskCluster:
    """The workers that a Dask scheduler has.

    Args:
        client: of the scheduler.
        folders: of builds that may be given.
    """

    remote: ClassVar[bool] = True

    def __init__(self, client: Client, folders: Sequence[tuple[Build, Path]] = ()) -> None:
        self._client, self._address = client, str(client.scheduler.address)
        places = [(build, (str(path.resolve()), build.identity)) for build, path in folders]
        with self._explained():
            seen = _shared_by_all(client, [place for _, place in places])
        self._shared = [(build, place) for build, place in places if place in seen]

    def over(
        self,
        prepare: Callable[[G], Callable[[P], T]],
        given: G,
        pieces: Sequence[P],
        at_once: int = 1,
        least: int = 2,  # noqa: ARG002
    ) -> Iterator[T]:
        """See `compilers.workers.shards.Workers.over`.

        Raises:
            InputError: no worker is left, or several ended at the same piece.
        """
        job = _packed((prepare, given), self._shared)
        code = _code_here()
        name = sha256(job + str(code).encode()).hexdigest()
        under_way: set[Future] = set()
        with self._explained():
            sent = _Sent(self._client, job)

            def submit(group: tuple[P, ...]) -> Callable[[], list[T]]:
                def send() -> tuple[Future, int]:
                    job, time = sent.current
                    future = self._client.submit(_run, job, name, code, group, pure=False)
                    under_way.add(future)
                    return future, time

                return partial(self._taken, send, send(), sent, under_way)

            window = WAITING_A_THREAD * max(4, sum(self._client.nthreads().values()))
            try:
                for results in in_window(submit, groups(pieces, at_once), window):
                    yield from results
            finally:
                if under_way:
                    self._client.cancel(list(under_way), force=True)

    def _taken(
        self,
        send: Callable[[], tuple[Future, int]],
        first: tuple[Future, int],
        sent: _Sent,
        under_way: set[Future],
    ) -> list[Any]:
        """The results of a group, submitted once more where the job was lost."""
        from concurrent.futures import CancelledError

        future, time = first
        while True:
            try:
                results: list[Any] = future.result()
            except CancelledError:
                under_way.discard(future)
                sent.again(time)
                future, time = send()
            else:
                under_way.discard(future)
                return results

    @contextmanager
    def _explained(self) -> Iterator[None]:
        """What Dask raises, as what happened to the cluster."""
        from concurrent.futures import CancelledError

        from distributed.comm import CommClosedError
        from distributed.scheduler import KilledWorker

        try:
            yield
        except KilledWorker as error:
            given = f"workers that end while they do it: {error.last_worker.address} was the last"
            todo = "give them more memory; their logs say more"
            raise self._of("workers that live through their work", given, todo) from error
        except (CancelledError, CommClosedError, TimeoutError, OSError) as error:
            given = "no worker any more that has what it needs, or no scheduler"
            todo = "start them again, and this command"
            raise self._of("workers, and a scheduler that knows them", given, todo) from error
        except ModuleNotFoundError as error:
            given = f"workers without it ({error})"
            raise self._of("polarfab on every worker", given, SAME) from error

    def _of(self, required: str, given: str, todo: str) -> InputError:
        return InputError.of(required, given, todo, self._address, key=OPTION)


class _Sent:
    """A job on all workers. Dask has nothing to make it from again: with the last worker that holds
    it, it is lost, and so is all work that waits for it (dask/distributed issue 3149).

    Raises:
        CancelledError: it was lost `MOST_TIMES`.
    """

    def __init__(self, client: Client, job: bytes) -> None:
        self._client, self._job = client, job
        self.current: tuple[Future, int] = self._scattered(), 1
        """The job, and how often it was sent."""

    def again(self, time: int) -> None:
        """Send the job once more, if the one that was lost is the last that was sent."""
        from concurrent.futures import CancelledError

        if time == MOST_TIMES or self._client.status != "running":
            raise CancelledError
        if time == self.current[1]:
            self.current = self._scattered(), time + 1

    def _scattered(self) -> Future:
        # By its content it would have the name of one before, which may be on its way out.
        return self._client.scatter(self._job, broadcast=True, hash=False)


@contextmanager
def connected(address: str, folders: Sequence[tuple[Build, Path]] = ()) -> Iterator[DaskCluster]:
    """The workers of a scheduler, all with the same polarfab, Python and NumPy as here.

    Args:
        address: of the scheduler, HOST:PORT or what else Dask takes.
        folders: of builds that are to be worked on; their arrays do not travel to workers that see
            the folder.

    Raises:
        InputError: Dask is not installed, no scheduler answers, it has no workers, or one of them
            has other versions.
    """
    try:
        from distributed import Client
    except ImportError as error:
        given = "a Python without Dask"
        todo = f"install it: {install_extra('cluster')}"
        raise InputError.of("Dask, to reach a scheduler", given, todo, key=OPTION) from error
    try:
        _require_listener(address)
        client = Client(address, timeout=ANSWERS_IN, set_as_default=False)
    except (OSError, ValueError, TimeoutError) as error:
        required = "the address of a Dask scheduler, such as 192.0.2.1:8786"
        todo = "start one: dask scheduler"
        raise InputError.of(required, address, todo, key=OPTION) from error
    with client:
        _require_alike(client, address)
        yield DaskCluster(client, folders)


def _require_listener(address: str) -> None:
    """Pass when the address has one of `PROTOCOLS`, a port, and a scheduler's greeting.

    A client would try again for long where nothing listens, and wait for ever for one that is
    silent. A scheduler speaks first: the length of its greeting, then that.

    Raises:
        ValueError: it has no port, or another protocol.
        OSError: the host has no address, or nothing accepts a connection there, or no scheduler
            does.
    """
    import socket

    from distributed.comm.addressing import parse_address, parse_host_port

    scheme, place = parse_address(address)
    if scheme not in PROTOCOLS:
        raise ValueError("another protocol")
    with socket.create_connection(parse_host_port(place), LISTENS_IN) as stream:
        if scheme == "tcp":  # with the others, the client speaks first
            stream.settimeout(ANSWERS_IN)
            length = stream.recv(8, socket.MSG_WAITALL)
            if not 0 < int.from_bytes(length, sys.byteorder) <= LONGEST_GREETING:
                raise ConnectionError("no scheduler")


def _require_alike(client: Client, address: str) -> None:
    """Pass when there are workers, and what they compute is what this process would.

    Raises:
        InputError: there are none, or one of them has other versions.
    """
    found = client.get_versions(packages=["polarfab"])["workers"]
    if not found:
        todo = f"start one: dask worker {address}"
        raise InputError.of("a scheduler with workers", "one without", todo, address, key=OPTION)
    for worker, facts in found.items():
        packages = facts["packages"]
        python = ".".join(packages["python"].split(".")[:2])
        _require_versions(packages | {"Python": python}, worker, _here())


def _require_versions(
    there: Mapping[str, str | None], worker: str, here: Mapping[str, str]
) -> None:
    """Pass when a worker's versions are these.

    Raises:
        InputError: they are not.
    """
    for name, wanted in here.items():
        if (given := there.get(name) or "none") != wanted:
            required = f"{name} {wanted} on worker {worker}, as here"
            raise InputError.of(required, given, SAME, key=OPTION)


def _here() -> dict[str, str]:
    """The versions that results may depend on."""
    try:
        polarfab = version("polarfab")
    except PackageNotFoundError:
        polarfab = "none"
    python = ".".join(platform.python_version_tuple()[:2])
    return {"polarfab": polarfab, "Python": python, "numpy": np.__version__}


def _code_here() -> dict[str, str]:
    """The versions, and what distinguishes checkouts of the same version."""
    return {**_here(), "polarfab with sources": source_digest()[:16]}


def _shared_by_all(client: Client, places: Sequence[Place]) -> set[Place]:
    """The build folders that every worker sees."""
    seen = client.run(_seen, places) if places else {}
    return set(places).intersection(*seen.values())


def _seen(places: Sequence[Place]) -> list[Place]:
    """On a worker: the build folders that are there."""
    return [place for place in places if identity_in(Path(place[0])) == place[1]]


def _packed(job: object, shared: Sequence[tuple[Build, Place]]) -> bytes:
    """A job as bytes; builds that workers have are named in it only."""
    stream = BytesIO()
    pickler = pickle.Pickler(stream, pickle.HIGHEST_PROTOCOL)
    places = {id(build): place for build, place in shared}
    pickler.persistent_id = lambda value: places.get(id(value))  # type: ignore[method-assign]
    pickler.dump(job)
    return stream.getvalue()


def _unpacked(job: bytes) -> Any:
    """On a worker: the job."""
    unpickler = pickle.Unpickler(BytesIO(job))  # noqa: S301
    unpickler.persistent_load = lambda place: load(Path(place[0]), place[1])  # type: ignore[method-assign]
    return unpickler.load()


_lock, _prepared = Lock(), ("", _unpacked)
"""On a worker: the last job, by its digest, and what is done with a piece of it."""


def _run(job: bytes, name: str, here: Mapping[str, str], group: Sequence[Any]) -> list[Any]:
    """On a worker: the results of a few pieces."""
    from distributed import get_worker

    global _prepared
    with _lock:
        if _prepared[0] != name:
            _require_versions(_code_here(), get_worker().address, here)
            prepare, given = _unpacked(job)
            _prepared = name, prepare(given)
        work = _prepared[1]
    return [work(piece) for piece in group]
