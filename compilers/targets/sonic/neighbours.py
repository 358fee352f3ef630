"""Reader of the neighbours that `show lldp table` of SONiC prints, for `check wiring`.

It turns each row of the table into a neighbour that a port sees by LLDP.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from compilers.readers.devices.neighbour_facts import (
    NeighbourForm,
    NeighbourRow,
    NeighbourSighting,
    NeighbourTable,
    nonempty,
    seen_rows,
)

OUTPUT_NAME = "the output of show lldp table, a file per node"
"""The output, as messages name it."""
COLUMNS = ("LocalPort", "RemoteDevice", "RemotePortID", "Capability", "RemotePortDescr")
"""The names of the columns."""


def fits(source: NeighbourTable) -> bool:
    """Whether a source is a table of `show lldp table`."""
    return "LocalPort" in source.text and "RemoteDevice" in source.text


def read(source: NeighbourTable) -> Iterator[NeighbourSighting]:
    """The neighbours, a row each; dashes under the header show where columns begin and end.

    Raises:
        InputError: the table has no header, or no line of dashes below it.
    """
    lines = source.lines
    headers = (index for index, line in enumerate(lines) if "LocalPort" in line)
    header = next(headers, len(lines))
    dashes = lines[header + 1] if header + 1 < len(lines) else ""
    spans = [match.span() for match in re.finditer("-+", dashes)]
    if len(spans) < len(COLUMNS):
        given = f"no rule of {len(COLUMNS)} columns under the header"
        raise source.wrong(OUTPUT_NAME, given, "copy the whole output", min(header + 1, len(lines)))
    first_row = header + 2  # behind the line of dashes
    return seen_rows(source, _rows(source, lines, first_row, spans[: len(COLUMNS)]))


def _rows(
    source: NeighbourTable, lines: list[str], first: int, spans: list[tuple[int, int]]
) -> Iterator[NeighbourRow]:
    """The rows of the table.

    Args:
        source: the output.
        lines: the lines of the output.
        first: the index of the first row among the lines.
        spans: where each column begins and ends in a line.

    Raises:
        InputError: a row has text between columns.
    """
    ends, next_starts = (end for _, end in spans), (start for start, _ in spans[1:])
    gaps = list(zip(ends, next_starts, strict=False))
    for number, line in enumerate(lines[first:], first + 1):
        if line.startswith("Total entries"):
            return
        if set(line.strip()) <= {"-"}:
            continue
        if any(line[start:end].strip() for start, end in gaps):
            given = repr(line.strip())
            raise source.wrong("a row in columns", given, "copy the whole output", number)
        port, device, port_id, _, description = (line[start:end] for start, end in spans)
        yield nonempty(port), nonempty(device), nonempty(port_id, description)


FORM = NeighbourForm("sonic", OUTPUT_NAME, fits, read)
"""The form of these outputs, which is `Target.neighbours` of target sonic."""
