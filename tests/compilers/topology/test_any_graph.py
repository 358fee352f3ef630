"""Graphs from files: every form read back, every mistake said with its line."""

import json
import runpy

import networkx as nx
import numpy as np
import pytest

from compilers.topology.families import BASELINES, build_topology, check_topology, vertex_names
from compilers.topology.files.graph_file import graph_file
from compilers.topology.files.graph_formats import pieces
from inventory.problems import InputError

HOST_FORMS = ("graphml", "json", "node-link", "anynet")
PETERSEN = nx.petersen_graph()


@pytest.mark.parametrize("form", ["edges", *HOST_FORMS])
def test_what_is_written_is_read(form, tmp_path):
    whole = BASELINES["megafly"].build({"h": 1, "a": 4})
    with (file := tmp_path / "g.txt").open("w") as stream:
        stream.writelines(pieces(whole, form))
    read = build_topology("graph", {"file": str(file)})
    assert read.parameters == {"file": "g.txt"}
    assert np.array_equal(read.graph.edges(), whole.graph.edges())
    assert read.diameter == whole.diameter
    carrying = whole.endpoints if form in HOST_FORMS else np.ones_like(whole.endpoints)
    assert np.array_equal(read.endpoints, carrying)


@pytest.mark.parametrize(
    ("name", "write_it"),
    [
        ("g.edges", lambda file: nx.write_edgelist(PETERSEN, file)),
        ("g.adjlist", lambda file: nx.write_adjlist(PETERSEN, file)),
        ("g.graphml", lambda file: nx.write_graphml(PETERSEN, file)),
        ("n.json", lambda file: file.write_text(json.dumps(nx.node_link_data(PETERSEN)))),
        ("a.json", lambda file: file.write_text(json.dumps(nx.adjacency_data(PETERSEN)))),
    ],
)
def test_what_networkx_writes_is_read(name, write_it, tmp_path):
    write_it(tmp_path / name)
    found = build_topology("graph", {"file": str(tmp_path / name)})
    assert found.graph.edges().tolist() == sorted(sorted(edge) for edge in PETERSEN.edges)
    assert (found.diameter, found.endpoints.all()) == (2, True)


RING = [[0, 1], [0, 3], [1, 2], [2, 3]]
GML_OF_IGRAPH = """Creator "igraph version 0.10"
Version 1
graph
[
  directed 0
  node
  [
    id 0
    name "a b"
  ]
  node
  [
    id 1
  ]
  edge
  [
    source 1
    target 0
  ]
]
"""
YED = """<?xml version="1.0" encoding="UTF-8" standalone="no"?>
<graphml xmlns="http://graphml.graphdrawing.org/xmlns"
    xmlns:y="http://www.yworks.com/xml/graphml">
 <key for="node" id="d6" yfiles.type="nodegraphics"/>
 <graph edgedefault="undirected" id="G">
  <node id="n0" yfiles.foldertype="group">
   <graph edgedefault="undirected" id="n0:">
    <node id="n0::n0"><data key="d6"><y:ShapeNode/></data></node>
    <node id="n0::n1" yfiles.foldertype="group">
     <graph edgedefault="undirected" id="n0::n1:"><node id="n0::n1::n0"/></graph>
    </node>
   </graph>
  </node>
  <node id="n1"/>
  <edge id="e0" source="n0::n0" target="n0::n1::n0"/>
  <edge id="e1" source="n0::n1::n0" target="n1"/>
 </graph>
</graphml>
"""


@pytest.mark.parametrize(
    ("name", "text", "names", "edges"),
    [
        ("g.txt", "a b 3\nb c 2.5\nc a 1e3\n", "abc", [[0, 1], [0, 2], [1, 2]]),
        ("g.txt", "0 1 {'weight': 3}\n1 2\n2 3 5 # five\n3 0 {}\n", "0123", RING),
        ("g.txt", "0 1 1\n1 2 1\n2 3 1\n3 0 1\n", "0123", RING),
        ("g.gml", 'graph [\n node [ id 5 label "a" ]\n node [ id 1 label "b" ]\n'
         " edge [ source 1 target 5 ]\n]\n", "ab", [[0, 1]]),
        ("g.txt", GML_OF_IGRAPH, "01", [[0, 1]]),
        ("g.json", '{"nodes": [{"id": 0}, {"id": 1}], "adjacency": [[{"id": 1}], [{"id": 0}]]}',
         "01", [[0, 1]]),
        ("g.graphml", YED, ["n0.n0", "n1", "n0.n1.n0"], [[0, 1], [1, 2]]),
        ("g.anynet", "node 0 router 0\nnode 1 router 1 4\nrouter 0 router 1 15\n"
         "router 1 router 2\n", "012", [[0, 1], [1, 2]]),
    ],
)  # fmt: skip
def test_forms_of_other_programs(name, text, names, edges, tmp_path):
    (file := tmp_path / name).write_text(text)
    graph = graph_file(file)
    assert sorted(graph.names) == sorted(names)
    assert graph.edges.tolist() == edges
    assert graph.hosts.tolist() == (
        [True, True, False] if "router" in text else [True] * len(names)
    )


