"""Chooses the widths of a table's columns, so that as many columns as possible fit a terminal.

`verb_output.print_table` calls `fitting_widths` with the texts of a table. Widths are counted in
columns of the terminal, one for a character.
"""

from __future__ import annotations

from collections.abc import Sequence

BORDER = 1
"""The columns of the line at the left of a table."""
BETWEEN = 3
"""The columns of a cell besides its text: a space on both sides, and a line."""
EASY_TEXT_WIDTH, TIGHT_TEXT_WIDTH = 22, 10
"""The least width of a column of text, and the least if only that makes all columns fit."""


def fitting_widths(
    heads: Sequence[str], cells: Sequence[Sequence[str]], numeric: Sequence[bool], room: int
) -> list[int]:
    """The widths of the columns that fit, from the left; at least of the first.

    Numbers are never broken. Headings are broken between words, other text anywhere.

    Args:
        heads: the heading of each column.
        cells: the rows.
        numeric: for each column, whether it has numbers.
        room: the columns of the terminal.
    """
    longest_words = [max(map(len, head.split()), default=1) for head in heads]
    natural = [
        max([longest, *(len(row[i]) for row in cells)]) for i, longest in enumerate(longest_words)
    ]
    unbroken = [
        width if is_numeric else longest
        for width, longest, is_numeric in zip(natural, longest_words, numeric, strict=True)
    ]
    least = _least(natural, unbroken, room)
    count = len(heads)
    while count > 1 and _table_width(least[:count]) > room:
        count -= 1
    widths = _narrowed(natural[:count], least[:count], room)
    return _headings_in_one_line(heads, widths, room)


def _least(natural: Sequence[int], unbroken: Sequence[int], room: int) -> list[int]:
    """The least width of each column.

    Args:
        natural: the width of each column's widest cell.
        unbroken: the width of each column's widest part that is never broken.
        room: the columns of the terminal.
    """
    easy = _with_text_width(natural, unbroken, EASY_TEXT_WIDTH)
    tight = _with_text_width(natural, unbroken, TIGHT_TEXT_WIDTH)
    return tight if _table_width(easy) > room >= _table_width(tight) else easy


def _with_text_width(natural: Sequence[int], unbroken: Sequence[int], width: int) -> list[int]:
    """The least width of each column, if `width` is the least width of a column of text."""
    return [min(cell, max(part, width)) for cell, part in zip(natural, unbroken, strict=True)]


def _narrowed(natural: Sequence[int], least: Sequence[int], room: int) -> list[int]:
    """The widths with the widest columns narrowed until all fit, or all are at their least."""
    widths = list(natural)
    while _table_width(widths) > room:
        slack = [width - least_width for width, least_width in zip(widths, least, strict=True)]
        if not any(slack):
            break
        narrowable = [i for i, spare in enumerate(slack) if spare]
        widest = max(narrowable, key=widths.__getitem__)
        widths[widest] -= min(_table_width(widths) - room, slack[widest])
    return widths


def _headings_in_one_line(heads: Sequence[str], widths: Sequence[int], room: int) -> list[int]:
    """The widths, widened to headings that take more than one line as far as there is room."""
    wider = list(widths)
    for i, width in enumerate(widths):
        lacking = max(0, len(heads[i]) - width)
        if _table_width(wider) + lacking <= room:
            wider[i] += lacking
    return wider


def _table_width(widths: Sequence[int]) -> int:
    """The columns of the terminal that a table with columns of these widths takes."""
    return BORDER + sum(widths) + BETWEEN * len(widths)
