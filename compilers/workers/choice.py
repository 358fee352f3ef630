"""The choice of workers: this machine's cores, or those that a scheduler has."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from compilers.workers.local_processes import LocalProcesses
from compilers.workers.shards import Workers

if TYPE_CHECKING:
    from compilers.tables.build import Build


@contextmanager
def workers_at(scheduler: str, folders: Iterable[tuple[Build, Path]] = ()) -> Iterator[Workers]:
    """The workers of a Dask scheduler, or processes of this machine without one.

    Args:
        scheduler: its address, "" for none.
        folders: of builds that are to be worked on, which workers may see as well.

    Raises:
        InputError: see `compilers.workers.dask_cluster.connected`.
    """
    if not scheduler:
        yield LocalProcesses()
        return
    from compilers.workers.dask_cluster import connected

    with connected(scheduler, tuple(folders)) as cluster:
        yield cluster
