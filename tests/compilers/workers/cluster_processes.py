"""A Dask scheduler and workers, each a process of its own on loopback.

All are forked from a process that has imported Dask, which takes a second.
"""

from __future__ import annotations

import asyncio
import os
import signal
from pathlib import Path

import dask
from distributed import Scheduler, Worker

LIVES = {"distributed.scheduler.allowed-failures": 1}


async def schedule(address: Path) -> None:
    """Run the scheduler."""
    async with Scheduler(host="127.0.0.1", port=0, dashboard_address=":0") as scheduler:
        written = address.with_suffix(".part")
        written.write_text(scheduler.address)
        written.rename(address)
        await scheduler.finished()


async def work(address: Path) -> None:
    """Run a worker of one thread."""
    while not address.exists():
        await asyncio.sleep(0.02)
    async with Worker(
        address.read_text(),
        host="127.0.0.1",
        nthreads=1,
        name=os.getpid(),
        dashboard=False,
        local_directory=address.parent,
    ) as worker:
        await worker.finished()


def run_cluster(address: Path, count: int, end: int) -> None:
    """Fork them, wait for the end of a pipe, and end them.

    Args:
        address: the file that the scheduler's address is written into.
        count: how many workers there are; each is named by its process id.
        end: the pipe.
    """
    dask.config.set(LIVES)
    children = []
    for run in (schedule, *[work] * count):
        if not (child := os.fork()):
            asyncio.run(run(address))
            os._exit(0)
        children.append(child)
    os.read(end, 1)
    for child in children:
        os.kill(child, signal.SIGKILL)  # nobody has waited for it, so the number is still its own
        os.waitpid(child, 0)
