"""Paths between members of a supernode of a PolarStar, by the program of its minimal routes.

`star_alternates` and `star_repairs` choose links with these paths. The program is the same for all
supernodes of a kind (ordinary, or of a quadric), so all arrays have a first axis of two kinds.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from compilers.proof.soundness.link_sets import Bits
from compilers.tables.star_rows import StarProgram

LEAVES = -1
"""In place of the next member: the path leaves the supernode."""


@dataclass(frozen=True, slots=True, eq=False)
class MemberPaths:
    """Paths between the k members of a supernode, by the program."""

    program: StarProgram
    """The program of all switches."""
    next_member: NDArray[np.int16]
    """int16[2, k, k], by kind of supernode: the next member on the path from one member to another;
    LEAVES where that path leaves the supernode."""
    comes_back: Bits
    """bool[2, k, k, k], by kind, member a, and two of its neighbours m and r: whether the path from
    r to some member that a serves over m comes back to a."""

    @classmethod
    def of(cls, program: StarProgram) -> MemberPaths:
        """Find where the first link of each path within a supernode leads."""
        k = program.members
        next_member = np.full((2, k, k), LEAVES, np.int16)
        comes_back = np.zeros((2, k, k, k), np.bool_)
        for kind, joined in enumerate(program.joined):
            # int[k, k], each member's neighbours in ascending order, then all others. So column i
            # has the neighbour behind the inner link at place i.
            neighbours_first = np.argsort(~joined, axis=1, kind="stable")
            place = program.step[kind]
            existing = np.maximum(place, 0).astype(np.intp)
            over = np.take_along_axis(neighbours_first, existing, axis=1)
            next_member[kind] = np.where(place >= 0, over, LEAVES)
            two_links = ~joined & (next_member[kind] != LEAVES) & ~np.eye(k, dtype=np.bool_)
            # a sends packets for b over m = next_member[a, b]. They come back from each r whose
            # next member towards b is a.
            for a, b in np.argwhere(two_links):
                comes_back[kind, a, next_member[kind, a, b]] |= next_member[kind][:, b] == a
        return cls(program, next_member, comes_back)

    def have_inner_path(self, start: NDArray[np.intp], end: NDArray[np.int16]) -> Bits:
        """Whether supernodes of both kinds have an inner path from one member to another."""
        have_path: Bits = np.all(self.next_member[:, start, end] != LEAVES, axis=0)
        return have_path
