"""Work on the cores of this machine, by processes that are forked from this one.

A forked process has all data of its parent without a copy, so neither the build nor the function is
pickled. `LocalProcesses` has the interface of `compilers.workers.shards.Workers`. Verbs call
`workers_at`, which chooses between these processes and a cluster.
"""

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
"""The number of switches below which another process costs more than it saves."""
SWITCHES_A_TASK = 8
"""The number of switches that a process takes together."""
WAITING_A_CORE = 4
"""How many tasks for each process may be under way, or done and not yet taken: enough that no
process waits for the next, and few enough that results do not fill the memory."""
GARBAGE_THRESHOLD = 100_000
"""The number of new objects after which a child process collects garbage."""
LIVENESS_CHECK_AFTER = 2.0
"""The seconds of waiting after which the parent looks whether all child processes live."""
TERMINATION_TIMEOUT = 2.0
"""The seconds that a child process has to end when its work is no longer wanted."""
ENDING_SIGNALS = {signal.SIGINT, signal.SIGTERM, signal.SIGHUP}
"""The signals that end a child process or its parent."""
G = TypeVar("G")
"""The type of the shared data."""
P = TypeVar("P")
"""The type of a piece."""
T = TypeVar("T")
"""The type of a result."""

_work: Callable[[Any], Any]
"""The function that child processes apply to pieces. It is set before they are forked."""


class LocalProcesses:
    """One process for each core, forked from this one."""

    remote: ClassVar[bool] = False
    """A forked process has the shared data of its parent."""

    def over(
        self,
        prepare: Callable[[G], Callable[[P], T]],
        shared_data: G,
        pieces: Sequence[P],
        at_once: int = 1,
        least: int = 2,
    ) -> Iterator[T]:
        """Yield the results of all pieces (`compilers.workers.shards.Workers.over`)."""
        cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else 1
        work = prepare(shared_data)
        if cores == 1 or len(pieces) < max(2, least):
            yield from map(work, pieces)
            return
        import multiprocessing

        other_children = _children()
        global _work
        _work = work
        with warnings.catch_warnings(), _signals_blocked():
            # Python 3.12 warns where a progress bar has a thread. The children only call `work`,
            # which uses neither the bar nor its locks.
            warnings.simplefilter("ignore", DeprecationWarning)
            pool = multiprocessing.get_context("fork").Pool(cores, _set_up_child)
        children = _children()
        with _ended(pool, other_children):

            def submit(group: tuple[P, ...]) -> Callable[[], list[T]]:
                """Let a process compute a group; returns a function that waits for the results."""
                result = pool.apply_async(_results_of, (group,))
                return lambda: _wait_for(result, children)

            window = WAITING_A_CORE * cores
            for results in in_window(submit, groups(pieces, at_once), window):
                yield from results


def on_all_cores(
    work: Callable[[int], T],
    switches: Sequence[int],
    progress: Callable[[int, int], None] | None = None,
) -> Iterator[T]:
    """Yield work(switch) for all switches, in their order, on all cores of this machine.

    Args:
        work: the function of a switch.
        switches: the switches.
        progress: called with the number of switches that are done, and of all switches.

    Raises:
        The first exception that `work` raises; child processes are ended then.
    """
    results = LocalProcesses().over(lambda _: work, None, switches, SWITCHES_A_TASK, LEAST_SWITCHES)
    return reported(results, [(switch,) for switch in switches], progress)


@contextmanager
def _ended(pool: Pool, other_children: set[int | None]) -> Iterator[None]:
    """End a pool after the block, and kill child processes that do not end in time.

    A process in a long call of a library in C does not handle SIGTERM until the call returns, and a
    process that was forked a moment ago, in place of a killed one, may never handle it.

    Args:
        pool: the pool.
        other_children: the ids of child processes that are not of the pool.
    """
    import multiprocessing
    import threading

    def kill() -> None:
        """Kill the processes of the pool, and end the pipe of their results."""
        for child in multiprocessing.active_children():
            if child.pid not in other_children:
                child.kill()
        # If a child ends while it writes a result, the pool waits for the rest of it. Closing the
        # last writer ends the pipe.
        pool._outqueue._writer.close()  # type: ignore[attr-defined]

    try:
        yield
    finally:
        timer = threading.Timer(TERMINATION_TIMEOUT, kill)
        timer.daemon = True
        timer.start()
        pool.terminate()
        timer.cancel()


@contextmanager
def _signals_blocked() -> Iterator[None]:
    """Let `ENDING_SIGNALS` wait; processes that are forked meanwhile let them wait, too.

    A child process has its parent's handlers until it sets its own (`_set_up_child`). An exception
    of such a handler would leave `os.fork`, and the child would go on with the work of its parent.
    """
    before = signal.pthread_sigmask(signal.SIG_BLOCK, ())
    try:
        # Here, as it also runs the handlers of signals that have come before, which may raise.
        signal.pthread_sigmask(signal.SIG_BLOCK, ENDING_SIGNALS)
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def _children() -> set[int | None]:
    """Return the ids of all living child processes."""
    import multiprocessing

    return {child.pid for child in multiprocessing.active_children()}


def _wait_for(result: AsyncResult[list[T]], children: set[int | None]) -> list[T]:
    """Wait for the results of a task.

    Args:
        result: of the task.
        children: the ids of all child processes, when the pool was made. The pool replaces a
            process that is killed, so a missing id tells that one was.

    Raises:
        MemoryError: a process was killed, and its task is lost.
    """
    import multiprocessing

    while True:
        try:
            return result.get(LIVENESS_CHECK_AFTER)
        except multiprocessing.TimeoutError:
            if not children <= _children():
                message = "a process was killed, most likely for want of memory"
                raise MemoryError(message) from None


def _set_up_child() -> None:
    """Let a child process leave Ctrl-C to its parent, and end cleanly when the parent ends it.

    It also collects garbage rarely. A collection would look through all objects of the parent, and
    copy their memory pages, and there is little garbage: most objects of a child are freed at once,
    by their counts of references.
    """
    gc.freeze()
    gc.set_threshold(GARBAGE_THRESHOLD)
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, lambda *_: sys.exit())
    signal.pthread_sigmask(signal.SIG_UNBLOCK, ENDING_SIGNALS)


def _results_of(group: tuple[Any, ...]) -> list[Any]:
    """Apply the function to a group of pieces, in a child process."""
    return [_work(piece) for piece in group]


@contextmanager
def workers_at(scheduler: str, folders: Iterable[tuple[Build, Path]] = ()) -> Iterator[Workers]:
    """Yield the workers of a Dask scheduler, or processes of this machine.

    Args:
        scheduler: the address of the scheduler, "" for processes of this machine.
        folders: builds that may be worked on, with their folders, which workers may see as well.

    Raises:
        InputError: the cluster cannot be used (`compilers.workers.dask_cluster.connected`).
    """
    if not scheduler:
        yield LocalProcesses()
        return
    from compilers.workers.dask_cluster import connected

    with connected(scheduler, tuple(folders)) as cluster:
        yield cluster
