"""Fenced blocks of the manual: files to write, commands to run, and what they print.

    ```yaml fabric.yaml         a file of this name in the page's folder
    ```console                  `$ command` lines, each followed by what it prints, or by nothing
    ```console exits 1          the last command ends with this code
    ```console live             needs Open vSwitch, Mininet and root
    ```console fabric           needs a running fabric, which `test_seen_live` has
    ```console not run: REASON  shown only

A line `…` stands for any lines, and `…` in a line for any text. What follows `#` is a remark.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[2]
FENCE = re.compile(r"^```(?P<info>[^\n`]*)\n(?P<text>.*?)^```$", re.M | re.S)
WRITTEN_FROM_CODE = "*Made from the code: "
"""A line of pages that nobody writes by hand (`manual.reference`)."""
PAGES = sorted(
    (
        page
        for page in (ROOT / "README.md", *ROOT.glob("docs/**/*.md"), *ROOT.glob("examples/**/*.md"))
        if f"\n{WRITTEN_FROM_CODE}" not in page.read_text()
    ),
    key=lambda page: page.as_posix(),
)
LINK = re.compile(r"\]\((?![a-z]+:|#)([^)#\s]+)")
"""The file of a link in a page."""


@dataclass(frozen=True, slots=True)
class Command:
    """A command of a page, and the lines that are shown below it."""

    words: str
    shown: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Block:
    """A fenced block; `line` is that of its fence."""

    page: Path
    line: int
    info: str
    text: str

    @property
    def language(self) -> str:
        """The first word behind the fence."""
        return self.info.partition(" ")[0]

    @property
    def mark(self) -> str:
        """What stands behind the first word: a file's name, or how commands are run."""
        return self.info.partition(" ")[2].strip()

    @property
    def writes(self) -> str | None:
        """The file that this block is, if it names one."""
        named = self.language not in ("text", "console") and "." in self.mark
        return self.mark if named else None

    @property
    def where(self) -> str:
        """Page and line, for messages."""
        return f"{self.page.relative_to(ROOT)}:{self.line}"

    def commands(self) -> Iterator[Command]:
        """The commands of a console block, in order."""
        for part in re.split(r"^\$ ", self.text, flags=re.M)[1:]:
            first, *rest = part.rstrip("\n").split("\n")
            while first.endswith("\\"):
                first = f"{first[:-1]}{rest.pop(0).removeprefix('>').strip()}"
            yield Command(first, tuple(line.rstrip() for line in rest))


def blocks(page: Path) -> list[Block]:
    """The fenced blocks of a page, in order."""
    text = page.read_text()
    return [
        Block(page, text.count("\n", 0, found.start()) + 1, found["info"].strip(), found["text"])
        for found in FENCE.finditer(text)
    ]


def matches(shown: tuple[str, ...], printed: list[str]) -> bool:
    """Whether a page shows what was printed, `…` left out."""
    lines = [
        r"(?:.*\n)*" if line == "…" else re.escape(line).replace("…", ".*") + r"\n"
        for line in shown
    ]
    return re.fullmatch("".join(lines), "".join(f"{line}\n" for line in printed)) is not None


def first_wrong(shown: tuple[str, ...], printed: list[str]) -> str | None:
    """The first line of a page that is not printed in its place; None if all are."""
    for count, line in enumerate(shown, 1):
        if not matches((*shown[:count], "…"), printed):
            return line
    return None if matches(shown, printed) else "the end"
