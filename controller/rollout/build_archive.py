"""Build archives: build folders as ZIP files."""

from __future__ import annotations

import io
import re
import zlib
from pathlib import Path
from zipfile import BadZipFile, ZipFile

from compilers.tables.folders.generations import MANIFEST, identity_of
from inventory.problems import InputError

MOST_BUILD = 1 << 30
"""Largest build in bytes, packed or not."""
FAULTS = OSError, EOFError, NotImplementedError, RuntimeError, zlib.error
"""What `zipfile` raises for damaged files, besides its own."""
NAMES = re.compile(r"(manifest|fabric|verified)\.json|arrays/[a-z0-9_]+\.npy")


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


def unpack(data: bytes, folder: Path) -> None:
    """Unpack a build into a folder.

    Raises:
        InputError: it is not a build, is too large, or the folder cannot be written.
    """
    try:
        with ZipFile(io.BytesIO(data)) as archive:
            entries = archive.infolist()
            names = {entry.filename for entry in entries}
            if MANIFEST not in names or not all(map(NAMES.fullmatch, names)):
                raise BadZipFile("files that do not belong to a build")
            if sum(entry.file_size for entry in entries) > MOST_BUILD:
                raise BadZipFile(f"more than {MOST_BUILD:,} bytes")
            (folder / "arrays").mkdir(parents=True)
            for entry in entries:
                (folder / entry.filename).write_bytes(archive.read(entry))
    except (BadZipFile, *FAULTS) as error:
        raise _problem("a ZIP file of a build folder", error) from error


def identity_in(data: bytes) -> str:
    """The identity of a packed build.

    Raises:
        InputError: it is not a build.
    """
    try:
        with ZipFile(io.BytesIO(data)) as archive:
            entry = archive.getinfo(MANIFEST)
            if entry.file_size > MOST_BUILD:
                raise BadZipFile(f"more than {MOST_BUILD:,} bytes")
            return identity_of(archive.read(entry).decode())
    except (BadZipFile, KeyError, ValueError, *FAULTS) as error:
        raise _problem("a ZIP file of a build folder", error) from error


def _problem(required: str, given: object) -> InputError:
    return InputError.of(required=required, given=str(given))
