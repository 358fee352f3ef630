"""The check of a build or rendered folder on disk: every file against its digest, and strays."""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from pathlib import Path

from compilers.tables.folders.build_folder import (
    damaged,
    identities_in,
    load,
    load_planes,
    read_manifest,
)
from compilers.tables.folders.folder_files import FolderFiles, read
from compilers.tables.folders.generations import (
    MANIFEST,
    RENDERED,
    SUM,
    VERIFIED,
    followed,
    identity_in,
    is_build,
    last_place,
    verified_identity,
)
from compilers.tables.folders.replaced_folder import GIT, remove_parts
from compilers.targets.rendering.rendered_folder import rendered_lists
from inventory.problems import InputError, Problem


@dataclass(frozen=True, slots=True)
class FolderState:
    """A folder and what is wrong with it."""

    folder: Path
    kind: str
    """build or render."""
    builds: tuple[str, ...]
    """The identities of the builds."""
    files: int
    """The number of files that are in order."""
    damaged: tuple[Problem, ...]
    """Problems of files."""
    strays: tuple[str, ...]
    """Files that no list has: with one, the folder is not replaced."""
    verified: bool | None = None
    """Whether all builds are marked so; None for a render."""
    kept: str = ""
    """The identity of the last proved build before; "" where none is kept."""
    parts: tuple[str, ...] = ()
    """What killed processes left, for `polarfab folder --clean`."""


def check_folder(folder: Path) -> FolderState:
    """Check every file of a build or of a rendered folder.

    Raises:
        InputError: it is neither.
    """
    if is_build(folder):
        return _check_build(folder)
    if (folder / RENDERED).is_file():
        return _check_render(folder)
    if is_build(last_place(followed(folder))):
        todo = f"the last proved build is kept: polarfab folder --undo {folder}"
    else:
        todo = "name another folder"
    required = "a build, or a folder that render wrote"
    given = f"a folder without {MANIFEST}" if folder.is_dir() else "no such folder"
    raise InputError.of(required, given, todo, str(folder))


def _check_build(folder: Path) -> FolderState:
    """Check every file of the planes of a build, and whether their marks are theirs."""
    problems, strays, builds, count = list[Problem](), list[str](), list[str](), 0
    try:
        planes = identities_in(folder)
    except InputError as error:
        planes = {}
        problems += error.problems
    for plane, identity in planes.items():
        listed: Collection[str] = ()
        try:
            with FolderFiles(plane) as files:
                listed = read_manifest(files)[1]["files"]
                strays += _strays(files, {*listed, MANIFEST, SUM, VERIFIED})
            count += len(listed)
            problems += _mark_of_another(plane)
            builds.append(load(plane, expect=identity).identity)
        except InputError as error:
            problems += error.problems
            count -= len({str(plane / name) for name in listed} & {p.file for p in error.problems})
        except OSError as error:
            problems.append(_unreadable(plane, error))
    return FolderState(
        folder,
        "build",
        tuple(builds),
        count,
        tuple(problems),
        tuple(strays),
        verified=not problems and all(map(verified_identity, planes)),
        kept=_kept(folder),
        parts=_parts(folder),
    )


def _mark_of_another(folder: Path) -> list[Problem]:
    """The mark of a build, where it is a link, unreadable or of another build."""
    try:
        named = json.loads(read(folder, VERIFIED))["build"]
    except FileNotFoundError:
        return []
    except (OSError, ValueError, KeyError, TypeError, RecursionError) as error:
        given = f"a damaged file ({error})"
    else:
        if verified_identity(folder):
            return []
        given = "a changed file" if named == identity_in(folder) else "the mark of another build"
    todo = f"run: polarfab verify {folder}"
    return [Problem("the mark of this build", given, todo, str(folder / VERIFIED))]


def _kept(folder: Path) -> str:
    """The identities of the last proved build, or what is wrong with it; "" without one."""
    kept = last_place(followed(folder))
    if not is_build(kept):
        return ""
    try:
        return " ".join(build.identity for build in load_planes(kept))
    except InputError:
        return "damaged"


def _check_render(folder: Path) -> FolderState:
    """Check every file that the list of a rendered folder has."""
    lists = rendered_lists(folder) or {}
    digests = {
        name: digest
        for builds in lists.values()
        for names in builds.values()
        for name, digest in names.items()
    }
    with FolderFiles(folder) as files:
        wrong = [
            Problem(problem.required, problem.given, "render again", problem.file)
            for problem in damaged(files, digests)
        ]
        strays = _strays(files, {*digests, RENDERED}, RENDERED)
    return FolderState(
        folder,
        "render",
        tuple(sorted({build for builds in lists.values() for build in builds})),
        len(digests) - len(wrong),
        tuple(wrong),
        tuple(strays),
        parts=_parts(folder),
    )


def _parts(folder: Path) -> tuple[str, ...]:
    """The paths of unfinished files that killed processes left."""
    return tuple(str(part) for part, _ in remove_parts(followed(folder), act=False))


def _strays(files: FolderFiles, listed: Collection[str], lists: str = "") -> list[str]:
    """The files that no list has.

    Files of a Git repository, and of folders below with lists of their own, are not meant.

    Args:
        files: the files of the folder.
        listed: the names that the lists have.
        lists: the file name of lists; "" where folders below cannot have one.
    """
    names = files.names()
    below = tuple(
        name.removesuffix(lists) for name in names if lists and name.endswith(f"/{lists}")
    )
    apart = (f"{GIT}/", *below)
    return [name for name in names if name not in listed and not name.startswith(apart)]


def _unreadable(folder: Path, error: OSError) -> Problem:
    """The problem of a folder that cannot be read."""
    return Problem("a build folder", error.strerror or str(error), file=str(folder))


def as_dict(state: FolderState) -> Mapping[str, object]:
    """The state for JSON."""
    plain = {word: getattr(state, word) for word in FolderState.__dataclass_fields__}
    return plain | {"folder": str(state.folder), "damaged": [str(p) for p in state.damaged]}
