"""Minimal paths by algebra, against networkx' searches in the graphs of the definitions."""

from __future__ import annotations

from typing import Any

import networkx as nx
import numpy as np
import pytest

import polarfab
from compilers.forwarding.algebraic_paths import plane, star
from compilers.forwarding.family_paths import FamilyPaths, family_paths
from compilers.topology.families import build_topology
from compilers.topology.labelled_graph import Topology
from compilers.topology.polarity import lines
from inventory.problems import InputError
from tests.polarfab.conftest import Run

MEMBERS = [
    *(("polarfly", {"q": q}) for q in (2, 3, 4, 5, 8)),
    *(("pn", {"q": q}) for q in (2, 3, 4)),
    *(("oft", {"q": q}) for q in (2, 3)),
    *(
        ("polarstar", {"q": q, "supernode": kind, "degree": degree})
        for q, kind, degree in (
            (2, "inductive-quad", 0),
            (3, "inductive-quad", 3),
            (3, "paley", 2),
            (4, "paley", 2),
            (3, "complete", 2),
            (3, "bdf", 3),
            (3, "cayley", 4),
        )
    ),
]
"""Odd and even q, quadrics' loops, and bijections that are involutions or not."""


def graph_of(topology: Topology) -> nx.Graph[int]:
    graph: nx.Graph[int] = nx.Graph()
    graph.add_nodes_from(range(topology.graph.order))
    graph.add_edges_from(topology.graph.edges().tolist())
    return graph


def pairs_of(topology: Topology) -> tuple[np.ndarray, np.ndarray]:
    ends = np.flatnonzero(topology.endpoints).astype(np.int32)
    sources, destinations = np.meshgrid(ends, ends, indexing="ij")
    return sources.ravel(), destinations.ravel()


def test_a_pair_is_as_in_the_paper() -> None:
    """Formula (2) of the PolarFly paper with its signs corrected, by hand: in F_31."""
    assert polarfab.minimal_path("polarfly", 17, 400, q=31) == [17, 440, 400]
    (_, middle, _) = family_paths("polarfly", {"q": 31}).steps([17, 440, 400])
    assert middle.coordinates == (1, 13, 5)
    assert middle.reason == "(0, 1, 16) × (1, 11, 27) = (6, 16, 30) = 6 (1, 13, 5)"


@pytest.mark.parametrize(("family", "parameters"), MEMBERS)
def test_every_path_is_a_shortest_one(family: str, parameters: dict[str, Any]) -> None:
    topology = build_topology(family, parameters)
    graph = graph_of(topology)
    distance = dict(nx.all_pairs_shortest_path_length(graph))
    sources, destinations = pairs_of(topology)
    table = polarfab.minimal_path(family, sources, destinations, **parameters)
    for source, destination, row in zip(sources, destinations, table.tolist(), strict=True):
        path = [vertex for vertex in row if vertex >= 0]
        assert (path[0], path[-1]) == (source, destination)
        assert len(path) - 1 == distance[source][destination]
        assert nx.is_path(graph, path)


@pytest.mark.parametrize("q", [2, 3, 4, 5, 8, 9, 13, 16])
def test_first_neighbours_are_those_of_the_lines(q: int) -> None:
    """They are by algebra, too: the table of all lines, which is the graph, is not made."""
    around = lines(q)
    assert np.array_equal(plane(q).first_neighbour, around[:, 0])
    itself = around[:, 0] == np.arange(len(around))
    expected = np.where(itself, around[:, 1], around[:, 0])
    assert np.array_equal(star(q, "complete", 2).first_neighbour, expected)


@pytest.mark.parametrize(("family", "q"), [("polarfly", 4), ("pn", 3), ("pn", 4), ("oft", 3)])
def test_all_paths_are_all_that_there_are(family: str, q: int) -> None:
    topology = build_topology(family, {"q": q})
    graph = graph_of(topology)
    for source, destination in zip(*map(np.ndarray.tolist, pairs_of(topology)), strict=True):
        paths = polarfab.minimal_paths(family, source, destination, q=q)
        assert sorted(paths) == sorted(nx.all_shortest_paths(graph, source, destination))


