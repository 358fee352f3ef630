"""Compilation of inner loops by numba, once a machine."""

from __future__ import annotations

import fcntl
import os
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, TypeVar, cast

F = TypeVar("F", bound=Callable[..., Any])


def _cache_somewhere() -> None:
    """Have numba keep machine code in a temporary folder where it can keep it nowhere else.

    It tries NUMBA_CACHE_DIR, `__pycache__` beside the source, then the user's cache; a package that
    root installed, run by a user without a home, has none of these.
    """
    here, home = Path(__file__).parent, Path.home()
    if "NUMBA_CACHE_DIR" not in os.environ and not any(
        os.access(place, os.W_OK) for place in (here, home)
    ):
        mine = Path(tempfile.gettempdir()) / f"polarfab-numba-{os.getuid()}"
        os.environ["NUMBA_CACHE_DIR"] = str(mine)


_cache_somewhere()

import numba  # noqa: E402

compiled = cast("Callable[[F], F]", numba.njit(cache=True))
"""Machine code of a function of arrays and numbers, kept for the next process."""
inner = cast(
    "Callable[[F], F]", numba.njit(cache=True, no_cpython_wrapper=True, no_cfunc_wrapper=True)
)
"""The same, for compiled functions only: Python cannot call it, and it takes less time to make."""


@contextmanager
def one_compiles() -> Iterator[None]:
    """Processes that come here at once wait for the first: it compiles for all, taking seconds."""
    with Path(__file__).open() as file:
        with suppress(OSError):  # a file system without locks
            fcntl.flock(file, fcntl.LOCK_EX)
        yield


def is_kept(loop: Callable[..., Any]) -> bool:
    """Whether an earlier process has left machine code of a loop as its source is now."""
    function, places = cast(Any, loop).py_func, cast(Any, loop)._cache.cache_path
    code, version = function.__code__, "".join(map(str, sys.version_info[:2]))
    source = Path(code.co_filename)
    name = f"{source.stem}.{function.__name__}-{code.co_firstlineno}.py{version}*.nbi"
    since = source.stat().st_mtime
    return any(each.stat().st_mtime > since for each in Path(places).glob(name))
