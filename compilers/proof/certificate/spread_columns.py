"""Where marked packets are sent on, towards some destinations, as sets of links."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from compilers.proof.certificate.certificate import Bits
from compilers.proof.certificate.class_neighbours import ClassNeighbours, has_link, link_bits
from compilers.proof.forwarding import Forwarding, Numbers

LinkSets = NDArray[np.uint8]


def onward_sets(f: Forwarding) -> LinkSets | None:
    """uint8[S, K, ⌈L/8⌉], by the link that a marked packet came in on, those that it may leave by.

    None where none is marked.
    """
    if not f.marks:
        return None
    width = (f.slots + 7) // 8
    sets = np.zeros((len(f.end), width), np.uint8)
    for way in f.marked:
        arc = np.flatnonzero(way >= 0)
        byte, bit = link_bits(way[arc] % f.slots)
        sets[arc, byte] |= bit
    return sets.reshape(f.switches, f.slots, width)[:, :-1]


@dataclass(frozen=True, slots=True, eq=False)
class SpreadColumns:
    """Marked packets to D destinations, over cells as in `_Columns`.

    here: bool[D, S + 1], whether a switch spreads them, and not only sends them on minimally.
    onward: uint8[D·(S + 1), ⌈L/8⌉], by which links those that come there leave; to: intp[n], the
    cells that they come to then. stuck: bool[D], some have no link to leave by.
    """

    here: Bits
    onward: LinkSets
    to: Numbers
    stuck: Bits

    @classmethod
    def of(
        cls,
        n: ClassNeighbours,
        sets: LinkSets,
        far: NDArray[np.int32],
        row: Numbers,
        after: Numbers,
        home: Numbers,
    ) -> SpreadColumns:
        """Join what hosts choose with what each neighbour then does; arguments as in `_Columns`."""
        count, width = after.shape
        base = home - home % width
        away = (after != home) & (after != base + width - 1)
        own = base + np.arange(width)
        here = away & (own != home) & (after != own)
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
