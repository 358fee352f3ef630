"""Artefacts: whole or not at all, never through a link, the last proved build kept."""

from __future__ import annotations

import errno
import fcntl
import itertools
import os
import re
import shutil
import sys
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from threading import Thread
from types import FrameType
from typing import Any

import pytest

from compilers.tables.folders import artefact, build_folder, generations
from compilers.tables.folders.artefact import claimed, exchange, put_file, put_folder
from compilers.tables.folders.build_folder import load, load_planes, rollback, save, save_planes
from compilers.tables.folders.generations import collect, last, mark, mark_verified
from compilers.targets.rendering.folder_check import check_folder
from compilers.targets.rendering.rendered_folder import put_texts
from compilers.targets.target_lookup import target
from inventory.problems import InputError
from tests.compilers.fabrics import polarfly_build


def test_a_file_is_whole_before_the_disk_is_asked_to_keep_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    kept: list[int] = []
    monkeypatch.setattr(os, "fsync", lambda file: kept.append(os.fstat(file).st_size))
    put_file(tmp_path / "cables.csv", [b"one", b"two"])
    assert kept[0] == 6


@pytest.mark.parametrize("there", [False, True])
def test_a_disk_that_does_not_confirm_a_folder_is_told_with_what_is_there(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, there: bool
) -> None:
    def broken(_: Path) -> None:
        raise OSError(errno.EIO, os.strerror(errno.EIO))

    if there:
        (tmp_path / "b").mkdir()
    monkeypatch.setattr(artefact, "flush", broken)
    with pytest.raises(InputError, match="the new one is in its place, but Input/output error"):
        put_folder(tmp_path / "b", lambda new: (new / "x").touch())
    assert (tmp_path / "b/x").is_file()


