"""Build history: the builds that a controller's fabric held, kept next to its build folder.

`controller.rollout.mover` moves the fabric to builds of the history, and writes each build there.
`.NAME.history` has a folder for each of the last builds, and the list of them. Builds that come
from elsewhere are proved before they are kept: digests, types, bounds, names, and a walk of every
pair over every path. Whether the sender has marked them as verified does not count.

The methods that write (`receive`, `keep`, `keep_both`, `record_held`, `record_held_elsewhere`,
`remove_refused`, `install`) are called in a thread, as a disk that takes no writes, or flushes
slowly, holds them up; `restore_folder` is called before the loop begins. The other methods may be
called in the controller's loop: a frozen file system can still be read, and a disk that cannot be
read gives an error at once.
"""

from __future__ import annotations

import json
import os
from collections import deque
from collections.abc import Callable, Collection, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, fields
from math import inf
from pathlib import Path
from shutil import copy2, disk_usage
from time import time
from typing import Any

from compilers.proof.proof_options import ProofOptions
from compilers.proof.walks.delivery import verify
from compilers.proof.walks.delivery_report import Report
from compilers.tables.folders.build_folder import load, require_undamaged, write
from compilers.tables.folders.folder_contents import (
    MANIFEST,
    MANIFEST_SUM,
    VERIFIED,
    last_build_place,
    polarfab_files,
)
from compilers.tables.folders.folder_contents import identity_in as identity_of_folder
from compilers.tables.folders.folder_files import read as read_text
from compilers.tables.folders.folder_moves import try_to_remove
from compilers.tables.folders.replaced_folder import new_build, replaced
from compilers.tables.folders.verified_mark import mark_verified, verified_identity
from compilers.tables.folders.written_file import put_file
from controller.rollout.build_archive import identity_in, pack, unpack
from controller.rollout.fabric_record import DIGEST, digest_of
from controller.rollout.folder_lock import FolderLock
from controller.switches.current import Current, read_build
from controller.upkeep.background import at_once
from inventory.problems import InputError, Problem, shown

BUILDS_KEPT = 5
"""Builds that are kept; older ones are removed."""
ENTRIES_KEPT = 100
"""Entries of the list that are kept."""
LIST = "history.json"
"""The file with the list."""
MISSING, EMPTY = "it is missing", "it is empty"
"""Why the list cannot be read, in the two cases in which there may have been none."""
WRITABLE = "make its disk writable"
"""What to do about a folder that cannot be written, in messages."""
TIME_LIMIT = 253_402_300_800
"""The end of the year 9999, in seconds since the epoch. Python's dates end there, so an entry of a
later time could not be shown."""
FILE_OVERHEAD = 4096
"""Bytes that a file may take on the disk beyond its size: most file systems fill whole blocks."""
RESERVED_ROOM = 1 << 20
"""Bytes that have to be left for the journal, the list and the action log."""


@dataclass(frozen=True, slots=True)
class HeldBuild:
    """A build that the fabric came to hold."""

    build: str
    """The build's identity."""
    name: str
    """The build's name in the store of builds."""
    at: float
    """Since when the fabric held it, in seconds since the epoch."""
    by: str
    """Who moved the fabric to it."""
    proved: str
    """What verification proved of the build, in words."""


