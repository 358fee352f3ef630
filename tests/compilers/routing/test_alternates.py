"""Alternates and repairs by the theorems, quadric cases by name, and what a user can ask for."""

from __future__ import annotations

import re
from contextlib import suppress
from dataclasses import replace
from fractions import Fraction
from itertools import combinations, pairwise
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from compilers.pipeline import compile_fabric
from compilers.proof.explanation import FailingPath, explain
from compilers.proof.name_lookup import find_failure
from compilers.routing.choose import choices, search_choices
from compilers.routing.minimal_routes import minimal_tables
from compilers.routing.split_classes import split_direct
from compilers.spec.fabric_file import load_fabric
from compilers.spec.share_expression import share_value
from compilers.tables.build import Build
from compilers.tables.fib import Fib
from compilers.tables.folders.build_folder import load, save
from compilers.topology.polarity import cross
from inventory.problems import InputError
from tests.compilers.routed import routed, weights, with_alternates

PRIME_POWERS = [3, 4, 5, 7]


def polarfly(q: int, **words: object) -> Build:
    build = routed(q=q)
    forwarding = with_alternates(protect="node", **words)  # type: ignore[arg-type]
    tables = minimal_tables(build.topology, build.wiring)
    tables = choices(tables, build.topology, build.wiring, forwarding)
    return replace(build, tables=tables, balance="compact-valiant", forwarding=forwarding)


def links(path: tuple[int, ...]) -> set[frozenset[int]]:
    return {frozenset(pair) for pair in pairwise(path)}


@pytest.mark.parametrize("edge_disjoint", [False, True])
@pytest.mark.parametrize("q", PRIME_POWERS)
def test_alternates_are_those_of_the_theorem(q: int, edge_disjoint: bool) -> None:
    """s–r–(r×d)–d for every neighbour r but the minimal one, and the apex, which shares a link."""
    build = polarfly(q, disjoint=edge_disjoint)
    quadric = build.topology.kind == 0
    far = build.wiring.far
    random = np.random.default_rng(q)
    for s, d in random.integers(build.topology.graph.order, size=(60, 2)).tolist():
        found = explain(build, s, d)
        near = [int(r) for r in far[s] if r >= 0]
        if s == d or d in near:
            assert found.alternates == ()
            continue
        x = int(cross(q, np.array([s]), np.array([d]))[0])
        assert found.minimal == (s, x, d)
        apex = set(near) & set(far[x].tolist())
        assert len(apex) == (not quadric[s] and not quadric[x])
        left = [r for r in near if r != x and not (edge_disjoint and r in apex)]
        over = cross(q, np.array(left, np.int32), np.full(len(left), d))
        assert found.alternates == tuple((s, r, int(m), d) for r, m in zip(left, over, strict=True))
        for one, other in combinations(found.alternates, 2):
            assert not set(one[1:-1]) & set(other[1:-1])
        if edge_disjoint:
            assert not any(links(path) & links(found.minimal) for path in found.alternates)


def test_field_notes_at_q_7() -> None:
    found = explain(polarfly(7), 9, 18)
    assert found.minimal == (9, 28, 18)
    assert [tuple(v + 1 for v in path) for path in found.alternates] == [
        (10, 2, 11, 19),
        (10, 15, 31, 19),
        (10, 22, 51, 19),
        (10, 36, 20, 19),
        (10, 43, 40, 19),
        (10, 50, 49, 19),
    ]
    assert found.weights == (1,) * 7
    assert found.as_dict(polarfly(7))["fault"] is None
    assert explain(routed(q=7), 9, 18).alternates == ()


@pytest.mark.parametrize(("source", "destination", "gone"), [(9, 50, 50), (50, 9, 50)])
def test_a_switch_that_is_down_is_named(source: int, destination: int, gone: int) -> None:
    build = polarfly(7)
    (failing,) = explain(build, source, destination, [find_failure(build, f"{gone}")]).failing
    assert failing == FailingPath((source,), f"switch {gone} is down")


QUADRIC_CASES = {
    "neither end, common neighbour no quadric": (False, False, False, 3),
    "neither end, common neighbour a quadric": (False, True, False, 3),
    "source a quadric": (True, False, False, 3),
    "destination a quadric": (False, False, True, 3),
    "both ends quadrics": (True, False, True, 3),
    "neighbours, neither a quadric": (False, None, False, 2),
    "neighbours, source a quadric": (True, None, False, 4),
    "neighbours, destination a quadric": (False, None, True, 4),
}


