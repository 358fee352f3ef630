"""The check of scripts, systemd units and sysctl settings against their templates.

They are rendered once more, with variables that were read from other files of the switch, and have
to have the same lines in the same order. Comments and empty lines may differ, except behind a line
that ends in a backslash: there they would end the command.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from difflib import SequenceMatcher
from pathlib import Path

from compilers.readers.exact_text import bare, exact_lines, read_exact
from templates import environment

COMMON_VARIABLES = {"identity": "", "protocol": 80}
"""Variables that all templates use. The identity is only in comments, which may differ."""
SETTING_COMMENT = "#;"
"""The characters with which comments begin in sysctl.d(5) and systemd.syntax(7)."""
Lines = Iterable[tuple[int, str]]
"""Lines with their numbers."""


def differing_lines(lines: Lines, template: str, **variables: object) -> Iterator[tuple[int, str]]:
    """The lines that differ from the template: number and text, or `no line TEXT`.

    Args:
        lines: those of a file.
        template: the name of its template, TARGET/FILE.j2.
        variables: of the template.
    """
    rendered = environment().get_template(template).render(COMMON_VARIABLES | variables)
    actual = list(_effective(lines, template))
    expected = [line for _, line in _effective(enumerate(exact_lines(rendered), 1), template)]
    if [line for _, line in actual] == expected:
        return
    last = actual[-1][0] if actual else 0
    match = SequenceMatcher(None, [line for _, line in actual], expected, autojunk=False)
    for operation, begin, end, missing_begin, missing_end in match.get_opcodes():
        if operation != "equal":
            yield from actual[begin:end]
            number = actual[begin][0] if begin < len(actual) else last
            yield from ((number, f"no line {line}") for line in expected[missing_begin:missing_end])


def differing_lines_of_file(
    file: Path, template: str, **variables: object
) -> Iterator[tuple[int, str]]:
    """The lines of a file that differ from its template; see `differing_lines`.

    Raises:
        OSError: it cannot be read.
    """
    yield from differing_lines(enumerate(exact_lines(read_exact(file)), 1), template, **variables)


def _effective(lines: Lines, template: str) -> Iterator[tuple[int, str]]:
    """The lines that have an effect: no comments, but the `#!` of the first line."""
    comment = "#" if template.endswith(".sh.j2") else SETTING_COMMENT
    continued = False
    for number, line in lines:
        text = bare(line)
        if continued or (text and text[0] not in comment) or (number == 1 and line[:2] == "#!"):
            yield number, line
        continued = line.endswith("\\") and not text.startswith(tuple(comment))
