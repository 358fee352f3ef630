"""The local proof where packets are marked, against the walk: good builds, and spoilt ones."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from compilers.proof.proof_options import ProofOptions
from compilers.proof.walks.delivery import verify
from compilers.tables.build import Build
from compilers.tables.intermediate_form import Tables
from tests.compilers.proof.makers import fabric, harmful
from tests.compilers.routed import routed

OTHERS = [
    "oft",
    *(pytest.param(n, marks=pytest.mark.long) for n in ("iq", "paley", "damaged")),
]


def marked(name: str) -> Build:
    """A build with alternates, as if its packets were marked."""
    build = fabric(name, True)
    return replace(build, forwarding=replace(build.forwarding, marks=True))


LARGER = [q for q in range(5, 14) if q not in (6, 10, 12)]


@pytest.mark.parametrize(
    ("q", "protect"),
    [
        (3, "none"),
        (4, "node"),
        *(
            pytest.param(q, protect, marks=pytest.mark.long)
            for q in LARGER
            for protect in ("none", "node")
        ),
    ],
)
def test_it_finds_what_the_walk_finds(q: int, protect: str) -> None:
    """Losses and lengths of each kind of failure, without repair and with it, and channels."""
    build = routed(q=q, spread=True, marks=True, protect=protect)
    kinds = ("link", "node") if protect == "none" or q == 3 else ("link", "node", "2")
    walk, found = (
        verify(build, ProofOptions(failures=kinds, channels=q < 9, method=method))
        for method in ("walk", "local")
    )
    assert found.local is not None
    assert set(found.local.proved) >= {"delivery", "alternates"}
    assert found.local.open == 0
    alike = [replace(case, exact=True) for case in found.failures]
    assert replace(found, failures=tuple(alike), local=None) == walk


@pytest.mark.parametrize("name", OTHERS)
def test_marks_in_any_family(name: str) -> None:
    """Also where a marked packet comes to a switch by its minimal port, and is bounced."""
    assert harmful(marked(name), 5 if name == "oft" else 120, seed=3) >= 1


@pytest.mark.parametrize("method", ["walk", "local"])
def test_numbers_of_classes_are_those_that_targets_go_by(method: str) -> None:
    """What is next to a switch is not spread: targets know it by the number of its class."""
    build = routed(q=5, spread=True, marks=True, protect="node")
    assert verify(build, ProofOptions(failures=(), method=method)).passed
    routes, arrays, s = build.tables.routes, build.tables.classes, 7
    swapped = {2: 8, 8: 2}  # behind the third neighbour, and that itself
    egress = routes.egress.copy()
    egress[s] = [swapped.get(k, k) for k in routes.egress[s].tolist()]
    changed = {}
    for word in ("port", "alternate", "weight", "protection", "bounce"):
        changed[word] = np.array(getattr(arrays, word))
        changed[word][s, [2, 8]] = changed[word][s, [8, 2]]
    tables = Tables(replace(routes, egress=egress), replace(arrays, **changed))
    report = verify(replace(build, tables=tables), ProofOptions(failures=(), method=method))
    assert report.delivered == report.pairs
    assert not report.passed
    if method == "local":  # classes are compared with those that are constructed
        assert any(
            "class[8]: required rows for the neighbour alone" in text
            for text in report.unsound.texts()
        )
        return
    assert report.unsound.texts() == [
        "7.class[2]: required rows for what is behind the neighbour, by its number, given rows for "
        "the neighbour alone",
        "7.class[8]: required rows for the neighbour alone, by its number, given rows for what is "
        "behind the neighbour",
    ]
