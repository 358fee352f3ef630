"""Arrays whose rows are computed when they are read, in the place of arrays that are stored.

A fabric of 627,570 routers has 9 billion egress values, which follow from a few megabytes. So a
build keeps those, and what reads rows computes the ones that it reads.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator
from math import prod
from typing import Any

import numpy as np
from numpy.lib.mixins import NDArrayOperatorsMixin
from numpy.typing import NDArray

COMPUTED_CELLS_AT_ONCE = 1 << 20
STORED_CELLS = 1 << 24
"""The most values of an array that is stored although it could be computed: it is read sooner."""


class ComputedArray(NDArrayOperatorsMixin, ABC):
    """A read-only array of S rows, computed when they are read.

    It takes the place of an array: indexed by rows first it computes no more than these, and
    NumPy's functions take it whole, as the array that `numpy.asarray` makes of it.
    """

    def __init__(self, packed: Any, shape: tuple[int, ...], dtype: Any) -> None:
        """An array of this shape and type.

        Args:
            packed: a dataclass of the arrays that it is computed from, which a build stores.
            shape: S, and the shape of a row.
            dtype: the type of the values.
        """
        self.packed, self.shape, self.dtype = packed, shape, np.dtype(dtype)

    @abstractmethod
    def rows(self, number: NDArray[np.int64]) -> NDArray[Any]:
        """[n, …]: the rows of these numbers, int64[n]."""

    @property
    def ndim(self) -> int:
        """How many dimensions it has."""
        return len(self.shape)

    @property
    def size(self) -> int:
        """How many values it has."""
        return prod(self.shape)

    def __len__(self) -> int:
        """S, the number of rows."""
        return self.shape[0]

    def __iter__(self) -> Iterator[NDArray[Any]]:
        """Row by row."""
        for _, block in self.blocks():
            yield from block

    def blocks(self) -> Iterator[tuple[int, NDArray[Any]]]:
        """All rows, some at a time, with the number of the first."""
        step = self._at_once()
        for first in range(0, len(self), step):
            yield first, self.rows(np.arange(first, min(first + step, len(self))))

    alike = 1
    """How many rows are computed together."""

    def _at_once(self) -> int:
        rows = COMPUTED_CELLS_AT_ONCE // max(1, prod(self.shape[1:]))
        return max(1, rows // self.alike) * self.alike

    def __getitem__(self, index: Any) -> Any:
        """Values as of an array; only the rows that the first index names are computed."""
        first, *rest = index if isinstance(index, tuple) else (index,)
        if first is Ellipsis or first is None:
            return np.asarray(self)[index]
        if isinstance(first, int | np.integer):
            row = self.rows(np.array([range(len(self))[int(first)]]))[0]
            return row[tuple(rest)] if rest else row
        if isinstance(first, slice):
            block = self.rows(np.arange(len(self))[first])
            return block[(slice(None), *rest)] if rest else block
        number = np.arange(len(self))[np.asarray(first)]
        if not rest:
            return self.rows(number.ravel()).reshape(number.shape + self.shape[1:])
        if any(isinstance(part, slice) or part is None or part is Ellipsis for part in rest):
            return self[number][(*np.indices(number.shape, sparse=True), *rest)]
        return self._cells(np.broadcast_arrays(number, *rest))

    def _cells(self, index: Any) -> NDArray[Any]:
        """The values at places, as many rows at once as memory is meant to hold."""
        number, *rest = (part.ravel() for part in index)
        found = np.empty((number.size, *self.shape[len(index) :]), self.dtype)
        rows, which = np.unique(number, return_inverse=True)
        order = np.argsort(which, kind="stable")
        step = self._at_once()
        ends = np.searchsorted(which[order], np.arange(0, len(rows) + step, step))
        for first, start, end in zip(range(0, len(rows), step), ends, ends[1:], strict=False):
            some = order[start:end]
            block = self.rows(rows[first : first + step])
            found[some] = block[(which[some] - first, *(part[some] for part in rest))]
        return found.reshape(index[0].shape + found.shape[1:])

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> NDArray[Any]:
        """The whole array."""
        if self._at_once() >= len(self):
            return np.asarray(self.rows(np.arange(len(self))), dtype or self.dtype)
        whole = np.empty(self.shape, dtype or self.dtype)
        for first, block in self.blocks():
            whole[first : first + len(block)] = block
        return whole

    def __array_ufunc__(self, ufunc: np.ufunc, method: str, *inputs: Any, **words: Any) -> Any:
        """An operation on it is one on the whole array."""
        whole = (np.asarray(x) if isinstance(x, ComputedArray) else x for x in inputs)
        return getattr(ufunc, method)(*whole, **words)

    def __getattr__(self, name: str) -> Any:
        """What else an array can do, the whole array does."""
        if name.startswith("__"):
            raise AttributeError(name)
        return getattr(np.asarray(self), name)


class ComputedEgress(ComputedArray):
    """`Routes.egress`, computed: it gives columns as soon as rows.

    classes: how many classes its rows may name.
    """

    classes: int

    @abstractmethod
    def towards(self, destinations: NDArray[np.int64]) -> NDArray[Any]:
        """[S, D]: the egress values of all switches for each destination, by longest prefix."""

    @abstractmethod
    def routed(self) -> NDArray[np.int64]:
        """int64[S]: how many rows each switch has."""


def unless_large(array: ComputedArray, other: Any = None) -> Any:
    """A computed array, as one that is stored unless it has more than `STORED_CELLS` values.

    Args:
        array: see above.
        other: another array, which is read with it: the same is done as with that.
    """
    stored = array.size <= STORED_CELLS if other is None else isinstance(other, np.ndarray)
    return np.asarray(array) if stored else array


def blocks_of(array: Any) -> Iterator[tuple[int, NDArray[Any]]]:
    """All rows, with the number of the first: of a stored array at once, of others some a time."""
    return array.blocks() if isinstance(array, ComputedArray) else iter([(0, array)])
