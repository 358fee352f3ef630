"""Read the files of a build folder, and compare each with its digest in the manifest.

`build_folder.load` calls `read_build`. Every refusal names the file that is damaged, and what the
user can do.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import replace
from functools import lru_cache
from io import BufferedReader, BytesIO
from mmap import PROT_READ, mmap
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from compilers.spec.allocations import Allocations
from compilers.spec.allocations_file import ALLOCATIONS, read_allocations
from compilers.spec.balances import balance_names
from compilers.tables.array_declarations import Misfit, array_file
from compilers.tables.build import Build
from compilers.tables.build_codec import arrays_of, from_json
from compilers.tables.folders.build_format import converted, readable, unread_format
from compilers.tables.folders.folder_contents import (
    DAMAGED,
    FABRIC,
    MANIFEST,
    MANIFEST_SUM,
    PLANES,
    RENDERED,
    identity_of,
    manifest_sum,
)
from compilers.tables.folders.folder_files import FolderFiles
from compilers.tables.folders.written_file import place_of
from compilers.topology.families import family_named
from inventory.problems import InputError, Problem, few

ENTRIES = {"format": int, "switches": int, "links": int, "inputs": dict, "files": dict}
"""The entries of a manifest that are needed to read the build, with their types."""
PREFIX_BYTES = 10
"""Bytes in front of the header of a .npy file of version 1.0; the last two say how long it is."""
COMPILE_ANOTHER = "make one with: polarfab compile fabric.yaml -o DIR"
"""What to do about a folder without a build, in messages."""
SEVERAL_PLANES = "a folder of several planes"
"""What a folder with a build for each plane is, in messages."""
COMPILE_AGAIN = "compile the build again"
"""What to do about a damaged build, in messages."""


def read_build(files: FolderFiles, in_memory: bool) -> Build:
    """Read the build in an open folder, with its arrays mapped or copied.

    Raises:
        InputError: it is no build, one of another format, or damaged.
    """
    text, manifest = read_manifest(files)
    if problems := damage_problems(files, manifest["files"]):
        raise InputError(few(problems))
    arrays = dict(_arrays(files, manifest["files"], in_memory))
    try:
        fabric = converted(json.loads(files.read(FABRIC)), manifest["format"])
        build = from_json(fabric, arrays, inputs=manifest["inputs"], identity=identity_of(text))
    except Misfit as error:
        raise InputError(
            _damage_problem(files.path / error.file, f"a damaged file ({error})")
        ) from error
    except KeyError as error:
        raise unreadable_folder(files.path, f"a damaged build (no {error.args[0]})") from error
    except (OSError, ValueError, TypeError, RecursionError) as error:
        raise InputError(
            _damage_problem(files.path / FABRIC, f"a damaged file ({error})")
        ) from error
    build = replace(build, allocations=_allocations(files, manifest["files"]))
    expected = {FABRIC, ALLOCATIONS, *(array_file(field.name) for field, _ in arrays_of(build))}
    counts = build.tables.switches, build.topology.graph.size
    other_files = not manifest["files"].keys() <= expected
    if other_files or counts != (manifest["switches"], manifest["links"]):
        raise InputError(_damage_problem(files.path / MANIFEST, "one of another build"))
    return build


def _allocations(files: FolderFiles, names: Mapping[str, str]) -> Allocations:
    """Return the allocations of a build; none where it has no list of them.

    Raises:
        InputError: the list is damaged.
    """
    if ALLOCATIONS not in names:
        return Allocations()
    try:
        text = files.read(ALLOCATIONS)
    except (OSError, ValueError) as error:
        raise InputError(
            _damage_problem(files.path / ALLOCATIONS, f"a damaged file ({error})")
        ) from error
    planes = read_allocations(text, str(place_of(files.path / ALLOCATIONS)))
    return next(iter(planes.values()), Allocations())


def read_manifest(files: FolderFiles) -> tuple[str, dict[str, Any]]:
    """Return the text of a build's manifest, and its content.

    Raises:
        InputError: there is no manifest, or it is of another format or damaged.
    """
    try:
        text = files.read(MANIFEST)
        manifest = json.loads(text)
        if not readable(number := manifest.get("format")):
            raise _of_other_format(files, number)
        wrong = [key for key, kind in ENTRIES.items() if type(manifest[key]) is not kind]
        if wrong or FABRIC not in manifest["files"]:
            raise TypeError(", ".join(wrong) or FABRIC)
        if files.read(MANIFEST_SUM) != manifest_sum(text):
            raise InputError(_damage_problem(files.path / MANIFEST, "a changed file"))
    except FileNotFoundError as error:
        if (files.path / MANIFEST).is_file():
            raise InputError(_damage_problem(files.path / MANIFEST_SUM, "no file")) from error
        raise unreadable_folder(files.path, *no_build_reason(files.path)) from error
    except DAMAGED as error:
        raise InputError(
            _damage_problem(files.path / MANIFEST, f"a damaged file ({error})")
        ) from error
    return text, manifest


def damage_problems(files: FolderFiles, digests: Mapping[str, str]) -> list[Problem]:
    """Return a problem for each file that differs from its digest in the manifest.

    Args:
        files: the open folder.
        digests: the SHA-256 of each file by name, from the manifest.
    """
    actual = files.digests(digests)
    problems = []
    for name, digest in digests.items():
        if actual[name] != digest:
            # A file that cannot be read has words in the place of its 64 hexadecimal digits.
            has_digest = len(actual[name]) == 64
            given = "a changed file" if has_digest else actual[name]
            problems.append(_damage_problem(files.path / name, given))
    return problems


def _arrays(
    files: FolderFiles, digests: Mapping[str, str], in_memory: bool
) -> Iterator[tuple[str, NDArray[Any]]]:
    """Yield the arrays of a build with their names.

    Args:
        files: the open folder.
        digests: the SHA-256 of each file by name.
        in_memory: whether to copy the arrays.

    Raises:
        InputError: a file holds no array.
    """
    for name in digests.keys() - {FABRIC, ALLOCATIONS}:
        try:
            with files.open(name) as file:
                data = _copied(file, digests[name]) if in_memory else _mapped(file)
                yield Path(name).stem, _array(data)
        except Exception as error:  # NumPy's reader of headers raises a dozen kinds
            raise InputError(_damage_problem(files.path / name, f"no array ({error})")) from error


def _mapped(file: BufferedReader) -> mmap:
    """Map an open file into memory."""
    return mmap(file.fileno(), 0, prot=PROT_READ)


def _copied(file: BufferedReader, digest: str) -> bytes:
    """Return the bytes of an open file.

    Raises:
        ValueError: they have another digest, as somebody writes into the file.
    """
    data = file.read()
    if hashlib.sha256(data).hexdigest() != digest:
        raise ValueError("changed while it was read")
    return data


def _array(data: mmap | bytes) -> NDArray[Any]:
    """Return the array in the bytes of a .npy file, without a copy.

    Raises:
        ValueError, TypeError: they hold no array, are too few, or hold Python objects.
    """
    end = PREFIX_BYTES + int.from_bytes(data[PREFIX_BYTES - 2 : PREFIX_BYTES], "little")
    shape, fortran_order, dtype = _header(bytes(data[:end]))
    return np.ndarray(shape, dtype, data, end, order="F" if fortran_order else "C")


@lru_cache
def _header(header: bytes) -> tuple[tuple[int, ...], bool, np.dtype[Any]]:
    """Return what the header of a .npy file says; builds have many that are alike.

    Raises:
        ValueError, TypeError: it is none of an array, or of Python objects.
    """
    stream = BytesIO(header)
    if (version := np.lib.format.read_magic(stream)) != (1, 0):
        raise ValueError(f"version {version}")
    shape, fortran_order, dtype = np.lib.format.read_array_header_1_0(stream)
    if dtype.hasobject:
        raise ValueError("objects")
    return shape, fortran_order, dtype


def _damage_problem(file: Path, given: str) -> Problem:
    """Return the problem of a file that is not as it was compiled."""
    return Problem("the file as it was compiled", given, COMPILE_AGAIN, str(place_of(file)))


def no_build_reason(folder: Path) -> tuple[str, str]:
    """Return in words what a folder without a build is, and what to do about it."""
    if folder.is_file():
        if folder.suffix in (".yaml", ".yml"):
            return "a spec", f"compile it first: polarfab compile {folder} -o build"
        return "a file", COMPILE_ANOTHER
    if (folder / PLANES).is_file():
        return SEVERAL_PLANES, f"name one of them, such as {folder / 'plane-1'}"
    if (folder / RENDERED).is_file():
        return "a folder that render wrote", "name the build that it was rendered from"
    if not folder.is_dir():
        return "no such folder", COMPILE_ANOTHER
    if (spec := folder / "fabric.yaml").is_file():
        return f"a folder with {spec.name}", f"compile it first: polarfab compile {spec} -o build"
    return f"a folder without {MANIFEST}", COMPILE_ANOTHER


def _of_other_format(files: FolderFiles, number: object) -> InputError:
    """Return the error for a build whose format this release does not read.

    The error names the balance and the family of the build if this release does not have them.
    """
    words = unread_format(number)
    missing = []
    with suppress(*DAMAGED, InputError):
        fabric = json.loads(files.read(FABRIC))
        balance, family = fabric["routing"]["balance"], fabric["topology"]["family"]
        if balance not in balance_names():
            missing.append(f"balance {balance}")
        if family_named(family) is None:
            missing.append(f"family {family}")
    given = words.given
    if missing:
        given += f", with {' and '.join(missing)}, which this polarfab has not"
    return InputError.of(words.required, given, words.todo, str(place_of(files.path)))


def unreadable_folder(folder: Path, given: str, todo: str = COMPILE_ANOTHER) -> InputError:
    """Return the error that a folder is no build of this version."""
    required = "a build folder of this version of polarfab"
    if given == SEVERAL_PLANES:
        required = "the build of one plane"
    return InputError.of(required, given, todo, str(folder))
