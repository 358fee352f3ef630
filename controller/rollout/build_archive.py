"""Build archives: build folders as ZIP files.

The build history (`controller.rollout.build_history`) packs builds for the API and for the store of
a cluster, and unpacks builds that were received. A received archive is not trusted: the names, the
sizes and the digests of its files are checked.
"""

from __future__ import annotations

import io
import json
import re
import zlib
from collections.abc import Callable, Collection
from hashlib import sha256
from lzma import LZMAError
from math import inf
from pathlib import Path
from zipfile import ZIP_DEFLATED, ZIP_STORED, BadZipFile, ZipFile, ZipInfo

from compilers.tables.folders.folder_contents import (
    FABRIC,
    MANIFEST,
    MANIFEST_SUM,
    VERIFIED,
    identity_of,
    manifest_sum,
)
from inventory.problems import InputError

MOST_BUILD = 1 << 30
"""Largest build in bytes, packed or not."""
MOST_MANIFEST = 1 << 16
"""Largest manifest in bytes; that of 993 switches has 3,400."""
SMALL_FABRIC, FABRIC_BYTES_A_SWITCH = 1 << 18, 1 << 11
"""Bytes that any `fabric.json` may have, and bytes more for each switch: nothing else goes on while
it is parsed. That of 993 switches has 57,000 bytes without variables of the user's."""
UNPACKED_AT_ONCE = 1 << 20
"""Bytes that are unpacked before other work goes on."""
SMALL_BUILD = 8 << 20
"""Bytes that any build may have unpacked, however few switches it has."""
BYTES_A_PAIR = 256
"""Bytes more that a build may have unpacked for each pair of its switches: its tables have entries
by switch and destination, of four bytes for each port to a switch. A Jellyfish of 500 switches with
40 such ports has 162 with balance `ecmp`."""
MOST_DIRECTORY = 1 << 16
"""Largest central directory of an archive in bytes; a build has less than a hundred files.

`zipfile` reads the directory at once: one of a million files keeps all other work waiting."""
MOST_HEADERS = 2 * MOST_DIRECTORY
"""Most bytes of an archive besides its files: its directory, and the header of each file."""
END_RECORD, END_RECORD_BYTES, LONGEST_COMMENT = b"PK\5\6", 22, 1 << 16
"""How the record at the end of an archive begins, its length, and that of a comment after it."""
ZIP64_LOCATOR, ZIP64_LOCATOR_BYTES = b"PK\6\7", 20
"""What stands before the end record of an archive whose sizes have 64 bits."""
ZIP_ERRORS = EOFError, OverflowError, RuntimeError, zlib.error, LZMAError
"""The exceptions of `zipfile` for damaged files, besides `BadZipFile`."""
BUILD_FILE = re.compile(r"(manifest|fabric|verified)\.json|allocations\.csv|arrays/[a-z0-9_]+\.npy")
"""The name of a file of a build, such as `arrays/far.npy`."""


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
                if BUILD_FILE.fullmatch(name):
                    archive.write(file, name)
    except OSError as error:
        raise _archive_error("a build folder that can be read", error) from error
    return stream.getvalue()


def most_archive(switches: int) -> int:
    """The most bytes that an archive may have whose build has at most so many switches.

    Files are stored, or deflated, which makes none longer by more than its header.
    """
    return _most_unpacked(switches) + MOST_HEADERS


def unpack(
    data: bytes,
    folder: Path,
    yield_to_others: Callable[[], None] = lambda: None,
    switches: float = inf,
) -> None:
    """Unpack a build into a new folder: files that its manifest names, with the digests there.

    Args:
        data: the ZIP file.
        folder: the new folder.
        yield_to_others: called after each `UNPACKED_AT_ONCE` bytes, so that other work goes on.
        switches: the most switches that the build may have. The size that it may have grows with
            the number of switches in its own manifest.

    Raises:
        InputError: the data is not a build, or it is too large.
        OSError: the folder cannot be written.
    """
    try:
        with _opened(data) as archive:
            digests, own_switches = _digests_and_switches(archive, switches)
            _require_files_of_build(archive, digests, own_switches)
            (folder / "arrays").mkdir(parents=True)
            for entry in archive.infolist():
                digest = _unpack_file(archive, entry, folder, yield_to_others)
                has_digest = entry.filename in digests  # the manifest has none of itself
                if has_digest and digest != digests[entry.filename]:
                    raise BadZipFile(f"{entry.filename} with another digest than in its manifest")
            (folder / MANIFEST_SUM).write_text(manifest_sum(_manifest_text(archive)))
    except (BadZipFile, ValueError, *ZIP_ERRORS) as error:
        raise _archive_error("a ZIP file of a build folder", error) from error


