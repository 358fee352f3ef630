"""Compilation of inner loops by numba, once a machine."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar, cast

from compilers.forwarding.machine_code import keep_somewhere

F = TypeVar("F", bound=Callable[..., Any])


keep_somewhere()

import numba  # noqa: E402

compiled = cast("Callable[[F], F]", numba.njit(cache=True))
"""Machine code of a function of arrays and numbers, kept for the next process."""
inner = cast(
    "Callable[[F], F]", numba.njit(cache=True, no_cpython_wrapper=True, no_cfunc_wrapper=True)
)
"""The same, for compiled functions only: Python cannot call it, and it takes less time to make."""


def is_kept(loop: Callable[..., Any]) -> bool:
    """Whether an earlier process has left machine code of a loop as its source is now."""
    function, places = cast(Any, loop).py_func, cast(Any, loop)._cache.cache_path
    code, version = function.__code__, "".join(map(str, sys.version_info[:2]))
    source = Path(code.co_filename)
    name = f"{source.stem}.{function.__name__}-{code.co_firstlineno}.py{version}*.nbi"
    since = source.stat().st_mtime
    return any(each.stat().st_mtime > since for each in Path(places).glob(name))
