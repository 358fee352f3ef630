"""What a folder of ours holds: the build, its mark, and the files that its lists name."""

from __future__ import annotations

import hashlib
import json
import os
import re
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

from compilers.tables.build import Build
from compilers.tables.folders.folder_files import read
from compilers.tables.folders.written_file import flush, replace_file
from inventory.problems import InputError

MANIFEST, FABRIC, VERIFIED = "manifest.json", "fabric.json", "verified.json"
SUM = f"{MANIFEST.removesuffix('.json')}.sha256"
"""The digest of the manifest, as `sha256sum -c` reads it; not part of the identity."""
PLANES = "planes.json"  # in a folder of builds, one a plane
PLANE = re.compile("plane-[1-9][0-9]*")
RENDERED = ".polarfab.json"  # in a folder of files made from a build (`rendered_folder`)
DAMAGED = (OSError, ValueError, KeyError, TypeError, AttributeError, RecursionError)


def identity_of(manifest: str) -> str:
    """The identity of a build, from the text of its manifest."""
    return hashlib.sha256(manifest.encode()).hexdigest()[:16]


def identity_in(folder: Path) -> str:
    """The identity of the build in a folder, sound or not; "" where there is none."""
    try:
        return identity_of(read(folder, MANIFEST))
    except DAMAGED:
        return ""


def sum_of(manifest: str) -> str:
    """The text of `manifest.sha256`."""
    return f"{hashlib.sha256(manifest.encode()).hexdigest()}  {MANIFEST}\n"


def require_outside_ours(file: Path, todo: str) -> None:
    """Pass when a file is in no build, and in no folder that a render wrote.

    These folders are replaced whole, and only while nothing else is in them.

    Raises:
        InputError: it is inside one.
    """
    for above in Path(os.path.realpath(file.parent), file.name).parents:
        given = ""
        with suppress(OSError):  # who writes the file says what is wrong with its place
            if is_build(above):
                given = f"one inside a build, {above}"
            elif (above / RENDERED).is_file():
                given = f"one inside a folder of files made from a build, {above}"
        if given:
            required = "a file outside builds and what is made from them"
            raise InputError.of(required, given, todo, str(file))


def owned(folder: Path) -> set[str]:
    """The paths of the files below a folder that are ours: of a build in it, of renders in it."""
    names = {RENDERED}
    with suppress(*DAMAGED):
        names |= {
            name
            for builds in said(folder, RENDERED)["targets"].values()
            for files in builds.values()
            for name in files
        }
    return names | build_files(folder) if is_build(folder) else names


def build_files(folder: Path) -> set[str]:
    """The paths below a folder of what belongs to the build in it, of several planes to each."""
    names = {PLANES}
    for above in ("", *(f"{name}/" for name in _planes(folder))):
        arrays = (folder / above / "arrays").glob("*.npy")  # what every build has
        listed = said(folder / above, MANIFEST).get("files") or [f"arrays/{p.name}" for p in arrays]
        names |= {f"{above}{name}" for name in (MANIFEST, SUM, FABRIC, VERIFIED, *listed)}
    return names


def said(folder: Path, name: str) -> dict[str, Any]:
    """What a JSON document of a folder says; nothing where there is none, or a damaged one."""
    try:
        return dict(json.loads(read(folder, name)))
    except DAMAGED:
        return {}


def _planes(folder: Path) -> list[str]:
    """The names of the planes in a folder, by its list; by the builds there if it is damaged."""
    if not (folder / PLANES).is_file():
        return []
    listed = said(folder, PLANES).get("planes") or [p.name for p in folder.iterdir() if is_build(p)]
    return [name for name in map(str, listed) if PLANE.fullmatch(name)]


def name_of_build(folder: Path) -> bytes:
    """What tells a build from others: its list of planes, or its manifest; b"" without one."""
    names = (folder / name for name in (PLANES, MANIFEST))
    return next((file.read_bytes() for file in names if file.is_file()), b"")


def is_build(folder: Path) -> bool:
    """Whether there is a build, of one plane or of several, sound or not."""
    if (folder / MANIFEST).is_file():
        if isinstance(files := said(folder, MANIFEST).get("files"), dict):
            return FABRIC in files
        return (folder / FABRIC).is_file() and (folder / "arrays").is_dir()
    return (folder / PLANES).is_file() and (folder / "plane-1").is_dir()


def fabric_in(folder: Path) -> str:
    """The name of the fabric whose build is in a folder; "" where there is none to read."""
    first = folder / "plane-1" if (folder / PLANES).is_file() else folder
    return str(said(first, MANIFEST).get("name", ""))


def followed(folder: Path) -> Path:
    """A path whose links are followed; those that lead in a circle stay."""
    return Path(os.path.realpath(folder))


def last(place: Path) -> Path:
    """Where the last proved build before the one in a place is kept."""
    return place.with_name(f".{place.name}.last")


def proved(folder: Path) -> bool:
    """Whether verification passed on a build, on each plane of several, by their marks."""
    return all(mark(folder / plane) for plane in _planes(folder) or [""])


def mark_verified(folder: Path, identity: str, result: Mapping[str, Any] | None) -> None:
    """Write the mark that verification has passed on this build; without a result, remove it.

    A link in its place is replaced.

    Raises:
        OSError: the folder cannot be written.
    """
    if result is None:
        (folder / VERIFIED).unlink(missing_ok=True)
        return
    plain = json.loads(json.dumps({"build": identity, **result}))
    text = json.dumps(plain | {"digest": _seal(plain)}, indent=1)
    replace_file(folder / VERIFIED, [text.encode()])
    flush(folder)


def _seal(marked: Mapping[str, Any]) -> str:
    """The digest of what a mark says."""
    plain = {name: value for name, value in marked.items() if name != "digest"}
    return hashlib.sha256(json.dumps(plain, sort_keys=True).encode()).hexdigest()


def mark(folder: Path) -> str:
    """The identity of the build that the mark in a folder is for, if it is this build; else ""."""
    here = identity_in(folder)
    return here if marked(folder).get("build") == here else ""


def marked(folder: Path) -> Mapping[str, Any]:
    """What the mark in a folder says; nothing where it is not as it was written."""
    found = said(folder, VERIFIED)
    return found if found.get("digest") == _seal(found) else {}


def require_verified(folder: Path, build: Build) -> None:
    """Refuse a build that has not passed verification.

    Raises:
        InputError: it has not.
    """
    if mark(folder) != build.identity:
        raise InputError.of(
            file=str(folder),
            required="a build that has passed polarfab verify",
            given="one that has not",
            todo=f"run: polarfab verify {folder} (or use it as it is, with `unverified`)",
        )
