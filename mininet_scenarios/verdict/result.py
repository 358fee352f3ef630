"""Results of a rehearsal: checks, timeline, probe, flows."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mininet_scenarios.scenario.exercise import Exercise
from mininet_scenarios.verdict.checks import Check


@dataclass(frozen=True, slots=True)
class Happened:
    """An event, and how the fabric was from then on.

    at: seconds after the timeline began, when it had happened. pairs: ordered pairs of hosts that
    could be asked; expected: those that the tables deliver for certain; reached: those that were
    delivered; all None where they were not asked. lost: probe packets of pairs that the tables
    deliver which never came; worst: the most of one pair; converged: seconds from the event until
    the last of them was sent, 0 where none was lost; None without a probe.
    """

    what: str
    at: float
    pairs: int | None = None
    expected: int | None = None
    reached: int | None = None
    max_hops: int | None = None
    lost: int | None = None
    worst: int | None = None
    converged: float | None = None


@dataclass(frozen=True, slots=True, eq=False)
class CarriedRate:
    """What flows offered, what arrived, and what max-min fairness gives: float64[n] each, Mb/s.

    loads: float64[E], Mb/s over each direction of each link.
    """

    pattern: str
    protocol: str
    offered: NDArray[np.float64]
    carried: NDArray[np.float64]
    fair: NDArray[np.float64]
    loads: NDArray[np.float64]

    def ratios(self) -> dict[str, float]:
        """The parts of what was offered that arrived, and that fairness gives."""
        offered = float(self.offered.sum())
        return {
            "carried": round(float(self.carried.sum()) / offered, 4),
            "fair": round(float(self.fair.sum()) / offered, 4),
        }


@dataclass(frozen=True, slots=True, eq=False)
class Watched:
    """What a probe saw: for each stretch of time, begin in seconds after the timeline began.

    sent and received: int64[n], packets sent in each stretch, and those of them that came.
    latency: float64[m], seconds, of those that came, sorted; empty where packets take no time.
    """

    stretch: float
    sent: NDArray[np.int64]
    received: NDArray[np.int64]
    latency: NDArray[np.float64]

    def as_dict(self) -> dict[str, Any]:
        """Counts, and the latency by percentiles."""
        points = (0, 50, 90, 99, 100)
        known = bool(len(self.latency))
        values: list[float] = np.percentile(self.latency, points).tolist() if known else []
        return {
            "sent": int(self.sent.sum()),
            "received": int(self.received.sum()),
            "stretch_seconds": self.stretch,
            "received_of_sent": [
                [r, s] for r, s in zip(self.received.tolist(), self.sent.tolist(), strict=True)
            ],
            "latency_ms": {
                f"p{p}": round(1000 * v, 3) for p, v in zip(points, values, strict=False)
            },
        }


@dataclass(frozen=True, slots=True, eq=False)
class PairsReached:
    """Who reaches whom after an event: bool[H, H] twice, over the hosts that took part.

    sure: ordered pairs that the tables deliver, there and back; reached: those of them that were.
    """

    what: str
    sure: NDArray[np.bool_]
    reached: NDArray[np.bool_]

    @classmethod
    def of(cls, what: str, sure: NDArray[np.bool_], reached: NDArray[np.bool_]) -> PairsReached:
        """Those of the pairs that are delivered both ways."""
        both = sure & sure.T
        return cls(what, both, reached & both)


@dataclass(slots=True)
class Result:
    """What a rehearsal found. predicted_hops and seen_hops count the pairs by their links.

    predicted_hops is empty where alternates leave that to the switches. loads: int64[E], packets
    over each direction of each link in the round of all pairs. slowed: intervals at which the
    probe by itself lost packets, so that a longer one was taken. reached: by the number of the
    timeline's moment, -1 before it; without moments whose events are undone, None where nobody
    was asked.
    """

    pairs: int
    delivered: int = 0
    predicted_hops: dict[int, int] = field(default_factory=dict)
    seen_hops: dict[int, int] = field(default_factory=dict)
    caught: str = ""
    checks: list[Check] = field(default_factory=list)
    seconds: dict[str, float] = field(default_factory=dict)
    happened: list[Happened] = field(default_factory=list)
    slowed: list[str] = field(default_factory=list)
    loads: NDArray[np.int64] | None = None
    watched: Watched | None = None
    throughput: CarriedRate | None = None
    exercise: Exercise | None = None
    reached: dict[int, PairsReached | None] = field(default_factory=dict)

    @property
    def passed(self) -> bool:
        """Whether all checks passed."""
        return all(check.passed for check in self.checks)

    def as_dict(self) -> dict[str, Any]:
        """For JSON."""
        found = self.throughput
        return {
            "passed": self.passed,
            "pairs": self.pairs,
            "delivered": self.delivered,
            "hops": {"predicted": self.predicted_hops, "seen": self.seen_hops},
            "caught": self.caught,
            "checks": [{**asdict(check), "passed": check.passed} for check in self.checks],
            "timeline": [asdict(event) for event in self.happened],
            "probe": self.watched.as_dict() | {"slowed": self.slowed} if self.watched else None,
            "throughput": found
            and {
                "pattern": found.pattern,
                "protocol": found.protocol,
                "flows": len(found.offered),
                "offered_mbps": round(float(found.offered.sum()), 3),
                **found.ratios(),
            },
            "rules": self.exercise and self.exercise.as_dict(),
            "seconds": self.seconds,
        }