def test_a_part_that_is_a_pipe_or_a_link_is_nobodys(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    file = tmp_path / "file"
    file.touch()
    (tmp_path / "link").symlink_to(file)
    with file.open() as locked:
        fcntl.flock(locked, fcntl.LOCK_EX)
        free = []
        for name in ("pipe", "file", "link"):
            with claimed(tmp_path / name) as ours:
                free.append(ours)
    assert free == [True, False, True]


def test_what_cannot_be_cleared_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refused(*_: object) -> None:
        raise OSError(errno.EIO, os.strerror(errno.EIO))

    monkeypatch.setattr(generations, "_parts", refused)
    with pytest.raises(InputError, match=f"^{tmp_path}: "):
        collect(tmp_path)


def test_a_file_that_cannot_be_finished_leaves_the_old_one(tmp_path: Path) -> None:
    file = tmp_path / "cables.csv"
    put_file(file, [b"old"])

    def pieces() -> object:
        yield b"half of the new"
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    with pytest.raises(InputError, match="No space left"):
        put_file(file, pieces())
    assert file.read_bytes() == b"old"
    assert [path.name for path in tmp_path.iterdir()] == ["cables.csv"]


@pytest.mark.parametrize(
    ("place", "given"),
    [
        ("none/cables.csv", "no folder {}/none"),
        ("file/cables.csv", "{}/file, which is no folder"),
        ("file/more/cables.csv", "{}/file, which is no folder"),
    ],
)
def test_why_nothing_can_be_written_in_a_place(tmp_path: Path, place: str, given: str) -> None:
    (tmp_path / "file").touch()
    said = re.escape(given.format(tmp_path))
    with pytest.raises(InputError, match=rf"a file that can be written, given {said}; name"):
        put_file(tmp_path / place, [b"content"])


def test_a_folder_in_which_nothing_can_be_made() -> None:
    with pytest.raises(InputError, match="given /proc, where nothing can be made; name another"):
        put_file(Path("/proc/cables.csv"), [b"content"])


def test_content_is_on_the_disk_before_it_takes_its_place(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The content of a part first, then its new name, then the folder that has the name."""
    events: list[str] = []

    def flushed(what: int | Path) -> None:
        path = Path(f"/proc/self/fd/{what}").readlink() if isinstance(what, int) else what
        events.append("content" if path.name.endswith(".polarfab") else path.name)

    def renames(do: Callable[..., object]) -> Callable[..., object]:
        def renamed(*words: Path) -> object:
            events.append("rename")
            return do(*words)

        return renamed

    monkeypatch.setattr(os, "fsync", flushed)
    monkeypatch.setattr(artefact, "_flush_all", flushed)
    monkeypatch.setattr(Path, "rename", renames(Path.rename))
    monkeypatch.setattr(Path, "replace", renames(Path.replace))
    (tmp_path / "place").mkdir()
    put_file(tmp_path / "place" / "file", [b"content"])
    put_folder(tmp_path / "place" / "folder", lambda beside: (beside / "file").write_text(""))
    assert events == ["content", "rename", "place"] * 2


def test_a_pipe_is_written_to() -> None:
    reading, writing = os.pipe()
    assert put_file(Path(f"/dev/fd/{writing}"), [b"a,b\n"]) == 4
    assert os.read(reading, 10) == b"a,b\n"
    os.close(reading)
    os.close(writing)


def test_a_link_in_the_place_of_a_file_is_replaced(tmp_path: Path) -> None:
    system = tmp_path / "passwd"
    system.write_text("root")
    (tmp_path / "out").symlink_to(system)
    put_file(tmp_path / "out", [b"cables"])
    assert system.read_text() == "root"
    assert (tmp_path / "out").read_text() == "cables"


def test_the_mark_is_not_written_through_a_link(tmp_path: Path) -> None:
    system = tmp_path / "passwd"
    system.write_text("root")
    build = save(polarfly_build(3), tmp_path / "b")
    (tmp_path / "b" / "verified.json").symlink_to(system)
    assert mark(tmp_path / "b") == ""
    mark_verified(tmp_path / "b", build.identity, {"pairs": 156})
    assert system.read_text() == "root"
    assert mark(tmp_path / "b") == build.identity


@pytest.mark.parametrize("name", ["arrays", "arrays/far.npy", "fabric.json", "manifest.json"])
def test_links_in_a_build_are_not_followed(tmp_path: Path, name: str) -> None:
    save(polarfly_build(3), tmp_path / "b")
    (tmp_path / "b" / name).rename(tmp_path / "elsewhere")
    (tmp_path / "b" / name).symlink_to(tmp_path / "elsewhere")
    with pytest.raises(InputError, match=r"a link|symbolic links") as caught:
        load(tmp_path / "b")
    assert Path(caught.value.problems[0].file).is_relative_to(tmp_path / "b" / name)


@pytest.mark.parametrize("has_exchange", [True, False])
def test_the_last_proved_build_is_kept(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, has_exchange: bool
) -> None:
    def no_exchange(*_: Path) -> None:
        raise OSError(errno.EINVAL, "no such thing")

    if not has_exchange:
        monkeypatch.setattr(artefact, "_exchange", no_exchange)
    place = tmp_path / "b"
    with pytest.raises(InputError, match="none is kept"):
        rollback(place)
    proved = save(polarfly_build(3), place)
    mark_verified(place, proved.identity, {})
    unproved = save(polarfly_build(4), place)
    newest = save(polarfly_build(5), place)
    assert load(last(place)).identity == proved.identity
    assert sorted(path.name for path in tmp_path.iterdir()) == [".b.last", "b"]
    (back,) = rollback(place)
    assert (back.identity, load(place).identity) == (proved.identity, proved.identity)
    assert load(last(place)).identity == newest.identity != unproved.identity
    save(polarfly_build(3), place)
    assert load(last(place)).identity == newest.identity, "the same build is not kept twice"


def test_a_build_that_is_put_back_renders_as_before(tmp_path: Path) -> None:
    """So no earlier render has to be kept."""

    def rendered() -> dict[str, bytes]:
        target("ovs").render(load(tmp_path / "b"), tmp_path / "configs")
        files = (path for path in (tmp_path / "configs").rglob("*") if path.is_file())
        return {str(path): path.read_bytes() for path in files}

    mark_verified(tmp_path / "b", save(polarfly_build(3), tmp_path / "b").identity, {})
    before = rendered()
    save(polarfly_build(2), tmp_path / "b")
    assert rendered() != before
    rollback(tmp_path / "b")
    assert rendered() == before


def test_a_damaged_build_is_not_put_back(tmp_path: Path) -> None:
    place = tmp_path / "b"
    mark_verified(place, save(polarfly_build(3), place).identity, {})
    now = save(polarfly_build(4), place)
    (last(place) / "fabric.json").write_text("{}")
    with pytest.raises(InputError, match=r"fabric\.json: required the file as it was compiled"):
        rollback(place)
    assert load(place).identity == now.identity


def test_nothing_is_in_between(tmp_path: Path) -> None:
    """A build that is read while others take its place is one of them, never a mixture."""
    place = tmp_path / "b"
    one, two = save(polarfly_build(3), place), save(polarfly_build(4), tmp_path / "c")
    for _ in range(5):
        exchange(tmp_path / "c", place)
        assert load(place).identity in {one.identity, two.identity}
    assert {load(tmp_path / name).identity for name in "bc"} == {one.identity, two.identity}


def test_parts_of_killed_processes_are_collected(tmp_path: Path) -> None:
    place = tmp_path / "b"
    save(polarfly_build(3), place)
    (tmp_path / ".b.01234567.polarfab").mkdir()
    (tmp_path / ".b.01234567.polarfab" / "fabric.json").write_text("{")
    (tmp_path / ".c.0123abcd.polarfab").mkdir()
    (tmp_path / ".c.0123abcd.polarfab" / artefact.LEFT).touch()
    (place / ".verified.json.0123abcd.polarfab").write_text("")

    def fill(beside: Path) -> None:
        assert beside.name not in {part.name for part, _ in collect(tmp_path)}
        assert beside.is_dir()

    put_folder(tmp_path / "new", fill)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["b", "c", "new"]
    assert (tmp_path / "c").is_dir()
    assert not list(place.glob(".*"))
    assert load(place).name == "q3"


@pytest.mark.parametrize(
    "name", [".notes.20241124.old", ".b.4711.part", ".b.0123abcd.part", ".b.polarfab"]
)
def test_files_of_users_are_no_parts(tmp_path: Path, name: str) -> None:
    place = tmp_path / "b"
    save(polarfly_build(3), place)
    for folder in (tmp_path, place):
        (folder / name).write_text("mine")
    (place / ".todo.0123abcd.old").mkdir()
    (place / ".todo.0123abcd.old" / "text").write_text("mine")
    assert collect(place) == []
    assert collect(tmp_path) == []
    save(polarfly_build(2), place)
    assert (place / name).read_text() == (tmp_path / name).read_text() == "mine"
    assert (place / ".todo.0123abcd.old" / "text").read_text() == "mine"
    assert load(place).name == "q2"


def test_only_listed_planes_are_the_builds(tmp_path: Path) -> None:
    place = tmp_path / "b"
    save_planes([polarfly_build(3), polarfly_build(3)], place)
    shutil.copytree(place / "plane-1", place / "plane-1.bak")
    shutil.copytree(place / "plane-1", place / "plane-7")
    save_planes([polarfly_build(2), polarfly_build(2)], place)
    assert (place / "plane-1.bak/manifest.json").is_file()
    assert (place / "plane-7/fabric.json").is_file()
    assert [build.name for build in load_planes(place)] == ["q2", "q2"]


def test_planes_that_another_build_replaces_while_they_are_read_are_read_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    place = tmp_path / "build"
    save_planes([polarfly_build(3), polarfly_build(3)], place)
    read = build_folder.identities_in

    def replaced(folder: Path) -> dict[Path, str]:
        found = read(folder)
        monkeypatch.undo()
        save_planes([polarfly_build(2), polarfly_build(2)], place)
        return found

    monkeypatch.setattr(build_folder, "identities_in", replaced)
    assert [build.name for build in load_planes(place)] == ["q2", "q2"]


def test_what_is_saved_until_the_exchange_is_kept(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    place = tmp_path / "b"
    save(polarfly_build(3), place)
    (place / "edited").write_text("before")
    (place / "same").write_text("same")

    def late(new: Path, where: Path) -> None:
        monkeypatch.undo()
        (where / "fresh").write_text("fresh")
        (where / "saved").write_text("after")
        (where / "saved").rename(where / "edited")
        exchange(new, where)

    monkeypatch.setattr(artefact, "exchange", late)
    save(polarfly_build(2), place)
    said = [(place / name).read_text() for name in ("edited", "fresh", "same")]
    assert said == ["after", "fresh", "same"]
    assert load(place).name == "q2"
    assert [path.name for path in tmp_path.iterdir()] == ["b"]


def test_a_late_file_in_the_way_puts_the_old_folder_back(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    place = tmp_path / "b"

    def fill(beside: Path) -> None:
        (beside / "new").write_text("ours")

    def owned(folder: Path) -> set[str]:
        there = (folder / "new").is_file() and (folder / "new").read_text() == "ours"
        return {"new"} if there else set()

    put_folder(place, lambda _: None)

    def late(new: Path, where: Path) -> None:
        monkeypatch.undo()
        (where / "new").write_text("mine")
        exchange(new, where)

    monkeypatch.setattr(artefact, "exchange", late)
    with pytest.raises(InputError, match="no file of another's by this name"):
        put_folder(place, fill, owned)
    assert (place / "new").read_text() == "mine"
    assert [path.name for path in tmp_path.iterdir()] == ["b"]


@pytest.mark.parametrize("when", ["before", "after"])
@pytest.mark.parametrize("back", [False, True])
def test_a_kill_at_the_exchange(tmp_path: Path, when: str, back: bool) -> None:
    """What is saved until the folder leaves is kept, and one build is.

    With `rollback` a build that is not proved is kept, too.
    """
    place = tmp_path / "b"
    for q in (2, 3):
        mark_verified(place, save(polarfly_build(q), place).identity, {})
    if back:
        (place / "verified.json").unlink()
    (place / "mine").mkdir()
    (place / "mine/same").write_text("same")
    os.mkfifo(place / "pipe")
    if not (child := os.fork()):

        def killed(new: Path, where: Path) -> None:
            (where / "mine/late").write_text("late")
            if when == "after":
                exchange(new, where)
            os._exit(0)

        artefact.exchange = killed
        rollback(place) if back else save(polarfly_build(4), place)
        os._exit(1)
    assert os.waitpid(child, 0)[1] == 0
    taken = {("before", False): ("q3", "q2"), ("before", True): ("q3", "q2")}
    taken |= {("after", False): ("q4", "q3"), ("after", True): ("q2", "q3")}
    collect(tmp_path)
    assert (load(place).name, load(last(place)).name) == taken[when, back]
    assert sorted(path.name for path in (place / "mine").iterdir()) == ["late", "same"]
    assert (place / "pipe").is_fifo()
    assert sorted(path.name for path in tmp_path.iterdir()) == [".b.last", "b"]
    assert [path for path in last(place).iterdir() if path.name in ("mine", "pipe")] == []
    assert collect(tmp_path) == []
    assert check_folder(place).strays == ("mine/late", "mine/same", "pipe")


@pytest.mark.parametrize("move", [0, 1, 2])
def test_a_kill_while_others_files_move(tmp_path: Path, move: int) -> None:
    """Whatever has moved: the next command in the place finishes it, with nothing lost."""
    place = tmp_path / "b"
    mark_verified(place, save(polarfly_build(3), place).identity, {})
    for name in ("a", "b", "c"):
        (place / name).write_text(name)
    if not (child := os.fork()):
        rename, moved = Path.rename, list[Path]()

        def killed(here: Path, there: Path) -> Path:
            if there.parent == place:
                if len(moved) == move:
                    os._exit(0)
                moved.append(here)
            return rename(here, there)

        Path.rename = killed  # type: ignore[assignment,method-assign]
        save(polarfly_build(4), place)
        os._exit(1)
    assert os.waitpid(child, 0)[1] == 0
    (left,) = tmp_path.glob(".b.*.polarfab")
    assert sorted(path.name for path in left.iterdir() if path.is_file()) == sorted(
        {*"abc"[move:], artefact.LEFT, "fabric.json", "manifest.json", "manifest.sha256"}
        | {"verified.json"}
    )
    newest = save(polarfly_build(5), place)
    assert [(place / name).read_text() for name in "abc"] == [*"abc"]
    assert load(place).identity == newest.identity
    assert load(last(place)).name == "q3"
    assert sorted(path.name for path in tmp_path.iterdir()) == [".b.last", "b"]


def test_a_folder_that_another_command_holds_is_waited_for_and_then_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    place = tmp_path / "b"
    save(polarfly_build(3), place)
    monkeypatch.setattr(artefact, "PATIENCE", 0.1)
    held = os.open(tmp_path, os.O_RDONLY)
    fcntl.flock(held, fcntl.LOCK_EX)
    with pytest.raises(InputError, match="a folder that another command has held for 0 s"):
        save(polarfly_build(2), place)
    assert load(place).name == "q3"
    os.close(held)
    save(polarfly_build(2), place)
    assert load(place).name == "q2"


@pytest.mark.parametrize("folder", [False, True])
def test_a_part_that_is_swept_before_it_is_locked_is_made_anew(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, folder: bool
) -> None:
    """`polarfab folder gc` of another process comes between the two system calls."""
    real = fcntl.flock

    def late(descriptor: int, how: int) -> None:
        monkeypatch.undo()
        assert len(collect(tmp_path)) == 1
        real(descriptor, how)

    (tmp_path / "c").write_text("old")
    monkeypatch.setattr(fcntl, "flock", late)
    if folder:
        put_folder(tmp_path / "b", lambda new: (new / "x").write_text("new"))
        assert (tmp_path / "b/x").read_text() == "new"
    else:
        put_file(tmp_path / "c", [b"new"])
        assert (tmp_path / "c").read_text() == "new"
    assert [*tmp_path.glob(".*")] == []


def test_two_collect_at_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """One waits for what the other finishes and removes."""
    place = tmp_path / "b"
    save(polarfly_build(3), place)
    (left := tmp_path / ".b.0123abcd.polarfab").mkdir()
    (left / artefact.LEFT).touch()
    (left / "mine").write_text("mine")
    (tmp_path / ".b.0123abce.polarfab").mkdir()
    found = list[object]()
    other = Thread(target=lambda: found.append(collect(tmp_path)))
    real = generations.finish

    def meanwhile(*given: Any) -> Path | None:
        monkeypatch.undo()
        other.start()
        other.join(0.2)
        assert found == []
        return real(*given)

    monkeypatch.setattr(generations, "finish", meanwhile)
    found += collect(tmp_path)
    other.join()
    assert (left, None) in found
    assert (place / "mine").read_text() == "mine"
    assert [path.name for path in tmp_path.iterdir()] == ["b"]


@pytest.mark.parametrize("has_locks", [True, False])
def test_a_killed_exchange_of_three_steps_is_taken_back(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, has_locks: bool
) -> None:
    """Also where a file system has neither exchange nor locks of folders, as NFS."""

    def no_locks(*_: int) -> None:
        raise OSError(errno.EBADF, os.strerror(errno.EBADF))

    if not has_locks:
        monkeypatch.setattr(fcntl, "flock", no_locks)
    place = tmp_path / "b"
    save(polarfly_build(3), place)
    (place / "mine").write_text("mine")
    (place / artefact.LEFT).touch()
    place.rename(tmp_path / ".b.0123abcd.polarfab")
    save(polarfly_build(2), place)
    assert (place / "mine").read_text() == "mine"
    assert [path.name for path in tmp_path.iterdir()] == ["b"]


def test_a_fault_at_the_last_of_three_steps_says_what_is_in_the_place(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refused(*_: Path) -> None:
        raise OSError(errno.EINVAL, os.strerror(errno.EINVAL))

    rename, place, done = Path.rename, tmp_path / "b", list[Path]()

    def third(here: Path, there: Path) -> Path:
        done.append(there)
        if len(done) == 3:
            raise OSError(errno.EIO, os.strerror(errno.EIO))
        return rename(here, there)

    save(polarfly_build(3), place)
    (place / "mine").write_text("mine")
    monkeypatch.setattr(artefact, "_exchange", refused)
    monkeypatch.setattr(Path, "rename", third)
    with pytest.raises(InputError, match="the new one is in its place, but Input/output error"):
        save(polarfly_build(2), place)
    collect(tmp_path)
    assert load(place).name == "q2"
    assert (place / "mine").read_text() == "mine"


def test_a_folder_of_the_users_that_was_put_aside_is_put_back(tmp_path: Path) -> None:
    """Three steps of a first render into it; a kill between the first two."""
    (old := tmp_path / ".mine.0123abcd.polarfab").mkdir()
    (old / "notes").write_text("mine")
    (old / artefact.LEFT).touch()
    assert collect(tmp_path) == [(old, tmp_path / "mine")]
    assert [path.name for path in (tmp_path / "mine").iterdir()] == ["notes"]


def test_what_was_put_aside_is_put_back_before_its_place_is_judged(tmp_path: Path) -> None:
    """Three steps, a kill between the first two: nothing of another kind comes to the place."""
    place, aside = tmp_path / "b", tmp_path / ".b.0123abcd.polarfab"
    aside.mkdir()
    (aside / artefact.LEFT).touch()
    (aside / "notes").write_text("mine")
    with pytest.raises(InputError, match="a folder with other files in it"):
        save(polarfly_build(2), place)
    assert [path.name for path in place.iterdir()] == ["notes"]
    (place / "notes").unlink()
    save(polarfly_build(2), place)
    (place / artefact.LEFT).touch()
    place.rename(aside)
    with pytest.raises(InputError, match="required a folder for rendered files, given a build"):
        put_texts(place, "ovs", "", {"1.conf": "text"})
    assert load(place).name == "q2"


@pytest.mark.parametrize("name", ["", "arrays", "mine"])
def test_a_folder_with_a_read_only_folder_stays(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    """What is in it could not be moved or removed once the new one is in the place."""
    place = tmp_path / "b"
    save(polarfly_build(3), place)
    (place / "mine").mkdir()
    (place / name).chmod(0o555)
    before = sorted(tmp_path.rglob("*"))
    monkeypatch.setattr(os, "access", lambda path, _: Path(path).stat().st_mode & 0o200)  # of root
    with pytest.raises(InputError, match=f"^{place / name}: required a folder that can be written"):
        save(polarfly_build(2), place)
    assert load(place).name == "q3"
    assert sorted(tmp_path.rglob("*")) == before


def test_a_link_in_the_place_of_our_own_file_is_not_followed(tmp_path: Path) -> None:
    place = tmp_path / "b"
    save(polarfly_build(3), place)
    (place / artefact.LEFT).symlink_to(tmp_path / "elsewhere")
    save(polarfly_build(2), place)
    assert [path.name for path in tmp_path.iterdir()] == ["b"]


@pytest.mark.parametrize("name", [".b.0123abcd.polarfab", ".b.last"])
def test_a_part_that_is_a_link_is_not_finished(tmp_path: Path, name: str) -> None:
    place, mine = tmp_path / "b", tmp_path / "mine"
    save(polarfly_build(3), place)
    mine.mkdir()
    (mine / artefact.LEFT).touch()
    (mine / "notes").write_text("mine")
    (tmp_path / name).symlink_to(mine)
    collect(tmp_path)
    assert sorted(path.name for path in mine.iterdir()) == [artefact.LEFT, "notes"]


def test_a_part_of_another_user_stays(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whether it is locked cannot be seen."""
    (part := tmp_path / ".cables.csv.0123abcd.polarfab").touch(mode=0o600)
    real = os.open

    def refused(path: Path, *given: Any, **more: Any) -> int:
        if path == part:
            raise PermissionError(errno.EACCES, os.strerror(errno.EACCES))
        return real(path, *given, **more)

    monkeypatch.setattr(os, "open", refused)
    assert collect(tmp_path) == []
    assert part.exists()


@pytest.mark.parametrize("link", [False, True])
def test_what_comes_to_the_place_of_the_last_build_after_a_kill_stays(
    tmp_path: Path, link: bool
) -> None:
    place = tmp_path / "b"
    mark_verified(place, save(polarfly_build(3), place).identity, {})
    if not (child := os.fork()):
        artefact.finish = lambda *_: os._exit(0)
        save(polarfly_build(4), place)
        os._exit(1)
    assert os.waitpid(child, 0)[1] == 0
    if link:
        last(place).symlink_to(tmp_path / "nowhere")
    else:
        last(place).mkdir()
        (last(place) / "notes").write_text("mine")
    with pytest.raises(InputError, match="only the last build, which is kept here"):
        collect(tmp_path)
    assert os.path.lexists(last(place) if link else last(place) / "notes")
    last(place).unlink() if link else shutil.rmtree(last(place))
    collect(tmp_path)
    assert (load(place).name, load(last(place)).name) == ("q4", "q3")


def test_a_descriptor_that_is_no_number() -> None:
    for name in ("foo", "9" * 30, "-1"):
        with pytest.raises(InputError, match="/fd, where nothing can be made"):
            put_file(Path("/proc/self/fd") / name, [b"a"])


def mounted(root: Path, monkeypatch: pytest.MonkeyPatch, point: Path) -> None:
    """Have the system say that a place is mounted: a bind mount of the same file system."""
    word = str(point).replace(" ", "\\040")
    (root / "mounts").write_text(
        f"29 1 8:1 / / rw - ext4 /dev/a rw\n30 29 8:1 /s {word} rw - ext4 a rw\n"
    )
    monkeypatch.setattr(artefact, "MOUNTS", root / "mounts")


@pytest.mark.parametrize("at", ["b/a m", ".b.last/m"])
def test_nothing_mounted_is_replaced(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, at: str
) -> None:
    root = tmp_path / "root"
    place = root / "b"
    for q in (4, 3):
        save(polarfly_build(q), place)
        mark_verified(place, load(place).identity, {})
    (root / at).mkdir(parents=True)
    (root / at / "file").write_text("mine")
    mounted(tmp_path, monkeypatch, root / at)
    before = sorted(root.rglob("*"))
    for change in (lambda: save(polarfly_build(2), place), lambda: rollback(place)):
        with pytest.raises(InputError, match=f"with a mount at {root / at} in it"):
            change()
    assert load(place).name == "q3"
    assert sorted(root.rglob("*")) == before


def test_a_signal_while_a_part_is_made_leaves_none(tmp_path: Path) -> None:
    """A signal's handler may raise before any line of what names, makes and locks a part."""
    making = {artefact._part.__wrapped__.__code__, claimed.__wrapped__.__code__}
    for at in itertools.count(1):
        left = at

        def step(frame: FrameType, event: str, _: object) -> Any:
            nonlocal left
            if frame.f_code in making and event == "line":
                left -= 1
                if left == 0:
                    sys.settrace(None)
                    raise SystemExit
            return step

        with suppress(SystemExit):
            sys.settrace(step)
            put_folder(tmp_path / "b", lambda _: sys.settrace(None))
        assert {path.name for path in tmp_path.iterdir()} <= {"b"}, f"before line {at}"
        if left > 0:
            break
    assert at > 5
