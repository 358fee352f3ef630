"""The steps of which the replacement of a folder is made: lock, exchange, remove, link.

`replaced_folder` puts a new folder in a place by them, and `leftover_parts` removes what a killed
process left. Two folders exchange their names by one system call of Linux.
"""

from __future__ import annotations

import ctypes
import errno
import os
import shutil
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from compilers.tables.folders.written_file import lock, opened_folder, os_errors_say_replaced

GIT = ".git"
"""The folder of a git repository, which a user may keep in a folder of polarfab's files."""
LOCK_TIMEOUT, LOCK_POLL = 60.0, 0.05
"""Seconds: how long to wait for a folder that another command has locked, and between attempts."""
AT_FDCWD, RENAME_EXCHANGE = -100, 2
"""Constants of the system call renameat2: relative to the working directory; exchange the two."""
NO_EXCHANGE = (errno.ENOSYS, errno.EINVAL, errno.ENOTSUP)
"""The errors of a kernel or a file system that cannot exchange two names."""


def exchange_names(new: Path, place: Path) -> None:
    """Exchange the names of two folders in one step.

    Where the file system cannot do that, it takes three renames. Between the first two nothing is
    in the place; if the process is killed then, `remove_parts` puts the old folder back.

    Raises:
        OSError: they cannot be renamed.
    """
    paths = (AT_FDCWD, os.fsencode(new), AT_FDCWD, os.fsencode(place))
    try:
        _call_libc("renameat2", *paths, RENAME_EXCHANGE)
    except OSError as error:
        if error.errno not in NO_EXCHANGE:
            raise
        place.rename(aside := aside_path(place))
        try:
            new.rename(place)
        except OSError:
            aside.rename(place)
            raise
        with os_errors_say_replaced():
            aside.rename(new)


def aside_path(place: Path) -> Path:
    """Return the name that the old folder has while it is exchanged in three renames."""
    return place.with_name(f".{place.name}.aside")


def flush_all(folder: Path) -> None:
    """Have the file system of a folder write everything to disk: one call for any number of files.

    Raises:
        OSError: it could not.
    """
    with opened_folder(folder) as descriptor:
        _call_libc("syncfs", descriptor)


def _call_libc(name: str, *arguments: object) -> None:
    """Call a function of the C library that returns 0 if it succeeds.

    Raises:
        OSError: it fails, or the library has no such function.
    """
    function = getattr(ctypes.CDLL(None, use_errno=True), name, None)
    if function is None or function(*arguments):
        code = ctypes.get_errno() if function else errno.ENOSYS
        raise OSError(code, os.strerror(code))


def move_git(old: Path, place: Path) -> None:
    """Move the user's `.git` from the folder that left a place to the folder that is there now."""
    if os.path.lexists(old / GIT) and not os.path.lexists(place / GIT):
        (old / GIT).rename(place / GIT)


@contextmanager
def locked_folder(folder: Path) -> Iterator[None]:
    """Lock a folder, so that no other command exchanges or removes anything in it meanwhile.

    Waits where another command has locked it.

    Raises:
        OSError: it cannot be opened, or is still locked after `LOCK_TIMEOUT` seconds.
    """
    deadline = time.monotonic() + LOCK_TIMEOUT
    with opened_folder(folder) as descriptor:
        while lock(descriptor) is False:  # None: the file system has no locks, so nobody has one
            if time.monotonic() > deadline:
                reason = f"a folder that another command has held for {LOCK_TIMEOUT:.0f} s"
                raise OSError(errno.EBUSY, reason, str(folder))
            time.sleep(LOCK_POLL)
        yield


def remove_path(path: Path) -> None:
    """Remove a file, a link, or a folder with all in it.

    Raises:
        OSError: it cannot be removed.
    """
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path)
    else:
        path.unlink(missing_ok=True)


def try_to_remove(path: Path) -> None:
    """Remove a file, a link, or a folder with all in it, as far as that is possible."""
    with suppress(OSError):
        remove_path(path)


def link_file(source: Path, target: Path) -> None:
    """Make a hard link to a file, or a copy where the file system has no hard links.

    Raises:
        OSError: neither can be made.
    """
    try:
        os.link(source, target, follow_symlinks=False)
    except OSError:
        shutil.copy2(source, target, follow_symlinks=False)
