"""Print the rows of a cable schedule as CSV, Markdown, label sheets or records, piece by piece.

`polarfab cables` calls it. A fabric may have a million cables. So each function takes an iterator
of rows and yields pieces of text, never the whole text.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import astuple, fields
from itertools import chain, groupby, islice
from operator import itemgetter
from typing import Any

import numpy as np

from compilers.cabling.bill import Item
from compilers.cabling.cable_plan import CabledFabric
from compilers.cabling.cable_stock import distance, first_long_enough
from compilers.cabling.schedule_columns import CABLE_COLUMNS, Row, Rows, host_cable_name
from compilers.tables.build import Build
from compilers.wiring.hardware import Hardware

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


def as_host_csv(
    planes: Iterable[tuple[Build | CabledFabric, Rows]], rack: str = ""
) -> Iterator[str]:
    """CSV of the cables to the hosts of each plane.

    Args:
        planes: the build and the cables of each plane.
        rack: only the cables with an end in the rack of this name; "" for all.
    """
    of_planes = (host_rows(build, rows.cables.hardware) for build, rows in planes)
    rows: Iterator[Row] = chain.from_iterable(of_planes)
    if rack:
        switch_rack, host_rack = HOST_COLUMNS.index("rack"), HOST_COLUMNS.index("host_rack")
        rows = (row for row in rows if rack in (row[switch_rack], row[host_rack]))
    return as_table(HOST_COLUMNS, rows)


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


def as_bill(items: Iterable[Item]) -> Iterator[str]:
    """CSV of a bill of materials, a line for each item."""
    names = [field.name for field in fields(Item)]
    return as_table(names, (astuple(item) for item in items))


def as_records(rows: Iterable[Row]) -> Iterator[dict[str, Any]]:
    """Yield the values of each cable by column, for JSON."""
    return map(by_column, rows)


HOST_COLUMNS = (
    "label",
    "rack",
    "unit",
    "node",
    "module",
    "port",
    "port_label",
    "host",
    "mac",
    "host_rack",
    "host_unit",
    "type",
    "length_m",
    "run_m",
)
"""The columns of `host_rows`."""


def host_rows(build: Build | CabledFabric, hardware: Hardware) -> Iterator[Row]:
    """Yield a row of `HOST_COLUMNS` for each cable to a host, rack by rack.

    Type and length are empty if no cable in stock is long enough. All columns from `host_rack` on
    are empty if the rack of the host is unknown.

    Args:
        build: its hosts and their addresses.
        hardware: the places of nodes and hosts, and the cables in stock.
    """
    wiring, addressing = build.wiring, build.addressing
    vertex, number = np.nonzero(wiring.host_port)
    order = np.lexsort((number, hardware.unit[vertex], hardware.rack[vertex]))
    vertex, number = vertex[order], number[order]
    # int[n, 2], the rack and the unit of the switch and of the host.
    rack = np.stack((hardware.rack[vertex], hardware.host_rack[vertex, number]), axis=1)
    unit = np.stack((hardware.unit[vertex], hardware.host_unit[vertex, number]), axis=1)
    needed = distance(hardware, rack, unit)
    kind, length = first_long_enough(hardware, needed)
    hosts_per_node = wiring.host_port.shape[1]
    names = [*(entry["name"] for entry in hardware.cabling["types"]), ""]
    for i, (v, h) in enumerate(zip(vertex.tolist(), number.tolist(), strict=True)):
        port = int(wiring.host_port[v, h])
        facts = hardware.types[int(wiring.node_type[v])]
        host_columns: Row = ("", "", "", "", "")
        host_rack, host_unit = int(rack[i, 1]), int(unit[i, 1])
        if host_rack >= 0:
            host_columns = (
                hardware.rack_names[host_rack],
                host_unit,
                names[int(kind[i])],  # -1, none in stock, is the last name, ""
                float(length[i]) if kind[i] >= 0 else "",
                round(float(needed[i]), 2),
            )
        yield (
            host_cable_name(v, h, hardware.plane),
            hardware.rack_names[int(hardware.rack[v])],
            int(hardware.unit[v]),
            wiring.names[v],
            facts.module[port - 1],
            wiring.port_name(v, port),
            facts.label[port - 1],
            wiring.host_names[v * hosts_per_node + h],
            addressing.mac(v, h),
            *host_columns,
        )
