"""Fuzzed build folders: exit codes 0, 1 and 2 only, and never a wrong table."""

from __future__ import annotations

import json
import os
import random
import shutil
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from polarfab import cli
from tests.compilers.signed import sign
from tests.fuzzing import running, ten_minutes

SPEC = """name: lab
topology: {family: polarfly, q: 3}
routing: {protect: link, balance: compact-valiant}
"""
VERBS = {
    "verify": ["verify", "BUILD", "--json"],
    "explain": ["explain", "BUILD", "0", "7"],
    "cables": ["cables", "BUILD", "--format", "csv"],
    "hosts": ["cables", "BUILD", "--format", "hosts"],
    "draw": ["draw", "BUILD", "-o", "OUT/lab.svg"],
    "render": ["render", "BUILD", "--target", "ovs", "-o", "OUT/ovs", "--unverified"],
    "plan": ["plan", "SOUND", "--from", "BUILD"],
    "throughput": ["throughput", "BUILD", "--pattern", "uniform"],
    "expand": ["expand", "SOUND", "--from", "BUILD"],
    "folder": ["folder", "BUILD", "--json"],
}
SAME = ("cables", "hosts", "draw", "render", "explain")
"""Verbs whose output tells whether they used another table."""
JUNK = [
    None,
    True,
    -1,
    0,
    2**70,
    0.5,
    "",
    "../../x",
    "\x00",
    [],
    {},
    [[]],
    {"a": "b"},
    "10.0.0.0/8",
]


def flip(file: Path, chance: random.Random) -> None:
    content = bytearray(file.read_bytes())
    content[chance.randrange(len(content))] ^= 1 << chance.randrange(8)
    replaced(file, bytes(content))


def cut(file: Path, chance: random.Random) -> None:
    content = file.read_bytes()
    replaced(file, content[: chance.randrange(len(content))])


def replaced(file: Path, content: bytes) -> None:
    file.unlink()
    file.write_bytes(content)


def another_kind(file: Path, chance: random.Random) -> None:
    content = file.read_bytes()
    file.unlink()
    kinds: list[Callable[[], object]] = [
        lambda: None,
        file.mkdir,
        lambda: os.mkfifo(file),
        lambda: file.symlink_to("/etc/passwd"),
        lambda: (file.with_name("moved").write_bytes(content), file.symlink_to("moved")),
    ]
    chance.choice(kinds)()


def json_edit(file: Path, chance: random.Random) -> None:
    """Change, remove or add a key somewhere in a document."""
    document = json.loads(file.read_text())
    at: Any = document
    while True:
        key = chance.choice(list(at) if isinstance(at, dict) else range(len(at)))
        if not isinstance(at[key], dict | list) or not at[key] or chance.random() < 0.2:
            break
        at = at[key]
    if chance.random() < 0.3:
        del at[key]
    else:
        at[key] = chance.choice(JUNK)
    replaced(file, json.dumps(document).encode())


