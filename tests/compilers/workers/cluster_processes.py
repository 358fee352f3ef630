"""A Dask scheduler and workers, each a process of its own on loopback, forked from this one.

    python cluster_processes.py FOLDER WORKERS

writes the scheduler's address into FOLDER/address, and names its workers by their process ids. It
ends, and they with it, when its standard input does.
"""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from pathlib import Path

import dask
from distributed import Scheduler, Worker

import compilers.proof.verification  # noqa: F401  imported once, before the fork

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


def main() -> None:
    """Fork them, wait for the end of standard input, and end them."""
    address, count = Path(sys.argv[1], "address"), int(sys.argv[2])
    dask.config.set(LIVES)
    children = []
    for run in (schedule, *[work] * count):
        if not (child := os.fork()):
            asyncio.run(run(address))
            os._exit(0)
        children.append(child)
    sys.stdin.read()
    for child in children:
        os.kill(child, signal.SIGKILL)  # nobody has waited for it, so the number is still its own
        os.waitpid(child, 0)


if __name__ == "__main__":
    main()
