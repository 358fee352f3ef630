"""Resources that a Mininet network needs, compared with those of the machine.

Limits of the whole machine are told, never set. Memory was measured; the
rest follows from what is started: a shell and programs for flows per host, two descriptors per
port of Open vSwitch, and in each host's neighbour table its gateway. That table has one limit for
all namespaces.
"""

from __future__ import annotations

import resource
import shutil
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from compilers import memory
from compilers.memory import lines_of
from compilers.tables.build import Build
from inventory.problems import InputError, Problem
from mininet_scenarios.scenario.engine import HostSample
from mininet_scenarios.scenario.scenario_file import FlowSpec

BASE, A_PORT, A_HOST = 200, 0.2, 1.0
"""Megabytes: measured at q=3 and q=5 as 145, 0.09 and 0.4."""
NEIGHBOURS = Path("/proc/sys/net/ipv4/neigh/default/gc_thresh3")
PROCESSES = Path("/proc/sys/kernel/pid_max")


@dataclass(frozen=True, slots=True)
class Amounts:
    """Megabytes of memory, open files of one process, processes, entries of neighbour tables."""

    memory: int
    files: int
    processes: int
    neighbours: int


def needed(build: Build, hosts: HostSample) -> Amounts:
    """The resources for a network of this build with these hosts."""
    ports = int(np.count_nonzero(build.wiring.far >= 0)) + len(hosts)
    return Amounts(
        memory=round(BASE + A_PORT * ports + A_HOST * len(hosts)),
        files=2 * ports + 256,
        processes=4 * len(hosts) + 64,
        neighbours=2 * len(hosts),
    )


def available() -> Amounts:
    """The resources of this machine; those that cannot be read count as sufficient."""
    return Amounts(
        memory=memory.available() >> 20,
        files=_limit(resource.RLIMIT_NOFILE),
        processes=min(_limit(resource.RLIMIT_NPROC), _number(PROCESSES)),
        neighbours=_number(NEIGHBOURS),
    )


def require(
    build: Build, hosts: HostSample, flows: FlowSpec | None = None, here: Amounts | None = None
) -> None:
    """Nothing, where there is enough, and iperf3 for TCP flows.

    Raises:
        InputError: what is short, all at once.
    """
    here, wanted = here or available(), needed(build, hosts)
    smaller = "a smaller fabric, fewer hosts (hosts: 1), or --engine model"
    todo = {
        "memory": ("{:,} MB of memory", smaller),
        "files": ("{:,} open files per process", f"ulimit -Hn {wanted.files}, or {smaller}"),
        "processes": ("{:,} processes", f"ulimit -u {wanted.processes}, or {smaller}"),
        "neighbours": (
            "{:,} entries in the neighbour tables of all namespaces (gc_thresh3)",
            f"as root: sysctl -w net.ipv4.neigh.default.gc_thresh3={wanted.neighbours}",
        ),
    }
    problems = [
        Problem(
            key="--engine mininet",
            required=words.format(getattr(wanted, name)),
            given=f"{getattr(here, name):,}",
            todo=hint,
        )
        for name, (words, hint) in todo.items()
        if getattr(here, name) < getattr(wanted, name)
    ]
    if flows and flows.protocol == "tcp" and not shutil.which("iperf3"):
        todo_too = "apt install iperf3, or protocol: udp"
        problems.append(Problem("iperf3", "not there", todo_too, key="--engine mininet"))
    if problems:
        raise InputError(problems)


def _limit(which: int) -> int:
    hard = resource.getrlimit(which)[1]
    return 1 << 40 if hard == resource.RLIM_INFINITY else hard


def _number(file: Path) -> int:
    lines = lines_of(file)
    return int(lines[0]) if lines and lines[0].isdecimal() else 1 << 40
