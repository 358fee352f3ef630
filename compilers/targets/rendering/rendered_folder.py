"""Folders of rendered files, each replaced as a whole, with a manifest that lists every file.

The manifest is the file `.polarfab.json`: by target and build, the path and the SHA-256 of each
file, and the *recipe*, the digest of all that the files follow from. `put_rendered` writes the
files of a target into a new folder, links the files that stay into it, and puts the new folder in
the place of the old one. Another target's files in the same folder stay. So do *renders* below it,
which are folders with a manifest of their own. A folder with a file that no manifest lists is not
replaced.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import TypeVar

from compilers.tables.folders.folder_contents import RENDERED, is_build
from compilers.tables.folders.folder_files import FolderFiles, read
from compilers.tables.folders.folder_moves import link_file, locked_folder
from compilers.tables.folders.replaced_folder import (
    folder_beside,
    os_errors_as_unwritable,
    prepared_place,
    put_in_place,
    require_only_ours,
    require_outside,
)
from compilers.tables.folders.written_file import OTHER_FOLDER
from inventory.problems import InputError

FORMAT = 1
"""The version of the manifest's form."""
Digests = dict[str, str]
"""The SHA-256 of each file, by its path below the folder."""
ListedFiles = dict[str, dict[str, Digests]]
"""The files that a manifest lists: by target and by identity of the build, the digest of each."""
Filled = TypeVar("Filled")
"""What a function that writes files returns."""


def put_rendered(
    folder: Path,
    target: str,
    builds: Mapping[str, str],
    fill: Callable[[Path], Filled],
    part: bool = False,
    recipes: Callable[[Filled], Mapping[str, str]] | None = None,
) -> Filled:
    """Have `fill` write the files of a target, then put them in the place of its earlier files.

    The files are written beside the place, without a lock, as that may take long. Then, with the
    place locked, all files that stay are linked to them, and the new folder replaces the old one.

    Args:
        folder: the folder, which may be new.
        target: the name of the target.
        builds: for each plane, by the prefix of its files' paths (`plane_prefixes`), the identity
            of its build.
        fill: writes the files into the folder that it is given.
        part: whether earlier files of the target stay unless `fill` writes them again.
        recipes: returns the recipe of the files of each build, by identity, from what `fill` has
            returned; None: the files have no recipes.

    Raises:
        InputError: the folder is a file or a build, has other files, or cannot be written.
    """
    with os_errors_as_unwritable(folder):
        place = prepared_place(folder)
        _require_rendered(place)
        with folder_beside(place) as new:
            result = fill(new)
            new_recipes = recipes(result) if recipes else {}
            with locked_folder(place.parent):
                _require_rendered(place)
                _complete(place, new, target, builds, part, new_recipes)
                put_in_place(new, place)
    return result


def _complete(
    place: Path,
    new: Path,
    target: str,
    builds: Mapping[str, str],
    part: bool,
    new_recipes: Mapping[str, str],
) -> None:
    """Link the files in a place that stay into the new folder, and write the list of all files.

    Args:
        place: the folder with the earlier files.
        new: the folder with the new files, which takes its place.
        target: the name of the target.
        builds: the identity of each plane's build, by the prefix of its files' paths.
        part: whether earlier files of the target stay unless there are new ones.
        new_recipes: the recipe of the new files of each build, by identity.

    Raises:
        InputError: a render below has a file by the path of a new file.
    """
    listed, recipes = rendered_lists(place) or {}, rendered_recipes(place)
    if not part:
        listed.pop(target, None)
    with FolderFiles(new) as files:
        new_digests = files.digests(files.names())
    _remove_replaced(listed, recipes, new_digests)
    builds_of_target = listed.setdefault(target, {})
    for build, digests in digests_by_build(new_digests, builds).items():
        builds_of_target.setdefault(build, {}).update(digests)
    files_below = _files_of_renders_below(place)
    if clashing := sorted(files_below & new_digests.keys()):
        required, given = "no file of a render below by this name", "one"
        raise InputError.of(required, given, OTHER_FOLDER, str(place / clashing[0]))
    _link_files(place, new, (_paths(listed) | files_below) - new_digests.keys())
    all_recipes = {**recipes, target: dict(new_recipes)}
    (new / RENDERED).write_text(manifest_text(listed, all_recipes))


def _remove_replaced(
    listed: ListedFiles, recipes: dict[str, dict[str, str]], new_digests: Digests
) -> None:
    """Remove the files that are written anew from the lists of earlier targets and builds.

    The recipe of such a list is removed, too: the files that stay do not follow from it alone.

    Args:
        listed: the files of the earlier manifest, which is changed.
        recipes: their recipes by target and by identity of the build, which are changed.
        new_digests: the files that are written anew.
    """
    for target, builds in listed.items():
        for build, digests in builds.items():
            for path in digests.keys() & new_digests.keys():
                del digests[path]
                recipes.get(target, {}).pop(build, None)


