"""Folders that polarfab replaces: written beside their place, then exchanged with what is there.

A new folder for NAME is written as `.NAME.xxxxxxxx.polarfab`, and locked meanwhile. Then the two
change places in one step, so NAME is the old folder or the new one at every moment. A proved build
that leaves its place is kept as `.NAME.last`; anything else is removed. What a killed process
leaves is not locked, and the next command for NAME removes it.

Only a folder that holds nothing but files of ours is replaced. `.git` may be in it, too: it moves
to the new folder.
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
from typing import TypeVar

from compilers.tables.folders.generations import (
    RENDERED,
    followed,
    is_build,
    last,
    name_of_build,
    owned,
    proved,
)
from compilers.tables.folders.written_file import (
    OTHER_FOLDER,
    PART,
    flush,
    in_place,
    lock,
    new_folders,
    opened_folder,
    part_of,
    unwritable_folder,
)
from inventory.problems import InputError, Problem, few

GIT = ".git"
AT_FDCWD, RENAME_EXCHANGE = -100, 2
NO_EXCHANGE = (errno.ENOSYS, errno.EINVAL, errno.ENOTSUP)
"""What a kernel or a file system says that cannot exchange two names."""
PATIENCE, POLL = 60.0, 0.05
"""Seconds for another command that has a folder, and between looks."""
T = TypeVar("T")


@contextmanager
def new_build(folder: Path) -> Iterator[Path]:
    """A new folder for a build, which takes the place of `folder` when the block ends.

    Raises:
        InputError: as `require_place`, or it cannot be written.
    """
    with writing(folder):
        place = prepared(folder)
        require_place(place)
        with new_folder(place) as new:
            yield new
            with taking_place(new, place):
                require_place(place)


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
    """A new folder, which takes the place of `folder`, whatever is there, when the block ends.

    Raises:
        InputError: it cannot be written.
    """
    with writing(folder):
        place = prepared(folder)
        with new_folder(place) as new:
            yield new
            with taking_place(new, place):
                pass


@contextmanager
def writing(folder: Path) -> Iterator[None]:
    """Say of errors of the operating system that a folder cannot be written.

    Raises:
        InputError: it cannot.
    """
    try:
        yield
    except OSError as error:
        raise unwritable_folder(folder, error) from error


def prepared(folder: Path) -> Path:
    """The place of a folder of ours, without what killed processes left beside it.

    Raises:
        InputError: as `replaceable`, or a folder cannot be read or changed.
    """
    place = replaceable(folder)
    remove_parts(place)
    return place


@contextmanager
def new_folder(place: Path) -> Iterator[Path]:
    """An empty folder beside a place; it is removed unless it takes the place within the block.

    Raises:
        OSError: it cannot be made.
    """
    with new_folders(place.parent), _part(place) as part:
        yield part


@contextmanager
def taking_place(new: Path, place: Path) -> Iterator[None]:
    """Put a new folder in a place when the block ends; no other process changes it meanwhile.

    Raises:
        InputError: something else is where the last build is kept.
        OSError: it cannot be written.
    """
    with held(place.parent):
        yield
        _swap(new, place)


def undo(folder: Path, read: Callable[[Path], T]) -> T:
    """Exchange the build in a place with the last proved one before it.

    Args:
        folder: the place.
        read: reads the build that is put back; returned.

    Raises:
        InputError: none is kept or it cannot be read, or what is in the place is not to be
            replaced.
    """
    with writing(folder):
        place = prepared(folder)
        require_place(place)
        with held(place.parent):
            if not is_build(last(place)):
                todo = "one is kept when another takes its place"
                required = "an earlier build that was proved"
                raise InputError.of(required, "none is kept", todo, str(folder))
            result = read(last(place))
            _swap(last(place), place)
        return result


def replaceable(folder: Path) -> Path:
    """The place of a folder of ours: links to it are followed.

    Raises:
        InputError: it is standard output or a folder that this process is in.
    """
    place = followed(folder)
    here = Path.cwd()
    reason = ""
    if place.name == "-":
        reason = "-, standard output"
    elif place == here:
        reason = f"{place}, which is the working directory"
    elif here.is_relative_to(place):
        reason = f"{place}, which the working directory is in"
    if reason:
        raise InputError.of("a folder that can be replaced", reason, OTHER_FOLDER, str(folder))
    return place


def require_only_ours(place: Path, below: Collection[str] = ()) -> None:
    """Pass when a folder holds nothing but files that its lists name, and `.git`.

    Args:
        place: the folder, or where none is.
        below: more files that may be in it.

    Raises:
        InputError: it holds something else, the first names of it; or it is read-only, or has a
            read-only folder in it.
    """
    if not place.is_dir():
        return
    ours = owned(place).union(below)
    above = {str(folder) for name in ours for folder in PurePosixPath(name).parents}
    strange = list[str]()
    for folder, folders, files in os.walk(place, onerror=_refuse):
        if not os.access(folder, os.W_OK | os.X_OK):
            required, todo = "a folder that can be written", f"make it so, or {OTHER_FOLDER}"
            raise InputError.of(required, "a read-only one", todo, folder)
        prefix = Path(folder).relative_to(place)
        for name in sorted(folders):
            path = str(prefix / name)
            if path not in above or (place / path).is_symlink():
                folders.remove(name)
                strange.append(path)
        strange += (path for name in sorted(files) if (path := str(prefix / name)) not in ours)
    required = "only files that polarfab wrote in a folder that it replaces"
    todo = f"move it away, or {OTHER_FOLDER}"
    problems = [
        Problem(required, "another", todo, str(place / path)) for path in strange if path != GIT
    ]
    if problems:
        raise InputError(few(problems))


def _refuse(error: OSError) -> None:
    raise error


def require_outside(place: Path, of_build: bool = True) -> None:
    """Pass when a place is in no build, and for a build in no folder that render wrote.

    Raises:
        InputError: it is.
    """
    for above in place.parents:
        reason = "inside a build" if is_build(above) else ""
        if of_build and (above / RENDERED).is_file():
            reason = "inside a folder of files made from a build"
        if reason:
            required = "a folder outside builds and what is made from them"
            raise InputError.of(required, f"one {reason}, {above}", OTHER_FOLDER, str(place))


def _swap(new: Path, place: Path) -> None:
    """Put a folder in a place, while the folder that has both is `held`.

    Another proved build that was in the place is kept as the last one. Otherwise what was there has
    the name of the new one now.

    Raises:
        InputError: something else is where the last build is kept.
        OSError: it cannot be written.
    """
    kept = last(place)
    if os.path.lexists(kept):
        if kept.is_symlink() or not kept.is_dir():
            required, todo = "only the last build, which is kept here", "move it away"
            raise InputError.of(required, "something else", todo, str(kept))
        require_only_ours(kept)
    _flush_all(new)
    if not os.path.lexists(place):
        new.rename(place)
        with in_place():
            flush(place.parent)
        return
    if new != kept:
        shutil.copymode(place, new)
    _exchange(new, place)
    with in_place():
        _move_git(new, place)
        if new != kept and proved(new) and name_of_build(new) != name_of_build(place):
            if os.path.lexists(kept):
                _exchange(new, kept)
            else:
                new.rename(kept)
        flush(place.parent)


def _exchange(new: Path, place: Path) -> None:
    """Have two folders change names, in one step.

    Where the file system has no such step it takes three, and between the first and the second
    the place is empty: `remove_parts` puts the old folder back.

    Raises:
        OSError: they cannot be renamed.
    """
    paths = (AT_FDCWD, os.fsencode(new), AT_FDCWD, os.fsencode(place))
    try:
        _system("renameat2", *paths, RENAME_EXCHANGE)
    except OSError as error:
        if error.errno not in NO_EXCHANGE:
            raise
        place.rename(aside := _aside(place))
        try:
            new.rename(place)
        except OSError:
            aside.rename(place)
            raise
        with in_place():
            aside.rename(new)


def _aside(place: Path) -> Path:
    """Where a folder is between the two renames that exchange it."""
    return place.with_name(f".{place.name}.aside")


def _move_git(old: Path, place: Path) -> None:
    """Move the user's `.git` from a folder that left a place to the one that is there."""
    if os.path.lexists(old / GIT) and not os.path.lexists(place / GIT):
        (old / GIT).rename(place / GIT)


