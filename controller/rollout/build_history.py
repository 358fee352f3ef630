"""Build history: the builds that a controller's fabric held, kept next to its build folder.

`.NAME.history` has a folder for each of the last builds, and the list of them. Builds that come
from elsewhere are proved before they are kept: digests, types, bounds, names, and a walk of every
pair over every path. The sender's mark is not asked, and not kept.

What writes is called in a thread (`receive`, `keep`, `keep_both`, `note`, `tidy`, `install`): a
disk that takes no writes, or flushes slowly, holds it up. What only reads may be called in the
loop: a frozen file system is read as before, and a disk that cannot be read gives an error.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Collection
from contextlib import suppress
from dataclasses import asdict, dataclass, fields
from math import inf
from pathlib import Path
from shutil import Error as CopyError
from shutil import copytree, disk_usage
from time import time
from typing import Any

from compilers.proof.proof_options import ProofOptions
from compilers.proof.walks.delivery import verify
from compilers.proof.walks.delivery_report import Report
from compilers.tables.folders.build_folder import load, write
from compilers.tables.folders.folder_contents import (
    MANIFEST,
    VERIFIED,
    mark_verified,
    verified_identity,
)
from compilers.tables.folders.folder_contents import identity_in as identity_of_folder
from compilers.tables.folders.replaced_folder import new_build, replaced, try_to_remove
from compilers.tables.folders.written_file import put_file
from controller.rollout.build_archive import identity_in, pack, unpack
from controller.switches.current import Current, read_build
from inventory.problems import InputError

BUILDS_KEPT = 5
"""Builds that are kept; older ones are removed."""
ENTRIES_KEPT = 100
"""Entries of the list that are kept."""
LIST = "history.json"
"""The file with the list."""
BLOCK, ROOM = 4096, 1 << 20
"""Bytes that a file may take beyond its own, and that are left for journal, list and action log."""


@dataclass(frozen=True, slots=True)
class HeldBuild:
    """A build that the fabric came to hold."""

    build: str
    """The build's identity."""
    name: str
    """The build's name in the store of builds."""
    at: float
    """When it was held, in seconds since the epoch."""
    by: str
    """Who moved the fabric to it."""
    proved: str
    """What verification proved of it, in words."""


