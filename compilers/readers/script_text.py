"""Scripts, units and settings: their text is the one that the template makes of its few variables.

What varies was read from the files; every other line has to be there as it is, in order. Comments
and empty lines may differ, but not behind a line that goes on: there they end the command.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from difflib import SequenceMatcher
from pathlib import Path

from compilers.readers.exact_text import bare, exact_lines, read_exact
from templates import environment

NOTHING = {"identity": "", "protocol": 80}
"""The variables of all templates; the identity is in comments."""


SETTING_COMMENT = "#;"
"""How comments begin in sysctl.d(5) and systemd.syntax(7)."""
Lines = Iterable[tuple[int, str]]
"""Lines with their numbers."""


def unlike(lines: Lines, template: str, **variables: object) -> Iterator[tuple[int, str]]:
    """The line and the text of each line that the template does not make, or that is missing.

    Args:
        lines: of a file, or those that do not vary.
        template: the name of its template, TARGET/FILE.j2.
        variables: of the template.
    """
    made = environment().get_template(template).render(NOTHING | variables)
    said = list(_telling(lines, template))
    wanted = [line for _, line in _telling(enumerate(exact_lines(made), 1), template)]
    if [line for _, line in said] == wanted:
        return
    last = said[-1][0] if said else 0
    match = SequenceMatcher(None, [line for _, line in said], wanted, autojunk=False)
    for word, begin, end, missing, until in match.get_opcodes():
        if word != "equal":
            yield from said[begin:end]
            at = said[begin][0] if begin < len(said) else last
            yield from ((at, f"no line {line}") for line in wanted[missing:until])


def unlike_file(file: Path, template: str, **variables: object) -> Iterator[tuple[int, str]]:
    """The same for a file.

    Raises:
        OSError: it cannot be read.
    """
    yield from unlike(enumerate(exact_lines(read_exact(file)), 1), template, **variables)


def _telling(lines: Lines, template: str) -> Iterator[tuple[int, str]]:
    """Lines that say something; the very first one of a script does, and no other like it."""
    comment = "#" if template.endswith(".sh.j2") else SETTING_COMMENT
    goes_on = False
    for number, line in lines:
        text = bare(line)
        if goes_on or (text and text[0] not in comment) or (number == 1 and line[:2] == "#!"):
            yield number, line
        goes_on = line.endswith("\\") and not text.startswith(tuple(comment))
