"""A kill at every file-system event leaves the old proved state or the new one."""

from __future__ import annotations

import mmap
import os
import shutil
import signal
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from compilers.tables.folders.artefact import remove
from compilers.tables.folders.generations import collect
from compilers.targets.rendering.folder_check import check_folder
from polarfab import cli

CHANGES = {"os.mkdir", "os.rename", "os.link", "os.symlink", "os.remove", "os.rmdir", "os.chmod"}
Write = os.O_WRONLY | os.O_RDWR | os.O_CREAT
FABRIC = "name: {}\ntopology: {{family: polarfly, q: {}}}\n"


def in_child(words: list[str], kill_at: int) -> int:
    """Run the command line in a child that is killed before its n-th change of the file system.

    Returns:
        How many changes there were.
    """
    count = mmap.mmap(-1, 8)
    pid = os.fork()
    if not pid:
        try:
            _run(words, kill_at, count)
        finally:
            os._exit(99)
    _, status = os.waitpid(pid, 0)
    killed = os.waitstatus_to_exitcode(status) == -signal.SIGKILL
    assert killed or os.waitstatus_to_exitcode(status) == 0
    return int.from_bytes(count[:8], "little")


def _run(words: list[str], kill_at: int, count: mmap.mmap) -> None:
    os.setsid()
    null = os.open(os.devnull, os.O_WRONLY)
    os.dup2(null, 1)
    os.dup2(null, 2)

    def hook(event: str, given: tuple[object, ...]) -> None:
        opened = event == "open" and isinstance(given[2], int) and given[2] & Write
        if event in CHANGES or (opened and "__pycache__" not in str(given[0])):
            done = int.from_bytes(count[:8], "little") + 1
            count[:8] = done.to_bytes(8, "little")
            if done == kill_at:
                os.killpg(0, signal.SIGKILL)

    sys.addaudithook(hook)
    sys.argv = ["polarfab", *words]
    try:
        cli.main()
    except SystemExit as stop:
        os._exit(int(stop.code or 0))


@dataclass(frozen=True)
class Case:
    """A command over an earlier artefact; state tells which is there, or fails."""

    words: Callable[[Path], list[str]]
    state: Callable[[Path], object]


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
        lambda root: proved(root / "there"),
    ),
    "render": Case(
        lambda root: ["render", f"{root}/{{}}", "--target", "ovs", "-o", f"{root}/out"],
        lambda root: rendered(root / "out"),
    ),
    "cables": Case(
        lambda root: ["cables", f"{root}/{{}}", "--format", "csv", "-o", f"{root}/cables.csv"],
        lambda root: (root / "cables.csv").read_text(),
    ),
    "draw": Case(
        lambda root: ["draw", f"{root}/{{}}", "-o", f"{root}/lab.svg"],
        lambda root: (root / "lab.svg").read_text(),
    ),
    "expand": Case(
        lambda root: f"expand {root}/part-{{}} --to {root}/{{}}.yaml -o {root}/grown".split(),
        expanded,
    ),
}


@pytest.fixture(scope="module")
def builds(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("kills")
    for name, q in (("old", 3), ("new", 2)):
        (root / f"{name}.yaml").write_text(FABRIC.format(name, q))
        here("compile", f"{root}/{name}.yaml", "-o", f"{root}/{name}")
        here("compile", f"{root}/{name}.yaml", "-o", f"{root}/part-{name}", "--phase", "1")
    for case in CASES.values():  # imports what a child then has
        here(*(word.format("new") for word in case.words(root)))
        case.state(root)
    for path in ("there", "out", "cables.csv", "lab.svg", "grown"):
        remove(root / path)
    return root


def here(*words: str) -> None:
    sys.argv = ["polarfab", *words]
    with pytest.raises(SystemExit) as stop:
        cli.main()
    assert not stop.value.code


def kills(verb: str, root: Path, step: int) -> Iterator[object]:
    """The state after each step-th kill of a verb over an earlier artefact."""
    case = CASES[verb]
    words = [[word.format(name) for word in case.words(root)] for name in ("old", "new")]
    kept = root.with_name(f"{root.name}-kept")
    in_child(words[0], 0)
    shutil.copytree(root, kept, symlinks=True)
    old = case.state(root)
    events = in_child(words[1], 0)
    new = case.state(root)
    assert old != new
    assert events >= 3
    for kill_at in range(1, events + 1, step):
        shutil.rmtree(root)
        shutil.copytree(kept, root, symlinks=True)
        in_child(words[1], kill_at)
        found = case.state(root)
        assert found in (old, new), f"after a kill at event {kill_at} of {events}"
        collect(root)
        assert not list(root.glob(".*.part")), f"after a kill at event {kill_at}"
        assert case.state(root) == found
        yield found == new


@pytest.mark.parametrize("verb", CASES)
def test_some_kills(builds: Path, tmp_path: Path, verb: str) -> None:
    shutil.copytree(builds, tmp_path / "root")
    step = {"compile": 13, "render": 13, "expand": 19}.get(verb, 2)
    assert False in list(kills(verb, tmp_path / "root", step))


@pytest.mark.long
@pytest.mark.parametrize("verb", CASES)
def test_a_kill_at_every_event(builds: Path, tmp_path: Path, verb: str) -> None:
    shutil.copytree(builds, tmp_path / "root")
    assert set(kills(verb, tmp_path / "root", 1)) == {False, True}
