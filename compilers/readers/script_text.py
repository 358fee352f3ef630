"""The check of scripts, systemd units and sysctl settings against their templates.

The template of a file is rendered once more, with variables that were read from other files of the
switch. The file has to have the same lines in the same order. Comments and empty lines may differ,
except behind a line that ends in a backslash: there they would end the command.
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
NumberedLines = Iterable[tuple[int, str]]
"""The numbers and the texts of lines."""


def differing_lines(
    lines: NumberedLines, template: str, **variables: object
) -> Iterator[tuple[int, str]]:
    """Yield the number and the text of each line that differs from the template.

    The text of a missing line is `no line TEXT`, with the number of the line before which it is
    missing.

    Args:
        lines: the lines of a file.
        template: the name of its template, TARGET/FILE.j2.
        variables: the variables of the template.
    """
    rendered = environment().get_template(template).render(COMMON_VARIABLES | variables)
    actual = list(_without_comments(lines, template))
    rendered_lines = enumerate(exact_lines(rendered), 1)
    expected_texts = [text for _, text in _without_comments(rendered_lines, template)]
    actual_texts = [text for _, text in actual]
    if actual_texts == expected_texts:
        return
    last_number = actual[-1][0] if actual else 0
    matcher = SequenceMatcher(None, actual_texts, expected_texts, autojunk=False)
    for operation, start, end, missing_start, missing_end in matcher.get_opcodes():
        if operation != "equal":
            yield from actual[start:end]
            number = actual[start][0] if start < len(actual) else last_number
            for text in expected_texts[missing_start:missing_end]:
                yield number, f"no line {text}"


def differing_lines_of_file(
    file: Path, template: str, **variables: object
) -> Iterator[tuple[int, str]]:
    """Yield the lines of a file that differ from its template, as `differing_lines` does.

    Raises:
        OSError: it cannot be read.
    """
    yield from differing_lines(enumerate(exact_lines(read_exact(file)), 1), template, **variables)


def _without_comments(lines: NumberedLines, template: str) -> Iterator[tuple[int, str]]:
    """Yield the lines that have an effect: no comments, but the `#!` of the first line."""
    comment_characters = "#" if template.endswith(".sh.j2") else SETTING_COMMENT
    is_continuation = False
    for number, line in lines:
        text = bare(line)
        is_comment = text.startswith(tuple(comment_characters))
        is_interpreter = number == 1 and line.startswith("#!")
        if is_continuation or is_interpreter or (text and not is_comment):
            yield number, line
        is_continuation = line.endswith("\\") and not is_comment
