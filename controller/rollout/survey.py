"""A survey reads from the switches which build they hold, after a start without a usable record.

Each switch has a build marker, whose cookie names the build that it holds. A survey only reads.
`controller.rollout.mover` begins one before switches connect, and then makes the build that most
switches name the fabric's.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from math import inf
from typing import NamedTuple

from controller.rollout.build_history import BuildHistory
from controller.rollout.fabric_record import Record
from controller.switches import events
from controller.switches.reconcile import IDENTITY_DIGITS, named_identity
from controller.switches.session import LiveFabric

SURVEY_PATIENCE = 30.0
"""Seconds from the first switch read until a survey is decided by the switches read so far."""


class FolderAtStart(NamedTuple):
    """What a process has found in its folder and history at its start."""

    journal: str
    """The name of the folder's journal."""
    folder_build: str
    """The identity of the folder's build."""
    last_build: str
    """The identity of the build that the fabric held last, as the history says; that of the folder
    if the history has none."""
    is_foreign: bool
    """Whether the folder's build has none of the fabric's switches, so that the last build was kept
    instead."""


class UnverifiedRecord(NamedTuple):
    """The record of a trial that the fabric may have outrun: it may have fallen back already."""

    record: Record
    """The record."""
    at_start: FolderAtStart
    """What the process has found beside the record at its start."""


class Survey:
    """The survey of what the switches hold, of which there is one at most.

    A survey has three states:

    1. *Begun*: `LiveFabric.survey` is empty, as no switch was read yet.
    2. *Reading*: `LiveFabric.survey` has cookies, and `_ends_at` says when the survey ends at the
       latest.
    3. *Decided*: `decide` has returned the build. `LiveFabric.survey` is None, as it is without a
       survey.

    While `LiveFabric.survey` is not None, no switch is changed, and no move begins.

    Args:
        fabric: the fabric whose switches are read.
        history: the builds among which the survey decides.

    Attributes:
        unverified: the record that waits for the survey; None without one. It stays until the mover
            has gone on with it, after the survey.
    """

    def __init__(self, fabric: LiveFabric, history: BuildHistory) -> None:
        self._fabric, self._history = fabric, history
        self.unverified: UnverifiedRecord | None = None
        self._ends_at = inf
        """When the survey is decided by the switches that were read; inf before the first was."""

    def begin(self) -> None:
        """Begin a survey, or begin it again; called before switches connect."""
        self._fabric.survey, self._ends_at = {}, inf

    def decide(self) -> str | None:
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
        now, majority = fabric.clock(), fabric.expected // 2 + 1
        if cookies:
            self._ends_at = min(self._ends_at, now + SURVEY_PATIENCE)
        quorum = majority if self.unverified else fabric.expected
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
