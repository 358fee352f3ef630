"""The result of a rehearsal: its checks, and the outcomes of its events, probe and flows.

`run.rehearsal` and `run.timeline` fill a `Result` in; `verdict.report` and the commands print it.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mininet_scenarios.scenario.check import Check, Mismatch
from mininet_scenarios.scenario.observations import Exercise


@dataclass(frozen=True, slots=True)
class EventOutcome:
    """An event of the timeline, and how packets fared after it.

    `pairs` to `max_hops` are of a round of packets between all hosts after the event, and `lost` to
    `seconds_to_converge` of a probe during the event.
    """

    what: str
    """The event in words."""
    at: float
    """Seconds after the timeline began at which the event had happened."""
    pairs: int | None = None
    """The ordered pairs of hosts that could be sent packets; None if none were sent."""
    expected: int | None = None
    """The pairs that the tables deliver for certain; None if no packets were sent."""
    possible: int | None = None
    """The expected pairs, and the pairs that the tables deliver by some of their paths only: a hash
    that cannot be predicted chooses the path. None if no packets were sent.
    """
    reached: int | None = None
    """The pairs that were delivered; None if no packets were sent."""
    max_hops: int | None = None
    """The links on the longest path that was seen."""
    lost: int | None = None
    """The probe packets that were lost although the tables deliver them; None without a probe."""
    most_lost_of_a_pair: int | None = None
    """The most probe packets that one pair of hosts lost; None without a probe."""
    seconds_to_converge: float | None = None
    """Seconds from the event until the last lost packet was sent, 0 if none was lost; None without
    a probe.
    """
    seconds_to_repair: float | None = None
    """Seconds in which the controller routed around the failure, or back, by its own clock; None if
    it changed nothing.
    """

    def as_dict(self) -> dict[str, Any]:
        """The outcome for JSON and for the template of the report."""
        return {_REPORTED_AS.get(name, name): value for name, value in asdict(self).items()}


_REPORTED_AS = {
    "most_lost_of_a_pair": "worst",
    "seconds_to_converge": "converged",
    "seconds_to_repair": "repaired",
}
"""The names in JSON and in the report of the fields of `EventOutcome` that have another there."""


@dataclass(frozen=True, slots=True, eq=False)
class FlowThroughput:
    """The rates of n flows, offered, carried and fair, in Mb/s."""

    pattern: str
    """The pattern of the flows."""
    protocol: str
    """The transport protocol."""
    offered: NDArray[np.float64]
    """float64[n], the rate that each flow offered."""
    carried: NDArray[np.float64]
    """float64[n], the rate at which each flow arrived."""
    fair: NDArray[np.float64]
    """float64[n], the rate that max-min fairness gives each flow."""
    link_rates: NDArray[np.float64]
    """float64[E], the rate over each direction of each link."""

    def ratios(self) -> dict[str, float]:
        """The parts of the offered rate that arrived and that max-min fairness gives."""
        offered = float(self.offered.sum())
        return {
            "carried": round(float(self.carried.sum()) / offered, 4),
            "fair": round(float(self.fair.sum()) / offered, 4),
        }

    def as_dict(self) -> dict[str, Any]:
        """For JSON: the sums over all flows."""
        return {
            "pattern": self.pattern,
            "protocol": self.protocol,
            "flows": len(self.offered),
            "offered_mbps": round(float(self.offered.sum()), 3),
            **self.ratios(),
        }


@dataclass(frozen=True, slots=True, eq=False)
class ProbeHistory:
    """The packets of a probe, by equal stretches of time from the beginning of the timeline."""

    stretch: float
    """The seconds of a stretch."""
    sent: NDArray[np.int64]
    """int64[n], the packets sent in each stretch."""
    received: NDArray[np.int64]
    """int64[n], the packets of each stretch that arrived."""

    def as_dict(self) -> dict[str, Any]:
        """For JSON: counts, in all and by stretches."""
        columns = self.received.tolist(), self.sent.tolist()
        return {
            "sent": int(self.sent.sum()),
            "received": int(self.received.sum()),
            "stretch_seconds": self.stretch,
            "received_of_sent": [list(row) for row in zip(*columns, strict=True)],
        }


BEFORE_TIMELINE = -1
"""In place of the number of an event: before the first one (`Result.reached`)."""


@dataclass(frozen=True, slots=True, eq=False)
class PairsReached:
    """The pairs of hosts that reach each other after an event."""

    event: str
    """The event in words."""
    expected: NDArray[np.bool_]
    """bool[H, H], the ordered pairs that the tables deliver for certain, there and back."""
    reached: NDArray[np.bool_]
    """bool[H, H], the expected pairs that were delivered."""

    @classmethod
    def of(
        cls, event: str, expected: NDArray[np.bool_], reached: NDArray[np.bool_]
    ) -> PairsReached:
        """The pairs that are delivered both ways.

        Args:
            event: the event in words.
            expected: bool[H, H], the ordered pairs that the tables deliver for certain.
            reached: bool[H, H], the ordered pairs that were delivered.
        """
        both_ways = expected & expected.T
        return cls(event, both_ways, reached & both_ways)


@dataclass(slots=True)
class Result:
    """The result of a rehearsal."""

    pairs: int
    """The ordered pairs of hosts that take part."""
    delivered: int = 0
    """How many of the pairs were delivered at first."""
    predicted_hops: dict[int, int] = field(default_factory=dict)
    """By a number of links, how many pairs have a path of that length by the tables; empty if
    switches choose among paths.
    """
    seen_hops: dict[int, int] = field(default_factory=dict)
    """By a number of links, how many pairs' packets crossed so many."""
    wrong_table_found: str = ""
    """How the checks found a wrong table that was put in place on purpose, in words; "" without
    such a table."""
    checks: list[Check] = field(default_factory=list)
    """All checks."""
    seconds: dict[str, float] = field(default_factory=dict)
    """The duration of each step."""
    events: list[EventOutcome] = field(default_factory=list)
    """The events of the timeline."""
    slowed: list[str] = field(default_factory=list)
    """The intervals between the packets of the probe that turned out too short, in words.

    With each of these intervals packets were lost before the first event, so the probe was started
    again with a longer one.
    """
    loads: NDArray[np.int64] | None = None
    """int64[E], the packets over each direction of each link in the round of all pairs."""
    probe_history: ProbeHistory | None = None
    """The packets of the probe; None without one."""
    throughput: FlowThroughput | None = None
    """The rates of the flows; None without flows."""
    exercise: Exercise | None = None
    """The exercise of every rule; None without one."""
    reached: dict[int, PairsReached | None] = field(default_factory=dict)
    """The pairs that reach each other, by the number of an event, or BEFORE_TIMELINE.

    Events that are undone are left out. The value is None if no packets were sent after the event.
    """

    @property
    def passed(self) -> bool:
        """Whether all checks passed."""
        return all(check.passed for check in self.checks)

    def as_dict(self) -> dict[str, Any]:
        """The result for JSON."""
        probe, throughput = self.probe_history, self.throughput
        return {
            "passed": self.passed,
            "pairs": self.pairs,
            "delivered": self.delivered,
            "hops": {"predicted": self.predicted_hops, "seen": self.seen_hops},
            "caught": self.wrong_table_found,
            "checks": [{**asdict(check), "passed": check.passed} for check in self.checks],
            "timeline": [event.as_dict() for event in self.events],
            "probe": probe and {**probe.as_dict(), "slowed": self.slowed},
            "throughput": throughput and throughput.as_dict(),
            "rules": self.exercise and self.exercise.as_dict(),
            "seconds": self.seconds,
        }


def rule_checks(exercise: Exercise, prefix: str = "") -> list[Check]:
    """The checks of an exercise of rules, with a prefix before their names."""
    missed = tuple(Mismatch(rule, "packets", "none") for rule in exercise.missed)
    rules = Check.of("rules exercised", exercise.due, missed)
    return [replace(check, name=prefix + check.name) for check in (rules, *exercise.checks)]


def rules_in_words(exercise: Exercise) -> str:
    """How many rules were reached, such as `930 of 2,010; 1,080 wait until a port fails`."""
    words = f"{exercise.exercised:,} of {exercise.rules:,}"
    if exercise.waiting:
        words += f"; {len(exercise.waiting):,} wait until a port fails"
    return words
