"""Rows in JSON of NX-OS: an element TABLE_x has an element ROW_x: a list of rows, or a single row.

Cisco's NX-API programmability guide documents the form. The readers of neighbours and routes call
`rows`.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from compilers.readers.devices.neighbour_facts import as_list, as_mapping


def rows(entry: object, name: str) -> Iterator[dict[str, Any]]:
    """The rows of the tables of a name in an entry.

    Args:
        entry: a document, or a row of an outer table.
        name: the name of the table, `vrf` for TABLE_vrf and ROW_vrf.
    """
    for table in as_list(as_mapping(entry).get(f"TABLE_{name}")):
        yield from map(as_mapping, as_list(as_mapping(table).get(f"ROW_{name}")))
