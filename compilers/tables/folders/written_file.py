"""Files that are written whole or not at all: beside their place, then renamed to it.

What is not finished is called `.NAME.xxxxxxxx.polarfab`. Devices, pipes and descriptors are written
to, never replaced.
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

OTHER_FOLDER = "name another folder with -o"
OTHER_FILE = "name another one with -o"
FULL = (errno.ENOSPC, errno.EDQUOT, None)
"""What a full disk says; NumPy says it without a number."""
PART = re.compile(r"\.(?P<place>.+)\.[0-9a-f]{8}\.polarfab", re.DOTALL)
ANY_WRITES = stat.S_IWUSR | stat.S_IWGRP | stat.S_IWOTH
STDOUT = Path("/proc/self/fd/1")


def part_of(place: Path) -> Path:
    """A name beside a place for what is written, which nothing else has."""
    return place.with_name(f".{place.name}.{secrets.token_hex(4)}.polarfab")


def place_of(path: Path) -> Path:
    """The path that a file or folder in a part has once that takes its place."""
    matches = [(name, PART.fullmatch(name)) for name in path.parts]
    return Path(*(match["place"] if match else name for name, match in matches))


def put_file(
    file: Path, pieces: Iterable[bytes], todo: str = OTHER_FILE, folders: bool = False
) -> int:
    """Write a file whole or not at all; returns its bytes.

    A link in its place is replaced, never written through, unless it leads to a device, a pipe or
    a descriptor of this process (`/dev/stdout`): those are written to.

    Args:
        file: where to.
        pieces: the content, one after the other.
        todo: what to do where the file cannot be written.
        folders: make the folder that it is in.

    Raises:
        BrokenPipeError: nothing reads the pipe.
        InputError: it cannot be written.
    """
    try:
        if stream := _stream(file):
            with stream:
                return sum(map(stream.write, pieces))
        _require_writable(file)
        with new_folders(file.parent) if folders else nullcontext():
            size = replace_file(file, pieces)
            with in_place():
                flush(file.parent)
        return size
    except BrokenPipeError:
        raise
    except OSError as error:
        raise _unwritable(file, "a file that can be written", error, todo) from error


def _stream(file: Path) -> BinaryIO | None:
    """What is written to in a place and not replaced: a descriptor, a pipe or a device.

    Raises:
        OSError: it cannot be opened.
    """
    with suppress(FileNotFoundError):
        mode, here, descriptors = file.stat().st_mode, file, Path("/proc/self/fd").resolve()
        while here.parent.resolve() != descriptors:
            if not here.is_symlink():
                return None if stat.S_ISREG(mode) or stat.S_ISDIR(mode) else file.open("wb")
            here = here.parent / here.readlink()
        sys.stdout.flush()
        return os.fdopen(os.dup(int(here.name)), "wb")
    return None


def _require_writable(file: Path) -> None:
    """Pass unless a folder is there, or a file that is read-only for all.

    Raises:
        OSError: one is.
    """
    with suppress(FileNotFoundError):
        mode = file.lstat().st_mode
        if stat.S_ISDIR(mode):
            raise OSError(errno.EISDIR, "a folder")
        if stat.S_ISREG(mode) and not (mode & ANY_WRITES and os.access(file, os.W_OK)):
            raise OSError(errno.EACCES, "a read-only file")


def replace_file(file: Path, pieces: Iterable[bytes]) -> int:
    """Write a file beside its place and rename it, whatever is there; returns its bytes.

    It has the mode and the owner of the file that it replaces. `flush` has the folder keep the new
    name.

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
                if stat.S_ISREG((old := file.lstat()).st_mode):
                    with suppress(PermissionError):
                        os.chown(part, old.st_uid, old.st_gid)
                    part.chmod(stat.S_IMODE(old.st_mode))
            os.fsync(stream.fileno())
        part.replace(file)
    finally:
        with suppress(OSError):
            part.unlink()
    return size


def lock(descriptor: int) -> bool | None:
    """Lock what is open; whether it is locked now, None where the file system has no locks."""
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    except OSError:
        return None
    return True


@contextmanager
def opened_folder(folder: Path) -> Iterator[int]:
    """The descriptor of a folder.

    Raises:
        OSError: it cannot be opened.
    """
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        yield descriptor
    finally:
        os.close(descriptor)


def flush(folder: Path) -> None:
    """Have the names in a folder written.

    Raises:
        OSError: they could not be.
    """
    with opened_folder(folder) as descriptor:
        os.fsync(descriptor)


@contextmanager
def new_folders(folder: Path) -> Iterator[None]:
    """Make a folder and those above it; they go again where the work in it fails."""
    missing = [above for above in (folder, *folder.parents) if not os.path.lexists(above)]
    try:
        folder.mkdir(parents=True, exist_ok=True)
        yield
    except BaseException:
        for above in missing:
            with suppress(OSError):
                above.rmdir()
        raise
    with in_place():
        for above in missing:
            flush(above.parent)


@contextmanager
def in_place() -> Iterator[None]:
    """Say of what fails in here that the new file or folder is in its place all the same."""
    try:
        yield
    except OSError as error:
        reason = f"the new one is in its place, but {_words(error)}"
        raise OSError(errno.EIO, reason) from error


def unwritable_folder(folder: Path, error: OSError) -> InputError:
    """The refusal of a folder by the system as a message; of a full disk, with what to do."""
    todo = f"{OTHER_FOLDER}, or make room" if error.errno in FULL else OTHER_FOLDER
    return _unwritable(folder, "a folder that can be written", error, todo)


def _unwritable(path: Path, required: str, error: OSError, todo: str) -> InputError:
    return InputError.of(required, _reason(path, error), todo, str(place_of(path)))


def _reason(path: Path, error: OSError) -> str:
    """Why nothing can be made there: a folder above it that is none, or what the system says."""
    above = next((folder for folder in path.parents if os.path.lexists(folder)), path)
    if not above.is_dir():
        return f"{above}, which is no folder"
    if error.errno == errno.ENOENT:
        if above == path.parent:
            return f"{above}, where nothing can be made"
        return f"no folder {path.parent}"
    return _words(error)


def _words(error: OSError) -> str:
    return error.strerror or f"no room ({error})"
