"""Any graph: a family of one member, which a file describes."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np

from compilers.topology.adjacency import Graph
from compilers.topology.distance import BEYOND, components, diameter, distances, neighbour_table
from compilers.topology.family import Family
from compilers.topology.files.graph_file import GraphFile, graph_file
from compilers.topology.labelled_graph import Parameters, Topology
from inventory.problems import InputError, Problem
from inventory.yamlfile import Unreadable

LARGEST_DIAMETER = 62
"""Links of the longest path: a packet lives for 64 switches."""


class AnyGraph(Family):
    """The family `graph`; its parameter is the file, as `graph_file` reads it.

    A topology names the file without its folder, so that a build is the same on every machine.
    """

    name = "graph"
    parameters: tuple[str, ...] = ("file",)
    place = 6
    described = any_links = True

    def check(self, parameters: Parameters) -> list[Problem]:
        """Problems of the file, each with its line, or of the key where there is no file."""
        try:
            found = _file(parameters)
        except Unreadable as error:
            problem = error.problems[0]
            todo = f"{problem.given}: {problem.todo}"
            return [replace(problem, file="", key="file", given=problem.file, todo=todo)]
        except InputError as error:
            return list(error.problems)
        return _scattered(found, str(parameters["file"]))

    def order(self, parameters: Parameters) -> int:
        """The number of vertices in the file."""
        return len(_file(parameters).names)

    def vertex_names(self, parameters: Parameters) -> tuple[str, ...]:
        """The names of the vertices; none where they are the numbers."""
        found = _file(parameters)
        return () if found.numbered else found.names

    def build(self, parameters: Parameters) -> Topology:
        """The graph; its diameter is found by search from every vertex."""
        found = _file(parameters)
        graph = Graph.from_edges(len(found.names), found.edges)
        return Topology(
            family=self.name,
            parameters={"file": Path(str(parameters["file"])).name},
            graph=graph,
            kinds=("switch",),
            kind=np.zeros(graph.order, np.uint8),
            coordinates=np.arange(graph.order, dtype=np.int32)[:, None],
            endpoints=found.hosts,
            diameter=diameter(graph),
        )


def _file(parameters: Parameters) -> GraphFile:
    return graph_file(str(parameters["file"]))


def _scattered(found: GraphFile, name: str) -> list[Problem]:
    """A graph in several parts, or with paths that no packet lives to the end of."""
    graph = Graph.from_edges(len(found.names), found.edges)
    table = neighbour_table(graph)
    part = components(table)
    if len(parts := np.unique(part)) > 1:
        cut_off = found.names[int(np.flatnonzero(part == parts[1])[0])]
        given = f"{len(parts)} parts: no path from {found.names[0]} to {cut_off}"
        return [Problem("a connected graph", given, "add links", name)]
    # A half of the diameter at most is the distance from the first vertex.
    if int(distances(table, np.arange(1)).max()) > LARGEST_DIAMETER // 2:
        longest = diameter(graph)
        if longest > LARGEST_DIAMETER:
            text = "more" if longest == BEYOND else str(longest)
            required = f"a diameter of at most {LARGEST_DIAMETER}"
            return [Problem(required, text, "add links", name)]
    return []
