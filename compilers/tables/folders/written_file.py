"""Files that are written whole or not at all.

A file is written beside its place as `.NAME.xxxxxxxx.polarfab` (a *part*), and renamed when it is
complete. Devices, pipes and descriptors cannot be replaced, so they are written to.
"""

from __future__ import annotations

import errno
import fcntl
import os
import re
import secrets
import stat
import sys
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, nullcontext, suppress
from pathlib import Path
from typing import BinaryIO

from inventory.problems import InputError

OTHER_FOLDER = "name another folder"
OTHER_FILE = "name another one"
"""What to do about a place that cannot be written, in messages."""
DISK_FULL = (errno.ENOSPC, errno.EDQUOT, None)
"""The error numbers of a full disk; NumPy raises its error without a number."""
PART = re.compile(r"\.(?P<place>.+)\.[0-9a-f]{8}\.polarfab", re.DOTALL)
"""The name of a part: `.build.0123abcd.polarfab` is for the place `build`."""
ANY_WRITES = stat.S_IWUSR | stat.S_IWGRP | stat.S_IWOTH
"""The mode bits by which user, group or others may write."""
STDOUT = Path("/proc/self/fd/1")
"""The path by which Linux names the standard output of this process."""


def part_of(place: Path) -> Path:
    """Return a new name beside a place, for a file or folder that is still being written."""
    return place.with_name(f".{place.name}.{secrets.token_hex(4)}.polarfab")


def place_of(path: Path) -> Path:
    """Return the path that a file in a part will have when the part is complete.

    >>> place_of(Path("lab/.build.0123abcd.polarfab/fabric.json")).as_posix()
    'lab/build/fabric.json'
    """
    matches = [(name, PART.fullmatch(name)) for name in path.parts]
    return Path(*(match["place"] if match else name for name, match in matches))


def put_file(
    file: Path, pieces: Iterable[bytes], todo: str = OTHER_FILE, folders: bool = False
) -> int:
    """Write a file whole or not at all, and return its size in bytes.

    A link in its place is replaced, never written through, unless it leads to a device, a pipe or
    a descriptor of this process (`/dev/stdout`): those are written to.

    Args:
        file: its path.
        pieces: the content, in order.
        todo: what a message advises where the file cannot be written.
        folders: whether to make the folder that it is in.

    Raises:
        BrokenPipeError: the file is a pipe that nothing reads.
        InputError: it cannot be written.
    """
    try:
        if stream := _stream(file):
            with stream:
                return sum(map(stream.write, pieces))
        _require_writable(file)
        with new_folders(file.parent) if folders else nullcontext():
            size = replace_file(file, pieces)
            with os_errors_say_replaced():
                flush(file.parent)
        return size
    except BrokenPipeError:
        raise
    except OSError as error:
        raise _unwritable(file, "a file that can be written", error, todo) from error


def _stream(file: Path) -> BinaryIO | None:
    """Open a descriptor, a pipe or a device for writing; None for files, which are replaced.

    Raises:
        OSError: it cannot be opened.
    """
    with suppress(FileNotFoundError):
        mode = file.stat().st_mode
        descriptors = Path("/proc/self/fd").resolve()
        # Follow links one at a time, to see whether one leads to a descriptor of this process.
        path = file
        while path.parent.resolve() != descriptors:
            if not path.is_symlink():
                return None if stat.S_ISREG(mode) or stat.S_ISDIR(mode) else file.open("wb")
            path = path.parent / path.readlink()
        sys.stdout.flush()
        return os.fdopen(os.dup(int(path.name)), "wb")
    return None


def _require_writable(file: Path) -> None:
    """Pass unless a folder or a read-only file is in the place of a file.

    Raises:
        OSError: a folder or a read-only file is there.
    """
    with suppress(FileNotFoundError):
        mode = file.lstat().st_mode
        if stat.S_ISDIR(mode):
            raise OSError(errno.EISDIR, "a folder")
        if stat.S_ISREG(mode) and not (mode & ANY_WRITES and os.access(file, os.W_OK)):
            raise OSError(errno.EACCES, "a read-only file")