class BuildHistory:
    """The builds of a controller.

    Args:
        folder: the build folder of the controller.
        unverified: whether builds from elsewhere are taken although their walk finds faults.
            Digests, types and bounds have to be right all the same.

    Attributes:
        folder: the build folder of the controller.
        place: the folder of the history.

    Raises (all methods):
        InputError: the data is not a valid build, or the build loses packets or is not kept; or a
            file cannot be read, or cannot be written, for example for lack of room.
    """

    def __init__(self, folder: Path, unverified: bool = False) -> None:
        self.folder, self.unverified = folder.resolve(), unverified
        self.place = self.folder.with_name(f".{self.folder.name}.history")
        self._damage = ""
        """Why the list could not be read last; "" if it could."""
        self._unreported_damage = ""
        """`_damage`, until `take_damage_report` has returned it."""
        self._damaged_copies = deque[tuple[str, str]]()
        """Files of damaged copies of builds that were written again, each with what was wrong,
        until `take_damaged_copies` has returned them. Threads add to it."""
        self._checked: dict[str, tuple[dict[str, tuple[int, int, int]], bool]] = {}
        """By build: the inode, size and time of change of each file of its copy when the copy was
        read last, and whether it was undamaged."""
        self._installed: tuple[int, int] | None = None
        """The `stamp` of the build that `install` put into the controller's folder last; None if
        it has put none there."""

    def receive(
        self,
        data: bytes,
        unverified: bool = False,
        yield_to_others: Callable[[], None] = lambda: None,
        expect: str = "",
        switches: float = inf,
    ) -> Current:
        """Prove a packed build from elsewhere, and keep it.

        Args:
            data: the build as an archive.
            unverified: whether to keep it although its walk finds faults.
            yield_to_others: called a few times a second during the walk: other work goes on.
            expect: the identity that it has to have; "" for any.
            switches: the most switches that it may have.
        """
        takes_unverified = unverified or self.unverified
        identity = identity_in(data)
        if expect and identity != expect:
            raise InputError.of(f"build {expect}", f"build {identity}")
        folder = self.place / identity
        with replaced(folder, WRITABLE) as new:
            unpack(data, new, yield_to_others, switches)
            (new / VERIFIED).unlink(missing_ok=True)
            _prove(new, takes_unverified, yield_to_others)
        return read_build(folder, unverified=takes_unverified)

    def allows_unverified(self) -> bool:
        """Whether the build of the controller's folder need not be verified.

        It need not be if it is the last build that the fabric came to hold: somebody has allowed
        that, and a restart then changes nothing.
        """
        entries, damage = self._read_list()
        last_build = entries[-1].build if entries and not damage else ""
        is_last = last_build != "" and last_build == identity_of_folder(self.folder)
        return self.unverified or is_last

    def read_folder(self) -> Current:
        """The build of the controller's folder."""
        return read_build(self.folder, self.allows_unverified())

    def read(self, identity: str) -> Current:
        """A build that is kept."""
        folder = self._folder_of(identity)
        if folder:
            return read_build(folder, unverified=True)
        if identity in self.kept_builds() and (damage := self._damage_of_copy(identity)):
            required = f"an undamaged copy of build {identity}"
            raise InputError.of(required, damage.given, "apply this build again", damage.file)
        required = f"one of the builds that are kept ({', '.join(self.kept_builds()) or 'none'})"
        raise InputError.of(required, identity, key="build", file=str(self.place))

    def is_verified(self, identity: str) -> bool:
        """Whether a build of the controller's folder or one that is kept is verified."""
        folder = self._folder_of(identity)
        return folder is not None and verified_identity(folder) == identity

    def packed(self, identity: str) -> bytes | None:
        """A build of the controller's folder or one that is kept, packed; None if there is none."""
        folder = self._folder_of(identity)
        return pack(folder) if folder else None

    def take_damaged_copies(self) -> list[tuple[str, str]]:
        """The damaged copies of builds that were written again since the last call.

        Returns:
            For each one a damaged file, and what was wrong with it.
        """
        return [self._damaged_copies.popleft() for _ in range(len(self._damaged_copies))]

    def _damage_of_copy(self, identity: str) -> Problem | None:
        """Why the history has no undamaged copy of a build; None if it has one."""
        try:
            require_undamaged(self.place / identity, identity)
        except InputError as error:
            return error.problems[0]
        return None

    def _folder_of(self, identity: str) -> Path | None:
        """The folder of a build; None if there is none.

        It is that of the history, else the controller's, else the last build that was in the
        controller's before (`compilers.tables.folders.replaced_folder`).
        """
        folders = self.place / identity, self.folder, last_build_place(self.folder)
        return next((folder for folder in folders if _identity(folder) == identity), None)

    def kept_builds(self) -> list[str]:
        """The identities of the builds that are kept."""
        return sorted(folder.name for folder in self.place.glob("[0-9a-f]*") if folder.is_dir())

    def keep(self, current: Current, is_checked: bool = False) -> None:
        """Write a build to the history, unless an undamaged copy is there.

        It is written from memory: the folder that it was read from may have another build by now.

        Args:
            current: the build.
            is_checked: whether a copy that is there was checked a moment ago. To check it takes
                long in a large fabric.
        """
        build, folder = current.build, self.place / current.identity
        if build is None or (is_checked and folder.is_dir()):
            return
        was_kept, damage = folder.is_dir(), self._damage_of_copy(current.identity)
        if damage is None:
            return
        with replaced(folder, WRITABLE) as new:
            write(build, new)
            if current.proved.delivery:
                mark_verified(new, current.identity, {"proved": asdict(current.proved)})
        if was_kept:
            self._damaged_copies.append((damage.file, damage.given))

    def keep_both(self, old: Current, target: Current, are_checked: bool = False) -> None:
        """Keep the builds before and after a move.

        The build after it is refused where it would not fit into the controller's folder.

        Args:
            old: the build before it.
            target: the build after it.
            are_checked: as in `keep`.
        """
        self.record_held(old, "", target=target.identity)
        self.keep(old, are_checked)
        self.keep(target, are_checked)
        self.require_room(target.identity)

    def require_room(self, identity: str) -> None:
        """Refuse where a build that is kept could not be put into the controller's folder."""
        statuses = [status for _, status in _statuses(self.place / identity)]
        needed = sum(status.st_size + FILE_OVERHEAD for status in statuses) + RESERVED_ROOM
        free = disk_usage(self.folder.parent).free
        if free < needed:
            raise InputError.of(
                f"{needed:,} bytes of room for build {identity}, before anything is changed",
                f"{free:,}",
                "remove other files",
                file=str(self.folder.parent),
            )

    def has_one_of(self, builds: Collection[str]) -> bool:
        """Whether the controller's folder has one of these builds, be it damaged or not."""
        return not _named_in(self.folder).isdisjoint(builds)

    def stamp(self) -> tuple[int, int] | None:
        """The inode and the time of change of the manifest in the controller's folder.

        They change when a build is put there. None if the folder has no manifest.
        """
        try:
            status = (self.folder / MANIFEST).stat()
        except OSError:
            return None
        return status.st_ino, status.st_ctime_ns

    def install(
        self, identity: str, instead_of: Collection[str], stamp: tuple[int, int] | None
    ) -> None:
        """Put a build that is kept into the controller's folder, also if that is damaged.

        Nothing is done if somebody else has put another build there.

        Args:
            identity: the identity of the build.
            instead_of: the identities of the builds that it may replace.
            stamp: the `stamp` of the folder when the fabric came to hold the build.
        """
        may_replace = self.has_one_of(instead_of)
        is_unchanged = self.stamp() in (stamp, self._installed)
        if may_replace and is_unchanged and _identity(self.place / identity) == identity:
            self._put_into_folder(self.place / identity)

    def restore_folder(self, identity: str, instead_of: Collection[str]) -> Problem | None:
        """Put a build into the controller's folder if the build there is damaged or gone.

        Nothing is done if the folder has, or had, another build than these, or if there is no other
        undamaged copy.

        Args:
            identity: the identity of the build.
            instead_of: the identities of the builds that it may replace.

        Returns:
            What was wrong with the folder; None if nothing was done.

        Raises:
            InputError: another controller uses the folder, or the build cannot be written there;
                then the message names its undamaged copy.
        """
        try:
            load(self.folder)
        except InputError as error:
            (problem, *_), source = error.problems, self._folder_of(identity)
            may_replace = not _named_in(self.folder) or self.has_one_of(instead_of)
            if source and may_replace:
                self._restore_from(source, identity, problem)
                return problem
        return None

    def _restore_from(self, source: Path, identity: str, damage: Problem) -> None:
        """Put a build into the controller's folder, where it or another was before.

        Args:
            source: an undamaged copy of it.
            identity: its identity.
            damage: what is wrong with the folder.
        """
        lock = FolderLock(self.folder, lambda _: None, at_once)
        try:
            self._put_into_folder(source)
        except InputError as error:
            unwritable = Problem(
                f"a folder that takes build {identity} again, of which {source} is a sound copy",
                error.problems[0].given,
                f"{WRITABLE}, or make room",
                str(self.folder),
            )
            raise InputError([damage, unwritable]) from error
        finally:
            lock.release()

    def _put_into_folder(self, source: Path) -> None:
        """Put a copy of a build into the controller's folder."""
        with new_build(self.folder, WRITABLE) as new:
            for name in polarfab_files(source):
                if (source / name).is_file():
                    (new / name).parent.mkdir(parents=True, exist_ok=True)
                    copy2(source / name, new / name)
        self._installed = self.stamp()

    def entries(self) -> list[HeldBuild]:
        """The builds that the fabric held, the newest last.

        If the list cannot be read, these are the builds that are kept, by age;
        `take_damage_report` then says why it cannot.
        """
        entries, damage = self._read_list()
        self._note_damage(damage)
        return entries

    def take_damage_report(self) -> str:
        """Why the list could not be read; "" if it could be.

        A fault is returned once: the next call returns "" unless there is a new fault.
        """
        damage, self._unreported_damage = self._unreported_damage, ""
        return damage

    def entries_as_data(self) -> list[dict[str, Any]]:
        """`entries` as plain data, each with whether an undamaged copy of its build is kept.

        This may read whole builds, so it runs in a thread.
        """
        kept = {build for build in self.kept_builds() if self.has_undamaged(build)}
        entries, _ = self._read_list()
        return [asdict(entry) | {"kept": entry.build in kept} for entry in entries]

    def has_undamaged(self, identity: str) -> bool:
        """Whether the history has an undamaged copy of a build; called in a thread.

        The copy is read again only if it has changed.
        """
        stamps = {
            str(file): (status.st_ino, status.st_size, status.st_ctime_ns)
            for file, status in _statuses(self.place / identity)
        }
        stamps_then, is_undamaged = self._checked.get(identity, (None, False))
        if stamps_then != stamps:
            is_undamaged = self._damage_of_copy(identity) is None
            self._checked[identity] = stamps, is_undamaged
        return is_undamaged

    def record_held(
        self, current: Current, by: str, spare: Collection[str] = (), target: str = ""
    ) -> None:
        """Add a build that the fabric has come to hold to the list; remove old builds.

        `BUILDS_KEPT` builds stay. Where the list cannot be read, no build is removed: the list is
        put aside, and a new one begins with the builds that are kept.

        Args:
            current: the build.
            by: who moved the fabric to it.
            spare: identities of builds that are not removed.
            target: the identity of a build that is not removed either, as a move to it follows.
        """
        entries, damage = self._read_list({current.identity, target})
        self._note_damage(damage)
        if damage or not entries or entries[-1].build != current.identity:
            entries.append(_new_entry(current, by))
            self._write_list(entries, damage)
        if not damage:
            self._forget(entries, {*spare, target})

    def record_held_elsewhere(
        self, held: Sequence[str], spare: Collection[str] = (), only_if_empty: bool = False
    ) -> None:
        """Add builds that the fabric has come to hold under another controller to the list.

        Args:
            held: the identities of the last builds that the fabric held, the newest last.
            spare: identities of builds that are not removed.
            only_if_empty: whether nothing is done unless the list is empty.
        """
        entries, damage = self._read_list({*held, *spare})
        self._note_damage(damage)
        if entries and (only_if_empty or entries[-1].build == held[-1]):
            return
        if not entries and self.folder_build not in ("", *held):
            # The list is empty, so the folder's build is entered as one that was held before. A
            # build that is put into the folder later then counts as new.
            held = [self.folder_build, *held]
        count_before = len(entries)
        for identity in held:
            is_last = bool(entries) and entries[-1].build == identity
            if not is_last and self._folder_of(identity):
                entries.append(_new_entry(self.read(identity), ""))
        if len(entries) == count_before:
            return
        self._write_list(entries, damage)
        if not damage:
            self._forget(entries, spare)

    @property
    def folder_build(self) -> str:
        """The identity of the sound build in the controller's folder; "" if it has none."""
        return _identity(self.folder)

    def _write_list(self, entries: list[HeldBuild], damage: str) -> None:
        """Write the newest entries; a list that could not be read is put aside before."""
        members = [asdict(entry) for entry in entries[-ENTRIES_KEPT:]]
        text = json.dumps([entry | {DIGEST: digest_of(entry)} for entry in members], indent=1)
        if damage:
            self._put_aside()
        put_file(self.place / LIST, [text.encode()], f"{WRITABLE}, or make room", folders=True)

    def remove_refused(self, spare: Collection[str] = ()) -> None:
        """Remove builds that were received and refused; called only while no move goes on.

        No build is removed where the list cannot be read.

        Args:
            spare: identities of builds that are not removed.
        """
        entries, damage = self._read_list()
        self._note_damage(damage)
        if entries and not damage:
            self._forget(entries, spare)

    def _read_list(self, about_to_add: Collection[str] = ()) -> tuple[list[HeldBuild], str]:
        """The builds that the fabric held, and why the list could not be read; "" if it could.

        If the list could not be read, it is replaced by an entry for each build that has a folder,
        with the age of the folder. A list that is missing or empty while no build has a folder is
        no damage: the history is new.

        Args:
            about_to_add: identities of builds that are about to be added. They may have a folder
                already, which does not say that the fabric has held them.
        """
        file = self.place / LIST
        try:
            if file.is_fifo():  # reading it would wait for ever
                raise ValueError("it is a named pipe")
            entries, damage = _entries(file.read_text()), EMPTY
        except FileNotFoundError:
            entries, damage = [], MISSING
        except (OSError, ValueError, TypeError, RecursionError) as error:
            entries, damage = [], getattr(error, "strerror", "") or str(error) or repr(error)
        else:
            if entries:
                return entries, ""
        # The time at which each folder was written; the fabric came to hold its build about then.
        times = {build: (self.place / build).stat().st_mtime for build in self.kept_builds()}
        builds = sorted(times.keys() - {*about_to_add}, key=lambda build: (times[build], build))
        is_new_history = damage in (MISSING, EMPTY) and not builds
        if is_new_history:
            return [], ""
        return [HeldBuild(build, "", at=times[build], by="", proved="") for build in builds], damage

    def _note_damage(self, damage: str) -> None:
        """Have `take_damage_report` return why the list cannot be read, unless it has."""
        if damage and damage != self._damage:
            self._unreported_damage = damage
        self._damage = damage

    def _put_aside(self) -> None:
        """Keep a list that cannot be read under another name."""
        with suppress(FileNotFoundError):
            (self.place / LIST).replace(self.place / f"{LIST}.damaged")

    def previous_build(self, identity: str) -> str:
        """The identity of the last build that the fabric held before this one and that is kept."""
        kept = set(self.kept_builds())
        entries, _ = self._read_list()
        for entry in reversed(entries):
            if entry.build != identity and entry.build in kept:
                return entry.build
        raise InputError.of(
            required="another build that the fabric held",
            given="none is kept",
            todo="polarfab status --history lists what is kept",
            file=str(self.place),
        )

    def _forget(self, entries: list[HeldBuild], spare: Collection[str]) -> None:
        """Remove the folders of all builds but the newest `BUILDS_KEPT` and `spare`."""
        newest = list(dict.fromkeys(entry.build for entry in reversed(entries)))[:BUILDS_KEPT]
        for identity in set(self.kept_builds()) - {*newest, *spare}:
            try_to_remove(self.place / identity)


