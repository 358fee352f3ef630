"""The result of an exercise: the rules that packets have reached, and what became of them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

Deviation = tuple[str, str, str]
"""Where, what was expected, what was seen."""


@dataclass(frozen=True, slots=True)
class Findings:
    """Cases that were looked at, and those of them that were not as expected."""

    cases: int = 0
    wrong: tuple[Deviation, ...] = ()

    @classmethod
    def of(cls, cases: int, wrong: list[Any]) -> Findings:
        """From what JSON holds."""
        return cls(cases, tuple((where, wanted, seen) for where, wanted, seen in wrong))


@dataclass(frozen=True, slots=True)
class Exercise:
    """One exercise of every rule.

    rules: flows and group buckets of the program. due: those that packets can reach, and must have.
    missed: those of them that none has. waiting: in words, those that no packet reaches as long as
    every port is up. arrivals: packets, compared whole. shares: ports of select groups. links:
    those of a fabric that marks packets, which next switches spread.
    """

    rules: int
    due: int
    missed: tuple[str, ...]
    waiting: tuple[str, ...]
    arrivals: Findings
    shares: Findings
    links: Findings = Findings()

    @property
    def exercised(self) -> int:
        """How many rules packets have reached."""
        return self.rules - len(self.missed) - len(self.waiting)

    def as_dict(self) -> dict[str, Any]:
        """For JSON: counts, and the rules that no packet has reached."""
        counts = {"all": self.rules, "due": self.due, "exercised": self.exercised}
        return counts | {"missed": list(self.missed), "waiting": list(self.waiting)}

    @classmethod
    def read(cls, said: dict[str, Any]) -> Exercise:
        """From what JSON holds (`dataclasses.asdict`)."""
        return cls(
            rules=said["rules"],
            due=said["due"],
            missed=tuple(said["missed"]),
            waiting=tuple(said["waiting"]),
            arrivals=Findings.of(**said["arrivals"]),
            shares=Findings.of(**said["shares"]),
            links=Findings.of(**said["links"]),
        )
