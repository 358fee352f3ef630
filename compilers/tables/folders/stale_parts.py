"""Parts of files and folders that a killed process left beside their place."""

from __future__ import annotations

import fcntl
import os
import re
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

from compilers.tables.folders.artefact import remove
from inventory.problems import InputError

PART = re.compile(r"\.(?P<place>.+)\.([0-9a-f]{8}|[0-9]+)\.(?P<kind>part|old)", re.DOTALL)
"""`.NAME.xxxxxxxx.part`; before 0.2 with the number of the process."""


def is_part(name: str) -> bool:
    """Whether a file or folder of this name is a part of another."""
    return PART.fullmatch(name) is not None


def collect(place: Path) -> list[tuple[Path, Path | None]]:
    """Remove the parts that nobody writes, beside a place and in it.

    A folder that was put aside, and whose place stayed empty, is put back.

    Returns:
        Each part, and where it was put back; None where it was removed.

    Raises:
        InputError: a folder cannot be read or changed.
    """
    try:
        found = list(_parts(place.resolve()))
        return [(part, _collect(part, name, kind)) for part, name, kind in found]
    except OSError as error:
        given = error.strerror or str(error)
        raise InputError.of("a folder to clear", given, file=str(place)) from error


def stale_parts(place: Path) -> list[Path]:
    """The parts that `collect` would remove or put back.

    Raises:
        OSError: a folder cannot be read.
    """
    return [part for part, _, _ in _parts(place.resolve())]


def _parts(place: Path) -> Iterator[tuple[Path, str, str]]:
    folders = [place.parent]
    if place.is_dir():
        folders += [place, *(Path(entry.path) for entry in os.scandir(place) if _is_folder(entry))]
    for folder in folders:
        for path in sorted(folder.iterdir()):
            match = PART.fullmatch(path.name)
            ours = match and (folder != place.parent or match["place"] == place.name)
            if match and ours and not _in_use(path):
                yield path, match["place"], match["kind"]


def _is_folder(entry: os.DirEntry[str]) -> bool:
    return entry.is_dir(follow_symlinks=False) and not is_part(entry.name)


def _collect(part: Path, name: str, kind: str) -> Path | None:
    place = part.with_name(name)
    if kind == "old" and not os.path.lexists(place):
        part.rename(place)
        return place
    remove(part)
    return None


def _in_use(part: Path) -> bool:
    """Whether a process holds the lock of a part."""
    try:
        descriptor = os.open(part, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
    except OSError:
        return False
    try:
        with suppress(OSError):
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            return False
        return True
    finally:
        os.close(descriptor)
