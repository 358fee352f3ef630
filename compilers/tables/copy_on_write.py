"""Copies of large arrays that share all pages but those that are written to."""

from __future__ import annotations

import os
from contextlib import suppress
from mmap import ACCESS_COPY, mmap
from typing import Any
from weakref import finalize

import numpy as np
from numpy.typing import NDArray


class CopyOnWrite:
    """An array whose copies cost what is changed in them, not what it holds.

    It is in a file in memory (memfd_create(2)), and every copy is a private mapping of that. A
    process that may open no more files gets copies of its own.
    """

    def __init__(self, array: NDArray[Any]) -> None:
        self._shape, self._dtype, self._whole = array.shape, array.dtype, array
        self._file: int | None = None
        with suppress(OSError):
            file = os.memfd_create("array")
            finalize(self, os.close, file)
            os.ftruncate(file, max(array.nbytes, 1))  # of an empty file nothing can be mapped
            self._whole = self._over(mmap(file, 0))
            self._whole[...] = array
            self._file = file
        if self._file is None:
            self._whole = array.copy()

    def copy(self) -> NDArray[Any]:
        """A copy that can be written to, independent of others."""
        if self._file is not None:
            with suppress(OSError):  # a mapping takes a file descriptor, too
                return self._over(mmap(self._file, 0, access=ACCESS_COPY))
        return self._whole.copy()

    def _over(self, memory: mmap) -> NDArray[Any]:
        return np.ndarray(self._shape, self._dtype, memory)
