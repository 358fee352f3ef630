"""Replace a folder atomically, so that no reader ever sees a folder that is half written.

The *place* of a folder is its path with symbolic links followed. A new folder for the place NAME is
written beside it as `.NAME.xxxxxxxx.polarfab` (a *part*), and locked (flock) meanwhile. Then the
two exchange their names in one system call, so NAME is the old folder or the new one at every
moment. A proved build that is replaced stays as `.NAME.last`, for `undo`; any other folder is
removed. A part that a killed process leaves is not locked, and the next command for NAME removes
it.

Only a folder with no files but polarfab's own is replaced. `.git` may be in it, too, and moves to
the new folder. `build_folder` writes builds through `new_build`, and `rendered_folder` writes what
targets render.
"""

from __future__ import annotations

import ctypes
import errno
import os
import shutil
import time
from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path, PurePosixPath
from typing import NamedTuple, TypeVar

from compilers.tables.folders.folder_contents import (
    RENDERED,
    distinguishing_file,
    is_build,
    is_proved,
    last_place,
    our_files,
    real_path,
)
from compilers.tables.folders.written_file import (
    OTHER_FOLDER,
    PART,
    flush,
    lock,
    new_folders,
    opened_folder,
    os_errors_say_replaced,
    part_of,
    unwritable_folder,
)
from inventory.problems import InputError, Problem, few

GIT = ".git"
"""The folder of a git repository, which a user may keep in a folder of polarfab's files."""
AT_FDCWD, RENAME_EXCHANGE = -100, 2
"""Constants of the system call renameat2: relative to the working directory; exchange the two."""
NO_EXCHANGE = (errno.ENOSYS, errno.EINVAL, errno.ENOTSUP)
"""The errors of a kernel or a file system that cannot exchange two names."""
LOCK_TIMEOUT, LOCK_POLL = 60.0, 0.05
"""Seconds: how long to wait for a folder that another command has locked, and between attempts."""
T = TypeVar("T")


class ClearedPart(NamedTuple):
    """A part that a killed process left, and that was removed or put back."""

    path: Path
    """Its path beside the place."""
    put_back_at: Path | None
    """The path where it was put back; None: it was removed."""


@contextmanager
def new_build(folder: Path) -> Iterator[Path]:
    """Yield a new folder for a build, which takes the place of `folder` when the block ends.

    Raises:
        InputError: a build may not be put there (`require_place`), or it cannot be written.
    """
    with os_errors_as_unwritable(folder):
        place = prepared_place(folder)
        require_place(place)
        with folder_beside(place) as new:
            yield new
            with locked_folder(place.parent):
                require_place(place)
                put_in_place(new, place)


def require_place(place: Path) -> None:
    """Pass when a build may be put in a place.

    Raises:
        InputError: the folder there is no build or holds other files, or it is inside a build or a
            folder that render wrote.
    """
    require_outside(place)
    if not is_build(place) and place.exists() and (not place.is_dir() or any(place.iterdir())):
        raise InputError.of(
            file=str(place),
            required="a new folder, or an earlier build to replace",
            given="a folder with other files in it" if place.is_dir() else "a file",
            todo=OTHER_FOLDER,
        )
    require_only_ours(place)


@contextmanager
def replaced(folder: Path) -> Iterator[Path]:
    """Yield a new folder, which takes the place of `folder` when the block ends.

    Unlike `new_build`, it replaces any folder that is there.

    Raises:
        InputError: it cannot be written.
    """
    with os_errors_as_unwritable(folder):
        place = prepared_place(folder)
        with folder_beside(place) as new:
            yield new
            with locked_folder(place.parent):
                put_in_place(new, place)


@contextmanager
def os_errors_as_unwritable(folder: Path) -> Iterator[None]:
    """Turn errors of the operating system into the message that a folder cannot be written.

    Raises:
        InputError: it cannot be written.
    """
    try:
        yield
    except OSError as error:
        raise unwritable_folder(folder, error) from error


def prepared_place(folder: Path) -> Path:
    """Return the place of a folder, after removing parts that killed processes left beside it.

    Raises:
        InputError: it cannot be replaced (`replaceable_place`), or a folder cannot be read or
            changed.
    """
    place = replaceable_place(folder)
    remove_parts(place)
    return place


@contextmanager
def folder_beside(place: Path) -> Iterator[Path]:
    """Yield an empty folder beside a place. If the block does not put it there, it is removed.

    Raises:
        OSError: it cannot be made.
    """
    with new_folders(place.parent), _locked_part(place) as part:
        yield part