def put_texts(folder: Path, kind: str, source: str, texts: Mapping[str, str]) -> list[Path]:
    """Put text files into a folder, in the place of its earlier files of the same kind.

    Args:
        folder: the folder, which may be new.
        kind: the kind of the files, which the manifest lists like a target.
        source: the identity of what they are made from, which it lists like a build.
        texts: the texts by their paths below the folder.

    Raises:
        InputError: as `put_rendered`.
    """

    def fill(new: Path) -> None:
        """Write the texts into a new folder."""
        for name, text in texts.items():
            (new / name).parent.mkdir(parents=True, exist_ok=True)
            (new / name).write_text(text)

    put_rendered(folder, kind, {"": source}, fill)
    return [folder / name for name in texts]


def _paths(listed: ListedFiles) -> set[str]:
    """The paths of all listed files."""
    return {path for builds in listed.values() for digests in builds.values() for path in digests}


def _require_rendered(place: Path) -> None:
    """Refuse a place in which rendered files may not be put.

    Raises:
        InputError: it is a file or a build, is inside a build, or has files that are not listed.
    """
    if is_build(place) or (place.exists() and not place.is_dir()):
        required = "a folder for rendered files"
        given = "a build" if place.is_dir() else "a file"
        raise InputError.of(required, given, OTHER_FOLDER, str(place))
    require_outside(place, of_build=False)
    rendered_lists(place)  # raises if the manifest is damaged
    require_only_ours(place, _files_of_renders_below(place))


def _files_of_renders_below(place: Path) -> set[str]:
    """The paths of the files of renders in the folders below a place."""
    paths = set[str]()
    for manifest in place.rglob(f"*/{RENDERED}"):
        folder = manifest.parent
        listed = _paths(rendered_lists(folder) or {})
        paths |= {str(folder.relative_to(place) / path) for path in (RENDERED, *listed)}
    return paths


def _link_files(old: Path, new: Path, names: Iterable[str]) -> None:
    """Link files of a folder into another, as far as the folder has them.

    Raises:
        OSError: they cannot be linked or copied.
    """
    for name in names:
        if os.path.lexists(old / name) and not (old / name).is_dir():
            (new / name).parent.mkdir(parents=True, exist_ok=True)
            link_file(old / name, new / name)


def plane_prefixes(planes: int) -> list[str]:
    """The prefix of the paths of each plane's files; "" for the only plane.

    >>> plane_prefixes(1), plane_prefixes(2)
    ([''], ['plane-1/', 'plane-2/'])
    """
    return [f"plane-{number}/" for number in range(1, planes + 1)] if planes > 1 else [""]


def digests_by_build(digests: Digests, builds: Mapping[str, str]) -> dict[str, Digests]:
    """The digests of files by the identity of their build, which the prefix of a path tells.

    Args:
        digests: the digests of all files.
        builds: the identity of the build of each plane, by the prefix of its files' paths.
    """
    digests_of_build: dict[str, Digests] = {}
    for name, digest in digests.items():
        build = next(build for prefix, build in builds.items() if name.startswith(prefix))
        digests_of_build.setdefault(build, {})[name] = digest
    return digests_of_build


def manifest_text(listed: ListedFiles, recipes: Mapping[str, Mapping[str, str]]) -> str:
    """The text of `.polarfab.json`.

    Args:
        listed: the files.
        recipes: their recipes, by target and by identity of the build.
    """
    targets = {
        target: {build: digests for build, digests in builds.items() if digests}
        for target, builds in listed.items()
    }
    listed_recipes = {
        target: dict(recipe_of_build)
        for target, recipe_of_build in recipes.items()
        if recipe_of_build and target in targets
    }
    return json.dumps({"format": FORMAT, "targets": targets, "recipes": listed_recipes}, indent=1)


def rendered_recipes(folder: Path) -> dict[str, dict[str, str]]:
    """The recipes of a folder's files, by target and build; {} without a manifest that has any."""
    try:
        recipes = json.loads(read(folder, RENDERED)).get("recipes", {})
        return {target: dict(recipe_of_build) for target, recipe_of_build in recipes.items()}
    except (OSError, ValueError, TypeError, AttributeError):
        return {}


def edited_files(folder: Path, digests: Digests) -> list[str]:
    """The paths of listed files that a folder lacks, or has with another digest."""
    with FolderFiles(folder) as files:
        present = files.digests(digests)
    return [name for name, digest in digests.items() if present[name] != digest]


def link_unchanged(folder: Path, new: Path, names: Iterable[str]) -> int:
    """Link files of a folder into a new one, and return how many bytes they have."""
    paths = list(names)
    _link_files(folder, new, paths)
    return sum((new / path).stat().st_size for path in paths)


def rendered_lists(folder: Path) -> ListedFiles | None:
    """What the manifest of a folder lists; None where there is none.

    Raises:
        InputError: the manifest is damaged.
    """
    try:
        document = json.loads(read(folder, RENDERED))
        if document["format"] != FORMAT:
            raise ValueError(f"format {document['format']}")
        listed: ListedFiles = document["targets"]
        all_digests = [digests for builds in listed.values() for digests in builds.values()]
        if not all(isinstance(digest, str) for files in all_digests for digest in files.values()):
            raise TypeError("targets")
    except (FileNotFoundError, NotADirectoryError):
        return None
    except (OSError, ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        todo = "remove it, and render again"
        given = f"a damaged file ({error})"
        file = str(folder / RENDERED)
        raise InputError.of("the list of rendered files", given, todo, file) from error
    return listed
