"""The proof of the lines of a PolarFly against walks of the rows that are computed from them."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from compilers.proof.proof_options import ProofOptions
from compilers.proof.soundness.build_soundness import unwalkable_values
from compilers.proof.walks.delivery import verify
from compilers.proof.walks.minimal_walk import walk_minimal
from compilers.routing.plane_minimal import polarfly_routes
from compilers.routing.split_classes import split_direct
from compilers.tables import computed_array
from compilers.tables.build import Build
from compilers.tables.intermediate_form import Classes, Tables
from compilers.tables.line_rows import LineEgress, LineProgram
from compilers.topology.adjacency import Graph
from compilers.topology.field import field
from compilers.wiring.generated_inventory import generated_inventory
from compilers.wiring.wire import wire
from extensions.scale.plane_lines import proved_lines
from extensions.scale.row_sample import sampled_rows_minimal
from tests.compilers.proof.makers import swapped_cables, swapped_ports
from tests.compilers.routed import routed


@pytest.fixture(autouse=True)
def packed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(computed_array, "STORED_CELLS", 0)


def computed(q: int, split: bool = False) -> Build:
    build = routed("polarfly", q=q)
    tables = replace(build.tables, routes=polarfly_routes(build.topology))
    return replace(build, tables=split_direct(tables, build.wiring) if split else tables)


def with_rows(build: Build, egress: Any) -> Build:
    return replace(
        build, tables=replace(build.tables, routes=replace(build.tables.routes, egress=egress))
    )


def stored(build: Build) -> Build:
    """The build with its rows, which a walk then reads as they would be emitted."""
    return with_rows(build, np.asarray(build.tables.routes.egress))


@pytest.mark.parametrize("q", [2, 3, 4, 5, 8])
@pytest.mark.parametrize("split", [False, True])
def test_lines_prove_what_their_rows_do(q: int, split: bool) -> None:
    build = computed(q, split)
    walked = walk_minimal(stored(build), None)
    assert proved_lines(build) == walked.hop_counts
    assert sampled_rows_minimal(build, 1)
    report = verify(build, ProofOptions(failures=(), method="local"))
    assert report.passed
    assert report.local
    assert report.local.program
    assert proved_lines(stored(build)) is None


@pytest.mark.parametrize(("q", "split"), [(3, True), (4, False), (5, True)])
def test_lines_prove_nothing_that_is_not_so(q: int, split: bool) -> None:
    """No mutant that loses a pair, or takes a detour, is proved; columns are those of its rows."""
    random, harmful = np.random.default_rng(3), 0
    build = computed(q, split)
    program: LineProgram = build.tables.routes.egress.packed  # type: ignore[union-attr]
    every = np.arange(len(program.around))
    for number in range(40):
        if number % 4 == 0:
            mutant = swapped_ports(build, random)
        elif number % 4 == 1:
            mutant = swapped_cables(build, random)
        else:
            around = program.around.copy()
            place = tuple(random.integers(around.shape))
            around[place] = random.integers(len(around))
            if number % 4 == 3:
                around[place[0]].sort()
            egress = LineEgress(replace(program, around=around))
            assert np.array_equal(egress.towards(every), np.asarray(egress))
            assert np.array_equal(egress[every[:, None], every], np.asarray(egress))
            mutant = with_rows(build, egress)
        if unwalkable_values(mutant).count:
            harmful += 1
            continue
        counts, walked = proved_lines(mutant), walk_minimal(stored(mutant), None)
        assert counts in (None, walked.hop_counts)
        assert counts is None or walked.minimal == walked.pairs
        harmful += walked.minimal < walked.pairs
    assert harmful >= 20


def test_a_switch_twice_on_its_own_line_is_no_traceback() -> None:
    build = computed(3)
    program: LineProgram = build.tables.routes.egress.packed  # type: ignore[union-attr]
    around = program.around.copy()
    quadric = int(np.flatnonzero((around == np.arange(len(around))[:, None]).any(axis=1))[0])
    around[quadric, :2] = quadric
    assert proved_lines(with_rows(build, LineEgress(replace(program, around=around)))) is None


def rewired(q: int) -> Build:
    """Two links between other ends, and the cables, ports and lines that follow from that."""
    build = computed(q)
    edges = build.topology.graph.edges()
    joined = {(u, v) for u, v in edges.tolist()}
    one, other = next(
        (i, j)
        for i, (a, b) in enumerate(edges.tolist())
        for j, (c, d) in enumerate(edges.tolist())
        if len({a, b, c, d}) == 4 and not {(a, d), (d, a), (c, b), (b, c)} & joined
    )
    edges = edges.copy()
    edges[[one, other], 1] = edges[[other, one], 1]
    graph = Graph.from_edges(build.topology.graph.order, np.sort(edges, axis=1))
    topology = replace(build.topology, graph=graph)
    wiring = wire(topology, generated_inventory(topology, 1), 1)
    around = np.sort(np.where(wiring.far < 0, np.arange(graph.order)[:, None], wiring.far))
    egress: Any = LineEgress(LineProgram(around.astype(np.int32), np.zeros(1, np.int32)))
    routes = replace(build.tables.routes, egress=egress)
    tables = Tables(routes, Classes.minimal(wiring.port))
    return replace(build, topology=topology, wiring=wiring, tables=tables)


@pytest.mark.parametrize("q", [3, 4, 7])
def test_lines_that_are_no_plane_s_prove_nothing(q: int) -> None:
    mutant = rewired(q)
    assert not unwalkable_values(mutant).count
    assert proved_lines(mutant) is None
    walked = walk_minimal(stored(mutant), None)
    assert walked.delivered < walked.pairs


@pytest.mark.parametrize("wrong", ["a point twice", "a point doubled", "none", "another's"])
def test_coordinates_are_the_points_of_the_plane(wrong: str) -> None:
    build = computed(5)
    point = build.topology.coordinates.copy()
    if wrong == "a point twice":
        point[7] = point[8]
    elif wrong == "a point doubled":
        point[7] = field(5).mul[2, point[7]]
    elif wrong == "none":
        point[7] = 0
    else:
        point[[7, 8]] = point[[8, 7]]
    assert proved_lines(build)
    topology = replace(build.topology, coordinates=point)
    assert proved_lines(replace(build, topology=topology)) is None


def test_classes_of_neighbours_begin_where_the_lines_say() -> None:
    build = computed(3, split=True)
    program: LineProgram = build.tables.routes.egress.packed  # type: ignore[union-attr]
    for wrong in (0, 1, 3):
        mutant = with_rows(build, LineEgress(replace(program, direct=np.array([wrong], np.int32))))
        assert proved_lines(mutant) is None or wrong == 0
        walked = walk_minimal(stored(mutant), None)
        assert bool(proved_lines(mutant)) == (walked.minimal == walked.pairs)


class WrongRows(LineEgress):
    """Rows of which those of quadrics are not what the program says."""

    def rows(self, number: Any) -> Any:
        found = super().rows(number)
        some = self.quadric[number]
        found[some] = np.roll(found[some], 1, axis=1)
        return found


def test_rows_beside_them_tell_a_wrong_decoding() -> None:
    build = computed(5)
    build = with_rows(build, WrongRows(build.tables.routes.egress.packed))  # type: ignore[union-attr]
    assert proved_lines(build)
    report = verify(build, ProofOptions(failures=(), method="local"))
    assert not report.passed
    assert report.local is None
    assert "local proof" in report.unsound.texts()[0]


def test_a_port_without_a_cable_is_no_way_to_a_switch_s_own_hosts() -> None:
    build = computed(5)
    egress = np.asarray(build.tables.routes.egress).copy()
    # The last link of a quadric does not exist, so that class has no port.
    quadrics = np.flatnonzero(build.wiring.far[:, -1] < 0)
    egress[quadrics, quadrics] = build.wiring.far.shape[1] - 1
    assert sampled_rows_minimal(stored(build), 1)
    assert not sampled_rows_minimal(with_rows(build, egress), 1)
