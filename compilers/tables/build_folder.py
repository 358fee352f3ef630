"""Build folders: written under a temporary name and renamed, memory-mapped when read.

A folder holds `manifest.json` (the inputs of the build, a digest of every file), `fabric.json`
(names, addresses, policy), `arrays/*.npy` and, once `verify` has passed, `verified.json`. The
build's identity is the digest of the manifest: the same inputs give the same bytes, and so the same
identity, on every machine.
"""

from __future__ import annotations

import hashlib
import json
import os
import shutil
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import TypeVar

import numpy as np

from compilers.tables.build import Build
from compilers.tables.build_codec import arrays_of, from_json, to_json
from inventory.problems import InputError, Problem

FORMAT = 1
MANIFEST, FABRIC = "manifest.json", "fabric.json"
PLANES = "planes.json"  # in the folder of a fabric with several planes (`plane_folders`)
T = TypeVar("T")


def save(build: Build, folder: Path) -> Build:
    """Write the build to a temporary folder, then rename that to `folder`; returns it as read back.

    Raises:
        InputError: the folder exists and is not a build, or cannot be written.
    """
    identity = put(folder, lambda partial: write(build, partial))
    return load(folder.resolve(), expect=identity)


def put(folder: Path, fill: Callable[[Path], T]) -> T:
    """Have `fill` write a temporary folder, then rename that to `folder`; returns its result.

    Raises:
        InputError: the folder exists and is not a build, or cannot be written.
    """
    folder = folder.resolve()  # a symbolic link stays one, and `.` gets a name
    ours = any((folder / name).is_file() for name in (MANIFEST, PLANES))
    if folder.exists() and not ours and _occupied(folder):
        raise InputError(
            Problem(
                file=str(folder),
                required="a new folder, or an earlier build to replace",
                given="a file, or a folder with other files in it",
                todo="name another folder with -o",
            )
        )
    partial = folder.with_name(f".{folder.name}.{os.getpid()}.part")
    try:
        result = fill(partial)
        _replace(partial, folder)
    except OSError as error:
        raise InputError(
            Problem(
                file=str(folder),
                required="a folder that can be written",
                given=error.strerror or f"no room ({error})",
                todo="choose another folder with -o, or make room",
            )
        ) from error
    finally:
        shutil.rmtree(partial, ignore_errors=True)
    return result


def _occupied(folder: Path) -> bool:
    return not folder.is_dir() or any(folder.iterdir())


def write(build: Build, folder: Path, like: tuple[Build, Path] | None = None) -> str:
    """Write the files of a build into a new folder; returns its identity.

    Arrays shared with `like`, a build and its folder, become hard links to the files there.
    """
    others = {id(array): _file(field.name) for field, array in arrays_of(like[0])} if like else {}
    (folder / "arrays").mkdir(parents=True)
    (folder / FABRIC).write_text(to_json(build))
    digests = {FABRIC: _digest(folder / FABRIC)}
    for field, array in arrays_of(build):
        file = _file(field.name)
        if like and id(array) in others:
            _link(like[1] / others[id(array)], folder / file)
        else:
            np.save(folder / file, array, allow_pickle=False)
        digests[file] = _digest(folder / file)
    text = _manifest(build, digests)
    (folder / MANIFEST).write_text(text)
    return _identity(text)


def identified(build: Build) -> Build:
    """The build with the identity that its folder would have."""
    digests = {FABRIC: hashlib.sha256(to_json(build).encode()).hexdigest()}
    for field, array in arrays_of(build):
        digest = hashlib.sha256()
        np.lib.format.write_array(SimpleNamespace(write=digest.update), array)
        digests[_file(field.name)] = digest.hexdigest()
    return replace(build, identity=_identity(_manifest(build, digests)))


def _manifest(build: Build, digests: Mapping[str, str]) -> str:
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


def _file(array: str) -> str:
    return f"arrays/{array}.npy"


def _link(source: Path, target: Path) -> None:
    """Make `target` a hard link to `source`; a copy where the file system has no hard links."""
    try:
        target.hardlink_to(source)
    except OSError:
        shutil.copyfile(source, target)


def _identity(manifest: str) -> str:
    return hashlib.sha256(manifest.encode()).hexdigest()[:16]


def _digest(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _replace(partial: Path, folder: Path) -> None:
    """Put `partial` in the place of `folder`: two renames, then the old build is removed."""
    folder.parent.mkdir(parents=True, exist_ok=True)
    old = folder.with_name(f".{folder.name}.{os.getpid()}.old")
    if folder.exists():
        folder.rename(old)
    partial.rename(folder)
    shutil.rmtree(old, ignore_errors=True)


def load(folder: Path, expect: str = "") -> Build:
    """Read a build folder; the arrays are memory-mapped.

    Raises:
        InputError: the folder is no build, has another format, or is damaged.
    """
    try:
        text = (folder / MANIFEST).read_text()
        manifest = json.loads(text)
        if manifest["format"] != FORMAT:
            raise _unreadable(folder, "a build in another format")
        if not isinstance(manifest["files"], dict):
            raise TypeError("files")
        fabric = json.loads((folder / FABRIC).read_text())
        arrays = {
            path.stem: np.load(path, mmap_mode="r", allow_pickle=False)
            for path in (folder / "arrays").glob("*.npy")
        }
        build = from_json(fabric, arrays, inputs=manifest["inputs"], identity=_identity(text))
    except FileNotFoundError as error:
        if (folder / PLANES).is_file():
            raise _several_planes(folder) from None
        raise _unreadable(folder, f"a folder without {Path(error.filename).name}") from error
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise _unreadable(folder, f"a damaged build ({error})") from error
    if expect and build.identity != expect:
        raise _unreadable(folder, "a build that changed while it was written")
    return build


def _unreadable(folder: Path, given: str) -> InputError:
    return InputError(
        Problem(
            file=str(folder),
            required="a build folder of this version of polarfab",
            given=given,
            todo="make one with: polarfab compile fabric.yaml -o DIR",
        )
    )


def _several_planes(folder: Path) -> InputError:
    todo = f"name one of them, such as {folder / 'plane-1'}"
    given = "a folder of several planes"
    return InputError(Problem("the build of one plane", given, todo, str(folder)))


def damaged(folder: Path) -> list[Problem]:
    """Problems of the files of a build that differ from their digests in its manifest."""
    files: dict[str, str] = json.loads((folder / MANIFEST).read_text())["files"]
    return [
        Problem(
            file=str(folder / name),
            required="the file as it was compiled",
            given="a changed file" if (folder / name).is_file() else "no file",
            todo="compile the build again",
        )
        for name, digest in files.items()
        if not (folder / name).is_file() or _digest(folder / name) != digest
    ]