def _opened(data: bytes) -> ZipFile:
    """Open an archive whose central directory is small (APPNOTE.TXT of PKWARE, 4.3.16).

    Its files are stored or deflated: of other methods `zipfile` unpacks a whole file at once,
    however large that becomes. `zipfile` ignores what stands before, between and after the files.

    Raises:
        BadZipFile: it is no archive, its directory is larger than `MOST_DIRECTORY`, a file is
            packed by another method, or there is something besides the files.
    """
    # As `zipfile` looks for the end record: at the very end, else before a comment.
    end = len(data) - END_RECORD_BYTES
    if not (data.startswith(END_RECORD, max(end, 0)) and data.endswith(b"\0\0")):
        end = data.rfind(END_RECORD, max(end - LONGEST_COMMENT, 0))
    directory_bytes = int.from_bytes(data[end + 12 : end + 16], "little")
    is_zip64 = data.startswith(ZIP64_LOCATOR, max(end - ZIP64_LOCATOR_BYTES, 0))
    if end >= 0 and (is_zip64 or directory_bytes > MOST_DIRECTORY):
        raise BadZipFile(f"a directory of more than {MOST_DIRECTORY:,} bytes")
    archive = ZipFile(io.BytesIO(data))
    if not {entry.compress_type for entry in archive.infolist()} <= {ZIP_STORED, ZIP_DEFLATED}:
        raise BadZipFile("files that are neither stored nor deflated")
    first = min((entry.header_offset for entry in archive.infolist()), default=0)
    packed_bytes = sum(entry.compress_size for entry in archive.infolist())
    if first or archive.comment or len(data) > packed_bytes + MOST_HEADERS:
        raise BadZipFile("bytes that belong to no file")
    return archive


def _require_files_of_build(archive: ZipFile, digests: Collection[str], switches: int) -> None:
    """Require that the archive has only files of a build, each once, and not too large.

    Args:
        archive: the archive.
        digests: the names of the files that have digests in the manifest.
        switches: the number of switches in its manifest.

    Raises:
        BadZipFile: it has others.
    """
    most_bytes = _most_unpacked(switches)
    most_fabric_bytes = SMALL_FABRIC + FABRIC_BYTES_A_SWITCH * switches
    entries = archive.infolist()
    names = [entry.filename for entry in entries]
    if len(set(names)) < len(names) or not {*names} <= {*digests, MANIFEST, VERIFIED}:
        raise BadZipFile("files that its manifest does not name")
    if not all(map(BUILD_FILE.fullmatch, names)):
        raise BadZipFile("files that do not belong to a build")
    if sum(entry.file_size for entry in entries) > most_bytes:
        raise BadZipFile(f"more than {most_bytes:,} bytes")
    if any(entry.filename == FABRIC and entry.file_size > most_fabric_bytes for entry in entries):
        raise BadZipFile(f"a {FABRIC} of more than {most_fabric_bytes:,} bytes")


def _unpack_file(
    archive: ZipFile, entry: ZipInfo, folder: Path, yield_to_others: Callable[[], None]
) -> str:
    """Unpack a file into the folder; returns its SHA-256 digest in hexadecimal."""
    digest = sha256()
    with archive.open(entry) as packed, (folder / entry.filename).open("wb") as file:
        while piece := packed.read(UNPACKED_AT_ONCE):
            digest.update(piece)
            file.write(piece)
            yield_to_others()
    return digest.hexdigest()


def identity_in(data: bytes) -> str:
    """The identity of a packed build.

    Raises:
        InputError: it is not a build.
    """
    try:
        with _opened(data) as archive:
            return identity_of(_manifest_text(archive))
    except (BadZipFile, ValueError, *ZIP_ERRORS) as error:
        raise _archive_error("a ZIP file of a build folder", error) from error


def _manifest_text(archive: ZipFile) -> str:
    """The manifest of a packed build, as text.

    Raises:
        BadZipFile: there is none, or it is too large.
    """
    if MANIFEST not in archive.namelist():
        raise BadZipFile("no manifest")
    # Its size in the directory may be wrong: no more than this is unpacked.
    with archive.open(MANIFEST) as manifest:
        text = manifest.read(MOST_MANIFEST + 1)
    if len(text) > MOST_MANIFEST:
        raise BadZipFile(f"a manifest of more than {MOST_MANIFEST:,} bytes")
    return text.decode()


def _digests_and_switches(archive: ZipFile, most_switches: float) -> tuple[dict[str, str], int]:
    """The digests of a build's files by their names, and its number of switches.

    Raises:
        BadZipFile: the manifest is none, or the build has more switches than this.
    """
    manifest = json.loads(_manifest_text(archive))
    if not isinstance(manifest, dict):
        raise BadZipFile("a manifest that is none")
    files, switches = manifest.get("files"), manifest.get("switches")
    if not isinstance(files, dict) or not isinstance(switches, int) or switches < 0:
        raise BadZipFile("a manifest that is none")
    if switches > most_switches:
        raise BadZipFile(f"{switches:,} switches, where this fabric takes {most_switches:,}")
    return files, switches


def _most_unpacked(switches: int) -> int:
    """The most bytes that a build of so many switches may have unpacked."""
    return min(MOST_BUILD, SMALL_BUILD + BYTES_A_PAIR * switches**2)


def _archive_error(required: str, given: object) -> InputError:
    """The error of a build, packed or in a folder."""
    return InputError.of(required=required, given=str(given))
