"""The local proof of PolarStar's constructed classes against walks: good builds, spoilt ones."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import numpy as np
import pytest

from compilers.forwarding.walks import Walks
from compilers.proof.failures.failure_walks import walk, walk_failures
from compilers.proof.local.local_proof import LocalProof, local_proof
from compilers.proof.proof_options import ProofOptions
from compilers.proof.walks.delivery import verify
from compilers.tables.build import Build
from tests.compilers.routed import by_class

KINDS = ("link", "node")
EVERY, FEW = 1 << 62, 1
FABRICS = [(3, "inductive-quad", 3), (3, "paley", 2), (3, "complete", 2)]
LARGER = [(3, "inductive-quad", 4), (4, "inductive-quad", 3), (4, "paley", 4), (3, "cayley", 4)]


def spoilt(build: Build, count: int, random: np.random.Generator) -> Iterator[Build]:
    """Builds with up to four ports, or one weight, changed."""
    c, ports = build.tables.classes, int(build.wiring.port.max())
    for number in range(count):
        word = ("protection", "bounce", "alternate", "weight")[number % 4]
        array = np.array(getattr(c, word))
        for _ in range(1 if word == "weight" else int(random.integers(1, 5))):
            place = tuple(random.integers(array.shape))
            array[place] = random.integers(3 if word == "weight" else ports + 1)
        yield replace(build, tables=replace(build.tables, classes=replace(c, **{word: array})))


def require_walks_agree(build: Build, found: LocalProof) -> None:
    """Pass where walks find nothing that the proof excludes."""
    walks = Walks.of(build)
    alternates = walk(build, (), None, found.destinations[found.delivers], walks).alternates
    assert not alternates.strays
    assert alternates.max_hops <= found.longest.max(initial=0, where=found.delivers)
    assert alternates.paths == found.choices[found.delivers].sum()
    for kind, some in found.repaired.items():
        report = walk_failures(
            build, kind, sample=EVERY, destinations=found.destinations[some], walks=walks
        )
        assert not report.lost_pairs
        assert report.max_hops <= found.hops[kind].max(initial=0, where=some)
        assert report.stretch <= found.stretch[kind].max(initial=0, where=some)


@pytest.mark.parametrize(
    ("fabric", "count"),
    [
        (FABRICS[1], FEW),
        *(pytest.param(each, 20, marks=pytest.mark.long) for each in (*FABRICS, *LARGER)),
    ],
)
def test_what_it_passes_walks_pass(fabric: tuple[int, str, int], count: int) -> None:
    build = by_class(*fabric)
    found = local_proof(build, KINDS)
    assert not len(found.unproved_destinations)
    require_walks_agree(build, found)
    flagged = 0
    for mutant in spoilt(build, count, np.random.default_rng(fabric[2])):
        found = local_proof(mutant, KINDS)
        flagged += bool(len(found.unproved_destinations))
        require_walks_agree(mutant, found)
    assert flagged or count == FEW


def test_what_it_flags_is_walked() -> None:
    """Of a class without repair the proof leaves destinations open, and walks count losses."""
    build = by_class(*FABRICS[1])
    c, links = build.tables.classes, build.wiring.port.shape[1]
    protection = c.protection.copy()
    protection[5, links] = 0
    tables = replace(build.tables, classes=replace(c, protection=protection))
    mutant = replace(build, tables=tables)
    assert local_proof(mutant, KINDS).unproved_destinations.tolist() == [
        int(build.wiring.far[5, 0])
    ]
    by, walked = (
        verify(mutant, ProofOptions(failures=KINDS, method=method)) for method in ("local", "walk")
    )
    assert not by.passed
    counts = [[case.lost_pairs for case in report.failures] for report in (by, walked)]
    assert counts[0] == counts[1]
    assert counts[0][0] > 0
