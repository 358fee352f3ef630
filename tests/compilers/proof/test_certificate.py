"""The certificate against the walk: on good builds, and on builds with one value changed."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import cache

import numpy as np
import pytest

from compilers.forwarding.walks import Ways
from compilers.pipeline import compile_fabric
from compilers.proof.certificate import certified, class_certificate, column_certificate
from compilers.proof.certificate.certified import Certified, certify
from compilers.proof.certificate.minimal_rows import minimal_rows
from compilers.proof.certificate.two_link_classes import TwoLinkClasses
from compilers.proof.certificate.two_link_detours import TriangleDetours
from compilers.proof.failures.failure_walks import FailureReport, walk_failures, walk_ways
from compilers.proof.proved import Proved
from compilers.proof.verification import judge
from compilers.proof.walks.delivery import _walk_minimal, promised, verify
from compilers.proof.walks.detours import BACK, LATER, NEXT_HOP, Detours
from compilers.spec.fabric_file import load_fabric
from compilers.tables.build import Build
from compilers.tables.folders.build_folder import save
from compilers.topology.graph import Graph
from inventory.problems import InputError
from tests.compilers.proof.test_failure_walks import (
    SPOILS,
    over_the_apex,
    protected,
    with_classes,
    without_bounce,
)
from tests.compilers.routed import routed

KINDS = ("link", "node")
IQ: dict[str, int | str] = {"supernode": "inductive-quad", "degree": 3}
DAMAGE = {
    "node_types": {"leaf": {"ports": [{"name": "a{}", "count": 8}]}},
    "nodes": [{"name": f"n{v}", "type": "leaf"} for v in range(31)],
    "dead_links": [{"a": "n0", "b": "n1"}, {"a": "n3", "b": "n6"}],
}
FABRICS: dict[str, tuple[str, dict[str, int | str]]] = {
    "odd": ("polarfly", {"q": 3}),
    "even": ("polarfly", {"q": 4}),
    "seven": ("polarfly", {"q": 7}),
    "eight": ("polarfly", {"q": 8}),
    "iq": ("polarstar", {"q": 2, **IQ}),
    "paley": ("polarstar", {"q": 3, "supernode": "paley", "degree": 2}),
    "pn": ("pn", {"q": 2}),
    "oft": ("oft", {"q": 2}),
}

SMALL = [name for name in FABRICS if name not in ("seven", "eight")]
BOUNCED, MARKED = "bounced", "marked"
"""A fabric of q = 3 with bounced ways, and one with marked packets."""


@cache
def damaged(spread: bool) -> Build:
    balance = "compact-valiant" if spread else "minimal"
    keys = {
        "name": "damaged",
        "topology": {"family": "polarfly", "q": 5},
        "routing": {"balance": balance, "protect": "node"},
        "hosts_per_node": 1,
        "inventory": DAMAGE,
    }
    return compile_fabric(load_fabric(keys))


def fabric(name: str, spread: bool) -> Build:
    if name == "damaged":
        return damaged(spread)
    if name == BOUNCED:
        return routed(q=3, spread=True, bounces=True, protect="node")
    if name == MARKED:
        return routed(q=3, spread=True, marks=True, protect="node")
    family, parameters = FABRICS[name]
    return routed(family, spread=spread, protect="node", **parameters)


def assert_alike(build: Build, note: str = "") -> Certified:
    """The certificates with their walks find what walking everything does; returns the column's."""
    ways, walked = walk_ways(build), [walk_failures(build, kind) for kind in KINDS]
    found = certify(build, KINDS, seed=1)
    assert_found(found, ways, walked, note)
    if minimal_rows(build) is not None and (classes := TwoLinkClasses.of(build)):
        assert_found(certify(build, KINDS, seed=1, classes=classes), ways, walked, note)
    return found


def assert_found(found: Certified, ways: Ways, walked: list[FailureReport], note: str) -> None:
    assert not found.wrong, note
    assert found.ways == ways, note
    for report, right in zip(found.failures, walked, strict=True):
        if report.exact:
            assert report == right, note
        lengths = {"exact": True, "max_hops": right.max_hops, "stretch": right.stretch}
        assert replace(report, **lengths) == right, note  # type: ignore[arg-type]
        assert report.max_hops >= right.max_hops, note
        assert report.stretch >= right.stretch, note


