"""Reading the files of one folder, even if another folder takes its place meanwhile.

A build may be replaced while it is read. `FolderFiles` opens the folder once, and opens its files
relative to that descriptor, so all of them are of the same build. Symbolic links are refused: what
is read is what is in the folder.
"""

from __future__ import annotations

import errno
import hashlib
import os
import stat
from collections.abc import Iterable
from io import BufferedReader
from pathlib import Path, PurePosixPath

SIZE_FOR_THREADS = 1 << 26
"""The total size in bytes from which on files are hashed in several threads."""
NO_FILE = {errno.ENOENT: "no file", errno.ELOOP: "a link", errno.ENOTDIR: "a link"}
"""What is there instead of a file, by the error that opening it raises."""


class FolderFiles:
    """An open folder, to be used in a `with` statement.

    Attributes:
        path: of the folder, for messages. Another folder may have this path by now.
    """

    def __init__(self, path: Path) -> None:
        """Open a folder.

        Raises:
            OSError: it cannot be opened.
        """
        self.path, self._descriptor = path, os.open(path, os.O_RDONLY | os.O_DIRECTORY)

    def __enter__(self) -> FolderFiles:
        """Return the folder itself."""
        return self

    def __exit__(self, *_: object) -> None:
        """Close the folder."""
        os.close(self._descriptor)

    def open(self, name: str) -> BufferedReader:
        """Open a file for reading, by its path below the folder.

        Raises:
            OSError: the file or a folder on the path is a link, the file is no regular one, or it
                cannot be read.
        """
        return open(name, "rb", opener=self._open)

    def _open(self, name: str, flags: int) -> int:
        """Return the descriptor of a file: open one folder of its path after the other, no link."""
        *folders, file = PurePosixPath(name).parts
        descriptors = [self._descriptor]
        try:
            for folder in folders:
                no_link = os.O_DIRECTORY | os.O_NOFOLLOW
                descriptors.append(os.open(folder, no_link, dir_fd=descriptors[-1]))
            # Without waiting: a pipe without a writer would block.
            no_wait = flags | os.O_NOFOLLOW | os.O_NONBLOCK
            opened = os.open(file, no_wait, dir_fd=descriptors[-1])
        finally:
            for descriptor in descriptors[1:]:
                os.close(descriptor)
        if stat.S_ISREG(os.fstat(opened).st_mode):
            return opened
        os.close(opened)
        raise OSError(errno.EINVAL, "not a regular file", name)

    def read(self, name: str) -> str:
        """Return the text of a file.

        Raises:
            OSError, UnicodeDecodeError: it cannot be read.
        """
        with self.open(name) as file:
            return file.read().decode()

    def digest(self, name: str) -> str:
        """Return the SHA-256 of a file in hexadecimal digits, or in words why there is none."""
        try:
            with self.open(name) as file:
                return hashlib.file_digest(file, "sha256").hexdigest()
        except OSError as error:
            return NO_FILE.get(error.errno or 0, error.strerror or str(error))

    def digests(self, names: Iterable[str]) -> dict[str, str]:
        """Return the `digest` of each of these files; large files are hashed on all cores."""
        files = list(names)
        if sum(map(self._size, files)) < SIZE_FOR_THREADS:
            return {name: self.digest(name) for name in files}
        from concurrent.futures import ThreadPoolExecutor

        with ThreadPoolExecutor(len(os.sched_getaffinity(0))) as threads:
            return dict(zip(files, threads.map(self.digest, files), strict=True))

    def _size(self, name: str) -> int:
        """Return the size of a file in bytes, 0 where it cannot be known."""
        try:
            return os.stat(name, dir_fd=self._descriptor, follow_symlinks=False).st_size
        except OSError:
            return 0

    def names(self) -> list[str]:
        """Return the paths of all files and links below the folder, sorted; none if it is gone."""
        paths = list[str]()
        try:
            for folder, subfolders, files, descriptor in os.fwalk(dir_fd=self._descriptor):
                links = (name for name in subfolders if _is_link(name, descriptor))
                paths += [PurePosixPath(folder, name).as_posix() for name in (*files, *links)]
        except FileNotFoundError:
            return []
        return sorted(paths)

    def moved(self) -> bool:
        """Whether another folder has this folder's path now."""
        try:
            return not os.path.samestat(self.path.stat(), os.fstat(self._descriptor))
        except OSError:
            return False


def _is_link(name: str, folder: int) -> bool:
    """Whether an entry of an open folder is a symbolic link."""
    try:
        return stat.S_ISLNK(os.stat(name, dir_fd=folder, follow_symlinks=False).st_mode)
    except OSError:
        return False


def read(folder: Path, name: str) -> str:
    """Return the text of one file of a folder.

    Raises:
        OSError, UnicodeDecodeError: it cannot be read, or a link is on its path.
    """
    with FolderFiles(folder) as files:
        return files.read(name)
