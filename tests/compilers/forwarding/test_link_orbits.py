"""Links that are alike: few in a plane, and more where tables differ somewhere."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from compilers.evaluation.worst_traffic import best_assignment
from compilers.forwarding.link_crossings import LinkCrossings
from compilers.forwarding.link_orbits import orbit_representatives
from compilers.tables.build import Build
from compilers.topology.families import family_of
from compilers.topology.polarity import symmetries
from tests.compilers.routed import routed


def unlike(build: Build) -> int:
    """How many links are looked at; the worst loads of the others are among theirs."""
    crossings = LinkCrossings.of(build)
    some = orbit_representatives(build.topology, crossings)
    every = crossings.loads(crossings.arcs)
    peaks = np.array([load[best_assignment(load)].sum() for load in every])
    assert {*peaks.round(9)} == {*peaks[some].round(9)}
    return len(some)


@pytest.mark.parametrize("q", [3, 4, 5])
def test_symmetries_keep_all_links(q: int) -> None:
    edges = routed(q=q).topology.graph.edges()
    known = {frozenset(edge) for edge in edges.tolist()}
    for vertex in symmetries(q):
        assert sorted(vertex) == list(range(q * q + q + 1))
        assert {frozenset(edge) for edge in vertex[edges].tolist()} == known


def test_symmetries_of_the_structure_move_supernodes() -> None:
    """Also with repair ports, if no packet that is followed meets one."""
    build = routed("polarstar", protect="node", q=2, supernode="inductive-quad", degree=3)
    edges = {frozenset(edge) for edge in build.topology.graph.edges().tolist()}
    maps = [*family_of("polarstar").symmetries(build.topology)]
    assert maps
    for vertex in maps:
        assert {frozenset(edge) for edge in vertex[build.topology.graph.edges()].tolist()} == edges
    assert unlike(build) < len(LinkCrossings.of(build).arcs) / 2


@pytest.mark.parametrize(
    "build",
    [
        routed(q=3),
        routed(q=4, spread=True),
        routed(q=3, spread=True, protect="node"),
        routed(q=3, spread=True, marks=True, protect="node"),
    ],
    ids=["minimal", "compact-valiant", "repaired", "marked"],
)
def test_those_left_out_have_the_load_of_one_that_is_not(build: Build) -> None:
    assert unlike(build) <= 8


def test_one_weight_that_differs_makes_links_unlike() -> None:
    build = routed(q=3, spread=True)
    classes = build.tables.classes
    weight = np.array(classes.weight)
    weight[5, 0, 0] += 1
    other = replace(classes, weight=weight)
    edited = replace(build, tables=replace(build.tables, classes=other))
    assert unlike(edited) > 8