@pytest.mark.parametrize("case", QUADRIC_CASES)
@pytest.mark.parametrize("q", [3, 4])
def test_first_link_down(q: int, case: str) -> None:
    """How long the path is that a packet in transit takes when its next link has failed."""
    at_source, between, at_destination, length = QUADRIC_CASES[case]
    build = routed(q=q, protect="link")
    quadric = build.topology.kind == 0
    tried = 0
    for s in np.flatnonzero(quadric == at_source).tolist():
        for d in np.flatnonzero(quadric == at_destination).tolist():
            minimal_path = explain(build, s, d).minimal
            x = minimal_path[1] if len(minimal_path) == 3 else None
            if s == d or (x is None) != (between is None) or (x and quadric[x] != between):
                continue
            failed = find_failure(build, f"{s}-{minimal_path[1]}")
            (hop,) = explain(build, s, d, [failed]).failing
            assert hop.fault == ""
            assert len(hop.path) - 1 == length
            assert links(minimal_path[:2]).isdisjoint(links(hop.path))
            tried += 1
            if tried == 8:
                return
    assert tried or (q % 2 == 0 and case == "both ends quadrics") or between


@pytest.mark.parametrize("q", [4, 5])
def test_last_link_down_and_node_down(q: int) -> None:
    """x repairs to its neighbour d; where x itself has failed, s repairs over another."""
    build = routed(q=q, protect="node")
    quadric = build.topology.kind == 0
    for s, d in np.random.default_rng(1).integers(build.topology.graph.order, size=(80, 2)):
        path = explain(build, s, d).minimal
        if len(path) < 3:
            continue
        x = path[1]
        (hop,) = explain(build, s, d, [find_failure(build, f"{x}-{d}")]).failing
        assert len(hop.path) - 1 == (5 if quadric[x] or quadric[d] else 3)
        (hop,) = explain(build, s, d, [find_failure(build, str(x))]).failing
        assert (len(hop.path) - 1, hop.fault) == (3, "")
        assert x not in hop.path


def test_explain_says_what_is_lost() -> None:
    build = routed(q=3)
    s, x, d = next(p for d in range(2, 13) if len(p := explain(build, 0, d).minimal) == 3)
    (hop,) = explain(build, s, d, [find_failure(build, f"{s}-{x}")]).failing
    assert hop == FailingPath((s,), "lost: no port is left")
    (hop,) = explain(build, s, d, [find_failure(build, str(d))]).failing
    assert hop.fault == f"switch {d} is down"
    for word in ("0-0", "zero", "0-"):
        with pytest.raises(InputError, match="required a node"):
            find_failure(build, word)
    with pytest.raises(InputError, match=r"given 0-2; 0 is joined to 1, 4, 7, 10$"):
        find_failure(build, "0-2")


@pytest.mark.parametrize("q", [2, 3, 4])
def test_search_finds_what_is_constructed(q: int) -> None:
    built = polarfly(q)
    tables = split_direct(routed(q=q).tables, built.wiring)
    found = search_choices(tables, built.topology, built.wiring, built.forwarding)
    ours, theirs = built.tables.classes, found.classes
    assert (np.sort(ours.alternate, axis=2) == np.sort(theirs.alternate, axis=2)).all()
    quadric = np.count_nonzero(built.wiring.far >= 0, axis=1) == q
    direct = np.arange(2 * q + 2) > q
    free = np.tile(quadric[built.wiring.far], 2) & direct  # bounce goals say who comes first there
    assert (ours.protection == theirs.protection).all(axis=2)[~free].all() or q == 2
    assert (built.tables.routes.egress == found.routes.egress).all()


@pytest.mark.parametrize(
    "parameters",
    [
        {"q": 3, "supernode": "inductive-quad", "degree": 3},
        {"q": 3, "supernode": "paley", "degree": 2},
    ],
    ids=str,
)
def test_polarstar_alternates_are_disjoint_and_short(parameters: dict[str, int | str]) -> None:
    """Every alternate of a sample: at most 4 links, none of the minimal path's, not back over s."""
    build = routed("polarstar", **parameters)
    forwarding = with_alternates(protect="node")
    tables = choices(build.tables, build.topology, build.wiring, forwarding)
    build = replace(build, tables=tables, forwarding=forwarding)
    order = build.topology.graph.order
    assert (tables.routes.rows() == routed("polarstar", **parameters).tables.routes.rows()).all()
    counts = []
    for s, d in np.random.default_rng(2).integers(order, size=(60, 2)).tolist():
        found = explain(build, s, d)
        counts.append(len(found.alternates))
        for path in found.alternates:
            assert len(path) <= 5
            assert len(set(path)) == len(path)
            assert not links(path) & links(found.minimal)
    assert np.mean(counts) > 2