def put_in_place(new: Path, place: Path) -> None:
    """Put a folder in a place; the caller has locked the folder above both (`locked_folder`).

    If another proved build was in the place, it becomes the last build. Any other folder that was
    there gets the name that the new one had, and the caller removes it.

    Raises:
        InputError: other files are where the last build is kept.
        OSError: it cannot be written.
    """
    last_build = last_place(place)
    if os.path.lexists(last_build):
        if last_build.is_symlink() or not last_build.is_dir():
            required, todo = "only the last build, which is kept here", "move it away"
            raise InputError.of(required, "something else", todo, str(last_build))
        require_only_ours(last_build)
    _flush_all(new)
    if not os.path.lexists(place):
        new.rename(place)
        with os_errors_say_replaced():
            flush(place.parent)
        return
    if new != last_build:
        shutil.copymode(place, new)
    _exchange(new, place)
    with os_errors_say_replaced():
        old = new  # by the exchange, the folder that was in the place has this path
        _move_git(old, place)
        is_another = distinguishing_file(old) != distinguishing_file(place)
        if old != last_build and is_proved(old) and is_another:
            if os.path.lexists(last_build):
                _exchange(old, last_build)
            else:
                old.rename(last_build)
        flush(place.parent)


def undo(folder: Path, read: Callable[[Path], T]) -> T:
    """Exchange the build in a place with the proved build that it replaced.

    Args:
        folder: the place.
        read: reads the build that is put back.

    Returns:
        What `read` returns.

    Raises:
        InputError: there is no earlier build, it cannot be read, or the folder in the place may
            not be replaced.
    """
    with os_errors_as_unwritable(folder):
        place = prepared_place(folder)
        require_place(place)
        with locked_folder(place.parent):
            if not is_build(last_place(place)):
                todo = "one is kept when another takes its place"
                required = "an earlier build that was proved"
                raise InputError.of(required, "none is kept", todo, str(folder))
            build = read(last_place(place))
            put_in_place(last_place(place), place)
        return build


def replaceable_place(folder: Path) -> Path:
    """Return the place of a folder: its path with links followed.

    Raises:
        InputError: it is standard output, or the working directory is this folder or in it.
    """
    place = real_path(folder)
    working = Path.cwd()
    reason = ""
    if place.name == "-":
        reason = "-, standard output"
    elif place == working:
        reason = f"{place}, which is the working directory"
    elif working.is_relative_to(place):
        reason = f"{place}, which the working directory is in"
    if reason:
        raise InputError.of("a folder that can be replaced", reason, OTHER_FOLDER, str(folder))
    return place


def require_only_ours(place: Path, below: Collection[str] = ()) -> None:
    """Pass when a folder holds only files that its own lists name, and `.git`.

    Args:
        place: the folder; it passes if it does not exist.
        below: more files that may be in it, by their paths below it.

    Raises:
        InputError: it holds other files, of which the first are named; or it is read-only, or a
            folder in it is.
    """
    if not place.is_dir():
        return
    ours = our_files(place).union(below)
    required = "only files that polarfab wrote in a folder that it replaces"
    todo = f"move it away, or {OTHER_FOLDER}"
    problems = [
        Problem(required, "another", todo, str(place / path))
        for path in _other_paths(place, ours)
        if path != GIT
    ]
    if problems:
        raise InputError(few(problems))


def _other_paths(place: Path, ours: Collection[str]) -> list[str]:
    """Return the paths below a folder of files, folders and links that are not among `ours`.

    Raises:
        InputError: a folder is read-only.
    """
    our_folders = {str(folder) for name in ours for folder in PurePosixPath(name).parents}
    other_paths = list[str]()
    for folder, subfolders, files in os.walk(place, onerror=_raise):
        if not os.access(folder, os.W_OK | os.X_OK):
            required, todo = "a folder that can be written", f"make it so, or {OTHER_FOLDER}"
            raise InputError.of(required, "a read-only one", todo, folder)
        prefix = Path(folder).relative_to(place)
        for name in sorted(subfolders):
            path = str(prefix / name)
            if path not in our_folders or (place / path).is_symlink():
                subfolders.remove(name)  # so that `os.walk` does not enter it
                other_paths.append(path)
        for name in sorted(files):
            path = str(prefix / name)
            if path not in ours:
                other_paths.append(path)
    return other_paths


def _raise(error: OSError) -> None:
    """Raise an error that `os.walk` would pass over."""
    raise error


