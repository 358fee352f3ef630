"""`show lldp neighbors` of Cisco NX-OS, as text or JSON, and that of `show lldp neighbors detail`.

The forms are those of ntc-templates' test data and of Cisco's NX-API: local ports are short, such
as Eth1/1, and a long name has a line of its own.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from compilers.readers.devices.neighbour_facts import (
    End,
    NeighbourTables,
    Seen,
    Source,
    items,
    mapping,
    words,
)

PRINTED_BY = (
    "the output of show lldp neighbors, or show lldp neighbors [detail] | json, of NX-OS, a file a "
    "node"
)
TABLES = ("nbor", "nbor_detail")
HEADER = re.compile(r"Device ID +Local Intf +Hold-time +Capability +Port ID")
ROW = re.compile(r"(\S.*?)?\s+(\S+)\s+(\d+)\s+(?:[A-Z]{1,8}\s+)?(\S+)\s*")


def fits(source: Source) -> bool:
    """Whether the table looks like this."""
    known = mapping(source.data)
    return any(f"TABLE_{word}" in known for word in TABLES) or bool(HEADER.search(source.text))


def read(source: Source) -> Iterator[Seen]:
    """A fact per neighbour."""
    rows = _rows(source) if source.data is not None else _lines(source.text)
    for near, names, ports in rows:
        if near and names and ports:
            yield Seen(End((source.node,), near), End(names, ports))


def _rows(source: Source) -> Iterator[tuple[tuple[str, ...], ...]]:
    for word in TABLES:
        for table in items(mapping(source.data).get(f"TABLE_{word}")):
            for row in map(mapping, items(mapping(table).get(f"ROW_{word}"))):
                names = words(row.get("sys_name"), row.get("chassis_id"), row.get("mgmt_addr"))
                ports = words(row.get("port_id"), row.get("port_desc"))
                yield words(row.get("l_port_id")), names, ports


def _lines(text: str) -> Iterator[tuple[tuple[str, ...], ...]]:
    *_, rest = HEADER.split(text, maxsplit=1)
    name = ""
    for line in rest.splitlines():
        if line.startswith("Total entries"):
            return
        if row := ROW.fullmatch(line):
            yield words(row[2]), words(row[1] or name), words(row[4])
        name = line


FORM = NeighbourTables("nxos", PRINTED_BY, fits, read)
