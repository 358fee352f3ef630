"""The one door to the disk: files and folders that take their place whole.

A part is `.NAME.xxxxxxxx.polarfab` next to NAME: written, flushed, then renamed to NAME or
exchanged with it in one step, so that NAME is the old one or the new one at every moment. It is
locked while it is written, so that `polarfab folder gc` leaves it alone. Devices, pipes and
descriptors are written to, never replaced.

A folder that is exchanged has the file `LEFT` from just before until what is not ours in it was
moved to its place (`finish`). So a part without that file is garbage, and one with it is what a
kill interrupted.
"""

from __future__ import annotations

import ctypes
import errno
import fcntl
import os
import re
import secrets
import shutil
import stat
import sys
import time
from collections.abc import Callable, Collection, Iterable, Iterator
from contextlib import ExitStack, contextmanager, nullcontext, suppress
from pathlib import Path, PurePosixPath
from typing import BinaryIO, TypeVar

from inventory.problems import InputError, Problem, few

OTHER_FOLDER = "name another folder with -o"
OTHER_FILE = "name another one with -o"
AT_FDCWD, RENAME_EXCHANGE = -100, 2
FULL = (errno.ENOSPC, errno.EDQUOT, None)
"""What a full disk says; NumPy says it without a number."""
NO_EXCHANGE = (errno.ENOSYS, errno.EINVAL, errno.ENOTSUP)
"""What a kernel or a file system says that cannot exchange two names."""
PATIENCE, POLL = 60.0, 0.05
"""Seconds for another command that has a folder, and between looks."""
PART = re.compile(r"\.(?P<place>.+)\.[0-9a-f]{8}\.polarfab", re.DOTALL)
LEFT = ".left.polarfab"
MOUNTS, MOUNT_POINT = Path("/proc/self/mountinfo"), 4
"""The mounts; the column that says where each is, with blanks and backslashes as octal numbers."""
ANY_WRITES = stat.S_IWUSR | stat.S_IWGRP | stat.S_IWOTH
STDOUT = Path("/proc/self/fd/1")
Owned = Callable[[Path], set[str]]
"""The paths of the files below a folder that are ours."""
Keep = Callable[[Path, Path], Path | None]
"""Where a folder that left a place is to be kept; None for nowhere."""
T = TypeVar("T")


def place_of(path: Path) -> Path:
    """The path that a file or folder in a part has once that takes its place."""
    found = [(name, PART.fullmatch(name)) for name in path.parts]
    return Path(*(match["place"] if match else name for name, match in found))


def mount_in(folder: Path) -> Path | None:
    """A mount point at a folder or below it, of a bind mount of the same file system too."""
    place = os.path.realpath(folder)
    with suppress(OSError):  # no /proc
        for line in MOUNTS.read_bytes().splitlines():
            word = line.split()[MOUNT_POINT].decode("unicode_escape").encode("latin-1")
            if (point := Path(os.fsdecode(word))).is_relative_to(place):
                return point
    return None


def put_file(
    file: Path, pieces: Iterable[bytes], todo: str = OTHER_FILE, folders: bool = False
) -> int:
    """Write a file whole or not at all; returns its bytes.

    A link in its place is replaced, never written through, unless it leads to a device, a pipe or
    a descriptor of this process (`/dev/stdout`): those are written to.

    Args:
        file: where to.
        pieces: the content, one after the other.
        todo: what to do where the file cannot be written.
        folders: make the folder that it is in.

    Raises:
        BrokenPipeError: nothing reads the pipe.
        InputError: it cannot be written.
    """
    try:
        if stream := _stream(file):
            with stream:
                return sum(map(stream.write, pieces))
        _require_writable(file)
        with _new_folders(file.parent) if folders else nullcontext():
            size = replace_file(file, pieces)
            with _confirmed():
                flush(file.parent)
        return size
    except BrokenPipeError:
        raise
    except OSError as error:
        raise _unwritable(file, "a file that can be written", error, todo) from error


def _stream(file: Path) -> BinaryIO | None:
    """What is written to in a place and not replaced: a descriptor, a pipe or a device.

    Raises:
        OSError: it cannot be opened.
    """
    with suppress(FileNotFoundError):
        mode, here, descriptors = file.stat().st_mode, file, Path("/proc/self/fd").resolve()
        while here.parent.resolve() != descriptors:
            if not here.is_symlink():
                return None if stat.S_ISREG(mode) or stat.S_ISDIR(mode) else file.open("wb")
            here = here.parent / here.readlink()
        sys.stdout.flush()
        return os.fdopen(os.dup(int(here.name)), "wb")
    return None


