"""A check of a rehearsal: an expectation, and the pairs or links that did not meet it.

`mininet_scenarios.verdict` makes checks from observations; a report lists them.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Mismatch:
    """A pair or a link that did not behave as expected."""

    where: str
    """The pair or the link."""
    expected: str
    """What was expected, in words."""
    seen: str
    """What was seen, in words."""

    def __str__(self) -> str:
        """`h0 → h9: expected 2 hops, seen 3 hops`."""
        return f"{self.where}: expected {self.expected}, seen {self.seen}"


@dataclass(frozen=True, slots=True)
class Check:
    """One expectation, and how far it was met."""

    name: str
    """What is expected."""
    required: int
    """The number of cases."""
    seen: int
    """The number of cases that passed."""
    mismatches: tuple[Mismatch, ...] = ()
    """The cases that did not pass."""

    @classmethod
    def of(cls, name: str, cases: int, mismatches: tuple[Mismatch, ...]) -> Check:
        """A check of so many cases, of which those with mismatches did not pass."""
        return cls(name, cases, cases - len({m.where for m in mismatches}), mismatches)

    @property
    def passed(self) -> bool:
        """Whether the expectation was met."""
        return self.seen == self.required and not self.mismatches
