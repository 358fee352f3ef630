"""The classes of a whole PolarFly by what they lead to, with the triangles on their links."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from compilers.proof.soundness.port_use import Numbers, PortUse
from compilers.tables.build import Build
from compilers.tables.line_rows import LineEgress
from compilers.topology import polarity
from compilers.topology.triangles import NO_APEX, SEVERAL, apex_links

Links = NDArray[np.int16]


@dataclass(frozen=True, slots=True, eq=False)
class TwoLinkClasses:
    """The classes of S switches with K links, any two of which have one path of two links."""

    build: Build
    """The build whose classes they are."""
    use: PortUse
    """The use of every port."""
    link: Links
    """int16[S, C], the minimal link of each class, -1 where there is none."""
    apex: Links
    """int16[S, K], the apex of each link, as in `compilers.topology.triangles`."""
    class_apex: Links
    """int16[S, C], the apex of the minimal link of each class."""
    back: NDArray[np.int32]
    """int32[S, K], each neighbour's link to the switch."""
    direct: Numbers
    """intp[S, K], the class that leads to each neighbour alone."""
    rows: NDArray[np.int64]
    """int64[S, C], how many destinations the class serves behind the neighbour."""

    @classmethod
    def of(cls, build: Build) -> TwoLinkClasses | None:
        """The classes of a build with minimal delivery; None where it is no whole PolarFly."""
        if not polarity.is_whole(build.topology):
            return None
        w, egress, port = build.wiring, build.tables.routes.egress, build.tables.classes.port
        apex = apex_links(w.far)
        if not has_unique_paths(w.far, apex):
            return None
        use, count = PortUse.of(w), port.shape[1]
        rows = egress.served(count) if isinstance(egress, LineEgress) else _rows(egress, count)
        s, k = np.nonzero(w.far >= 0)
        direct = np.zeros(w.far.shape, np.intp)
        direct[s, k] = egress[s, w.far[s, k]]
        np.subtract.at(rows, (s, direct[s, k]), 1)
        link = use.links(port).astype(np.int16)
        over = np.take_along_axis(apex, np.maximum(link, 0).astype(np.intp), axis=1)
        return cls(
            build=build,
            use=use,
            link=link,
            apex=apex,
            class_apex=np.where(link >= 0, over, NO_APEX).astype(np.int16),
            back=use.link[np.maximum(w.far, 0), w.far_port],
            direct=direct,
            rows=rows,
        )

    def first_two(self, links: NDArray[np.int32]) -> tuple[Links, Links]:
        """int16[S, C] twice: of links of classes, the first two that are not the minimal one."""
        return first_two(links.astype(np.int16), self.link)

    def without(self, wrong: NDArray[np.bool_]) -> NDArray[np.bool_]:
        """bool[S]: the destinations that no class leads to which is wrong."""
        egress = self.build.tables.routes.egress
        holds = np.ones(len(wrong), np.bool_)
        for s in np.flatnonzero(wrong.any(axis=1)).tolist():
            # What is no class, such as 65,535, is not wrong.
            holds &= ~np.append(wrong[s], False)[
                np.minimum(egress[s].astype(np.intp), wrong.shape[1])
            ]
        return holds


def _rows(egress: Numbers, classes: int) -> NDArray[np.int64]:
    """int64[S, C]: how many destinations have each class."""
    rows = np.zeros((len(egress), classes + 1), np.int64)
    last = min(classes, np.iinfo(egress.dtype).max)
    for counted, row in zip(rows, egress, strict=True):
        # What is no class, such as 65,535, is counted as one after the last.
        counted[: last + 1] = np.bincount(np.minimum(row, last), minlength=last + 1)
    return rows[:, :classes]


def has_unique_paths(far: NDArray[np.int32], apex: NDArray[np.int16]) -> bool:
    """Whether no two switches have two paths of two links, in a graph of diameter two.

    A switch that is reached once only, of all paths of two links from s: those that end next to s
    are counted by the triangles at s, so as many as there are other switches have to be left.

    Args:
        far: int32[S, K], the neighbours of each switch, -1 where it has fewer.
        apex: of its `apex_links`.
    """
    degree = np.count_nonzero(far >= 0, axis=1)
    paths = np.where(far >= 0, degree[far] - 1, 0).sum(axis=1)
    left = paths - np.count_nonzero(apex != NO_APEX, axis=1)
    return bool((apex != SEVERAL).all() and (left == len(far) - 1 - degree).all())


def first_two(links: NDArray[Any], minimal: NDArray[Any]) -> tuple[NDArray[Any], NDArray[Any]]:
    """[S, C] twice: of links of classes, [S, C, n], the first two but the minimal one, -1: none."""
    first = np.full(minimal.shape, -1, links.dtype)
    second = first.copy()
    for link in np.moveaxis(links, 2, 0):
        usable = (link >= 0) & (link != minimal) & (link != first)
        second = np.where(usable & (first >= 0) & (second < 0), link, second)
        first = np.where(usable & (first < 0), link, first)
    return first, second
