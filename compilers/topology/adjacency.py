"""An undirected simple graph as two arrays (compressed sparse rows).

Memory grows with the number of edges. An *entry* is a place in `Graph.targets`. Each edge u–v has
two entries: u→v in the neighbour list of u, and v→u in the list of v.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Annotated, TypeVar

import numpy as np
from numpy.typing import NDArray

Number = TypeVar("Number", bound=np.number)
ENTRIES_AT_ONCE = 1 << 17
"""About how many entries a block has."""


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Graph:
    """The neighbour lists of S vertices, each ascending, without loops or multiple edges.

    Example:
        >>> import numpy, polarfab
        >>> path = polarfab.Graph.from_edges(3, numpy.array([[0, 1], [1, 2]]))
        >>> path.neighbours(1)
        array([0, 2], dtype=int32)
    """

    offsets: Annotated[NDArray[np.int64], "S+1"]
    """int64[S + 1], where each list begins: that of v is targets[offsets[v]:offsets[v + 1]]."""
    targets: Annotated[NDArray[np.int32], "2E", "0..S"]
    """int32[2E], all neighbour lists, one after the other."""

    def __repr__(self) -> str:
        """`<Graph: 57 vertices, 224 edges>`."""
        return f"<Graph: {self.order:,} vertices, {self.size:,} edges>"

    def __post_init__(self) -> None:
        self.offsets.flags.writeable = False
        self.targets.flags.writeable = False

    @classmethod
    def from_edges(cls, order: int, edges: NDArray[np.integer]) -> Graph:
        """Return the graph with these edges.

        Args:
            order: the number of vertices.
            edges: int[E, 2], in any order and direction.

        Raises:
            ValueError: an edge is a loop or repeated, or a vertex is out of range.
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
        """Return the graph of neighbour lists, int32[S, K], ascending, padded with -1."""
        present = padded >= 0
        offsets = np.zeros(len(padded) + 1, np.int64)
        np.cumsum(present.sum(axis=1), out=offsets[1:])
        return cls(offsets=offsets, targets=padded[present])

    @property
    def order(self) -> int:
        """The number of vertices, S."""
        return len(self.offsets) - 1

    @property
    def size(self) -> int:
        """The number of edges, E."""
        return len(self.targets) // 2

    @property
    def degrees(self) -> NDArray[np.int64]:
        """The degree of each vertex, int64[S]."""
        return np.diff(self.offsets)

    def neighbours(self, vertex: int) -> NDArray[np.int32]:
        """Return the neighbours of a vertex, int32[degree], ascending."""
        return self.targets[self.offsets[vertex] : self.offsets[vertex + 1]]

    def tails(self) -> NDArray[np.int32]:
        """Return the vertex whose neighbour list each entry is in, int32[2E]."""
        return np.repeat(np.arange(self.order, dtype=np.int32), self.degrees)

    def edges(self) -> NDArray[np.int32]:
        """Return the edges (u, v) with u < v, int32[E, 2], ascending."""
        return np.concatenate([np.empty((0, 2), np.int32), *self.edge_blocks()])

    def edge_blocks(self) -> Iterator[NDArray[np.int32]]:
        """Yield the `edges` in blocks, int32[n, 2] each."""
        for entries, tails in self.entry_blocks():
            pairs = np.column_stack((tails, self.targets[entries]))
            yield pairs[pairs[:, 0] < pairs[:, 1]]

    def entry_blocks(self) -> Iterator[tuple[slice, NDArray[np.int32]]]:
        """Yield the entries in blocks of whole neighbour lists.

        Yields:
            The range of entries, and the vertex whose list each of them is in.
        """
        step = max(1, ENTRIES_AT_ONCE * self.order // max(1, len(self.targets)))
        for first in range(0, self.order, step):
            offsets = self.offsets[first : first + step + 1]
            tails = np.arange(first, first + len(offsets) - 1, dtype=np.int32)
            yield slice(offsets[0], offsets[-1]), np.repeat(tails, np.diff(offsets))

    def padded(self) -> NDArray[np.int32]:
        """Return neighbour lists padded with -1, int32[S, K] for the largest degree K."""
        degrees = self.degrees
        table = np.full((self.order, int(degrees.max(initial=0))), -1, np.int32)
        table[np.arange(table.shape[1]) < degrees[:, None]] = self.targets
        return table

    def reverse_values(self, values: NDArray[Number]) -> NDArray[Number]:
        """Return for each entry u→v the value of the entry v→u, [2E], of values [2E]."""
        reverse_values = np.empty_like(values)
        for entries, _, reverse in self.reverse_blocks():
            reverse_values[entries] = values[reverse]
        return reverse_values

    def reverse_blocks(
        self,
    ) -> Iterator[tuple[slice, NDArray[np.int32], NDArray[np.int64]]]:
        """Yield the `entry_blocks`, and for each entry u→v the place of the entry v→u, int64[n].

        Lists are ascending, so the n-th entry that names v is in the list of v's n-th neighbour.
        """
        # int64[S], the place of the next entry of each vertex that no earlier block has named.
        next_entry = self.offsets[:-1].copy()
        for entries, tails in self.entry_blocks():
            targets = self.targets[entries]
            order = stable_order(targets)
            named, first, count = np.unique(targets[order], return_index=True, return_counts=True)
            reverse = np.empty(len(targets), np.int64)
            reverse[order] = np.arange(len(targets)) + np.repeat(next_entry[named] - first, count)
            next_entry[named] += count
            yield entries, tails, reverse


def stable_order(numbers: NDArray[np.integer]) -> NDArray[np.int64]:
    """Return `argsort(kind="stable")` of numbers from 0 to 2³² - 1, int64[n], five times faster.

    Sorts by one half of the bits after the other: NumPy sorts integers of 16 bits in time that
    grows with n only.

    >>> stable_order(np.array([70_000, 3, 70_000, 5]))
    array([1, 3, 0, 2])
    """
    order = np.argsort(numbers.astype(np.uint16), kind="stable")
    digit = (numbers >> 16).astype(np.uint16)
    return order[np.argsort(digit[order], kind="stable")] if digit.any() else order
