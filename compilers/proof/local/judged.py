"""The results of a local proof, completed by walks of what it leaves open, and checked by walks.

A `LocalProof` says for each destination what holds, or that it does not know. `judged` walks the
destinations that it leaves open, which gives exact counts. It also walks a few of the others, and
compares: if a walk loses a packet or takes more links than was proved, the proof is wrong.
"""

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
"""A sample as large as this has all cases."""
WALKED_AS_WELL = 4
"""How many proved destinations are walked by chance, besides those with the longest paths."""
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
    """What the proof and the walks say together."""

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
    """Judge all paths of a build, and all failures of some kinds.

    Args:
        build: the build that is proved.
        proof: what is proved of it.
        kinds: kinds of failures that the proof has.
        seed: chooses the proved destinations that are walked as well.
    """
    checked = by_chance(proof.destinations, seed)
    walks = _Walks.of(build, proof, checked)
    alternates, wrong = walks.alternates()
    reports = []
    for kind in kinds:
        report, contradicts = walks.failures(kind)
        reports.append(report)
        wrong = wrong or contradicts
    use = LocalUse(kinds, len(proof.destinations), len(proof.open), len(checked))
    return Judged(alternates, tuple(reports), use, wrong)


def by_chance(destinations: Vertices, seed: int) -> Vertices:
    """At most WALKED_AS_WELL of some destinations, chosen by chance, ascending."""
    # numpy's generators would take 20 ms to import.
    count = min(len(destinations), WALKED_AS_WELL)
    chosen = Random(seed).sample(range(len(destinations)), count)  # noqa: S311
    return np.sort(destinations[chosen])


@dataclass(frozen=True, slots=True, eq=False)
class _Walks:
    """Walks of the destinations that are left open, and of a few that are proved."""

    proof: LocalProof
    """What is proved of all D destinations."""
    part: Build
    """The build with routes for the walked destinations only."""
    walks: Walks
    """`part`, ready for walks."""
    checked: Bits
    """bool[D], which destinations are walked although they are proved."""

    @classmethod
    def of(cls, build: Build, proof: LocalProof, chosen: Vertices) -> _Walks:
        """Prepare the walks.

        Walked are the chosen destinations, those left open, and for each kind of failure those with
        the longest path and with the most added links.
        """
        checked = np.isin(proof.destinations, chosen)
        for kind, passed in proof.repaired.items():
            # Of the longest paths, the one with the most added links: one walk may show both.
            longest = proof.hops[kind] * MOST_HOPS + proof.stretch[kind]
            for length in (longest, proof.stretch[kind]):
                if passed.any():
                    checked[np.where(passed, length, -1).argmax()] = True
        walked = np.union1d(proof.destinations[checked], proof.open)
        part = towards(build, walked)
        return cls(proof, part, Walks.of(part, len(walked)), checked)

    def alternates(self) -> tuple[Alternates, bool]:
        """All paths without failures, and whether a walk contradicts the proof."""
        ends, delivers = self.proof.destinations, self.proof.delivers
        longest = int(self.proof.longest[delivers].max(initial=0))
        opened, sample = (
            walk(self.part, (), None, ends[places], self.walks).alternates
            for places in (~delivers, delivers & self.checked)
        )
        contradicts = sample.strays > 0 or sample.max_hops > longest
        longest_walked = max(opened.max_hops, sample.max_hops)
        alternates = Alternates(
            paths=int(self.proof.paths[delivers].sum()) + opened.paths,
            strays=opened.strays + sample.strays,
            max_hops=max(longest_walked, longest),
            exact=longest_walked >= longest,
        )
        return alternates, contradicts

    def failures(self, kind: str) -> tuple[FailureReport, bool]:
        """All failures of a kind, and whether a walk contradicts the proof."""
        proof, passed = self.proof, self.proof.repaired[kind]
        bound, added = (
            int(part[kind].max(initial=0, where=passed)) for part in (proof.hops, proof.stretch)
        )
        opened, sample = (
            walk_failures(
                self.part,
                kind,
                sample=EVERY_CASE,
                destinations=proof.destinations[places],
                walks=self.walks,
            )
            for places in (~passed, passed & self.checked)
        )
        hops = max(opened.max_hops, sample.max_hops)
        stretch = max(opened.stretch, sample.stretch)
        report = replace(
            opened,
            lost_pairs=opened.lost_pairs + sample.lost_pairs,
            looped=opened.looped + sample.looped,
            losses=(opened.losses + sample.losses),
            cut_off=opened.cut_off + sample.cut_off,
            max_hops=max(hops, bound),
            stretch=max(stretch, added),
            exact=hops >= bound and stretch >= added,
        )
        contradicts = sample.lost_pairs > 0 or sample.max_hops > bound or sample.stretch > added
        return report, contradicts
