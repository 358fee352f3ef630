"""Mistakes in inputs: `Problem` is one mistake, and `InputError` raises all mistakes of a stage.

A `Finding` is a mistake at a key of fabric.yaml or inventory.yaml, before its file and line are
known. All readers and checks of inputs use these classes; the command line prints the problems.
"""

from __future__ import annotations

import difflib
import re
import sys
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

KeyPath = tuple[str | int, ...]
"""The path of a value in a document: keys of mappings and places in lists."""
MISSPELT = 0.7
"""How similar a misspelt word is to the word that was meant, at least: `tcsh` is not a misspelt
`zsh`."""
MOST_ALIKE = 10
"""The most problems of a kind that are reported."""


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
        message = "; ".join(part for part in (text, self.todo) if part)
        return ": ".join(part for part in (place, self.key, message) if part)


@dataclass(frozen=True, slots=True)
class Finding:
    """A mistake at a key of fabric.yaml or inventory.yaml. File and line are looked up later."""

    path: KeyPath
    """The path of the value: ("nodes", 3, "type"). Its first key determines the file."""
    required: str
    """What should be there."""
    given: str
    """What is there."""
    todo: str = ""
    """What the reader can do about it."""
    also: KeyPath = ()
    """The path of another value that clashes with this one; () for none."""
    row: tuple[str, int] | None = None
    """The file and the line of the mistake, if the value names a file that has the mistake."""

    def problem(self, file: str = "", line: int = 0, also_line: int = 0) -> Problem:
        """The problem of this finding.

        Args:
            file: the file of the value; "" if it is not known.
            line: the line of the value; 0 if it is not known.
            also_line: the line of the value that clashes; 0 if it is not known.
        """
        text = self.given
        if self.row:
            file, line = self.row
        if self.also:
            text += f", also in line {also_line}" if also_line else f", also at {key(self.also)}"
        return Problem(self.required, text, self.todo, file, line, key(self.path))


def key(path: KeyPath) -> str:
    """A path in print: `nodes[3].type` for ("nodes", 3, "type")."""
    parts = (f"[{part}]" if isinstance(part, int) else f".{shown(part)}" for part in path)
    return "".join(parts).removeprefix(".")


def shown(value: object, width: int = 48) -> str:
    """A value in a message: a simple word as it is, other text in quotes, lists by their size.

    Args:
        value: the value.
        width: the most characters of a text.
    """
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


def first_names(names: Sequence[str], most: int) -> str:
    """The first names, and how many more there are.

    >>> first_names(["n0", "n1", "n2", "n3"], 3), first_names(["n0"], 3)
    ('n0, n1, n2 and 1 more', 'n0')

    Args:
        names: the names.
        most: how many are named at most.
    """
    more = f" and {len(names) - most:,} more" if len(names) > most else ""
    return ", ".join(names[:most]) + more


def file_name(path: str | Path) -> str:
    """A file's name in messages: with quotes and escapes if a character is not printable."""
    name = str(path)
    return name if name.isprintable() else repr(name)


class InputError(Exception):
    """The input is wrong, and the user can correct it. It has the problems of a stage.

    Of more than eleven problems of a kind it may have the first ten, and one that says how many
    more there are (`few`).
    """

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
        """The error of one problem, by the fields of `Problem`."""
        return cls(Problem(required, given, todo, file, line, key))

    def __reduce__(self) -> tuple[type[InputError], tuple[tuple[object, ...]]]:
        """Pickle the error as its problems."""
        return type(self), (tuple(self.problems),)


@contextmanager
def at_key(key: str) -> Iterator[None]:
    """Give a key to problems without one, for a context that checks the value of a parameter."""
    try:
        yield
    except InputError as error:
        problems = (replace(problem, key=problem.key or key) for problem in error.problems)
        raise InputError(problems) from error


class Refused(InputError):
    """The inputs are wrong at some keys; `LoadedFabric.stage` adds the file and the lines."""

    def __init__(self, findings: Finding | Iterable[Finding]) -> None:
        self.findings = (findings,) if isinstance(findings, Finding) else tuple(findings)
        super().__init__(few(finding.problem() for finding in self.findings))

    def __reduce__(self) -> tuple[type[InputError], tuple[tuple[object, ...]]]:
        """Pickle the error as its findings."""
        return type(self), (self.findings,)


def nearest(word: str, words: Iterable[str]) -> str:
    """The member of `words` that is most similar to `word`; "" if none is (`MISSPELT`)."""
    by_folded = {member.casefold(): member for member in words}
    similar = difflib.get_close_matches(word.casefold(), by_folded, n=1, cutoff=MISSPELT)
    return by_folded[similar[0]] if similar else ""


def did_you_mean(word: str, words: Iterable[str], otherwise: str = "") -> str:
    """`did you mean …?` if a word is similar to one of `words`, else `otherwise`."""
    meant = nearest(word, words)
    return f"did you mean {meant}?" if meant else otherwise


def not_among(word: str, words: Iterable[str], key: str = "", otherwise: str = "") -> Problem:
    """The problem of a word that is not among the allowed words.

    Args:
        word: the word.
        words: all allowed words.
        key: the key of the problem.
        otherwise: what to do if no allowed word is similar.
    """
    members = list(words)
    return Problem(
        f"one of {', '.join(members)}", word, did_you_mean(word, members, otherwise), key=key
    )


def few(problems: Iterable[Problem], most: int = MOST_ALIKE) -> list[Problem]:
    """The first problems of each kind, and one problem that says how many more there are.

    Problems are of one kind if they require the same of the same key in a file, in any item of a
    list.
    """
    kinds: dict[tuple[str, str, str], list[Problem]] = defaultdict(list)
    for problem in problems:
        key = re.sub(r"\[[0-9]+\]", "[…]", problem.key)
        kinds[problem.file, key, problem.required].append(problem)
    shown_problems = []
    for (file, key, required), alike in kinds.items():
        if len(alike) <= most + 1:
            shown_problems += alike
            continue
        count = f"{len(alike) - most:,} more like these"
        summary = Problem(required, count, file=file, line=alike[most].line, key=key)
        shown_problems += [*alike[:most], summary]
    return shown_problems


def install_extra(extra: str) -> str:
    """The command that installs one of polarfab's extras into the present environment."""
    pip = "pipx runpip polarfab" if Path(sys.prefix, "pipx_metadata.json").exists() else "pip"
    return f"{pip} install 'polarfab[{extra}]'"
