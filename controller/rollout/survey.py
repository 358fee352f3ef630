"""A survey reads from the switches which build they hold, after a start without a usable record.

Each switch has a build marker, whose cookie names the build that it holds. A survey only reads.
`controller.rollout.resumption` begins one before switches connect, and then makes the build that
most switches name the fabric's.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable
from math import inf

from controller.rollout.build_history import BuildHistory
from controller.rollout.fabric_record import Record
from controller.switches import events
from controller.switches.reconcile import IDENTITY_DIGITS, named_identity
from controller.switches.session import LiveFabric

SURVEY_PATIENCE = 30.0
"""Seconds from the first switch read until a survey is decided by the switches read so far."""


class Survey:
    """The survey of what the switches hold, of which there is one at most.

    A survey has three states:

    1. *Begun*: `LiveFabric.survey` is empty, as no switch was read yet.
    2. *Reading*: `LiveFabric.survey` has cookies, and `_ends_at` says when the survey ends at the
       latest.
    3. *Decided*: `LiveFabric.survey` is None, as it is without a survey.

    While `LiveFabric.survey` is not None, no switch is changed, and no move begins.

    Args:
        fabric: the fabric whose switches are read.
        history: the builds among which the survey decides.

    Attributes:
        unverified_record: the record of a trial that the fabric may have outrun, as it may have
            fallen back already; it waits for the survey. None without one.
    """

    def __init__(self, fabric: LiveFabric, history: BuildHistory) -> None:
        self._fabric, self._history = fabric, history
        self.unverified_record: Record | None = None
        self._on_decided: Callable[[str], None] | None = None
        """Takes the identity of the build that is decided on; None before the first survey."""
        self._ends_at = inf
        """When the survey is decided by the switches that were read, by the listening clock; inf
        before the first was."""

    def begin(self, on_decided: Callable[[str], None]) -> None:
        """Begin a survey, or begin it again.

        Args:
            on_decided: takes the identity of the build that is decided on.
        """
        self._fabric.survey, self._ends_at, self._on_decided = {}, inf, on_decided

    def tick(self) -> None:
        """End the survey if enough switches were read; called a few times a second."""
        build = self._decide()
        if build is not None and self._on_decided is not None:
            self._on_decided(build)

    def _decide(self) -> str | None:
        """End the survey if enough switches were read.

        All have to be read, or `SURVEY_PATIENCE` has to be over since the first. Where an
        unverified record waits, it is one of two builds, so a majority of the switches is enough. A
        majority of switches that name no build is enough, too: they are new.

        Returns:
            The identity of the build that most switches name, among those of the history and the
            folder; the folder's if they name none of these. None if the survey goes on, or there is
            none.
        """
        fabric, cookies = self._fabric, self._fabric.survey
        if cookies is None:
            return None
        now, majority = fabric.listening_clock(), fabric.expected // 2 + 1
        if cookies:
            self._ends_at = min(self._ends_at, now + SURVEY_PATIENCE)
        quorum = majority if self.unverified_record else fabric.expected
        are_new = sum(cookie is None for cookie in cookies.values()) >= majority
        if len(cookies) < quorum and not are_new and now < self._ends_at:
            return None
        fabric.survey = None
        votes = _votes(cookies.values(), [*self._history.kept_builds(), fabric.identity])
        build = max(votes, key=votes.__getitem__) if votes else fabric.identity
        fabric.tell(events.BuildSurveyed(build, votes[build], len(cookies)))
        return build


def _votes(cookies: Iterable[int | None], builds: Iterable[str]) -> Counter[str]:
    """How many switches name each of these builds, by its identity.

    Args:
        cookies: the cookies of the switches' markers; None for a switch without one.
        builds: the identities of the builds.
    """
    build_of_digits = {identity[:IDENTITY_DIGITS]: identity for identity in builds}
    named = [named_identity(cookie) for cookie in cookies if cookie]
    return Counter(build_of_digits[digits] for digits in named if digits in build_of_digits)
