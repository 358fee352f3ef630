"""A kill or a fault at every file-system event leaves the old proved state or the new one.

Faults are what disks say: full, over quota, broken, read-only. Each ends in one message that is
true, or in nothing to be said.
"""

from __future__ import annotations

import errno
import mmap
import os
import re
import shutil
import signal
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from compilers.tables.folders import artefact
from compilers.tables.folders.artefact import remove
from compilers.tables.folders.generations import collect
from compilers.targets.rendering.folder_check import check_folder
from polarfab import cli

CHANGES = {"os.mkdir", "os.rename", "os.link", "os.symlink", "os.remove", "os.rmdir", "os.chmod"}
Write = os.O_WRONLY | os.O_RDWR | os.O_CREAT
PART = re.compile(r"\.[0-9a-f]{8}\.polarfab\b")
FAULTS = (errno.ENOSPC, errno.EIO, errno.EDQUOT, errno.EROFS)
FABRIC = "name: {}\ntopology: {{family: polarfly, q: {}}}\n"


def in_child(words: list[str], at: int, fault: int = 0, said: Path | None = None) -> int:
    """Run the command line in a child; its n-th change of the file system is a kill or a fault.

    Args:
        words: of the command line.
        at: which change, from 1; 0 for none.
        fault: the number of the error that the change ends in; 0 for a kill before it.
        said: a file for what the child says on stderr, and its exit code.

    Returns:
        How many changes there were.
    """
    count = mmap.mmap(-1, 8)
    pid = os.fork()
    if not pid:
        try:
            _run(words, at, fault, count, said)
        finally:
            os._exit(99)
    _, status = os.waitpid(pid, 0)
    code = os.waitstatus_to_exitcode(status)
    assert code == 0 or (code == 2 and fault) or (code == -signal.SIGKILL and not fault), code
    if said:
        with said.open("a") as file:
            file.write(f"exit code {code}")
    return int.from_bytes(count[:8], "little")


def _run(words: list[str], at: int, fault: int, count: mmap.mmap, said: Path | None) -> None:
    os.setsid()
    null = os.open(os.devnull, os.O_WRONLY)
    os.dup2(null, 1)
    os.dup2(os.open(said, os.O_WRONLY | os.O_CREAT | os.O_TRUNC) if said else null, 2)

    def change(what: object) -> None:
        done = int.from_bytes(count[:8], "little") + 1
        count[:8] = done.to_bytes(8, "little")
        if done == at and fault:
            raise OSError(fault, os.strerror(fault), what)
        if done == at:
            os.killpg(0, signal.SIGKILL)

    def hook(event: str, given: tuple[object, ...]) -> None:
        opened = event == "open" and isinstance(given[2], int) and given[2] & Write
        if event in CHANGES or (opened and "__pycache__" not in str(given[0])):
            change(given[0])

    def before(flush: Callable[[int], object]) -> Callable[[int], object]:
        def flushed(descriptor: int) -> object:
            change(None)
            return flush(descriptor)

        return flushed

    sys.stdout, sys.stderr = os.fdopen(1, "w"), os.fdopen(2, "w")
    os.fsync = before(os.fsync)
    artefact._flush_all = before(artefact._flush_all)
    sys.addaudithook(hook)
    sys.argv = ["polarfab", *words]
    try:
        cli.main()
    except SystemExit as stop:
        sys.stderr.flush()
        os._exit(int(stop.code or 0))


@dataclass(frozen=True)
class Case:
    """A command over an earlier artefact; state tells which is there, or fails."""

    words: Callable[[Path], list[str]]
    state: Callable[[Path], object]


def generations(folder: Path) -> object:
    """The build in a place and the one that `rollback` would put back."""
    found = check_folder(folder)
    assert (found.damaged, found.strays, found.verified) == ((), (), True)
    collect(folder)
    return found.builds, check_folder(folder).kept


