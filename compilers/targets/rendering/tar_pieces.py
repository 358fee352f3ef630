"""Tar archives in pieces: each is compressed by itself, so that processes make them side by side.

gzip and zstd take one piece behind the other as one file. Times and owners are 0: the same files
make the same bytes.
"""

from __future__ import annotations

import gzip
import io
import tarfile
from collections.abc import Iterable
from pathlib import Path

from inventory.problems import InputError, install_extra

FORMS = (".tar", ".tar.gz", ".tar.zst")
OTHER_FORMS = (".zip", ".7z", ".tgz", ".tbz2", ".txz", ".tzst", ".tar.bz2", ".tar.xz", ".tar.lz4")
"""Archives that are not written; a new folder of such a name would be a surprise."""
SHIPPED = ".tar.gz"
"""How files travel from other machines."""
END = bytes(2 * tarfile.BLOCKSIZE)
"""What stands behind the last file."""


def archive_form(place: Path) -> str:
    """Which of FORMS the name of a file ends in; "" for a folder.

    Raises:
        InputError: zstandard is needed and not installed, or it ends as other archives do.
    """
    if place.name.endswith(OTHER_FORMS) and not place.is_dir():
        raise InputError.of(
            f"a folder, or a name that ends in {', '.join(FORMS)}", str(place), key="-o"
        )
    form = next((form for form in FORMS if place.name.endswith(form)), "")
    if not form or place.is_dir():
        return ""
    if form == ".tar.zst":
        try:
            import zstandard  # noqa: F401
        except ImportError as error:
            todo = f"install it: {install_extra('archives')}; or name a .tar.gz"
            given = "a Python without it"
            raise InputError.of("zstandard, for .tar.zst", given, todo, key="-o") from error
    return form


def require_unpacked(place: Path) -> None:
    """Pass where a name is not that of an archive.

    Raises:
        InputError: it is; with how to unpack it.
    """
    if place.is_file() and place.name.endswith(FORMS):
        todo = f"unpack it, and name the folder: mkdir DIR && tar -xf {place} -C DIR"
        raise InputError.of("a folder that render wrote", "an archive", todo, str(place))


def packed(files: Iterable[tuple[str, bytes]]) -> bytes:
    """Files as members of an archive, without its end."""
    stream = io.BytesIO()
    archive = tarfile.open(fileobj=stream, mode="w")  # noqa: SIM115  closing it writes the end
    for name, content in files:
        member = tarfile.TarInfo(name)
        member.size = len(content)
        archive.addfile(member, io.BytesIO(content))
    return stream.getvalue()


def compressed(form: str, piece: bytes) -> bytes:
    """A piece of an archive of this form."""
    if form == ".tar.gz":
        return gzip.compress(piece, 1, mtime=0)
    if form == ".tar.zst":
        import zstandard

        return zstandard.ZstdCompressor(level=3).compress(piece)
    return piece


def unpack_into(folder: Path, piece: bytes) -> None:
    """Write the files of a piece that was SHIPPED below a folder.

    Raises:
        OSError: it cannot be written.
    """
    stream = io.BytesIO(gzip.decompress(piece) + END)
    with tarfile.open(fileobj=stream) as archive:
        for member in archive:
            place = folder / member.name
            place.parent.mkdir(parents=True, exist_ok=True)
            content = archive.extractfile(member)
            assert content, "all of them are files"  # noqa: S101
            place.write_bytes(content.read())