def replace_file(file: Path, pieces: Iterable[bytes]) -> int:
    """Write a file beside its place and rename it, whatever is there; return its size in bytes.

    The new file gets the mode and the owner of the file that it replaces. The caller calls `flush`,
    so that the folder's entry is written to disk.

    Raises:
        OSError: it cannot be written.
    """
    part = part_of(file)
    try:
        with part.open("xb") as stream:
            lock(stream.fileno())
            size = sum(map(stream.write, pieces))
            stream.flush()
            with suppress(FileNotFoundError):
                replaced = file.lstat()
                if stat.S_ISREG(replaced.st_mode):
                    with suppress(PermissionError):
                        os.chown(part, replaced.st_uid, replaced.st_gid)
                    part.chmod(stat.S_IMODE(replaced.st_mode))
            os.fsync(stream.fileno())
        part.replace(file)
    finally:
        with suppress(OSError):
            part.unlink()
    return size


def lock(descriptor: int) -> bool | None:
    """Try to lock an open file or folder.

    Returns:
        Whether it is locked now, None where the file system has no locks.
    """
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    except OSError:
        return None
    return True


@contextmanager
def opened_folder(folder: Path) -> Iterator[int]:
    """Open a folder, and yield its descriptor.

    Raises:
        OSError: it cannot be opened.
    """
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        yield descriptor
    finally:
        os.close(descriptor)


def flush(folder: Path) -> None:
    """Have the entries of a folder written to disk.

    Raises:
        OSError: they could not be.
    """
    with opened_folder(folder) as descriptor:
        os.fsync(descriptor)


@contextmanager
def new_folders(folder: Path) -> Iterator[None]:
    """Make a folder and the folders above it, and remove them again if the block fails."""
    missing = [above for above in (folder, *folder.parents) if not os.path.lexists(above)]
    try:
        folder.mkdir(parents=True, exist_ok=True)
        yield
    except BaseException:
        for above in missing:
            with suppress(OSError):
                above.rmdir()
        raise
    with os_errors_say_replaced():
        for above in missing:
            flush(above.parent)


@contextmanager
def os_errors_say_replaced() -> Iterator[None]:
    """Add to errors of the block that the new file or folder is in its place already.

    Raises:
        OSError: something in the block failed.
    """
    try:
        yield
    except OSError as error:
        reason = f"the new one is in its place, but {_words(error)}"
        raise OSError(errno.EIO, reason) from error


def unwritable_folder(folder: Path, error: OSError, todo: str = OTHER_FOLDER) -> InputError:
    """Return the message that a folder cannot be written, for an error of the operating system.

    Args:
        folder: the folder.
        error: the error.
        todo: what the message advises; where the disk is full, also to make room.
    """
    if error.errno in DISK_FULL:
        todo = f"{todo}, or make room"
    return _unwritable(folder, "a folder that can be written", error, todo)


def _unwritable(path: Path, required: str, error: OSError, todo: str) -> InputError:
    """Return the message that a path cannot be written, with the reason."""
    return InputError.of(required, _reason(path, error), todo, str(place_of(path)))


def _reason(path: Path, error: OSError) -> str:
    """Return in words why nothing can be written to a path."""
    # The nearest path above it that exists, which may be no folder.
    above = next((folder for folder in path.parents if os.path.lexists(folder)), path)
    if not above.is_dir():
        return f"{above}, which is no folder"
    if error.errno == errno.ENOENT:
        if above == path.parent:
            return f"{above}, where nothing can be made"
        return f"no folder {path.parent}"
    return _words(error)


def _words(error: OSError) -> str:
    """Return an error of the operating system in words; NumPy's error of a full disk has none."""
    return error.strerror or f"no room ({error})"
