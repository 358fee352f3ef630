"""The checks of an exercise: rules reached, frames whole, select groups shared by weight."""

from __future__ import annotations

from mininet_scenarios.scenario.exercise import Exercise, Findings
from mininet_scenarios.verdict.checks import Check, Mismatch


def rule_checks(exercise: Exercise, of: str = "") -> list[Check]:
    """The checks of an exercise, `of` before their names; shares only with select groups."""
    missed = tuple(Mismatch(words, "packets", "none") for words in exercise.missed)
    checks = [
        Check(f"{of}rules exercised", exercise.due, exercise.due - len(missed), missed),
        _check(f"{of}frames arrive as they were sent", exercise.arrivals),
    ]
    if exercise.shares.cases:
        checks.append(_check(f"{of}ports of select groups have their shares", exercise.shares))
    if exercise.links.cases:
        checks.append(_check(f"{of}links have their shares of packets", exercise.links))
    return checks


def rules_in_words(exercise: Exercise) -> str:
    """`930 of 2,010; 1,080 wait until a port fails`."""
    words = f"{exercise.exercised:,} of {exercise.rules:,}"
    waiting = len(exercise.waiting)
    return words + (f"; {waiting:,} wait until a port fails" if waiting else "")


def _check(name: str, found: Findings) -> Check:
    wrong = tuple(Mismatch(*difference) for difference in found.wrong)
    cases = len({mismatch.where for mismatch in wrong})
    return Check(name, found.cases, found.cases - cases, wrong)
