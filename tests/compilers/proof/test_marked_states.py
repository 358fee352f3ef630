"""The local proof where packets are marked, against the walk: good builds, and spoilt ones."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace

import numpy as np
import pytest
from numpy.typing import NDArray

from compilers.proof.failures.failure_walks import walk
from compilers.proof.local.local_proof import provable
from compilers.proof.walks.delivery import verify
from compilers.routing.marked_spread import onward_links
from compilers.tables.build import Build
from compilers.tables.intermediate_form import Tables
from compilers.wiring.wiring import Wiring
from tests.compilers.proof.makers import assert_alike, fabric, harmful
from tests.compilers.routed import routed

Onward = Iterator[tuple[slice, NDArray[np.bool_]]]
OTHERS = [
    "oft",
    *(pytest.param(n, marks=pytest.mark.long) for n in ("iq", "paley", "damaged")),
]


def marked(name: str) -> Build:
    """A build with alternates, as if its packets were marked."""
    return replace(fabric(name, True), balance="spread")


@pytest.mark.parametrize("protect", ["none", "node"])
@pytest.mark.parametrize(
    "q",
    [
        3,
        4,
        5,
        *(pytest.param(q, marks=pytest.mark.long) for q in range(7, 14) if q not in (10, 12)),
    ],
)
def test_it_finds_what_the_walk_finds(q: int, protect: str) -> None:
    """Losses and lengths of each kind of failure, without repair and with it, and channels."""
    build = routed(q=q, spread=True, marks=True, protect=protect)
    kinds = ("link", "node") if protect == "none" or q == 3 else ("link", "node", "2")
    walk, found = (
        verify(build, failures=kinds, with_channels=q < 9, method=method)
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
    assert harmful(marked(name), 12 if name == "oft" else 120, seed=3) >= 3


def fewer(wiring: Wiring) -> Onward:
    """Two links and more of those that packets are spread over."""
    for some, usable in onward_links(wiring):
        left = usable & (np.random.default_rng(7).random(usable.shape) < 0.6)
        yield some, np.where(left.sum(axis=2, keepdims=True) < 2, usable, left)


def back(wiring: Wiring) -> Onward:
    """The link that a packet came in on, too, and the apex."""
    for some, usable in onward_links(wiring):
        there = wiring.far[some] >= 0
        yield some, usable | (there[:, :, None] & there[:, None, :])


def none(wiring: Wiring) -> Onward:
    """No link for what comes in on a tenth of them."""
    for some, usable in onward_links(wiring):
        usable[np.random.default_rng(8).random(usable.shape[:2]) < 0.1] = False
        yield some, usable


def spread_by(links: Callable[[Wiring], Onward], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("compilers.forwarding.program.onward_links", links)
    monkeypatch.setattr("compilers.routing.marked_spread.onward_links", links)


@pytest.mark.parametrize("links", [fewer, back])
@pytest.mark.parametrize("name", ["odd", *OTHERS])
def test_whatever_links_packets_are_spread_over(
    name: str, links: Callable[[Wiring], Onward], monkeypatch: pytest.MonkeyPatch
) -> None:
    spread_by(links, monkeypatch)
    assert_alike(marked(name))


@pytest.mark.parametrize("name", ["odd", *OTHERS])
def test_packets_that_cannot_be_spread_are_lost(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    spread_by(none, monkeypatch)
    build = marked(name)
    walked = walk(build, ()).alternates
    assert walked.strays
    assert not provable(build)
    report = verify(build, method="local")
    assert report.local is None or report.alternates == walked


@pytest.mark.parametrize("method", ["walk", "local"])
def test_numbers_of_classes_are_those_that_targets_go_by(method: str) -> None:
    """What is next to a switch is not spread: targets know it by the number of its class."""
    build = routed(q=5, spread=True, marks=True, protect="node")
    assert verify(build, failures=(), method=method).passed
    routes, arrays, s = build.tables.routes, build.tables.classes, 7
    swapped = {2: 8, 8: 2}  # behind the third neighbour, and that itself
    egress = routes.egress.copy()
    egress[s] = [swapped.get(k, k) for k in routes.egress[s].tolist()]
    changed = {}
    for word in ("port", "alternate", "weight", "protection", "bounce"):
        changed[word] = np.array(getattr(arrays, word))
        changed[word][s, [2, 8]] = changed[word][s, [8, 2]]
    tables = Tables(replace(routes, egress=egress), replace(arrays, **changed))
    report = verify(replace(build, tables=tables), failures=(), method=method)
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
