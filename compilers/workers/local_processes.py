"""Work on every core of this machine, by processes that are forked from this one."""

from __future__ import annotations

import gc
import os
import signal
import sys
import warnings
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, TypeVar

from compilers.workers.shards import Workers, groups, in_window, reported

if TYPE_CHECKING:
    from multiprocessing.pool import AsyncResult, Pool

    from compilers.tables.build import Build


LEAST_SWITCHES = 64
"""Switches below which another process costs more than it saves."""
SWITCHES_A_TASK = 8
"""Switches that a process takes at once."""
WAITING_A_CORE = 4
"""Tasks a process that may be under way, or done and not yet taken."""
GARBAGE = 100_000
"""New objects after which a child looks for garbage."""
LOOK = 2.0
"""Seconds of waiting after which it is asked whether all processes live."""
GRACE = 2.0
"""Seconds that a process has to tidy up when its work is no longer wanted."""
G = TypeVar("G")
P = TypeVar("P")
T = TypeVar("T")

_work: Callable[[Any], Any]
"""What the processes do. They are forked, so neither it nor the build that it holds is pickled."""


class LocalProcesses:
    """A process a core, forked with all that this one holds."""

    remote: ClassVar[bool] = False

    def over(
        self,
        prepare: Callable[[G], Callable[[P], T]],
        given: G,
        pieces: Sequence[P],
        at_once: int = 1,
        least: int = 2,
    ) -> Iterator[T]:
        """See `compilers.workers.shards.Workers.over`."""
        cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else 1
        work = prepare(given)
        if cores == 1 or len(pieces) < max(2, least):
            yield from map(work, pieces)
            return
        import multiprocessing

        before = _children()
        global _work
        _work = work
        with warnings.catch_warnings():
            # Python 3.12 warns where a progress bar has a thread. The children run our work only,
            # and that touches neither the bar nor its locks.
            warnings.simplefilter("ignore", DeprecationWarning)
            pool = multiprocessing.get_context("fork").Pool(cores, _ready)
        children = _children()
        with _ending(pool, before):

            def submit(group: tuple[P, ...]) -> Callable[[], list[T]]:
                result = pool.apply_async(_call, (group,))
                return lambda: _waited(result, children)

            window = WAITING_A_CORE * cores
            for results in in_window(submit, groups(pieces, at_once), window):
                yield from results


def on_all_cores(
    work: Callable[[int], T],
    switches: Sequence[int],
    progress: Callable[[int, int], None] | None = None,
) -> Iterator[T]:
    """work(switch) for all switches, in their order, on all cores of this machine.

    progress: called with (switches done, all switches).

    Raises:
        Whatever `work` raises first; what is under way then is ended.
    """
    results = LocalProcesses().over(lambda _: work, None, switches, SWITCHES_A_TASK, LEAST_SWITCHES)
    return reported(results, [(switch,) for switch in switches], progress)


@contextmanager
def _ending(pool: Pool, others: set[int | None]) -> Iterator[None]:
    """A pool that is ended behind this block; what lives GRACE seconds later is killed.

    A process in the midst of a long call of a library in C does not see SIGTERM until that returns,
    and one that was forked a moment ago, in place of one that was killed, may never see it.
    """
    import multiprocessing
    import threading

    def kill() -> None:
        for child in multiprocessing.active_children():
            if child.pid not in others:
                child.kill()
        # A child that ended in the midst of a result leaves the pool reading on for the rest of it:
        # without a writer the pipe ends.
        pool._outqueue._writer.close()  # type: ignore[attr-defined]

    try:
        yield
    finally:
        timer = threading.Timer(GRACE, kill)
        timer.daemon = True
        timer.start()
        pool.terminate()
        timer.cancel()


def _children() -> set[int | None]:
    import multiprocessing

    return {child.pid for child in multiprocessing.active_children()}


def _waited(result: AsyncResult[list[T]], children: set[int | None]) -> list[T]:
    """The results of a task, once they are there.

    Raises:
        MemoryError: a process was killed, and its task with it.
    """
    import multiprocessing

    while True:
        try:
            return result.get(LOOK)
        except multiprocessing.TimeoutError:
            if not children <= _children():
                message = "a process was killed, most likely for want of memory"
                raise MemoryError(message) from None


def _ready() -> None:
    """A child leaves Ctrl-C to its parent, and tidies up when that ends it.

    What the parent made stays, and most of what a child makes goes at once: garbage is rare.
    """
    gc.freeze()
    gc.set_threshold(GARBAGE)
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, lambda *_: sys.exit())


def _call(group: tuple[Any, ...]) -> list[Any]:
    return [_work(piece) for piece in group]


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
