"""`Report`: what `verify` finds out about a build, as counts of pairs, paths and failures.

`compilers.proof.walks.delivery` puts a report together. The commands of polarfab print it, write
it as JSON, and mark a build as proved by it.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from itertools import zip_longest
from typing import Any

from compilers.forwarding.walks import HostPathFigures
from compilers.proof.failures.failure_walks import FailureReport
from compilers.proof.failures.risk_cases import FAILURE_KINDS
from compilers.proof.local.proof_results import LocalUse
from compilers.proof.lossless.channels import Channels
from compilers.proof.soundness.unsound import NONE_UNSOUND, UnsoundValues
from compilers.spec.policy import PROTECTED_FAILURES

PAIR_EXAMPLES = 10
"""The most faulty pairs that a report names."""


@dataclass(frozen=True, slots=True)
class PairFault:
    """A pair of switches whose packets are lost or take a detour, and the fault in words."""

    source: int
    """The vertex where packets begin."""
    destination: int
    """The vertex that they are for."""
    fault: str
    """Why the packets are lost, or which detour they take, in words."""


@dataclass(frozen=True, slots=True, repr=False)
class Report:
    """Counts over all ordered pairs of switches with hosts; a hop is a link."""

    pairs: int
    """All these pairs; with `counts_legs`, all pairs of the ends of a leg."""
    delivered: int
    """Pairs whose packets arrive by the minimal ports."""
    minimal: int
    """Pairs whose packets arrive over a shortest path."""
    loops: int
    """Pairs whose packets are forwarded in a circle."""
    hop_counts: tuple[int, ...]
    """`hop_counts[h]` pairs were delivered over h links by the minimal ports."""
    faults: tuple[PairFault, ...]
    """The first few pairs that are not delivered over a shortest path."""
    alternates: HostPathFigures | None = None
    """All paths that packets of hosts may take; None where there are no alternates."""
    failures: tuple[FailureReport, ...] = ()
    """One report per kind tried."""
    promised: tuple[str, ...] = ()
    """The kinds of failures that may lose no pair."""
    channels: Channels | None = None
    """The virtual channels of a lossless fabric, also under the failures of `channels_under`; None
    if they were not counted."""
    channels_under: tuple[str, ...] = ()
    """The kinds of failures under which channels were proved."""
    local: LocalUse | None = None
    """What was proved by the local proof, without walks; None if all was walked."""
    unsound: UnsoundValues = NONE_UNSOUND
    """Values that contradict others. If no packet can be followed because of them, `pairs` is 0."""
    counts_legs: bool = False
    """Whether packets go by intermediates. Then the two legs of their paths were walked, and pairs,
    hops and lost pairs count legs."""

    @property
    def passed(self) -> bool:
        """Whether all is sound, pairs have minimal paths, all paths arrive, and repairs hold."""
        all_minimal = self.delivered == self.pairs == self.minimal and not self.loops
        strays = self.alternates.strays if self.alternates else 0
        return all_minimal and not strays and not self.broken and not self.unsound.count

    @property
    def broken(self) -> tuple[FailureReport, ...]:
        """Failures that lose pairs still joined, although the policy promises to repair them."""
        return tuple(
            report
            for report in self.failures
            if self.unrepaired(report) and report.kind in self.promised
        )

    def unrepaired(self, report: FailureReport) -> int:
        """How many lost pairs of a report on failures the policy would have to deliver.

        No policy can deliver between switches that a failure cuts off from each other. But a leg
        may lead to an intermediate that is cut off, though its packet goes elsewhere.
        """
        return report.lost_pairs - (0 if self.counts_legs else report.cut_off)

    @property
    def max_hops(self) -> int:
        """The longest delivered path."""
        return max((h for h, count in enumerate(self.hop_counts) if count), default=0)

    @property
    def mean_hops(self) -> float:
        """The mean number of links over the delivered pairs."""
        total = sum(h * count for h, count in enumerate(self.hop_counts))
        return total / self.delivered if self.delivered else 0.0

    def as_dict(self) -> dict[str, Any]:
        """The report as values for JSON."""
        return {
            "pairs": self.pairs,
            "delivered": self.delivered,
            "max_hops": self.max_hops,
            "mean_hops": self.mean_hops,
            "minimal": self.minimal,
            "loops": self.loops,
            "legs": self.counts_legs,
            "alternates": asdict(self.alternates) if self.alternates else None,
            "channels": asdict(self.channels) if self.channels else None,
            "failures": [asdict(case) for case in self.failures],
            "local": asdict(self.local) if self.local else None,
            "proved": self.proved if self.passed else None,
            "unsound": self.unsound.count,
            "findings": self.unsound.texts(),
        }

    @property
    def proved(self) -> dict[str, Any]:
        """What a report that passed proves, as the mark of a build lists it.

        A kind of failures is in it if all its cases were tried and none lost a pair that is still
        joined.
        """
        exhaustive = [report for report in self.failures if report.cases == report.all_cases]
        # Packets that take a promised repair must not cause a deadlock either. So channels have to
        # be proved under each promised failure of one link or switch, too.
        promised_single = {kind for kind in self.promised if kind in PROTECTED_FAILURES["node"]}
        no_deadlock = self.channels is not None and self.channels.is_deadlock_free
        return {
            # Only a report that passed is a mark: its pairs have minimal paths, and its names,
            # addresses and cables do not contradict each other.
            "delivery": True,
            "identities": True,
            "alternates": self.alternates is not None,
            "failures": [
                report.kind
                for report in exhaustive
                if report.lost_pairs == report.cut_off and report.kind in FAILURE_KINDS
            ],
            "channels": no_deadlock and promised_single <= set(self.channels_under),
            "certified": list(self.local.proved) if self.local else [],
        }

    def __repr__(self) -> str:
        """`<Report passed: 3,192 of 3,192 pairs delivered, over 2 links at most>`."""
        outcome = "passed" if self.passed else "FAILED"
        pairs = f"{self.delivered:,} of {self.pairs:,} pairs delivered"
        return f"<Report {outcome}: {pairs}, over {self.max_hops} links at most>"

    def with_pairs_of(self, more: Report) -> Report:
        """The counts of pairs of two reports together, which are on different destinations.

        All other fields have their defaults.
        """
        counts = zip_longest(self.hop_counts, more.hop_counts, fillvalue=0)
        return Report(
            pairs=self.pairs + more.pairs,
            delivered=self.delivered + more.delivered,
            minimal=self.minimal + more.minimal,
            loops=self.loops + more.loops,
            hop_counts=tuple(map(sum, counts)),
            faults=(self.faults + more.faults)[:PAIR_EXAMPLES],
        )


NO_PAIRS = Report(pairs=0, delivered=0, minimal=0, loops=0, hop_counts=(), faults=())
"""The report on no pairs, to which reports on pairs are added."""
