"""Mutants of rendered text: a line deleted, duplicated, moved, swapped, or a token altered.

They are drawn by a seed, so that a number names one. Half of the altered tokens get the text that
stands at their place in another line: another switch's address, another port's name.
"""

from __future__ import annotations

import random
import re
from collections.abc import Iterator
from dataclasses import dataclass

KINDS = ("delete", "duplicate", "copy", "move", "swap", "alter")
TOKEN = re.compile(r"[A-Za-z0-9._:/-]+")


@dataclass(frozen=True, slots=True)
class TextMutant:
    """A changed text: how, the first line that changed from 1, what stood there, and the text."""

    kind: str
    line: int
    before: str
    after: str
    text: str

    def __str__(self) -> str:
        return f"{self.kind} line {self.line}: {self.before!r} -> {self.after!r}"


def mutants(text: str, count: int, seed: int) -> Iterator[TextMutant]:
    """So many different mutants of a text."""
    rng, lines, seen = random.Random(seed), text.splitlines(), {text}  # noqa: S311
    while len(seen) <= count:
        made = _mutant(lines, rng)
        if made and made.text not in seen:
            seen.add(made.text)
            yield made


def _mutant(lines: list[str], rng: random.Random) -> TextMutant | None:
    kind = rng.choice(KINDS)
    at = rng.randrange(len(lines))
    to = rng.choice(
        [max(0, at - 1), min(len(lines) - 1, at + 1), *rng.choices(range(len(lines)), k=2)]
    )
    line, new = lines[at], list(lines)
    after = ""
    if kind == "delete":
        del new[at]
    elif kind == "duplicate":
        new.insert(at, line)
        after = line
    elif kind == "copy":
        new.insert(to, line)
        after = f"again at line {to + 1}"
    elif kind == "move":
        new.insert(to, new.pop(at))
        after = f"at line {to + 1}"
    elif kind == "swap":
        new[at], new[to] = new[to], new[at]
        after = f"and line {to + 1}: {lines[to]}"
    else:
        after = _altered(lines, line, rng)
        new[at] = after
    return TextMutant(kind, at + 1, line, after, "\n".join(new) + "\n")


def _altered(lines: list[str], line: str, rng: random.Random) -> str:
    """A line with one token changed."""
    tokens = list(TOKEN.finditer(line))
    if not tokens:
        return line
    place = rng.randrange(len(tokens))
    token = tokens[place]
    others = TOKEN.findall(rng.choice(lines))
    if rng.random() < 0.5 and len(others) > place:
        word = others[place]
    else:
        at = rng.randrange(len(token[0]))
        character = token[0][at]
        pool = "0123456789" if character.isdigit() else "abcdefghijklmnopqrstuvwxyz"
        word = token[0][:at] + rng.choice(pool) + token[0][at + 1 :]
    return line[: token.start()] + word + line[token.end() :]
