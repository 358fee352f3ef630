"""Delivery and repairs proved by certificate, and by walks where it says too little."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from compilers.proof.alternate_ways import Ways, walk_ways
from compilers.proof.certificate.column_certificate import ColumnCertificate
from compilers.proof.failure_walks import FailureReport, walk_failures
from compilers.proof.forwarding import Forwarding
from compilers.proof.packet_states import Progress
from compilers.tables.build import Build

CERTIFIED = ("link", "node")
"""The kinds of failures that the certificate has conditions for."""
WALKED_BESIDE = 4
"""Destinations walked beside the certificate, chosen by chance, and those of longest paths."""
Vertices = NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class CertificateUse:
    """How much a certificate proved.

    proved: of `delivery`, `ways` and the kinds of failures. destinations: all switches with hosts.
    flagged: those that it did not pass, which were walked. beside: those walked beside it.
    """

    proved: tuple[str, ...]
    destinations: int
    flagged: int
    beside: int


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
    build: Build, kinds: tuple[str, ...], seed: int, progress: Progress | None = None
) -> Certified:
    """Judge all ways, and all failures of these kinds, of `CERTIFIED`.

    Destinations that the certificate does not pass are walked, which gives their exact counts; of
    the others a few, for the counts to be the same.

    Args:
        build: sound cables (`compilers.proof.soundness.walkable`).
        kinds: of failures.
        seed: chooses the destinations that are walked beside the certificate.
        progress: called with destinations done and all.
    """
    f = Forwarding.of(build)
    found = ColumnCertificate.of(build, f, bool(kinds), progress)
    beside = by_chance(found.destinations, seed)
    ways, wrong = _ways(build, f, found, beside)
    reports, walked = [], [found.destinations[~found.delivers]]
    for kind in kinds:
        passed = found.repairs[kind]
        report, unlike = _failures(build, f, kind, found, beside)
        reports.append(report)
        walked.append(found.destinations[~passed])
        wrong = wrong or unlike
    many = len(found.destinations)
    use = CertificateUse(kinds, many, len(np.unique(np.concatenate(walked))), len(beside))
    return Certified(ways, tuple(reports), use, wrong)


def by_chance(destinations: Vertices, seed: int) -> Vertices:
    """int64[4 at most]: destinations that are walked beside a certificate, ascending."""
    return np.sort(np.random.default_rng(seed).permutation(destinations)[:WALKED_BESIDE])


def _ways(
    build: Build, f: Forwarding, found: ColumnCertificate, beside: Vertices
) -> tuple[Ways, bool]:
    """All ways without failures, and whether a walk contradicts the certificate."""
    flagged = walk_ways(build, None, found.destinations[~found.delivers], f)
    passed = found.destinations[found.delivers]
    sample = walk_ways(build, None, passed[np.isin(passed, beside)], f)
    strays, longest = flagged.strays + sample.strays, max(flagged.max_hops, found.longest)
    unlike = sample.strays > 0 or sample.max_hops > found.longest
    return Ways(found.ways, strays, longest), unlike


def _failures(
    build: Build, f: Forwarding, kind: str, found: ColumnCertificate, beside: Vertices
) -> tuple[FailureReport, bool]:
    """All failures of a kind, and whether a walk contradicts the certificate."""
    passed = found.repairs[kind]
    most, stretch = found.hops[kind], found.stretch[kind]
    bound, added = (int(part.max(initial=0, where=passed)) for part in (most, stretch))
    # The longest paths are looked for where they may be.
    longest = np.flatnonzero(passed & (most == bound))[:1]
    worst = np.flatnonzero(passed & (stretch == added))[:1]
    some = np.isin(found.destinations, beside)
    some[longest] = some[worst] = True
    flagged = _walked(build, f, kind, found.destinations[~passed])
    sample = _walked(build, f, kind, found.destinations[some & passed])
    hops, links = (max(flagged.max_hops, sample.max_hops), max(flagged.stretch, sample.stretch))
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


def _walked(build: Build, f: Forwarding, kind: str, destinations: Vertices) -> FailureReport:
    return walk_failures(build, kind, destinations=destinations, forwarding=f)
