"""An error of any system call that writes leaves the old build or the new one, and one message.

`strace` injects it: what a disk says, at the calls that Python and C make, not at our own words for
them (`test_kills` has those).
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from collections import Counter
from dataclasses import dataclass
from pathlib import Path

import pytest

from compilers.tables.folders.build_folder import load
from compilers.tables.folders.generations import collect, last, mark

CALLS = "write,openat,mkdir,mkdirat,rename,renameat,renameat2,link,linkat,fsync,syncfs,chmod,fchmod"
FAULTS = ("ENOSPC", "EIO", "EROFS")
TRACED = re.compile(r"^(?:\d+ +)?(\w+)\((.*)$")
IN_PLACE = "the new one is in its place"
FABRIC = "name: {}\ntopology: {{family: polarfly, q: 2}}\n"


@dataclass(frozen=True)
class Point:
    """The n-th time that a process makes a call, from 1."""

    call: str
    number: int


class Disk:
    """A folder with a build `b` of one fabric, over which another is compiled."""

    def __init__(self, root: Path) -> None:
        self.root = root
        for name in ("old", "new"):
            (root / f"{name}.yaml").write_text(FABRIC.format(name))
        self.compiled("old")
        shutil.copytree(root / "b", root / "kept")
        self.compiled("new")
        self.new = load(root / "b").identity
        self.old = load(root / "kept").identity
        self.restore()

    def restore(self) -> None:
        """Back to the old build, and nothing else."""
        for path in self.root.iterdir():
            if path.is_dir() and path.name != "kept":
                shutil.rmtree(path)
        shutil.copytree(self.root / "kept", self.root / "b")

    def compiled(self, name: str, *strace: str) -> subprocess.CompletedProcess[str]:
        """Compile a fabric to `b`, under strace."""
        words = [sys.executable, "-m", "polarfab", "compile", f"{name}.yaml", "-o", "b", "--quiet"]
        tracer = ["strace", "-f", "-y", "-qq", "-e", "signal=none", *strace] if strace else []
        where = {"cwd": self.root, "env": {**os.environ, "PYTHONHASHSEED": "0"}}
        return subprocess.run([*tracer, *words], capture_output=True, text=True, **where)  # type: ignore[call-overload,no-any-return]

    def points(self) -> list[Point]:
        """The calls that write below the folder."""
        log, count, points = self.root / "log", Counter[str](), list[Point]()
        assert self.compiled("new", "-o", str(log), "-e", f"trace={CALLS}").returncode == 0
        for line in log.read_text().splitlines():
            if not (found := TRACED.match(line)):
                continue
            call, given = found.groups()
            count[call] += 1
            writes = call != "openat" or "O_CREAT" in given
            if writes and f"{self.root}/" in f"{given}/".replace(">", "/") and "log" not in given:
                points.append(Point(call, count[call]))
        self.restore()
        return points

    def check(self, point: Point, fault: str) -> str:
        """What is wrong after an error at a call; "" for nothing."""
        given = f"inject={point.call}:error={fault}:when={point.number}"
        done = self.compiled("new", "-o", "/dev/null", "-e", f"trace={CALLS}", "-e", given)
        code, err = done.returncode, done.stderr
        there = load(self.root / "b").identity
        proved = mark(self.root / "b") == there
        is_new = code == 0 or IN_PLACE in err
        if is_new:  # what was not finished of the folder that left is finished by the next command
            collect(self.root)
        left = sorted(path.name for path in self.root.iterdir() if path.name.endswith(".part"))
        kept = last(self.root / "b")
        kept_right = load(kept).identity == self.old if is_new else not kept.exists()
        self.restore()
        right = (there, proved, kept_right) == (self.new if is_new else self.old, True, True)
        if code == 0:
            right &= err == ""
        else:
            right &= code == 2 and len(err.splitlines()) == 1 and ".part" not in err
        return "" if right and not left else f"{point}, {fault}: {code}, {there}, {left}, {err}"


@pytest.fixture
def disk(tmp_path: Path) -> Disk:
    return Disk(tmp_path)


@pytest.mark.live
def test_a_fault_at_one_call_of_each_kind(disk: Disk) -> None:
    points = disk.points()
    last = {point.call: point for point in points}
    assert {"write", "openat", "mkdir", "renameat2", "rename", "fsync", "syncfs"} <= {*last}
    array = [point for point in points if point.call == "write"][2]
    assert [
        said for point in (array, *last.values()) if (said := disk.check(point, "ENOSPC"))
    ] == []


@pytest.mark.live
@pytest.mark.long
@pytest.mark.parametrize("fault", FAULTS)
def test_a_fault_at_every_call(disk: Disk, fault: str) -> None:
    assert [said for point in disk.points() if (said := disk.check(point, fault))] == []
