"""An error of any system call that writes leaves the old artefact or the new one, and one message.

`strace` injects it: what a disk says, at the calls that Python and C make, not at our own words for
them (`test_kills` has those, and the verbs).
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

from compilers.tables.folders.generations import collect
from tests.polarfab.test_kills import CASES, PART, builds, prepared, restore

__all__ = ["builds"]
CALLS = "write,openat,mkdir,mkdirat,rename,renameat,renameat2,link,linkat,fsync,syncfs,chmod,fchmod"
CALLS += ",unlink,unlinkat,rmdir,fchmodat"
FAULTS = ("ENOSPC", "EIO", "EROFS", "EDQUOT")
TRACED = re.compile(r"^(?:\d+ +)?(\w+)\((.*)$")
IN_PLACE = "the new one is in its place"
STRACE = ("strace", "-f", "-y", "-qq", "--seccomp-bpf", "-e", "signal=none", "-e", f"trace={CALLS}")


@dataclass(frozen=True)
class Point:
    """The n-th time that a process makes a call, from 1."""

    call: str
    number: int


class Disk:
    """A folder with what a verb has made of one build, and is to replace by that of another."""

    def __init__(self, verb: str, root: Path) -> None:
        self.verb, self.root, self.log = verb, root, root.with_name("log")
        self.words, self.kept, self.old = prepared(verb, root)
        assert self.run("-o", "/dev/null").returncode == 0
        self.new = CASES[verb].state(root)
        restore(root, self.kept)

    def run(self, *strace: str) -> subprocess.CompletedProcess[str]:
        """The verb, under strace."""
        words = [sys.executable, "-m", "polarfab", *self.words, "--quiet"]
        fixed = {"PYTHONHASHSEED": "0", "PYTHONDONTWRITEBYTECODE": "1"}  # the same calls each time
        where = {"env": {**os.environ, **fixed}}
        return subprocess.run([*STRACE, *strace, *words], capture_output=True, text=True, **where)  # type: ignore[call-overload,no-any-return]

    def points(self) -> list[Point]:
        """The calls that write below the folder."""
        count, points = Counter[str](), list[Point]()
        assert self.run("-o", str(self.log)).returncode == 0
        for line in self.log.read_text().splitlines():
            if not (found := TRACED.match(line)):
                continue
            call, given = found.groups()
            count[call] += 1
            writes = call != "openat" or "O_CREAT" in given
            if writes and f"{self.root}/" in f"{given}/".replace(">", "/"):
                points.append(Point(call, count[call]))
        restore(self.root, self.kept)
        return points

    def check(self, point: Point, fault: str) -> str:
        """What is wrong after an error at a call; "" for nothing."""
        given = f"inject={point.call}:error={fault}:when={point.number}"
        done = self.run("-o", "/dev/null", "-e", given)
        code, err = done.returncode, done.stderr
        is_new = code == 0 or IN_PLACE in err
        try:
            found = CASES[self.verb].state(self.root)
        except AssertionError as error:
            found = str(error)
        collect(self.root)  # what was not finished is finished by the next command
        left = sorted(path.name for path in self.root.iterdir() if path.name.endswith(".polarfab"))
        restore(self.root, self.kept)
        states = (
            (self.old, self.new) if self.verb == "expand" else (self.new if is_new else self.old,)
        )
        right = found in states and not left
        if code == 0:
            right &= err == ""
        else:
            named = not PART.search(err) or self.verb == "gc"
            right &= code == 2 and len(err.splitlines()) == 1 and named
        return "" if right else f"{point}, {fault}: {code}, {found}, {left}, {err}"


@pytest.fixture
def disk(request: pytest.FixtureRequest, builds: Path, tmp_path: Path) -> Disk:
    shutil.copytree(builds, tmp_path / "root")
    return Disk(getattr(request, "param", "compile"), tmp_path / "root")


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
@pytest.mark.parametrize("disk", CASES, indirect=True)
def test_a_fault_at_every_call(disk: Disk) -> None:
    """Each point has one of the faults, and every call each of them where it is made often."""
    tried = [(point, FAULTS[i % len(FAULTS)]) for i, point in enumerate(disk.points())]
    print(len(tried), "points", file=sys.__stdout__)
    assert [said for each in tried if (said := disk.check(*each))] == []


@pytest.mark.live
@pytest.mark.long
@pytest.mark.parametrize("fault", FAULTS)
def test_a_fault_of_each_kind_at_every_call_of_compile(disk: Disk, fault: str) -> None:
    assert [said for point in disk.points() if (said := disk.check(point, fault))] == []
