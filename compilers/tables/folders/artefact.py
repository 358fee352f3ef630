"""The one door to the disk: files and folders that take their place whole.

A part is `.NAME.xxxxxxxx.part` next to NAME, written, flushed, then exchanged with NAME in one
step, so that NAME is the old one or the new one at every moment. It is locked while it is written,
so that `polarfab folder gc` leaves it alone. Devices, pipes and descriptors are written to, never
replaced.
What is in a folder and is not ours is kept there with its mode, owner and times, or refused by name
where our own file would take its place.

A folder that is to leave its place gets the file `LEFT` just before. So a part with that file is
the folder that left, and `settle` finishes what a kill interrupted: it carries what was saved there
until it left, and keeps what is to be kept. A part without it never was in the place.
"""

from __future__ import annotations

import ctypes
import errno
import fcntl
import json
import os
import re
import secrets
import shlex
import shutil
import stat
import sys
import time
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from contextlib import contextmanager, nullcontext, suppress
from pathlib import Path, PurePosixPath
from threading import Thread
from types import MappingProxyType
from typing import BinaryIO, TypeVar

from compilers.tables.folders.folder_files import entries
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
HURRY = 1.0
"""Seconds for removing a part after Ctrl-C: thousands of files may take a busy disk longer."""
PART = re.compile(r"\.(?P<place>.+)\.(?=[0-9]*[a-f])[0-9a-f]{8}\.(?P<kind>part|old)", re.DOTALL)
"""`.NAME.xxxxxxxx.part`: eight hexadecimal digits, a letter among them, so no date or number."""
LEFT = ".left.0000000a.part"
"""In a folder that leaves its place: whether it is to be kept, and what was carried out of it."""
MARKS = (LEFT, ".polarfab.json", "planes.json", "fabric.json", "plane-[1-9]*/fabric.json")
"""What our folder has, a part of one soon after it is made; any that leaves its place."""
MOUNTS = Path("/proc/self/mountinfo")
MOUNT_POINT = 4
"""Column of `MOUNTS`: where a mount is, with blanks and backslashes as octal numbers."""
ANY_WRITES = stat.S_IWUSR | stat.S_IWGRP | stat.S_IWOTH
STDOUT = Path("/proc/self/fd/1")
LINKS = 40
"""Links that are followed one after the other, as the kernel does."""
Owned = Callable[[Path], set[str]]
"""The paths of the files below a folder that are ours."""
Carried = Mapping[str, list[int]]
"""Files that were carried: the inode and the time of writing of each, by its path."""
T = TypeVar("T")


def is_part(name: str) -> bool:
    """Whether a file or folder of this name is a part of another."""
    return PART.fullmatch(name) is not None


def is_leftover(path: Path) -> bool:
    """Whether a path is a part that this package made: by its name, and by what is in or at it.

    A folder has our mark, or is next to our folder that it is named for, or is empty.
    A file is next to the file that it is named for, or is `LEFT` or the mark of a build. An `.old`
    folder always has a mark.
    """
    match = PART.fullmatch(path.name)
    if not match or path.is_symlink():
        return False
    place, kind = path.with_name(match["place"]), match["kind"]
    if path.is_dir():
        if _marked(path):
            return True
        with suppress(FileNotFoundError):  # another process swept it
            return kind != "old" and (_marked(place) or not any(path.iterdir()))
        return False
    of_build = (place.name == "verified.json" or path.name == LEFT) and _marked(place.parent)
    return kind == "part" and path.is_file() and (place.is_file() or of_build)


def _marked(folder: Path) -> bool:
    return any(path.is_file() for name in MARKS for path in folder.glob(name))


def mounts_in(folder: Path) -> list[Path]:
    """The mount points at a folder and below it, bind mounts of the same file system too."""
    try:
        lines = MOUNTS.read_bytes().splitlines()
    except OSError:  # no /proc: `os.path.ismount` sees other file systems
        return [folder] if os.path.ismount(folder) else []
    points = (re.sub(rb"\\([0-7]{3})", _octal, line.split(b" ")[MOUNT_POINT]) for line in lines)
    place = Path(os.path.realpath(folder))
    return [point for point in map(Path, map(os.fsdecode, points)) if point.is_relative_to(place)]


def _octal(match: re.Match[bytes]) -> bytes:
    return bytes([int(match[1], 8)])


