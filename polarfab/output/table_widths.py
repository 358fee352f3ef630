"""The columns of a table that fit a terminal, and how wide each is."""

from __future__ import annotations

from collections.abc import Sequence

BORDER = 1
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
    words = [max(map(len, head.split()), default=1) for head in heads]
    natural = [max([word, *(len(row[i]) for row in cells)]) for i, word in enumerate(words)]
    every = zip(natural, words, numeric, strict=True)
    columns = [(width, width if number else word) for width, word, number in every]
    easy, tight = ([min(n, max(least, text)) for n, least in columns] for text in TEXT_WIDTHS)
    least = tight if _taken(easy) > room >= _taken(tight) else easy
    count = len(heads)
    while count > 1 and _taken(least[:count]) > room:
        count -= 1
    widths = natural[:count]
    while (over := _taken(widths) - room) > 0:
        slack = [width - low for width, low in zip(widths, least, strict=False)]
        if not any(slack):
            break
        widest = max((i for i, some in enumerate(slack) if some), key=lambda i: widths[i])
        widths[widest] -= min(over, slack[widest])
    return _headings_in_one_line(heads, widths, room)


def _taken(widths: Sequence[int]) -> int:
    return BORDER + sum(widths) + BETWEEN * len(widths)


def _headings_in_one_line(heads: Sequence[str], widths: list[int], room: int) -> list[int]:
    """The widths, with room that is left given to headings that take more than one line."""
    for i, width in enumerate(widths):
        more = max(0, len(heads[i]) - width)
        if _taken(widths) + more <= room:
            widths[i] += more
    return widths