def test_a_file_that_marks_no_hosts_has_them_at_every_switch(tmp_path):
    (tmp_path / "g.anynet").write_text("router 0 router 1 router 2\nrouter 2 router 0\n")
    assert graph_file(tmp_path / "g.anynet").hosts.tolist() == [True] * 3


def test_weights_and_lists_of_neighbours_are_told_apart_by_name(tmp_path):
    """Both readings are graphs, of 6 links and of 12."""
    text = "".join(f"{v} {(v + 1) % 6} {(v + 2) % 6}\n" for v in range(6))
    for name, links in (("g.adjlist", 12), ("g.edges", 6)):
        (tmp_path / name).write_text(text)
        assert len(graph_file(tmp_path / name).edges) == links
    (tmp_path / "g.txt").write_text(text)
    with pytest.raises(InputError, match=r"name it FILE\.edges or FILE\.adjlist"):
        graph_file(tmp_path / "g.txt")


@pytest.mark.parametrize("text", ["a b 3\nb c 3\nc a 3\n", "0 1 0.5\n1 2 0.5\n2 0 0.5\n"])
def test_weights_are_no_neighbours(text, tmp_path):
    """The name says an adjacency list, where the weights would be vertices."""
    (tmp_path / "g.adjlist").write_text(text)
    with pytest.raises(InputError, match=r"given 'links with weights'; name it FILE\.edges"):
        graph_file(tmp_path / "g.adjlist")


