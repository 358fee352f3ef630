"""Build folders: written next to their place and exchanged, checked and memory-mapped when read.

A folder holds `manifest.json` (the inputs of the build, a digest of every file), `fabric.json`
(names, addresses, policy), `arrays/*.npy` and, once `verify` has passed, `verified.json`. The
build's identity is the digest of the manifest: the same inputs give the same bytes, and so the same
identity, on every machine. Of a fabric of several planes a folder holds `planes.json` and a
complete build for each in `plane-1`, …; arrays that planes share are hard links to one file.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import partial
from io import BufferedReader
from mmap import PROT_READ, mmap
from pathlib import Path
from types import MappingProxyType, SimpleNamespace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from compilers.spec.balances import balance_names
from compilers.tables.build import Build
from compilers.tables.build_codec import (
    Misfit,
    array_file,
    arrays_of,
    from_json,
    to_json,
)
from compilers.tables.folders.build_format import FORMAT, converted, readable, unread_words
from compilers.tables.folders.folder_files import FolderFiles, read
from compilers.tables.folders.generations import (
    DAMAGED,
    FABRIC,
    MANIFEST,
    PLANES,
    RENDERED,
    SUM,
    identity_of,
    sum_of,
)
from compilers.tables.folders.replaced_folder import link_file, new_build, undo
from compilers.tables.folders.written_file import place_of
from compilers.topology.families import family_named
from inventory.problems import InputError, Problem, few

ENTRIES = {"format": int, "switches": int, "links": int, "inputs": dict, "files": dict}
"""What a manifest holds for those who read the build."""
AGAIN_SOMEWHERE = "make one with: polarfab compile fabric.yaml -o DIR"
AGAIN = "compile the build again"
Content = Callable[[Callable[[bytes], object]], object]
"""Writes a file by a function that writes bytes."""


def save(build: Build, folder: Path) -> Build:
    """Write a build of one plane: see `save_planes`."""
    return save_planes((build,), folder)[0]


def save_planes(builds: Sequence[Build], folder: Path) -> tuple[Build, ...]:
    """Write the builds next to `folder`, then put them in its place; returns them read back.

    Args:
        builds: one a plane.
        folder: their place.

    Raises:
        InputError: the folder exists and is no build, or cannot be written.
    """
    with new_build(folder) as new:
        write_planes(builds, new)
        return load_planes(new)


def write_planes(builds: Sequence[Build], new: Path) -> None:
    """Write the builds of all planes into a new folder."""
    if len(builds) == 1:
        write(builds[0], new)
        return
    identities, files = {}, dict[int, Path]()
    for plane, build in enumerate(builds, 1):
        name = f"plane-{plane}"
        identities[name] = write(build, new / name, files)
        files |= {id(array): new / name / array_file(f.name) for f, array in arrays_of(build)}
    (new / PLANES).write_text(json.dumps({"planes": identities}, indent=1))


def write(build: Build, folder: Path, written: Mapping[int, Path] = MappingProxyType({})) -> str:
    """Write the files of a build into a new folder; returns its identity.

    written: the files of arrays by their `id`, which become hard links.
    """
    (folder / "arrays").mkdir(parents=True)
    names = []
    for name, array, content in _contents(build):
        names.append(name)
        if array is not None and id(array) in written:
            link_file(written[id(array)], folder / name)
        else:
            with (folder / name).open("wb") as stream:
                content(stream.write)
    with FolderFiles(folder) as files:
        text = _manifest(build, files.digests(names))
    (folder / MANIFEST).write_text(text)
    (folder / SUM).write_text(sum_of(text))
    return identity_of(text)


def identified(build: Build) -> Build:
    """The build with the identity that its folder would have."""
    digests = {}
    for name, _, content in _contents(build):
        content((found := hashlib.sha256()).update)
        digests[name] = found.hexdigest()
    return replace(build, identity=identity_of(_manifest(build, digests)))


def _contents(build: Build) -> Iterator[tuple[str, NDArray[Any] | None, Content]]:
    """The files of a build: name, array (None for the plain data), and what writes them."""
    yield FABRIC, None, lambda write: write(to_json(build).encode())
    for field, array in arrays_of(build):
        # By Python's `write`: by C, NumPy does not see errors of what is buffered.
        yield array_file(field.name), array, partial(_write_array, array)


def _write_array(array: NDArray[Any], write: Callable[[bytes], object]) -> None:
    np.save(SimpleNamespace(write=write), array, allow_pickle=False)


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


def builds_in(folder: Path) -> tuple[Path, ...]:
    """The folder of each plane in order; of a single build, the folder itself.

    Raises:
        InputError: `planes.json` is damaged.
    """
    return tuple(identities_in(folder))


def load_planes(folder: Path) -> tuple[Build, ...]:
    """The build of each plane; of a folder of one build, that one.

    Raises:
        InputError: there is none, it is damaged, or a plane is of another build.
    """
    planes = identities_in(folder)
    while True:
        try:
            return tuple(load(path, expect=identity) for path, identity in planes.items())
        except InputError:
            known, planes = planes, identities_in(folder)
            if planes == known:  # else another build took the place of the one that was being read
                raise


def identities_in(folder: Path) -> dict[Path, str]:
    """The identities of the planes by their folders; "" for the folder of one build.

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
            todo=AGAIN,
        ) from error


