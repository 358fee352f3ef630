"""The memory that this process can have: of the machine, by its limits and its control groups."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from pathlib import Path, PurePosixPath
from resource import RLIM_INFINITY, RLIMIT_AS, getrlimit

MEMINFO, STATM = Path("/proc/meminfo"), Path("/proc/self/statm")
GB = 1e9
GROUPS, MOUNTS = Path("/proc/self/cgroup"), Path("/proc/self/mountinfo")
FILES = {
    "cgroup2": ("memory.max", "memory.current", "inactive_file"),
    "cgroup": ("memory.limit_in_bytes", "memory.usage_in_bytes", "total_inactive_file"),
}
"""By version: the files with the limit and the use, and what of memory.stat can be reclaimed."""


def available() -> int:
    """Bytes that can be had without swapping, in the limits of the process and its control groups.

    All of the machine's where it does not tell.
    """
    limits = of_control_groups(), _of_address_space(), _of_machine()
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


def of_control_groups() -> int | None:
    """Bytes that the tightest group on the way up leaves; None where none has a limit."""
    return min(
        (free for group in _groups() if (free := _free_in(*group)) is not None), default=None
    )


def _groups() -> Iterator[tuple[Path, str]]:
    """The groups that this process is in, and those around them, with their versions."""
    for version, root, mount in _mounts():
        for group in _paths(version):
            inside = group.relative_to(root) if group.is_relative_to(root) else PurePosixPath()
            path = mount / inside
            yield path, version
            for around in path.parents:
                if not around.is_relative_to(mount):
                    break
                yield around, version


def _mounts() -> Iterator[tuple[str, PurePosixPath, Path]]:
    """The version of each mounted hierarchy that counts memory, its root, and where it is."""
    for line in lines_of(MOUNTS):
        before, _, after = line.partition(" - ")
        kind, options = after.split(" ", 1)[0], after.rsplit(" ", 1)[-1].split(",")
        if kind == "cgroup2" or (kind == "cgroup" and "memory" in options):
            root, mount = before.split(" ")[3:5]
            yield kind, PurePosixPath(root), Path(mount)


def _paths(version: str) -> Iterator[PurePosixPath]:
    for line in lines_of(GROUPS):
        _, controllers, path = line.split(":", 2)
        wanted = not controllers if version == "cgroup2" else "memory" in controllers.split(",")
        if wanted:
            yield PurePosixPath(path)


def _free_in(group: Path, version: str) -> int | None:
    """Bytes that a group leaves; None without a limit."""
    limit, use, reclaimed = FILES[version]
    most, used = _number(group / limit), _number(group / use)
    if most is None or used is None:
        return None
    stat = dict(line.split(" ", 1) for line in lines_of(group / "memory.stat") if " " in line)
    return max(0, most - used + int(stat.get(reclaimed, 0)))


def _number(file: Path) -> int | None:
    lines = lines_of(file)
    return int(lines[0]) if lines and lines[0].isdecimal() else None


def lines_of(file: Path) -> list[str]:
    """The lines of a file; none where it cannot be read."""
    try:
        return file.read_text().splitlines()
    except OSError:
        return []