@pytest.mark.parametrize("spread", [False, True])
@pytest.mark.parametrize("name", [*SMALL, "damaged", BOUNCED, MARKED])
def test_it_agrees_with_the_walk(name: str, spread: bool) -> None:
    found = assert_alike(fabric(name, spread))
    assert not any(report.lost_pairs for report in found.failures)
    if name != "oft":
        assert found.use.flagged == 0


@pytest.mark.parametrize("spoil", SPOILS)
def test_it_agrees_on_spoilt_tables(spoil) -> None:  # type: ignore[no-untyped-def]
    assert_alike(spoil(protected("polarfly", q=3)))


def mutants(build: Build, count: int, seed: int) -> Iterator[tuple[str, Build]]:
    """The build with one row, minimal port, order of repair or alternate changed at one switch."""
    random = np.random.default_rng(seed)
    routes, classes = build.tables.routes, build.tables.classes
    used = np.argwhere(classes.port > 0)
    words = ["protection", "egress", "protection", "port", "bounce"]
    words += ["alternate"] if classes.alternate.shape[2] else []
    for number in range(count):
        s, k = random.choice(used).tolist()
        port = int(random.choice(build.wiring.port[s][build.wiring.far[s] >= 0]))
        word = words[number % len(words)]
        note = f"{word} of class {k} of switch {s}: {port}"
        if word == "egress":
            egress = routes.egress.copy()
            egress[s, random.integers(egress.shape[1])] = k
            tables = replace(build.tables, routes=replace(routes, egress=egress))
        else:
            changed = getattr(classes, word).copy()
            changed[s, k] = port if word == "port" else [port, *[0] * (changed.shape[2] - 1)]
            tables = replace(build.tables, classes=replace(classes, **{word: changed}))
        yield note, replace(build, tables=tables)


def harmful(build: Build, count: int, seed: int) -> int:
    """How many mutants lose packets; on all the certificate agrees with the walk."""
    lossy = 0
    for note, mutant in mutants(build, count, seed):
        found = assert_alike(mutant, note)
        lossy += bool(found.ways.strays or any(r.lost_pairs for r in found.failures))
    return lossy


def test_it_agrees_on_mutants() -> None:
    modes = [("odd", False), ("odd", True), ("pn", False), ("pn", True)]
    modes += [(BOUNCED, True), (MARKED, True)]
    assert sum(harmful(fabric(*mode), 12, seed=1) for mode in modes) >= 10


@pytest.mark.parametrize("q", [3, pytest.param(4, marks=pytest.mark.long)])
@pytest.mark.parametrize(
    "words",
    [{}, {"spread": True}, {"spread": True, "bounces": True}, {"spread": True, "marks": True}],
    ids=["", "spread", BOUNCED, MARKED],
)
def test_classes_of_a_whole_polarfly_prove_what_columns_do(q: int, words: dict[str, bool]) -> None:
    build = routed(q=q, **words, protect="node")
    classes = two_link(build)
    assert not len(class_certificate.class_certificate(classes, KINDS).flagged)
    by_classes, by_columns = (certify(build, KINDS, 1, classes=c) for c in (classes, None))
    assert (by_classes.ways, by_classes.failures) == (by_columns.ways, by_columns.failures)
    assert TwoLinkClasses.of(damaged("spread" in words)) is None


def two_link(build: Build) -> TwoLinkClasses:
    classes = TwoLinkClasses.of(build)
    assert classes is not None
    return classes


def swapped_ports(build: Build, random: np.random.Generator) -> Build:
    """Two ports of a switch for each other, in all its classes or in some arrays alone."""
    s, classes = int(random.integers(len(build.wiring.far))), build.tables.classes
    one, other = random.choice(build.wiring.port[s][build.wiring.far[s] >= 0], 2, replace=False)
    changed = {}
    for word in ("port", "alternate", "protection", "bounce"):
        if random.random() < 0.7:
            changed[word] = (ports := getattr(classes, word).copy())
            ports[s] = np.select([ports[s] == one, ports[s] == other], [other, one], ports[s])
    return with_classes(build, **changed)


