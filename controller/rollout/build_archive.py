"""Build archives: build folders as ZIP files."""

from __future__ import annotations

import io
import json
import re
import zlib
from collections.abc import Callable
from hashlib import sha256
from math import inf
from pathlib import Path
from zipfile import BadZipFile, ZipFile

from compilers.tables.folders.folder_contents import MANIFEST, SUM, VERIFIED, identity_of, sum_of
from inventory.problems import InputError

MOST_BUILD = 1 << 30
"""Largest build in bytes, packed or not."""
MOST_MANIFEST, SLICE = 4 << 20, 1 << 20
"""Bytes: of the largest manifest, and that are unpacked at once."""
LEAST_ROOM, BYTES_A_PAIR = 8 << 20, 64
"""Bytes that any build may have unpacked, and more for each pair of its switches."""
FAULTS = OSError, EOFError, RuntimeError, zlib.error
"""What `zipfile` raises for damaged files, besides its own."""
NAMES = re.compile(r"(manifest|fabric|verified)\.json|allocations\.csv|arrays/[a-z0-9_]+\.npy")
"""The files of a build, such as `arrays/far.npy`."""


def pack(folder: Path) -> bytes:
    """A build folder as a ZIP file, not compressed.

    Raises:
        InputError: it cannot be read.
    """
    stream = io.BytesIO()
    try:
        with ZipFile(stream, "w") as archive:
            for file in sorted(folder.rglob("*")):
                name = file.relative_to(folder).as_posix()
                if NAMES.fullmatch(name):
                    archive.write(file, name)
    except OSError as error:
        raise _problem("a build folder that can be read", error) from error
    return stream.getvalue()


def unpack(
    data: bytes, folder: Path, breathe: Callable[[], None] = lambda: None, switches: float = inf
) -> None:
    """Unpack a build into a new folder: the files that its manifest names, of these digests.

    Args:
        data: the ZIP file.
        folder: the new folder.
        breathe: called after each slice, so that other work goes on.
        switches: the most that it may have, as its size is bounded by what it says of itself.

    Raises:
        InputError: it is not a build, is too large, or the folder cannot be written.
    """
    try:
        with ZipFile(io.BytesIO(data)) as archive:
            entries = archive.infolist()
            digests, most = _manifest(archive, switches)
            names = [entry.filename for entry in entries]
            if len(set(names)) < len(names) or not {*names} <= {*digests, MANIFEST, VERIFIED}:
                raise BadZipFile("files that its manifest does not name")
            if not all(map(NAMES.fullmatch, names)):
                raise BadZipFile("files that do not belong to a build")
            if sum(entry.file_size for entry in entries) > most:
                raise BadZipFile(f"more than {most:,} bytes")
            (folder / "arrays").mkdir(parents=True)
            for entry in entries:
                digest = sha256()
                with archive.open(entry) as packed, (folder / entry.filename).open("wb") as file:
                    while piece := packed.read(SLICE):
                        digest.update(piece)
                        file.write(piece)
                        breathe()
                if digest.hexdigest() != digests.get(entry.filename, digest.hexdigest()):
                    raise BadZipFile(f"{entry.filename} with another digest than in its manifest")
            (folder / SUM).write_text(sum_of(_text(archive)))
    except (BadZipFile, ValueError, *FAULTS) as error:
        raise _problem("a ZIP file of a build folder", error) from error


def identity_in(data: bytes) -> str:
    """The identity of a packed build.

    Raises:
        InputError: it is not a build.
    """
    try:
        with ZipFile(io.BytesIO(data)) as archive:
            return identity_of(_text(archive))
    except (BadZipFile, ValueError, *FAULTS) as error:
        raise _problem("a ZIP file of a build folder", error) from error


def _text(archive: ZipFile) -> str:
    """The manifest of a packed build."""
    if MANIFEST not in archive.namelist():
        raise BadZipFile("no manifest")
    entry = archive.getinfo(MANIFEST)
    if entry.file_size > MOST_MANIFEST:
        raise BadZipFile(f"a manifest of more than {MOST_MANIFEST:,} bytes")
    return archive.read(entry).decode()


def _manifest(archive: ZipFile, allowed: float) -> tuple[dict[str, str], int]:
    """The digests of a build's files by their names, and the most bytes that they may have."""
    manifest = json.loads(_text(archive))
    files, switches = manifest.get("files"), manifest.get("switches")
    if not isinstance(files, dict) or not isinstance(switches, int):
        raise BadZipFile("a manifest that is none")
    if switches > allowed:
        raise BadZipFile(f"{switches:,} switches, where this fabric takes {allowed:,}")
    return files, min(MOST_BUILD, LEAST_ROOM + BYTES_A_PAIR * switches**2)


def _problem(required: str, given: object) -> InputError:
    """The error of a build, packed or in a folder."""
    return InputError.of(required=required, given=str(given))