def array_edit(file: Path, chance: random.Random) -> None:
    """Other values, another type, or another shape."""
    array = np.load(file)
    edits: list[Callable[[], Any]] = [
        lambda: array[: len(array) // 2],
        lambda: array[..., None],
        lambda: array.astype(chance.choice([np.int8, np.float64, np.bool_, ">i4", "U4"])),
        lambda: np.zeros_like(array),
        lambda: np.full_like(array, np.iinfo(array.dtype).max if array.dtype != bool else True),
        lambda: np.empty(0, array.dtype),
        lambda: np.array([{"a": 1}], object),
    ]
    if array.size and array.dtype != bool:
        one = array.copy()
        one.flat[chance.randrange(one.size)] = chance.choice([0, 1, 2, 5, 100])
        edits += [lambda: one] * 6
    file.unlink()
    np.save(file, chance.choice(edits)(), allow_pickle=True)


def harm(build: Path, chance: random.Random) -> str:
    """Do something to a build; in words what."""
    files = sorted(path for path in build.rglob("*") if path.is_file())
    file = chance.choice(files)
    edits = [flip, cut, another_kind]
    if file.suffix == ".json":
        edits += [json_edit] * 6
    elif file.suffix == ".npy":
        edits += [array_edit] * 4
    edit = chance.choice(edits)
    edit(file, chance)
    signed = chance.random() < 0.5 and edit != another_kind and not file.name.startswith("manifest")
    if signed:
        sign(build)
    return f"{edit.__name__} of {file.name}{', signed' * signed}"


def run(words: list[str], capfd: pytest.CaptureFixture[str]) -> tuple[int, str, str]:
    sys.argv = ["polarfab", *words]
    capfd.readouterr()
    with pytest.raises(SystemExit) as stop:
        cli.main()
    out, err = capfd.readouterr()
    return int(stop.value.code or 0), out, err


def fuzz(cases: range, root: Path, capfd: pytest.CaptureFixture[str]) -> None:
    (root / "fabric.yaml").write_text(SPEC)
    sound = root / "sound"
    assert run(["compile", f"{root}/fabric.yaml", "-o", str(sound)], capfd)[0] == 0
    places = {"BUILD": root / "build", "OUT": root / "out", "SOUND": sound}
    wrong, right = [], {}
    for name in VERBS:
        shutil.copytree(sound, places["BUILD"])
        code, out, _ = said = run_verb(name, places, capfd)
        assert code == 0, said
        right[name] = out, written(places["OUT"])
        shutil.rmtree(places["BUILD"])
        shutil.rmtree(places["OUT"])
    for case in cases:
        chance = random.Random(case)  # noqa: S311
        name = chance.choice(list(VERBS))
        shutil.copytree(sound, places["BUILD"])
        what = harm(places["BUILD"], chance)
        code, out, err = run_verb(name, places, capfd)
        strays = {path.name for path in root.iterdir()} - {"fabric.yaml", "build", "out", "sound"}
        there = (out, written(places["OUT"])) if name in SAME and not code else right[name]
        if code not in (0, 1, 2) or strays:
            wrong.append(f"case {case}: {name} after {what}: exit code {code}, {strays}, {err}")
        elif there != right[name] and not may_differ(name, what):
            wrong.append(f"case {case}: {name} after {what}: another output")
        shutil.rmtree(places["BUILD"])
        shutil.rmtree(places["OUT"], ignore_errors=True)
    assert not wrong, "\n".join(wrong)


def may_differ(name: str, what: str) -> bool:
    """Whether another output is right: tables that were signed, or a mark that proves nothing."""
    return "signed" in what or ("verified.json" in what and name == "explain")


def run_verb(
    name: str, places: dict[str, Path], capfd: pytest.CaptureFixture[str]
) -> tuple[int, str, str]:
    places["OUT"].mkdir()
    words = []
    for word in VERBS[name]:
        for key, place in places.items():
            word = word.replace(key, str(place))
        words.append(word)
    return run(words, capfd)


def written(folder: Path) -> dict[str, bytes]:
    files = (path for path in folder.rglob("[!.]*") if path.is_file())
    return {str(path.relative_to(folder)): path.read_bytes() for path in files}


@pytest.fixture(autouse=True)
def _bugs_here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "bugs").mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "bugs"))


def test_some_fuzzed_builds(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "root").mkdir()
    fuzz(range(30), tmp_path / "root", capfd)


def folder_case(root: Path, capfd: pytest.CaptureFixture[str]) -> Callable[[random.Random], str]:
    """Harm a new build below `root` and run a verb on it; says what became of that."""
    root.mkdir()
    (root / "fabric.yaml").write_text(SPEC)
    places = {"BUILD": root / "build", "OUT": root / "out", "SOUND": root / "sound"}
    run(["compile", f"{root}/fabric.yaml", "-o", str(places["SOUND"])], capfd)

    def case(chance: random.Random) -> str:
        for name in ("BUILD", "OUT"):
            shutil.rmtree(places[name], ignore_errors=True)
        shutil.copytree(places["SOUND"], places["BUILD"])
        what, name = harm(places["BUILD"], chance), chance.choice(list(VERBS))
        code, _, err = run_verb(name, places, capfd)
        return running((what, name), code, err)

    return case


def test_signed_builds_that_contradict_themselves_are_refused(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    """Found by the test below: ports at one end, no hosts, q = -1,
    rows to switch 0 alone, a node type without a name, more links of a switch than it has ports.
    """
    case = folder_case(tmp_path / "root", capfd)
    seeds = {551: "refused", 5071: "refused", 4001: "accepted", 1380: "refused", 1470: "refused"}
    seeds |= {23973: "refused", 8872: "refused"}
    assert {seed: case(random.Random(seed)) for seed in seeds} == seeds  # noqa: S311


@pytest.mark.long
def test_ten_minutes_of_folders(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    ten_minutes("folders", folder_case(tmp_path / "root", capfd))
