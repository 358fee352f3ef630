"""Arrays whose rows are computed when they are read.

A fabric of 627,570 routers has 9 billion egress values. They follow from a few megabytes by rules
of its graph. So a build stores these megabytes, and has a `ComputedArray` in place of the array. It
computes just the rows that are read. The modules `line_rows` (PolarFly), `star_rows` (PolarStar)
and `packed_alternates` have such arrays.
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
"""About how many values are computed at once."""
STORED_CELLS = 1 << 24
"""The most values of an array that is stored although it could be computed.

A stored array is read faster.
"""


class ComputedArray(NDArrayOperatorsMixin, ABC):
    """A read-only array of S rows, computed when they are read.

    An index whose first part names rows computes only these rows. Everything else that NumPy can
    do with an array computes all rows first, as `numpy.asarray` does.

    >>> class Squares(ComputedArray):
    ...     def rows(self, number):
    ...         return number[:, None] ** np.arange(1, 3)
    >>> squares = Squares(None, (1000, 2), np.int64)
    >>> squares[7]
    array([ 7, 49])
    >>> int(squares.sum())
    333333000
    """

    group_size = 1
    """The number of consecutive rows that cost together about as much as one of them alone."""

    def __init__(self, packed: Any, shape: tuple[int, ...], dtype: Any) -> None:
        """Declare an array of a shape and type.

        Args:
            packed: a dataclass with the arrays to compute it from, which a build stores.
            shape: S, and the shape of a row.
            dtype: the type of the values.
        """
        self.packed, self.shape, self.dtype = packed, shape, np.dtype(dtype)

    @abstractmethod
    def rows(self, number: NDArray[np.int64]) -> NDArray[Any]:
        """Compute rows, [n, …], by their numbers, int64[n]."""

    @property
    def ndim(self) -> int:
        """The number of dimensions."""
        return len(self.shape)

    @property
    def size(self) -> int:
        """The number of values."""
        return prod(self.shape)

    def __len__(self) -> int:
        """S, the number of rows."""
        return self.shape[0]

    def __iter__(self) -> Iterator[NDArray[Any]]:
        """Yield row after row."""
        for _, block in self.blocks():
            yield from block

    def blocks(self) -> Iterator[tuple[int, NDArray[Any]]]:
        """Yield all rows in blocks, each with the number of its first row."""
        step = self._rows_of_a_block()
        for first in range(0, len(self), step):
            yield first, self.rows(np.arange(first, min(first + step, len(self))))

    def _rows_of_a_block(self) -> int:
        """Return how many rows a block has: a multiple of `group_size`."""
        rows = COMPUTED_CELLS_AT_ONCE // max(1, prod(self.shape[1:]))
        return max(1, rows // self.group_size) * self.group_size

    def __getitem__(self, index: Any) -> Any:
        """Return values as an array does; only rows that the first index names are computed."""
        first, *columns = index if isinstance(index, tuple) else (index,)
        if first is Ellipsis or first is None:
            return np.asarray(self)[index]
        if isinstance(first, int | np.integer):
            row = self.rows(np.array([range(len(self))[int(first)]]))[0]
            return row[tuple(columns)] if columns else row
        if isinstance(first, slice):
            block = self.rows(np.arange(len(self))[first])
            return block[(slice(None), *columns)] if columns else block
        # An array of row numbers, or a mask.
        number = np.arange(len(self))[np.asarray(first)]
        if not columns:
            return self.rows(number.ravel()).reshape(number.shape + self.shape[1:])
        if any(isinstance(part, slice) or part is None or part is Ellipsis for part in columns):
            return self[number][(*np.indices(number.shape, sparse=True), *columns)]
        return self._cells(np.broadcast_arrays(number, *columns))

    def _cells(self, index: Any) -> NDArray[Any]:
        """Return the values of single cells, as NumPy does when it is indexed with arrays.

        Each row is computed once, and no more rows at once than a block has.

        Args:
            index: arrays of one shape, one for each axis: row numbers, then column numbers.
        """
        number, *columns = (part.ravel() for part in index)
        values = np.empty((number.size, *self.shape[len(index) :]), self.dtype)
        rows, row_of_cell = np.unique(number, return_inverse=True)
        order = np.argsort(row_of_cell, kind="stable")
        step = self._rows_of_a_block()
        # Where the cells of each block of rows begin in `order`, and where the last ends.
        ends = np.searchsorted(row_of_cell[order], np.arange(0, len(rows) + step, step))
        for first, start, end in zip(range(0, len(rows), step), ends, ends[1:], strict=False):
            cells = order[start:end]
            block = self.rows(rows[first : first + step])
            columns_of_cells = (column[cells] for column in columns)
            values[cells] = block[(row_of_cell[cells] - first, *columns_of_cells)]
        return values.reshape(index[0].shape + values.shape[1:])

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> NDArray[Any]:
        """Compute the whole array."""
        if self._rows_of_a_block() >= len(self):
            return np.asarray(self.rows(np.arange(len(self))), dtype or self.dtype)
        whole = np.empty(self.shape, dtype or self.dtype)
        for first, block in self.blocks():
            whole[first : first + len(block)] = block
        return whole

    def __array_ufunc__(self, ufunc: np.ufunc, method: str, *inputs: Any, **options: Any) -> Any:
        """Apply an operation of NumPy to the whole array."""
        whole = (np.asarray(x) if isinstance(x, ComputedArray) else x for x in inputs)
        return getattr(ufunc, method)(*whole, **options)

    def __getattr__(self, name: str) -> Any:
        """Take any other attribute or method from the whole array."""
        if name.startswith("__"):
            raise AttributeError(name)
        return getattr(np.asarray(self), name)


class ComputedEgress(ComputedArray):
    """`Routes.egress`, computed by rows, or by columns with as little work."""

    classes: int
    """C, one more than the highest class that a row may name."""

    @abstractmethod
    def towards(self, destinations: NDArray[np.int64]) -> NDArray[Any]:
        """Return the egress values of all switches, [S, D], for destinations, int64[D].

        By longest-prefix match: a row for the destination goes before one for an aggregate.
        """

    @abstractmethod
    def row_counts(self) -> NDArray[np.int64]:
        """Count the rows of each switch, int64[S], without computing them."""


def unless_large(array: ComputedArray, like: Any = None) -> Any:
    """Return the array in NumPy's form, or as it is if it has more than `STORED_CELLS` values.

    Args:
        array: a computed array.
        like: an array that this function returned, and that is read together with this one: both
            are stored, or both are computed. Without it, the size decides.
    """
    stored = array.size <= STORED_CELLS if like is None else isinstance(like, np.ndarray)
    return np.asarray(array) if stored else array


def blocks_of(array: Any) -> Iterator[tuple[int, NDArray[Any]]]:
    """Yield all rows of an array in blocks, each with the number of its first row.

    A stored array is one block.
    """
    return array.blocks() if isinstance(array, ComputedArray) else iter([(0, array)])