def proved(folder: Path) -> object:
    found = check_folder(folder)
    assert (found.damaged, found.strays, found.verified) == ((), (), True)
    return found.builds


def rendered(folder: Path) -> object:
    found = check_folder(folder)
    assert (found.damaged, found.strays) == ((), ())
    assert len(found.builds) == 1, "a mixture"
    return found.builds


def expanded(root: Path) -> object:
    table = (root / "grown-added-cables.csv").read_text()
    assert table.endswith("\n")
    return proved(root / "grown")


CASES = {
    "compile": Case(
        lambda root: ["compile", f"{root}/{{}}.yaml", "-o", f"{root}/there"],
        lambda root: generations(root / "there"),
    ),
    "rollback": Case(
        lambda root: ["folder", "rollback", f"{root}/there"],
        lambda root: generations(root / "there"),
    ),
    "cables": Case(
        lambda root: ["cables", f"{root}/{{}}", "--format", "csv", "-o", f"{root}/cables.csv"],
        lambda root: (root / "cables.csv").read_text(),
    ),
    "draw": Case(
        lambda root: ["draw", f"{root}/{{}}", "-o", f"{root}/lab.svg"],
        lambda root: (root / "lab.svg").read_text(),
    ),
    **{
        verb: Case(
            lambda root, words=words, out=f"out-{verb}": [
                *(word.format(root=root) for word in words.split()),
                *("-o", f"{root}/{out}"),
            ],
            lambda root, out=f"out-{verb}": rendered(root / out),
        )
        for verb, words in (
            ("render", "render {root}/{{}} --target ovs"),
            ("export", "export {root}/{{}} --format booksim"),
            ("inventory export", "inventory export {root}/{{}}.yaml"),
        )
    },
    "gc": Case(
        lambda root: ["folder", "gc", f"{root}/there"], lambda root: generations(root / "there")
    ),
    "expand": Case(
        lambda root: f"expand {root}/{{}}.yaml --from {root}/{{}} -o {root}/grown".split(),
        expanded,
    ),
}


BEFORE = {
    **{"compile": ("before", "old"), "rollback": ("before", "old", "new")},
    **{"gc": ("before", "old")},
}
"""What was compiled to one place; of other verbs the earlier artefact is made by themselves."""
STEPS = {"compile": 29, "render": 29, "expand": 19, "gc": 29}
STEP = 3
"""How far the points are from each other that are tried in CI."""


