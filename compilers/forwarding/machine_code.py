"""Run inner loops as Python or as machine code of numba, whichever is faster.

A *loop* is a plain Python function over arrays and numbers, marked by `loop`. `for_packets` decides
how it runs. With little to do it runs as Python. With much to do numba translates the same source,
once on a machine, which takes some seconds.

A *dispatcher* is what numba makes of a function: it holds machine code for the types of arguments
for which it was compiled, and compiles more when it is asked to.

Numba caches the machine code in `__pycache__` next to the source, or in the user's cache if that
folder cannot be written. To see whether a cached file is stale, numba looks only at the file of the
loop, and not at the loops that it calls. So the name of a cached file has a digest of all sources
that the loop is made of (`_digest`).
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from numbers import Number
from pathlib import Path
from pickle import UnpicklingError
from types import FunctionType
from typing import Any, TypeVar, cast

from compilers.notes import note
from inventory.problems import InputError

F = TypeVar("F", bound=Callable[..., Any])

PYTHON_UP_TO = 400_000
"""The most packets that plain Python follows, in five seconds."""
LOOPS_VARIABLE = "POLARFAB_LOOPS"
"""The environment variable that says for all loops how they run."""
LOOPS_VALUES = ("python", "machine")
"""The values that the environment variable may have."""

ERRORS_OF_DAMAGE = (
    UnpicklingError,
    EOFError,
    AttributeError,
    ImportError,
    IndexError,
    KeyError,
    TypeError,
    ValueError,
)
"""What numba raises where a cached file of machine code is damaged."""

ONLY_CALLED = {"no_cpython_wrapper": True, "no_cfunc_wrapper": True}
"""Options of numba for loops that only other loops call.

They need no wrappers for calls from Python and C, which would take most of the translation's time.
"""
CACHED = {"cache": True, "no_cfunc_wrapper": True}
"""Options of numba for loops that Python calls. C calls none, so they need no wrapper for it."""
NOT_CACHED = CACHED | {"cache": False}
"""The same where no folder for numba's cache can be written."""


def loop(function: F) -> F:
    """Mark a function over arrays and numbers as one that numba can translate.

    It may call functions that are marked, too, and functions of numpy that numba knows. It should
    assign numbers to places of an array, not rows or lists of places: with the first assignment of
    an array, numba translates its own functions for texts, too, which takes seconds.
    """
    function.__dict__["loop"] = {}
    return function


def inlined_loop(function: F) -> F:
    """Mark a loop whose machine code becomes part of those that call it."""
    function.__dict__["loop"] = {"forceinline": True}
    return function


def for_packets(packets: int, function: F) -> F:
    """A loop, ready for so many packets: the function itself, or its machine code.

    Args:
        packets: how many packets the loop is to follow, or other work that takes as long.
        function: marked by `loop`.

    Raises:
        InputError: the environment variable `POLARFAB_LOOPS` is neither `python` nor `machine`.
    """
    choice = os.environ.get(LOOPS_VARIABLE) or ("python" if packets <= PYTHON_UP_TO else "machine")
    if choice not in LOOPS_VALUES:
        todo = "unset the environment variable: polarfab chooses by the size of the fabric"
        raise InputError.of(" or ".join(LOOPS_VALUES), choice, todo, key=LOOPS_VARIABLE)
    return function if choice == "python" else compiled(function)


def compiled(function: F) -> F:
    """A loop in machine code, read or made at the first call with arguments of new types."""

    def call(*arguments: Any) -> Any:
        """Call the machine code for the types of these arguments."""
        return compiled_for(function, *arguments)(*arguments)

    return cast(F, call)


def compiled_for(function: F, *arguments: Any) -> F:
    """A loop in machine code, for arguments of the same types as the given ones."""
    by_signatures = function.__dict__.setdefault("by_signatures", {})
    signatures = tuple(map(_signature, arguments))
    if signatures not in by_signatures:
        from numba import typeof

        by_types = function.__dict__.setdefault("by_types", {})
        types = tuple(map(typeof, arguments))
        if types not in by_types:
            by_types[types] = _machine_code(function, types)
        by_signatures[signatures] = by_types[types]
    return cast(F, by_signatures[signatures])


def _signature(value: object) -> object:
    """A value that is equal for arguments of equal numba types, computed faster than by numba.

    >>> _signature(1) == _signature(2), _signature(1) == _signature(1.5)
    (True, False)
    """
    import numpy as np  # not at the top: `polarfab --help` does without

    if isinstance(value, np.ndarray):
        flags = value.flags
        layout = flags.c_contiguous, flags.f_contiguous, flags.writeable, flags.aligned
        return value.dtype, value.ndim, layout
    if isinstance(value, tuple):
        return type(value), tuple(map(_signature, value))
    return type(value)


def _machine_code(function: Callable[..., Any], types: tuple[Any, ...]) -> Any:
    """A loop in machine code for arguments of these types."""
    try:
        with _one_at_a_time(function), _garbage_collector_off():
            return _cached(function, types)
    except (RuntimeError, OSError):  # nothing can be cached, as on a full disk
        note("machine code cannot be kept: set NUMBA_CACHE_DIR to a folder that can be written")
        return _dispatcher_of(function, "", NOT_CACHED)  # for this process alone