def _new_entry(current: Current, by: str) -> HeldBuild:
    """The entry of a build that the fabric holds from now on.

    Args:
        current: the build.
        by: who moved the fabric to it.
    """
    name = current.build.name if current.build else ""
    return HeldBuild(current.identity, name, time(), by, str(current.proved))


def _entries(text: str) -> list[HeldBuild]:
    """The entries of a list, from its JSON. Members that a later version has added are left out.

    Entries of an early version have no digest.

    Raises:
        ValueError, TypeError: the text is no such list.
    """
    names, entries = {member.name for member in fields(HeldBuild)}, json.loads(text)
    if not isinstance(entries, list) or not all(isinstance(entry, dict) for entry in entries):
        raise ValueError("it is no list of builds")
    if any(DIGEST in entry and entry[DIGEST] != digest_of(entry) for entry in entries):
        raise ValueError("an entry differs from its digest")
    builds = [HeldBuild(**{name: entry[name] for name in names & {*entry}}) for entry in entries]
    for held in builds:
        texts = held.build, held.name, held.by, held.proved
        if not all(isinstance(text, str) for text in texts):
            raise ValueError("it has builds whose identity, name or origin is no text")
        "".join(texts).encode()  # an error where half of a surrogate pair stands alone
        is_number = isinstance(held.at, int | float)
        if not is_number or not 0 <= held.at < TIME_LIMIT:
            raise ValueError(f"it has a build with the time {shown(held.at)}")
    return builds


