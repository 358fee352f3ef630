"""`show system lldp neighbor` of SR Linux, or its state as JSON."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from compilers.readers.devices.neighbour_facts import (
    NeighbourRow,
    NeighbourTables,
    Seen,
    Source,
    items,
    seen_rows,
    words,
)
from compilers.targets.srlinux.outputs import bare

PRINTED_BY = (
    "the output of show system lldp neighbor, or info from state / system lldp | as json, a file "
    "a node"
)
NAME, PORT = "Neighbor System Name", "Neighbor Port"


def fits(source: Source) -> bool:
    """Whether the table looks like this."""
    return NAME in source.text or bool(_interfaces(source.data))


def read(source: Source) -> Iterator[Seen]:
    """A fact per neighbour."""
    return seen_rows(source, _lines(source) if source.data is None else _state(source))


def _lines(source: Source) -> Iterator[NeighbourRow]:
    columns: list[str] = []
    for number, line in enumerate(source.lines, 1):
        if not line.lstrip().startswith("|"):
            continue
        cells = [cell.strip() for cell in line.strip().strip("|").split("|")]
        if NAME in cells and PORT in cells and "Name" in cells:
            columns = cells
        elif columns and len(cells) != len(columns):
            given = f"{len(cells)} cells"
            raise source.wrong(f"{len(columns)} cells", given, "copy the whole table", number)
        elif columns:
            row = dict(zip(columns, cells, strict=True))
            yield words(row["Name"]), words(row[NAME]), words(row[PORT])
    if not columns:
        raise source.wrong(
            PRINTED_BY, f"no row with Name, {NAME} and {PORT}", "copy the whole table"
        )


def _state(source: Source) -> Iterator[NeighbourRow]:
    for interface in _interfaces(source.data):
        known = bare(interface)
        for neighbour in items(known.get("neighbor")):
            facts = bare(neighbour)
            ports = words(facts.get("port-id"), facts.get("port-description"))
            names = words(facts.get("system-name"), facts.get("chassis-id"))
            yield words(known.get("name")), names, ports


def _interfaces(data: Any) -> list[Any]:
    """The list of interfaces, however much of the path to it is printed."""
    known = bare(data)
    for step in ("system", "lldp"):
        known = bare(known[step]) if step in known else known
    found = items(known.get("interface"))
    return found if any("neighbor" in bare(entry) for entry in found) else []


FORM = NeighbourTables("srlinux", PRINTED_BY, fits, read)
