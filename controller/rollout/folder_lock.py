"""The lock on a controller's build folder: only one controller keeps a journal next to it.

`controller.composition` takes the lock when the controller starts. Before, the build history has it
while it replaces a damaged build.
"""

from __future__ import annotations

import errno
import fcntl
import os
from collections.abc import Callable
from concurrent.futures import Future
from functools import partial
from pathlib import Path

from controller.switches.events import Event, FileUnwritable
from controller.upkeep.background import Start, in_thread
from inventory.problems import InputError

OPEN_PATIENCE = 5.0
"""Most seconds to wait until the disk has made the lock's file."""
LONGEST_PID = 20
"""Most bytes of a process id and the end of its line."""


class FolderLock:
    """A lock that a controller has from its start until its process ends, in whatever way.

    It is a lock of the kernel (`flock`) on `.NAME.lock`, whose content names the process for
    people. Where that file cannot be written, as on a read-only disk, there is no lock, and an
    event says so. The descriptor stays open on purpose: the kernel releases the lock when it is
    closed, by `release` or at the end of the process. The controller's start waits for the disk
    only where the file has to be made, and not for long.

    Raises:
        InputError: another controller has it, or the folder's path has a symbolic link.
    """

    def __init__(
        self, folder: Path, tell: Callable[[Event], None], start: Start = in_thread
    ) -> None:
        path = _without_links(folder)
        self.file = path.with_name(f".{path.name}.lock")
        self._descriptor: int | None = None
        try:
            descriptor = self._open(start)
            try:
                fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError as error:
                owner = os.read(descriptor, LONGEST_PID).decode(errors="replace").strip()
                os.close(descriptor)
                raise InputError.of(
                    "a build folder that no other controller uses",
                    f"one that process {owner} uses",
                    "stop that controller, or give this one a folder of its own",
                    file=str(folder),
                ) from error
            self._descriptor = descriptor
            start(partial(_name_process, descriptor))
        except OSError as error:
            tell(FileUnwritable(str(self.file), error.strerror or str(error)))

    def release(self) -> None:
        """Release the lock; only once the process is named, so of a lock that is made `at_once`."""
        if self._descriptor is not None:
            os.close(self._descriptor)
        self._descriptor = None

    def _open(self, start: Start) -> int:
        """Open the file, and make it in a thread if it is missing; returns its descriptor.

        Opening a file that exists needs no write, so a disk that hangs does not hold it up.
        """
        try:
            return os.open(self.file, os.O_RDWR)
        except FileNotFoundError:
            opening: Future[int] = start(partial(os.open, self.file, os.O_RDWR | os.O_CREAT, 0o600))
            try:
                return opening.result(OPEN_PATIENCE)
            except TimeoutError:
                raise OSError(errno.ETIMEDOUT, "the disk does not answer") from None


def _name_process(descriptor: int) -> None:
    """Write the id of this process into the lock's file."""
    os.ftruncate(descriptor, 0)
    os.write(descriptor, f"{os.getpid()}\n".encode())


def _without_links(folder: Path) -> Path:
    """The absolute path of a folder, refused if it has a symbolic link.

    When a link is pointed to another folder, the journal stays beside the first one. This
    controller would put builds into the wrong folder, and the next one would forget drains.
    """
    target, path = folder.resolve(), folder.absolute()
    if any(part.is_symlink() for part in (path, *path.parents)):
        raise InputError.of(
            "a build folder whose path has no symbolic link",
            f"a link to {target}",
            f"name {target} itself; to replace the build there, compile into it, which takes a"
            " single step",
            file=str(folder),
        )
    return target
