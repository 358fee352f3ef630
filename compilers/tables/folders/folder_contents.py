"""What is in a folder that polarfab wrote: a build, or files made from one.

A folder may be replaced only if all files in it are polarfab's own. The manifest of a build and the
list of a render (`.polarfab.json`) name polarfab's files. The functions here do not compare files
with their digests. So they also work for damaged folders, which are replaced like others.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
from contextlib import suppress
from pathlib import Path
from typing import Any

from compilers.spec.allocations_file import ALLOCATIONS
from compilers.tables.folders.folder_files import read
from inventory.problems import InputError

MANIFEST, FABRIC, VERIFIED = "manifest.json", "fabric.json", "verified.json"
"""Files of a build: what was compiled, with the digests of all files; the fabric; and what `verify`
has found."""
MANIFEST_SUM = f"{MANIFEST.removesuffix('.json')}.sha256"
"""The digest of the manifest, as `sha256sum -c` reads it; not part of the identity."""
PLANES = "planes.json"
"""The list of the planes, in a folder with the builds of several."""
PLANE = re.compile("plane-[1-9][0-9]*")
"""The name of a plane's folder."""
RENDERED = ".polarfab.json"
"""The list of the files in a folder that were made from a build (`rendered_folder`)."""
DAMAGED = (OSError, ValueError, KeyError, TypeError, AttributeError, RecursionError)
"""What reading a damaged JSON document, or a missing one, raises."""


def identity_of(manifest: str) -> str:
    """Return the identity of a build, 16 hexadecimal digits, from the text of its manifest.

    >>> identity_of("{}")
    '44136fa355b3678a'
    """
    return hashlib.sha256(manifest.encode()).hexdigest()[:16]


def identity_in(folder: Path) -> str:
    """Return the identity of the build in a folder, even of a damaged one; "" without a build."""
    try:
        return identity_of(read(folder, MANIFEST))
    except DAMAGED:
        return ""


def manifest_sum(manifest: str) -> str:
    """Return the text of `manifest.sha256` for the text of a manifest."""
    return f"{hashlib.sha256(manifest.encode()).hexdigest()}  {MANIFEST}\n"


def require_outside_polarfab_folders(file: Path, todo: str) -> None:
    """Pass when a file is in no build, and in no folder that a render wrote.

    Such a folder is replaced as a whole, and only if no other file is in it: a user's file there
    would block the next build.

    Raises:
        InputError: the file is inside such a folder.
    """
    for above in Path(os.path.realpath(file.parent), file.name).parents:
        inside = ""
        with suppress(OSError):  # a folder that cannot be read is refused when the file is written
            if is_build(above):
                inside = f"one inside a build, {above}"
            elif (above / RENDERED).is_file():
                inside = f"one inside a folder of files made from a build, {above}"
        if inside:
            required = "a file outside builds and what is made from them"
            raise InputError.of(required, inside, todo, str(file))


def polarfab_files(folder: Path) -> set[str]:
    """Return the paths below a folder of polarfab's files: those of a build and of renders."""
    names = {RENDERED}
    with suppress(*DAMAGED):
        names |= {
            name
            for builds in json_document(folder, RENDERED)["targets"].values()
            for files in builds.values()
            for name in files
        }
    return (names | build_files(folder)) if is_build(folder) else names


def build_files(folder: Path) -> set[str]:
    """Return the paths below a folder of the files of its build, or of the builds of its planes.

    These are the files that the manifest lists; if the manifest is damaged, all arrays and the
    allocations.
    """
    names = {PLANES}
    for prefix in ("", *(f"{plane}/" for plane in plane_names(folder))):
        listed = json_document(folder / prefix, MANIFEST).get("files")
        if not listed:
            arrays = (folder / prefix / "arrays").glob("*.npy")
            listed = [ALLOCATIONS, *(f"arrays/{array.name}" for array in arrays)]
        names |= {f"{prefix}{name}" for name in (MANIFEST, MANIFEST_SUM, FABRIC, VERIFIED, *listed)}
    return names


def json_document(folder: Path, name: str) -> dict[str, Any]:
    """Return the content of a JSON document in a folder, {} where it is missing or damaged."""
    try:
        return dict(json.loads(read(folder, name)))
    except DAMAGED:
        return {}


def plane_names(folder: Path) -> list[str]:
    """Return the names of the planes in a folder, [] for the folder of one build.

    The list of planes names them; if that list is damaged, the builds in the folder are taken.
    """
    if not (folder / PLANES).is_file():
        return []
    listed = json_document(folder, PLANES).get("planes")
    if not listed:
        listed = [path.name for path in folder.iterdir() if is_build(path)]
    return [name for name in map(str, listed) if PLANE.fullmatch(name)]


def distinguishing_file(folder: Path) -> bytes:
    """Return the content of the file that tells a build from others, b"" where there is no build.

    This is the list of planes, which has their identities, or the manifest.
    """
    files = (folder / name for name in (PLANES, MANIFEST))
    return next((file.read_bytes() for file in files if file.is_file()), b"")


def is_build(folder: Path) -> bool:
    """Whether a folder holds a build, of one plane or of several, even a damaged one."""
    if (folder / MANIFEST).is_file():
        if isinstance(files := json_document(folder, MANIFEST).get("files"), dict):
            return FABRIC in files
        return (folder / FABRIC).is_file() and (folder / "arrays").is_dir()
    return (folder / PLANES).is_file() and (folder / "plane-1").is_dir()


def fabric_name_in(folder: Path) -> str:
    """Return the name of the fabric whose build is in a folder, "" where none can be read."""
    first = folder / "plane-1" if (folder / PLANES).is_file() else folder
    return str(json_document(first, MANIFEST).get("name", ""))


def real_path(folder: Path) -> Path:
    """Return a path with its links followed; links that lead in a circle stay in it."""
    return Path(os.path.realpath(folder))


def last_build_place(place: Path) -> Path:
    """Return where the last proved build before the one in a place is kept.

    >>> last_build_place(Path("fabrics/build")).as_posix()
    'fabrics/.build.last'
    """
    return place.with_name(f".{place.name}.last")
