"""Remove what killed processes left beside a folder that they were replacing.

A *part* is a folder or file that is still being written, as `.NAME.xxxxxxxx.polarfab` beside its
place. The process that writes it holds a lock on it (flock). So a part without a lock is left over.
"""

from __future__ import annotations

import os
from collections.abc import Iterable
from pathlib import Path
from typing import NamedTuple

from compilers.tables.folders.folder_contents import RENDERED, is_build, last_build_place, real_path
from compilers.tables.folders.folder_moves import (
    GIT,
    aside_path,
    locked_folder,
    move_git,
    remove_path,
)
from compilers.tables.folders.written_file import PART, lock
from inventory.problems import InputError


class ClearedPart(NamedTuple):
    """A part that a killed process left, and that was removed or put back."""

    path: Path
    """Its path beside the place."""
    put_back_at: Path | None
    """The path where it was put back; None: it was removed."""


def remove_parts(place: Path, dry_run: bool = False) -> list[ClearedPart]:
    """Remove parts that killed processes left beside a place, and put an old folder back.

    An old folder has another name if the process was killed between renames (`exchange_names`).

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
            for final in (place, last_build_place(place)):
                path = aside_path(final)
                if is_build(path) or (path / RENDERED).is_file():
                    put_back_at = None if final.exists() else final
                    removed += _remove_part(path, place, dry_run, put_back_at)
            for path in parts_of(place):
                removed += _remove_part(path, place, dry_run)
            if place.is_dir() and not dry_run:
                move_git(last_build_place(place), place)
    except OSError as error:
        reason = error.strerror or str(error)
        raise InputError.of("a folder to clear", reason, file=str(path)) from error
    return removed


def parts_of(place: Path) -> list[Path]:
    """The parts of a place, also those that a process is writing.

    Raises:
        OSError: the folder that the place is in cannot be read.
    """
    matches = [PART.fullmatch(path.name) for path in sorted(place.parent.iterdir())]
    return [
        place.with_name(match[0]) for match in matches if match and match["place"] == place.name
    ]


def remove_file_parts(file: Path, parts: Iterable[Path]) -> None:
    """Remove those of some parts of a file that killed processes left.

    The folder is not locked, as nobody but its writer renames a part of a file. A part that this
    process begins to write meanwhile has to be none of them.

    Raises:
        OSError: one of them cannot be removed.
    """
    for part in parts:
        _remove_part(part, file, dry_run=False)


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
                move_git(part, place)
            if os.path.lexists(part / GIT):
                return []
            remove_path(part)
        return [ClearedPart(part, put_back_at)]
    finally:
        os.close(descriptor)
