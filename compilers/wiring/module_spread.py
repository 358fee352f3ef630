"""Links of a switch over its modules, so that one module's death costs as little as possible.

As many on each module as on another, one more or less. The two links of a triangle, each the repair
of the other, are on different modules: in the *half turn* one link of each triangle comes first,
then the others in the same order, and links without a triangle go half before and half behind.
So the two of a triangle are half the links away from each other, and each module has a run of links
no longer than that. The links of a switch without triangles are dealt round its modules.

In a whole PolarFly links are numbered by where they lead, seen from their own fan
(`compilers.topology.polarity.headings`), and so are their triangles: which module a link is on is
the same in all fans.

The two ends of a link are on modules of two switches, which are chosen each by itself: which
switches are cabled, and how many cables join two racks, is the same whatever the modules.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

Links = NDArray[np.int64]
NONE = np.iinfo(np.int32).max


def half_turn(
    apex: NDArray[np.int16], present: NDArray[np.bool_], heading: NDArray[np.int32]
) -> Links:
    """int64[S, K]: the links of switches in the order in which modules take runs of them.

    Args:
        apex: int16[S, K], `compilers.topology.triangles.apex_links`.
        present: bool[S, K], the links that there are.
        heading: int32[S, K], the number of each link, different ones at a switch.
    """
    single = present & (apex < 0)
    mate = np.take_along_axis(heading, np.maximum(apex, 0).astype(np.intp), axis=1)
    before = 2 * _smaller(np.where(single, heading, NONE)) < single.sum(axis=1, keepdims=True)
    section = np.where(single, np.where(before, 0, 2), np.where(mate > heading, 1, 3))
    place = np.where(section == 3, mate, heading)
    return np.lexsort((place, np.where(present, section, 4)), axis=1)


def _smaller(number: NDArray[np.int32]) -> Links:
    """int64[S, K]: how many of its row are smaller."""
    return np.argsort(np.argsort(number, axis=1, kind="stable"), axis=1)


def shares(room: Sequence[int], links: int, taken: Sequence[int]) -> list[int]:
    """How many of so many links each module gets in addition, as evenly as room allows."""
    counts = list(taken)
    for _ in range(links):
        open_modules = [m for m, most in enumerate(room) if counts[m] - taken[m] < most]
        counts[min(open_modules, key=lambda m: counts[m])] += 1
    return [count - before for count, before in zip(counts, taken, strict=True)]


def runs(share: Sequence[int]) -> list[int]:
    """The module of each place: as many of the first as its share, then of the second, …"""
    return [m for m, count in enumerate(share) for _ in range(count)]


def dealt(share: Sequence[int]) -> list[int]:
    """The module of each place: one of each module in turn while it has any left."""
    left, modules = list(share), list[int]()
    while any(left):
        for m in [m for m, count in enumerate(left) if count]:
            left[m] -= 1
            modules.append(m)
    return modules


def parted(module: list[int], apex: Sequence[int], fixed: set[int]) -> list[int]:
    """The modules of links with those of triangles parted, as far as exchanges of two links do it.

    Args:
        module: of each link.
        apex: of each link, the other one of its triangle; negative where there is none.
        fixed: links that stay where they are.
    """
    module = list(module)

    def together(link: int) -> bool:
        return apex[link] >= 0 and module[link] == module[apex[link]]

    for link in range(len(module)):
        for one in (link, apex[link]) if together(link) else ():
            if one in fixed:
                continue
            for other in range(len(module)):
                if other in fixed or module[other] == module[one] or other == apex[one]:
                    continue
                module[one], module[other] = module[other], module[one]
                if not together(one) and not together(other):
                    break
                module[one], module[other] = module[other], module[one]
            else:
                continue
            break
    return module