@pytest.mark.parametrize(
    ("form", "text"),
    [
        ("DIMACS", "c a ring\np edge 4 4\ne 1 2\ne 2 3\ne 3 4\ne 4 1\n"),
        ("DIMACS", "c PACE's form\np tw 4 4\n1 2\n2 3\n3 4\n4 1\n"),
        ("Matrix Market", "%%MatrixMarket matrix coordinate pattern symmetric\n"
         "4 4 4\n2 1\n3 2\n4 3\n4 1\n"),
        ("Pajek", '*Vertices 4\n1 "a"\n2 "b"\n3 "c"\n4 "d"\n*Edges\n1 2 1\n2 3 1\n3 4 1\n4 1 1\n'),
    ],
)  # fmt: skip
def test_other_forms_are_refused_with_a_line_that_converts_them(form, text, tmp_path, monkeypatch):
    """The line, run as it is said, writes a file that is read."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "g.txt").write_text(text)
    with pytest.raises(InputError, match=form) as caught:
        graph_file("g.txt")
    line = caught.value.problems[0].todo.removeprefix("networkx converts it: ")
    (tmp_path / "convert.py").write_text(f"import networkx as nx, scipy\n{line}\n")
    runpy.run_path("convert.py")
    (converted,) = {*tmp_path.iterdir()} - {tmp_path / "g.txt", tmp_path / "convert.py"}
    graph = graph_file(converted)
    assert (len(graph.names), len(graph.edges)) == (4, 4)


def test_names_are_numbered_as_they_appear(tmp_path):
    (file := tmp_path / "g.txt").write_text("lon par\npar ber\n# no more\nber lon\nlon ber\n")
    assert vertex_names("graph", {"file": str(file)}) == ("lon", "par", "ber")
    (file := tmp_path / "n.txt").write_text("2 1\n1 0\n")
    assert vertex_names("graph", {"file": str(file)}) == ()
    assert build_topology("graph", {"file": str(file)}).graph.edges().tolist() == [[0, 1], [1, 2]]


EVALNET = "4 5\n1 2 \n0 2 3 \n0 1 3 \n1 2 \n"
METIS = "% a comment\n4 5\n2 3\n1 3 4\n1 2 4\n2 3\n"
DIAMOND = [[0, 1], [0, 2], [1, 2], [1, 3], [2, 3]]
SST = {
    "program_options": {"timebase": "1 ps"},
    "components": [
        *({"name": f"router{n}", "type": "merlin.hr_router", "params": {}} for n in range(4)),
        *({"name": f"nic{n}", "type": "merlin.linkcontrol"} for n in range(2)),
    ],
    "links": [
        {
            "name": f"link_{u}_{v}_0",
            "left": {"component": f"router{u}", "port": f"port{v}", "latency": "10ns"},
            "right": {"component": f"router{v}", "port": f"port{u}", "latency": "10ns"},
        }
        for u, v in DIAMOND
    ]
    + [
        {
            "name": f"host_{n}",
            "left": {"component": f"nic{n}", "port": "rtr", "latency": "10ns"},
            "right": {"component": f"router{n}", "port": "port9", "latency": "10ns"},
        }
        for n in (0, 1)
    ],
}


@pytest.mark.parametrize("text", [EVALNET, METIS], ids=["EvalNet", "METIS"])
def test_numbers_of_neighbours_behind_a_line_of_counts(text, tmp_path):
    (file := tmp_path / "g.adj.txt").write_text(text)
    assert build_topology("graph", {"file": str(file)}).graph.edges().tolist() == DIAMOND
    # An edge list of as many lines: its first line is a link.
    (file := tmp_path / "g.txt").write_text("4 1\n0 1\n0 2\n1 3\n2 3\n")
    assert build_topology("graph", {"file": str(file)}).graph.size == 5


def test_what_sst_reads_and_writes(tmp_path):
    """GraphML of networkx with the attribute `endpoints`, which anytopo asks for; its JSON."""
    graph = nx.Graph(DIAMOND)
    nx.set_node_attributes(graph, {0: 2, 1: 0, 2: 1, 3: 0}, "endpoints")
    nx.write_graphml(graph, tmp_path / "g.graphml")
    (tmp_path / "n.json").write_text(json.dumps(nx.node_link_data(graph)))
    for name in ("g.graphml", "n.json"):
        found = build_topology("graph", {"file": str(tmp_path / name)})
        assert found.endpoints.tolist() == [True, False, True, False]
    (file := tmp_path / "sst.json").write_text(json.dumps(SST))
    found = build_topology("graph", {"file": str(file)})
    assert found.graph.edges().tolist() == DIAMOND
    assert found.endpoints.tolist() == [True, True, False, False]


TEXTS = {
    "nothing": "",
    "comments": "# nothing\n",
    "four-words": "0 1\n1 2 3 4\n",
    "commas": "a,b,10\nb,c,10\n",
    "loop": "0 1\n1 1\n",
    "twice": "0 1\n1 2\n0 1\n",
    "two-parts": "0 1\n2 3\n",
    "name": "a b\nb c!\n",
    "long": "".join(f"{v} {v + 1}\n" for v in range(70)),
    "json": '{"edges": [[0, 1],\n}',
    "json-deep": "[" * 100_000,
    "json-number": '{"nodes": 3}',
    "json-edge": '{"edges": [[0, 1], [1]]}',
    "json-name": '{"edges": [[0, {}]]}',
    "json-list": "[1, 2]",
    "json-alike": '{"nodes": [0, "0", 1], "edges": [[0, "0"], [0, 1], ["0", 1]]}',
    "case": "SPINE1 spine1\nspine1 leaf1\nleaf1 SPINE1\n",
    "graphml": "<graphml>\n<node>\n</graphml>",
    "graphml-open": "<graphml>\n<node id='0'/>\n",
    "json-bare": '{"links": [{"target": 2}], "nodes": [{}]}',
    "json-nodes": '{"nodes": [{"name": "a"}], "edges": []}',
    "gml": "graph [\n node [ id 0 ]\n node [ id 1\n",
    "gml-twice": "graph [ node [ id 0 ] node [ id 1 ]\n"
    "edge [ source 0 target 1 ] edge [ source 1 target 0 ] ]",
    "hyperedges": "<graphml><graph><node id='a'/><hyperedge/></graph></graphml>",
    "group": YED.replace('target="n1"', 'target="n0::n1"'),
    "anynet-hosts": "node 0 node 1\n",
    "anynet": "router 0 router 1\nrouter 1 host 3\n",
    "no-hosts": "graph [ node [ id 0 endpoint 0 ] node [ id 1 endpoint 0 ]\n"
    "edge [ source 0 target 1 ] ]",
    "sst": '{"components": [{"type": "merlin.hr_router", "name": "r"}], "links": [{"left": 3}]}',
}


def test_messages(tmp_path, golden):
    said = []
    for name, text in TEXTS.items():
        (file := tmp_path / "g.txt").write_text(text)
        problems = check_topology("graph", {"file": str(file)})
        with pytest.raises(InputError):
            build_topology("graph", {"file": str(file)})
        lines = "\n".join(str(p).replace(f"{tmp_path}/", "") for p in problems)
        said.append(f"[{name}]\n{lines}\n")
    golden("\n".join(said), "graph-files.txt")


@pytest.mark.parametrize(
    "text",
    [
        "graph g { a -- b; b -- c }\n",
        'graph "polarfly q=2" {\n  0 [kind="fan"];\n}',
    ],
)
def test_graphviz_is_refused(text, tmp_path):
    """`graph g {` on its own line, or with all behind it, is no link from `graph` to `g`."""
    (tmp_path / "g.dot").write_text(text)
    with pytest.raises(InputError, match=r"read_dot\(.g.dot.\)"):
        graph_file(tmp_path / "g.dot")
    (tmp_path / "g.dot").write_text("graph b {}\nb c {'x': 1}\n")
    assert graph_file(tmp_path / "g.dot").names == ("graph", "b", "c")


def test_no_file(tmp_path):
    (missing,) = check_topology("graph", {"file": str(tmp_path / "g.txt")})
    assert (missing.key, missing.file) == ("file", "")
    (unsaid,) = check_topology("graph", {})
    assert unsaid.key == "file"
