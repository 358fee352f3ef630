"""The files of a folder as it was when it was opened; links are not followed."""

from __future__ import annotations

import errno
import hashlib
import os
import stat
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from io import BufferedReader
from pathlib import Path, PurePosixPath

SIZE_FOR_THREADS = 1 << 26
"""Bytes from which on files are hashed side by side."""


class FolderFiles:
    """An open folder.

    path: of the folder, for messages. After another folder took its place these are still the files
    of the one that was opened.
    """

    def __init__(self, path: Path, descriptor: int) -> None:
        self.path, self._descriptor = path, descriptor

    def open(self, name: str) -> BufferedReader:
        """A file of it to read, by its path below it.

        Raises:
            OSError: it is a link or is behind one, is no regular file, or cannot be read.
        """
        return open(name, "rb", opener=self._open)

    def _open(self, name: str, flags: int) -> int:
        *folders, file = PurePosixPath(name).parts
        held = [self._descriptor]
        try:
            for folder in folders:
                held.append(os.open(folder, os.O_DIRECTORY | os.O_NOFOLLOW, dir_fd=held[-1]))
            found = os.open(file, flags | os.O_NOFOLLOW | os.O_NONBLOCK, dir_fd=held[-1])
        finally:
            for descriptor in held[1:]:
                os.close(descriptor)
        if stat.S_ISREG(os.fstat(found).st_mode):
            return found
        os.close(found)
        raise OSError(errno.EINVAL, "not a regular file", name)

    def read(self, name: str) -> str:
        """The text of a file.

        Raises:
            OSError, UnicodeDecodeError: it cannot be read.
        """
        with self.open(name) as file:
            return file.read().decode()

    def digest(self, name: str) -> str:
        """The SHA-256 of a file; in words what it is, where it has none."""
        try:
            with self.open(name) as file:
                return digest(file)
        except OSError as error:
            return _no_file(error)

    def digests(self, names: Iterable[str]) -> dict[str, str]:
        """The `digest` of each of these files; of many megabytes on all cores."""
        listed = list(names)
        if sum(map(self._size, listed)) < SIZE_FOR_THREADS:
            return {name: self.digest(name) for name in listed}
        from concurrent.futures import ThreadPoolExecutor

        with ThreadPoolExecutor(len(os.sched_getaffinity(0))) as threads:
            return dict(zip(listed, threads.map(self.digest, listed), strict=True))

    def _size(self, name: str) -> int:
        try:
            return os.stat(name, dir_fd=self._descriptor, follow_symlinks=False).st_size
        except OSError:
            return 0

    def moved(self) -> bool:
        """Whether another folder took its place."""
        try:
            there = self.path.stat()
        except OSError:
            return False
        return not os.path.samestat(there, os.fstat(self._descriptor))

    def entries(self) -> Iterator[tuple[str, os.DirEntry[str]]]:
        """Everything in it that is no folder, by its path below it; links to folders too."""
        for name, entry in entries(self.path):
            if not entry.is_dir(follow_symlinks=False):
                yield name, entry


def entries(folder: Path, above: str = "") -> Iterator[tuple[str, os.DirEntry[str]]]:
    """Everything below a folder by its path below it, folders before what is in them."""
    with os.scandir(folder / above) as found:
        listed = sorted(found, key=lambda entry: entry.name)
    for entry in listed:
        yield above + entry.name, entry
        if entry.is_dir(follow_symlinks=False):
            yield from entries(folder, f"{above}{entry.name}/")


@contextmanager
def opened(folder: Path) -> Iterator[FolderFiles]:
    """A folder to read files from.

    Raises:
        OSError: it cannot be opened.
    """
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        yield FolderFiles(folder, descriptor)
    finally:
        os.close(descriptor)


def read(folder: Path, name: str) -> str:
    """The text of a file of a folder.

    Raises:
        OSError, UnicodeDecodeError: it cannot be read, or a link is in the way.
    """
    with opened(folder) as files:
        return files.read(name)


def digest(file: BufferedReader) -> str:
    """The SHA-256 of an open file, from its first byte on; it is at its first byte again."""
    found = hashlib.file_digest(file, "sha256").hexdigest()
    file.seek(0)
    return found


def _no_file(error: OSError) -> str:
    words = {errno.ENOENT: "no file", errno.ELOOP: "a link", errno.ENOTDIR: "a link"}
    return words.get(error.errno or 0, error.strerror or str(error))
