"""The widths of a table's columns on a terminal: as many columns as fit, from the left."""

from __future__ import annotations

from collections.abc import Sequence

BORDER = 1
"""The line at the left of a table."""
BETWEEN = 3
"""What a cell takes besides its text: a space on both sides, and a line."""
TEXT_WIDTHS = (22, 10)
"""The narrowest that columns of text are made; the second if all columns fit only so."""


def fitting(
    heads: Sequence[str], cells: Sequence[Sequence[str]], numeric: Sequence[bool], room: int
) -> list[int]:
    """The width of each column, from the left as many as fit; at least the first.

    Numbers are never broken, headings between words, other text where it has to be.

    Args:
        heads: a heading a column.
        cells: the rows.
        numeric: whether a column has numbers.
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
    while count > 1 and _taken(least[:count]) > room:
        count -= 1
    widths = _narrowed(natural[:count], least[:count], room)
    return _headings_in_one_line(heads, widths, room)


def _least(natural: Sequence[int], unbroken: Sequence[int], room: int) -> list[int]:
    """The least width of each column.

    Args:
        natural: the width of each column's widest cell.
        unbroken: the widest part of each that is never broken.
        room: the columns of the terminal.
    """
    easy, tight = (
        [min(width, max(part, text)) for width, part in zip(natural, unbroken, strict=True)]
        for text in TEXT_WIDTHS
    )
    return tight if _taken(easy) > room >= _taken(tight) else easy


def _narrowed(natural: Sequence[int], least: Sequence[int], room: int) -> list[int]:
    """The widths with the widest columns narrowed until all fit, or all are at their least."""
    widths = list(natural)
    while (over := _taken(widths) - room) > 0:
        slack = [width - low for width, low in zip(widths, least, strict=True)]
        if not any(slack):
            break
        narrowable = [i for i, spare in enumerate(slack) if spare]
        widest = max(narrowable, key=widths.__getitem__)
        widths[widest] -= min(over, slack[widest])
    return widths


def _headings_in_one_line(heads: Sequence[str], widths: Sequence[int], room: int) -> list[int]:
    """The widths, with room that is left given to headings that take more than one line."""
    wider = list(widths)
    for i, width in enumerate(widths):
        more = max(0, len(heads[i]) - width)
        if _taken(wider) + more <= room:
            wider[i] += more
    return wider


def _taken(widths: Sequence[int]) -> int:
    """The columns of the terminal that a table of these widths takes."""
    return BORDER + sum(widths) + BETWEEN * len(widths)
