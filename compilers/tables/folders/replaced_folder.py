"""Replace a folder atomically, so that no reader ever sees a folder that is half written.

The *place* of a folder is its path with symbolic links followed. These folders are beside a place
NAME:

| path | what |
|---|---|
| `.NAME.xxxxxxxx.polarfab` | a *part*: a new folder, locked (flock) while it is written |
| `.NAME.last` | the *last build*: the proved build that NAME replaced, for `undo` |
| `.NAME.aside` | the old folder, between renames (`folder_moves.exchange_names`) |

When a part is complete, it and NAME exchange their names in one system call. So NAME is the old
folder or the new one at every moment. A proved build that is replaced becomes the last build; any
other folder is removed. What a killed process leaves is not locked, and the next command for NAME
removes it (`leftover_parts`).

Only a folder with no files but polarfab's own is replaced. `.git` may be in it, too, and moves to
the new folder. `build_folder` writes builds through `new_build`, and `rendered_folder` writes what
targets render.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager
from pathlib import Path, PurePosixPath
from typing import TypeVar

from compilers.tables.folders.folder_contents import (
    RENDERED,
    distinguishing_file,
    is_build,
    last_build_place,
    polarfab_files,
    real_path,
)
from compilers.tables.folders.folder_moves import (
    GIT,
    exchange_names,
    flush_all,
    locked_folder,
    move_git,
    try_to_remove,
)
from compilers.tables.folders.leftover_parts import remove_parts
from compilers.tables.folders.verified_mark import is_proved
from compilers.tables.folders.written_file import (
    OTHER_FOLDER,
    flush,
    lock,
    new_folders,
    os_errors_say_replaced,
    part_of,
    unwritable_folder,
)
from inventory.problems import InputError, Problem, few

T = TypeVar("T")


@contextmanager
def new_build(folder: Path, todo: str = OTHER_FOLDER) -> Iterator[Path]:
    """Yield a new folder for a build, which takes the place of `folder` when the block ends.

    Args:
        folder: the folder.
        todo: what the message advises if it cannot be written.

    Raises:
        InputError: a build may not be put there (`require_place`), or it cannot be written.
    """
    with os_errors_as_unwritable(folder, todo):
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
def replaced(folder: Path, todo: str = OTHER_FOLDER) -> Iterator[Path]:
    """Yield a new folder, which takes the place of `folder` when the block ends.

    Unlike `new_build`, it replaces any folder that is there.

    Args:
        folder: the folder.
        todo: what the message advises if it cannot be written.

    Raises:
        InputError: it cannot be written.
    """
    with os_errors_as_unwritable(folder, todo):
        place = prepared_place(folder)
        with folder_beside(place) as new:
            yield new
            with locked_folder(place.parent):
                put_in_place(new, place)


@contextmanager
def os_errors_as_unwritable(folder: Path, todo: str = OTHER_FOLDER) -> Iterator[None]:
    """Turn errors of the operating system into the message that a folder cannot be written.

    Args:
        folder: the folder.
        todo: what the message advises.

    Raises:
        InputError: it cannot be written.
    """
    try:
        yield
    except OSError as error:
        raise unwritable_folder(folder, error, todo) from error


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
    last_build = last_build_place(place)
    if os.path.lexists(last_build):
        if last_build.is_symlink() or not last_build.is_dir():
            required, todo = "only the last build, which is kept here", "move it away"
            raise InputError.of(required, "something else", todo, str(last_build))
        require_only_ours(last_build)
    flush_all(new)
    if not os.path.lexists(place):
        new.rename(place)
        with os_errors_say_replaced():
            flush(place.parent)
        return
    if new != last_build:  # the last build has its own mode already
        shutil.copymode(place, new)
    exchange_names(new, place)
    with os_errors_say_replaced():
        old = new  # by the exchange, the folder that was in the place has this path
        move_git(old, place)
        is_another = distinguishing_file(old) != distinguishing_file(place)
        if old != last_build and is_proved(old) and is_another:
            if os.path.lexists(last_build):
                exchange_names(old, last_build)
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
            if not is_build(last_build_place(place)):
                todo = "one is kept when another takes its place"
                required = "an earlier build that was proved"
                raise InputError.of(required, "none is kept", todo, str(folder))
            build = read(last_build_place(place))
            put_in_place(last_build_place(place), place)
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
    ours = polarfab_files(place).union(below)
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