def require_no_mount(folder: Path) -> None:
    """Pass when nothing is mounted at a folder or below it.

    Raises:
        OSError: something is.
    """
    if mounts := mounts_in(folder):
        raise OSError(errno.EBUSY, f"a folder with a mount at {mounts[0]} in it", str(folder))


def place_of(path: Path) -> Path:
    """The path that a file or folder in a part has once that takes its place."""
    found = [(name, PART.fullmatch(name)) for name in path.parts]
    return Path(*(match["place"] if match else name for name, match in found))


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
            with _confirmed(file):
                flush(file.parent)
        return size
    except BrokenPipeError:
        raise
    except OSError as error:
        raise _unwritable(file, "a file that can be written", error, todo) from error


def _stream(file: Path) -> BinaryIO | None:
    """What is written to in a place and not replaced: a descriptor, a pipe or a device.

    Raises:
        OSError: it cannot be opened, or a file would be made among the devices.
    """
    place = file
    for _ in range(LINKS):
        place = Path(os.path.realpath(place.parent)) / place.name
        if place.parent == Path(f"/proc/{os.getpid()}/fd"):
            sys.stdout.flush()
            if not re.fullmatch(r"[0-9]{1,9}", place.name):
                raise OSError(errno.EBADF, "no open descriptor of this process")
            return os.fdopen(os.dup(int(place.name)), "wb")
        if not place.is_symlink():
            break
        place = place.parent / place.readlink()
    with suppress(FileNotFoundError):
        if not stat.S_ISREG(mode := file.stat().st_mode) and not stat.S_ISDIR(mode):
            return os.fdopen(os.open(file, os.O_WRONLY), "wb")
    above = Path(os.path.realpath(file.parent))
    if above.is_relative_to("/dev") and not above.is_relative_to("/dev/shm"):  # noqa: S108
        raise OSError(errno.EPERM, "a place among the machine's devices")
    return None


