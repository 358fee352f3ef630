"""The format of build folders: its number, and how builds of earlier formats are read.

A change that makes this release unable to read an earlier build raises `FORMAT`, and adds to
`CONVERSIONS` how the `fabric.json` of the format before becomes one of the new format.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

FORMAT = 3
"""The number that the manifest of a build has. Format 3 is the first that says what tables mean."""
Fabric = dict[str, Any]
"""The content of `fabric.json`."""
CONVERSIONS: Mapping[int, Callable[[Fabric], Fabric]] = MappingProxyType({})
"""By a format's number: the function that turns its `fabric.json` into that of the next format."""


@dataclass(frozen=True, slots=True)
class UnreadFormat:
    """The words of a message about a build whose format this release does not read."""

    required: str
    """Which formats this release reads."""
    given: str
    """The format of the build, and by which release it was made."""
    todo: str
    """What the user can do."""


def readable(number: object) -> bool:
    """Whether this release reads builds of a format.

    It does if there is a conversion of that format and of each later one but the newest.

    >>> readable(FORMAT), readable(FORMAT + 1), readable(None)
    (True, False, False)
    """
    if type(number) is not int or number > FORMAT:
        return False
    return all(step in CONVERSIONS for step in range(number, FORMAT))


def converted(fabric: Fabric, number: int) -> Fabric:
    """Convert the content of a `fabric.json` of a readable format into the newest format."""
    for step in range(number, FORMAT):
        fabric = CONVERSIONS[step](fabric)
    return fabric


def unread_format(number: object) -> UnreadFormat:
    """Return the words of the refusal of a build, by the format that its manifest states."""
    earliest = next(first for first in range(FORMAT + 1) if readable(first))
    formats = f"format {FORMAT}" if earliest == FORMAT else f"formats {earliest} to {FORMAT}"
    is_later = type(number) is int and number > FORMAT
    stated = "no format number" if number is None else f"format {number}"
    return UnreadFormat(
        required=f"a build of {formats}, which this polarfab reads",
        given=f"{stated}, made by {'a later' if is_later else 'an earlier'} polarfab",
        todo="compile the fabric again with this release, or use the release that made it",
    )
