"""Files and folders that take their place whole: written beside it, flushed, then exchanged.

A part is `.NAME.xxxxxxxx.part` beside NAME, locked while it is written, so that what a killed
process left can be told from work under way (`stale_parts`). A folder in the place
and its part change names in one step; at every moment NAME is the old one or the new one.
"""

from __future__ import annotations

import ctypes
import errno
import fcntl
import os
import secrets
import shlex
import shutil
import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from threading import Thread
from typing import TypeVar

from inventory.problems import InputError

OTHER_FOLDER = "name another folder with -o"
OTHER_FILE = "name another one with -o"
AT_FDCWD, RENAME_EXCHANGE = -100, 2
FULL = (errno.ENOSPC, errno.EDQUOT, None)
"""What a full disk says; NumPy says it without a number."""
NO_EXCHANGE = (errno.ENOSYS, errno.EINVAL, errno.ENOTSUP)
"""What a kernel or a file system says that cannot exchange two names."""
HURRY = 1.0
"""Seconds for removing a part after Ctrl-C: thousands of files may take a busy disk longer."""
T = TypeVar("T")


def put_file(
    file: Path, pieces: Iterable[bytes], todo: str = OTHER_FILE, folders: bool = False
) -> int:
    """Write a file whole or not at all; returns its bytes.

    A link in its place is replaced, never written through. A pipe or a device is written to.

    Args:
        file: where to.
        pieces: the content, one after the other.
        todo: what to do where the file cannot be written.
        folders: make the folder that it is in.

    Raises:
        InputError: it cannot be written.
    """
    try:
        if folders:
            file.parent.mkdir(parents=True, exist_ok=True)
        if file.exists() and not file.is_file() and not file.is_dir():
            with file.open("wb") as stream:
                return sum(map(stream.write, pieces))
        return replace_file(file, pieces)
    except OSError as error:
        raise _unwritable(file, "a file that can be written", error, todo) from error


def replace_file(file: Path, pieces: Iterable[bytes]) -> int:
    """Write a file beside a place and rename it, whatever is there; returns its bytes.

    Raises:
        OSError: it cannot be written.
    """
    with _part(file) as beside:
        with open(beside, "xb", opener=_locked) as stream:
            size = sum(map(stream.write, pieces))
            stream.flush()
            os.fsync(stream.fileno())
            beside.replace(file)
        _flush(file.parent)
    return size


def put_folder(
    folder: Path,
    fill: Callable[[Path], T],
    keep: Callable[[Path], Path | None] = lambda _: None,
) -> T:
    """Have `fill` write a new folder, then put it in the place of `folder`; returns its result.

    Args:
        folder: the place; links on the way to it stay.
        fill: writes into the folder that it is given, empty and beside the place.
        keep: where the folder that was in the place goes; None to remove it.

    Raises:
        InputError: it cannot be written.
    """
    place = folder.resolve()  # a link stays one; `.` has no name to write beside
    try:
        place.parent.mkdir(parents=True, exist_ok=True)
        with _part(place) as beside:
            beside.mkdir()
            if place.is_dir():
                shutil.copymode(place, beside)
            with _open_folder(beside) as descriptor:
                _lock(descriptor)
                result = fill(beside)
                _flush_all(descriptor)
                exchange(beside, place)
            _flush(place.parent)
            if beside.exists() and (kept := keep(beside)):
                exchange(beside, kept)
                _flush(place.parent)
    except OSError as error:
        raise unwritable_folder(folder, error) from error
    return result


def exchange(new: Path, place: Path) -> None:
    """Put a folder in a place, and what was there in its own, in one step.

    Where the file system has no such step it takes three, and between the first and the second
    the old folder is `.NAME.xxxxxxxx.old`; `polarfab gc` puts it back.

    Raises:
        OSError: it cannot be renamed.
    """
    if not os.path.lexists(place):
        new.rename(place)
        return
    sys.audit("os.rename", new, place, -1, -1)
    try:
        _exchange(new, place)
    except OSError as error:
        if error.errno not in NO_EXCHANGE:
            raise
        old = beside_of(place, "old")
        place.rename(old)
        new.rename(place)
        old.rename(new)


def _exchange(one: Path, other: Path) -> None:
    rename = getattr(ctypes.CDLL(None, use_errno=True), "renameat2", None)
    if rename is None:
        raise OSError(errno.ENOSYS, os.strerror(errno.ENOSYS))
    if rename(AT_FDCWD, os.fsencode(one), AT_FDCWD, os.fsencode(other), RENAME_EXCHANGE):
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number), str(other))


def beside_of(place: Path, kind: str) -> Path:
    """A name beside a place that nothing else has: `.NAME.xxxxxxxx.KIND`."""
    return place.with_name(f".{place.name}.{secrets.token_hex(4)}.{kind}")


@contextmanager
def _part(place: Path) -> Iterator[Path]:
    """A name for a part, which is removed at the end; after Ctrl-C as far as that is quick."""
    beside = beside_of(place, "part")
    try:
        yield beside
    except (KeyboardInterrupt, SystemExit) as end:
        remover = Thread(target=remove, args=(beside,), daemon=True)
        remover.start()
        remover.join(HURRY)
        if remover.is_alive():
            end.add_note(f"{beside} is not removed yet: polarfab gc {shlex.quote(str(place))}")
        raise
    except BaseException:
        remove(beside)
        raise
    remove(beside)


def remove(path: Path) -> None:
    """Remove a file, a link, or a folder with all in it, as far as that is possible."""
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path, ignore_errors=True)
        return
    with suppress(OSError):
        path.unlink()


def _locked(path: str, flags: int) -> int:
    """Open a part and lock it: `stale_parts` leaves alone what is locked."""
    descriptor = os.open(path, flags | os.O_NOFOLLOW, 0o666)
    _lock(descriptor)
    return descriptor


def _lock(descriptor: int) -> None:
    with suppress(OSError):  # a file system without locks
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)


def _flush_all(folder: int) -> None:
    """Have the file system of an open folder write everything: one call, however many files."""
    if sync := getattr(ctypes.CDLL(None), "syncfs", None):
        sync(folder)
    else:
        os.sync()


def _flush(folder: Path) -> None:
    """Have the names in a folder written."""
    with _open_folder(folder) as descriptor:
        os.fsync(descriptor)


@contextmanager
def _open_folder(folder: Path) -> Iterator[int]:
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        yield descriptor
    finally:
        os.close(descriptor)


def unwritable_folder(folder: Path, error: OSError) -> InputError:
    """The refusal of a folder by the system as a message; of a full disk, with what to do."""
    todo = f"{OTHER_FOLDER}, or make room" if error.errno in FULL else OTHER_FOLDER
    return _unwritable(folder, "a folder that can be written", error, todo)


def _unwritable(path: Path, required: str, error: OSError, todo: str) -> InputError:
    return InputError.of(required=required, given=_reason(path, error), todo=todo, file=str(path))


def _reason(path: Path, error: OSError) -> str:
    """Why nothing can be made there: a folder above it that is none, or what the system says."""
    above = next((folder for folder in path.parents if os.path.lexists(folder)), path)
    if not above.is_dir():
        return f"{above}, which is no folder"
    if error.errno == errno.ENOENT:
        there = above == path.parent
        return f"{above}, where nothing can be made" if there else f"no folder {path.parent}"
    return error.strerror or f"no room ({error})"
