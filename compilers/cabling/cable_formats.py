"""Print the rows of a cable schedule as CSV, Markdown, label sheets or records, piece by piece.

`polarfab cables` calls it. A fabric may have a million cables. So each function takes an iterator
of rows and yields pieces of text, never the whole text.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import astuple, fields
from itertools import groupby, islice
from operator import itemgetter
from typing import Any

from compilers.cabling.bill import BillItem
from compilers.cabling.schedule_columns import CABLE_COLUMNS, Row

ROWS_AT_ONCE = 2_000
"""The rows or labels in a piece of text."""
A_RACK, B_RACK = CABLE_COLUMNS.index("a_rack"), CABLE_COLUMNS.index("b_rack")
"""The indexes of the racks of both ends in a row of `CABLE_COLUMNS`."""


def by_column(row: Row) -> dict[str, Any]:
    """The values of a row of `CABLE_COLUMNS`, by the names of the columns."""
    return dict(zip(CABLE_COLUMNS, row, strict=True))


def as_csv(rows: Iterable[Row], through: Iterable[str] | None = None) -> Iterator[str]:
    """CSV with a line for each cable.

    Args:
        rows: rows of `CABLE_COLUMNS`.
        through: the panels that each cable runs through, for one more column; None: no column.
    """
    if through is None:
        return as_table(CABLE_COLUMNS, rows)
    with_panels = ((*row, panels) for row, panels in zip(rows, through, strict=True))
    return as_table((*CABLE_COLUMNS, "through"), with_panels)


def as_table(columns: Iterable[str], rows: Iterable[Row]) -> Iterator[str]:
    """CSV with a heading, in blocks of lines.

    >>> "".join(as_table(("cable", "type"), [(1, "DAC"), (2, "AOC")]))
    'cable,type\\n1,DAC\\n2,AOC\\n'
    """
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(columns)
    remaining = iter(rows)
    while block := list(islice(remaining, ROWS_AT_ONCE)):
        writer.writerows(block)
        yield text.getvalue()
        text.seek(0)
        text.truncate()
    yield text.getvalue()


def as_markdown(rows: Iterable[Row]) -> Iterator[str]:
    """Markdown for the crew that pulls cables: a table for each pair of racks."""
    heads = ("cable", "bundle", "from", "port", "to", "port", "type", "m")
    ruler = f"| {' | '.join(heads)} |\n|{'---|' * len(heads)}\n"
    for (a_rack, b_rack), group in groupby(rows, itemgetter(A_RACK, B_RACK)):
        yield f"\n## {a_rack} to {b_rack}\n\n{ruler}"
        yield "".join(_markdown_line(by_column(row)) for row in group)


def _markdown_line(row: Mapping[str, Any]) -> str:
    """The line of a cable in a Markdown table, from its values by column."""
    cells = (
        row["label"],
        row["bundle"] or "–",
        f"{row['a_node']} (U{row['a_unit']})",
        row["a_port"],
        f"{row['b_node']} (U{row['b_unit']})",
        row["b_port"],
        row["type"],
        f"{row['length_m']:g}",
    )
    return f"| {' | '.join(map(str, cells))} |\n"


def as_labels(labels: Iterable[Mapping[str, Any]], title: str) -> Iterator[str]:
    """A printable HTML sheet of labels.

    Args:
        labels: of `labels_of_rows`, or `cords.labels_of_cords`.
        title: the title of the page.
    """
    from templates import environment

    template = environment().get_template("cables/labels.html.j2")
    stream = template.stream(title=title, labels=labels)
    stream.enable_buffering(ROWS_AT_ONCE)
    yield from stream


def labels_of_rows(rows: Iterable[Row]) -> Iterator[dict[str, Any]]:
    """Yield two labels for each cable; each names its own end and the far one."""
    for row in map(by_column, rows):
        for near, far in ("ab", "ba"):
            yield {
                "label": row["label"],
                "bundle": row["bundle"],
                "length": f"{row['length_m']:g}",
                "near": _end_in_words(row, near),
                "far": _end_in_words(row, far),
                "colour": row["colour"],
            }


def _end_in_words(row: Mapping[str, Any], end: str) -> str:
    """Rack, unit, node and port at end `a` or `b` of a cable, from its values by column."""
    words = ("rack", "unit", "node", "port_label")
    rack, unit, node, port = (row[f"{end}_{word}"] for word in words)
    return f"{rack} U{unit} {node} {port}"


def as_bill(items: Iterable[BillItem]) -> Iterator[str]:
    """CSV of a bill of materials, a line for each item."""
    names = [field.name for field in fields(BillItem)]
    return as_table(names, (astuple(item) for item in items))


def as_records(rows: Iterable[Row]) -> Iterator[dict[str, Any]]:
    """Yield the values of each cable by column, for JSON."""
    return map(by_column, rows)