def _cached(function: Callable[..., Any], types: tuple[Any, ...]) -> Any:
    """Machine code from numba's cache on this machine, to which it is added if it is not there.

    A cached file that a power failure has damaged is made again.

    Raises:
        RuntimeError, OSError: nothing can be cached.
    """
    name, suffix = function.__name__, f"_{_digest(function)}"
    dispatcher = _caching_dispatcher(function, suffix)
    folder, files = Path(dispatcher.stats.cache_path), f"*.{name}{suffix}-*"
    if not any(folder.glob(f"{files}.nbc")):
        note(f"machine code of {name} is made, once on this machine, in up to half a minute")
    try:
        dispatcher.compile(types)
    except ERRORS_OF_DAMAGE:
        note(f"machine code of {name} was damaged in {folder}; it is made again")
        for file in folder.glob(f"{files}.nb[ci]"):
            file.unlink()
        dispatcher = _caching_dispatcher(function, suffix)
        dispatcher.compile(types)
    return dispatcher


def _caching_dispatcher(function: Callable[..., Any], suffix: str) -> Any:
    """The dispatcher of a loop, which keeps machine code in numba's cache.

    Args:
        function: the loop.
        suffix: of the name under which numba caches its machine code.

    Raises:
        RuntimeError: numba finds no folder for its cache.
    """
    return _dispatcher_of(function, suffix, CACHED)


def _dispatcher_of(function: Callable[..., Any], suffix: str, options: dict[str, bool]) -> Any:
    """The dispatcher of a copy of a loop, in which dispatchers stand for the loops that it calls.

    A loop that is called by several loops has one dispatcher for all of them.

    Args:
        function: the loop.
        suffix: of the copy's name.
        options: of numba's compiler.
    """
    import numba

    globals_of_copy = dict(function.__globals__)
    for name, called in _called_loops(function).items():
        if "dispatcher" not in vars(called):
            vars(called)["dispatcher"] = _dispatcher_of(called, "", ONLY_CALLED)
        globals_of_copy[name] = vars(called)["dispatcher"]
    copy = FunctionType(function.__code__, globals_of_copy, function.__name__)
    copy.__qualname__, copy.__module__ = function.__qualname__ + suffix, function.__module__
    translate = numba.njit(
        nogil=True,
        error_model="numpy",  # a division by zero gives inf or nan, as in arrays
        # NRT is numba's runtime, which counts the references to arrays. A loop that makes no arrays
        # needs no count of those that it is given. It would take longer than the rule itself.
        _nrt=_makes_arrays(function),
        **options | vars(function)["loop"],
    )
    dispatcher = translate(copy)
    _widen_integers(dispatcher)
    return dispatcher


def _widen_integers(dispatcher: Any) -> None:
    """Have a loop take all integers from other loops as integers of 64 bits.

    Numba asks a dispatcher for its `get_call_template` where another loop calls it, with the types
    of the arguments there. Each width of an integer, and each constant, would get machine code of
    its own, and translating a loop takes seconds.
    """
    template_for = dispatcher.get_call_template

    def get_call_template(types: tuple[Any, ...], keyword_types: Any) -> Any:
        """The template for the wide types."""
        return template_for(tuple(map(_wide, types)), keyword_types)

    dispatcher.get_call_template = get_call_template


def _wide(type_of: Any) -> Any:
    """The type by which a loop takes a number from another loop: integers have 64 bits."""
    from numba import types

    plain = types.unliteral(type_of)
    narrow = isinstance(plain, types.Integer) and plain != types.uint64
    return types.int64 if narrow else plain


def _makes_arrays(function: Callable[..., Any]) -> bool:
    """Whether a loop, or one that it calls, makes arrays."""
    if not {"empty", "full", "zeros"}.isdisjoint(function.__code__.co_names):
        return True
    return any(_makes_arrays(called) for called in _called_loops(function).values())


def _globals(function: Callable[..., Any]) -> dict[str, Any]:
    """The global names that a function reads, with their values."""
    from dis import get_instructions

    names = {
        instruction.argval
        for instruction in get_instructions(function)
        if instruction.opname == "LOAD_GLOBAL"
    }
    return {name: value for name, value in function.__globals__.items() if name in names}


def _called_loops(function: Callable[..., Any]) -> dict[str, Callable[..., Any]]:
    """The loops that a loop calls, by their names in its module."""
    return {
        name: value
        for name, value in _globals(function).items()
        if isinstance(value, FunctionType) and "loop" in vars(value)
    }


@contextmanager
def _garbage_collector_off() -> Iterator[None]:
    """Turn Python's garbage collector off, if it is on.

    A translation makes millions of objects and next to no garbage. Looking for it takes a tenth of
    the time.
    """
    import gc

    was_on = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_on:
            gc.enable()


def _digest(function: Callable[..., Any]) -> str:
    """Sixteen hexadecimal digits of what a loop is made of.

    These are all sources in the folders of the loop and of those that it calls, and the numbers
    that they take from elsewhere. Numba itself compares the file of the loop alone.
    """
    import hashlib
    import sys

    reached, folders, numbers = [function], set[Path](), set[str]()
    for loop_function in reached:  # gets longer below
        reached += (
            called for called in _called_loops(loop_function).values() if called not in reached
        )
        folders.add(Path(loop_function.__code__.co_filename).parent)
        values = _globals(loop_function).items()
        numbers |= {f"{name} {value!r}" for name, value in values if isinstance(value, Number)}
    digest = hashlib.sha256(f"{sys.version} {sorted(numbers)}".encode())
    for file in sorted(file for folder in folders for file in folder.glob("*.py")):
        digest.update(file.read_bytes())
    return digest.hexdigest()[:16]


@contextmanager
def _one_at_a_time(function: Callable[..., Any]) -> Iterator[None]:
    """Lock the file of a loop, so that one process translates it and the others wait for it.

    Loops of other files can be translated meanwhile.
    """
    import fcntl

    descriptor = os.open(function.__code__.co_filename, os.O_RDONLY)
    try:
        with suppress(OSError):  # a file system without locks
            fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield
    finally:
        os.close(descriptor)