def _require_writable(file: Path) -> None:
    """Pass unless a folder is there, or a file that is read-only for all.

    Raises:
        OSError: one is.
    """
    with suppress(FileNotFoundError):
        mode = file.lstat().st_mode
        if stat.S_ISDIR(mode):
            raise OSError(errno.EISDIR, "a folder")
        if stat.S_ISREG(mode) and not (mode & ANY_WRITES and os.access(file, os.W_OK)):
            raise OSError(errno.EACCES, "a read-only file")


def replace_file(file: Path, pieces: Iterable[bytes]) -> int:
    """Write a file next to a place and rename it, whatever is there; returns its bytes.

    `flush` has the folder keep the new name.

    Raises:
        OSError: it cannot be written.
    """
    with _part(file, lambda part: part.touch(exist_ok=False)) as part:
        with part.open("wb") as stream:
            size = sum(map(stream.write, pieces))
            stream.flush()
            with suppress(FileNotFoundError):
                if stat.S_ISREG((old := file.lstat()).st_mode):
                    _own(part, old)
            os.fsync(stream.fileno())
        part.replace(file)
    return size


def put_folder(
    folder: Path,
    fill: Callable[[Path], T],
    owned: Owned | None = None,
    keep: Keep = lambda *_: None,
    complete: Callable[[Path], object] = lambda _: None,
) -> T:
    """Have `fill` write a new folder, then put it in the place of `folder`; returns its result.

    Args:
        folder: the place; links on the way to it stay.
        fill: writes into the folder that it is given, empty and next to the place.
        owned: which files of a folder are ours; what else is in the place stays there. Without it
            all are.
        keep: where the folder that was in the place is to be kept.
        complete: gets the new folder while no other process replaces the one in the place.

    Raises:
        InputError: it cannot be written, or what is not ours is in the way.
    """
    try:
        place = require_replaceable(folder)
        with _new_folders(place.parent), _part(place, Path.mkdir) as part:
            result = fill(part)
            with held(place.parent):
                complete(part)
                swap(part, place, owned, keep)
                remove(part)
            return result
    except OSError as error:
        raise unwritable_folder(folder, error) from error


def require_replaceable(folder: Path) -> Path:
    """The place of a folder, where one of ours may be put.

    Raises:
        InputError: others share what is there.
    """
    place = folder.resolve()  # a link stays one; `.` has no name to write next to
    if why := _not_to_be_replaced(place):
        raise InputError.of("a folder that can be replaced", why, OTHER_FOLDER, str(folder))
    return place


def _not_to_be_replaced(place: Path) -> str:
    """Why none of our folders takes a place, "" where it may."""
    if place.name == "-":
        return "-, standard output"
    if (here := Path.cwd()).is_relative_to(place):
        is_it = "is the working directory" if place == here else "the working directory is in"
        return f"{place}, which {is_it}"
    mount = mount_in(place)
    if place == mount or (place.exists() and place.stat().st_mode & stat.S_ISVTX):
        return f"{place}, which others share"
    return f"a folder with a mount at {mount} in it" if mount else ""


def swap(new: Path, place: Path, owned: Owned | None = None, keep: Keep = lambda *_: None) -> None:
    """Put a folder in a place; one that was there is in the place of the new one, and finished.

    While the folder that has both is `held`.

    Raises:
        InputError: what is not ours is in the way.
        OSError: it cannot be written.
    """
    there = os.path.lexists(place)
    shared = owned if there else None
    if shared:
        _shape(place, new, others(place, shared(place), new))
        (place / LEFT).unlink(missing_ok=True)  # a link there is not followed
        (place / LEFT).touch(exist_ok=False)
    try:
        _flush_all(new)
        (exchange if there else Path.rename)(new, place)
    except BaseException:
        with suppress(OSError):
            (place / LEFT).unlink()
        raise
    with _confirmed():
        flush(place.parent)
        try:
            if shared:
                finish(new, place, shared, keep)
        except InputError:  # it came to the place just before the exchange
            exchange(new, place)
            (place / LEFT).unlink()
            raise


def finish(left: Path, place: Path, owned: Owned, keep: Keep) -> Path | None:
    """Move what is not ours from a folder that left a place into that; returns where it is kept.

    What was kept before then has the name of the folder that left.

    Raises:
        InputError: what is not ours is in the way.
        OSError: it cannot be written.
    """
    kept = keep(left, place)
    for name in others(left, owned(left), place):
        (place / name).parent.mkdir(parents=True, exist_ok=True)
        (left / name).rename(place / name)
    if kept:
        (exchange if os.path.lexists(kept) else Path.rename)(left, kept)
    ((kept or left) / LEFT).unlink()
    return kept


