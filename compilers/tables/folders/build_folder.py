"""Build folders: how builds are written, and read with a check of every file.

A folder holds

- `manifest.json`: the inputs of the build, and a digest of every file,
- `manifest.sha256`: the digest of the manifest,
- `fabric.json`: names, addresses and policy,
- `allocations.csv`: the numbers of links, cables and hosts that stay when the fabric is compiled
  again, unless they follow from the ports of links,
- `arrays/*.npy`: the arrays. They are memory-mapped when the build is read, or copied by programs
  that run for long,
- `verified.json`: the mark that `verify` has passed, once it has.

The build's identity is the digest of the manifest: the same inputs give the same bytes, and so the
same identity, on every machine. For a fabric of several planes a folder holds `planes.json` and a
complete build for each plane in `plane-1`, …; arrays that planes share are hard links to one file.

A new folder is written next to its place, then exchanged with what is there (`replaced_folder`).
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from types import MappingProxyType, SimpleNamespace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from compilers.spec.allocations_file import ALLOCATIONS, text_of
from compilers.tables.array_declarations import array_file
from compilers.tables.build import Build
from compilers.tables.build_codec import arrays_of, to_json
from compilers.tables.folders.build_format import FORMAT
from compilers.tables.folders.build_reading import (
    COMPILE_AGAIN,
    damage_problems,
    no_build_reason,
    read_build,
    read_manifest,
    unreadable_folder,
)
from compilers.tables.folders.folder_contents import (
    DAMAGED,
    FABRIC,
    MANIFEST,
    MANIFEST_SUM,
    PLANES,
    identity_of,
    is_build,
    last_build_place,
    manifest_sum,
    real_path,
)
from compilers.tables.folders.folder_files import FolderFiles, read
from compilers.tables.folders.folder_moves import link_file
from compilers.tables.folders.replaced_folder import new_build, undo
from inventory.problems import InputError, few

READ_ATTEMPTS = 3
"""How often a build is read if another one takes its place each time."""
Write = Callable[[bytes], object]
"""Takes the next bytes of a file."""
WriteContent = Callable[[Write], object]
"""Writes the content of a file, piece by piece."""


def save(build: Build, folder: Path) -> Build:
    """Write the build of a fabric of one plane, and return it as it is read back.

    Raises:
        InputError: the folder exists and is no build, or cannot be written.
    """
    return save_planes((build,), folder)[0]


def save_planes(builds: Sequence[Build], folder: Path) -> tuple[Build, ...]:
    """Write the builds of all planes next to `folder`, and put them in its place.

    Args:
        builds: one for each plane.
        folder: the place, which may hold an earlier build.

    Returns:
        The builds as they are read back.

    Raises:
        InputError: the folder exists and is no build, or cannot be written.
    """
    with new_build(folder) as new_folder:
        write_planes(builds, new_folder)
        return load_planes(new_folder)


def write_planes(builds: Sequence[Build], new_folder: Path) -> None:
    """Write the builds of all planes into a new folder."""
    if len(builds) == 1:
        write(builds[0], new_folder)
        return
    identities = dict[str, str]()  # by the name of a plane's folder
    files = dict[int, Path]()  # of the arrays that are written, by their `id`
    for plane, build in enumerate(builds, 1):
        name = f"plane-{plane}"
        identities[name] = write(build, new_folder / name, files)
        files |= {
            id(array): new_folder / name / array_file(f.name) for f, array in arrays_of(build)
        }
    (new_folder / PLANES).write_text(json.dumps({"planes": identities}, indent=1))


def write(build: Build, folder: Path, written: Mapping[int, Path] = MappingProxyType({})) -> str:
    """Write the files of a build into a new folder, and return the build's identity.

    Args:
        build: of one plane.
        folder: does not exist yet.
        written: files of arrays that are written already, by the array's `id`; the same array
            becomes a hard link to its file.
    """
    (folder / "arrays").mkdir(parents=True)
    names = []
    for file in _contents(build):
        names.append(file.name)
        if file.array is not None and id(file.array) in written:
            link_file(written[id(file.array)], folder / file.name)
        else:
            with (folder / file.name).open("wb") as stream:
                file.write_content(stream.write)
    with FolderFiles(folder) as files:
        text = _manifest(build, files.digests(names))
    (folder / MANIFEST).write_text(text)
    (folder / MANIFEST_SUM).write_text(manifest_sum(text))
    return identity_of(text)


def with_identity(build: Build) -> Build:
    """Return the build with the identity that its folder would have, without writing one."""
    digests = {}
    for file in _contents(build):
        digest = hashlib.sha256()
        file.write_content(digest.update)
        digests[file.name] = digest.hexdigest()
    return replace(build, identity=identity_of(_manifest(build, digests)))


class _BuildFile(NamedTuple):
    """A file of a build, but for the manifest and its digest."""

    name: str
    """The path below the folder of the build."""
    array: NDArray[Any] | None
    """The array in the file; None if it holds something else."""
    write_content: WriteContent
    """Writes the content."""


def _contents(build: Build) -> Iterator[_BuildFile]:
    """Yield each file of a build that the manifest lists."""
    yield _BuildFile(FABRIC, None, lambda write: write(to_json(build).encode()))
    if build.allocations:
        yield _BuildFile(ALLOCATIONS, None, partial(_write_allocations, build))
    for field, array in arrays_of(build):
        yield _BuildFile(array_file(field.name), array, partial(_write_array, array))


def _write_allocations(build: Build, write: Write) -> None:
    """Write the allocations of a build as the rows of `allocations.csv`."""
    plane = build.hardware.plane if build.hardware else 0
    for text in text_of([(plane, build.allocations)]):
        write(text.encode())


def _write_array(array: NDArray[Any], write: Write) -> None:
    """Write an array in the form of NumPy."""
    # NumPy writes to a real file by C, and does not see errors of what C buffers. An object that is
    # no file has NumPy call `write`, which raises them.
    np.save(SimpleNamespace(write=write), array, allow_pickle=False)


def _manifest(build: Build, digests: Mapping[str, str]) -> str:
    """Return the text of a build's manifest, with the digests of its files by name."""
    manifest = {
        "format": FORMAT,
        "name": build.name,
        "topology": build.topology.title(),
        "switches": build.tables.switches,
        "links": build.topology.graph.size,
        "inputs": dict(build.inputs),
        "files": digests,
    }
    return json.dumps(manifest, indent=1)


