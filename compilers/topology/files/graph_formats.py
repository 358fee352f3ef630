"""Topologies as text for other tools: edge lists, JSON, GraphML, DOT, and BookSim's anynet.

The formats are small and line-oriented. They are written here, in pieces, because networkx would
need a Python object for every link; the tests read them back with networkx.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Sequence
from xml.sax.saxutils import escape

import numpy as np
from numpy.typing import NDArray

from compilers.topology.labelled_graph import Topology
from inventory.problems import InputError, not_among


def pieces(
    topology: Topology, format: str, hosts_per_node: int = 1, names: Sequence[str] | None = None
) -> Iterator[str]:
    """Yield the text of a topology in a format, in pieces.

    Args:
        topology: the fabric graph.
        format: a key of `GRAPH_FORMATS`.
        hosts_per_node: hosts at each endpoint, for `anynet`, which lists them.
        names: of the switches, for `graphml`, `node-link` and `json`; None where they have none.

    Raises:
        InputError: the format is unknown.
    """
    if format not in GRAPH_FORMATS:
        raise InputError(not_among(format, GRAPH_FORMATS, "format"))
    if format == "anynet":
        return _anynet(topology, hosts_per_node)
    if format in NAMED_FORMATS:
        return NAMED_FORMATS[format](topology, names)
    return GRAPH_FORMATS[format](topology)


def _edges(topology: Topology) -> Iterator[str]:
    """Yield one line `u v` for each edge, u < v, ascending, without a header."""
    return edge_lines(topology.graph.edge_blocks())


def edge_lines(
    blocks: Iterable[NDArray[np.int32]], line: str = "%d %d\n", between: str = ""
) -> Iterator[str]:
    """Yield the text of edges, one piece for each block.

    Args:
        blocks: edges, int32[n, 2] each.
        line: the %-format of an edge.
        between: what stands between edges.

    >>> list(edge_lines([np.array([[0, 1], [0, 2]], np.int32)], "%d-%d", ", "))
    ['0-1, 0-2']
    """
    for block in blocks:
        if len(block):
            yield between.join([line] * len(block)) % tuple(block.ravel().tolist())


def _links(topology: Topology, line: str, between: str = "") -> Iterator[str]:
    """Yield the text of all edges, as `edge_lines`, with `between` also between pieces."""
    return _separated(between, edge_lines(topology.graph.edge_blocks(), line, between))


def _json(topology: Topology, names: Sequence[str] | None = None) -> Iterator[str]:
    """Yield one JSON object: the summary, then the vertices and the edges, one in each line."""
    yield json.dumps(summary(topology))[:-1]
    yield ',\n "vertices": [\n  '
    yield from _separated(",\n  ", map(json.dumps, vertices(topology, names)))
    yield '\n ],\n "edges": [\n  '
    yield from _links(topology, "[%d, %d]", ",\n  ")
    yield "\n ]\n}\n"


def summary(topology: Topology) -> dict[str, object]:
    """Return `family, parameters, nodes, links, degrees, diameter` of a topology, for JSON.

    `degrees` counts the vertices of each degree.
    """
    degrees, counts = np.unique(topology.graph.degrees, return_counts=True)
    return {
        "family": topology.family,
        "parameters": dict(topology.parameters),
        "nodes": topology.graph.order,
        "links": topology.graph.size,
        "degrees": {str(d): c for d, c in zip(degrees.tolist(), counts.tolist(), strict=True)},
        "diameter": topology.diameter,
    }


def vertices(topology: Topology, names: Sequence[str] | None = None) -> Iterator[dict[str, object]]:
    """Yield `id, kind, coordinates, endpoint` of every vertex, and its `name` if it has one."""
    columns = (topology.kind, topology.coordinates, topology.endpoints)
    for vertex, (kind, coordinates, endpoint) in enumerate(zip(*columns, strict=True)):
        yield {
            "id": vertex,
            "kind": topology.kinds[kind],
            "coordinates": coordinates.tolist(),
            "endpoint": bool(endpoint),
            **({"name": names[vertex]} if names is not None else {}),
        }


def _separated(separator: str, pieces: Iterator[str]) -> Iterator[str]:
    """Yield pieces with a separator before each but the first."""
    for number, piece in enumerate(pieces):
        yield separator + piece if number else piece


def _node_link(topology: Topology, names: Sequence[str] | None = None) -> Iterator[str]:
    """Yield the node-link JSON of networkx (`networkx.node_link_graph(data, edges="edges")`)."""
    yield '{"directed": false, "multigraph": false, "graph": '
    yield json.dumps(summary(topology))
    yield ',\n "nodes": [\n  '
    yield from _separated(",\n  ", map(json.dumps, vertices(topology, names)))
    yield '\n ],\n "edges": [\n  '
    yield from _links(topology, '{"source": %d, "target": %d}', ",\n  ")
    yield "\n ]\n}\n"


def _graphml(topology: Topology, names: Sequence[str] | None = None) -> Iterator[str]:
    """Yield GraphML; a vertex has its kind, its coordinates as text, and whether it has hosts.

    With names it has its name, too.
    """
    keys = {"kind": "string", "coordinates": "string", "endpoint": "boolean"}
    if names is not None:
        keys["name"] = "string"
    yield '<?xml version="1.0" encoding="UTF-8"?>\n'
    yield '<graphml xmlns="http://graphml.graphdrawing.org/xmlns">\n'
    for key, type_ in keys.items():
        yield f' <key id="{key}" for="node" attr.name="{key}" attr.type="{type_}"/>\n'
    yield f' <graph id="{escape(topology.title())}" edgedefault="undirected">\n'
    for vertex in vertices(topology, names):
        data = "".join(f'<data key="{key}">{escape(_text(vertex[key]))}</data>' for key in keys)
        yield f'  <node id="{vertex["id"]}">{data}</node>\n'
    yield from _links(topology, '  <edge source="%d" target="%d"/>\n')
    yield " </graph>\n</graphml>\n"


def _text(value: object) -> str:
    """Return a value as GraphML and DOT write it: lists with blanks, truth values in lower case."""
    if isinstance(value, list):
        return " ".join(map(str, value))
    return str(value).lower() if isinstance(value, bool) else str(value)


def _dot(topology: Topology) -> Iterator[str]:
    """Yield the DOT language of Graphviz."""
    yield f'graph "{topology.title()}" {{\n'
    for vertex in vertices(topology):
        coordinates = _text(vertex["coordinates"])
        yield f'  {vertex["id"]} [kind="{vertex["kind"]}" coordinates="{coordinates}"];\n'
    yield from _links(topology, "  %d -- %d;\n")
    yield "}\n"


def _anynet(topology: Topology, hosts_per_node: int = 1) -> Iterator[str]:
    """Yield BookSim's anynet: a line for each router with its hosts and links, each link once."""
    graph = topology.graph
    host = 0  # the number of the next host
    for vertex, endpoint in enumerate(topology.endpoints.tolist()):
        words = [f"router {vertex}"]
        if endpoint:
            words += [f"node {n}" for n in range(host, host + hosts_per_node)]
            host += hosts_per_node
        words += [f"router {v}" for v in graph.neighbours(vertex).tolist() if v > vertex]
        if len(words) > 1:
            yield " ".join(words) + "\n"


GRAPH_FORMATS: dict[str, Callable[[Topology], Iterator[str]]] = {
    "edges": _edges,
    "json": _json,
    "graphml": _graphml,
    "dot": _dot,
    "anynet": _anynet,
    "node-link": _node_link,
}
"""The formats by name: each function yields the text of a topology."""
NAMED_FORMATS: dict[str, Callable[[Topology, Sequence[str] | None], Iterator[str]]] = {
    "json": _json,
    "graphml": _graphml,
    "node-link": _node_link,
}
"""The formats that name switches."""
