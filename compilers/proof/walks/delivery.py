"""`verify`: whether the tables of a build deliver every ordered pair of switches with hosts.

`verify` puts a `Report` together from these parts:

1. soundness: values that contradict others (`compilers.proof.soundness`);
2. delivery over minimal ports, by a walk here or by a proof of states (`compilers.proof.local`);
3. all paths that packets of hosts may take, and all failures that were asked for, by walks
   (`compilers.proof.failures`) or by the proof;
4. channels of a lossless fabric (`compilers.proof.lossless`).

Packets follow the tables alone. The graph only tells how short a path could have been.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass, replace
from functools import reduce
from itertools import zip_longest
from math import comb, isqrt
from typing import Any

import numpy as np
from numpy.typing import NDArray

from compilers.forwarding.walks import (
    LEAST_BLOCKS,
    Alternates,
    Progress,
    minimal_hops,
    packets,
)
from compilers.proof.failures.failure_walks import FailureReport, walk, walk_failures
from compilers.proof.failures.risk_cases import FAILURE_KINDS
from compilers.proof.local import other_proofs
from compilers.proof.local.judged import LocalUse, by_chance, judged
from compilers.proof.local.local_proof import PROVED, LocalProof, local_proof, provable
from compilers.proof.lossless.channels import Channels, channels
from compilers.proof.proof_options import WITHOUT_FAILURES, ProofOptions
from compilers.proof.soundness.build_soundness import broken_claims, unsound, walkable
from compilers.proof.soundness.unsound import SOUND, Unsound
from compilers.routing.bounce_goals import SMALLEST_WITH_GOALS
from compilers.spec.policy import PROMISED
from compilers.tables.build import Build
from compilers.tables.build_parts import switch_blocks, towards
from compilers.tables.fib import FAULTS, LOOPED, Fib
from compilers.topology import polarity
from compilers.topology.distance import distances, neighbour_table
from compilers.workers.shards import THIS_PROCESS, Workers, in_blocks, reported

PAIRS_AT_ONCE = 1 << 18
"""The most pairs of a switch and a destination that are walked at once."""
PAIR_EXAMPLES = 10
"""The most faulty pairs that a report names."""
ITSELF = -128
"""In place of the links from a switch to itself."""
LEAST_MARKED_TWICE = 4
"""The smallest q at which two failures leave every marked packet a path."""
TWO_FAILURES_UP_TO = 1 << 17
"""The most packets for which two failures are walked unasked: PolarFly up to q = 9, in a second."""
CHANNELS_UP_TO = 1 << 26
"""The most packets for which channels are counted by default."""
WALKED_UP_TO = 1 << 25
"""The most packets that `auto` walks, exactly and in half a second: PolarFly up to q = 31."""
OPEN_TO_TWO = 64
"""The most destinations left open by the proof of two failures that are walked exactly.

