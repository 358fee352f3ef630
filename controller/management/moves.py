"""Builds that come and go over the API: a build folder as one ZIP file, and moves to it.

A build that is applied is written beside the controller's own folder, and takes its place once all
switches hold it; so a controller that starts again has the build that the fabric has.
"""

from __future__ import annotations

import io
import re
import shutil
from pathlib import Path
from typing import Any
from zipfile import BadZipFile, ZipFile

from compilers.build import MANIFEST, load, put
from controller.current import Current
from controller.events import Event
from controller.mover import Mover
from inventory.problems import InputError, Problem

MOST_BUILD = 1 << 30
"""Bytes of a build, packed or not."""
NAMES = re.compile(r"(manifest|fabric|verified)\.json|arrays/[a-z0-9_]+\.npy")


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
                if NAMES.fullmatch(name):
                    archive.write(file, name)
    except OSError as error:
        raise _problem("a build folder that can be read", error) from error
    return stream.getvalue()


def unpack(data: bytes, folder: Path) -> None:
    """Write a packed build to a folder.

    Raises:
        InputError: it is none, is too large, or the folder cannot be written.
    """
    try:
        with ZipFile(io.BytesIO(data)) as archive:
            entries = archive.infolist()
            names = {entry.filename for entry in entries}
            if MANIFEST not in names or not all(map(NAMES.fullmatch, names)):
                raise BadZipFile("files that are not a build's")
            if sum(entry.file_size for entry in entries) > MOST_BUILD:
                raise BadZipFile(f"more than {MOST_BUILD:,} bytes")
            (folder / "arrays").mkdir(parents=True)
            for entry in entries:
                (folder / entry.filename).write_bytes(archive.read(entry))
    except (BadZipFile, OSError, EOFError, NotImplementedError, RuntimeError) as error:
        raise _problem("a build folder, packed", error) from error


def beside(folder: Path, identity: str) -> Path:
    """Where a build lies that came from another controller (`controller.several`)."""
    return folder.with_name(f".{folder.name}.store") / identity


def find(folder: Path, identity: str) -> bytes | None:
    """A build, packed, from the controller's folder or beside it; None where it is in neither.

    Raises:
        InputError: it cannot be read.
    """
    for place in (folder, folder.with_name(f".{folder.name}.next"), beside(folder, identity)):
        try:
            found = load(place).identity
        except InputError:
            continue
        if found == identity:
            return pack(place)
    return None


class Moves:
    """What the API needs to move a fabric; folder is where the controller has its build."""

    def __init__(self, mover: Mover, folder: Path) -> None:
        self.mover, self.folder = mover, folder.resolve()
        self._waiting = self.folder.with_name(f".{self.folder.name}.next")
        mover.arrived = self._arrived

    def running(self) -> bytes:
        """The build that the switches hold, packed.

        Raises:
            InputError: the folder has another one by now.
        """
        packed = find(self.folder, self.mover.fabric.identity)
        if packed is None:
            there = load(self.folder).identity
            raise _problem("the running build in its folder", f"build {there}")
        return packed

    def apply(self, data: bytes, accept_loss: bool, unverified: bool) -> dict[str, Any]:
        """Begin to move to a packed build; how far it is.

        Raises:
            InputError: it is none, is not verified, or is refused by `Mover.move`.
        """
        from controller.server import read_build

        if self.mover.busy:
            raise _problem("a fabric that stands still", "one that moves to a build")
        shutil.rmtree(self._waiting, ignore_errors=True)
        try:
            unpack(data, self._waiting)
            self.mover.move(read_build(self._waiting, unverified), accept_loss)
        except InputError:
            shutil.rmtree(self._waiting, ignore_errors=True)
            raise
        return self.status()

    def status(self) -> dict[str, Any]:
        """How far the last move is; only the state where there was none."""
        return self.mover.status() or {"state": "none", "build": self.mover.fabric.identity}

    def _arrived(self, target: Current) -> None:
        if self._waiting.is_dir() and load(self._waiting).identity == target.identity:
            fabric = self.mover.fabric
            try:
                put(self.folder, lambda beside: shutil.copytree(self._waiting, beside))
            except InputError as error:
                fabric.tell(Event("status", str(self.folder), str(error), fabric.clock()))
            shutil.rmtree(self._waiting, ignore_errors=True)


def _problem(required: str, given: object) -> InputError:
    return InputError(Problem(required=required, given=str(given)))
