"""The local proof against the walk: on good builds, and on builds with one value changed."""

from __future__ import annotations

import json
from dataclasses import replace

import numpy as np
import pytest

from compilers.forwarding import machine_code
from compilers.proof.failures.failure_walks import walk
from compilers.proof.local.local_proof import local_proof, provable
from compilers.proof.proof_options import ProofOptions
from compilers.proof.proved import Proved
from compilers.proof.verification import judge
from compilers.proof.walks.delivery import promised_failures, verify
from compilers.tables.build import Build
from compilers.tables.folders.build_folder import save
from compilers.topology.adjacency import Graph
from tests.compilers.proof.makers import (
    BOUNCED,
    FABRICS,
    KINDS,
    MARKED,
    SPOILS,
    assert_alike,
    damaged,
    fabric,
    harmful,
    protected,
    swapped_cables,
    swapped_ports,
    with_classes,
)
from tests.compilers.routed import routed

pytestmark = pytest.mark.usefixtures("machine_code")

SMALL = [name for name in FABRICS if name not in ("seven", "eight")]


@pytest.mark.parametrize(
    ("name", "spread"),
    [
        *((name, True) for name in (*SMALL, "damaged", BOUNCED, MARKED)),
        *((name, False) for name in ("odd", "oft")),
    ],
)
def test_it_agrees_with_the_walk(name: str, spread: bool) -> None:
    found, proof = assert_alike(fabric(name, spread))
    assert found.alternates.max_hops == walk(fabric(name, spread), ()).alternates.max_hops
    assert not any(report.lost_pairs for report in found.failures)
    if name not in ("oft", "damaged"):
        assert not len(proof.unproved_destinations)


@pytest.mark.parametrize("spoil", SPOILS)
def test_it_agrees_on_spoilt_tables(spoil) -> None:  # type: ignore[no-untyped-def]
    assert_alike(spoil(protected("polarfly", q=3)))


def test_it_agrees_on_mutants() -> None:
    modes = [("odd", False), ("odd", True), ("pn", False), ("pn", True)]
    modes += [(BOUNCED, True), (MARKED, True)]
    assert sum(harmful(fabric(*mode), 12, seed=1) for mode in modes) >= 10


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
def test_it_agrees_on_several_changes_at_once(name: str) -> None:
    random, lossy = np.random.default_rng(5), 0
    for number in range(6):
        changes = random.choice(len(CHANGES), size=1 + number % 3).tolist()
        build = fabric(name, True)
        for change in changes:
            build = CHANGES[change](build, random)
        if build.topology.endpoints.any():
            found, _ = assert_alike(build, f"{[CHANGES[c].__name__ for c in changes]}")
            lossy += any(report.lost_pairs for report in found.failures)
    assert lossy


@pytest.mark.parametrize("name", ["even", MARKED])
def test_what_is_proved_holds_whatever_the_weights(name: str) -> None:
    """Those that are fitted, too, down to one way of a class."""
    random, build = np.random.default_rng(3), fabric(name, True)
    for share in (0.2, 0.5, 0.8):
        weight = build.tables.classes.weight.copy()
        weight[random.random(weight.shape) < share] = 0
        found, _ = assert_alike(with_classes(build, weight=weight))
        assert not found.alternates.strays
        assert not any(report.lost_pairs for report in found.failures)


def test_hosts_without_a_weighted_path_take_as_many_links_as_others() -> None:
    build = fabric("odd", False)
    nothing = with_classes(build, weight=np.zeros_like(build.tables.classes.weight))
    assert walk(nothing, ()).alternates.max_hops == walk(build, ()).alternates.max_hops == 2
    assert_alike(nothing)


@pytest.mark.long
@pytest.mark.parametrize("spread", [False, True])
@pytest.mark.parametrize("name", [*FABRICS, "damaged", BOUNCED, MARKED])
def test_it_agrees_on_many_mutants(name: str, spread: bool) -> None:
    """More than 400 that lose packets, over nine fabrics and both modes."""
    large = name in ("iq", "paley", "seven", "eight")
    assert harmful(fabric(name, spread), 100 if large else 240, seed=2) >= (3 if large else 6)


