"""Arrays whose copies share the memory of all that is not changed in them.

A controller repairs the tables of a fabric again and again, and each repair changes few rows of
large arrays. So `compilers.routing.link_repair` makes the copies that it changes with
`CopyOnWrite`.
"""

from __future__ import annotations

import os
from contextlib import suppress
from mmap import ACCESS_COPY, mmap
from typing import Any
from weakref import finalize

import numpy as np
from numpy.typing import NDArray


class CopyOnWrite:
    """An array whose copies take memory and time only for what is changed in them.

    The array is in a file in memory (memfd_create(2)), and every copy is a private mapping of that
    file. A process that may open no more files gets ordinary copies.
    """

    def __init__(self, array: NDArray[Any]) -> None:
        self._shape, self._dtype, self._original = array.shape, array.dtype, array
        self._file: int | None = None
        with suppress(OSError):
            file = os.memfd_create("array")
            finalize(self, os.close, file)
            os.ftruncate(file, max(array.nbytes, 1))  # an empty file cannot be mapped
            self._original = self._view_of(mmap(file, 0))
            self._original[...] = array
            self._file = file
        if self._file is None:
            self._original = array.copy()

    def copy(self) -> NDArray[Any]:
        """Return a copy that can be written to, independent of other copies."""
        if self._file is not None:
            with suppress(OSError):  # a mapping takes a file descriptor, too
                return self._view_of(mmap(self._file, 0, access=ACCESS_COPY))
        return self._original.copy()

    def _view_of(self, memory: mmap) -> NDArray[Any]:
        """Return the array in mapped memory, without a copy."""
        return np.ndarray(self._shape, self._dtype, memory)
