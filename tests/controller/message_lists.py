"""Lists of structures that have their length, as a switch of the tests reads them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from compilers.readers.openflow.rows import Malformed
from compilers.targets.openflow.protocol import WireLayout


def listed(data: bytes, layout: WireLayout) -> Iterator[tuple[Any, bytes]]:
    """The structures of a list, each of which has its length, and their bytes.

    Raises:
        Malformed: one is cut off.
    """
    place = 0
    while place < len(data):
        head = layout.read(data, place)
        end = place + head.length
        if head.length < layout.size or end > len(data):
            raise Malformed(f"a structure of {head.length} bytes at byte {place} of {len(data)}")
        yield head, data[place:end]
        place = end