def others(old: Path, ours: Collection[str], new: Path | None = None) -> list[str]:
    """What is not ours in a folder: files, and folders with nothing of ours, old or new, in them.

    Raises:
        InputError: one of our new files has the name; each by name. Or a folder is read-only, so
            that what is in it cannot be moved or removed.
    """
    mixed = {str(above) for name in ours for above in PurePosixPath(name).parents}

    def require_writable(folder: Path) -> None:
        if folder.is_dir() and not os.access(folder, os.W_OK | os.X_OK):
            required, todo = "a folder that can be written", f"make it so, or {OTHER_FOLDER}"
            raise InputError.of(required, "a read-only one", todo, str(place_of(folder)))

    def below(above: str) -> Iterator[str]:
        require_writable(old / above)
        for entry in sorted(os.scandir(old / above), key=lambda entry: entry.name):
            name, folder = above + entry.name, entry.is_dir(follow_symlinks=False)
            if folder and (name in mixed or (new and (new / name).is_dir())):
                yield from below(f"{name}/")
            elif folder or name not in ours:
                if folder:
                    require_writable(old / name)
                yield name

    found = list(below(""))
    required, todo = "no file of another's by this name", f"move it away, or {OTHER_FOLDER}"
    taken = [name for name in found if new and _is_taken(new, PurePosixPath(name))]
    if taken:
        paths = (str(place_of(old / name)) for name in taken)
        raise InputError(few(Problem(required, "one", todo, path) for path in paths))
    return found


def _is_taken(folder: Path, name: PurePosixPath) -> bool:
    """Whether something has this name below a folder, or a file that of a folder above it."""
    there = next(path for path in (name, *name.parents) if os.path.lexists(folder / path))
    return there == name or not (folder / there).is_dir()


def _shape(old: Path, new: Path, names: Iterable[str]) -> None:
    """Give new folders the mode and owner of old ones; make those that these names are in."""
    folders = {str(above) for name in names for above in PurePosixPath(name).parents}
    folders |= {os.path.relpath(above, new) for above, _, _ in os.walk(new)}
    for name in sorted(folders):
        if (old / name).is_dir():
            (new / name).mkdir(parents=True, exist_ok=True)
            _own(new / name, (old / name).stat())


def link_files(old: Path, new: Path, names: Iterable[str]) -> None:
    """Link files of a folder that are there into another.

    Raises:
        OSError: they cannot be linked or copied.
    """
    for name in names:
        if os.path.lexists(old / name) and not (old / name).is_dir():
            (new / name).parent.mkdir(parents=True, exist_ok=True)
            link_file(old / name, new / name)


def link_file(here: Path, there: Path) -> None:
    """A hard link; a copy where the file system has none.

    Raises:
        OSError: neither can be made.
    """
    try:
        os.link(here, there, follow_symlinks=False)
    except OSError:
        shutil.copy2(here, there, follow_symlinks=False)


def _own(path: Path, like: os.stat_result) -> None:
    """Give a file or folder the owner and the mode of another, the owner as far as one may."""
    with suppress(PermissionError):
        os.chown(path, like.st_uid, like.st_gid)
    path.chmod(stat.S_IMODE(like.st_mode))


def exchange(new: Path, place: Path) -> None:
    """Put a folder in a place, and what was there in its own, in one step.

    Where the file system has no such step it takes three, and between the first and the second
    the place is empty: the next command that writes there puts the old folder back, as `polarfab
    folder gc` does.

    Raises:
        OSError: it cannot be renamed.
    """
    sys.audit("os.rename", new, place, -1, -1)
    try:
        _exchange(new, place)
    except OSError as error:
        if error.errno not in NO_EXCHANGE:
            raise
        place.rename(old := _part_name(place))
        try:
            new.rename(place)
        except OSError:
            old.rename(place)
            raise
        with _confirmed():
            old.rename(new)


def _exchange(one: Path, other: Path) -> None:
    _system("renameat2", AT_FDCWD, os.fsencode(one), AT_FDCWD, os.fsencode(other), RENAME_EXCHANGE)


def _system(name: str, *given: object) -> None:
    """Call a function of the C library.

    Raises:
        OSError: it says so, or there is none.
    """
    function = getattr(ctypes.CDLL(None, use_errno=True), name, None)
    if function is None or function(*given):
        number = ctypes.get_errno() if function else errno.ENOSYS
        raise OSError(number, os.strerror(number))


