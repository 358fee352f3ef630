"""The links of a PolarStar's switches by where they lead: within their supernode, or out of it.

The links of a switch are in canonical order: to supernodes below its own, within it, to those
above. So supernodes of a kind with as many others below have their links numbered alike, and differ
in the triangles of the structure graph alone.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from compilers.tables.star_rows import StarProgram
from compilers.topology.triangles import apex_links

Numbers = NDArray[np.intp]


@dataclass(frozen=True, slots=True, eq=False)
class AlikeSupernodes:
    """Supernodes of k members whose D + L links are numbered alike."""

    of: int
    """Their kind: 1 for quadrics, else 0."""
    x: Numbers
    """int[g], the numbers of the supernodes."""
    out: Numbers
    """int[D], the links to other supernodes, ascending."""
    within: Numbers
    """int[L], the links within the supernode, ascending."""
    arc: Numbers
    """int[D], 0 where the other supernode is above x, 1 where it is below."""
    over: Numbers
    """int[k, D], the member behind each link to another supernode."""
    inner: Numbers
    """int[k, L], the member behind each link within."""
    apex: Numbers
    """int[g, D], for the link to supernode z, the link to the supernode next to both x and z; -1
    where there is none."""

    @classmethod
    def each(cls, program: StarProgram) -> Iterator[AlikeSupernodes]:
        """All supernodes; none where members of a kind do not have as many links within each."""
        around, number = program.around, np.arange(len(program.around))
        quadric, below = program.quadric, (around < number[:, None]).sum(axis=1)
        itself = around == number[:, None]
        apex = apex_links(np.where(itself, np.int32(-1), around)).astype(np.intp)
        if any(len(np.unique(row)) > 1 for row in program.links):
            return
        for of in (0, 1):
            for lower in np.unique(below[quadric == of]).tolist():
                x = np.flatnonzero((quadric == of) & (below == lower))
                yield cls._of(program, of, x, lower, apex[x])

    @classmethod
    def _of(
        cls, program: StarProgram, of: int, x: Numbers, below: int, apex: Numbers
    ) -> AlikeSupernodes:
        inside, width = int(program.links[of][0]), program.around.shape[1] - of
        if of:  # its own place is among those of the lines around it
            apex = np.delete(apex, below, axis=1)
        place = np.arange(width)
        out = place + (place >= below) * inside
        arc = (place < below).astype(np.intp)
        inner = np.nonzero(program.joined[of])[1].reshape(program.members, inside)
        return cls(
            of=of,
            x=x,
            out=out,
            within=np.arange(below, below + inside),
            arc=arc,
            over=program.along[arc].T.astype(np.intp),
            inner=inner,
            # A quadric has no triangles, so places are those among its neighbours.
            apex=np.where(apex >= 0, out[np.maximum(apex, 0)], -1),
        )

    @property
    def links(self) -> int:
        """K."""
        return len(self.out) + len(self.within)

    @property
    def members(self) -> Numbers:
        """int[k, 1, 1]: x'."""
        return np.arange(len(self.over))[:, None, None]

    @property
    def switches(self) -> Numbers:
        """int[g·k]: the switches of these supernodes."""
        k = len(self.over)
        return (self.x[:, None] * k + np.arange(k)).ravel()
