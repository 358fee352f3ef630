"""Every format read back, by networkx where it has a reader."""

import io
import json
import time

import networkx as nx
import numpy as np
import pytest

from compilers.families.polarfly import PolarFly
from compilers.topology.files.graph_formats import GRAPH_FORMATS, pieces


@pytest.fixture(scope="module")
def topology():
    return PolarFly().build({"q": 7})


def text(topology, format, **options):
    stream = io.StringIO()
    stream.writelines(pieces(topology, format, **options))
    return stream.getvalue()


def same(graph, topology):
    assert sorted(map(int, graph.nodes)) == list(range(topology.graph.order))
    edges = sorted(sorted(map(int, edge)) for edge in graph.edges)
    assert edges == topology.graph.edges().tolist()


def test_edges(topology):
    rows = [list(map(int, line.split())) for line in text(topology, "edges").splitlines()]
    assert rows == topology.graph.edges().tolist()


def test_json(topology):
    data = json.loads(text(topology, "json"))
    assert data["family"] == "polarfly"
    assert (data["nodes"], data["links"], data["diameter"]) == (57, 224, 2)
    assert data["degrees"] == {"7": 8, "8": 49}
    assert data["parameters"] == {"q": 7}
    assert data["edges"] == topology.graph.edges().tolist()
    assert data["vertices"][0] == {
        "id": 0,
        "kind": "V2",
        "coordinates": [0, 0, 1],
        "endpoint": True,
    }
    assert [v["coordinates"] for v in data["vertices"]] == topology.coordinates.tolist()


def test_node_link(topology):
    graph = nx.node_link_graph(json.loads(text(topology, "node-link")), edges="edges")
    same(graph, topology)
    assert graph.graph["diameter"] == 2
    assert graph.nodes[3]["coordinates"] == topology.coordinates[3].tolist()


def test_graphml(topology):
    graph = nx.parse_graphml(text(topology, "graphml"))
    same(graph, topology)
    assert graph.nodes["0"] == {"kind": "V2", "coordinates": "0 0 1", "endpoint": True}


def test_dot(topology):
    lines = text(topology, "dot").splitlines()
    assert lines[0] == 'graph "polarfly q=7" {'
    assert lines[1] == '  0 [kind="V2" coordinates="0 0 1"];'
    edges = [list(map(int, x.strip("; ").split(" -- "))) for x in lines if "--" in x]
    assert edges == topology.graph.edges().tolist()


@pytest.mark.parametrize("hosts", [0, 3])
def test_booksim(topology, hosts):
    graph, attached = nx.Graph(), []
    for line in text(topology, "anynet", hosts_per_node=hosts).splitlines():
        words = line.split()
        assert words[0] == "router"
        for kind, number in zip(words[2::2], words[3::2], strict=True):
            if kind == "router":
                assert not graph.has_edge(int(words[1]), int(number))
                graph.add_edge(int(words[1]), int(number))
            else:
                attached.append((int(number), int(words[1])))
    same(graph, topology)
    assert attached == [(h, h // hosts) for h in range(57 * hosts)]


def test_many_edges_in_seconds():
    topology = PolarFly().build({"q": 61})
    start = time.process_time()
    written = text(topology, "edges")
    assert time.process_time() - start < 2
    assert np.array_equal(np.fromstring(written, sep=" ").reshape(-1, 2), topology.graph.edges())


@pytest.mark.parametrize("format", GRAPH_FORMATS)
def test_deterministic(topology, format):
    assert text(topology, format) == text(PolarFly().build({"q": 7}), format)
