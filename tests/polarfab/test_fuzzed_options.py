"""Pairs of options with values good and bad: exit codes 0, 1 and 2 only, in words, within 20 s."""

from __future__ import annotations

import io
import random
import shutil
import signal
import sys
from collections.abc import Iterator
from itertools import combinations
from pathlib import Path

import click
import pytest

from polarfab.verb_list import verb
from tests.fuzzing import running, ten_minutes
from tests.polarfab.conftest import Run

VERBS = {
    **{"design": [], "analyse": ["polarfly", "--q", "2"], "export": ["polarfly", "--q", "2"]},
    **{"draw": ["b", "-o", "out/x.svg"], "init": ["out/i", "polarfly", "--q", "2"]},
    **{"check spec": ["f.yaml"], "compile": ["f.yaml", "-o", "out/b"], "verify": ["b"]},
    **{
        "explain": ["b", "0", "3"],
        "throughput": ["b"],
        "diff": ["b", "--from", "b"],
        "cables": ["b"],
    },
    **{"render": ["b", "--target", "frr", "-o", "out/r"], "plan": ["b", "--from", "b"]},
    **{"folder": ["b"], "targets": [], "hosts paths": ["b"]},
    **{"expand": ["b"]},
}
"""Each verb with good words; b is a build and f.yaml its fabric."""
NUMBERS = ["0", "1", "2", "-1", str(2**70), "1.5", "", "x", "nan"]
WORDS = [
    "",
    "-",
    "0",
    "x",
    "a=b",
    "a,b",
    "0,3",
    "../x",
    "{0.__class__}",
    "\N{PILE OF POO}",
    "x" * 300,
]
PLACES = ["", "-", "out/new", "b", "f.yaml", "no/such/file", "out", "/dev/null"]
ELSEWHERE = ("--scheduler", "--help")
"""Others answer there, or nothing is done."""
LIMIT = 20
Option = tuple[str, ...]


def options(command: click.Command) -> Iterator[Option]:
    """Each option of a verb by its longest name, with the values to try; none for a flag."""
    for option in command.params:
        if not isinstance(option, click.Option):
            continue
        name = max(option.opts, key=len)
        if name in ELSEWHERE:
            continue
        if option.is_flag:
            yield (name,)
        elif isinstance(option.type, click.Choice):
            yield name, *map(str, option.type.choices), "", "bogus"
        elif isinstance(option.type, click.Path):
            yield name, *PLACES
        elif option.type.name.startswith(("integer", "float")):
            yield name, *NUMBERS
        else:
            yield name, *WORDS


def named(words: str) -> click.Command:
    """The command of a verb, or of a word of a group."""
    name, _, word = words.partition(" ")
    command = verb(name)
    return command.commands[word] if isinstance(command, click.Group) else command


def cases() -> list[tuple[str, Option, Option]]:
    """Every pair of options of every verb."""
    return [(name, *pair) for name in VERBS for pair in combinations(options(named(name)), 2)]


def fuzz(chosen: list[tuple[str, Option, Option]], run: Run, seed: int) -> None:
    chance, wrong = random.Random(seed), []  # noqa: S311
    files = [Path("f.yaml"), *Path("b").rglob("*")]
    kept = {path: path.read_bytes() for path in files if path.is_file()}
    for name, *pair in chosen:
        words = [*name.split(), *VERBS[name]]
        for option, *values in pair:
            words += [option, chance.choice(values)] if values else [option]
        shutil.rmtree("out", ignore_errors=True)
        Path("out").mkdir()
        signal.setitimer(signal.ITIMER_REAL, LIMIT)
        code, _, err = run(*words)
        signal.setitimer(signal.ITIMER_REAL, 0)
        if code not in (0, 1, 2) or "Traceback" in err:
            wrong.append(f"{words}: exit code {code}: {err[-600:]}")
        for path, content in kept.items():
            if not path.is_file() or path.read_bytes() != content:
                # A verification marks the build; -o may name the fabric.
                if path.name not in ("verified.json", "f.yaml"):
                    wrong.append(f"{words}: {path} is another")
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_bytes(content)
    assert not wrong, "\n".join(wrong)


@pytest.fixture
def here(polarfab: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Run]:
    """A folder with a fabric and its build, nothing on standard input, and a limit of time."""

    def late(*_: object) -> None:
        raise RuntimeError(f"more than {LIMIT} s")

    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO()))
    Path("f.yaml").write_text("name: lab\ntopology: {family: polarfly, q: 2}\n")
    assert polarfab("compile", "f.yaml", "-o", "b")[0] == 0
    before = signal.signal(signal.SIGALRM, late)
    yield polarfab
    signal.setitimer(signal.ITIMER_REAL, 0)
    signal.signal(signal.SIGALRM, before)


def test_some_pairs_of_options(here: Run) -> None:
    fuzz(random.Random(1).sample(cases(), 150), here, 1)  # noqa: S311


@pytest.mark.long
def test_ten_minutes_of_options(here: Run) -> None:
    every = cases()
    shutil.copytree("b", "kept")
    spec = Path("f.yaml").read_bytes()

    def case(chance: random.Random) -> str:
        for name in ("b", "out"):
            shutil.rmtree(name, ignore_errors=True)
        shutil.copytree("kept", "b")
        Path("out").mkdir()
        Path("f.yaml").write_bytes(spec)
        name, *pair = chance.choice(every)
        words = [*name.split(), *VERBS[name]]
        for option, *values in pair:
            words += [option, chance.choice(values)] if values else [option]
        code, _, err = here(*words)
        return running(words, code, err)

    ten_minutes("options", case)
