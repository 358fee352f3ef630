"""Folders of rendered files: exchanged whole, with a manifest of the digest of every file.

`.polarfab.json` has, by target and build, the files and their SHA-256. Another target's files in
the same folder stay, and so does what is in nobody's list: renders below it, files of the user's.
"""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import TypeVar

from compilers.tables.folders.artefact import OTHER_FOLDER, put_folder
from compilers.tables.folders.folder_files import opened, read
from compilers.tables.folders.generations import is_build
from compilers.tables.folders.stale_parts import is_part
from inventory.problems import InputError

RENDERED, FORMAT = ".polarfab.json", 1
Digests = dict[str, str]
Lists = dict[str, dict[str, Digests]]
"""The digests of files by the files, builds and targets that they are of."""
T = TypeVar("T")


def put_rendered(
    folder: Path,
    target: str,
    builds: Mapping[str, str],
    fill: Callable[[Path], T],
    part: bool = False,
    recipes: Mapping[str, str] | None = None,
) -> T:
    """Have `fill` write the files of a target, then put them in the place of its earlier ones.

    Args:
        folder: the place.
        target: the target's name.
        builds: the identity of each plane's build, by what its files' paths begin with.
        fill: writes the files into the folder that it is given.
        part: whether earlier files of the target that `fill` does not write stay.
        recipes: what the files follow from, by the identity of their build; filled by `fill`.

    Raises:
        InputError: it is a file or a build, cannot be written, or has pipes or devices in it.
    """
    if is_build(folder) or (folder.exists() and not folder.is_dir()):
        required = "a folder for rendered files"
        given = "a build" if folder.is_dir() else "a file"
        raise InputError.of(required, given, OTHER_FOLDER, str(folder))
    lists = rendered_lists(folder) or {}
    known = rendered_recipes(folder)
    earlier = lists.get(target, {}) if part else lists.pop(target, {})

    def whole(beside: Path) -> T:
        result = fill(beside)
        with opened(beside) as files:
            fresh = {name: files.digest(name) for name, _ in files.entries()}
        if folder.is_dir():
            listed = () if part else [name for names in earlier.values() for name in names]
            _carry(folder, beside, {*listed, RENDERED})
        for other, build, of_build in [(t, b, of[b]) for t, of in lists.items() for b in of]:
            for name in of_build.keys() & fresh.keys():
                del of_build[name]
                known.get(other, {}).pop(build, None)
        of_target = lists.setdefault(target, {})
        for build, names in by_build(fresh, builds).items():
            of_target.setdefault(build, {}).update(names)
        (beside / RENDERED).write_text(manifest(lists, known | {target: dict(recipes or {})}))
        return result

    return put_folder(folder, whole)


def by_build(digests: Digests, builds: Mapping[str, str]) -> dict[str, Digests]:
    """The digests of files by the identity of their build: by what their paths begin with."""
    found: dict[str, Digests] = {}
    for name, digest in digests.items():
        build = next(build for prefix, build in builds.items() if name.startswith(prefix))
        found.setdefault(build, {})[name] = digest
    return found


def manifest(lists: Lists, recipes: Mapping[str, Mapping[str, str]]) -> str:
    """The text of `.polarfab.json`; `recipes` has what files follow from, by target and build."""
    kept = {t: {b: names for b, names in of.items() if names} for t, of in lists.items()}
    known = {target: dict(of) for target, of in recipes.items() if of and target in kept}
    return json.dumps({"format": FORMAT, "targets": kept, "recipes": known}, indent=1)


def rendered_recipes(folder: Path) -> dict[str, dict[str, str]]:
    """What the files of a folder follow from, by target and build, as far as it is known."""
    try:
        found = json.loads(read(folder, RENDERED)).get("recipes", {})
        return {target: dict(of) for target, of in found.items()}
    except (OSError, ValueError, TypeError, AttributeError):
        return {}


def edited(folder: Path, digests: Digests) -> list[str]:
    """The listed files that are not there any more as they were written."""
    with opened(folder) as files:
        return [name for name, digest in digests.items() if files.digest(name) != digest]


def keep(folder: Path, beside: Path, names: Iterable[str]) -> int:
    """Link files of a folder into another; returns their bytes."""
    size = 0
    for name in names:
        (beside / name).parent.mkdir(parents=True, exist_ok=True)
        link_file(folder / name, beside / name)
        size += (beside / name).stat().st_size
    return size


def rendered_lists(folder: Path) -> Lists | None:
    """What the manifest of a folder lists; None where there is none.

    Raises:
        InputError: it is damaged.
    """
    try:
        document = json.loads(read(folder, RENDERED))
        if document["format"] != FORMAT:
            raise ValueError(f"format {document['format']}")
        lists: Lists = document["targets"]
        names = [of for builds in lists.values() for of in builds.values()]
        if not all(isinstance(digest, str) for of in names for digest in of.values()):
            raise TypeError("targets")
    except (FileNotFoundError, NotADirectoryError):
        return None
    except (OSError, ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        todo = "remove it, and render again"
        given = f"a damaged file ({error})"
        file = str(folder / RENDERED)
        raise InputError.of("the list of rendered files", given, todo, file) from error
    return lists


def _carry(old: Path, new: Path, without: Iterable[str]) -> None:
    """Link all files of a folder, but some, into a new one, where nothing else has their name."""
    leave = set(without)
    with opened(old) as files:
        for name, entry in files.entries():
            there = new / name
            if name in leave or is_part(entry.name) or os.path.lexists(there):
                continue
            there.parent.mkdir(parents=True, exist_ok=True)
            if entry.is_symlink():
                there.symlink_to(Path(entry.path).readlink())
            elif entry.is_file(follow_symlinks=False):
                link_file(Path(entry.path), there)
            else:
                required = "a folder without pipes, sockets and devices"
                raise InputError.of(required, "one of these", OTHER_FOLDER, entry.path)


def link_file(here: Path, there: Path) -> None:
    """A hard link; a copy where the file system has none."""
    try:
        there.hardlink_to(here)
    except OSError:
        shutil.copy2(here, there)
