"""Reader of files of OpenSM with a setting on each line, and what all readers of lines share.

`plain_lines` yields the lines that a reader may look at: those with strange characters are
differences already. `TextValue` is a value with the number of its line, for messages.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from compilers.readers.emitted_report import DifferenceList
from compilers.readers.exact_text import bare, exact_lines, read_exact, strange


@dataclass(frozen=True, slots=True)
class TextValue:
    """A value that a line of a file states."""

    text: str
    """The value."""
    line: int
    """The number of the line."""


ABSENT = TextValue("nothing", 0)
"""In place of a value that no line states."""


def plain_lines(file: Path, differences: DifferenceList) -> Iterator[tuple[int, str]]:
    """The lines of a file with their numbers, but for those with strange characters.

    Such lines are differences, unless they are comments.
    """
    for line, text in enumerate(exact_lines(read_exact(file)), 1):
        if not strange(text):
            yield line, text
        elif text[0] != "#":
            differences.add_unread(file, line, text)


def read_settings(file: Path, differences: DifferenceList, sign: str = " ") -> dict[str, TextValue]:
    """The settings of an opensm.conf by name; the last one of a name is used.

    Args:
        file: with a setting on each line.
        differences: gets names that occur twice.
        sign: between name and value.
    """
    settings: dict[str, TextValue] = {}
    for line, text in plain_lines(file, differences):
        name, _, value = bare(text).partition(sign)
        if not name or name[0] == "#":
            continue
        if name in settings:
            differences.add(file, line, f"{name} again", "one value")
        settings[name] = TextValue(bare(value), line)
    return settings
