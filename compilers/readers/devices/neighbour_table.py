"""Reader of neighbours in CSV, one in each line: node, port, neighbour, neighbour_port.

Values may have commas, semicolons or tabs between them, as spreadsheets write them in different
countries. `check wiring` reads the tables by `FORM`.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Iterator
from typing import TYPE_CHECKING

from compilers.readers.devices.neighbour_facts import (
    NamedEnd,
    NeighbourForm,
    NeighbourSighting,
    NeighbourTable,
    nonempty,
)

if TYPE_CHECKING:
    from _csv import Reader as CsvReader

OUTPUT_NAME = "CSV with the columns node, port, neighbour, neighbour_port"
"""The table, as messages name it."""
TABLE_HEADERS = (
    ("node", "port", "neighbour", "neighbour_port"),
    ("node", "port", "neighbor", "neighbor_port"),
    ("a_node", "a_port", "b_node", "b_port"),
    ("side_a_device", "side_a_name", "side_b_device", "side_b_name"),
)
"""The names that the columns of node, port, neighbour and its port may have, in this order.

The third are those of a cable schedule, the last those of NetBox's cables."""
BYTE_ORDER_MARK = "\ufeff"
"""Spreadsheets write it before a text in UTF-8."""
DELIMITERS = ",;\t"
"""The characters that may separate values."""
MOST_NAMED = 6
"""How many columns a message names."""


def fits(source: NeighbourTable) -> bool:
    """Whether the first line of a table names the columns in one of the ways of `TABLE_HEADERS`."""
    header = source.text.lstrip(BYTE_ORDER_MARK).partition("\n")[0]
    try:
        columns = next(_rows(header), list[str]())
    except csv.Error:
        return False
    return _column_indices(_column_names(columns)) is not None


def _rows(text: str) -> CsvReader:
    """The rows of a text, whose delimiter is the one that its first line has most often."""
    header = text.partition("\n")[0]
    return csv.reader(io.StringIO(text), delimiter=max(DELIMITERS, key=header.count))


def _column_names(cells: list[str]) -> list[str]:
    """The names of columns in small letters, without blanks around them."""
    return [cell.strip().lower() for cell in cells]


def _column_indices(columns: list[str]) -> tuple[int, ...] | None:
    """The indices of node, port, neighbour and its port in a row; None if one is missing."""
    for header in TABLE_HEADERS:
        if set(header) <= set(columns):
            return tuple(columns.index(name) for name in header)
    return None


def read(source: NeighbourTable) -> Iterator[NeighbourSighting]:
    """The facts of a table, a line each; lines without a neighbour are left out.

    Raises:
        InputError: a column is missing, or a line has too few values.
    """
    rows = _rows(source.text.lstrip(BYTE_ORDER_MARK))
    try:
        columns = _column_names(next(rows, []))
        indices = _column_indices(columns)
        if indices is None:
            given = ", ".join(columns[:MOST_NAMED]) or "an empty file"
            raise source.wrong(OUTPUT_NAME, given, "", 1)
        for row in rows:
            if len(row) <= max(indices):
                if any(row):
                    given = f"{len(row)} values"
                    raise source.wrong(f"{len(columns)} values", given, "", rows.line_num)
                continue
            node, port, neighbour, far_port = (nonempty(row[index]) for index in indices)
            if node and port and neighbour and far_port:
                yield NeighbourSighting(NamedEnd(node, port), NamedEnd(neighbour, far_port))
    except csv.Error as error:
        raise source.wrong(OUTPUT_NAME, str(error), "", rows.line_num) from None


FORM = NeighbourForm("csv", OUTPUT_NAME, fits, read, of_one_node=False)
