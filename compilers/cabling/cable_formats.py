"""Formats of the cable schedule: CSV, Markdown, NetBox's bulk import and labels, as streams."""

from __future__ import annotations

import csv
import io
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import astuple, fields
from itertools import chain, groupby, islice
from typing import Any

from compilers.cabling.bill import Item
from compilers.cabling.host_cables import HOST_COLUMNS, host_rows
from compilers.cabling.schedule_columns import CABLE_COLUMNS, Row, Rows
from compilers.tables.build import Build

LABELS_A_PAGE = 2_000
AT = {word: i for i, word in enumerate(CABLE_COLUMNS)}
NETBOX = (
    *(f"side_{end}_{word}" for end in "ab" for word in ("device", "type", "name")),
    *("type", "status", "label", "color", "length", "length_unit", "description"),
)


def as_csv(rows: Iterable[Row]) -> Iterator[str]:
    """One line per cable with every column of `CABLE_COLUMNS`."""
    return _csv(CABLE_COLUMNS, rows)


def as_host_csv(parts: Iterable[tuple[Build, Rows]]) -> Iterator[str]:
    """The cables to the hosts of each plane as CSV."""
    rows = (host_rows(build, rows.cables.hardware, rows.phases) for build, rows in parts)
    return _csv(HOST_COLUMNS, chain.from_iterable(rows))


def as_netbox(
    rows: Iterable[Row],
    kinds: Iterable[Mapping[str, Any]],
    dead: Collection[frozenset[str]] = (),
) -> Iterator[str]:
    """NetBox's cable bulk import (Connections, Cables, Import): interface to interface.

    kinds: the types of the cabling (`Cables.kinds`); dead: nodes whose link is known not to work.
    """
    media = {kind["name"]: kind["media"] for kind in kinds}
    picked = [AT[word] for word in ("a_node", "a_port", "b_node", "b_port")]

    def entry(row: Row) -> Row:
        a_node, a_port, b_node, b_port = (row[i] for i in picked)
        bundle = row[AT["bundle"]]
        status = "decommissioning" if frozenset((a_node, b_node)) in dead else "planned"
        return (
            *(a_node, "dcim.interface", a_port, b_node, "dcim.interface", b_port),
            *(media[str(row[AT["type"]])], status, row[AT["label"]], row[AT["colour"]]),
            *(row[AT["length_m"]], "m", f"bundle {bundle}" if bundle else ""),
        )

    return _csv(NETBOX, map(entry, rows))


def _csv(columns: Iterable[str], rows: Iterable[Row]) -> Iterator[str]:
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(columns)
    each = iter(rows)
    while block := list(islice(each, LABELS_A_PAGE)):
        writer.writerows(block)
        yield text.getvalue()
        text.seek(0)
        text.truncate()
    yield text.getvalue()


def as_markdown(rows: Iterable[Row]) -> Iterator[str]:
    """One section per phase and pair of racks, with a table of its cables, as a page for a crew."""
    heads = ("cable", "bundle", "from", "port", "to", "port", "type", "m")
    ruler = f"| {' | '.join(heads)} |\n|{'---|' * len(heads)}\n"
    where = ("phase", "a_rack", "b_rack")
    for (phase, here, there), group in groupby(rows, lambda row: tuple(row[AT[w]] for w in where)):
        yield f"\n## Phase {phase}: {here} to {there}\n\n{ruler}"
        yield "".join(map(_markdown_line, group))


def _markdown_line(row: Row) -> str:
    ends = [
        f"{row[AT[f'{end}_node']]} (U{row[AT[f'{end}_unit']]}) | {row[AT[f'{end}_port']]}"
        for end in "ab"
    ]
    cells = (
        row[AT["label"]],
        row[AT["bundle"]] or "–",
        *ends,
        row[AT["type"]],
        f"{row[AT['length_m']]:g}",
    )
    return f"| {' | '.join(map(str, cells))} |\n"


def as_labels(rows: Iterable[Row], title: str) -> Iterator[str]:
    """A printable HTML sheet, two labels per cable: each names this end and the other one."""
    from templates import environment

    template = environment().get_template("cables/labels.html.j2")
    stream = template.stream(title=title, labels=_labels(rows))
    stream.enable_buffering(LABELS_A_PAGE)
    yield from stream


def _labels(rows: Iterable[Row]) -> Iterator[dict[str, Any]]:
    for row in rows:
        for near, far in ("ab", "ba"):
            yield {
                "label": row[AT["label"]],
                "bundle": row[AT["bundle"]],
                "length": f"{row[AT['length_m']]:g}",
                "near": _place(row, near),
                "far": _place(row, far),
                "colour": row[AT["colour"]],
            }


def _place(row: Row, end: str) -> str:
    rack, unit, node, port = (row[AT[f"{end}_{w}"]] for w in ("rack", "unit", "node", "port_label"))
    return f"{rack} U{unit} {node} {port}"


def as_bill(items: Iterable[Item]) -> Iterator[str]:
    """The bill of materials as CSV, one item a line."""
    names = [field.name for field in fields(Item)]
    return _csv(names, (astuple(item) for item in items))


def as_records(rows: Iterable[Row]) -> Iterator[dict[str, Any]]:
    """One mapping a cable, for JSON."""
    return (dict(zip(CABLE_COLUMNS, row, strict=True)) for row in rows)