def _prove(folder: Path, unverified: bool, yield_to_others: Callable[[], None]) -> None:
    """Walk a build, and mark it as verified if the walk finds no fault.

    Raises:
        InputError: it finds one, and the build is not to be kept `unverified`.
    """
    build = load(folder)
    report = verify(
        build, ProofOptions(failures=(), progress=lambda _done, _all: yield_to_others())
    )
    if report.passed:
        mark_verified(folder, build.identity, report.as_dict())
    elif not unverified:
        raise InputError.of("a build that passes polarfab verify", _fault(report))


def _fault(report: Report) -> str:
    """The first fault of a build that failed the walk, in words."""
    if texts := report.unsound.texts():
        return texts[0]
    wrong = report.pairs - report.minimal
    if report.faults:
        return f"one in which {wrong:,} of {report.pairs:,} pairs fail: {report.faults[0].fault}"
    strays = report.alternates.strays if report.alternates else 0
    return f"one whose alternates lose packets at {strays:,} places"


def _statuses(folder: Path) -> list[tuple[Path, os.stat_result]]:
    """The files and folders in a folder, each with its status.

    What has none is left out: an editor's lock is a link to nothing, and files may go meanwhile.
    """
    statuses = list[tuple[Path, os.stat_result]]()
    for file in folder.rglob("*"):
        with suppress(OSError):
            statuses.append((file, file.stat()))
    return statuses


def _identity(folder: Path) -> str:
    """The identity of the sound build in a folder, or ""."""
    try:
        return load(folder).identity
    except InputError:
        return ""


def _named_in(folder: Path) -> set[str]:
    """The identities that a folder's manifest and its digest have, also where one is damaged."""
    names = {identity_of_folder(folder)}
    with suppress(OSError, ValueError):
        names.add(read_text(folder, MANIFEST_SUM)[:16])
    return names - {""}
