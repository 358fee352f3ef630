"""Machine code of inner loops that are written in Python, made once a machine.

The loops are plain Python over arrays and numbers, and run as such where they are short. Where they
are long, numba translates the same source ahead of time into a shared library, which later
processes load in a millisecond and without numba. Without a C compiler numba translates them while
the program runs.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import cached_property
from importlib import import_module
from importlib.machinery import EXTENSION_SUFFIXES, ExtensionFileLoader, ModuleSpec
from importlib.util import module_from_spec
from pathlib import Path
from types import FunctionType, SimpleNamespace
from typing import Any, TypeVar

import numpy as np

from compilers.notes import note

F = TypeVar("F", bound=Callable[..., Any])

PYTHON_UP_TO = 20_000
"""The most packets that plain Python follows, in a quarter of a second."""
CHOICE = "POLARFAB_LOOPS"
"""The environment variable that chooses: python, jit (numba while it runs), or machine."""


def loop(function: F) -> F:
    """A function of arrays and numbers that others call in machine code."""
    function.__dict__["loop"] = ""
    return function


def kernel(signature: str) -> Callable[[F], F]:
    """The same, called from Python.

    Args:
        signature: the types of result and arguments, as numba writes them. `P` is the first
            argument where that is a NamedTuple: the types of its fields, `Program.TYPES`.
    """

    def mark(function: F) -> F:
        function.__dict__["loop"] = signature
        return function

    return mark


@dataclass(frozen=True)
class Library:
    """The loops of some modules, translated together.

    name: of the library's file. modules: dotted names, those that are imported first. exported: the
    kernels among their loops, which take seconds each. first: the NamedTuple that `P` stands for in
    signatures, by its name in these modules, and its types.
    """

    name: str
    modules: tuple[str, ...]
    exported: tuple[str, ...]
    first: str
    types: str

    def kernels(self, packets: int) -> Any:
        """The functions marked by `kernel`, as attributes, to follow about so many packets."""
        choice = os.environ.get(CHOICE, "")
        if choice == "python":
            return self.python
        if choice != "jit" and (found := self._loaded()):
            return found
        if not choice and packets <= PYTHON_UP_TO:
            return self.python
        if choice != "jit" and self._build():
            return self._loaded() or self.jit
        return self.jit

    @cached_property
    def _functions(self) -> dict[str, Any]:
        """What the modules define or import, in one place; marked functions among it."""
        found: dict[str, Any] = {}
        for name in self.modules:
            found |= vars(import_module(name))
        return found

    @property
    def _signatures(self) -> dict[str, str]:
        marked = {
            name: vars(f).get("loop") for name, f in self._functions.items() if _is_function(f)
        }
        return {
            name: signature if name in self.exported else ""
            for name, signature in marked.items()
            if signature is not None
        }

    @cached_property
    def python(self) -> Any:
        """The functions as they are written."""
        return SimpleNamespace(**{name: self._functions[name] for name in self._signatures})

    @cached_property
    def jit(self) -> Any:
        """The functions translated while the program runs, kept by numba for later processes."""
        with one_at_a_time():
            keep_somewhere()
            space = self._translated(cache=True)
            return SimpleNamespace(**{name: space[name] for name in self._signatures})

    def _translated(self, *, cache: bool) -> dict[str, Any]:
        """All names, those of marked functions for these in numba; kept: called from Python."""
        import numba

        space = dict(self._functions)
        for name, signature in self._signatures.items():
            source = self._functions[name]
            copy = FunctionType(source.__code__, space, name, source.__defaults__)
            copy.__qualname__, copy.__module__ = source.__qualname__, source.__module__
            inner = not (signature and cache)
            # What makes no arrays needs no count of references to those that it is given, which
            # would take longer than the rule itself.
            counts = "np" in source.__code__.co_names
            space[name] = numba.njit(
                cache=cache,
                nogil=True,
                _nrt=counts,
                no_cpython_wrapper=inner,
                no_cfunc_wrapper=inner,
            )(copy)
        return space

    @cached_property
    def _file_name(self) -> str:
        """The library's file, named by all that it is made of."""
        import hashlib

        digest = hashlib.sha256(
            f"{np.__version__} {sys.version} {self.types} {self.exported}".encode()
        )
        for name in (__name__, *self.modules):
            digest.update(Path(str(import_module(name).__file__)).read_bytes())
        return f"{self.name}-{digest.hexdigest()[:16]}{EXTENSION_SUFFIXES[0]}"

    def _loaded(self) -> Any:
        """The functions of the library, None where there is none that loads."""
        for folder in () if "_kernels" in self.__dict__ else kept_in():
            with suppress(ImportError, OSError):
                name, file = f"{self.name}_loops", str(folder / self._file_name)
                loader = ExtensionFileLoader(name, file)
                module = module_from_spec(ModuleSpec(name, loader, origin=file))
                loader.exec_module(module)
                found = {n: (getattr(module, n), s) for n, s in self._signatures.items() if s}
                self.__dict__["_kernels"] = SimpleNamespace(
                    **{n: _spread(f) if "P" in s else f for n, (f, s) in found.items()}
                )
                break
        return self.__dict__.get("_kernels")

    def _build(self) -> bool:
        """Translate the loops in another process; whether that went well, which takes seconds."""
        import subprocess

        if "_failed" in self.__dict__:
            return False
        with one_at_a_time():
            if self._loaded():
                return True  # made by another process while this one waited
            note(f"machine code of {self.name} walks is made, once on this machine, in about 10 s")
            lists = (",".join(names) for names in (self.modules, self.exported))
            words = (self.name, *lists, self.first, self.types)
            file = next(filter(_can_be_written, kept_in()), Path(os.devnull)) / self._file_name
            path = os.pathsep.join(entry for entry in sys.path if entry)
            with suppress(OSError):
                subprocess.run(
                    (sys.executable, "-m", "compilers.forwarding.machine_code", *words, str(file)),
                    capture_output=True,
                    check=False,
                    env={**os.environ, "PYTHONPATH": path},
                )
            if self._loaded():
                return True
        self.__dict__["_failed"] = True
        return False

    def translate(self, file: Path) -> None:
        """Translate the loops into a shared library; needs a C compiler."""
        import warnings
        from tempfile import TemporaryDirectory

        warnings.simplefilter("ignore")  # numba says that its compiler to libraries may change
        from numba.pycc import CC  # after the filter

        space = self._translated(cache=False)
        fields = getattr(self._functions.get(self.first), "_fields", ())
        with TemporaryDirectory(dir=file.parent) as folder:
            library = CC(f"{self.name}_loops")
            library.output_dir = folder
            library.output_file = file.name
            for name, signature in self._signatures.items():
                if signature:
                    whole = signature.replace("P", self.types)
                    if "P" in signature:
                        library.export(name, whole)(self._unpacked(space, name, fields))
                    else:
                        library.export(name, whole)(space[name].py_func)
            library.compile()
            Path(folder, file.name).replace(file)

    def _unpacked(self, space: dict[str, Any], name: str, fields: tuple[str, ...]) -> Any:
        """The function with the fields of its first argument one by one."""
        code = self._functions[name].__code__
        rest = code.co_varnames[1 : code.co_argcount]
        text = (
            f"def {name}_({', '.join((*fields, *rest))}):\n"
            f"    return {name}({self.first}({', '.join(fields)}), {', '.join(rest)})\n"
        )
        exec(text, space)  # noqa: S102 (names of our own functions and arguments)
        return space[f"{name}_"]


