"""Spreads the links of a switch over its modules, so that a module's failure costs little.

Every module gets the same number of links, or one more. The two links of a triangle repair each
other, so they are put on different modules. For this, links are ordered in a *half turn*: one link
of each triangle first, then the other links of the triangles in the same order, with the links in
no triangle half before and half behind. So the two links of a triangle are half of all links apart,
and each module gets a run of consecutive links no longer than that. The links of a switch
without triangles are dealt to its modules in turn.

In a whole PolarFly links are numbered by where they lead as seen from their own fan
(`compilers.topology.polarity.headings`), so the module of a link is the same in all fans.

Modules are chosen for each switch by itself. Which switches are cabled, and how many cables join
two racks, does not depend on it.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

Links = NDArray[np.int64]
NONE = np.iinfo(np.int32).max
"""A number that is larger than that of any link."""


def half_turn(
    apex: NDArray[np.int16], present: NDArray[np.bool_], heading: NDArray[np.int32]
) -> Links:
    """Return the links of switches in a half turn, int64[S, K].

    Args:
        apex: int16[S, K], `compilers.topology.triangles.apex_links`.
        present: bool[S, K], the links that exist.
        heading: int32[S, K], the numbers that links are ordered by, all different at a switch.
    """
    in_no_triangle = present & (apex < 0)
    # The number of the other link of each triangle.
    mate = np.take_along_axis(heading, np.maximum(apex, 0).astype(np.intp), axis=1)
    rank = _rank(np.where(in_no_triangle, heading, NONE))
    first_half = 2 * rank < in_no_triangle.sum(axis=1, keepdims=True)
    section = np.where(in_no_triangle, np.where(first_half, 0, 2), np.where(mate > heading, 1, 3))
    place = np.where(section == 3, mate, heading)
    return np.lexsort((place, np.where(present, section, 4)), axis=1)


def _rank(number: NDArray[np.int32]) -> Links:
    """Return how many numbers of its row are smaller than each one, int64[S, K]."""
    return np.argsort(np.argsort(number, axis=1, kind="stable"), axis=1)


def shares(room: Sequence[int], links: int, present: Sequence[int]) -> list[int]:
    """Return how many links each module gets in addition, as evenly as room allows.

    Args:
        room: how many links each module can take.
        links: the number of links to share out.
        present: how many links each module has already.

    >>> shares([4, 4, 1], 6, [0, 2, 0])
    [4, 1, 1]
    """
    counts = list(present)
    for _ in range(links):
        open_modules = [m for m, most in enumerate(room) if counts[m] - present[m] < most]
        counts[min(open_modules, key=lambda m: counts[m])] += 1
    return [count - before for count, before in zip(counts, present, strict=True)]


def runs(share: Sequence[int]) -> list[int]:
    """Return the module of each link, so that a module has consecutive links.

    >>> runs([3, 1])
    [0, 0, 0, 1]
    """
    return [m for m, count in enumerate(share) for _ in range(count)]


def dealt(share: Sequence[int]) -> list[int]:
    """Return the module of each link, so that modules take links in turn.

    >>> dealt([3, 1])
    [0, 1, 0, 0]
    """
    unassigned, modules = list(share), list[int]()
    while any(unassigned):
        for m in [m for m, count in enumerate(unassigned) if count]:
            unassigned[m] -= 1
            modules.append(m)
    return modules


def parted(module: list[int], apex: Sequence[int], fixed: set[int]) -> list[int]:
    """Exchange modules of links so that the two links of a triangle are on different ones.

    Args:
        module: the module of each link.
        apex: the other link of each link's triangle; negative for none.
        fixed: links that keep their modules.

    Returns:
        The module of each link. Triangles that no exchange of two links parts stay together.
    """
    module = list(module)

    def with_mate(link: int) -> bool:
        """Whether a link and the other link of its triangle are on one module."""
        return apex[link] >= 0 and module[link] == module[apex[link]]

    def move_away(link: int) -> bool:
        """Exchange the module of a link with another's; whether that parted a triangle."""
        for partner in range(len(module)):
            if partner in fixed or module[partner] == module[link] or partner == apex[link]:
                continue
            module[link], module[partner] = module[partner], module[link]
            if not with_mate(link) and not with_mate(partner):
                return True
            module[link], module[partner] = module[partner], module[link]
        return False

    for link in range(len(module)):
        if with_mate(link):
            for movable in (link, apex[link]):
                if movable not in fixed and move_away(movable):
                    break
    return module