def _require_writable(file: Path) -> None:
    """Pass unless a folder is there, or a file that is read-only for all: a rename would replace
    it.

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
    with _part(file) as (part, descriptor), open(descriptor, "wb", closefd=False) as stream:
        size = sum(map(stream.write, pieces))
        stream.flush()
        with suppress(FileNotFoundError):
            if stat.S_ISREG((old := file.lstat()).st_mode):
                _own(part, old)
        os.fsync(descriptor)
        part.replace(file)
    return size


def put_folder(
    folder: Path,
    fill: Callable[[Path], T],
    owned: Owned | None = None,
    keep: Callable[[Path], Path | None] = lambda _: None,
) -> T:
    """Have `fill` write a new folder, then put it in the place of `folder`; returns its result.

    Args:
        folder: the place; links on the way to it stay.
        fill: writes into the folder that it is given, empty and next to the place.
        owned: which files of a folder are ours; without it all are, and none is carried or kept.
        keep: gets the new folder while no other process replaces the one in the place, completes
            it, and says where our files in the place are to be kept; None for nowhere.

    Raises:
        InputError: it cannot be written, or what is not ours is in the way.
    """
    place = folder.resolve()  # a link stays one; `.` has no name to write next to
    if why := _not_to_be_replaced(place):
        raise InputError.of("a folder that can be replaced", why, OTHER_FOLDER, str(folder))
    try:
        return _put_folder(place, fill, owned, keep)
    except OSError as error:
        raise unwritable_folder(folder, error) from error


def _put_folder(
    place: Path,
    fill: Callable[[Path], T],
    owned: Owned | None = None,
    keep: Callable[[Path], Path | None] = lambda _: None,
) -> T:
    with _new_folders(place.parent), _part(place, folder=True) as (part, descriptor):
        if place.is_dir():
            _own(part, place.stat())
        result = fill(part)
        with _held(place) as there:
            kept = keep(part)
            carried = carry(place, part, owned) if there and owned else {}
            for each in (place, kept) if kept else (place,):
                require_no_mount(each)
            _flush_all(descriptor)
            if there and owned:
                _leave(place, part, owned, kept, carried)
            else:
                (exchange if there else Path.rename)(part, place)
                with _confirmed(place):
                    flush(place.parent)
    return result


@contextmanager
def _held(place: Path) -> Iterator[bool]:
    """Whether a folder is in a place; no other process replaces it meanwhile, or this one waits.

    Raises:
        OSError: it cannot be opened, or is none.
    """
    limit = time.monotonic() + PATIENCE
    while os.path.lexists(place):
        with _open_folder(place) as descriptor:
            if _lock(descriptor, place):
                yield True
                return
        if time.monotonic() > limit:
            given = f"a folder that another command has held for {PATIENCE:.0f} s"
            raise OSError(errno.EBUSY, given, str(place))
        time.sleep(POLL)
    yield False


def _leave(place: Path, new: Path, owned: Owned, kept: Path | None, carried: Carried) -> None:
    """Exchange the folder in a place with a new one, and finish the one that left.

    Raises:
        InputError: one of our files has the name of what was saved there until it left.
        OSError: it cannot be written.
    """
    while (descriptor := _opened(place / LEFT, os.O_TRUNC)) is None:
        pass
    with os.fdopen(descriptor, "w") as left:
        try:
            json.dump({"kept": bool(kept), "carried": carried}, left)
            left.flush()
            os.fsync(descriptor)
            flush(place)
            exchange(new, place)
            try:
                carry(new, place, owned, carried)
            except BaseException:
                exchange(new, place)
                raise
        except BaseException:
            with suppress(OSError):
                (place / LEFT).unlink()
            raise
        with _confirmed(place):
            flush(place.parent)
            _keep(new, kept, owned)


def settle(left: Path, place: Path, kept: Path, owned: Owned) -> bool:
    """Finish a folder that left its place before a kill; returns whether it was to be kept.

    Raises:
        InputError: one of our files has the name of what was saved there until it left.
        OSError: it cannot be written.
    """
    try:
        said = json.loads((left / LEFT).read_bytes())
    except ValueError:  # the machine stopped before it was on the disk: so did the exchange
        return False
    with _held(place):
        carry(left, place, owned, said["carried"])
    return _keep(left, kept if said["kept"] else None, owned)


def _keep(left: Path, kept: Path | None, owned: Owned) -> bool:
    """Keep what is ours in a folder that left; then it is a part like others."""
    if kept:
        _put_folder(kept, lambda new: link_files(left, new, owned(left)))
    (left / LEFT).unlink()
    return bool(kept)


def _not_to_be_replaced(place: Path) -> str:
    """Why none of our folders takes a place, "" where it may."""
    if place.name == "-":
        return "-, standard output"
    with suppress(OSError):
        if (here := Path.cwd()).is_relative_to(place):
            is_it = "is the working directory" if place == here else "the working directory is in"
            return f"{place}, which {is_it}"
        if os.path.ismount(place) or place.stat().st_mode & stat.S_ISVTX:
            return f"{place}, which others share"
    if mounts := mounts_in(place):
        if mounts[0] == place:
            return f"{place}, which others share"
        return f"a folder with a mount at {mounts[0]} in it"
    return ""


def link_files(old: Path, new: Path, names: Iterable[str]) -> None:
    """Link files of a folder that are there into another; those that mark it first.

    Raises:
        OSError: they cannot be linked or copied.
    """
    for name in sorted(names, key=lambda name: (name.count("/"), name)):
        if os.path.lexists(old / name) and not (old / name).is_dir():
            (new / name).parent.mkdir(parents=True, exist_ok=True)
            link_file(old / name, new / name)


def link_file(here: Path, there: Path) -> None:
    """A hard link; a copy of the same owner where the file system has none.

    Raises:
        OSError: neither can be made.
    """
    try:
        os.link(here, there, follow_symlinks=False)
    except OSError as error:
        if error.errno in (*FULL, errno.EIO, errno.EROFS):
            raise
        shutil.copy2(here, there, follow_symlinks=False)
        _own(there, here.lstat())


def carry(old: Path, new: Path, owned: Owned, before: Carried = MappingProxyType({})) -> Carried:
    """Link what is not ours into the folder that takes the place of another; returns which it was.

    Of what was carried before, only what was saved later. Folders keep mode and owner, and
    those that are not ours their times.

    Raises:
        InputError: one of our files has its name, or it cannot be linked; each by name.
        OSError: it cannot be written.
    """
    ours, fresh = owned(old), owned(new)
    mixed = {str(above) for name in ours for above in PurePosixPath(name).parents}
    problems, folders, made, blocked = list[Problem](), list[str](), set[str](), "\0"
    carried = dict[str, list[int]]()
    for name, entry in entries(old):
        here, there = old / name, new / name
        if name.startswith(blocked):
            continue
        if entry.name == LEFT or (is_leftover(here) and not _of_others(here, name, ours)):
            blocked = f"{name}/"
            continue
        status, other = entry.stat(follow_symlinks=False), _mode(there)
        mode = status.st_mode
        if stat.S_ISDIR(mode) and (stat.S_ISDIR(other) or not other):
            folders.append(name)
            if not other and name not in mixed:
                there.mkdir()
                made.add(name)
        elif stat.S_ISDIR(mode):
            blocked = f"{name}/"
            problems.append(_in_the_way(here, "a place for our file", "a folder"))
        elif name in ours:
            continue
        elif stat.S_ISDIR(other):
            problems.append(_in_the_way(here, "a place for our folder", "a file"))
        elif other and name in fresh:
            problems.append(_in_the_way(here, "no file of another's by this name", "one"))
        elif stat.S_ISREG(mode) or stat.S_ISLNK(mode):
            carried[name] = [status.st_ino, status.st_mtime_ns]
            if name not in before or (other and before[name] != carried[name]):
                there.parent.mkdir(parents=True, exist_ok=True)
                _link_newer(here, there)
        else:
            required = "a folder without pipes, sockets and devices"
            problems.append(_in_the_way(here, required, "one of these"))
    if problems:
        raise InputError(few(problems))
    for name in reversed(folders):
        if (new / name).is_dir():  # one whose files were all ours is gone
            _own(new / name, (old / name).stat())
            if name in made:
                shutil.copystat(old / name, new / name)
    return carried


def _of_others(part: Path, name: str, ours: Collection[str]) -> bool:
    """Whether a file that has the name of a part is named for a file that is not ours."""
    place = PurePosixPath(name).with_name(PART.fullmatch(part.name)["place"])  # type: ignore[index]
    return part.is_file() and part.with_name(place.name).is_file() and str(place) not in ours


def _mode(path: Path) -> int:
    """The mode of a path itself; 0 where there is nothing."""
    return path.lstat().st_mode if os.path.lexists(path) else 0


def _link_newer(here: Path, there: Path) -> None:
    """Link a file to a place where there is nothing, or the same as it was before."""
    if not os.path.lexists(there):
        link_file(here, there)
        return
    one, other = here.lstat(), there.lstat()
    if not os.path.samestat(one, other) and one.st_mtime_ns > other.st_mtime_ns:
        spare = part_name(there, "part")
        link_file(here, spare)
        spare.replace(there)


def _in_the_way(path: Path, required: str, given: str) -> Problem:
    return Problem(required, given, f"move it away, or {OTHER_FOLDER}", str(path))


def _own(path: Path, like: os.stat_result) -> None:
    """Give a file or folder the owner and the mode of another, the owner as far as one may."""
    here = path.lstat()
    if (here.st_uid, here.st_gid) != (like.st_uid, like.st_gid):
        with suppress(PermissionError):
            os.chown(path, like.st_uid, like.st_gid, follow_symlinks=False)
    if not stat.S_ISLNK(here.st_mode) and stat.S_IMODE(here.st_mode) != stat.S_IMODE(like.st_mode):
        path.chmod(stat.S_IMODE(like.st_mode))


def exchange(new: Path, place: Path) -> None:
    """Put a folder in a place, and what was there in its own, in one step.

    Where the file system has no such step it takes three, and between the first and the second
    the old folder is `.NAME.xxxxxxxx.old`; the next command that writes there puts it back, as
    `polarfab folder gc` does.

    Raises:
        OSError: it cannot be renamed.
    """
    sys.audit("os.rename", new, place, -1, -1)
    try:
        _exchange(new, place)
    except OSError as error:
        if error.errno not in NO_EXCHANGE:
            raise
        old = part_name(place, "old")
        place.rename(old)
        try:
            new.rename(place)
        except OSError:
            old.rename(place)
            raise
        old.rename(new)


def _exchange(one: Path, other: Path) -> None:
    rename = getattr(ctypes.CDLL(None, use_errno=True), "renameat2", None)
    if rename is None:
        raise OSError(errno.ENOSYS, os.strerror(errno.ENOSYS))
    if rename(AT_FDCWD, os.fsencode(one), AT_FDCWD, os.fsencode(other), RENAME_EXCHANGE):
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number), str(other))


def part_name(place: Path, kind: str) -> Path:
    """A name next to a place that nothing else has: `.NAME.xxxxxxxx.KIND`."""
    while True:
        part = place.with_name(f".{place.name}.{secrets.token_hex(4)}.{kind}")
        if is_part(part.name):
            return part


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
    for each in made:
        with _confirmed(folder):
            flush(each.parent)


@contextmanager
def _part(place: Path, folder: bool = False) -> Iterator[tuple[Path, int]]:
    """A new part and a descriptor of it; locked, so that `polarfab folder gc` leaves it alone.

    It is removed at the end; after Ctrl-C as far as that is quick.
    """
    part, descriptor = place, None
    try:
        while descriptor is None:
            part = part_name(place, "part")
            if folder:
                part.mkdir()
            descriptor = _opened(part, os.O_DIRECTORY if folder else os.O_EXCL)
        yield part, descriptor
    except BaseException as end:
        if descriptor is None:
            with suppress(OSError):
                part.rmdir() if folder else part.unlink()
            raise
        if (part / LEFT).exists():
            raise  # the folder that left its place: what is not done is done by `settle`
        if isinstance(end, Exception):
            remove(part)
            raise
        remover = Thread(target=remove, args=(part,), daemon=True)
        remover.start()
        remover.join(HURRY)
        if remover.is_alive():
            end.add_note(f"{part} is not removed yet: polarfab folder gc {shlex.quote(str(place))}")
        raise
    else:
        remove(part)
    finally:
        if descriptor is not None:
            os.close(descriptor)


def remove(path: Path) -> None:
    """Remove a file, a link, or a folder with all in it, as far as that is possible.

    Nothing where something is mounted in it.
    """
    if path.is_dir() and not path.is_symlink():
        if mounts_in(path):
            return
        with suppress(OSError):  # its marks last: what a kill leaves of it is still known
            for each in path.iterdir():
                if each.is_dir() and not each.is_symlink():
                    shutil.rmtree(each, ignore_errors=True)
        shutil.rmtree(path, ignore_errors=True)
        return
    with suppress(OSError):
        path.unlink()


def _opened(part: Path, flags: int) -> int | None:
    """Open a part that is made here and lock it; None where another process swept it before."""
    flags |= os.O_RDONLY if flags & os.O_DIRECTORY else os.O_WRONLY | os.O_CREAT
    try:
        descriptor = os.open(part, flags | os.O_NOFOLLOW, 0o666)
    except FileNotFoundError:
        if flags & os.O_CREAT:
            raise
        return None
    if _lock(descriptor, part):
        return descriptor
    os.close(descriptor)
    return None


@contextmanager
def claimed(part: Path) -> Iterator[bool]:
    """Whether no other process writes or removes a part that is there; none does meanwhile."""
    try:
        descriptor = os.open(part, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
    except OSError:
        yield os.path.lexists(part)
        return
    try:
        yield _lock(descriptor, part, blindly=False)
    finally:
        os.close(descriptor)


def _lock(descriptor: int, path: Path, blindly: bool = True) -> bool:
    """Lock what is open; whether it is ours and at a path. `blindly`: also without locks."""
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    except OSError:
        if not blindly:
            return False
    try:
        return os.path.samestat(os.fstat(descriptor), path.stat())
    except FileNotFoundError:
        return False


def _flush_all(folder: int) -> None:
    """Have the file system of an open folder write everything: one call, however many files.

    Raises:
        OSError: it could not.
    """
    sync = getattr(ctypes.CDLL(None, use_errno=True), "syncfs", None)
    if sync is None:
        os.sync()
    elif sync(folder):
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number))


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
def _confirmed(path: Path) -> Iterator[None]:
    """Say of what fails in here that the new file or folder is in its place all the same."""
    try:
        yield
    except OSError as error:
        required = "a disk that confirms what is written"
        given = f"the new one is in its place, but {_words(error)}"
        todo = "check the disk, and write it again"
        raise InputError.of(required, given, todo, str(path)) from error


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