def _is_function(value: Any) -> bool:
    """Whether a value is a function of Python."""
    return isinstance(value, FunctionType)


def _spread(function: Callable[..., Any]) -> Callable[..., Any]:
    """The function that takes a tuple in place of its first arguments."""
    return lambda first, *rest: function(*first, *rest)


def kept_in() -> list[Path]:
    """Where machine code may be: beside the source's byte code, in the user's cache, or in a
    temporary folder of the user's own. Those that cannot be written are for reading only.
    """
    from tempfile import gettempdir

    folders = [Path(__file__).parent / "__pycache__"]
    with suppress(RuntimeError):
        folders.append(Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache", "polarfab"))
    mine = Path(gettempdir(), f"polarfab-{os.getuid()}")
    with suppress(OSError):
        mine.mkdir(mode=0o700, exist_ok=True)
        if mine.stat().st_uid == os.getuid() and not mine.is_symlink():
            folders.append(mine)
    return folders


def _can_be_written(folder: Path) -> bool:
    with suppress(OSError):
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    return os.access(folder, os.W_OK)


def keep_somewhere() -> None:
    """Have numba keep machine code where a package that root installed, run by a user without a
    home, can keep it nowhere else: it tries NUMBA_CACHE_DIR, `__pycache__` and the user's cache.
    """
    here, home = Path(__file__).parent, Path.home()
    if "NUMBA_CACHE_DIR" not in os.environ and not any(
        os.access(place, os.W_OK) for place in (here, home)
    ):
        os.environ["NUMBA_CACHE_DIR"] = str(kept_in()[-1])


@contextmanager
def one_at_a_time() -> Iterator[None]:
    """Processes that come here at once wait for the first: it translates for all."""
    import fcntl

    with Path(__file__).open() as file:
        with suppress(OSError):  # a file system without locks
            fcntl.flock(file, fcntl.LOCK_EX)
        yield


if __name__ == "__main__":
    named, *listed = sys.argv[1:4]
    many, some = (tuple(text.split(",")) for text in listed)
    Library(named, many, some, *sys.argv[4:6]).translate(Path(sys.argv[6]))
