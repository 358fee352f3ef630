"""Build archives: build folders as ZIP files, and the folders of received builds."""

from __future__ import annotations

import io
import re
from pathlib import Path
from zipfile import BadZipFile, ZipFile

from compilers.tables.build_folder import load
from compilers.tables.generations import MANIFEST
from inventory.problems import InputError

MOST_BUILD = 1 << 30
"""Largest build in bytes, packed or not."""
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
    except (BadZipFile, OSError, EOFError, NotImplementedError, RuntimeError) as error:
        raise _problem("a ZIP file of a build folder", error) from error


def beside(folder: Path, identity: str) -> Path:
    """The folder for a build received from another controller (`cluster_member`)."""
    return folder.with_name(f".{folder.name}.store") / identity


def find(folder: Path, identity: str) -> bytes | None:
    """A build, packed, from the controller's folder or the folder of received builds, or None.

    Raises:
        InputError: it cannot be read.
    """
    for place in (folder, folder.with_name(f".{folder.name}.next"), beside(folder, identity)):
        try:
            found = load(place).identity
        except InputError:
            continue
        if found == identity:
            return pack(place)
    return None


def _problem(required: str, given: object) -> InputError:
    return InputError.of(required=required, given=str(given))
