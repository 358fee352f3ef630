"""The egress classes of a whole PolarFly, in the form that proofs of one and of two failures need.

In a whole PolarFly two switches have at most one path of two links. So a proof about one or two
failures need only look at classes, and at no single destination. `TwoLinkClasses` has for each
class its minimal link, and the apex of that link: the third switch of the triangle that the link is
in. A PolarFly without some of its links has no such classes.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from compilers.proof.soundness.link_sets import Numbers
from compilers.proof.soundness.port_use import PortUse
from compilers.tables.build import Build
from compilers.tables.line_rows import LineEgress
from compilers.topology import polarity
from compilers.topology.triangles import NO_APEX, SEVERAL, apex_links

Links = NDArray[np.int16]


@dataclass(frozen=True, slots=True, eq=False)
class TwoLinkClasses:
    """The C classes of S switches with K links, any two of which have one path of two links."""

    build: Build
    """The build that has these classes."""
    port_use: PortUse
    """What each port is used for."""
    minimal_link: Links
    """int16[S, C], the minimal link of each class; -1 where there is none."""
    apex_link: Links
    """int16[S, K], the switch's link to the apex of each link; NO_APEX: the link is in no
    triangle."""
    class_apex_link: Links
    """int16[S, C], the switch's link to the apex of the minimal link of each class, or NO_APEX."""
    far_link: NDArray[np.int32]
    """int32[S, K], each neighbour's link to the switch."""
    direct_class: Numbers
    """intp[S, K], the class that leads to each neighbour itself."""
    destinations_behind: NDArray[np.int64]
    """int64[S, C], how many destinations each class serves two hops away. The neighbour at its
    minimal link is not counted: `of` subtracts it."""

    @classmethod
    def of(cls, build: Build) -> TwoLinkClasses | None:
        """The classes of a build with minimal delivery; None where it is no whole PolarFly."""
        if not polarity.is_whole(build.topology):
            return None
        wiring, egress = build.wiring, build.tables.routes.egress
        port = build.tables.classes.port
        apex_link = apex_links(wiring.far)
        if not has_unique_paths(wiring.far, apex_link):
            return None
        port_use, classes = PortUse.of(wiring), port.shape[1]
        switch, cabled_link = np.nonzero(wiring.far >= 0)
        direct = np.zeros(wiring.far.shape, np.intp)
        direct[switch, cabled_link] = egress[switch, wiring.far[switch, cabled_link]]
        if isinstance(egress, LineEgress):
            behind = egress.destination_counts(classes)
        else:
            behind = _destination_counts(egress, classes)
        # So far each direct class counts the neighbour itself, which is one hop away.
        np.subtract.at(behind, (switch, direct[switch, cabled_link]), 1)
        link = port_use.links(port).astype(np.int16)
        apex_of_link = np.take_along_axis(apex_link, np.maximum(link, 0).astype(np.intp), axis=1)
        return cls(
            build=build,
            port_use=port_use,
            minimal_link=link,
            apex_link=apex_link,
            class_apex_link=np.where(link >= 0, apex_of_link, NO_APEX).astype(np.int16),
            far_link=port_use.link_at(np.maximum(wiring.far, 0), wiring.far_port),
            direct_class=direct,
            destinations_behind=behind,
        )

    def not_served_by(self, classes: NDArray[np.bool_]) -> NDArray[np.bool_]:
        """The destinations that none of these classes leads to at any switch.

        Args:
            classes: bool[S, C], the classes.

        Returns:
            bool[S], by destination.
        """
        egress = self.build.tables.routes.egress
        not_served = np.ones(len(classes), np.bool_)
        for s in np.flatnonzero(classes.any(axis=1)).tolist():
            # Values that are no class (`local`, `no_route`) read the False after the last class.
            number = np.minimum(egress[s].astype(np.intp), classes.shape[1])
            not_served &= ~np.append(classes[s], False)[number]
        return not_served


def _destination_counts(egress: Numbers, classes: int) -> NDArray[np.int64]:
    """How many destinations each class of each switch serves, int64[S, C]."""
    counts = np.zeros((len(egress), classes + 1), np.int64)
    last = min(classes, np.iinfo(egress.dtype).max)
    for of_switch, row in zip(counts, egress, strict=True):
        # Values that are no class (`local`, `no_route`) are counted after the last class.
        of_switch[: last + 1] = np.bincount(np.minimum(row, last), minlength=last + 1)
    return counts[:, :classes]


def has_unique_paths(far: NDArray[np.int32], apex_link: NDArray[np.int16]) -> bool:
    """Whether no two switches have two paths of two links, in a graph of diameter two.

    Count the paths of two links from switch s. A path that ends at a neighbour of s makes a
    triangle with s, so there are as many of these as links of s in triangles. All other paths end
    at switches two links away, and each of these ends at least one path. So each ends just one if
    there are as many such paths as such switches.

    Args:
        far: int32[S, K], the neighbours of each switch, -1 where it has fewer.
        apex_link: int16[S, K], the `apex_links` of these neighbours.
    """
    degree = np.count_nonzero(far >= 0, axis=1)
    paths = np.where(far >= 0, degree[far] - 1, 0).sum(axis=1)
    paths_beyond = paths - np.count_nonzero(apex_link != NO_APEX, axis=1)
    switches_beyond = len(far) - 1 - degree
    return bool((apex_link != SEVERAL).all() and (paths_beyond == switches_beyond).all())
