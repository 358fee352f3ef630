"""Checks a build or a rendered folder on disk: every file against its digest, and strays.

The *manifest* of the folder lists each file with its digest; *strays* are files that it does not
list. The *verification mark* of a build is its file `VERIFIED`: `polarfab verify` writes the digest
of the build into it, so that the mark is valid only for this very build. The *previous build* is
the last verified build that `compile` has replaced, for `polarfab folder --undo`. `polarfab folder`
prints the `FolderState`.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field, fields
from pathlib import Path

from compilers.tables.folders.build_folder import identities_in, load, load_planes
from compilers.tables.folders.build_reading import damage_problems, read_manifest
from compilers.tables.folders.folder_contents import (
    MANIFEST,
    MANIFEST_SUM,
    RENDERED,
    VERIFIED,
    identity_in,
    is_build,
    last_build_place,
    real_path,
)
from compilers.tables.folders.folder_files import FolderFiles, read
from compilers.tables.folders.folder_moves import GIT
from compilers.tables.folders.leftover_parts import remove_parts
from compilers.tables.folders.verified_mark import verified_identity
from compilers.targets.rendering.rendered_folder import rendered_lists
from inventory.problems import InputError, Problem


@dataclass(frozen=True, slots=True)
class FolderState:
    """A folder and what is wrong with it. The names of the fields are those of the JSON."""

    folder: Path
    """The folder."""
    kind: str
    """`build` or `render`."""
    builds: tuple[str, ...]
    """The identities of the builds."""
    files: int
    """The number of files that are in order."""
    damaged: tuple[Problem, ...]
    """Problems of files."""
    strays: tuple[str, ...]
    """The paths of strays. A folder with strays is not replaced."""
    verified: bool | None = None
    """Whether all builds have a valid verification mark; None for a render."""
    kept: str = ""
    """The identity of the previous build; "" where there is none."""
    parts: tuple[str, ...] = ()
    """The paths of unfinished files that killed processes left, for `polarfab folder --clean`."""


def check_folder(folder: Path) -> FolderState:
    """Check every file of a build or of a rendered folder.

    Raises:
        InputError: the folder is neither.
    """
    if is_build(folder):
        return _check_build(folder)
    if (folder / RENDERED).is_file():
        return _check_render(folder)
    if is_build(last_build_place(real_path(folder))):
        todo = f"the last proved build is kept: polarfab folder --undo {folder}"
    else:
        todo = "name another folder"
    required = "a build, or a folder that render wrote"
    given = f"a folder without {MANIFEST}" if folder.is_dir() else "no such folder"
    raise InputError.of(required, given, todo, str(folder))


def _check_build(folder: Path) -> FolderState:
    """Check every file of the planes of a build, and their verification marks."""
    try:
        planes = identities_in(folder)
    except InputError as error:
        planes = {}
        problems = list(error.problems)
    else:
        problems = []
    states = [_check_plane(plane, identity) for plane, identity in planes.items()]
    problems += [problem for state in states for problem in state.problems]
    return FolderState(
        folder=folder,
        kind="build",
        builds=tuple(state.build for state in states if state.build),
        files=sum(state.files for state in states),
        damaged=tuple(problems),
        strays=tuple(name for state in states for name in state.strays),
        verified=not problems and all(map(verified_identity, planes)),
        kept=_previous_build(folder),
        parts=_unfinished_files(folder),
    )


@dataclass(slots=True)
class _PlaneState:
    """The folder of a plane, and what is wrong with it."""

    build: str = ""
    """The identity of the build; "" if it cannot be loaded."""
    files: int = 0
    """The number of files that are in order."""
    problems: list[Problem] = field(default_factory=list)
    """Problems of files."""
    strays: list[str] = field(default_factory=list)
    """The paths of strays."""


def _check_plane(folder: Path, identity: str) -> _PlaneState:
    """Check every file of a plane, and its verification mark.

    Args:
        folder: the folder of the plane.
        identity: the identity of the build that has to be there.
    """
    state = _PlaneState()
    listed: Collection[str] = ()
    try:
        with FolderFiles(folder) as files:
            _, document = read_manifest(files)
            listed = document["files"]
            state.strays = _strays(files, {*listed, MANIFEST, MANIFEST_SUM, VERIFIED})
        state.files = len(listed)
        state.problems += _mark_problems(folder)
        state.build = load(folder, expect=identity).identity
    except InputError as error:
        state.problems += error.problems
        damaged_files = {problem.file for problem in error.problems}
        state.files -= len([name for name in listed if str(folder / name) in damaged_files])
    except OSError as error:
        state.problems.append(_unreadable(folder, error))
    return state


def _mark_problems(folder: Path) -> list[Problem]:
    """The problem of a mark that is a link, unreadable, changed, or that of another build.

    A build without a mark has none.
    """
    try:
        marked_identity = json.loads(read(folder, VERIFIED))["build"]
    except FileNotFoundError:
        return []
    except (OSError, ValueError, KeyError, TypeError, RecursionError) as error:
        given = f"a damaged file ({error})"
    else:
        if verified_identity(folder):
            return []
        given = "the mark of another build"
        if marked_identity == identity_in(folder):
            given = "a changed file"
    todo = f"run: polarfab verify {folder}"
    return [Problem("the mark of this build", given, todo, str(folder / VERIFIED))]


def _previous_build(folder: Path) -> str:
    """The identities of the planes of the previous build, or `damaged`; "" without one."""
    previous = last_build_place(real_path(folder))
    if not is_build(previous):
        return ""
    try:
        return " ".join(build.identity for build in load_planes(previous))
    except InputError:
        return "damaged"


def _check_render(folder: Path) -> FolderState:
    """Check every file that the manifest of a rendered folder lists."""
    digests: dict[str, str] = {}
    identities: set[str] = set()
    for builds in (rendered_lists(folder) or {}).values():
        for identity, digests_of_build in builds.items():
            identities.add(identity)
            digests |= digests_of_build
    with FolderFiles(folder) as files:
        problems = [
            Problem(problem.required, problem.given, "render again", problem.file)
            for problem in damage_problems(files, digests)
        ]
        strays = _strays(files, {*digests, RENDERED}, RENDERED)
    return FolderState(
        folder=folder,
        kind="render",
        builds=tuple(sorted(identities)),
        files=len(digests) - len(problems),
        damaged=tuple(problems),
        strays=tuple(strays),
        parts=_unfinished_files(folder),
    )


def _unfinished_files(folder: Path) -> tuple[str, ...]:
    """The paths of unfinished files that killed processes left."""
    return tuple(str(path) for path, _ in remove_parts(real_path(folder), dry_run=True))


def _strays(files: FolderFiles, listed: Collection[str], list_name: str = "") -> list[str]:
    """The paths of the files that the manifest does not list.

    Files of a Git repository, and of folders below with manifests of their own, are left out.

    Args:
        files: the files of the folder.
        listed: the paths that the manifest lists.
        list_name: the file name of a manifest; "" where folders below cannot have one.
    """
    names = files.names()
    other_folders = [f"{GIT}/"]
    if list_name:
        manifests = [name for name in names if name.endswith(f"/{list_name}")]
        other_folders += [name.removesuffix(list_name) for name in manifests]
    prefixes = tuple(other_folders)
    return [name for name in names if name not in listed and not name.startswith(prefixes)]


def _unreadable(folder: Path, error: OSError) -> Problem:
    """The problem of a folder that cannot be read."""
    return Problem("a build folder", error.strerror or str(error), file=str(folder))


def as_dict(state: FolderState) -> Mapping[str, object]:
    """The state for JSON."""
    values = {field.name: getattr(state, field.name) for field in fields(state)}
    damaged_files = [str(problem) for problem in state.damaged]
    return values | {"folder": str(state.folder), "damaged": damaged_files}