def swapped_cables(build: Build, random: np.random.Generator) -> Build:
    """Two cables of a switch in each other's ports."""
    s, w = int(random.integers(len(build.wiring.far))), build.wiring
    one, other = random.choice(np.flatnonzero(w.far[s] >= 0), 2, replace=False)
    port, far_port = w.port.copy(), w.far_port.copy()
    port[s, [one, other]] = w.port[s, [other, one]]
    for link in (one, other):
        far_port[w.far[s, link], w.far[w.far[s, link]] == s] = port[s, link]
    return replace(build, wiring=replace(w, port=port, far_port=far_port))


def repaired_by_itself(build: Build, random: np.random.Generator) -> Build:
    """The minimal port among the first ports of repair, at a third of the classes."""
    protection = build.tables.classes.protection.copy()
    some = random.random(protection.shape[:2]) < 0.3
    protection[some, 0] = build.tables.classes.port[some]
    return with_classes(build, protection=protection)


def fewer_bounces(build: Build, random: np.random.Generator) -> Build:
    bounce = build.tables.classes.bounce.copy()
    bounce[random.random(bounce.shape[:2]) < 0.2] = 0
    return with_classes(build, bounce=bounce)


def other_weights(build: Build, random: np.random.Generator) -> Build:
    """No weight, or one, for each way of a fifth of the classes."""
    weight = build.tables.classes.weight.copy()
    some = random.random(weight.shape[:2]) < 0.2
    weight[some] = random.integers(0, 2, weight[some].shape)
    return with_classes(build, weight=weight)


def fewer_hosts(build: Build, random: np.random.Generator) -> Build:
    ends = build.topology.endpoints & (random.random(len(build.topology.endpoints)) < 0.7)
    return replace(build, topology=replace(build.topology, endpoints=ends))


CHANGES = [
    swapped_ports,
    swapped_cables,
    repaired_by_itself,
    fewer_bounces,
    other_weights,
    fewer_hosts,
]


LONG = [pytest.param(name, marks=pytest.mark.long) for name in ("pn", "oft", "iq", "damaged")]


@pytest.mark.parametrize("name", ["odd", MARKED, *LONG])
@pytest.mark.parametrize("spread", [False, True])
def test_it_agrees_on_several_changes_at_once(name: str, spread: bool) -> None:
    random, lossy = np.random.default_rng(5), 0
    for number in range(12):
        changes = random.choice(len(CHANGES), size=1 + number % 3).tolist()
        build = fabric(name, spread)
        for change in changes:
            build = CHANGES[change](build, random)
        if build.topology.endpoints.any():
            found = assert_alike(build, f"{[CHANGES[c].__name__ for c in changes]}")
            lossy += any(report.lost_pairs for report in found.failures)
    assert lossy >= 2


@pytest.mark.parametrize("name", ["even", MARKED])
def test_what_is_proved_holds_whatever_the_weights(name: str) -> None:
    """Those that the controller shifts for `ugal-pf`, too, down to one way of a class."""
    random, build = np.random.default_rng(3), fabric(name, True)
    for share in (0.2, 0.5, 0.8):
        weight = build.tables.classes.weight.copy()
        weight[random.random(weight.shape) < share] = 0
        found = assert_alike(with_classes(build, weight=weight))
        assert not found.ways.strays
        assert not any(report.lost_pairs for report in found.failures)


def test_hosts_without_a_weighted_way_take_as_many_links_as_others() -> None:
    build = fabric("odd", False)
    nothing = with_classes(build, weight=np.zeros_like(build.tables.classes.weight))
    assert walk_ways(nothing).max_hops == walk_ways(build).max_hops == 2
    assert_alike(nothing)


@pytest.mark.long
@pytest.mark.parametrize("spread", [False, True])
@pytest.mark.parametrize("name", [*FABRICS, "damaged", BOUNCED, MARKED])
def test_it_agrees_on_many_mutants(name: str, spread: bool) -> None:
    """More than 400 that lose packets, over nine fabrics and both modes."""
    large = name in ("iq", "paley", "seven", "eight")
    assert harmful(fabric(name, spread), 100 if large else 240, seed=2) >= (3 if large else 6)


