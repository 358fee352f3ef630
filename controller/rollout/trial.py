"""A trial: a build that has to be confirmed in time, else the fabric falls back to an earlier one.

`controller.rollout.mover` begins a trial with a move, or goes on with the trial of a record. At
each tick it asks the trial whether to fall back. Each record of the fabric has the seconds that are
left of the trial, so that another controller can go on with it.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from math import floor, inf

from controller.rollout.fabric_record import Record
from controller.switches.current import Current

FALL_BACK_RETRY = 30.0
"""Seconds until a fall back that failed is tried again."""
RETURN_PATIENCE = 30.0
"""Most seconds to wait for missing switches, for example after a restart, before the fabric falls
back, or moves to the folder's build."""
LEFT_STEP = 5.0
"""Seconds between two records of the time that is left of a trial."""
LEAST_LEFT = 0.001
"""The least seconds left that are recorded: 0 means that the time is not known."""
MOST_LEFT = 3600.0
"""The most seconds left of a trial in a record of an earlier version, which has the time of day at
which the trial ends."""


@dataclass(slots=True)
class Trial:
    """A build on trial, and when the fabric falls back from it.

    A trial has three states:

    1. *Running*: its time is not over, and `_over_since` is inf. The build may be confirmed.
    2. *Over*: `_over_since` says when `should_fall_back` was first asked after `ends`. The fabric
       falls back once all switches are in place, or `RETURN_PATIENCE` later.
    3. *Falling back*: `should_fall_back` has answered yes. If the fabric cannot fall back then, the
       answer is yes again `FALL_BACK_RETRY` later, at `_retry_at`.

    The mover drops the trial when it is confirmed, and when the fabric holds another build.
    """

    build: str
    """The identity of the build on trial."""
    fallback: str
    """The identity of the build that the fabric falls back to."""
    ends: float
    """When the fabric falls back, by the fabric's monotonic clock."""
    ends_at_time_of_day: float
    """When the fabric falls back, in seconds since the epoch, as it was computed when the trial
    began."""
    fallback_build: Current | None
    """The build that the fabric falls back to, as it was read; None if it could not be."""
    held_by_most: bool = field(default=False, init=False)
    """Whether most switches were read to hold the build on trial, by this controller or an earlier
    one."""
    refusal: str = field(default="", init=False)
    """Why the fabric could not fall back last; "" before that."""
    _over_since: float = field(default=inf, init=False)
    """When `should_fall_back` was first asked after `ends`; inf before that."""
    _retry_at: float = field(default=-inf, init=False)
    """When a fall back is tried again; -inf before the first."""

    def is_over(self, now: float) -> bool:
        """Whether its time is over, by the fabric's clock."""
        return now >= self.ends

    def should_fall_back(self, now: float, is_in_place: Callable[[], bool]) -> bool:
        """Whether the fabric is to fall back now; the caller then does so.

        Args:
            now: the time by the fabric's clock.
            is_in_place: returns whether all switches hold their programs, and none of these is
                being changed.
        """
        if not self.is_over(now) or now < self._retry_at:
            return False
        self._over_since = min(self._over_since, now)
        if now < self._over_since + RETURN_PATIENCE and not is_in_place():
            return False
        self._retry_at = now + FALL_BACK_RETRY
        return True

    def added_to(self, record: Record, now: float) -> Record:
        """A record with this trial."""
        # Rounded down, so that controllers that restart again and again do not prolong a trial.
        steps_left = floor((self.ends - now) / LEFT_STEP)
        return replace(
            record,
            fallback=self.fallback,
            trial_ends=self.ends_at_time_of_day,
            trial_seconds_left=max(steps_left * LEFT_STEP, LEAST_LEFT),
            trial_held=self.held_by_most,
        )

    def step_leads_back(self, record: Record, now: float) -> bool:
        """Whether the step of this record leads to the build that the fabric falls back to.

        Such a step does not wait for the disk.
        """
        undoes_move = record.direction == "back" and record.build == self.fallback
        moves_to_fallback = record.target == self.fallback
        # Once the time is over, a record without a move is written only on the way to a fall back.
        return moves_to_fallback or (self.is_over(now) and (undoes_move or not record.target))


def seconds_left_of(record: Record, time_of_day: float) -> float:
    """The seconds that are left of a record's trial.

    No clock of another machine, or of before a restart, says how much time has passed since the
    record was written. So the record itself says how many seconds were left; one of an earlier
    version says only the time of day.

    Args:
        record: the record.
        time_of_day: seconds since the epoch.
    """
    return record.trial_seconds_left or min(max(record.trial_ends - time_of_day, 0.0), MOST_LEFT)