@contextmanager
def _part(place: Path) -> Iterator[Path]:
    """A new folder beside a place, locked; what has its name at the end is removed."""
    part = part_of(place)  # known before it is made: a signal may come at any moment
    try:
        with held(place.parent):
            part.mkdir()
            descriptor = os.open(part, os.O_RDONLY | os.O_DIRECTORY)
            lock(descriptor)
        try:
            yield part
        finally:
            os.close(descriptor)
    finally:
        if not os.path.lexists(part / GIT):
            remove(part)


def remove_parts(place: Path, act: bool = True) -> list[tuple[Path, Path | None]]:
    """Remove what killed processes left beside a place; put back what they put aside.

    Args:
        place: of a folder or a file.
        act: otherwise only say what would be done.

    Returns:
        Each part, and where it was put; None where it was removed.

    Raises:
        InputError: a folder cannot be read or changed.
    """
    if not place.parent.is_dir():
        return []
    path, done = place, list[tuple[Path, Path | None]]()
    try:
        with held(place.parent):
            for final in (place, last(place)):
                path = _aside(final)
                if is_build(path) or (path / RENDERED).is_file():
                    done += _remove_part(path, place, act, None if final.exists() else final)
            for path in sorted(place.parent.iterdir()):
                if (match := PART.fullmatch(path.name)) and match["place"] == place.name:
                    done += _remove_part(path, place, act)
            if act and place.is_dir():
                _move_git(last(place), place)
    except OSError as error:
        reason = error.strerror or str(error)
        raise InputError.of("a folder to clear", reason, file=str(path)) from error
    return done


