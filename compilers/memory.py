"""How much memory this process can still get on Linux.

It is the least of three amounts: what is free on the machine, what `ulimit -v` allows, and what the
process's control groups allow, as in a container. `compilers.memory_bound` compares it with what a
fabric needs.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from resource import RLIM_INFINITY, RLIMIT_AS, getrlimit

MEMINFO, STATM = Path("/proc/meminfo"), Path("/proc/self/statm")
"""The memory of the machine, and that of this process (proc(5))."""
GB = 1e9
"""The bytes of a gigabyte."""
BYTES_OF_KB = 1024
"""The bytes of a kB in /proc/meminfo."""
GROUPS, MOUNTS = Path("/proc/self/cgroup"), Path("/proc/self/mountinfo")
"""The control groups of this process, and where their hierarchies are mounted (cgroups(7))."""


@dataclass(frozen=True, slots=True)
class GroupFiles:
    """The names of a control group's files about memory."""

    limit: str
    """The file with the limit in bytes."""
    use: str
    """The file with the bytes in use."""
    reclaimable: str
    """The entry of memory.stat for bytes that can be reclaimed."""


FILES = {
    "cgroup2": GroupFiles("memory.max", "memory.current", "inactive_file"),
    "cgroup": GroupFiles("memory.limit_in_bytes", "memory.usage_in_bytes", "total_inactive_file"),
}
"""The files by the version of control groups."""


def available() -> int:
    """Return the bytes that this process can get without swapping.

    All memory of the machine if it does not tell how much is free.
    """
    amounts = left_by_control_groups(), _left_by_ulimit(), _free_on_machine()
    return min(amount for amount in amounts if amount is not None)


def _left_by_ulimit() -> int | None:
    """Return the bytes that `ulimit -v` leaves this process; None without such a limit."""
    limit, _ = getrlimit(RLIMIT_AS)
    if limit == RLIM_INFINITY:
        return None
    try:
        used = int(STATM.read_text().split()[0]) * os.sysconf("SC_PAGE_SIZE")
    except OSError:
        used = 0
    return max(0, limit - used)


def _free_on_machine() -> int:
    """Return the bytes that are free on the machine, or all that it has if it does not tell."""
    try:
        match = re.search(r"^MemAvailable:\s+(\d+) kB$", MEMINFO.read_text(), re.MULTILINE)
    except OSError:
        match = None
    if match:
        return int(match[1]) * BYTES_OF_KB
    return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")


def left_by_control_groups() -> int | None:
    """Return the least bytes that a control group of this process leaves; None without limits."""
    amounts = (_left_by_group(group, version) for group, version in _groups())
    return min((free for free in amounts if free is not None), default=None)


def _groups() -> Iterator[tuple[Path, str]]:
    """Yield the control groups of this process and the groups around them, with their versions."""
    for version, root, mount in _mounts():
        for group in _paths(version):
            below_root = group.relative_to(root) if group.is_relative_to(root) else PurePosixPath()
            path = mount / below_root
            yield path, version
            for parent in path.parents:
                if not parent.is_relative_to(mount):
                    break
                yield parent, version


def _mounts() -> Iterator[tuple[str, PurePosixPath, Path]]:
    """Yield the version, the root and the mount point of each hierarchy that counts memory.

    They are read from lines such as `31 24 0:27 / /sys/fs/cgroup rw shared:4 - cgroup2 cgroup2 rw`.
    """
    for line in lines_of(MOUNTS):
        before, _, after = line.partition(" - ")
        kind, options = after.split(" ", 1)[0], after.rsplit(" ", 1)[-1].split(",")
        if kind == "cgroup2" or (kind == "cgroup" and "memory" in options):
            root, mount = before.split(" ")[3:5]
            yield kind, PurePosixPath(root), Path(mount)


def _paths(version: str) -> Iterator[PurePosixPath]:
    """Yield the paths of this process's groups in hierarchies of a version that count memory.

    They are read from lines such as `0::/user.slice` or, in version 1, `4:memory:/user.slice`.
    """
    for line in lines_of(GROUPS):
        _, controllers, path = line.split(":", 2)
        if version == "cgroup2":
            counts_memory = not controllers
        else:
            counts_memory = "memory" in controllers.split(",")
        if counts_memory:
            yield PurePosixPath(path)


def _left_by_group(group: Path, version: str) -> int | None:
    """Return the bytes that a group leaves; None without a limit."""
    files = FILES[version]
    limit, used = _number(group / files.limit), _number(group / files.use)
    if limit is None or used is None:
        return None
    stat = dict(line.split(" ", 1) for line in lines_of(group / "memory.stat") if " " in line)
    return max(0, limit - used + int(stat.get(files.reclaimable, 0)))


def _number(file: Path) -> int | None:
    """Return the number in a file; None where there is none, such as for "max"."""
    lines = lines_of(file)
    return int(lines[0]) if lines and lines[0].isdecimal() else None


def lines_of(file: Path) -> list[str]:
    """Return the lines of a file; [] if it cannot be read."""
    try:
        return file.read_text().splitlines()
    except OSError:
        return []
