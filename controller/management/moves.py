"""Builds that come and go over the API: a build folder as one ZIP file, and moves to it.

A build that is applied is written beside the controller's own folder, and takes its place once all
switches hold it; so a controller that starts again has the build that the fabric has.
"""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

from compilers.tables.build_folder import load, put
from controller.rollout.build_archive import find, unpack
from controller.rollout.mover import Mover
from controller.switches.events import Event, FileUnwritable, MoveFinished
from inventory.problems import InputError, Problem


class Moves:
    """What the API needs to move a fabric; folder is where the controller has its build."""

    def __init__(self, mover: Mover, folder: Path) -> None:
        self.mover, self.folder = mover, folder.resolve()
        self._waiting = self.folder.with_name(f".{self.folder.name}.next")

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
        from controller.switches.current import read_build

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

    def happened(self, event: Event) -> None:
        """Put a build that was applied into the controller's folder once all switches hold it."""
        if not isinstance(event, MoveFinished) or not self._waiting.is_dir():
            return
        if load(self._waiting).identity == event.build:
            try:
                put(self.folder, lambda beside: shutil.copytree(self._waiting, beside))
            except InputError as error:
                self.mover.fabric.tell(FileUnwritable(str(self.folder), str(error)))
            shutil.rmtree(self._waiting, ignore_errors=True)


def _problem(required: str, given: object) -> InputError:
    return InputError(Problem(required=required, given=str(given)))