@pytest.fixture(scope="module")
def builds(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("kills")
    for name, q in (("old", 3), ("new", 2), ("before", 4)):
        (root / f"{name}.yaml").write_text(FABRIC.format(name, q))
        here("compile", f"{root}/{name}.yaml", "-o", f"{root}/{name}")
    here("compile", f"{root}/old.yaml", "-o", f"{root}/there")
    for case in CASES.values():  # imports what a child then has
        here(*(word.format("new") for word in case.words(root)))
        case.state(root)
    for path in (*root.glob("out-*"), *map(root.joinpath, MADE)):
        remove(path)
    return root


MADE = (".there.last", "there", "cables.csv", "lab.svg", "grown")


def here(*words: str) -> None:
    sys.argv = ["polarfab", *words]
    with pytest.raises(SystemExit) as stop:
        cli.main()
    assert not stop.value.code


def prepared(verb: str, root: Path) -> tuple[list[str], Path, object]:
    """Make the earlier artefact; the words for a new one, a copy of it, the state."""
    case = CASES[verb]
    words = [[word.format(name) for word in case.words(root)] for name in ("old", "new")]
    for name in BEFORE.get(verb, ()):
        in_child(["compile", f"{root}/{name}.yaml", "-o", f"{root}/there"], 0)
    if verb == "gc":
        killed_behind_the_exchange(["compile", f"{root}/new.yaml", "-o", f"{root}/there"])
        assert [*root.glob(".there.*.polarfab/.left.*")]
    elif verb not in BEFORE:
        in_child(words[0], 0)
    kept = root.with_name(f"{root.name}-kept")
    shutil.copytree(root, kept, symlinks=True)
    state = case.state(root)
    restore(root, kept)  # of what `polarfab folder gc` is to finish, too
    return words[1], kept, state


def killed_behind_the_exchange(words: list[str]) -> None:
    """What `polarfab folder gc` has to finish: the folder that left is not kept yet."""
    if not (child := os.fork()):
        artefact.finish = lambda *_: os._exit(0)
        here(*words)
        os._exit(1)
    assert os.waitpid(child, 0)[1] == 0


def restore(root: Path, kept: Path) -> None:
    shutil.rmtree(root)
    shutil.copytree(kept, root, symlinks=True)


def kills(verb: str, root: Path, step: int) -> Iterator[object]:
    """The state after each step-th kill of a verb over an earlier artefact."""
    case = CASES[verb]
    words, kept, old = prepared(verb, root)
    events = in_child(words, 0)
    new = case.state(root)
    assert (old != new) == (verb != "gc")
    assert events >= 3
    for kill_at in range(1, events + 1, step):
        restore(root, kept)
        in_child(words, kill_at)
        found = case.state(root)
        assert found in (old, new), f"after a kill at event {kill_at} of {events}"
        collect(root)
        assert not [*root.glob(".*.polarfab")], f"after a kill at {kill_at}"
        assert case.state(root) == found
        yield found == new


def faults(verb: str, root: Path, step: int) -> Iterator[object]:
    """The state after each step-th fault of a verb over an earlier artefact."""
    case, said = CASES[verb], root.with_name("said")
    words, kept, old = prepared(verb, root)
    events = in_child(words, 0)
    new = case.state(root)
    for at in range(1, events + 1, step):
        restore(root, kept)
        number = FAULTS[at // step % len(FAULTS)]
        in_child(words, at, number, said)
        where = f"{os.strerror(number)} at event {at} of {events}: {said.read_text()}"
        errors = [line for line in said.read_text().splitlines() if line.startswith("error:")]
        code = said.read_text()[-1]
        assert len(errors) == (code == "2"), where
        assert "bug" not in said.read_text(), where
        assert verb == "gc" or not PART.search(said.read_text()), where  # a place has another name
        found = case.state(root)
        assert found in (old, new), where
        in_place = code == "0" or "is in its place" in errors[0]
        if verb not in ("expand", "gc"):  # whose tables are files of their own; that changes none
            assert (found == new) == in_place, where
        assert all(os.strerror(number) in line or "no room" in line for line in errors), where
        collect(root)
        assert case.state(root) == found, where
        yield found == new


@pytest.mark.parametrize("verb", CASES)
def test_some_kills(builds: Path, tmp_path: Path, verb: str) -> None:
    shutil.copytree(builds, tmp_path / "root")
    assert (verb == "gc") in list(kills(verb, tmp_path / "root", STEPS.get(verb, STEP)))


@pytest.mark.parametrize("verb", CASES)
def test_some_faults(builds: Path, tmp_path: Path, verb: str) -> None:
    shutil.copytree(builds, tmp_path / "root")
    assert (verb == "gc") in list(faults(verb, tmp_path / "root", STEPS.get(verb, STEP)))


@pytest.mark.long
@pytest.mark.parametrize("verb", CASES)
def test_a_kill_at_every_event(builds: Path, tmp_path: Path, verb: str) -> None:
    shutil.copytree(builds, tmp_path / "root")
    assert set(kills(verb, tmp_path / "root", 1)) == {verb == "gc", True}


@pytest.mark.long
@pytest.mark.parametrize("verb", CASES)
def test_a_fault_at_every_event(builds: Path, tmp_path: Path, verb: str) -> None:
    shutil.copytree(builds, tmp_path / "root")
    assert set(faults(verb, tmp_path / "root", 1)) == {verb == "gc", True}
