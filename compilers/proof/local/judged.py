"""Alternates and failures proved state by state, and by walks where that says too little."""

from __future__ import annotations

from dataclasses import dataclass, replace
from random import Random

import numpy as np
from numpy.typing import NDArray

from compilers.forwarding.walks import Alternates, Walks
from compilers.proof.failures.failure_walks import FailureReport, walk, walk_failures
from compilers.proof.local.local_proof import Bits, LocalProof
from compilers.tables.build import Build
from compilers.tables.build_parts import towards
from compilers.tables.fib import MOST_HOPS

EVERY_CASE = 1 << 62
WALKED_AS_WELL = 4
"""Destinations walked as well, chosen by chance, and those of longest paths."""
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
    """Whether delivery was proved of the program that computes the rows, and not of each row."""


@dataclass(frozen=True, slots=True)
class Judged:
    """What the proof and the walks found."""

    alternates: Alternates
    """All paths while nothing is down."""
    failures: tuple[FailureReport, ...]
    """One report for each kind of failure."""
    use: LocalUse
    """How much of this was proved without a walk."""
    wrong: bool
    """Whether a walk lost what was proved; then no result of the proof may be believed."""


def judged(
    build: Build,
    proof: LocalProof,
    kinds: tuple[str, ...],
    seed: int,
) -> Judged:
    """All paths, and all failures of these kinds.

    Destinations that are not proved are walked, which gives their exact counts; of the others a
    few, to see that the counts are the same.

    Args:
        build: see below.
        proof: what is proved of it.
        kinds: of failures, of which the proof says something.
        seed: chooses the destinations that are walked as well.
    """
    some = by_chance(proof.destinations, seed)
    walks = _Walks.of(build, proof, some)
    alternates, wrong = walks.alternates()
    reports = [walks.failures(kind) for kind in kinds]
    wrong = wrong or any(unlike for _, unlike in reports)
    use = LocalUse(kinds, len(proof.destinations), len(proof.open), len(some))
    return Judged(alternates, tuple(report for report, _ in reports), use, wrong)


def by_chance(destinations: Vertices, seed: int) -> Vertices:
    """int64[4 at most]: destinations that are walked as well, ascending."""
    # numpy's generators would take 20 ms to import.
    count = min(len(destinations), WALKED_AS_WELL)
    chosen = Random(seed).sample(range(len(destinations)), count)  # noqa: S311
    return np.sort(destinations[chosen])


@dataclass(frozen=True, slots=True, eq=False)
class _Walks:
    """The walks of a few destinations that are proved, and of all others."""

    proof: LocalProof
    """What is proved of all destinations."""
    part: Build
    """The build, as packets to the destinations that are walked see it."""
    walks: Walks
    """The walks of `part`."""
    some: Bits
    """bool[D], which are walked if they are proved."""

    @classmethod
    def of(cls, build: Build, proof: LocalProof, few: Vertices) -> _Walks:
        """The walks of these destinations, of those left open, and of the longest paths."""
        some = np.isin(proof.destinations, few)
        for kind, passed in proof.repaired.items():
            # Both lengths at one destination, if they are.
            links = proof.hops[kind] * MOST_HOPS + proof.stretch[kind]
            for length in (links, proof.stretch[kind]):
                if passed.any():
                    some[np.where(passed, length, -1).argmax()] = True
        walked = np.union1d(proof.destinations[some], proof.open)
        part = towards(build, walked)
        return cls(proof, part, Walks.of(part, len(walked)), some)

    def alternates(self) -> tuple[Alternates, bool]:
        """All paths without failures, and whether a walk contradicts the proof."""
        ends, delivers = self.proof.destinations, self.proof.delivers
        longest = int(self.proof.longest[delivers].max(initial=0))
        left, sample = (
            walk(self.part, (), None, ends[some], self.walks).alternates
            for some in (~delivers, delivers & self.some)
        )
        unlike = sample.strays > 0 or sample.max_hops > longest
        strays, seen = left.strays + sample.strays, max(left.max_hops, sample.max_hops)
        count = int(self.proof.paths[delivers].sum()) + left.paths
        return Alternates(count, strays, max(seen, longest), exact=seen >= longest), unlike

    def failures(self, kind: str) -> tuple[FailureReport, bool]:
        """All failures of a kind, and whether a walk contradicts the proof."""
        proof, passed = self.proof, self.proof.repaired[kind]
        bound, added = (
            int(part[kind].max(initial=0, where=passed)) for part in (proof.hops, proof.stretch)
        )
        left, sample = (
            walk_failures(
                self.part,
                kind,
                sample=EVERY_CASE,
                destinations=proof.destinations[where],
                walks=self.walks,
            )
            for where in (~passed, passed & self.some)
        )
        hops, links = max(left.max_hops, sample.max_hops), max(left.stretch, sample.stretch)
        report = replace(
            left,
            lost_pairs=left.lost_pairs + sample.lost_pairs,
            looped=left.looped + sample.looped,
            losses=(left.losses + sample.losses),
            cut_off=left.cut_off + sample.cut_off,
            max_hops=max(hops, bound),
            stretch=max(links, added),
            exact=hops >= bound and links >= added,
        )
        unlike = sample.max_hops > bound or sample.stretch > added
        return report, sample.lost_pairs > 0 or unlike
