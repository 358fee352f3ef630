"""Put the report of `verify` together from a local proof and from walks of a few destinations.

A `LocalProof` says of each destination whether all its packets arrive, without failures and under
each kind of failure. It may leave destinations open. `proof_results` *walks* the open destinations:
it follows every packet to them hop by hop, which gives exact counts. As a check, it also walks a
few destinations that are proved. If a walk loses a packet or takes more links than the proof says,
the proof is wrong. `compilers.proof.walks.delivery` calls it for builds that are too large to be
walked as a whole.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from random import Random

import numpy as np
from numpy.typing import NDArray

from compilers.forwarding.walks import HostPathFigures, Walks
from compilers.proof.failures.failure_walks import FailureReport, walk, walk_failures
from compilers.proof.local.local_proof import Bits, LocalProof
from compilers.tables.build import Build
from compilers.tables.build_parts import towards
from compilers.tables.fib import MOST_HOPS

EVERY_CASE = 1 << 62
"""A sample size above any number of cases, so that all cases of a failure are walked."""
CHECKED_BY_CHANCE = 4
"""How many proved destinations, chosen at random, are walked besides those with longest paths."""
Vertices = NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class LocalUse:
    """How much was proved without a walk."""

    proved: tuple[str, ...]
    """What was proved: `delivery`, `alternates`, or kinds of failures."""
    destinations: int
    """How many destinations there are: the switches with hosts."""
    open: int
    """How many destinations were not proved, and were walked instead."""
    walked: int
    """How many destinations were walked although they were proved, as a check."""
    program: bool = False
    """Whether delivery was proved for the fabric as a whole, of the algebra that computes the rows,
    and not of each row."""


@dataclass(frozen=True, slots=True)
class ProofResults:
    """What the proof and the walks show together."""

    alternates: HostPathFigures
    """All paths while nothing is down."""
    failures: tuple[FailureReport, ...]
    """One report for each kind of failure."""
    local_use: LocalUse
    """How much of this was proved without a walk."""
    is_contradicted: bool
    """Whether a walk contradicts the proof; then no result of the proof may be believed."""


def proof_results(
    build: Build,
    proof: LocalProof,
    kinds: tuple[str, ...],
    seed: int,
) -> ProofResults:
    """Return the results for all paths of a build, and for all failures of some kinds.

    Args:
        build: the build that is proved.
        proof: what is proved of it.
        kinds: kinds of failures that the proof has.
        seed: chooses the proved destinations that are walked as a check.
    """
    checked = sample_destinations(proof.destinations, seed)
    walks = _Walks.of(build, proof, checked)
    alternates, wrong = walks.check_alternates()
    reports = []
    for kind in kinds:
        report, contradicts = walks.check_failures(kind)
        reports.append(report)
        wrong = wrong or contradicts
    use = LocalUse(
        proved=kinds,
        destinations=len(proof.destinations),
        open=len(proof.unproved_destinations),
        walked=len(checked),
    )
    return ProofResults(alternates, tuple(reports), use, wrong)


def sample_destinations(destinations: Vertices, seed: int) -> Vertices:
    """At most CHECKED_BY_CHANCE of the destinations, chosen at random, ascending."""
    # numpy's generators would take 20 ms to import.
    count = min(len(destinations), CHECKED_BY_CHANCE)
    indexes = Random(seed).sample(range(len(destinations)), count)  # noqa: S311
    return np.sort(destinations[indexes])


@dataclass(frozen=True, slots=True, eq=False)
class _Walks:
    """Walks of the destinations that are left open, and of a few that are proved."""

    proof: LocalProof
    """What is proved of all D destinations."""
    build: Build
    """The build with routes for the walked destinations only."""
    walks: Walks
    """The arrays that walks of this build need."""
    checked: Bits
    """bool[D], which destinations are walked although they are proved."""

    @classmethod
    def of(cls, build: Build, proof: LocalProof, sample: Vertices) -> _Walks:
        """Prepare the walks.

        The walked destinations are: those of the sample; those that are left open; and for each
        kind of failure, the destination with the longest path, and the destination with the most
        added links (stretch).
        """
        checked = np.isin(proof.destinations, sample)
        for kind, repaired in proof.repaired.items():
            # Of the longest paths, the one with the most added links: one walk may show both.
            by_hops_and_stretch = proof.hops[kind] * MOST_HOPS + proof.stretch[kind]
            for rank in (by_hops_and_stretch, proof.stretch[kind]):
                if repaired.any():
                    checked[np.where(repaired, rank, -1).argmax()] = True
        walked = np.union1d(proof.destinations[checked], proof.unproved_destinations)
        to_walked = towards(build, walked)
        return cls(proof, to_walked, Walks.of(to_walked, len(walked)), checked)

    def check_alternates(self) -> tuple[HostPathFigures, bool]:
        """All paths without failures, and whether a walk contradicts the proof."""
        destinations, delivers = self.proof.destinations, self.proof.delivers
        hops_bound = int(self.proof.longest[delivers].max(initial=0))
        unproved, check = (
            walk(
                self.build, kinds=(), destinations=destinations[is_walked], walks=self.walks
            ).alternates
            for is_walked in (~delivers, delivers & self.checked)
        )
        contradicts = check.strays > 0 or check.max_hops > hops_bound
        hops_walked = max(unproved.max_hops, check.max_hops)
        alternates = HostPathFigures(
            paths=int(self.proof.choices[delivers].sum()) + unproved.paths,
            strays=unproved.strays + check.strays,
            max_hops=max(hops_walked, hops_bound),
            exact=hops_walked >= hops_bound,
        )
        return alternates, contradicts

    def check_failures(self, kind: str) -> tuple[FailureReport, bool]:
        """The report on all failures of a kind, and whether a walk contradicts the proof."""
        proof, repaired = self.proof, self.proof.repaired[kind]
        hops_bound = int(proof.hops[kind].max(initial=0, where=repaired))
        stretch_bound = int(proof.stretch[kind].max(initial=0, where=repaired))
        unproved, check = (
            walk_failures(
                self.build,
                kind,
                sample=EVERY_CASE,
                destinations=proof.destinations[is_walked],
                walks=self.walks,
            )
            for is_walked in (~repaired, repaired & self.checked)
        )
        hops_walked = max(unproved.max_hops, check.max_hops)
        stretch_walked = max(unproved.stretch, check.stretch)
        report = replace(
            unproved,
            lost_pairs=unproved.lost_pairs + check.lost_pairs,
            looped=unproved.looped + check.looped,
            losses=unproved.losses + check.losses,
            cut_off=unproved.cut_off + check.cut_off,
            max_hops=max(hops_walked, hops_bound),
            stretch=max(stretch_walked, stretch_bound),
            exact=hops_walked >= hops_bound and stretch_walked >= stretch_bound,
        )
        contradicts = (
            check.lost_pairs > 0 or check.max_hops > hops_bound or check.stretch > stretch_bound
        )
        return report, contradicts