def _part_name(place: Path) -> Path:
    """A name next to a place that nothing else has."""
    return place.with_name(f".{place.name}.{secrets.token_hex(4)}.polarfab")


@contextmanager
def _new_folders(folder: Path) -> Iterator[None]:
    """Make a folder and those above it; what was made goes again where the work in it fails."""
    made = [each for each in (folder, *folder.parents) if not os.path.lexists(each)]
    try:
        folder.mkdir(parents=True, exist_ok=True)
        yield
    except BaseException:
        for each in made:
            with suppress(OSError):
                each.rmdir()
        raise
    with _confirmed():
        for each in made:
            flush(each.parent)


@contextmanager
def _part(place: Path, make: Callable[[Path], object]) -> Iterator[Path]:
    """A new part, locked; removed at the end, but for a folder that has to be finished."""
    part = _part_name(place)  # known before it is made: a signal may come at any moment
    with ExitStack() as stack:
        try:
            make(part)
            while stack.enter_context(claimed(part)) is False:
                make(part := _part_name(place))  # `polarfab folder gc` removed or has the other
            yield part
        finally:
            if not is_left(part):
                remove(part)


def is_left(folder: Path) -> bool:
    """Whether a folder left its place and is not finished."""
    with suppress(PermissionError):
        return not folder.is_symlink() and (folder / LEFT).is_file()
    return False


@contextmanager
def claimed(part: Path) -> Iterator[bool | None]:
    """Whether a part is there and no other process has it; None where that cannot be known."""
    try:
        descriptor = os.open(part, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
    except PermissionError:  # of another user, who may be writing it
        yield None
        return
    except OSError:  # a link, a socket
        yield os.path.lexists(part)
        return
    try:
        free = _lock(descriptor)
        yield free and os.path.lexists(part)
    finally:
        os.close(descriptor)


@contextmanager
def held(folder: Path) -> Iterator[None]:
    """Let no other process exchange or clear anything in a folder meanwhile; or wait for it.

    Raises:
        OSError: it cannot be opened, or is not let go.
    """
    limit = time.monotonic() + PATIENCE
    with _open_folder(folder) as descriptor:
        while _lock(descriptor) is False:
            if time.monotonic() > limit:
                given = f"a folder that another command has held for {PATIENCE:.0f} s"
                raise OSError(errno.EBUSY, given, str(folder))
            time.sleep(POLL)
        yield


def _lock(descriptor: int) -> bool | None:
    """Lock what is open; whether it is locked now, None where the file system has no locks."""
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    except OSError:
        return None
    return True


def clear(path: Path) -> None:
    """Remove a file, a link, or a folder with all in it.

    Raises:
        OSError: it cannot be removed.
    """
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path)
    else:
        path.unlink(missing_ok=True)


def remove(path: Path) -> None:
    """The same, as far as that is possible."""
    with suppress(OSError):
        clear(path)


def _flush_all(folder: Path) -> None:
    """Have the file system of a folder write everything: one call, however many files.

    Raises:
        OSError: it could not.
    """
    with _open_folder(folder) as descriptor:
        _system("syncfs", descriptor)


def flush(folder: Path) -> None:
    """Have the names in a folder written."""
    with _open_folder(folder) as descriptor:
        os.fsync(descriptor)


@contextmanager
def _open_folder(folder: Path) -> Iterator[int]:
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        yield descriptor
    finally:
        os.close(descriptor)


@contextmanager
def _confirmed() -> Iterator[None]:
    """Say of what fails in here that the new file or folder is in its place all the same."""
    try:
        yield
    except OSError as error:
        given = f"the new one is in its place, but {_words(error)}"
        raise OSError(errno.EIO, given) from error


def unwritable_folder(folder: Path, error: OSError) -> InputError:
    """The refusal of a folder by the system as a message; of a full disk, with what to do."""
    todo = f"{OTHER_FOLDER}, or make room" if error.errno in FULL else OTHER_FOLDER
    return _unwritable(folder, "a folder that can be written", error, todo)


def _unwritable(path: Path, required: str, error: OSError, todo: str) -> InputError:
    return InputError.of(required, _reason(path, error), todo, str(place_of(path)))


def _reason(path: Path, error: OSError) -> str:
    """Why nothing can be made there: a folder above it that is none, or what the system says."""
    above = next((folder for folder in path.parents if os.path.lexists(folder)), path)
    if not above.is_dir():
        return f"{above}, which is no folder"
    if error.errno == errno.ENOENT:
        there = above == path.parent
        return f"{above}, where nothing can be made" if there else f"no folder {path.parent}"
    return _words(error)


def _words(error: OSError) -> str:
    return error.strerror or f"no room ({error})"
