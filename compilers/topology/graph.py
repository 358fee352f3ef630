"""An undirected simple graph as arrays; memory grows with the number of edges."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

import numpy as np
from numpy.typing import NDArray


@dataclass(frozen=True, slots=True, eq=False)
class Graph:
    """Compressed neighbour lists, each ascending, without loops or multiple edges.

    offsets: int64[S + 1] for S vertices; targets: int32[2E]. The neighbours of v are
    targets[offsets[v]:offsets[v + 1]].
    """

    offsets: Annotated[NDArray[np.int64], "S+1"]
    targets: Annotated[NDArray[np.int32], "2E", "0..S"]

    def __post_init__(self) -> None:
        self.offsets.flags.writeable = False
        self.targets.flags.writeable = False

    @classmethod
    def from_edges(cls, order: int, edges: NDArray[np.integer]) -> Graph:
        """The graph of `edges`, int[E, 2] in any order and direction, on vertices 0..order-1.

        Raises:
            ValueError: a loop, a repeated edge or a vertex out of range.
        """
        pairs = np.asarray(edges, np.int64).reshape(-1, 2)
        if pairs.size and (pairs.min() < 0 or pairs.max() >= order):
            raise ValueError("a vertex is out of range")
        if (pairs[:, 0] == pairs[:, 1]).any():
            raise ValueError("an edge is a loop")
        keys = np.concatenate((pairs @ [order, 1], pairs @ [1, order]))
        keys.sort()
        if (keys[1:] == keys[:-1]).any():
            raise ValueError("an edge is repeated")
        tails, targets = np.divmod(keys, order) if order else (keys, keys)
        return cls(
            offsets=np.searchsorted(tails, np.arange(order + 1)).astype(np.int64),
            targets=targets.astype(np.int32),
        )

    @classmethod
    def from_padded(cls, padded: NDArray[np.int32]) -> Graph:
        """The graph of neighbour lists int32[S, K], ascending, padded with -1."""
        present = padded >= 0
        offsets = np.zeros(len(padded) + 1, np.int64)
        np.cumsum(present.sum(axis=1), out=offsets[1:])
        return cls(offsets=offsets, targets=padded[present])

    @property
    def order(self) -> int:
        """S, the number of vertices."""
        return len(self.offsets) - 1

    @property
    def size(self) -> int:
        """E, the number of edges."""
        return len(self.targets) // 2

    @property
    def degrees(self) -> NDArray[np.int64]:
        """int64[S]."""
        return np.diff(self.offsets)

    def neighbours(self, vertex: int) -> NDArray[np.int32]:
        """int32[degree], ascending."""
        return self.targets[self.offsets[vertex] : self.offsets[vertex + 1]]

    def tails(self) -> NDArray[np.int32]:
        """int32[2E], the vertex whose neighbour list each entry of `targets` is in."""
        return np.repeat(np.arange(self.order, dtype=np.int32), self.degrees)

    def edges(self) -> NDArray[np.int32]:
        """int32[E, 2], u < v, ascending."""
        pairs = np.stack((self.tails(), self.targets), axis=1)
        return pairs[pairs[:, 0] < pairs[:, 1]]

    def padded(self) -> NDArray[np.int32]:
        """int32[S, K], K the largest degree: neighbour lists padded with -1."""
        degrees = self.degrees
        table = np.full((self.order, int(degrees.max(initial=0))), -1, np.int32)
        table[np.arange(table.shape[1]) < degrees[:, None]] = self.targets
        return table

    def reverse(self) -> NDArray[np.int64]:
        """int64[2E]: for the entry u→v of `targets`, the index of the entry v→u."""
        keys = self.targets.astype(np.int64) * self.order + self.tails()
        return np.argsort(keys, kind="stable")
