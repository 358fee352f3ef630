"""The files of a folder as it was when it was opened; links are not followed."""

from __future__ import annotations

import errno
import hashlib
import os
import stat
from collections.abc import Iterable
from io import BufferedReader
from pathlib import Path, PurePosixPath

SIZE_FOR_THREADS = 1 << 26
"""Bytes from which on files are hashed side by side."""
NO_FILE = {errno.ENOENT: "no file", errno.ELOOP: "a link", errno.ENOTDIR: "a link"}


class FolderFiles:
    """An open folder; to be used in a `with` statement.

    path: of the folder, for messages. After another folder took its place these are still the files
    of the one that was opened.
    """

    def __init__(self, path: Path) -> None:
        """Open a folder.

        Raises:
            OSError: it cannot be opened.
        """
        self.path, self._descriptor = path, os.open(path, os.O_RDONLY | os.O_DIRECTORY)

    def __enter__(self) -> FolderFiles:
        """The folder."""
        return self

    def __exit__(self, *_: object) -> None:
        """Close it."""
        os.close(self._descriptor)

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
                return hashlib.file_digest(file, "sha256").hexdigest()
        except OSError as error:
            return NO_FILE.get(error.errno or 0, error.strerror or str(error))

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

    def names(self) -> list[str]:
        """The paths of everything below it that is no folder, links to folders too."""
        found = list[str]()
        for here, folders, files in os.walk(self.path):
            above = Path(here).relative_to(self.path)
            links = (name for name in folders if Path(here, name).is_symlink())
            found += [(above / name).as_posix() for name in (*files, *links)]
        return sorted(found)

    def moved(self) -> bool:
        """Whether another folder took its place."""
        try:
            return not os.path.samestat(self.path.stat(), os.fstat(self._descriptor))
        except OSError:
            return False


def read(folder: Path, name: str) -> str:
    """The text of a file of a folder.

    Raises:
        OSError, UnicodeDecodeError: it cannot be read, or a link is in the way.
    """
    with FolderFiles(folder) as files:
        return files.read(name)
