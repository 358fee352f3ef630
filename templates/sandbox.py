"""Templates that are not the package's: they print values, and end.

They cannot reach Python's internals, change what they are given, read files outside their folder,
or take more than `SECONDS` of processor time, `MORE_MEMORY` bytes or `MOST_BYTES` of text a file.
"""

from __future__ import annotations

import ctypes
import resource
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from jinja2 import Environment, FileSystemLoader, TemplateNotFound
from jinja2.exceptions import SecurityError
from jinja2.loaders import split_template_path
from jinja2.runtime import Context
from jinja2.sandbox import ImmutableSandboxedEnvironment

SECONDS = 10.0
"""Processor time that a file may take."""
MOST_BYTES = 1 << 26
"""Characters of a file that is rendered."""
MORE_MEMORY = 1 << 30
"""Bytes that rendering may take on top of what the process has."""
WATCHED = 0.05
"""Seconds between two looks at time and memory."""
ADDRESSES, RESIDENT = 0, 1
"""Columns of /proc/self/statm."""
MOST_SOURCE = 1 << 22
"""Bytes of a template."""
MOST_BITS = 1 << 12
"""Bits of a number that a template calculates."""
ARRAYS = frozenset({"size", "shape", "ndim", "T", "tolist", "item", "sum", "min", "max", "any"})
"""What a template may ask of an array; other methods read and write files and memory."""


class TrustedFolder(type(Path())):  # type: ignore[misc]
    """A folder of templates that may do whatever Python may."""


def require_inside(folder: Path, name: str) -> None:
    """Pass when a folder has a file of a template by this name, and no link leads out of it.

    Raises:
        OSError: it is outside the folder, no regular file, or too large.
    """
    file, root = (folder / name).resolve(), folder.resolve()
    if not file.is_relative_to(root):
        raise OSError(f"{file} is outside {root}")
    if not file.is_file():
        raise FileNotFoundError(f"{file} is no file")
    if file.stat().st_size > MOST_SOURCE:
        raise OSError(f"{file} has more than {MOST_SOURCE:,} bytes")


class InsideLoader(FileSystemLoader):
    """Templates of a folder; links do not lead out of it."""

    def get_source(
        self, environment: Environment, template: str
    ) -> tuple[str, str, Callable[[], bool]]:
        """The text of a template, its file, and whether that is as it was.

        Raises:
            TemplateNotFound: there is none in the folder.
        """
        for folder in map(Path, self.searchpath):
            try:
                require_inside(folder, "/".join(split_template_path(template)))
            except OSError as error:
                raise TemplateNotFound(template) from error
        return super().get_source(environment, template)


class Sandbox(ImmutableSandboxedEnvironment):
    """An environment whose templates print values and do nothing else."""

    intercepted_binops = frozenset({"*", "**"})

    def is_safe_attribute(self, obj: Any, attr: str, value: Any) -> bool:
        """Whether a template may see an attribute: no internals, no files."""
        room = type(obj).__module__.partition(".")[0]
        if room == "numpy":
            return attr in ARRAYS
        return room not in ("pathlib", "os", "io") and super().is_safe_attribute(obj, attr, value)

    def call_binop(self, context: Context, operator: str, left: Any, right: Any) -> Any:
        """Calculate, as far as numbers and texts stay small: large ones take for ever.

        Raises:
            SecurityError: they do not.
        """
        if isinstance(left, int) and isinstance(right, int):
            power = operator == "**"
            bits = (
                left.bit_length() * abs(right) if power else left.bit_length() + right.bit_length()
            )
            if bits > MOST_BITS:
                raise SecurityError(f"a number of more than {MOST_BITS:,} bits")
        if operator == "*":
            for text, times in ((left, right), (right, left)):
                sized = hasattr(text, "__len__") and isinstance(times, int)
                if sized and len(text) * times > MOST_BYTES:
                    raise SecurityError(f"a text of more than {MOST_BYTES:,} characters")
        return super().call_binop(context, operator, left, right)


def rendered(environment: Environment, name: str, variables: Mapping[str, Any]) -> str:
    """The text that a template which is not the package's prints.

    Raises:
        SecurityError: it takes too long, or prints too much.
    """
    pieces, size = list[str](), 0
    with limited():
        for piece in environment.get_template(name).generate(variables):
            size += len(piece)
            if size > MOST_BYTES:
                raise SecurityError(f"a file of more than {MOST_BYTES:,} characters")
            pieces.append(piece)
    return "".join(pieces)


class OutOfTimeError(SecurityError):
    """A template has taken its processor time."""

    def __init__(self) -> None:
        super().__init__(f"one that takes more than {SECONDS:g} s of processor time")


class _StopError(BaseException):
    """What the watcher raises in a thread; Jinja2 catches every `Exception` of a constant."""


class _TimeError(_StopError):
    """The time is over."""


class _SpaceError(_StopError):
    """The memory is."""


@contextmanager
def limited() -> Iterator[None]:
    """Bound the processor time of this thread, and the memory that is taken meanwhile.

    Where this is the only thread, the kernel bounds the memory. Beside others, whose memory is not
    to be bounded, a watcher sees how the process grows.

    Compiling needs it as well as rendering: Jinja2 calculates constants while it compiles.

    Raises:
        OutOfTimeError: the time is over.
        SecurityError: the memory is.
    """
    thread, done = threading.get_ident(), threading.Event()
    alone = threading.active_count() == 1
    clock = time.pthread_getcpuclockid(thread)
    end, most = time.clock_gettime(clock) + SECONDS, _memory(RESIDENT) + MORE_MEMORY

    def watch() -> None:
        while not done.wait(WATCHED):
            late = time.clock_gettime(clock) > end
            if late or (not alone and _memory(RESIDENT) > most):
                error = _TimeError if late else _SpaceError
                raised = ctypes.c_ulong(thread), ctypes.py_object(error)
                ctypes.pythonapi.PyThreadState_SetAsyncExc(*raised)  # at the thread's next step
                return

    watcher = threading.Thread(target=watch, daemon=True)
    soft, hard = resource.getrlimit(resource.RLIMIT_AS)
    watcher.start()
    try:
        try:
            if alone:
                wanted = _memory(ADDRESSES) + MORE_MEMORY
                limits = [each for each in (soft, hard) if each != resource.RLIM_INFINITY]
                resource.setrlimit(resource.RLIMIT_AS, (min([wanted, *limits]), hard))
            yield
        finally:
            done.set()
            watcher.join()
        if time.clock_gettime(clock) > end:
            raise _TimeError
    except _TimeError as error:
        raise OutOfTimeError from error
    except (_SpaceError, MemoryError) as error:
        raise SecurityError(f"one that takes more than {MORE_MEMORY:,} bytes") from error
    finally:  # the watcher interrupts once: where it did so above, this is still carried out
        resource.setrlimit(resource.RLIMIT_AS, (soft, hard))
        done.set()
        watcher.join()


def _memory(which: int) -> int:
    """Bytes that this process has, `ADDRESSES` or `RESIDENT`."""
    return int(Path("/proc/self/statm").read_text().split()[which]) * resource.getpagesize()