def assert_rows_right(build: Build, note: str = "") -> bool:
    """Where rows prove delivery, a walk finds the same; returns whether they prove it."""
    counts, walked = minimal_rows(build), _walk_minimal(build, None)
    if counts is not None:
        assert walked.minimal == walked.pairs, note
        assert walked.hop_counts == counts, note
        assert not walked.loops, note
    return counts is not None


WHOLE = ["odd", "even", "iq", "paley"]


@pytest.mark.parametrize("name", WHOLE)
def test_rows_prove_delivery(name: str) -> None:
    assert assert_rows_right(fabric(name, False))
    report = verify(fabric(name, False), method="certificate")
    assert replace(report, certificate=None) == verify(fabric(name, False), method="walk")
    assert report.certificate is not None
    assert report.certificate.proved == ("delivery",)


@pytest.mark.parametrize("name", WHOLE)
@pytest.mark.parametrize("count", [25, pytest.param(400, marks=pytest.mark.long)])
def test_rows_prove_nothing_that_is_not_so(name: str, count: int) -> None:
    proved = [
        assert_rows_right(mutant, note)
        for note, mutant in mutants(fabric(name, False), count, seed=4)
        if note.split()[0] in ("egress", "port")
    ]
    assert not all(proved)


def test_rows_of_no_prefix_prove_nothing() -> None:
    """Quadric supernodes have fewer rows than others; what stands behind them is for nobody."""
    build = fabric("iq", False)
    routes, last = build.tables.routes, len(build.wiring.far) + len(build.tables.routes.prefix)
    supernode, row = np.argwhere(routes.prefix == last)[0]
    egress = routes.egress.copy()
    egress[supernode * build.topology.hierarchy, row] = 0
    more = replace(build, tables=replace(build.tables, routes=replace(routes, egress=egress)))
    assert minimal_rows(more) is None
    for method in ("certificate", "walk"):
        assert "without hosts" in verify(more, method=method).unsound.texts()[0]


def test_rows_of_damaged_and_bipartite_fabrics_are_walked() -> None:
    assert minimal_rows(damaged(False)) is None
    assert minimal_rows(fabric("pn", False)) is None


def test_walks_beside_rows_tell_a_wrong_theorem(monkeypatch: pytest.MonkeyPatch) -> None:
    build = routed(q=3)
    port = build.tables.classes.port.copy()
    port[0] = np.where(port[0] > 0, port[0].max(), 0)
    classes = replace(build.tables.classes, port=port)
    astray = replace(build, tables=replace(build.tables, classes=classes))
    counts = minimal_rows(build)
    monkeypatch.setattr("compilers.proof.walks.delivery.minimal_rows", lambda _: counts)
    report = verify(astray, method="certificate")
    assert report.certificate is None
    assert report.minimal < report.pairs
    assert "certificate" in report.unsound.texts()[0]


@pytest.mark.parametrize("q", [2, 3, 4])
def test_triangles_give_the_detours_of_a_polarfly(q: int) -> None:
    """On its own tables, and with destinations in other classes of the same port."""
    build = protected("polarfly", q=q)
    port, egress = build.tables.classes.port, build.tables.routes.egress.copy()
    random = np.random.default_rng(q)
    for s, d in random.integers(len(egress), size=(9, 2)):
        if s != d:
            egress[s, d] = random.choice(np.flatnonzero(port[s] == port[s, egress[s, d]]))
        changed = replace(build.tables, routes=replace(build.tables.routes, egress=egress.copy()))
        mixed = replace(build, tables=changed)
        assert minimal_rows(mixed)
        walked, found = Detours.of(mixed), TriangleDetours(two_link(mixed)).part(slice(None))
        for word in ("direct", "behind", "used"):
            assert (getattr(walked, word) == getattr(found, word)).all()
        for least in (LATER, NEXT_HOP, BACK):
            assert (walked.without(least) == found.without(least)).all()
            assert (walked.uneven(least) == found.uneven(least)).all()


