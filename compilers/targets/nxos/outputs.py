"""JSON of NX-OS: TABLE_x holds ROW_x, a list, or the one row alone.

Cisco's NX-API programmability guide has the form.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from compilers.readers.devices.neighbour_facts import items, mapping


def rows(entry: object, word: str) -> Iterator[dict[str, Any]]:
    """The rows of the tables of this name."""
    for table in items(mapping(entry).get(f"TABLE_{word}")):
        yield from map(mapping, items(mapping(table).get(f"ROW_{word}")))
