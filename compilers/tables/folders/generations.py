"""The place of a build: the build in it, its mark, and the last proved one before, `.NAME.last`."""

from __future__ import annotations

import hashlib
import json
import os
import re
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any, TypeVar

from compilers.tables.build import Build
from compilers.tables.folders.artefact import (
    LEFT,
    OTHER_FOLDER,
    PART,
    claimed,
    clear,
    finish,
    flush,
    held,
    is_left,
    others,
    put_folder,
    replace_file,
    require_replaceable,
)
from compilers.tables.folders.folder_files import read
from inventory.problems import InputError

MANIFEST, FABRIC, VERIFIED = "manifest.json", "fabric.json", "verified.json"
SUM = f"{MANIFEST.removesuffix('.json')}.sha256"
"""The digest of the manifest, as `sha256sum -c` reads it; not part of the identity."""
PLANES = "planes.json"  # in a folder of builds, one a plane
PLANE = re.compile("plane-[1-9][0-9]*")
RENDERED = ".polarfab.json"  # in a folder of files made from a build (`rendered_folder`)
T = TypeVar("T")
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


def put(folder: Path, fill: Callable[[Path], T]) -> T:
    """Have `fill` write a build, then put it in the place of `folder`; returns its result.

    Another proved build that was there is kept as the last one. Files in the folder that are not
    the build's stay.

    Raises:
        InputError: the folder exists and is not a build, is inside a build or a folder that render
            wrote, cannot be written, or something that is not the build's is in the way.
    """
    require_place(place := folder.resolve())
    return put_folder(place, fill, owned, keep, lambda new: keep(place, new))


def require_place(place: Path) -> None:
    """Pass when a build may be put in a place; finish what killed processes left there.

    Raises:
        InputError: it may not.
    """
    require_outside(place)
    collect(place, inside=False)
    if not is_build(place) and place.exists() and (not place.is_dir() or any(place.iterdir())):
        raise InputError.of(
            file=str(place),
            required="a new folder, or an earlier build to replace",
            given="a folder with other files in it" if place.is_dir() else "a file",
            todo=OTHER_FOLDER,
        )


def require_ours(kept: Path) -> None:
    """Pass when there is nothing but a build in the place of the last one.

    Raises:
        InputError: something else is.
    """
    require_replaceable(kept)
    if os.path.lexists(kept):
        is_folder = kept.is_dir() and not kept.is_symlink()
        if found := others(kept, owned(kept)) if is_folder else [""]:
            required, todo = "only the last build, which is kept here", "move it away"
            raise InputError.of(required, "something else", todo, str(kept / found[0]))


def keep(left: Path, place: Path) -> Path | None:
    """Where a folder that left a place is kept: a proved build that is another than the new one.

    Raises:
        InputError: something else is there.
    """
    kept = last(place)
    if left == kept or not proved(left) or not _text(left) != _text(place) != b"":
        return None
    require_ours(kept)
    return kept


def require_outside(place: Path, of_build: bool = True) -> None:
    """Pass when a place is in no build, and for a build in no folder that render wrote.

    Raises:
        InputError: it is.
    """
    for above in place.parents:
        given = "inside a build" if is_build(above) else ""
        if of_build and (above / RENDERED).is_file():
            given = "inside a folder of files made from a build"
        if given:
            required = "a folder outside builds and what is made from them"
            raise InputError.of(required, f"one {given}, {above}", OTHER_FOLDER, str(place))


def require_not_owned(file: Path, todo: str) -> None:
    """Pass when a file is none of those that a build or a render around it lists.

    Raises:
        InputError: it is one.
    """
    place = Path(os.path.realpath(file.parent)) / file.name
    for above in place.parents:
        with suppress(OSError):  # who writes the file says what is wrong with its place
            made = is_build(above) or (above / RENDERED).is_file()
            if made and place.relative_to(above).as_posix() in owned(above):
                required, given = "a file that is no part of a build or render", f"one of {above}"
                raise InputError.of(required, given, todo, str(file))


def owned(folder: Path) -> set[str]:
    """The paths of the files below a folder that are ours: of a build in it, of renders in it."""
    names = {RENDERED, LEFT}
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


def _text(folder: Path) -> bytes:
    """What names a build: its list of planes, or its manifest; nothing where there is none."""
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


def collect(place: Path, inside: bool = True, act: bool = True) -> list[tuple[Path, Path | None]]:
    """Finish what killed processes left undone: remove the parts that no process writes.

    A folder that left its place is finished first; one whose place is empty is put back.

    Args:
        place: a folder or a file.
        inside: also in it and in the folders in it, not only next to it.
        act: otherwise only say what would be done.

    Returns:
        Each part, and where it was put; None where it was removed.

    Raises:
        InputError: a folder cannot be read or changed, or what is not ours is in the way.
    """
    part, done = place, list[tuple[Path, Path | None]]()
    try:
        for folder, part, name in list(_parts(place.resolve(), inside)):
            with held(folder), claimed(part) as free:
                if free or (free is None and is_left(part)):
                    done.append((part, _collect(part, folder / name) if act else None))
    except OSError as error:
        given = error.strerror or str(error)
        raise InputError.of("a folder to clear", given, file=str(part)) from error
    return done


def _collect(part: Path, place: Path) -> Path | None:
    kept = None
    if is_left(part):
        if not os.path.lexists(place):
            part.rename(place)
            (place / LEFT).unlink()
            return place
        kept = finish(part, place, owned, keep)
    if part not in (kept, last(place)):
        clear(part)
    return kept


def _parts(place: Path, inside: bool = True) -> Iterator[tuple[Path, Path, str]]:
    """Folders, parts in them, and the names of what these are parts of."""
    folders = [place.parent]
    if inside and place.is_dir():
        below = (path for path in place.iterdir() if not PART.fullmatch(path.name))
        folders += [place, *(path for path in below if path.is_dir() and not path.is_symlink())]
    for folder in folders if place.parent.is_dir() else ():
        for path in sorted(folder.iterdir()):
            name = _part_of(path)
            if name and (folder != place.parent or name == place.name):
                yield folder, path, name


def _part_of(path: Path) -> str:
    """The name of what a path is a part of, as the last build is while it has files of others."""
    if match := PART.fullmatch(path.name):
        return match["place"]
    rolled_back = path.match(".*.last") and is_left(path)
    return path.name[1 : -len(".last")] if rolled_back else ""
