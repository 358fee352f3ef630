"""Reader of the neighbours of SR Linux, from `show system lldp neighbor` or the state as JSON.

`check wiring` reads the outputs by `FORM`: each row is a local port, and the names of the neighbour
and of its port.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from compilers.readers.devices.neighbour_facts import (
    NeighbourForm,
    NeighbourRow,
    NeighbourSighting,
    NeighbourTable,
    as_list,
    nonempty,
    seen_rows,
)
from compilers.targets.srlinux.outputs import without_modules

OUTPUT_NAME = (
    "the output of show system lldp neighbor, or info from state / system lldp | as json, a file "
    "a node"
)
"""The outputs that can be read, as messages name them."""
LOCAL_PORT, NEIGHBOUR_NAME, NEIGHBOUR_PORT = "Name", "Neighbor System Name", "Neighbor Port"
"""The columns of the table: the local port, and the neighbour's name and port."""


def fits(source: NeighbourTable) -> bool:
    """Whether a source is an LLDP neighbour table of SR Linux, as text or JSON."""
    return NEIGHBOUR_NAME in source.text or bool(_interfaces(source.data))


def read(source: NeighbourTable) -> Iterator[NeighbourSighting]:
    """The neighbours that the table has."""
    return seen_rows(source, _text_rows(source) if source.data is None else _json_rows(source))


def _text_rows(source: NeighbourTable) -> Iterator[NeighbourRow]:
    """The rows of `show system lldp neighbor`, a table with `|` between cells.

    Raises:
        InputError: the header is missing, or a row has another number of cells than the header.
    """
    columns: list[str] = []
    for number, line in enumerate(source.lines, 1):
        if not line.lstrip().startswith("|"):
            continue
        cells = [cell.strip() for cell in line.strip().strip("|").split("|")]
        if {LOCAL_PORT, NEIGHBOUR_NAME, NEIGHBOUR_PORT} <= set(cells):
            columns = cells
        elif columns and len(cells) != len(columns):
            given = f"{len(cells)} cells"
            raise source.wrong(f"{len(columns)} cells", given, "copy the whole table", number)
        elif columns:
            row = dict(zip(columns, cells, strict=True))
            yield (
                nonempty(row[LOCAL_PORT]),
                nonempty(row[NEIGHBOUR_NAME]),
                nonempty(row[NEIGHBOUR_PORT]),
            )
    if not columns:
        given = f"no row with {LOCAL_PORT}, {NEIGHBOUR_NAME} and {NEIGHBOUR_PORT}"
        raise source.wrong(OUTPUT_NAME, given, "copy the whole table")


def _json_rows(source: NeighbourTable) -> Iterator[NeighbourRow]:
    """The rows of the state: the neighbours of each interface."""
    for interface in map(without_modules, _interfaces(source.data)):
        for neighbour in map(without_modules, as_list(interface.get("neighbor"))):
            ports = nonempty(neighbour.get("port-id"), neighbour.get("port-description"))
            names = nonempty(neighbour.get("system-name"), neighbour.get("chassis-id"))
            yield nonempty(interface.get("name")), names, ports


def _interfaces(data: Any) -> list[Any]:
    """The interfaces in the state; [] if none has neighbours.

    The JSON may begin with `system`, `lldp` or `interface`, as the user may ask for each of them.
    """
    tree = without_modules(data)
    for key in ("system", "lldp"):
        if key in tree:
            tree = without_modules(tree[key])
    interfaces = as_list(tree.get("interface"))
    return interfaces if any("neighbor" in without_modules(entry) for entry in interfaces) else []


FORM = NeighbourForm("srlinux", OUTPUT_NAME, fits, read)
"""The form of these outputs, which is `Target.neighbours` of target srlinux."""
