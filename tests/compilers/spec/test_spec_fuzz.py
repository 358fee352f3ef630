"""Mutated example files load or end in an InputError that names a file; nothing else happens."""

import copy
import random
import shutil
import sys
from pathlib import Path
from time import monotonic
from typing import Any

import pytest
import yaml

from compilers.planes import compile_planes
from compilers.spec.fabric_file import load_fabric
from inventory.problems import InputError

ROOT = Path(__file__).parents[3]
SECONDS = {
    "examples/q7": 3,
    "examples/q7-copackaged": 2,
    "examples/polarstar-q5": 2,
    "tests/data/everything": 3,
}
NASTY: list[Any] = [
    *(None, True, 0, -1, 7.0, 6, 2**31, 2**64, 10**30, float("nan"), float("inf")),
    *("", "-", "..", "a/b", "{0.__class__}", "{}", "\0", "\u202e", "\N{PILE OF POO}", "x" * 999),
    *("0x7001", "n02", "fd00::/8", "10.0.0.0/33", "fe80::1%eth0", "52:54:00:12:34:56", b"\xff"),
    *([], {}, [[]], {"a": {}}, [None], {None: None}, {"ports": {"ports": []}}),
]
SPICE = [
    b"\t",
    b"\n",
    b": ",
    b"- ",
    b"&a ",
    b"*a",
    b"!!int ",
    b"{",
    b"]",
    b"'",
    b"\xff",
    b"\0",
    b"<<: ",
]


def places(value: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    """The path of every value below `value`."""
    items = value.items() if isinstance(value, dict) else enumerate(value)
    found = []
    for part, inner in items:
        found.append((*path, part))
        if isinstance(inner, dict | list):
            found += places(inner, (*path, part))
    return found


def mutated_tree(data: Any, rng: random.Random) -> bytes:
    """The document with some values replaced, removed, or their keys misspelt."""
    data = copy.deepcopy(data)
    for _ in range(rng.randint(1, 3)):
        if not (left := places(data)):
            break
        *path, last = rng.choice(left)
        parent = data
        for part in path:
            parent = parent[part]
        action = rng.random()
        if action < 0.6:
            parent[last] = copy.deepcopy(rng.choice(NASTY))
        elif action < 0.8:
            del parent[last]
        elif isinstance(parent, dict):
            parent[rng.choice(["nmae", "", "x", 7, f"{last}s"])] = parent.pop(last)
        else:
            parent.append(parent[last])
    return yaml.safe_dump(data, sort_keys=False).encode()


def mutated_bytes(text: bytes, rng: random.Random) -> bytes:
    """The text with some bytes cut, doubled, changed or spiced."""
    for _ in range(rng.randint(1, 4)):
        at, length = rng.randrange(len(text)), rng.choice([1, 1, 3, 40])
        cut = text[at : at + length]
        new = rng.choice([b"", cut + cut, bytes([rng.randrange(256)]), rng.choice(SPICE) + cut])
        text = text[:at] + new + text[at + length :]
    return text


@pytest.mark.parametrize("example", SECONDS)
def test_mutated_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, example: str) -> None:
    monkeypatch.setattr(sys, "stdin", None)  # "-" as the inventory's name reads it
    folder = ROOT / example
    originals = {name: (folder / name).read_bytes() for name in ("fabric.yaml", "inventory.yaml")}
    trees = {name: yaml.safe_load(text) for name, text in originals.items()}
    for name in originals:
        shutil.copy(folder / name, tmp_path)
    end, good, bad, seed = monotonic() + SECONDS[example], 0, 0, 0
    while monotonic() < end or not good or not bad:
        seed += 1
        rng = random.Random(seed)  # noqa: S311
        name = rng.choice(list(originals))
        text = (
            mutated_tree(trees[name], rng)
            if rng.random() < 0.6
            else mutated_bytes(originals[name], rng)
        )
        (tmp_path / name).write_bytes(text)
        problems = None
        try:
            compile_planes(load_fabric(tmp_path / "fabric.yaml"))
        except InputError as error:
            problems = error.problems
        except Exception as error:
            raise AssertionError(f"seed {seed}: {text!r}"[:4000]) from error
        (tmp_path / name).write_bytes(originals[name])
        if problems is None:
            good += 1
            continue
        bad += 1
        assert problems, seed
        for problem in problems:
            assert problem.file.startswith(str(tmp_path)), (seed, problem)
            assert len(str(problem)) < 600 + len(problem.file), (seed, problem)
            assert str(problem).isprintable(), (seed, problem)
