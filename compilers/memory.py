"""The memory that this process can have."""

from __future__ import annotations

import os
import re
from pathlib import Path
from resource import RLIM_INFINITY, RLIMIT_AS, getrlimit

from compilers import cgroup_memory

MEMINFO, STATM = Path("/proc/meminfo"), Path("/proc/self/statm")
GB = 1e9


def available() -> int:
    """Bytes that can be had without swapping, in the limits of the process and its control groups.

    All of the machine's where it does not tell.
    """
    limits = cgroup_memory.left(), _of_address_space(), _of_machine()
    return min(limit for limit in limits if limit is not None)


def _of_address_space() -> int | None:
    """Bytes that `ulimit -v` leaves this process; None where it has no such limit."""
    most, _ = getrlimit(RLIMIT_AS)
    if most == RLIM_INFINITY:
        return None
    try:
        used = int(STATM.read_text().split()[0]) * os.sysconf("SC_PAGE_SIZE")
    except OSError:
        used = 0
    return max(0, most - used)


def _of_machine() -> int:
    try:
        found = re.search(r"^MemAvailable:\s+(\d+) kB$", MEMINFO.read_text(), re.MULTILINE)
    except OSError:
        found = None
    if found:
        return int(found[1]) * 1024
    return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