def test_detours_of_damaged_and_other_fabrics_are_walked() -> None:
    assert TwoLinkClasses.of(damaged(True)) is None
    assert TwoLinkClasses.of(fabric("iq", True)) is None


def test_a_grown_fabric_with_as_many_links_is_no_whole_polarfly() -> None:
    """No two failures lose a pair: only ER_q keeps that promise."""
    build = fabric("odd", False)
    more = np.append(build.topology.graph.edges()[1:], [[12, 13]], axis=0)
    grown = replace(build.topology, graph=Graph.from_edges(14, more))
    assert promised(build) == ("link", "node", "2")
    assert promised(replace(build, topology=grown)) == ("link", "node")
    assert TwoLinkClasses.of(replace(build, topology=grown)) is None


WRONG = {
    "whatever avoids the link avoids the switch": over_the_apex,
    "a packet that comes back is bounced": without_bounce,
}


WRONG_OF_CLASSES: dict[str, Callable[..., object]] = {
    "without": lambda classes, _: np.ones(len(classes.link), np.bool_),
    "_bounces": lambda *given: given[-1] >= 0,
}


@pytest.mark.parametrize(
    ("theorem", "spoil"), [*zip(WRONG_OF_CLASSES, WRONG.values(), strict=True)]
)
def test_the_walks_beside_classes_tell_a_wrong_theorem(
    theorem: str,
    spoil,  # type: ignore[no-untyped-def]
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    build = spoil(protected("polarfly", q=5))
    classes = two_link(build)
    assert not certify(build, KINDS, 1, classes=classes).wrong
    where = class_certificate._ClassChoices if theorem == "_bounces" else TwoLinkClasses
    monkeypatch.setattr(where, theorem, WRONG_OF_CLASSES[theorem])
    assert certify(build, KINDS, 1, classes=classes).wrong


@pytest.mark.parametrize("theorem", WRONG)
def test_the_walks_beside_it_tell_a_wrong_theorem(
    theorem: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A theorem that is not true passes tables that lose packets; the walks do not."""
    monkeypatch.setattr(TwoLinkClasses, "of", lambda *_: None)
    right = column_certificate._Repairs.of

    def wrong(*given):  # type: ignore[no-untyped-def]
        found = right(*given)
        there = found.over != given[0].base + found.over.shape[1]
        if theorem == "a packet that comes back is bounced":
            return replace(found, link=there, node=there)
        return replace(found, node=found.link)

    build = WRONG[theorem](protected("polarfly", q=5))
    walked = verify(build, failures=KINDS, method="walk")
    assert verify(build, failures=KINDS, method="certificate").failures == walked.failures
    monkeypatch.setattr(column_certificate._Repairs, "of", wrong)
    report = verify(build, failures=KINDS, method="certificate")
    assert not report.passed
    assert report.certificate is None
    assert report.failures == walked.failures
    assert "certificate" in report.unsound.texts()[0]


def test_the_mark_says_what_was_proved_by_certificate(tmp_path) -> None:  # type: ignore[no-untyped-def]
    build = damaged(True)
    save(build, tmp_path / "build")
    place = [build], [tmp_path / "build"]
    judge(*place, failures=["link"], method="certificate")
    # Rows prove delivery in a whole fabric only.
    assert Proved.read(tmp_path / "build", build).certified == ("ways", "link")
    judge(*place, failures=["node"], method="walk")
    proved = Proved.read(tmp_path / "build", build)
    assert (proved.failures, proved.certified) == (("link", "node"), ("link",))
    mark = json.loads((tmp_path / "build/verified.json").read_text())
    assert mark["certificate"] is None


def test_auto_takes_it_where_walks_take_long(monkeypatch: pytest.MonkeyPatch) -> None:
    build = fabric("odd", True)
    assert verify(build, failures=["link"]).certificate is None
    monkeypatch.setattr("compilers.proof.walks.delivery.WALKED_UP_TO", 0)
    report = verify(build, failures=["link", "2"])
    assert [case.kind for case in report.failures] == ["link", "2"]
    proved = "delivery", "ways", "link", "2"
    assert report.certificate == certified.CertificateUse(proved, 13, 0, 4)
    with pytest.raises(InputError, match="auto, walk, certificate"):
        judge([build], method="guess")
