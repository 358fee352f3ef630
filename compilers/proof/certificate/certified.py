"""Delivery and repairs proved by certificate, and by walks where it says too little."""

from __future__ import annotations

from dataclasses import dataclass, replace
from random import Random

import numpy as np
from numpy.typing import NDArray

from compilers.forwarding.walks import Begun, Progress, Walks, Ways
from compilers.proof.certificate.certificate import Bits, Certificate
from compilers.proof.certificate.class_certificate import class_certificate
from compilers.proof.certificate.column_certificate import column_certificate
from compilers.proof.certificate.star_certificate import star_certificate
from compilers.proof.certificate.star_sets import StarSets
from compilers.proof.certificate.two_link_classes import TwoLinkClasses
from compilers.proof.failures.failure_walks import FailureReport, walk_failures, walk_ways
from compilers.proof.walks.few_destinations import towards
from compilers.proof.walks.forwarding import Forwarding
from compilers.tables.build import Build
from compilers.tables.walk import MOST_HOPS

CERTIFIED = ("link", "node")
"""The kinds of failures that columns have conditions for; classes have them for `2`, too."""
EVERY_CASE = 1 << 62
WALKED_BESIDE = 4
"""Destinations walked beside the certificate, chosen by chance, and those of longest paths."""
FLAGGED_BY_CLASSES = 64
"""Destinations that are walked if classes leave them open; of more, the columns are looked at."""
Vertices = NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class CertificateUse:
    """How much a certificate proved.

    proved: of `delivery`, `ways` and the kinds of failures. destinations: all switches with hosts.
    flagged: those that it did not pass, which were walked. beside: those walked beside it. program:
    whether delivery was proved of the program that rows are computed from, and not of each row.
    """

    proved: tuple[str, ...]
    destinations: int
    flagged: int
    beside: int
    program: bool = False


@dataclass(frozen=True, slots=True)
class Certified:
    """What the certificate and the walks beside it found.

    wrong: a walk lost what the certificate had passed, so that nothing here may be believed.
    """

    ways: Ways
    failures: tuple[FailureReport, ...]
    use: CertificateUse
    wrong: bool


def certify(
    build: Build,
    kinds: tuple[str, ...],
    seed: int,
    progress: Progress | None = None,
    classes: TwoLinkClasses | StarSets | None = None,
    begun: Begun | None = None,
) -> Certified:
    """Judge all ways, and all failures of these kinds; two at once if classes prove most of them.

    Destinations that the certificate does not pass are walked, which gives their exact counts; of
    the others a few, for the counts to be the same.

    Args:
        build: sound cables (`compilers.proof.soundness.build_soundness.walkable`).
        kinds: of failures, of `CERTIFIED` and `2`.
        seed: chooses the destinations that are walked beside the certificate.
        progress: called with destinations done and all.
        classes: of a whole PolarFly of which rows prove minimal delivery, or PolarStar.
        begun: told before destinations are walked that are left open.
    """
    found = _by_classes(classes, kinds) if classes else None
    if found is None or len(found.flagged) > FLAGGED_BY_CLASSES:
        kinds = tuple(kind for kind in kinds if kind in CERTIFIED)
        found = column_certificate(build, Forwarding.of(build), bool(kinds), progress)
    beside = by_chance(found.destinations, seed)
    if begun and len(found.flagged):
        begun("verify left", len(found.flagged) / len(found.destinations))
    walks = _Walks.of(build, found, beside)
    ways, wrong = walks.ways()
    reports = [walks.failures(kind) for kind in kinds]
    wrong = wrong or any(unlike for _, unlike in reports)
    use = CertificateUse(kinds, len(found.destinations), len(found.flagged), len(beside))
    return Certified(ways, tuple(report for report, _ in reports), use, wrong)


def _by_classes(classes: TwoLinkClasses | StarSets, kinds: tuple[str, ...]) -> Certificate:
    if isinstance(classes, StarSets):
        return star_certificate(classes, kinds)
    return class_certificate(classes, kinds)


def by_chance(destinations: Vertices, seed: int) -> Vertices:
    """int64[4 at most]: destinations that are walked beside a certificate, ascending."""
    # numpy's generators would take 20 ms to import.
    count = min(len(destinations), WALKED_BESIDE)
    chosen = Random(seed).sample(range(len(destinations)), count)  # noqa: S311
    return np.sort(destinations[chosen])


@dataclass(frozen=True, slots=True, eq=False)
class _Walks:
    """The walks beside a certificate, and in its place where it does not pass a destination.

    part: the build, as packets to the destinations that are walked see it. some: bool[D], which
    are walked if the certificate passes them.
    """

    found: Certificate
    part: Build
    walks: Walks
    some: Bits

    @classmethod
    def of(cls, build: Build, found: Certificate, beside: Vertices) -> _Walks:
        """The walks of these destinations, of those flagged, and of the longest paths."""
        some = np.isin(found.destinations, beside)
        for kind, passed in found.repairs.items():
            # Both lengths at one destination, if they are.
            links = found.hops[kind] * MOST_HOPS + found.stretch[kind]
            for length in (links, found.stretch[kind]):
                if passed.any():
                    some[np.where(passed, length, -1).argmax()] = True
        walked = np.union1d(found.destinations[some], found.flagged)
        part = towards(build, walked)
        return cls(found, part, Walks.of(part, len(walked)), some)

    def ways(self) -> tuple[Ways, bool]:
        """All ways without failures, and whether a walk contradicts the certificate."""
        ends, longest = self.found.destinations, self.found.longest
        flagged = walk_ways(self.part, None, ends[~self.found.delivers], self.walks)
        sample = walk_ways(self.part, None, ends[self.found.delivers & self.some], self.walks)
        unlike = sample.strays > 0 or sample.max_hops > longest
        strays, longest = flagged.strays + sample.strays, max(flagged.max_hops, longest)
        return Ways(self.found.ways, strays, longest), unlike

    def failures(self, kind: str) -> tuple[FailureReport, bool]:
        """All failures of a kind, and whether a walk contradicts the certificate."""
        found, passed = self.found, self.found.repairs[kind]
        bound, added = (
            int(part[kind].max(initial=0, where=passed)) for part in (found.hops, found.stretch)
        )
        flagged, sample = (
            walk_failures(
                self.part,
                kind,
                sample=EVERY_CASE,
                destinations=found.destinations[where],
                walks=self.walks,
            )
            for where in (~passed, passed & self.some)
        )
        hops, links = max(flagged.max_hops, sample.max_hops), max(flagged.stretch, sample.stretch)
        report = replace(
            flagged,
            lost_pairs=flagged.lost_pairs + sample.lost_pairs,
            looped=flagged.looped + sample.looped,
            losses=(flagged.losses + sample.losses),
            cut_off=flagged.cut_off + sample.cut_off,
            max_hops=max(hops, bound),
            stretch=max(links, added),
            exact=hops >= bound and links >= added,
        )
        unlike = sample.max_hops > bound or sample.stretch > added
        return report, sample.lost_pairs > 0 or unlike
