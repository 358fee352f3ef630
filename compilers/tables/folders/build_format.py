"""The format of build folders: its number, and how builds of earlier formats are read.

A change that makes this release unable to read an earlier build raises `FORMAT`, and adds to
`CONVERSIONS` how the `fabric.json` of the format before becomes one of the new format.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any

FORMAT = 3
"""The number that the manifest of a build has. Format 3 is the first that says what tables mean."""
Fabric = dict[str, Any]
"""The content of `fabric.json`."""
CONVERSIONS: Mapping[int, Callable[[Fabric], Fabric]] = MappingProxyType({})
"""By a format's number: its `fabric.json` to that of the next format."""


def readable(number: object) -> bool:
    """Whether builds of a format are read: it is the newest one, or each one after it is reached by
    a conversion.
    """
    if type(number) is not int or number > FORMAT:
        return False
    return all(step in CONVERSIONS for step in range(number, FORMAT))


def converted(fabric: Fabric, number: int) -> Fabric:
    """The content of `fabric.json` of a readable format, as the newest format has it."""
    for step in range(number, FORMAT):
        fabric = CONVERSIONS[step](fabric)
    return fabric


def unread_words(number: object) -> tuple[str, str, str]:
    """What is required in place of a build that is not readable, what it is, and what to do."""
    earliest = next(first for first in range(FORMAT + 1) if readable(first))
    formats = f"format {FORMAT}" if earliest == FORMAT else f"formats {earliest} to {FORMAT}"
    later = type(number) is int and number > FORMAT
    of_format = "no format number" if number is None else f"format {number}"
    given = f"{of_format}, made by {'a later' if later else 'an earlier'} polarfab"
    todo = "compile the fabric again with this release, or use the release that made it"
    return f"a build of {formats}, which this polarfab reads", given, todo
