"""Moves of a running fabric between builds, one at a time."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from compilers.tables.build import Build
from compilers.update.loss import PairLoss, loss
from compilers.update.move_plan import plan
from compilers.update.programs import SwitchPrograms
from controller.rollout.rollout import Rollout
from controller.rollout.shared_record import Record
from controller.switches.current import Current
from controller.switches.session import LiveFabric
from controller.upkeep.live_programs import LivePrograms
from inventory.problems import InputError, Problem


class Mover:
    """Moves a fabric to other builds; `rollout` is the last move, None before the first.

    Args:
        fabric: the fabric to move.
        foresee: returns a build with the tables that its switches will hold, if these differ
        from the compiled ones.
        agree: called before each step of a move; returns whether it may be taken
        (`controller.cluster.cluster_member`).
    """

    def __init__(
        self,
        fabric: LiveFabric,
        foresee: Callable[[Build], Build] = lambda build: build,
        agree: Callable[[Record], bool] = lambda _: True,
    ) -> None:
        self.fabric, self.foresee, self.agree = fabric, foresee, agree
        self.rollout: Rollout | None = None
        fabric.hooks.on_tick(self._tick)
        fabric.parts["rollout"] = self.status

    @property
    def busy(self) -> bool:
        """Whether a move is in progress."""
        return self.rollout is not None and not self.rollout.over

    def status(self) -> dict[str, Any] | None:
        """The progress of the last move; None before the first."""
        return self.rollout.status() if self.rollout else None

    def move(self, target: Current, accept_loss: bool = False) -> None:
        """Move to a build, round by round; for the current build, read all switches again.

        Args:
            target: the build.
            accept_loss: whether pairs may lose packets if that is unavoidable.

        Raises:
            InputError: a move is in progress, pairs would lose packets, or no order is safe.
        """
        if self.busy:
            raise InputError.of(
                required="a fabric without a move in progress",
                given="one that moves to a build",
            )
        old, new = _standing(self.fabric.current), target.build
        if old is None or new is None or target.identity == self.fabric.identity:
            self.fabric.load(target)
            return
        update = plan(old, self.foresee(new))
        if not accept_loss and not (found := loss(update)).none:
            raise InputError(refusal(found))
        self.rollout = Rollout(self.fabric, SwitchPrograms(update), target, self.agree)

    def load(self, target: Current) -> None:
        """Move to a build despite losses; if switches are missing, load it on all others at once.

        Raises:
            InputError: a move is in progress, or no order of rows is safe.
        """
        if self.busy or self.fabric.complete:
            self.move(target, accept_loss=True)
        else:
            self.fabric.load(target)

    def resume(self, old: Current, target: Current, record: Record) -> None:
        """Continue a move that another controller began; call it before switches connect.

        Raises:
            InputError: no order of rows is safe.
        """
        if old is not self.fabric.current:
            self.fabric.load(old)
        if old.build is None or target.build is None:
            raise ValueError("a move needs two builds")
        update = plan(old.build, target.build)
        if record.round >= update.last:
            self.fabric.load(target)
        elif record.way == "forth" or record.round > 0:
            self.rollout = Rollout(self.fabric, SwitchPrograms(update), target, self.agree, record)

    def _tick(self) -> None:
        if self.rollout is not None:
            self.rollout.tick()


def _standing(current: Current) -> Build | None:
    """The build with its current tables: repaired, and with shifted weights."""
    return current.programs.build if isinstance(current.programs, LivePrograms) else current.build


def refusal(found: PairLoss) -> Problem:
    """The error that lists losses, and how to proceed."""
    parts = []
    if found.pairs:
        parts.append(
            f"{found.pairs:,} that lose packets: {len(found.hosts):,} hosts are removed, moved or "
            f"renumbered ({', '.join(found.hosts[:3])}{', …' if len(found.hosts) > 3 else ''})"
        )
    if found.exposed:
        one, other = found.cables[0]
        parts.append(
            f"{found.exposed:,} whose packets may take {len(found.cables):,} cables that the new "
            f"build has not ({one} to {other}{', …' if len(found.cables) > 1 else ''})"
        )
    return Problem(
        key="--accept-loss",
        required="a move in which no pair of hosts loses a packet",
        given="; ".join(parts),
        todo="leave the cables in until the move is over; or accept the loss with --accept-loss",
    )
