"""Moves over the API: builds as ZIP files, downloaded and applied.

An applied build is written beside the controller's build folder and replaces it once all switches
hold it, so a controller that restarts has the fabric's build.
"""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

from compilers.tables.build_folder import load
from compilers.tables.generations import put
from controller.rollout.build_archive import find, unpack
from controller.rollout.mover import Mover
from controller.switches.events import Event, FileUnwritable, MoveFinished
from inventory.problems import InputError


class Moves:
    """Moves of a fabric for the API; folder is the controller's build folder."""

    def __init__(self, mover: Mover, folder: Path) -> None:
        self.mover, self.folder = mover, folder.resolve()
        self._waiting = self.folder.with_name(f".{self.folder.name}.next")

    def running(self) -> bytes:
        """The build that the switches hold, packed.

        Raises:
            InputError: the folder has another build by now.
        """
        packed = find(self.folder, self.mover.fabric.identity)
        if packed is None:
            there = load(self.folder).identity
            raise _problem("the running build in its folder", f"build {there}")
        return packed

    def apply(self, data: bytes, accept_loss: bool, unverified: bool) -> dict[str, Any]:
        """Start a move to a packed build; returns its progress.

        Raises:
            InputError: it is not a build, is not verified, or is refused by `Mover.move`.
        """
        from controller.switches.current import read_build

        if self.mover.busy:
            raise _problem("a fabric without a move in progress", "one that moves to a build")
        shutil.rmtree(self._waiting, ignore_errors=True)
        try:
            unpack(data, self._waiting)
            self.mover.move(read_build(self._waiting, unverified), accept_loss)
        except InputError:
            shutil.rmtree(self._waiting, ignore_errors=True)
            raise
        return self.status()

    def status(self) -> dict[str, Any]:
        """The progress of the last move; only a state if there was none."""
        return self.mover.status() or {"state": "none", "build": self.mover.fabric.identity}

    def happened(self, event: Event) -> None:
        """Replace the controller's build folder by an applied build once all switches hold it."""
        if not isinstance(event, MoveFinished) or not self._waiting.is_dir():
            return
        if load(self._waiting).identity == event.build:
            try:
                put(
                    self.folder,
                    lambda beside: shutil.copytree(self._waiting, beside, dirs_exist_ok=True),
                )
            except InputError as error:
                self.mover.fabric.tell(FileUnwritable(str(self.folder), str(error)))
            shutil.rmtree(self._waiting, ignore_errors=True)


def _problem(required: str, given: object) -> InputError:
    return InputError.of(required=required, given=str(given))
