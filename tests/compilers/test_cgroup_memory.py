"""Memory limits of control groups, version 1 and 2, also behind a namespace."""

from __future__ import annotations

from pathlib import Path

import pytest

from compilers import memory


def write(folder: Path, **files: str) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    for name, text in files.items():
        (folder / name.replace("__", ".")).write_text(text)


@pytest.mark.parametrize(("root", "path"), [("/", "/a/b"), ("/docker/x", "/docker/x/a/b")])
def test_the_tightest_group_of_version_2(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, root: str, path: str
) -> None:
    mount = tmp_path / "cgroup"
    write(mount / "a" / "b", memory__max="max\n", memory__current="5\n")
    stat = "anon 1\ninactive_file 100\n"
    write(mount / "a", memory__max="1000\n", memory__current="700\n", memory__stat=stat)
    write(tmp_path, groups=f"0::{path}\n", mounts=f"1 2 0:3 {root} {mount} rw - cgroup2 none rw\n")
    monkeypatch.setattr(memory, "GROUPS", tmp_path / "groups")
    monkeypatch.setattr(memory, "MOUNTS", tmp_path / "mounts")
    assert memory.left_by_control_groups() == 400
    assert memory.available() == 400


def test_version_1_and_none(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    mount = tmp_path / "memory"
    write(mount / "a:b", memory__limit_in_bytes="1000\n", memory__usage_in_bytes="1200\n")
    line = f"1 2 0:3 / {mount} rw - cgroup cgroup rw,memory\n"
    write(tmp_path, groups="4:memory:/a:b\n3:cpu:/a\n", mounts=line)
    monkeypatch.setattr(memory, "GROUPS", tmp_path / "groups")
    monkeypatch.setattr(memory, "MOUNTS", tmp_path / "mounts")
    assert memory.left_by_control_groups() == 0
    monkeypatch.setattr(memory, "MOUNTS", tmp_path / "nothing")
    assert memory.left_by_control_groups() is None