def remove_all_parts(folder: Path) -> list[tuple[Path, Path | None]]:
    """The same beside a place, and for every file and folder in it."""
    place = followed(folder)
    done = remove_parts(place)
    if place.is_dir():
        matches = [PART.fullmatch(path.name) for path in place.iterdir()]
        for name in sorted({match["place"] for match in matches if match}):
            done += remove_parts(place / name)
    return done


def _remove_part(
    part: Path, place: Path, act: bool, back: Path | None = None
) -> list[tuple[Path, Path | None]]:
    """Remove a part that no process writes, or put it `back`; what was done, or would be."""
    try:
        descriptor = os.open(part, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
    except OSError:  # a link, or of another user
        return []
    try:
        if not lock(descriptor):
            return []
        if act and back:
            part.rename(back)
        elif act:
            if place.is_dir():
                _move_git(part, place)
            if os.path.lexists(part / GIT):
                return []
            clear(part)
        return [(part, back)]
    finally:
        os.close(descriptor)


@contextmanager
def held(folder: Path) -> Iterator[None]:
    """Let no other process exchange or remove anything in a folder meanwhile; or wait for it.

    Raises:
        OSError: it cannot be opened, or is not let go.
    """
    limit = time.monotonic() + PATIENCE
    with opened_folder(folder) as descriptor:
        while lock(descriptor) is False:
            if time.monotonic() > limit:
                reason = f"a folder that another command has held for {PATIENCE:.0f} s"
                raise OSError(errno.EBUSY, reason, str(folder))
            time.sleep(POLL)
        yield


def clear(path: Path) -> None:
    """Remove a file, a link, or a folder with all in it.

    Raises:
        OSError: it cannot be removed.
    """
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path)
    else:
        path.unlink(missing_ok=True)


def remove(path: Path) -> None:
    """The same, as far as that is possible."""
    with suppress(OSError):
        clear(path)


def link_file(source: Path, target: Path) -> None:
    """A hard link; a copy where the file system has none.

    Raises:
        OSError: neither can be made.
    """
    try:
        os.link(source, target, follow_symlinks=False)
    except OSError:
        shutil.copy2(source, target, follow_symlinks=False)


def _flush_all(folder: Path) -> None:
    """Have the file system of a folder write everything: one call, however many files.

    Raises:
        OSError: it could not.
    """
    with opened_folder(folder) as descriptor:
        _system("syncfs", descriptor)


def _system(name: str, *arguments: object) -> None:
    """Call a function of the C library.

    Raises:
        OSError: it says so, or the library has no such function.
    """
    function = getattr(ctypes.CDLL(None, use_errno=True), name, None)
    if function is None or function(*arguments):
        number = ctypes.get_errno() if function else errno.ENOSYS
        raise OSError(number, os.strerror(number))
