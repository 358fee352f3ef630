"""Machine code of inner loops that are written in Python, made once a machine.

The loops are plain Python over arrays and numbers, and run as such where they are short. Where they
are long, numba translates the same source ahead of time into a shared library, which later
processes load in a millisecond and without numba. Until then loops of up to five seconds run as
Python, while a process in the background translates for later commands; longer ones wait for it.
Without a C compiler numba translates them while the program runs.
"""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import cached_property
from importlib import import_module
from importlib.machinery import EXTENSION_SUFFIXES, ExtensionFileLoader, ModuleSpec
from importlib.util import module_from_spec
from pathlib import Path
from stat import S_ISDIR, S_IWOTH
from time import time
from types import FunctionType, SimpleNamespace
from typing import Any, TypeVar

import numpy as np

from compilers.notes import note

F = TypeVar("F", bound=Callable[..., Any])

PYTHON_UP_TO = 400_000
"""The most packets that plain Python follows while there is no machine code, in five seconds."""
MAKING, FAILED = "making-", ".failed"
"""A folder in which a library is made, and a mark that it could not be: for a `DAY`."""
DAY = 86_400
LONGEST = 300
"""Seconds after which a process that makes machine code ends, whatever it waits for."""
BESIDE = Path(__file__).parent / "__pycache__"
"""The byte code of the source: who can write there can change that, too."""
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
            argument where that is a NamedTuple: the types of its fields, `Library.types`.
    """

    def mark(function: F) -> F:
        function.__dict__["loop"] = signature
        return function

    return mark


def digest_of(text: str, files: Iterable[Path]) -> str:
    """Sixteen hexadecimal digits of a text and of sources, in their order."""
    import hashlib

    digest = hashlib.sha256(text.encode())
    for file in files:
        digest.update(file.read_bytes())
    return digest.hexdigest()[:16]


@dataclass(frozen=True)
class Library:
    """The loops of some modules, translated together.

    name: of the library's file. modules: dotted names, those that are imported first. exported: the
    kernels among their loops, which take seconds each. first: the NamedTuple that `P` means in
    signatures, by its name in these modules, and its types.
    """

    name: str
    modules: tuple[str, ...]
    exported: tuple[str, ...]
    first: str
    types: str

    def kernels(self, packets: int) -> Any:
        """The functions marked by `kernel`, as attributes, to follow about so many packets.

        Where there is no machine code yet, few packets are followed in Python while another process
        makes it for the next command, and many wait for it.
        """
        choice = os.environ.get(CHOICE, "")
        if choice == "python":
            return self.python
        if choice != "jit" and (found := self._loaded()):
            return found
        if not choice and packets <= PYTHON_UP_TO:
            self._begin()
            return self.python
        if choice != "jit" and self.made():
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
            if cache:
                copy.__qualname__ += f"_{self._digest}"  # numba looks at a loop's own file alone
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
    def _digest(self) -> str:
        """Of all that the loops are made of."""
        files = (Path(str(import_module(name).__file__)) for name in (__name__, *self.modules))
        return digest_of(f"{np.__version__} {sys.version} {self.types} {self.exported}", files)

    @property
    def _file_name(self) -> str:
        return f"{self.name}-{self._digest}{EXTENSION_SUFFIXES[0]}"

    def _loaded(self) -> Any:
        """The functions of the library, None where there is none that loads."""
        if "_kernels" not in self.__dict__:
            found = (self._opened(folder / self._file_name) for folder in kept_in())
            if kernels := next(filter(None, found), None):
                self.__dict__["_kernels"] = kernels
        return self.__dict__.get("_kernels")

    def _opened(self, file: Path) -> Any:
        """The functions of a file; None where it does not load, or others could have written it."""
        with suppress(AttributeError, ImportError, OSError):  # of other loops after an upgrade
            if not _is_safe(file.parent):
                return None
            loader = ExtensionFileLoader(f"{self.name}_loops", str(file))
            module = module_from_spec(ModuleSpec(loader.name, loader, origin=str(file)))
            loader.exec_module(module)
            found = {n: (getattr(module, n), s) for n, s in self._signatures.items() if s}
            return SimpleNamespace(
                **{n: _spread(f) if "P" in s else f for n, (f, s) in found.items()}
            )
        return None

    @property
    def _file(self) -> Path | None:
        """Where the library is to be; None: it can be written nowhere, or could not be made."""
        folder = next(filter(_can_be_written, kept_in()), None)
        file = folder / self._file_name if folder else None
        return None if file and _gave_up(file) else file

    def _begin(self) -> None:
        """Have another process translate the loops for later ones; nothing waits for it.

        It is not this one's child, so neither Ctrl-C nor the end of this one ends it; it gives way
        to whatever else is to be done, and ends after `LONGEST` at the most. While another makes
        machine code there, none is begun: a later command will.
        """
        import subprocess

        file = None if self.__dict__.get("_begun") else self._file
        if file and not _taken(file.parent):
            words = ("/bin/sh", "-c", 'nice -n 5 "$@" </dev/null >/dev/null 2>&1 &', "sh")
            with suppress(OSError):
                command = (*words, *self._words(file))
                subprocess.run(command, check=False, start_new_session=True, cwd="/")
        self.__dict__["_begun"] = True

    def _words(self, file: Path) -> tuple[str, ...]:
        """The command that translates the loops into a file."""
        lists = (",".join(names) for names in (self.modules, self.exported))
        path = os.pathsep.join(str(Path(entry).absolute()) for entry in sys.path if entry)
        # Numba's helpers in C, which the loops hardly call, need not be fast.
        words = ("env", f"PYTHONPATH={path}", "CFLAGS=-O0 -g0", sys.executable, "-m")
        code = f"{__package__}.machine_code"
        return (*words, code, self.name, *lists, self.first, self.types, str(file))

    def made(self) -> bool:
        """Have another process translate the loops, which takes seconds; whether that went well."""
        import subprocess

        if self.__dict__.get("_failed") or self._loaded():
            return not self.__dict__.get("_failed")
        note(f"machine code of {self.name} walks is made, once on this machine, in about 10 s")
        if file := self._file:
            with suppress(OSError):
                subprocess.run(self._words(file), capture_output=True, check=False)
        self.__dict__["_failed"] = not self._loaded()
        return not self.__dict__["_failed"]

    def make(self, file: Path) -> None:
        """Translate the loops, unless they are, or another process does, for which this waits."""
        with one_at_a_time(file.parent):
            if self._opened(file):
                return
            try:
                self.translate(file)
            except Exception:
                file.with_suffix(FAILED).touch()
                raise

    def translate(self, file: Path) -> None:
        """Translate the loops into a library, in a process of its own; needs a C compiler."""
        import tempfile
        import warnings
        from shutil import rmtree
        from tempfile import TemporaryDirectory

        warnings.simplefilter("ignore")  # numba says that its compiler to libraries may change
        from numba.pycc import CC  # after the filter

        space = self._translated(cache=False)
        fields = getattr(self._functions.get(self.first), "_fields", ())
        for left in file.parent.glob(f"{MAKING}*"):  # by a process that was killed
            rmtree(left, ignore_errors=True)
        with TemporaryDirectory(prefix=MAKING, dir=file.parent) as folder:
            # What numba and the compiler write on the way is there, too, if this process is killed.
            tempfile.tempdir = os.environ["TMPDIR"] = folder
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
    """Where machine code may be: next to the source's byte code, in the user's cache, or in a
    temporary folder. Those that cannot be written are for reading only.
    """
    from tempfile import gettempdir

    folders = [BESIDE]
    with suppress(RuntimeError):
        folders.append(Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache", "polarfab"))
    return [*folders, Path(gettempdir(), f"polarfab-{os.getuid()}")]


def _is_safe(folder: Path) -> bool:
    """Whether what a folder has may run: it is next to the source, or is the user's own, and not
    everybody can write to it. So root takes none from the cache of the user who called sudo.
    """
    if folder == BESIDE:
        return True
    with suppress(OSError):
        status = folder.lstat()
        own = S_ISDIR(status.st_mode) and status.st_uid == os.getuid()
        return own and not status.st_mode & S_IWOTH
    return False


def _can_be_written(folder: Path) -> bool:
    with suppress(OSError):
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    return os.access(folder, os.W_OK) and _is_safe(folder)


def keep_somewhere() -> None:
    """Have numba keep machine code where a package that root installed, run by a user without a
    home, can keep it nowhere else: it tries NUMBA_CACHE_DIR, `__pycache__` and the user's cache.
    """
    from tempfile import mkdtemp

    places = [Path(__file__).parent]
    with suppress(RuntimeError):
        places.append(Path.home())
    if "NUMBA_CACHE_DIR" not in os.environ and not any(os.access(p, os.W_OK) for p in places):
        kept = kept_in()[-1]
        safe = str(kept) if _can_be_written(kept) else mkdtemp(prefix="polarfab-")
        os.environ["NUMBA_CACHE_DIR"] = safe


def _gave_up(file: Path) -> bool:
    """Whether a library could not be made in the last day, as without a C compiler."""
    with suppress(OSError):
        return time() - file.with_suffix(FAILED).stat().st_mtime < DAY
    return False


@contextmanager
def one_at_a_time(place: Path = Path(__file__)) -> Iterator[None]:
    """Processes that come here at once wait for the first: it translates for all.

    place: any file or folder that they all see.
    """
    import fcntl

    descriptor = os.open(place, os.O_RDONLY)
    try:
        with suppress(OSError):  # a file system without locks
            fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield
    finally:
        os.close(descriptor)


def _taken(place: Path) -> bool:
    """Whether a process is in `one_at_a_time`, or cannot know."""
    import fcntl

    descriptor = os.open(place, os.O_RDONLY)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        return True
    finally:
        os.close(descriptor)
    return False


def make_all() -> None:
    """Make the machine code that is not there yet; for whoever sets a machine or an image up."""
    for name in ("forwarding.program", "forwarding.many_packets", "proof.local.local_proof"):
        for value in vars(import_module(f"{__package__.rpartition('.')[0]}.{name}")).values():
            if isinstance(value, Library) and not value.made():
                raise SystemExit(f"no machine code of {value.name} walks: is there a C compiler?")


if __name__ == "__main__":
    if len(sys.argv) == 1:
        import_module(f"{__package__}.machine_code").make_all()
    else:
        signal.alarm(LONGEST)
        named, *listed = sys.argv[1:4]
        many, some = (tuple(text.split(",")) for text in listed)
        Library(named, many, some, *sys.argv[4:6]).make(Path(sys.argv[6]))
