"""Leads the tables of a move around new failures while the move waits between two rounds.

`controller.rollout.mover` calls this at each tick of a move. The keeper
(`controller.upkeep.repair_keeper`) knows the failures, and a thread computes the detour: the tables
of both builds around these failures, and the programs of the move between them.
"""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import Future
from functools import partial
from typing import Any, NamedTuple

from compilers.update.move_plan import plan
from compilers.update.programs import SwitchPrograms
from controller.rollout.rollout import Rollout
from controller.upkeep.background import Start
from controller.upkeep.repair_keeper import Keeper
from controller.upkeep.table_repairs import DetouredBuilds


class _PlannedDetour(NamedTuple):
    """A detour, and the move that takes it."""

    detour: DetouredBuilds
    """The tables of both builds around failures."""
    programs: SwitchPrograms
    """The programs of the move between them."""


class MoveDetour:
    """Computes a detour for a move that waits, and has the move take it.

    Args:
        keeper: knows which links and switches are dead.
        start: runs the computation in a thread.
    """

    def __init__(self, keeper: Keeper, start: Start) -> None:
        self._keeper, self._start = keeper, start
        self._computing: Future[_PlannedDetour] | None = None
        """The detour that a thread computes; None while none is computed."""

    def tick(self, rollout: Rollout) -> dict[str, Any] | None:
        """Begin to compute a detour if the move waits and something has failed, or take the result.

        Taking a detour needs no record before it: a process that goes on without one starts from
        the rows of the recorded round, and repairs them again.

        Args:
            rollout: the move.

        Returns:
            If the move has taken a detour, the links and switches that it is planned around now;
            else None.

        Raises:
            Exception: the detour could not be computed, for another reason than the last time.
        """
        if self._computing is None:
            self._begin(rollout)
        elif self._computing.done():
            computing, self._computing = self._computing, None
            return self._take(computing, rollout)
        return None

    def _begin(self, rollout: Rollout) -> None:
        """Begin to compute a detour, if the move waits and something has failed."""
        target = rollout.target.build
        if not rollout.waits or target is None:
            return
        compute = self._keeper.detour_work(
            target,
            only_certain=not rollout.leads_around_absent,
            only_if_failed=rollout.state == "reading" and not rollout.has_detour,
        )
        if compute is not None:
            discovers = self._keeper.duties.discover
            self._computing = self._start(partial(_plan_detour, compute, discovers))

    def _take(self, computing: Future[_PlannedDetour], rollout: Rollout) -> dict[str, Any] | None:
        """Have the move take the computed detour, unless it has gone on meanwhile.

        Returns:
            As `tick`.
        """
        try:
            detour, programs = computing.result()
        except Exception as error:
            is_new_error = self._keeper.discard_detour(error)
            if is_new_error:
                raise
            return None
        if rollout.waits:
            self._keeper.take_detour(detour)
            rollout.replan(programs, self._keeper.report_detour)
            return detour.link_state
        self._keeper.discard_detour()
        return None


def _plan_detour(compute: Callable[[], DetouredBuilds], discovers: bool) -> _PlannedDetour:
    """Compute the tables of both builds around failures, and plan the move between them.

    Args:
        compute: computes the tables.
        discovers: whether switches send LLDP frames to the controller.
    """
    detour = compute()
    return _PlannedDetour(detour, SwitchPrograms(plan(detour.old, detour.new), discovers))
