"""Paths of a PolarStar's LID layers as arrays: their links, and their shapes.

A path is a row of switches, with NO_SWITCH after the last one. Its *shapes* say how it goes through
the numbers of switches: RISES_FIRST if it never rises after a fall, FALLS_FIRST if it never falls
after a rise. Paths of one shape close no cycle of channel dependencies among themselves
(`extensions.lossless.layers`).
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

LAYERS = 2
"""How many layers a PolarStar has."""
MOST_LINKS = 5
"""The most links of a path."""
SHAPES = 2
"""How many shapes there are."""
RISES_FIRST, FALLS_FIRST = range(SHAPES)
"""Indexes of an axis of shapes. Lane k is for pairs whose paths have shape k."""
NO_SWITCH = -1
"""In place of a switch: the path has ended. A path that begins with it does not exist."""
NO_LINK = -1
"""In place of a link: the path has ended."""
NEVER = np.iinfo(np.int64).max
"""The cost of a link that may not be taken."""

Numbers = NDArray[np.int64]
Flags = NDArray[np.bool_]


def path_shapes(path: Numbers) -> Flags:
    """Whether paths have each of the shapes, bool[SHAPES, …].

    Args:
        path: int64[…, h], the switches of each path, NO_SWITCH after the last.

    >>> path_shapes(np.array([[1, 3, 2, -1], [3, 1, 2, 0]])).tolist()
    [[True, False], [False, False]]
    """
    rises, continues = path[..., 1:] > path[..., :-1], path[..., 2:] != NO_SWITCH
    before, after = rises[..., :-1], rises[..., 1:]
    never_rises_again = before | ~after | ~continues
    never_falls_again = ~before | after | ~continues
    both: Flags = np.logical_and.reduce(np.stack((never_rises_again, never_falls_again)), axis=-1)
    return both


def path_links(path: Numbers, switches: int) -> Numbers:
    """The links of paths, int64[…, h - 1], NO_LINK after the last.

    The number of the link from switch s to switch t is s·S + t.

    Args:
        path: int64[…, h], the switches of each path, NO_SWITCH after the last.
        switches: S.
    """
    continues = path[..., 1:] != NO_SWITCH
    return np.where(continues, path[..., :-1] * switches + path[..., 1:], NO_LINK)
