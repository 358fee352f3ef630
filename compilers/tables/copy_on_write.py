"""Copies of large arrays that share all pages but those that are written to."""

from __future__ import annotations

import os
from mmap import ACCESS_COPY, mmap
from typing import Any
from weakref import finalize

import numpy as np
from numpy.typing import NDArray


class CopyOnWrite:
    """An array whose copies cost what is changed in them, not what it holds.

    It is in a file in memory (memfd_create(2)), and every copy is a private mapping of that.
    """

    def __init__(self, array: NDArray[Any]) -> None:
        self._shape, self._dtype = array.shape, array.dtype
        self._file = os.memfd_create("array")
        finalize(self, os.close, self._file)
        os.ftruncate(self._file, max(array.nbytes, 1))  # nothing can be mapped of an empty file
        self._over(mmap(self._file, 0))[...] = array

    def copy(self) -> NDArray[Any]:
        """A copy that can be written to, independent of others."""
        return self._over(mmap(self._file, 0, access=ACCESS_COPY))

    def _over(self, memory: mmap) -> NDArray[Any]:
        return np.ndarray(self._shape, self._dtype, memory)
