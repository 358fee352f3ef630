"""Work on a Dask cluster: the same bytes as here, whatever happens to its workers."""

from __future__ import annotations

import json
import os
import signal
import socket
import sys
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from compilers.evaluation.analysis.analyses import AnalysisOptions, analyse
from compilers.evaluation.saturation import saturations
from compilers.forwarding import walks
from compilers.proof.proof_options import ProofOptions
from compilers.proof.verification import judge
from compilers.tables.build import Build
from compilers.tables.folders.build_folder import save
from compilers.workers.dask_cluster import connected
from compilers.workers.shards import THIS_PROCESS, Workers
from inventory.problems import InputError
from tests.compilers.routed import routed
from tests.waiting import until

if TYPE_CHECKING:  # each worker that collects tests would take a second for it
    from distributed import Client

SHARED = ("distances", "load", "resilience")


@contextmanager
def cluster(folder: Path, workers: int) -> Iterator[str]:
    """The address of a scheduler with workers, forked from this process."""
    from tests.compilers.workers.cluster_processes import run_cluster

    address, (end, held) = folder / "address", os.pipe()
    child = os.fork()
    if not child:
        os.close(held)
        try:
            run_cluster(address, workers, end)
        finally:
            os._exit(0)
    os.close(end)
    try:
        until(lambda: address.exists() or os.waitpid(child, os.WNOHANG)[0], "the scheduler")
        yield address.read_text()
    finally:
        os.close(held)
        os.waitpid(child, 0)


def proof(build: Build, workers: Workers, progress: Any = None) -> str:
    """All that is said of a build when every packet is walked."""
    kinds = ("link", "node")
    found = judge(
        [build], (), ProofOptions(progress=progress, failures=kinds, method="walk", workers=workers)
    )
    return json.dumps(found.as_dict())


def measures(build: Build, workers: Workers) -> tuple[object, ...]:
    options = AnalysisOptions(runs=5, workers=workers)
    measured = [analyse(build.topology, name, options) for name in SHARED]
    return saturations(build, ("tornado", "uniform"), workers=workers), measured


def workers_of(client: Client) -> list[int]:
    return [worker["name"] for worker in client.scheduler_info(n_workers=-1)["workers"].values()]


def the_same(_: object) -> Callable[[int], int]:
    return lambda piece: piece


def tasks(dask_scheduler: Any) -> int:
    return len(dask_scheduler.tasks)


def jobs(dask_scheduler: Any) -> list[str]:
    return [key for key, task in dask_scheduler.tasks.items() if not task.run_spec]


def end(_: object) -> Callable[[int], None]:
    return lambda _: os.kill(os.getpid(), signal.SIGKILL)


def test_workers_say_what_one_process_does_though_one_is_killed_half_way(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """And once all have ended, the scheduler is refused."""
    from distributed import Client, Future

    build = save(routed(q=3, spread=True, protect="node"), tmp_path / "build")
    monkeypatch.setattr(walks, "CELLS_AT_ONCE", 1 << 8)
    alone, measured = proof(build, THIS_PROCESS), measures(build, THIS_PROCESS)
    with cluster(tmp_path, 3) as address, Client(address, set_as_default=False) as client:
        until(lambda: len(workers_of(client)) == 3, "three workers")
        with connected(address, [(build, tmp_path / "build")]) as shared:
            assert measures(build, shared) == measured
            victim, told = workers_of(client)[0], []

            def half(done: int, count: int) -> None:
                told.append(done / count)
                if len(told) == 5:
                    os.kill(victim, signal.SIGKILL)

            assert proof(build, shared, half) == alone
            assert sum(share == 1 for share in told) == 2  # minimal paths; all paths and failures
            until(lambda: len(workers_of(client)) == 2, "two workers")
        with connected(address) as others:  # who do not see the folder
            assert proof(build, others) == alone
            given_up = others.over(the_same, None, range(40))
            assert next(given_up) == 0
            given_up.close()  # type: ignore[attr-defined]
            until(lambda: client.run_on_scheduler(tasks) <= 1, "cancelled")
            lost = others.over(the_same, None, range(40))
            assert next(lost) == 0
            (job,) = client.run_on_scheduler(jobs)
            client.cancel([Future(job, client)], force=True)  # as if its last worker had ended
            assert list(lost) == [*range(1, 40)]
            with pytest.raises(InputError, match="workers that end while they do it"):
                list(others.over(end, None, range(1)))
        until(lambda: not workers_of(client), "no worker")
        with pytest.raises(InputError, match=f"dask worker {address}"), connected(address):
            pass


def test_somebody_who_is_no_scheduler() -> None:
    said = b"SSH-2.0-OpenSSH_9.2"
    with socket.create_server(("127.0.0.1", 0)) as other, ThreadPoolExecutor() as pool:
        greeting = pool.submit(lambda: (peer := other.accept()[0]).sendall(said) or peer)
        address = "{}:{}".format(*other.getsockname())
        with pytest.raises(InputError, match="dask scheduler") as error, connected(address):
            pass
        greeting.result().close()
    assert address in str(error.value)


@pytest.mark.parametrize(
    "address",
    [
        "nonsense",
        "no-such-host.invalid:8786",
        "127.0.0.1:1",
        "ws://127.0.0.1:1",
    ],
)
def test_an_address_where_nobody_listens_is_refused(address: str) -> None:
    with pytest.raises(InputError, match=r"such as 192\.0\.2\.1:8786") as error, connected(address):
        pass
    assert address in str(error.value)


def test_without_dask_the_extra_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "distributed", None)
    with pytest.raises(InputError, match=r"polarfab\[cluster\]"), connected("127.0.0.1:1"):
        pass