def put_back(folder: Path) -> tuple[Build, ...]:
    """Put the last proved build back; the one that was in its place is then kept.

    Returns:
        The build of each plane that is in the place now.

    Raises:
        InputError: none is kept, it is damaged, or it cannot be put back.
    """
    return undo(folder, load_planes)


def load(folder: Path, expect: str = "") -> Build:
    """Read a build folder; every file is compared with its digest, the arrays are memory-mapped.

    Raises:
        InputError: not a build, of another format, or damaged: every file that is.
    """
    for _ in range(3):  # another build may take the place of one that is being read
        try:
            with FolderFiles(folder) as files:
                try:
                    build = _read(files)
                    break
                except InputError:
                    if not files.moved():
                        raise
        except OSError as error:
            raise _unreadable(folder, *_instead(folder)) from error
    if expect and build.identity != expect:
        raise _unreadable(folder, f"build {build.identity}, not {expect}")
    return build


def _read(files: FolderFiles) -> Build:
    text, manifest = read_manifest(files)
    if problems := damaged(files, manifest["files"]):
        raise InputError(few(problems))
    arrays = dict(_arrays(files, manifest["files"]))
    try:
        fabric = converted(json.loads(files.read(FABRIC)), manifest["format"])
        build = from_json(fabric, arrays, inputs=manifest["inputs"], identity=identity_of(text))
    except Misfit as error:
        raise InputError(_damage(files.path / error.file, f"a damaged file ({error})")) from error
    except KeyError as error:
        raise _unreadable(files.path, f"a damaged build (no {error.args[0]})") from error
    except (OSError, ValueError, TypeError, RecursionError) as error:
        raise InputError(_damage(files.path / FABRIC, f"a damaged file ({error})")) from error
    known = {FABRIC, *(array_file(field.name) for field, _ in arrays_of(build))}
    counts = (build.tables.switches, build.topology.graph.size)
    if not manifest["files"].keys() <= known or counts != (manifest["switches"], manifest["links"]):
        raise InputError(_damage(files.path / MANIFEST, "one of another build"))
    return build


