"""Where marked packets are sent on, towards some destinations, as sets of links."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from compilers.proof.certificate.certificate import Bits
from compilers.proof.certificate.class_neighbours import ClassNeighbours, has_link
from compilers.proof.walks.forwarding import Forwarding, Numbers

LinkSets = NDArray[np.uint8]


def onward_sets(f: Forwarding) -> LinkSets | None:
    """uint8[S, K, ⌈K/8⌉], by the link that a marked packet came in on, those that it may leave by.

    None where none is marked.
    """
    return f.onward.reshape(f.switches, f.slots, -1)[:, :-1] if f.marks else None


@dataclass(frozen=True, slots=True, eq=False)
class SpreadColumns:
    """Marked packets to D destinations, over cells as in `_Columns`.

    here: bool[D, S + 1], whether a switch spreads them, and not only sends them on minimally, by
    the number of its class (`Towards.spreads`).
    onward: uint8[D·(S + 1), ⌈K/8⌉], by which links those that come there leave; to: intp[n], the
    cells that they come to then. stuck: bool[D], some have no link to leave by.
    """

    here: Bits
    onward: LinkSets
    to: Numbers
    stuck: Bits

    @classmethod
    def of(
        cls,
        f: Forwarding,
        n: ClassNeighbours,
        sets: LinkSets,
        far: NDArray[np.int32],
        row: Numbers,
        base: Numbers,
    ) -> SpreadColumns:
        """Join what hosts choose with what each neighbour then does; arguments as in `_Columns`."""
        count, width = row.shape
        here = f.spread_number(row % (f.classes + 2))
        here[:, -1] = False
        left = np.zeros((count, width, sets.shape[2]), np.uint8)
        stuck = np.zeros(count, np.bool_)
        for k, near in enumerate(far.T):
            comes = here[:, :-1] & (near >= 0)
            comes &= n.chooses(row.take(base + near), n.link_entry[:, k])
            none = ~sets[:, k].any(axis=1)
            stuck |= (comes & none).any(axis=1)
            left[:, :-1] |= np.where(comes[..., None], sets[:, k], 0)
        onward = left.reshape(count * width, sets.shape[2])
        reached = np.zeros((count, width), np.bool_)
        for k, near in enumerate(far.T):
            reached[:, :-1] |= has_link(onward, base + near, n.link_entry[:, k]) & (near >= 0)
        return cls(here, onward, np.flatnonzero(reached), stuck)

    def sends(self, cell: Numbers, link: Numbers) -> Bits:
        """bool[n]: whether packets that are spread at these cells may leave by these links."""
        return has_link(self.onward, cell, link)
