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
from contextlib import suppress
from dataclasses import replace
from functools import lru_cache, partial
from io import BufferedReader, BytesIO
from mmap import PROT_READ, mmap
from pathlib import Path
from types import MappingProxyType, SimpleNamespace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from compilers.spec.allocations import Allocations
from compilers.spec.allocations_file import ALLOCATIONS, read_allocations, text_of
from compilers.spec.balances import balance_names
from compilers.tables.build import Build
from compilers.tables.build_codec import (
    Misfit,
    array_file,
    arrays_of,
    from_json,
    to_json,
)
from compilers.tables.folders.build_format import FORMAT, converted, readable, unread_format
from compilers.tables.folders.folder_contents import (
    DAMAGED,
    FABRIC,
    MANIFEST,
    PLANES,
    RENDERED,
    SUM,
    identity_of,
    is_build,
    last_place,
    real_path,
    sum_of,
)
from compilers.tables.folders.folder_files import FolderFiles, read
from compilers.tables.folders.replaced_folder import link_file, new_build, undo
from compilers.tables.folders.written_file import place_of
from compilers.topology.families import family_named
from inventory.problems import InputError, Problem, few

ENTRIES = {"format": int, "switches": int, "links": int, "inputs": dict, "files": dict}
"""The entries of a manifest that are needed to read the build, with their types."""
PREFIX_BYTES = 10
"""Bytes in front of the header of a .npy file of version 1.0; the last two say how long it is."""
READ_ATTEMPTS = 3
"""How often a build is read if another one takes its place each time."""
COMPILE_ANOTHER = "make one with: polarfab compile fabric.yaml -o DIR"
"""What to do about a folder without a build, in messages."""
SEVERAL_PLANES = "a folder of several planes"
"""What a folder with a build for each plane is, in messages."""
COMPILE_AGAIN = "compile the build again"
"""What to do about a damaged build, in messages."""
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
    for name, array, write_content in _contents(build):
        names.append(name)
        if array is not None and id(array) in written:
            link_file(written[id(array)], folder / name)
        else:
            with (folder / name).open("wb") as stream:
                write_content(stream.write)
    with FolderFiles(folder) as files:
        text = _manifest(build, files.digests(names))
    (folder / MANIFEST).write_text(text)
    (folder / SUM).write_text(sum_of(text))
    return identity_of(text)


def with_identity(build: Build) -> Build:
    """Return the build with the identity that its folder would have, without writing one."""
    digests = {}
    for name, _, write_content in _contents(build):
        digest = hashlib.sha256()
        write_content(digest.update)
        digests[name] = digest.hexdigest()
    return replace(build, identity=identity_of(_manifest(build, digests)))


def _contents(build: Build) -> Iterator[tuple[str, NDArray[Any] | None, WriteContent]]:
    """Yield each file of a build: its name, its array (None for `fabric.json`), and its writer."""
    yield FABRIC, None, lambda write: write(to_json(build).encode())
    if build.allocations:
        yield ALLOCATIONS, None, partial(_write_allocations, build)
    for field, array in arrays_of(build):
        yield array_file(field.name), array, partial(_write_array, array)


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
    last_build = last_place(real_path(folder))
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
                    build = _read(files, in_memory)
                    break
                except InputError:
                    if attempt == READ_ATTEMPTS or not files.moved():
                        raise
        except OSError as error:
            raise _unreadable(folder, *_no_build_reason(folder)) from error
    if expect and build.identity != expect:
        raise _unreadable(folder, f"build {build.identity}, not {expect}")
    return build


def _read(files: FolderFiles, in_memory: bool) -> Build:
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
        raise _unreadable(files.path, f"a damaged build (no {error.args[0]})") from error
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
        if files.read(SUM) != sum_of(text):
            raise InputError(_damage_problem(files.path / MANIFEST, "a changed file"))
    except FileNotFoundError as error:
        if (files.path / MANIFEST).is_file():
            raise InputError(_damage_problem(files.path / SUM, "no file")) from error
        raise _unreadable(files.path, *_no_build_reason(files.path)) from error
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


def _no_build_reason(folder: Path) -> tuple[str, str]:
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


def _unreadable(folder: Path, given: str, todo: str = COMPILE_ANOTHER) -> InputError:
    """Return the error that a folder is no build of this version."""
    required = "a build folder of this version of polarfab"
    if given == SEVERAL_PLANES:
        required = "the build of one plane"
    return InputError.of(required, given, todo, str(folder))