def read_manifest(files: FolderFiles) -> tuple[str, dict[str, Any]]:
    """The text of a build's manifest, and what it says.

    Raises:
        InputError: there is none, of another format, or a damaged one.
    """
    try:
        text = files.read(MANIFEST)
        manifest = json.loads(text)
        if not readable(number := manifest.get("format")):
            raise _of_other_format(files, number)
        wrong = [key for key, kind in ENTRIES.items() if type(manifest[key]) is not kind]
        if wrong or FABRIC not in manifest["files"]:
            raise TypeError(", ".join(wrong) or FABRIC)
        if files.read(SUM) != sum_of(text):
            raise InputError(_damage(files.path / MANIFEST, "a changed file"))
    except FileNotFoundError as error:
        if (files.path / MANIFEST).is_file():
            raise InputError(_damage(files.path / SUM, "no file")) from error
        raise _unreadable(files.path, *_instead(files.path)) from error
    except DAMAGED as error:
        raise InputError(_damage(files.path / MANIFEST, f"a damaged file ({error})")) from error
    return text, manifest


def damaged(files: FolderFiles, digests: Mapping[str, str]) -> list[Problem]:
    """The files of a folder that are not what its manifest says they are."""
    found = files.digests(digests)
    wrong = (name for name, digest in digests.items() if found[name] != digest)
    there = {name: "a changed file" if len(found[name]) == 64 else found[name] for name in wrong}
    return [_damage(files.path / name, given) for name, given in there.items()]


def _arrays(files: FolderFiles, names: Mapping[str, str]) -> Iterator[tuple[str, NDArray[Any]]]:
    """The arrays of a build by their names.

    Raises:
        InputError: one is none.
    """
    for name in names.keys() - {FABRIC}:
        try:
            with files.open(name) as file:
                yield Path(name).stem, _mapped(file)
        except Exception as error:  # NumPy's reader of headers raises a dozen kinds
            raise InputError(_damage(files.path / name, f"no array ({error})")) from error


def _mapped(file: BufferedReader) -> NDArray[Any]:
    """The array of an open .npy file, memory-mapped.

    Raises:
        ValueError, TypeError: it is none, too short, or one of objects.
    """
    if (version := np.lib.format.read_magic(file)) != (1, 0):
        raise ValueError(f"version {version}")
    shape, fortran, kind = np.lib.format.read_array_header_1_0(file)
    if kind.hasobject:
        raise ValueError("objects")
    mapped = mmap(file.fileno(), 0, prot=PROT_READ)
    return np.ndarray(shape, kind, mapped, file.tell(), order="F" if fortran else "C")


def _damage(file: Path, given: str) -> Problem:
    return Problem("the file as it was compiled", given, AGAIN, str(place_of(file)))


def _instead(folder: Path) -> tuple[str, str]:
    """What is there in place of a build, and what to do about it."""
    if folder.is_file():
        if folder.suffix in (".yaml", ".yml"):
            return "a spec", f"compile it first: polarfab compile {folder} -o build"
        return "a file", AGAIN_SOMEWHERE
    if (folder / PLANES).is_file():
        return "a folder of several planes", f"name one of them, such as {folder / 'plane-1'}"
    if (folder / RENDERED).is_file():
        return "a folder that render wrote", "name the build that it was rendered from"
    if not folder.is_dir():
        return "no such folder", AGAIN_SOMEWHERE
    if (spec := folder / "fabric.yaml").is_file():
        return f"a folder with {spec.name}", f"compile it first: polarfab compile {spec} -o build"
    return f"a folder without {MANIFEST}", AGAIN_SOMEWHERE


def _of_other_format(files: FolderFiles, number: object) -> InputError:
    """The refusal of a build of a format that is not read, with names that are gone since."""
    required, given, todo = unread_words(number)
    gone = []
    with suppress(*DAMAGED, InputError):
        fabric = json.loads(files.read(FABRIC))
        balance, family = fabric["routing"]["balance"], fabric["topology"]["family"]
        if balance not in balance_names():
            gone.append(f"balance {balance}")
        if family_named(family) is None:
            gone.append(f"family {family}")
    if gone:
        given += f", with {' and '.join(gone)}, which this polarfab has not"
    return InputError.of(required, given, todo, str(place_of(files.path)))


def _unreadable(folder: Path, given: str, todo: str = AGAIN_SOMEWHERE) -> InputError:
    required = "a build folder of this version of polarfab"
    return InputError.of(required, given, todo, str(folder))
