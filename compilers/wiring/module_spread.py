"""Spread the links of a switch over its modules, so that a module's failure costs little.

A *module* is a part of a switch with several ports that can fail as a whole, such as a line card.
`compilers.wiring.port_assignment` calls these functions. They give every link a module:

1. `links_per_module` gives every module the same number of links, or one more.
2. The two links of a triangle repair each other, so they have to be on different modules.
   `separating_order` orders the links of a switch in four sections: half of the links in no
   triangle, one link of each triangle, the other half of the links in no triangle, and the other
   link of each triangle, in the order of the first ones. So the two links of a triangle are half of
   all links apart. `modules_in_runs` gives each module a run of consecutive links of this order.
   Runs are no longer than half of all links where there are two modules or more.
3. Without triangles, `modules_in_rotation` gives links to the modules in rotation.
4. `separate_triangles` exchanges modules of links, where ports that are fixed by hand have left
   both links of a triangle on one module.

In a whole PolarFly switches are divided into *fans*, clusters that are cabled alike. Links are
numbered by where they lead as seen from their own fan (`compilers.topology.polarity.headings`), so
the module of a link is the same in all fans.

Modules are chosen for each switch by itself. Which switches are cabled, and how many cables join
two racks, does not depend on it.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

Links = NDArray[np.int64]
"""int64[S, K]: a link or a rank for each link of each switch."""
NO_HEADING = np.iinfo(np.int32).max
"""In place of a heading, above all headings."""
FIRST_SINGLES, FIRST_OF_TRIANGLES, OTHER_SINGLES, OTHER_OF_TRIANGLES, ABSENT = range(5)
"""The sections of `separating_order`. A *single* is a link in no triangle; the last section has the
places beyond the last link of a switch."""


def separating_order(
    apex: NDArray[np.int16], present: NDArray[np.bool_], heading: NDArray[np.int32]
) -> Links:
    """Return the links of switches, so ordered that the links of triangles are apart, int64[S, K].

    Args:
        apex: int16[S, K], the other link of each link's triangle, negative for none
            (`compilers.topology.triangles.apex_links`).
        present: bool[S, K], the links that exist.
        heading: int32[S, K], the numbers that links are ordered by, all different at a switch.
    """
    in_no_triangle = present & (apex < 0)
    # int32[S, K], the heading of the other link of each link's triangle.
    apex_heading = np.take_along_axis(heading, np.maximum(apex, 0).astype(np.intp), axis=1)
    # The section of each link, int[S, K]: singles are halved by their rank among the singles.
    rank = _rank(np.where(in_no_triangle, heading, NO_HEADING))
    in_first_half = 2 * rank < in_no_triangle.sum(axis=1, keepdims=True)
    section_of_single = np.where(in_first_half, FIRST_SINGLES, OTHER_SINGLES)
    section_in_triangle = np.where(apex_heading > heading, FIRST_OF_TRIANGLES, OTHER_OF_TRIANGLES)
    section = np.where(in_no_triangle, section_of_single, section_in_triangle)
    # The other links of triangles are ordered as the first ones are.
    place_in_section = np.where(section == OTHER_OF_TRIANGLES, apex_heading, heading)
    return np.lexsort((place_in_section, np.where(present, section, ABSENT)), axis=1)


def _rank(number: NDArray[np.int32]) -> Links:
    """Return how many numbers of its row are smaller than each one, int64[S, K]."""
    return np.argsort(np.argsort(number, axis=1, kind="stable"), axis=1)


def links_per_module(capacity: Sequence[int], links: int, fixed_links: Sequence[int]) -> list[int]:
    """Return how many links each module gets, as evenly as capacities allow.

    Args:
        capacity: how many links each module can take.
        links: the number of links that get a module.
        fixed_links: how many links each module has already, in addition.

    >>> links_per_module([4, 4, 1], 6, [0, 2, 0])
    [4, 1, 1]
    """
    counts = list(fixed_links)
    for _ in range(links):
        open_modules = [m for m, room in enumerate(capacity) if counts[m] - fixed_links[m] < room]
        counts[min(open_modules, key=lambda m: counts[m])] += 1
    return [count - fixed for count, fixed in zip(counts, fixed_links, strict=True)]


def modules_in_runs(counts: Sequence[int]) -> list[int]:
    """Return the module of each link, so that a module has consecutive links.

    Args:
        counts: how many links each module gets.

    >>> modules_in_runs([3, 1])
    [0, 0, 0, 1]
    """
    return [m for m, count in enumerate(counts) for _ in range(count)]


def modules_in_rotation(counts: Sequence[int]) -> list[int]:
    """Return the module of each link, so that modules get links in rotation.

    Args:
        counts: how many links each module gets.

    >>> modules_in_rotation([3, 1])
    [0, 1, 0, 0]
    """
    missing, modules = list(counts), list[int]()
    while any(missing):
        for m in [m for m, count in enumerate(missing) if count]:
            missing[m] -= 1
            modules.append(m)
    return modules


def separate_triangles(module: list[int], apex: Sequence[int], fixed: set[int]) -> list[int]:
    """Exchange modules of links so that the two links of a triangle are on different ones.

    Args:
        module: the module of each link.
        apex: the other link of each link's triangle; negative for none.
        fixed: links that keep their modules.

    Returns:
        The module of each link. Triangles that no exchange of two links separates stay as they are.
    """
    module = list(module)

    def shares_module(link: int) -> bool:
        """Whether a link and the other link of its triangle are on one module."""
        return apex[link] >= 0 and module[link] == module[apex[link]]

    def move_away(link: int) -> bool:
        """Exchange the modules of a link and another; whether that separated a triangle."""
        for partner in range(len(module)):
            if partner in fixed or module[partner] == module[link] or partner == apex[link]:
                continue
            module[link], module[partner] = module[partner], module[link]
            if not shares_module(link) and not shares_module(partner):
                return True
            module[link], module[partner] = module[partner], module[link]
        return False

    for link in range(len(module)):
        if shares_module(link):
            for movable in (link, apex[link]):
                if movable not in fixed and move_away(movable):
                    break
    return module