class BuildHistory:
    """The builds of a controller.

    Args:
        folder: the build folder of the controller.
        unverified: whether builds from elsewhere are taken although their walk finds faults.
            Digests, types and bounds have to be right all the same.

    Raises (all methods):
        InputError: a build is none, loses packets or is not kept, or a file cannot be read or
            written, for lack of room, too.
    """

    def __init__(self, folder: Path, unverified: bool = False) -> None:
        self.folder, self.unverified = folder.resolve(), unverified
        self.place = self.folder.with_name(f".{self.folder.name}.history")
        self._damage = self._untold = ""
        """Why the list could not be read last, and that if it was not told yet."""
        self._installed: tuple[int, int] | None = None
        """The stamp of the build that `install` put there last; None if it has put none there."""

    def receive(
        self,
        data: bytes,
        unverified: bool = False,
        breathe: Callable[[], None] = lambda: None,
        expect: str = "",
        switches: float = inf,
    ) -> Current:
        """Prove a packed build from elsewhere, and keep it.

        unverified: keep it although its walk finds faults. breathe: called a few times a second
        while it is walked. expect: the identity that it has to have. switches: the most of them.
        """
        allowed = unverified or self.unverified

        identity = identity_in(data)
        if expect and identity != expect:
            raise InputError.of(f"build {expect}", f"build {identity}")
        place = self.place / identity
        with replaced(place) as new:
            unpack(data, new, breathe, switches)
            (new / VERIFIED).unlink(missing_ok=True)
            _prove(new, allowed, breathe)
        return read_build(place, unverified=allowed)

    def allows_unverified(self) -> bool:
        """Whether the build of the controller's folder need not be verified.

        So it is if the fabric came to hold it last: somebody has allowed that, and a restart
        changes nothing then.
        """
        entries, damage = self._list()
        held = entries[-1].build if entries and not damage else ""
        return self.unverified or (held != "" and held == identity_of_folder(self.folder))

    def read_folder(self) -> Current:
        """The build of the controller's folder."""
        return read_build(self.folder, self.allows_unverified())

    def read(self, identity: str) -> Current:
        """A build that is kept."""
        place = self._place(identity)
        if place:
            return read_build(place, unverified=True)
        required = f"one of the builds that are kept ({', '.join(self.kept()) or 'none'})"
        raise InputError.of(required, identity, key="build", file=str(self.place))

    def is_verified(self, identity: str) -> bool:
        """Whether a build of the controller's folder or one that is kept is verified."""
        place = self._place(identity)
        return place is not None and verified_identity(place) == identity

    def packed(self, identity: str) -> bytes | None:
        """A build of the controller's folder or one that is kept, packed; None if there is none."""
        place = self._place(identity)
        return pack(place) if place else None

    def _place(self, identity: str) -> Path | None:
        """The folder of a build that is kept, or of the controller's own."""
        places = self.place / identity, self.folder
        return next((place for place in places if _identity(place) == identity), None)

    def kept(self) -> list[str]:
        """The identities of the builds that are kept."""
        return sorted(folder.name for folder in self.place.glob("[0-9a-f]*") if folder.is_dir())

    def keep(self, current: Current) -> None:
        """Keep a build, whatever becomes of the folder that it was read from."""
        build, place = current.build, self.place / current.identity
        if build is None or place.is_dir():
            return
        with replaced(place) as new:
            write(build, new)
            if current.proved.delivery:
                mark_verified(new, current.identity, {"proved": asdict(current.proved)})

    def keep_both(self, old: Current, target: Current) -> None:
        """Keep the builds before and after a move, and see that there is room for the latter in the
        controller's folder.
        """
        self.note(old, "", target=target.identity)
        self.keep(old)
        self.keep(target)
        self.require_room(target.identity)

    def require_room(self, identity: str) -> None:
        """Refuse where a build that is kept could not be put into the controller's folder."""
        files = (self.place / identity).rglob("*")
        needed = sum(file.stat().st_size + BLOCK for file in files) + ROOM
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
        return identity_of_folder(self.folder) in builds

    def stamp(self) -> tuple[int, int] | None:
        """Tells whether a build was put into the controller's folder since; None without one."""
        try:
            status = (self.folder / MANIFEST).stat()
        except OSError:
            return None
        return status.st_ino, status.st_ctime_ns

    def install(
        self, identity: str, instead_of: Collection[str], stamp: tuple[int, int] | None
    ) -> None:
        """Put a build that is kept into the controller's folder, if that has one of these, and
        nobody else has put one there since this was its stamp.
        """
        has_one = _identity(self.folder) in instead_of
        is_ours = self.stamp() in (stamp, self._installed)
        if has_one and is_ours and _identity(self.place / identity) == identity:
            source = self.place / identity
            with new_build(self.folder) as new:
                try:
                    copytree(source, new, dirs_exist_ok=True)
                except CopyError as error:  # it lists every file
                    raise OSError(error.args[0][0][2]) from error
            self._installed = self.stamp()

    def entries(self) -> list[HeldBuild]:
        """The builds that the fabric held, the newest last; if the list cannot be read, those that
        are kept, by age (`damage` says so).
        """
        entries, damage = self._list()
        self._note_damage(damage)
        return entries

    def damage(self) -> str:
        """Why the list could not be read, once; "" if it could, or that was said."""
        damage, self._untold = self._untold, ""
        return damage

    def past(self) -> list[dict[str, Any]]:
        """`entries` as plain data, each with whether its build is still kept."""
        kept = set(self.kept())
        return [asdict(entry) | {"kept": entry.build in kept} for entry in self._list()[0]]

    def note(
        self, current: Current, by: str, spare: Collection[str] = (), target: str = ""
    ) -> None:
        """The fabric holds another build; older ones than `BUILDS_KEPT` go, but not `spare`, nor
        the `target` of a move that follows. None goes where the list cannot be read: that is put
        aside, and a new one begins with what is kept.
        """
        entries, damage = self._list({current.identity, target})
        self._note_damage(damage)
        name = current.build.name if current.build else ""
        if damage or not entries or entries[-1].build != current.identity:
            entries.append(HeldBuild(current.identity, name, time(), by, str(current.proved)))
            text = json.dumps([asdict(entry) for entry in entries[-ENTRIES_KEPT:]], indent=1)
            if damage:
                self._put_aside()
            put_file(self.place / LIST, [text.encode()], folders=True)
        if not damage:
            self._forget(entries, {*spare, target})

    def tidy(self, spare: Collection[str] = ()) -> None:
        """Remove builds that were received and refused, but not `spare`; only while no move goes
        on, and not where the list cannot be read.
        """
        entries, damage = self._list()
        self._note_damage(damage)
        if entries and not damage:
            self._forget(entries, spare)

    def _list(self, noted: Collection[str] = ()) -> tuple[list[HeldBuild], str]:
        """The builds that the fabric held, and why the list could not be read; "" if it could.

        noted: the builds that are about to be noted: their folders may be there before.
        """
        file = self.place / LIST
        try:
            if file.is_fifo():  # reading it would wait for ever
                raise ValueError("it is a named pipe")
            entries, damage = _entries(file.read_text()), "it is empty"
        except FileNotFoundError:
            entries, damage = [], "it is missing"
        except (OSError, ValueError, TypeError, RecursionError) as error:
            entries, damage = [], getattr(error, "strerror", "") or str(error) or repr(error)
        else:
            if entries:
                return entries, ""
        ages = {build: (self.place / build).stat().st_mtime for build in self.kept()}
        builds = sorted(ages.keys() - {*noted}, key=lambda build: (ages[build], build))
        missing = damage in ("it is missing", "it is empty")
        if missing and not builds:
            return [], ""
        return [HeldBuild(build, "", ages[build], "", "") for build in builds], damage

    def _note_damage(self, damage: str) -> None:
        """Have it told, unless it was."""
        if damage and damage != self._damage:
            self._untold = damage
        self._damage = damage

    def _put_aside(self) -> None:
        """Keep a list that cannot be read under another name."""
        with suppress(FileNotFoundError):
            (self.place / LIST).replace(self.place / f"{LIST}.damaged")

    def before(self, identity: str) -> str:
        """The build that the fabric held before this one, and that is still kept."""
        kept = set(self.kept())
        for entry in reversed(self._list()[0]):
            if entry.build != identity and entry.build in kept:
                return entry.build
        raise InputError.of(
            *("another build that the fabric held", "none is kept"),
            todo="polarfab status --history lists what is kept",
            file=str(self.place),
        )

    def _forget(self, entries: list[HeldBuild], spare: Collection[str]) -> None:
        newest = list(dict.fromkeys(entry.build for entry in reversed(entries)))[:BUILDS_KEPT]
        for identity in set(self.kept()) - {*newest, *spare}:
            try_to_remove(self.place / identity)


