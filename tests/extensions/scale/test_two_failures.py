"""Two failures by classes of a whole PolarFly: never more than the walk of every pair finds."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import numpy as np
import pytest

from compilers.proof.failures.failure_walks import walk_failures
from compilers.proof.local.local_proof import local_proof
from compilers.proof.local.proof_results import LocalUse
from compilers.proof.proof_options import ProofOptions
from compilers.proof.walks.delivery import SMALLEST_Q_WITH_MARKED_PAIR_REPAIR, verify
from compilers.tables.build import Build
from extensions.scale.two_failures import two_failures
from inventory.problems import InputError
from tests.compilers.proof.makers import EVERY, with_classes
from tests.compilers.routed import routed

MODES: dict[str, dict[str, bool]] = {
    "minimal": {},
    "spread": {"spread": True},
    "bounced": {"spread": True, "bounces": True},
    "marked": {"spread": True, "marks": True},
}


def edits(build: Build, random: np.random.Generator) -> Build:
    """One order of repair or of bounce turned round, or one of its ports changed."""
    word = str(random.choice(["protection", "bounce"]))
    changed = getattr(build.tables.classes, word).copy()
    s, k = random.choice(np.argwhere(build.tables.classes.port > 0)).tolist()
    if random.random() < 0.3:
        changed[s, k] = changed[s, k][::-1]
    else:
        ports = build.wiring.port[s][build.wiring.far[s] >= 0]
        changed[s, k, random.integers(changed.shape[2])] = random.choice(ports)
    return with_classes(build, **{word: changed})


def wider(build: Build) -> Build:
    """A third port of repair and of bounce at each class, whatever it leads to."""
    w, classes = build.wiring, build.tables.classes
    more = {}
    for word in ("protection", "bounce"):
        given = getattr(classes, word)
        third = np.zeros_like(given[..., :1])
        for s, k in np.argwhere(classes.port > 0).tolist():
            left = set(w.port[s][w.far[s] >= 0].tolist())
            left -= {int(classes.port[s, k]), *given[s, k].tolist()}
            third[s, k] = sorted(left)[(s + k) % len(left)] if left else 0
        more[word] = np.concatenate((given, third), axis=2)
    return with_classes(build, **more)


def edited(q: int, count: int, seed: int) -> Iterator[Build]:
    """Builds of all modes, with two and with three ports of repair, and up to six edits."""
    random = np.random.default_rng(seed)
    for mode, words in MODES.items():
        if mode == "marked" and q < SMALLEST_Q_WITH_MARKED_PAIR_REPAIR:
            continue
        build = routed(q=q, **words, protect="node")
        for base in (build, wider(build)):
            for number in range(count):
                mutant = base
                for _ in range(1 + number % 6):
                    mutant = edits(mutant, random)
                yield mutant


@pytest.mark.parametrize(
    ("q", "count", "least"),
    [
        (3, 1, 1),
        *(pytest.param(*args, marks=pytest.mark.long) for args in ((3, 80, 160), (4, 60, 70))),
        pytest.param(5, 30, 30, marks=pytest.mark.long),
    ],
)
def test_what_classes_pass_the_walk_passes(q: int, count: int, least: int) -> None:
    """More than 250 that lose packets, over q = 3, 4 and 5; the bounds of lengths hold as well."""
    lossy = passed = 0
    for build in edited(q, count, seed=q):
        single, two = local_proof(build, ("link", "node")), two_failures(build)
        there = single.destinations
        good = two.holds[there] & single.delivers & single.repaired["node"]
        lossy += walk_failures(build, "2", EVERY).lost_pairs > 0
        passed += int(good.sum())
        if good.any():
            walked = walk_failures(build, "2", EVERY, destinations=there[good])
            assert walked.lost_pairs == 0
            assert walked.max_hops <= (single.longest + two.longer_than_longest[there])[good].max()
            assert walked.stretch <= two.stretch[there][good].max()
    assert lossy >= least
    assert passed


@pytest.mark.parametrize(
    ("q", "mode"),
    [
        *((3, mode) for mode in MODES),
        (4, "marked"),
        *(pytest.param(q, mode, marks=pytest.mark.long) for q in (7, 8) for mode in MODES),
    ],
)
def test_the_report_is_that_of_the_walk(q: int, mode: str) -> None:
    build = routed(q=q, **MODES[mode], protect="node")
    if mode == "marked" and q < SMALLEST_Q_WITH_MARKED_PAIR_REPAIR:
        with pytest.raises(InputError, match="fewer than 2 failures at once"):
            verify(build, ProofOptions(failures=("2",), method="local"))
        return
    report = verify(build, ProofOptions(failures=("2",), method="local"))
    assert report.local is not None
    assert report.local.proved[-1] == "2"
    assert report.local.open == 0
    (two,), walked = report.failures, walk_failures(build, "2", EVERY)
    # Of bounced and marked paths another destination than those walked beside has the longest.
    alike = mode in ("bounced", "marked")
    assert two == (replace(walked, exact=two.exact) if alike else walked)


def test_tables_that_lose_are_told_as_by_the_walk() -> None:
    """Without the second port of a few repairs, which single failures do not need."""
    build = routed(q=3, spread=True, protect="node")
    protection = build.tables.classes.protection.copy()
    protection[3, :, 1:] = 0
    build = with_classes(build, protection=protection)
    report = verify(build, ProofOptions(failures=("2",), method="local"))
    assert isinstance(report.local, LocalUse)
    assert report.local.open
    (two,), walked = report.failures, walk_failures(build, "2", EVERY)
    assert two.lost_pairs == walked.lost_pairs > 0
    assert not report.passed


def test_where_classes_say_too_little_two_failures_are_walked() -> None:
    """Another family; a sample that was asked for."""
    star = routed("polarstar", protect="node", q=2, supernode="inductive-quad", degree=3)
    builds = (star, 20), (routed(q=3, protect="node"), 7)
    for build, sample in builds:
        report = verify(build, ProofOptions(failures=("2",), sample=sample, method="local"))
        assert report.failures == (walk_failures(build, "2", sample),)
        assert "2" not in (report.local.proved if report.local else ())
