"""Mistakes in inputs: one value each, all of a stage in one error."""

from __future__ import annotations

import difflib
import re
import sys
from collections import defaultdict
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

KeyPath = tuple[str | int, ...]


@dataclass(frozen=True, slots=True)
class Problem:
    """One mistake in an input."""

    required: str
    """What should be there."""
    given: str
    """What is there."""
    todo: str = ""
    """What the reader can do about it."""
    file: str = ""
    """The file with the mistake; "" for the command line."""
    line: int = 0
    """The line of the mistake; 0 for the command line."""
    key: str = ""
    """The path of the value: "topology.q", "nodes[3].type"."""

    def __str__(self) -> str:
        """`file:line: key: required …, given …; todo`, without the parts that are empty."""
        place = f"{self.file}:{self.line}" if self.line else self.file
        text = f"required {self.required}, given {self.given}" if self.required else self.given
        said = "; ".join(part for part in (text, self.todo) if part)
        return ": ".join(part for part in (place, self.key, said) if part)


@dataclass(frozen=True, slots=True)
class Finding:
    """One mistake at a key of fabric.yaml or inventory.yaml. File and line are looked up later."""

    path: KeyPath
    """The path of the value: ("nodes", 3, "type"). Its first key tells which of the two files it is
    in.
    """
    required: str
    """What should be there."""
    given: str
    """What is there."""
    todo: str = ""
    """What the reader can do about it."""
    also: KeyPath = ()
    """The path of the value that clashes with it."""
    row: tuple[str, int] | None = None
    """The file and the line of the mistake, where the value names a file that has it."""

    def problem(self, file: str = "", line: int = 0, also: int = 0) -> Problem:
        """The problem, with the file and the lines of `path` and `also` where they are known."""
        given = self.given
        if self.row:
            file, line = self.row
        if self.also:
            given += f", also in line {also}" if also else f", also at {key(self.also)}"
        return Problem(self.required, given, self.todo, file, line, key(self.path))


def key(path: KeyPath) -> str:
    """`nodes[3].type` for ("nodes", 3, "type")."""
    parts = (f"[{part}]" if isinstance(part, int) else f".{shown(part)}" for part in path)
    return "".join(parts).removeprefix(".")


def shown(value: object, width: int = 48) -> str:
    """A value short in print: simple words as they are, other text in quotes, the rest by size."""
    if value is None:
        return "nothing"
    if value in ({}, [], ()):
        return "an empty mapping" if value == {} else "an empty list"
    if isinstance(value, dict):
        keys = ", ".join(shown(word, 16) for word in list(value)[:4])
        return f"a mapping with {keys}{', …' if len(value) > 4 else ''}"
    if isinstance(value, list | tuple):
        return f"a list of {len(value)}"
    text = str(value)
    short = text if len(text) <= width else f"{text[: width - 1]}…"
    return short if re.fullmatch(r"[\w./:+{}…-]+", short) else repr(short)


def file_name(path: str | Path) -> str:
    """A file's name in messages: in quotes, with escapes, where a character is not printable."""
    name = str(path)
    return name if name.isprintable() else repr(name)


class InputError(Exception):
    """The input is wrong: the user can mend it. Carries every problem of the stage."""

    def __init__(self, problems: Problem | Iterable[Problem]) -> None:
        self.problems = (problems,) if isinstance(problems, Problem) else tuple(problems)
        super().__init__("\n".join(map(str, self.problems)))

    @classmethod
    def of(
        cls,
        required: str,
        given: str,
        todo: str = "",
        file: str = "",
        line: int = 0,
        key: str = "",
    ) -> InputError:
        """The error of one Problem."""
        return cls(Problem(required, given, todo, file, line, key))

    def __reduce__(self) -> tuple[type[InputError], tuple[tuple[object, ...]]]:
        """Pickle the error as its problems."""
        return type(self), (tuple(self.problems),)


@contextmanager
def at_key(key: str) -> Iterator[None]:
    """Give problems that have no key this one: what was wrong is in the value of a parameter."""
    try:
        yield
    except InputError as error:
        raise InputError(replace(one, key=one.key or key) for one in error.problems) from error


class Refused(InputError):
    """The inputs are wrong at these keys; `LoadedFabric.stage` adds file and line."""

    def __init__(self, findings: Finding | Iterable[Finding]) -> None:
        self.findings = (findings,) if isinstance(findings, Finding) else tuple(findings)
        super().__init__(few(finding.problem() for finding in self.findings))

    def __reduce__(self) -> tuple[type[InputError], tuple[tuple[object, ...]]]:
        """Pickle the error as its findings."""
        return type(self), (self.findings,)


MISSPELT = 0.7
"""How much a word is like one that was meant: tcsh is another shell than zsh, ls no verb."""


def nearest(word: str, words: Iterable[str]) -> str:
    """The member of `words` most like `word`, or "" where none is as much alike as `MISSPELT`."""
    by_folded = {member.casefold(): member for member in words}
    similar = difflib.get_close_matches(word.casefold(), by_folded, n=1, cutoff=MISSPELT)
    return by_folded[similar[0]] if similar else ""


def did_you_mean(word: str, words: Iterable[str], otherwise: str = "") -> str:
    """`did you mean …?` where a word is like one of `words`, else `otherwise`."""
    meant = nearest(word, words)
    return f"did you mean {meant}?" if meant else otherwise


def not_among(word: str, words: Iterable[str], key: str = "", otherwise: str = "") -> Problem:
    """The problem of a word that is none of `words`, which are all that there are."""
    members = list(words)
    return Problem(
        f"one of {', '.join(members)}", word, did_you_mean(word, members, otherwise), key=key
    )


def few(problems: Iterable[Problem], most: int = 10) -> list[Problem]:
    """The problems, of each kind `most` and one that tells how many more there are.

    Of a kind are problems of a file that require the same of the same key, in whatever item.
    """
    kinds: dict[tuple[str, str, str], list[Problem]] = defaultdict(list)
    for problem in problems:
        key = re.sub(r"\[[0-9]+\]", "[…]", problem.key)
        kinds[problem.file, key, problem.required].append(problem)
    kept = []
    for (file, key, required), alike in kinds.items():
        if len(alike) <= most + 1:
            kept += alike
            continue
        given = f"{len(alike) - most:,} more like these"
        more = Problem(required, given, file=file, line=alike[most].line, key=key)
        kept += [*alike[:most], more]
    return kept


def install_extra(extra: str) -> str:
    """The command that adds one of polarfab's extras to the environment that this runs in."""
    pip = "pipx runpip polarfab" if Path(sys.prefix, "pipx_metadata.json").exists() else "pip"
    return f"{pip} install 'polarfab[{extra}]'"