If it leaves more open, a sample of all cases is walked instead.
"""
DELIVERY, ALTERNATES, MODULE = "delivery", "alternates", "module"
"""Names of what is proved, in `LocalUse.proved`."""
WRONG_PROOF = Unsound.one(
    "local proof", "what a walk of a few destinations finds", "something else; all were walked"
)


@dataclass(frozen=True, slots=True)
class PairFault:
    """A pair of switches whose packets are lost or take a detour, and the fault in words."""

    source: int
    """The vertex where packets begin."""
    destination: int
    """The vertex that they are for."""
    fault: str
    """What becomes of them, in words."""


@dataclass(frozen=True, slots=True, repr=False)
class Report:
    """Counts over all ordered pairs of nodes with hosts; hops are links."""

    pairs: int
    """Ordered pairs of switches with hosts."""
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
    alternates: Alternates | None = None
    """None where there are no alternates."""
    failures: tuple[FailureReport, ...] = ()
    """One report per kind tried."""
    promised: tuple[str, ...] = ()
    """The kinds of failures that may lose no pair."""
    channels: Channels | None = None
    """The channels of a lossless fabric, under the failures of `channels_under`; None if they were
    not asked for."""
    channels_under: tuple[str, ...] = ()
    """The kinds of failures under which channels were proved."""
    local: LocalUse | None = None
    """What was proved state by state; None if all was walked."""
    unsound: Unsound = SOUND
    """Values that contradict others. If no packet can be followed because of them, `pairs` is 0."""
    legs: bool = False
    """Whether packets go by intermediates. Then the two legs of their paths were walked, and pairs,
    hops and lost pairs count legs."""

    @property
    def passed(self) -> bool:
        """Whether all is sound, pairs have minimal paths, all paths arrive, and repairs hold."""
        minimal = self.delivered == self.pairs == self.minimal and not self.loops
        strays = self.alternates.strays if self.alternates else 0
        return minimal and not strays and not self.broken and not self.unsound.count

    @property
    def broken(self) -> tuple[FailureReport, ...]:
        """Failures that lose pairs still joined, although the policy promises to repair them."""
        return tuple(
            report
            for report in self.failures
            # A leg may lead to an intermediate that is cut off, though its packet goes elsewhere.
            if report.lost_pairs > (0 if self.legs else report.cut_off)
            and report.kind in self.promised
        )

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
            "legs": self.legs,
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
        whole = [case for case in self.failures if case.cases == case.all_cases]
        repaired = {kind for kind in self.promised if kind in PROMISED["node"]}
        free = self.channels is not None and self.channels.free
        return {
            "delivery": True,
            "identities": True,
            "alternates": self.alternates is not None,
            "failures": [
                case.kind
                for case in whole
                if case.lost_pairs == case.cut_off and case.kind in FAILURE_KINDS
            ],
            "channels": free and repaired <= set(self.channels_under),
            "certified": list(self.local.proved) if self.local else [],
        }

    def __repr__(self) -> str:
        """`<Report passed: 3,192 of 3,192 pairs delivered, over 2 links at most>`."""
        word = "passed" if self.passed else "FAILED"
        pairs = f"{self.delivered:,} of {self.pairs:,} pairs delivered"
        return f"<Report {word}: {pairs}, over {self.max_hops} links at most>"


def verify(build: Build, options: ProofOptions = WITHOUT_FAILURES) -> Report:
    """Judge every ordered pair of switches with hosts, over every path that its packets may take.

    Args:
        build: its tables and wiring are looked at.
        options: what is proved besides delivery, and how.

    Raises:
        InputError: so many failures can leave a marked packet no path, or the build has no groups
            of a kind of failures.
    """
    if (faults := walkable(build)).count:
        return Report(0, 0, 0, 0, (), (), unsound=faults)
    kinds = usual(build) if options.failures is None else tuple(options.failures)
    local = _proves_states(build, options)
    states = _StateProof()
    if local:
        states = _state_proof(build, kinds, options)
    report = _delivery(build, states, options)
    report = replace(report, promised=promised(build))
    all_proved = report.local is not None and not report.local.open
    stored = isinstance(build.tables.routes.egress, np.ndarray)
    faults = unsound(build, stored or not (all_proved and build.topology.endpoints.all()))
    report = replace(report, unsound=Unsound.of((report.unsound, faults)))
    # If minimal paths are missing, the other walks would only repeat the same faults.
    if report.delivered != report.pairs:
        return report
    if not report.unsound.count:
        report = replace(report, unsound=broken_claims(build, constructed=all_proved))
    if (proof := states.proof) and report.local:
        if _all_pairs_asked(build, kinds, options.sample):
            proof = _with_two(build, proof)
        report = _judged(report, build, proof, options)
    else:
        report = _walked(report, build, kinds, options)
    if local and MODULE in kinds and build.forwarding.repairs:
        report = _modules(report, build, options.seed)
    by_kind = {failure.kind: failure for failure in report.failures}
    failures = [by_kind.get(kind) or _failures(build, kind, options) for kind in kinds]
    report = replace(report, failures=tuple(failures))
    quick = packets(build) <= CHANNELS_UP_TO
    if quick if options.channels is None else options.channels:
        report = _with_channels(report, build, options)
    return _over_intermediates(report) if build.forwarding.intermediates else report


@dataclass(frozen=True, slots=True, eq=False)
class _StateProof:
    """What is proved of a build without walks."""

    counts: tuple[int, ...] | None = None
    """The pairs of switches by the links of their minimal path, if the delivery of all is proved at
    once; (): it is, but rows that are computed say otherwise; None: it is not proved."""
    proof: LocalProof | None = None
    """What is proved state by state."""


def _proves_states(build: Build, options: ProofOptions) -> bool:
    """Whether states are proved, as the options say, or as a walk would take long."""
    if options.method == "auto":
        return packets(build) > WALKED_UP_TO
    return options.method == "local"


def _state_proof(build: Build, kinds: tuple[str, ...], options: ProofOptions) -> _StateProof:
    """Prove delivery and failures without walks, as far as possible.

    Proofs that packages add come first; they treat a whole fabric at once.
    """
    counts = other_proofs.first(lambda p: p.delivery(build, options.seed))
    single = _repaired(build, kinds)
    needed = counts is None or (counts and (single or _spread(build)))
    if not needed or not provable(build):
        return _StateProof(counts)
    proof = None
    if counts:
        proof = other_proofs.first(lambda p: p.states(build, counts, single))
    return _StateProof(counts, proof or local_proof(build, single, options.progress))


def _with_channels(report: Report, build: Build, options: ProofOptions) -> Report:
    """The report with the channels, without failures and under the single ones that were named."""
    single = tuple(kind for kind in options.failures or () if kind in PROMISED["node"])
    counted = channels(build, "valley", single, options.progress)
    return replace(report, channels=counted, channels_under=single)


def _failures(build: Build, kind: str, options: ProofOptions) -> FailureReport:
    """Walk all cases of a kind of failures, or a sample of them."""
    return walk_failures(
        build,
        kind,
        sample=options.sample,
        seed=options.seed,
        progress=options.progress,
        workers=options.workers,
    )


def _over_intermediates(legs: Report) -> Report:
    """The report on paths over intermediates, made from the report on their legs.

    Both legs are minimal paths, so their lengths add up. If no leg loses packets, no path does: a
    leg to an intermediate that is down ends at a neighbour, which forwards its packets as from a
    host there.
    """
    count = (1 + isqrt(1 + 4 * legs.pairs)) // 2  # of n switches there are n(n - 1) pairs
    alternates = Alternates(legs.pairs * count, 0, 2 * legs.max_hops)
    return replace(legs, legs=True, alternates=alternates)


def _delivery(build: Build, states: _StateProof, options: ProofOptions) -> Report:
    """The report on delivery over minimal ports.

    Destinations of which it is not proved are walked. Of the others a few are walked as well. If
    these contradict the proof, all are walked, and the report says that the proof is wrong.
    """
    progress, workers = options.progress, options.workers
    counts, proof = states.counts, states.proof
    if counts == ():
        return replace(walk_minimal(build, progress, workers=workers), unsound=WRONG_PROOF)
    ends = np.flatnonzero(build.topology.endpoints)
    # bool[D], the destinations to which delivery is proved.
    delivers = proof.delivers if proof else np.full(len(ends), counts is not None)
    if not delivers.any():
        return walk_minimal(build, progress, workers=workers)
    checked = by_chance(ends[delivers], options.seed)
    walked = walk_minimal(build, None, checked)
    if walked.minimal < walked.pairs:
        return replace(walk_minimal(build, progress, workers=workers), unsound=WRONG_PROOF)
    if proof:
        counts = tuple(np.trim_zeros(proof.hop_counts[delivers].sum(axis=0), "b").tolist())
    pairs, left = int(np.count_nonzero(delivers)) * (len(ends) - 1), ends[~delivers]
    use = LocalUse((DELIVERY,), len(ends), len(left), len(checked), proof is None)
    report = Report(
        pairs=pairs,
        delivered=pairs,
        minimal=pairs,
        loops=0,
        hop_counts=counts or (),
        faults=(),
        local=use,
    )
    if not len(left):
        return report
    return replace(_both(report, walk_minimal(build, progress, left, workers)), local=use)


def _walked(
    report: Report,
    build: Build,
    kinds: tuple[str, ...],
    options: ProofOptions,
) -> Report:
    """The report with all paths, if there are alternates, and failures of one link or node,
    walked.
    """
    single, spread = tuple(kind for kind in kinds if kind in PROMISED["node"]), _spread(build)
    if not single and not spread:
        return report
    walked = walk(build, single, options.progress, workers=options.workers)
    return replace(
        report, alternates=walked.alternates if spread else None, failures=walked.failures
    )


def _judged(
    report: Report,
    build: Build,
    proof: LocalProof,
    options: ProofOptions,
) -> Report:
    """The report with all paths and failures by the proof, or walked if the proof is wrong."""
    spread, kinds = _spread(build), tuple(proof.repaired)
    if not spread and not kinds:
        return report
    result = judged(build, proof, kinds, options.seed)
    if result.wrong:
        wrong = Unsound.of((WRONG_PROOF, report.unsound))
        single = tuple(kind for kind in kinds if kind in PROVED)
        return _walked(replace(report, unsound=wrong, local=None), build, single, options)
    proved = (DELIVERY, ALTERNATES, *kinds) if spread else (DELIVERY, *kinds)
    return replace(
        report,
        alternates=result.alternates if spread else None,
        failures=result.failures,
        local=replace(result.use, proved=proved),
    )


def _modules(report: Report, build: Build, seed: int) -> Report:
    """The report with the failures of modules, if it is proved that none loses a packet.

    A few destinations are walked as well. If these contradict the bounds, the proof is wrong.
    """
    bounds = other_proofs.first(lambda p: p.modules(build))
    if bounds is None:
        return report
    before = (report.alternates.max_hops if report.alternates else report.max_hops) - 1
    ends = np.flatnonzero(build.topology.endpoints)
    checked = by_chance(ends, seed)
    walked = walk_failures(towards(build, checked), MODULE, destinations=checked)
    links, added = before + bounds.links, bounds.more
    if walked.lost_pairs or walked.max_hops > links or walked.stretch > added:
        return replace(report, unsound=Unsound.of((WRONG_PROOF, report.unsound)))
    exact = walked.max_hops == links and walked.stretch == added
    module_report = replace(walked, max_hops=links, stretch=added, exact=exact)
    use = report.local or LocalUse((), len(ends), 0, len(checked))
    use = replace(use, proved=(*use.proved, MODULE))
    return replace(report, failures=(*report.failures, module_report), local=use)


def _repaired(build: Build, kinds: tuple[str, ...]) -> tuple[str, ...]:
    """The kinds of failures that are proved state by state: none if switches do not repair."""
    return tuple(kind for kind in kinds if kind in PROVED and build.forwarding.repairs)


def _all_pairs_asked(build: Build, kinds: tuple[str, ...], sample: int | None) -> bool:
    """Whether all pairs of failures are asked for, and switches repair failures."""
    pairs = comb(build.tables.switches + build.topology.graph.size, 2)
    return "2" in kinds and build.forwarding.repairs and (sample or pairs) >= pairs


def _with_two(build: Build, proof: LocalProof) -> LocalProof:
    """The proof with two failures at once, if a package proves them for most destinations."""
    two = other_proofs.first(lambda p: p.two_failures(build))
    if two is None or np.count_nonzero(~two.holds) > OPEN_TO_TWO:
        return proof
    holds = two.holds[proof.destinations] & proof.delivers
    return replace(
        proof,
        repaired={**proof.repaired, "2": holds},
        stretch={**proof.stretch, "2": two.stretch[proof.destinations]},
        hops={**proof.hops, "2": proof.longest + two.beyond[proof.destinations]},
    )


def _spread(build: Build) -> bool:
    """Whether any class has alternates."""
    alternate = build.tables.classes.alternate
    return any(bool(alternate[block].any()) for block in switch_blocks(build))


def promised(build: Build) -> tuple[str, ...]:
    """The kinds of failures that may lose no pair.

    These are the kinds of the policy's `protect`; in a whole PolarFly also two failures at once.
    """
    kinds = PROMISED.get(build.forwarding.protect, ())
    if not kinds or not polarity.is_whole(build.topology):
        return kinds
    least = LEAST_MARKED_TWICE if build.forwarding.marks else SMALLEST_WITH_GOALS
    return (*kinds, "2") if int(build.topology.parameters["q"]) >= least else kinds


def usual(build: Build) -> tuple[str, ...]:
    """The kinds of failures that are tried by default: `promised`, but two only if that is
    quick.
    """
    quick = packets(build) <= TWO_FAILURES_UP_TO
    return tuple(kind for kind in promised(build) if kind != "2" or quick)


def walk_minimal(
    build: Build,
    progress: Progress | None,
    towards: NDArray[np.int64] | None = None,
    workers: Workers = THIS_PROCESS,
) -> Report:
    """Walk the minimal paths from all switches with hosts.

    Args:
        build: its tables and wiring are walked.
        progress: called with destinations done and all.
        towards: int64[D], ascending, the destinations; None: all switches with hosts.
        workers: that share the destinations.
    """
    ends = np.flatnonzero(build.topology.endpoints)
    towards = ends if towards is None else towards
    blocks = in_blocks(towards, max(1, PAIRS_AT_ONCE // build.tables.switches))
    parts = workers.over(_MinimalPaths.of, build, blocks, least=LEAST_BLOCKS)
    return reduce(_both, reported(parts, blocks, progress), Report(0, 0, 0, 0, (), ()))


@dataclass(frozen=True, slots=True, eq=False)
class _MinimalPaths:
    """The walk over minimal ports of a build, and what its paths are compared with."""

    fib: Fib
    """The routes of the build."""
    neighbours: NDArray[np.int64]
    """int64[S, degree], the neighbours of each switch in the graph."""
    ends: NDArray[np.int64]
    """int64[D], the switches with hosts."""

    @classmethod
    def of(cls, build: Build) -> _MinimalPaths:
        """Prepare the walk of a build."""
        ends = np.flatnonzero(build.topology.endpoints)
        fib = Fib.of(build.tables, build.wiring.cables())
        return cls(fib, neighbour_table(build.topology.graph), ends)

    def __call__(self, destinations: NDArray[np.int64]) -> Report:
        """The report on the pairs towards some destinations, int64[D], ascending."""
        ends = self.ends
        hops = minimal_hops(self.fib, destinations)[ends]
        hops[np.searchsorted(ends, destinations), np.arange(len(destinations))] = ITSELF
        longest = int(hops.max(initial=0))
        shortest = distances(self.neighbours, destinations, depth=longest - 1).T[ends]
        is_minimal = (hops >= 0) & (hops <= shortest)
        counts = [int(np.count_nonzero(hops == h)) for h in range(longest + 1)]
        wrong = np.argwhere(~is_minimal & (hops != ITSELF))[:PAIR_EXAMPLES]
        return Report(
            pairs=len(destinations) * (len(ends) - 1),
            delivered=sum(counts),
            minimal=int(np.count_nonzero(is_minimal)),
            loops=int(np.count_nonzero(hops == LOOPED)),
            hop_counts=tuple(counts) if any(counts) else (),
            faults=tuple(
                PairFault(int(ends[i]), int(destinations[j]), _fault(hops[i, j], shortest[i, j]))
                for i, j in wrong
            ),
        )


def _both(one: Report, other: Report) -> Report:
    """The report on the pairs of both, which have different destinations."""
    counts = zip_longest(one.hop_counts, other.hop_counts, fillvalue=0)
    return Report(
        pairs=one.pairs + other.pairs,
        delivered=one.delivered + other.delivered,
        minimal=one.minimal + other.minimal,
        loops=one.loops + other.loops,
        hop_counts=tuple(map(sum, counts)),
        faults=(one.faults + other.faults)[:PAIR_EXAMPLES],
    )


def _fault(hops: np.int8, shortest: np.uint8) -> str:
    """The fault of a pair in words: why its packets are lost, or that they take a detour."""
    return FAULTS.get(int(hops), f"{hops} hops, {shortest} are enough")
