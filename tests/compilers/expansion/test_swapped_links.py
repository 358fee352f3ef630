"""Random graphs grow switch by switch: links swapped, ports kept, rows proved, cables told."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import networkx as nx
import numpy as np
import pytest

from compilers.expansion.grow import SwappedFabric, grow
from compilers.proof.soundness.value_soundness import family
from compilers.topology.adjacency import Graph
from compilers.topology.families import build_topology
from compilers.topology.random_growth import swapped
from inventory.problems import InputError
from polarfab.commands.hardware.expand import command
from polarfab.fabric import Fabric

NODE = {"balance": "compact-valiant", "protect": "node"}


def jellyfish(nodes: int, degree: int, **more: object) -> Fabric:
    topology = {"family": "jellyfish", "nodes": nodes, "degree": degree, "seed": 1}
    return Fabric.from_spec({"name": "lab", "topology": topology, **more})


def cables(fabric: Fabric) -> set[frozenset[tuple[str, int]]]:
    """Every cable as its two ends, node and port."""
    w = fabric.build.wiring
    return {
        frozenset(((w.names[u], int(w.port[u, k])), (w.names[v], int(w.far_port[u, k]))))
        for u, k in np.argwhere(w.far >= 0).tolist()
        for v in [int(w.far[u, k])]
    }


@pytest.mark.parametrize(("nodes", "degree", "count"), [(30, 6, 1), (30, 5, 4), (64, 7, 9)])
def test_every_switch_keeps_its_degree_and_a_link_makes_two(nodes, degree, count) -> None:
    first = build_topology("jellyfish", {"nodes": nodes, "degree": degree, "seed": 2})
    found = swapped(first, count, seed=3)
    graph = found.topology.graph
    assert nx.is_connected(nx.Graph(graph.edges().tolist()))
    assert (graph.degrees[:nodes] == degree).all()
    odd = degree % 2
    assert (graph.degrees[nodes:] >= degree - odd).all()
    assert (graph.degrees[nodes:] < degree).sum() <= odd * (count % 2 + 2)
    edges = {frozenset(edge) for edge in graph.edges().tolist()}
    old = {frozenset(edge) for edge in first.graph.edges().tolist()}
    assert edges - old == {frozenset(edge) for edge in found.added.tolist()}
    assert old - edges == {frozenset(edge) for edge in found.removed.tolist()}
    # Each removed link has left a free end at both of its switches, for a new one.
    ends = np.bincount(found.added.ravel(), minlength=graph.order)[:nodes]
    assert (ends == np.bincount(found.removed.ravel(), minlength=nodes)).all()
    again = swapped(first, count, seed=3).topology.graph
    assert np.array_equal(again.edges(), graph.edges())
    assert not np.array_equal(swapped(first, count, seed=4).topology.graph.edges(), graph.edges())


def test_links_are_drawn_from_all() -> None:
    first = build_topology("jellyfish", {"nodes": 12, "degree": 4, "seed": 0})
    drawn = {tuple(edge) for s in range(200) for edge in swapped(first, 1, s).removed.tolist()}
    assert len(drawn) == first.graph.size


@pytest.mark.parametrize("routing", [{}, NODE], ids=["minimal", "node"])
def test_the_larger_fabric_is_proved_and_grows_again(routing) -> None:
    small = jellyfish(14, 4, routing=routing, hosts_per_node=2)
    report = small.expand("switch:2")
    larger = Fabric.of(report.build)
    assert larger.verify(method="walk").passed
    before, after = cables(small), cables(larger)
    assert report.facts["cables_moved"] == len(before - after) == len(list(report.gone))
    assert report.facts["cables_added"] == len(after - before) == len(list(report.rows))
    ports = [end for cable in after for end in cable]
    assert len(set(ports)) == len(ports)
    a, b = (sorted(end for cable in part for end in cable) for part in (before, after))
    assert set(a) <= set(b)  # the same plugs at every switch that stands
    again = Fabric.of(larger.expand("switch:1", seed=5).build)
    assert again.build.topology.title().endswith("switches=2:0+1:5")
    assert again.verify().passed


def test_rows_stay_where_they_lead_along_a_shortest_path() -> None:
    small = jellyfish(40, 5).build
    larger = grow(small, "switch", 1).build
    orders = [b.tables.classes.port[:40] for b in (small, larger)]
    rows = [b.tables.routes.egress[:40, :40].astype(int) for b in (small, larger)]
    out = [
        np.take_along_axis(p, np.where(r < p.shape[1], r, 0), 1)
        for p, r in zip(orders, rows, strict=True)
    ]
    near = dict(nx.all_pairs_shortest_path_length(nx.Graph(larger.topology.graph.edges().tolist())))
    w = larger.wiring
    far = {(s, int(w.port[s, k])): int(w.far[s, k]) for s, k in np.argwhere(w.far >= 0).tolist()}
    was = {
        (s, int(small.wiring.port[s, k])): int(small.wiring.far[s, k])
        for s, k in np.argwhere(small.wiring.far >= 0).tolist()
    }
    for s, d in np.argwhere(out[0] != out[1]).tolist():
        port = int(out[0][s, d])
        assert s == d or was[s, port] != far[s, port] or near[was[s, port]][d] >= near[s][d]


def test_a_tampered_larger_graph_is_told() -> None:
    build = grow(jellyfish(14, 4).build, "switch", 1, seed=2).build
    assert not [*family(build)]
    other = grow(jellyfish(14, 4).build, "switch", 1, seed=3).build
    wrong = replace(build.topology, graph=other.topology.graph)
    assert [*family(replace(build, topology=wrong))]
    said = replace(build.topology, parameters={**build.topology.parameters, "switches": "1:x"})
    assert [*family(replace(build, topology=said))]


def test_the_running_fabric_loses_nothing_by_way_of_one_without_these_cables(
    tmp_path: Path,
) -> None:
    (tmp_path / "inventory.yaml").write_text(
        "node_types: {sw: {ports: [{name: 'eth{}', count: 8}]}}\ngenerate: {type: sw}\n"
    )
    spec = tmp_path / "fabric.yaml"
    text = "name: lab\ntopology: {family: jellyfish, nodes: 12, degree: 4, seed: 1}\n"
    spec.write_text(text + f"routing: {json.dumps(NODE)}\ninventory: inventory.yaml\n")
    old = Fabric.from_spec(spec).compile()
    report = old.expand("switch:1")
    gone = report.as_dict()["removed"]
    dead = [{"a": row["a_node"], "b": row["b_node"]} for row in gone]
    with (tmp_path / "inventory.yaml").open("a") as file:
        file.write(f"dead_links: {json.dumps(dead)}\n")
    between = Fabric.from_spec(spec).compile()
    there, on = old.plan(between, mixtures=1), between.plan(Fabric.of(report.build), mixtures=1)
    # The first move is lossless while the cables stay in; they are idle when it is over.
    assert not there.proof.faults
    assert len(there.loss.cables) == report.facts["cables_moved"] == 2
    assert on.lossless


@pytest.mark.parametrize(
    ("clusters", "words"),
    [
        ("quadric:1", "required switch:N, by which a jellyfish grows, given quadric"),
        ("switch:0", "required at least 1 switch, given 0"),
        ("Switch", "write it like quadric:2, fan:1, nucleus or switch:2"),
    ],
)
def test_refusals(clusters: str, words: str) -> None:
    with pytest.raises(InputError) as error:
        jellyfish(12, 4).expand(clusters)
    assert words in str(error.value)


def test_a_random_graph_that_is_not_whole_does_not_grow() -> None:
    topology = jellyfish(12, 4).compile().build.topology
    left = [edge for edge in topology.graph.edges().tolist() if min(edge) > 1]
    missing = replace(topology, graph=Graph.from_edges(12, np.array(left)))
    with pytest.raises(InputError, match="a whole fabric, given 2 switches missing"):
        SwappedFabric(missing, 0).require("switch", 1)


def test_a_graph_without_room_and_a_family_that_does_not_grow(tmp_path: Path) -> None:
    (tmp_path / "star.txt").write_text("".join(f"hub leaf{n}\n" for n in range(5)))
    (tmp_path / "star.yaml").write_text("name: s\ntopology: {family: graph, file: star.txt}\n")
    with pytest.raises(InputError, match="a link away from the new switch's neighbours"):
        Fabric.from_spec(tmp_path / "star.yaml").expand("switch:1")
    slim = {"name": "lab", "topology": {"family": "slimfly", "q": 5}}
    with pytest.raises(InputError, match="a PolarFly, a graph or a jellyfish"):
        Fabric.from_spec(slim).expand("switch:1")


def test_the_verb_writes_what_is_added_and_what_goes(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "ring.txt").write_text("a b\nb c\nc d\nd e\ne a\na c\nb d\n")
    spec = tmp_path / "fabric.yaml"
    spec.write_text("name: lab\ntopology: {family: graph, file: ring.txt}\nplanes: 2\n")
    words = [str(spec), "--clusters", "switch:1", "--seed", "3", "-o", str(tmp_path / "larger")]
    command.main(words, standalone_mode=False)
    assert "p1-added-5" in capfd.readouterr().out
    added, removed = (
        (tmp_path / f"larger-{word}-cables.csv").read_text().splitlines()
        for word in ("added", "removed")
    )
    assert (len(added), len(removed)) == (1 + 2 * 2, 1 + 2 * 1)  # degree 3: one port stays unused
