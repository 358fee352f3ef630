"""Compilation of inner loops by numba, once for each state of their sources."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar, cast

from compilers.forwarding.machine_code import digest_of, keep_somewhere

F = TypeVar("F", bound=Callable[..., Any])
SOURCES = digest_of("", sorted(Path(__file__).parent.glob("*.py")))
"""In the name of every loop: numba keeps machine code by that and the loop's own file, and one
calls those of other files."""

keep_somewhere()

import numba  # noqa: E402

FAST: dict[str, Any] = {"cache": True, "error_model": "numpy", "_nrt": False}
"""Loops make no arrays: to count references to those that they are given, at every call and for
every field of a tuple, takes most of the time. They divide by nothing that can be 0."""


def compiled(function: F) -> F:
    """Machine code of a function of arrays and numbers, kept for the next process."""
    function.__qualname__ += f"_{SOURCES}"
    return cast(F, numba.njit(**FAST)(function))


def inner(function: F) -> F:
    """The same, for compiled functions only: Python cannot call it, and it takes less time."""
    function.__qualname__ += f"_{SOURCES}"
    return cast(
        F,
        numba.njit(**FAST, no_cpython_wrapper=True, no_cfunc_wrapper=True, forceinline=True)(
            function
        ),
    )


def is_kept(loop: Callable[..., Any]) -> bool:
    """Whether an earlier process has left machine code of a loop as its source is now."""
    function, places = cast(Any, loop).py_func, cast(Any, loop)._cache.cache_path
    code, version = function.__code__, "".join(map(str, sys.version_info[:2]))
    name = f"{Path(code.co_filename).stem}.{function.__qualname__}-*.py{version}*.nbi"
    return any(Path(places).glob(name))