def require_outside(place: Path, of_build: bool = True) -> None:
    """Pass when a place is in no build.

    Args:
        place: where a folder will be.
        of_build: the folder will be a build, which may not be in a folder that render wrote either.

    Raises:
        InputError: it is in one.
    """
    for above in place.parents:
        reason = "inside a build" if is_build(above) else ""
        if of_build and (above / RENDERED).is_file():
            reason = "inside a folder of files made from a build"
        if reason:
            required = "a folder outside builds and what is made from them"
            raise InputError.of(required, f"one {reason}, {above}", OTHER_FOLDER, str(place))


def _exchange(new: Path, place: Path) -> None:
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
        place.rename(aside := _aside_path(place))
        try:
            new.rename(place)
        except OSError:
            aside.rename(place)
            raise
        with os_errors_say_replaced():
            aside.rename(new)


def _aside_path(place: Path) -> Path:
    """Return the name that the old folder has while it is exchanged in three renames."""
    return place.with_name(f".{place.name}.aside")


def _move_git(old: Path, place: Path) -> None:
    """Move the user's `.git` from the folder that left a place to the folder that is there now."""
    if os.path.lexists(old / GIT) and not os.path.lexists(place / GIT):
        (old / GIT).rename(place / GIT)


@contextmanager
def _locked_part(place: Path) -> Iterator[Path]:
    """Yield a new, locked folder beside a place.

    When the block ends, the folder that has its name is removed: itself, or, after an exchange, the
    one that it replaced. A folder with a `.git` in it stays.
    """
    part = part_of(place)  # set before the folder exists: a signal may come at any moment
    try:
        with locked_folder(place.parent):
            part.mkdir()
            descriptor = os.open(part, os.O_RDONLY | os.O_DIRECTORY)
            lock(descriptor)
        try:
            yield part
        finally:
            os.close(descriptor)
    finally:
        if not os.path.lexists(part / GIT):
            try_to_remove(part)


def remove_parts(place: Path, dry_run: bool = False) -> list[ClearedPart]:
    """Remove parts that killed processes left beside a place, and put an old folder back.

    An old folder has another name if the process was killed between renames (`_exchange`).

    Args:
        place: of a folder or a file.
        dry_run: whether to change nothing, and return what would be done.

    Raises:
        InputError: a folder cannot be read or changed.
    """
    if not place.parent.is_dir():
        return []
    path, removed = place, list[ClearedPart]()
    try:
        with locked_folder(place.parent):
            for final in (place, last_place(place)):
                path = _aside_path(final)
                if is_build(path) or (path / RENDERED).is_file():
                    put_back_at = None if final.exists() else final
                    removed += _remove_part(path, place, dry_run, put_back_at)
            for path in sorted(place.parent.iterdir()):
                if (match := PART.fullmatch(path.name)) and match["place"] == place.name:
                    removed += _remove_part(path, place, dry_run)
            if place.is_dir() and not dry_run:
                _move_git(last_place(place), place)
    except OSError as error:
        reason = error.strerror or str(error)
        raise InputError.of("a folder to clear", reason, file=str(path)) from error
    return removed


def remove_all_parts(folder: Path) -> list[ClearedPart]:
    """Remove parts that killed processes left beside a folder, and beside all that is in it.

    Raises:
        InputError: a folder cannot be read or changed.
    """
    place = real_path(folder)
    removed = remove_parts(place)
    if place.is_dir():
        matches = [PART.fullmatch(path.name) for path in place.iterdir()]
        for name in sorted({match["place"] for match in matches if match}):
            removed += remove_parts(place / name)
    return removed


def _remove_part(
    part: Path, place: Path, dry_run: bool, put_back_at: Path | None = None
) -> list[ClearedPart]:
    """Remove a part, or put it back, unless a process is writing it.

    Args:
        part: the file or folder that was left.
        place: the place that the part was written for.
        dry_run: whether to change nothing, and return what would be done.
        put_back_at: the path to put the part back at; None to remove it.

    Returns:
        The part that was removed or put back, if any: [] or one entry.
    """
    try:
        descriptor = os.open(part, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
    except OSError:  # a link, or of another user
        return []
    try:
        if not lock(descriptor):
            return []
        if dry_run:
            pass
        elif put_back_at:
            part.rename(put_back_at)
        else:
            if place.is_dir():
                _move_git(part, place)
            if os.path.lexists(part / GIT):
                return []
            remove_path(part)
        return [ClearedPart(part, put_back_at)]
    finally:
        os.close(descriptor)


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


def _flush_all(folder: Path) -> None:
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