def test_split_keeps_every_next_hop() -> None:
    build = routed("polarstar", q=3, supernode="paley", degree=2)
    spread = routed("polarstar", q=3, supernode="paley", degree=2, spread=True, protect="link")
    every = np.arange(build.topology.graph.order)
    cables = build.wiring.far_by_port()
    before = Fib.of(build.tables, cables).next_switch(every)
    assert (Fib.of(spread.tables, cables).next_switch(every) == before).all()


@pytest.mark.parametrize(
    ("written", "count", "expected"),
    [
        ("1/2", 6, (6, 1)),
        ("1/q", 6, (1, 1)),
        ("0", 3, (0, 1)),
        ("1", 3, (1, 0)),
        ("0.1", 9, (1, 1)),
    ],
)
def test_weights_give_the_minimal_path_its_share(
    written: str, count: int, expected: tuple[int, int]
) -> None:
    found = weights(np.array([[count, 0]]), count + 1, share_value(written, 7))
    assert found[0, 0].tolist() == [expected[0], *[expected[1]] * count, 0]
    assert found[0, 1].tolist() == [1] + [0] * (count + 1)


@given(st.fractions(0, 1), st.integers(1, 128))
def test_weights_are_near_any_share(minimal_share: Fraction, count: int) -> None:
    found = weights(np.array([[count]]), count, minimal_share)[0, 0].astype(int)
    assert abs(found[0] / found.sum() - float(minimal_share)) < 0.01


NO_SHARES = [
    "q",
    "1/0",
    "2",
    "-1",
    "1/(q-",
    "q**2",
    "x",
    "1//2",
    "exit()",
    "1 if q else 0",
    "1" * 99,
]


@pytest.mark.parametrize("text", NO_SHARES)
def test_shares_that_are_none(text: str) -> None:
    with pytest.raises(ValueError, match=re.escape(text)):
        share_value(text, 7)


@given(st.text(alphabet="0123456789q.+*/() -", max_size=64))
def test_any_share_has_a_value_or_is_refused(text: str) -> None:
    with suppress(ValueError):
        assert 0 <= share_value(text, 7) <= 1


def test_policy_reaches_the_build_folder(tmp_path: Path) -> None:
    file = tmp_path / "fabric.yaml"
    file.write_text(
        "name: lab\ntopology: {family: polarfly, q: 5}\n"
        "routing: {balance: compact-valiant, protect: link, minimal_share: 1/2, disjoint: none}\n"
    )
    save(compile_fabric(load_fabric(file)), tmp_path / "b")
    build = load(tmp_path / "b")
    assert build.policy == {"minimal_share": "1/2", "disjoint": "none"}
    assert (build.balance, build.forwarding.protect) == ("compact-valiant", "link")
    weight = build.tables.classes.weight[..., 0].astype(int)
    total = build.tables.classes.weight.sum(axis=2)
    assert (weight[total > weight] * 2 == total[total > weight]).all()


@pytest.mark.parametrize(
    ("family", "word", "kept"),
    [
        ("polarfly, q: 3", "auto", "edge"),
        ("polarfly, q: 3", "none", "none"),
        ("pn, q: 2", "auto", "none"),
        ("pn, q: 2", "edge", "edge"),
    ],
)
def test_alternates_share_links_where_a_search_finds_them(
    family: str, word: str, kept: str, tmp_path: Path
) -> None:
    file = tmp_path / "fabric.yaml"
    file.write_text(
        f"name: lab\ntopology: {{family: {family}}}\n"
        f"routing: {{balance: compact-valiant, disjoint: {word}}}\n"
    )
    loaded = load_fabric(file)
    build = compile_fabric(loaded)
    assert build.policy["disjoint"] == kept
    assert build.forwarding.disjoint == (kept == "edge")


def test_fabrics_too_large_to_search_are_refused(tmp_path: Path) -> None:
    file = tmp_path / "fabric.yaml"
    file.write_text("name: lab\ntopology: {family: pn, q: 64}\nrouting: {protect: link}\n")
    with pytest.raises(InputError, match="8,192 switches"):
        load_fabric(file)
