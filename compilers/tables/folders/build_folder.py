"""Build folders: written next to their place and exchanged, checked and memory-mapped when read.

A folder holds `manifest.json` (the inputs of the build, a digest of every file), `fabric.json`
(names, addresses, policy), `arrays/*.npy` and, once `verify` has passed, `verified.json`. The
build's identity is the digest of the manifest: the same inputs give the same bytes, and so the same
identity, on every machine.
"""

from __future__ import annotations

import hashlib
import json
import shutil
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from functools import partial
from io import BufferedReader
from mmap import PROT_READ, mmap
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from compilers.tables.build import Build
from compilers.tables.build_codec import (
    Misfit,
    array_file,
    arrays_of,
    from_json,
    is_packed,
    to_json,
)
from compilers.tables.folders.artefact import place_of
from compilers.tables.folders.folder_files import FolderFiles, digest, opened
from compilers.tables.folders.generations import (
    FABRIC,
    MANIFEST,
    PLANES,
    RENDERED,
    SUM,
    identity_of,
    put,
    sum_of,
)
from inventory.problems import InputError, Problem, few

FORMAT, PACKED_FORMAT = 1, 2
"""Format 2 is that of builds with arrays that are computed."""
ENTRIES = {"format": int, "switches": int, "links": int, "inputs": dict, "files": dict}
"""What a manifest holds for those who read the build."""
AGAIN_SOMEWHERE = "make one with: polarfab compile fabric.yaml -o DIR"
AGAIN = "compile the build again"


Content = Callable[[Callable[[bytes], object]], object]
"""Writes a file by a function that writes bytes."""
Prove = Callable[[Path, tuple[Build, ...]], object]
"""Gets a folder that was written, and the builds read back from it."""


def save(build: Build, folder: Path, prove: Prove | None = None) -> Build:
    """Write the build next to `folder`, then put it in its place; returns it as it was read back.

    Args:
        build: what to write.
        folder: its place.
        prove: called before the folder that was written takes its place.

    Raises:
        InputError: the folder exists and is not a build, or cannot be written.
    """

    def fill(new: Path) -> Build:
        written = load(new, expect=write(build, new))
        if prove:
            prove(new, (written,))
        return written

    return put(folder, fill)


def write(build: Build, folder: Path, like: tuple[Build, Path] | None = None) -> str:
    """Write the files of a build into a new folder; returns its identity.

    Arrays shared with `like`, a build and its folder, become hard links to the files there.
    """
    shared = {id(array): field.name for field, array in arrays_of(like[0])} if like else {}
    (folder / "arrays").mkdir(parents=True)

    def file(name: str, array: NDArray[Any] | None, content: Content) -> str:
        if like and id(array) in shared:
            _link(like[1] / array_file(shared[id(array)]), folder / name)
        else:
            with (folder / name).open("wb") as stream:
                content(stream.write)
        with (folder / name).open("rb") as stream:
            return digest(stream)

    text = _manifest(build, {name: file(name, *of) for name, of in _contents(build)})
    (folder / MANIFEST).write_text(text)
    (folder / SUM).write_text(sum_of(text))
    return identity_of(text)


def identified(build: Build) -> Build:
    """The build with the identity that its folder would have."""
    digests = {}
    for name, (_, content) in _contents(build):
        content((found := hashlib.sha256()).update)
        digests[name] = found.hexdigest()
    return replace(build, identity=identity_of(_manifest(build, digests)))


def _contents(build: Build) -> Iterator[tuple[str, tuple[NDArray[Any] | None, Content]]]:
    """The files of a build: name, array (None for the plain data), and what writes them."""
    yield FABRIC, (None, lambda write: write(to_json(build).encode()))
    for field, array in arrays_of(build):
        yield array_file(field.name), (array, partial(_write_array, array))


def _write_array(array: NDArray[Any], write: Callable[[bytes], object]) -> None:
    """By Python's `write`: by C, NumPy does not see errors of what is buffered."""
    np.save(SimpleNamespace(write=write), array, allow_pickle=False)


def _manifest(build: Build, digests: Mapping[str, str]) -> str:
    manifest = {
        "format": PACKED_FORMAT if is_packed(build) else FORMAT,
        "name": build.name,
        "topology": build.topology.title(),
        "switches": build.tables.switches,
        "links": build.topology.graph.size,
        "inputs": dict(build.inputs),
        "files": digests,
    }
    return json.dumps(manifest, indent=1)


def _link(there: Path, here: Path) -> None:
    """Make `here` a hard link to `there`; a copy where the file system has no hard links."""
    try:
        here.hardlink_to(there)
    except OSError:
        shutil.copyfile(there, here)


def load(folder: Path, expect: str = "") -> Build:
    """Read a build folder; every file is compared with its digest, the arrays are memory-mapped.

    Raises:
        InputError: not a build, of another format, or damaged: every file that is.
    """
    for _ in range(3):  # another build may take the place of one that is being read
        try:
            with opened(folder) as files:
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
        fabric = json.loads(files.read(FABRIC))
        build = from_json(fabric, arrays, inputs=manifest["inputs"], identity=identity_of(text))
    except Misfit as error:
        raise InputError(_damage(files.path / error.file, f"a damaged file ({error})")) from error
    except KeyError as error:
        raise _unreadable(files.path, f"a damaged build (no {error.args[0]})") from error
    except (OSError, ValueError, TypeError, RecursionError) as error:
        raise InputError(_damage(files.path / FABRIC, f"a damaged file ({error})")) from error
    surplus = manifest["files"].keys() - {
        FABRIC,
        *(array_file(f.name) for f, _ in arrays_of(build)),
    }
    counts = (build.tables.switches, build.topology.graph.size)
    if surplus or counts != (manifest["switches"], manifest["links"]):
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
        if manifest["format"] not in (FORMAT, PACKED_FORMAT):
            raise _unreadable(files.path, "a build in another format")
        wrong = [key for key, kind in ENTRIES.items() if type(manifest[key]) is not kind]
        if wrong or FABRIC not in manifest["files"]:
            raise TypeError(", ".join(wrong) or FABRIC)
        if files.read(SUM) != sum_of(text):
            raise InputError(_damage(files.path / MANIFEST, "a changed file"))
    except FileNotFoundError as error:
        if (files.path / MANIFEST).is_file():
            raise InputError(_damage(files.path / SUM, "no file")) from error
        raise _unreadable(files.path, *_instead(files.path)) from error
    except (OSError, ValueError, KeyError, TypeError, RecursionError) as error:
        raise InputError(_damage(files.path / MANIFEST, f"a damaged file ({error})")) from error
    return text, manifest


def damaged(files: FolderFiles, digests: Mapping[str, str]) -> list[Problem]:
    """The files of a folder that are not what its manifest says they are."""
    found = files.digests(digests)
    return [
        _damage(files.path / name, _other(found[name]))
        for name, digest in digests.items()
        if found[name] != digest
    ]


def _other(found: str) -> str:
    """What there is in place of a file: a changed one, if it has a digest."""
    return "a changed file" if len(found) == 64 else found


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
    version = np.lib.format.read_magic(file)
    header = {(1, 0): "read_array_header_1_0", (2, 0): "read_array_header_2_0"}.get(version)
    if header is None:
        raise ValueError(f"version {version}")
    shape, fortran, kind = getattr(np.lib.format, header)(file)
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


def _unreadable(folder: Path, given: str, todo: str = AGAIN_SOMEWHERE) -> InputError:
    required = "a build folder of this version of polarfab"
    return InputError.of(required, given, todo, str(folder))