@pytest.mark.parametrize(("family", "parameters"), [MEMBERS[2], MEMBERS[-1]])
def test_machine_code_follows_the_same_rule(
    family: str, parameters: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    paths = family_paths(family, parameters)
    pairs = pairs_of(build_topology(family, parameters))
    monkeypatch.setenv("POLARFAB_LOOPS", "python")
    expected = paths.paths(*pairs)
    monkeypatch.setenv("POLARFAB_LOOPS", "machine")
    assert np.array_equal(paths.paths(*pairs), expected)


@pytest.mark.parametrize(("family", "parameters"), MEMBERS[::5])
def test_each_step_has_the_coordinates_of_its_vertex(
    family: str, parameters: dict[str, Any]
) -> None:
    paths: FamilyPaths = family_paths(family, parameters)
    topology = build_topology(family, parameters)
    for source, destination in zip(*map(np.ndarray.tolist, pairs_of(topology)), strict=True):
        path = paths.path(source, destination)
        steps = [*paths.steps(path)]
        assert [step.vertex for step in steps] == path
        assert [[*step.coordinates] for step in steps] == topology.coordinates[path].tolist()
        assert all(step.reason for step in steps)


@pytest.mark.parametrize(
    ("family", "source", "destination", "parameters", "message"),
    [
        ("jellyfish", 1, 2, {"nodes": 8, "degree": 3}, "family: required one of polarfly"),
        ("polarfly", 1, 57, {"q": 7}, "destination: required a vertex, from 0 to 56, given 57"),
        ("polarfly", -1, 2, {"q": 7}, "source: required a vertex, from 0 to 56, given -1"),
        ("polarfly", 1, 2, {"q": 6}, "q: required a prime power from 2 to 1024, given 6"),
        ("polarfly", 1, 2, {}, "q: required"),
        ("oft", 0, 15, {"q": 3}, "required a leaf, from 0 to 12 or from 26 to 38, given 15"),
        ("polarfly", np.array([1, 57]), np.array([2, 3]), {"q": 7}, "given 57"),
        ("polarfly", np.array([1.5]), np.array([2.0]), {"q": 7}, "two integers, or two arrays"),
        ("polarfly", np.array(1), np.array(2), {"q": 7}, "two integers, or two arrays"),
        ("polarfly", np.array([1, 2]), np.arange(3), {"q": 7}, "one length, given 2 and 3"),
        ("oft", np.array([0, 15, 26]), np.array([1, 2, 3]), {"q": 3}, "a leaf, .*, given 15$"),
        ("oft", np.array([0, 2]), np.array([26, 13]), {"q": 3}, "^destination: .*, given 13$"),
    ],
)
def test_what_has_no_path_is_refused(
    family: str, source: Any, destination: Any, parameters: dict[str, Any], message: str
) -> None:
    with pytest.raises(InputError, match=message.replace("(", r"\(")):
        polarfab.minimal_path(family, source, destination, **parameters)


def test_the_verb_shows_the_vectors(polarfab: Run) -> None:
    code, out, err = polarfab("path", "polarfly", "--q", "31", "17", "400")
    assert (code, err) == (0, "")
    assert "(1, 13, 5) · (1, 11, 27) = 0: joined" in out
    code, out, err = polarfab("path", "pn", "--q", "3", "0", "25")
    assert (code, err) == (0, "one of 4 minimal paths: --all shows them\n")
    assert polarfab("path", "pn", "--q", "3", "0", "25", "--all")[1].count("3 links") == 4
    code, _, err = polarfab("path", "oft", "--q", "3", "15", "99")
    assert code == 2
    assert "SOURCE: required a leaf" in err
    assert "DESTINATION: required a leaf" in err