def test_rows_of_no_prefix_prove_nothing() -> None:
    """Quadric supernodes have fewer rows than others; what follows them is for nobody."""
    build = fabric("iq", False)
    routes, last = build.tables.routes, len(build.wiring.far) + len(build.tables.routes.prefix)
    supernode, row = np.argwhere(routes.prefix == last)[0]
    egress = routes.egress.copy()
    egress[supernode * build.topology.hierarchy, row] = 0
    more = replace(build, tables=replace(build.tables, routes=replace(routes, egress=egress)))
    for method in ("local", "walk"):
        assert (
            "without hosts"
            in verify(more, ProofOptions(failures=(), method=method)).unsound.texts()[0]
        )


def test_what_is_not_provable_is_walked() -> None:
    """Packets in transit that choose."""
    every_hop = fabric("odd", False)
    forwarding = replace(every_hop.forwarding, alternates="shortest", every_hop=True)
    every_hop = replace(every_hop, forwarding=forwarding)
    assert not provable(every_hop)
    assert verify(every_hop, ProofOptions(failures=(), method="local")).local is None


def test_constructed_alternates_are_looked_for() -> None:
    """In a whole PolarFly, as the detours that small ones are walked for."""
    build = routed(q=5, spread=True, protect="node")
    assert verify(build, ProofOptions(failures=(), method="local")).passed
    alternate = build.tables.classes.alternate.copy()
    alternate[3, 2, -1], alternate[4, 1] = 0, alternate[4, 2]
    spoilt = with_classes(build, alternate=alternate)
    texts = verify(spoilt, ProofOptions(failures=(), method="local")).unsound.texts()
    assert any("alternate" in text for text in texts)


def test_rows_by_a_class_for_others_are_found() -> None:
    build = routed(q=5, spread=True, protect="node")
    egress, links = build.tables.routes.egress.copy(), build.wiring.far.shape[1]
    other = np.flatnonzero((egress[0] > 0) & (egress[0] < links))[0]
    egress[0, other] += links
    tables = replace(build.tables, routes=replace(build.tables.routes, egress=egress))
    texts = verify(
        replace(build, tables=tables), ProofOptions(failures=(), method="local")
    ).unsound.texts()
    assert any("rows for the neighbour alone" in text for text in texts)


def test_a_grown_fabric_with_as_many_links_is_no_whole_polarfly() -> None:
    """No two failures lose a pair: only ER_q keeps that promise."""
    build = fabric("odd", False)
    more = np.append(build.topology.graph.edges()[1:], [[12, 13]], axis=0)
    grown = replace(build.topology, graph=Graph.from_edges(14, more))
    assert promised_failures(build) == ("link", "node", "2")
    assert promised_failures(replace(build, topology=grown)) == ("link", "node")


def test_the_mark_says_what_was_proved_without_a_walk(tmp_path) -> None:  # type: ignore[no-untyped-def]
    build = damaged(True)
    save(build, tmp_path / "build")
    place = [build], [tmp_path / "build"]
    judge(*place, ProofOptions(failures=["link"], method="local"))
    assert Proved.read(tmp_path / "build", build).certified == ("delivery", "alternates", "link")
    judge(*place, ProofOptions(failures=["node"], method="walk"))
    proved = Proved.read(tmp_path / "build", build)
    assert (proved.failures, proved.certified) == (("link", "node"), ("link",))
    mark = json.loads((tmp_path / "build/verified.json").read_text())
    assert mark["local"] is None


@pytest.mark.parametrize("name", ["iq", BOUNCED])
def test_it_is_the_same_in_machine_code(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    build, found = fabric(name, True), []
    for choice in ("python", "machine"):
        monkeypatch.setenv(machine_code.LOOPS_VARIABLE, choice)
        proof = local_proof(build, KINDS)
        parts = (proof.longest, proof.choices, proof.hop_counts, *proof.stretch.values())
        found.append([part.tolist() for part in (proof.unproved_destinations, *parts)])
    assert found[0] == found[1]
