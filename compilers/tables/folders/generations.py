"""The place of a build: the build in it, and the last proved one before it, `.NAME.last`."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

from compilers.tables.folders.artefact import OTHER_FOLDER, put_folder
from compilers.tables.folders.folder_files import read
from inventory.problems import InputError

MANIFEST, FABRIC, VERIFIED = "manifest.json", "fabric.json", "verified.json"
PLANES = "planes.json"  # in a folder of builds, one a plane (`plane_folders`)
T = TypeVar("T")


def identity_of(manifest: str) -> str:
    """The identity of a build, from the text of its manifest."""
    return hashlib.sha256(manifest.encode()).hexdigest()[:16]


def put(folder: Path, fill: Callable[[Path], T]) -> T:
    """Have `fill` write a build, then put it in the place of `folder`; returns its result.

    Another proved build that was there is kept as the last one.

    Raises:
        InputError: the folder exists and is not a build, or cannot be written.
    """
    place = folder.resolve()
    if not is_build(place) and place.exists() and (not place.is_dir() or any(place.iterdir())):
        raise InputError.of(
            file=str(place),
            required="a new folder, or an earlier build to replace",
            given="a folder with other files in it" if place.is_dir() else "a file",
            todo=OTHER_FOLDER,
        )
    return put_folder(place, fill, lambda old: last(place) if _worth(old, place) else None)


def _worth(old: Path, new: Path) -> bool:
    """Whether a build is to be kept: it is proved, and another than the new one."""
    return proved(old) and _names(old) != _names(new)


def _names(folder: Path) -> list[bytes]:
    """What names a build: its manifest, or its list of planes."""
    return [
        (folder / name).read_bytes() for name in (MANIFEST, PLANES) if (folder / name).is_file()
    ]


def is_build(folder: Path) -> bool:
    """Whether there is a build, of one plane or of several, sound or not."""
    return any((folder / name).is_file() for name in (MANIFEST, PLANES))


def fabric_in(folder: Path) -> str:
    """The name of the fabric whose build is in a folder; "" where there is none to read."""
    first = folder / "plane-1" if (folder / PLANES).is_file() else folder
    try:
        return str(json.loads(read(first, MANIFEST))["name"])
    except (OSError, ValueError, KeyError, TypeError):
        return ""


def last(place: Path) -> Path:
    """Where the last proved build before the one in a place is kept."""
    return place.with_name(f".{place.name}.last")


def proved(folder: Path) -> bool:
    """Whether verification passed on a build, on each plane of several, by their marks."""
    try:
        if (folder / PLANES).is_file():
            planes = json.loads(read(folder, PLANES))["planes"]
            return all(mark(folder / str(name)) for name in planes)
        return bool(mark(folder))
    except (OSError, ValueError, KeyError, TypeError):
        return False


def mark(folder: Path) -> str:
    """The identity of the build that the mark in a folder is for, if it is this build; else ""."""
    try:
        text, marked = read(folder, MANIFEST), json.loads(read(folder, VERIFIED))["build"]
    except (OSError, ValueError, KeyError, TypeError):
        return ""
    return marked if marked == identity_of(text) else ""