def _entries(text: str) -> list[HeldBuild]:
    """The entries of a list. Members that a later version has added are left out.

    Raises:
        ValueError, TypeError: it is none.
    """
    names, entries = {member.name for member in fields(HeldBuild)}, json.loads(text)
    if not isinstance(entries, list) or not all(isinstance(entry, dict) for entry in entries):
        raise ValueError("it is no list of builds")
    builds = [HeldBuild(**{name: entry[name] for name in names & {*entry}}) for entry in entries]
    if not all(isinstance(held.build, str) for held in builds):
        raise ValueError("it has builds without an identity")
    return builds


def _prove(folder: Path, unverified: bool, breathe: Callable[[], None]) -> None:
    """Walk a build, and mark it as proved if it is."""
    build = load(folder)
    report = verify(build, ProofOptions(failures=(), progress=lambda _done, _all: breathe()))
    if report.passed:
        mark_verified(folder, build.identity, report.as_dict())
    elif not unverified:
        raise InputError.of("a build that passes polarfab verify", _fault(report))


def _fault(report: Report) -> str:
    if texts := report.unsound.texts():
        return texts[0]
    wrong = report.pairs - report.minimal
    if report.faults:
        return f"one in which {wrong:,} of {report.pairs:,} pairs fail: {report.faults[0].fault}"
    strays = report.alternates.strays if report.alternates else 0
    return f"one whose alternates lose packets at {strays:,} places"


def _identity(folder: Path) -> str:
    """The identity of the sound build in a folder, or ""."""
    try:
        return load(folder).identity
    except InputError:
        return ""
