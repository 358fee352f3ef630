"""Moves over the API: builds as ZIP files, downloaded and applied; back to an earlier one."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict
from typing import Any

from controller.rollout.build_history import BuildHistory
from controller.rollout.mover import Mover
from inventory.problems import InputError

LEAST_ROOM, GROWTH = 100, 4
"""Switches that a build over the API may have, and how many times those that the fabric has."""


class Moves:
    """Moves of a fabric for the API. breathe: lets other work go on while a build is proved."""

    def __init__(
        self, mover: Mover, history: BuildHistory, breathe: Callable[[], None] = lambda: None
    ) -> None:
        self.mover, self.history, self._breathe = mover, history, breathe

    def running(self) -> bytes:
        """The build that the switches hold, packed.

        Raises:
            InputError: the folder has another build by now.
        """
        identity = self.mover.fabric.identity
        packed = self.history.packed(identity)
        if packed is None:
            there = f"no build {identity} in {self.history.folder}"
            raise InputError.of("the running build in its folder", there)
        return packed

    def apply(
        self, data: bytes, accept_loss: bool, unverified: bool, by: str, within: float
    ) -> dict[str, Any]:
        """Prove a packed build and start the move to it; returns its progress.

        Raises:
            InputError: it is not a build, loses packets, or is refused by `Mover.move`.
        """
        self.mover.require_settled()
        self.history.tidy()
        most = max(LEAST_ROOM, GROWTH * self.mover.fabric.expected)
        target = self.history.receive(data, unverified, self._breathe, switches=most)
        self.mover.move(target, accept_loss, by, within)
        return self.status()

    def roll_back(self, build: str, by: str) -> dict[str, Any]:
        """Start the move to a build of the history, the one before by default.

        Raises:
            InputError: it is not kept, or a move is in progress.
        """
        self.mover.roll_back(build, by)
        return self.status()

    def confirm(self) -> dict[str, Any]:
        """Keep the build that is on trial.

        Raises:
            InputError: none is.
        """
        self.mover.confirm()
        return self.status()

    def past(self) -> list[dict[str, Any]]:
        """The builds that the fabric held, the newest last, and whether they can come back."""
        kept = set(self.history.kept())
        return [asdict(one) | {"kept": one.build in kept} for one in self.history.entries()]

    def status(self) -> dict[str, Any]:
        """The progress of the last move; only a state if there was none."""
        none = {"state": "none", "build": self.mover.fabric.identity, "before": "", "until": None}
        return self.mover.status() or none