def plane_folders(folder: Path) -> tuple[Path, ...]:
    """Return the folder of each plane, in order; for a fabric of one plane, the folder itself.

    Raises:
        InputError: `planes.json` is damaged.
    """
    return tuple(identities_in(folder))


def load_planes(folder: Path) -> tuple[Build, ...]:
    """Read the build of each plane.

    Raises:
        InputError: there is no build, it is damaged, or a plane is of another build.
    """
    planes = identities_in(folder)
    while True:
        try:
            return tuple(load(path, expect=identity) for path, identity in planes.items())
        except InputError:
            # Another build may have taken the place of the one that was being read: read that one.
            before, planes = planes, identities_in(folder)
            if planes == before:
                raise


def identities_in(folder: Path) -> dict[Path, str]:
    """Return the identity of each plane's build, by the plane's folder.

    For a fabric of one plane that is the folder itself, with "".

    Raises:
        InputError: `planes.json` is damaged.
    """
    try:
        planes = json.loads(read(folder, PLANES))["planes"]
        if list(planes) != [f"plane-{plane}" for plane in range(1, len(planes) + 1)] or not planes:
            raise ValueError(", ".join(map(str, planes)))
        return {folder / name: str(identity) for name, identity in planes.items()}
    except (FileNotFoundError, NotADirectoryError):
        return {folder: ""}
    except DAMAGED as error:
        raise InputError.of(
            file=str(folder / PLANES),
            required="the list of a fabric's planes",
            given=f"a damaged file ({error})",
            todo=COMPILE_AGAIN,
        ) from error


def last_proved_build(folder: Path, builds: Sequence[Build]) -> tuple[Build, ...]:
    """Return the last proved build that was in a folder before its present build.

    () where there is none, where it is of another fabric, or where it cannot be read.

    Args:
        folder: the place of the present build.
        builds: the present build, by planes.
    """
    last_build = last_build_place(real_path(folder))
    if not is_build(last_build):
        return ()
    try:
        planes = load_planes(last_build)
    except InputError:
        return ()
    return planes if [plane.name for plane in planes] == [build.name for build in builds] else ()


def put_back(folder: Path) -> tuple[Build, ...]:
    """Exchange the build in a folder with the last proved build before it, which is kept beside it.

    Returns:
        The build of each plane that is in the folder now.

    Raises:
        InputError: no proved build is kept, it is damaged, or it cannot be put back.
    """
    return undo(folder, load_planes)


def load(folder: Path, expect: str = "", in_memory: bool = False) -> Build:
    """Read a build of one plane: compare every file with its digest, and memory-map the arrays.

    Args:
        folder: of the build.
        expect: the identity that the build must have, "" for any.
        in_memory: whether to copy the arrays instead. A mapped array changes when somebody writes
            into its file, and a process that looks at it dies when the file is cut short. `cp -r`
            and `scp -r` do both.

    Raises:
        InputError: it is no build, one of another format or identity, or damaged; all damaged files
            are named.
    """
    # Another build may take the place of one that is being read. Then read again, a few times.
    for attempt in range(1, READ_ATTEMPTS + 1):
        try:
            with FolderFiles(folder) as files:
                try:
                    build = read_build(files, in_memory)
                    break
                except InputError:
                    if attempt == READ_ATTEMPTS or not files.moved():
                        raise
        except OSError as error:
            raise unreadable_folder(folder, *no_build_reason(folder)) from error
    if expect and build.identity != expect:
        raise unreadable_folder(folder, f"build {build.identity}, not {expect}")
    return build


def require_undamaged(folder: Path, identity: str) -> None:
    """Pass when every file of a build of one plane has its digest; the build is not read.

    Args:
        folder: of the build.
        identity: the identity that the build must have.

    Raises:
        InputError: it is no build, one of another format or identity, or damaged; all damaged files
            are named.
    """
    try:
        with FolderFiles(folder) as files:
            text, manifest = read_manifest(files)
            problems = damage_problems(files, manifest["files"])
    except OSError as error:
        raise unreadable_folder(folder, *no_build_reason(folder)) from error
    if problems:
        raise InputError(few(problems))
    if identity_of(text) != identity:
        raise unreadable_folder(folder, f"build {identity_of(text)}, not {identity}")
