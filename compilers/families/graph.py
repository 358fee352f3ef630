"""The family `graph`: any connected graph, which a file describes.

Nothing is known of such a graph by formula. Its diameter, routes and repairs are searched.
"""

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
"""The most links of a shortest path. A packet that visits a 64th switch counts as looping
(`compilers.tables.fib.MOST_HOPS`), so a path has at most 63 switches."""


class AnyGraph(Family):
    """The family whose parameter is the file of a graph (`compilers.topology.files.graph_file`).

    A topology names the file without its folder, so that a build is the same on every machine.
    """

    name = "graph"
    parameters: tuple[str, ...] = ("file",)
    place = 6  # in lists of families
    described = True  # its only member is in a file
    any_links = True  # switches may have different numbers of links

    def check(self, parameters: Parameters) -> list[Problem]:
        """Return the problems of the file, with their lines.

        If the file cannot be read, the problem is about the key `file`, which names it.
        """
        try:
            graph = _file(parameters)
        except Unreadable as error:
            problem = error.problems[0]
            todo = f"{problem.given}: {problem.todo}"
            return [replace(problem, file="", key="file", given=problem.file, todo=todo)]
        except InputError as error:
            return list(error.problems)
        return _path_problems(graph, str(parameters["file"]))

    def order(self, parameters: Parameters) -> int:
        """Return the number of vertices in the file."""
        return len(_file(parameters).names)

    def vertex_names(self, parameters: Parameters) -> tuple[str, ...]:
        """Return the names of the vertices, () where these are their numbers."""
        graph = _file(parameters)
        return () if graph.numbered else graph.names

    def build(self, parameters: Parameters) -> Topology:
        """Build the graph; its diameter is found by a search from every vertex."""
        file = _file(parameters)
        graph = Graph.from_edges(len(file.names), file.edges)
        return Topology(
            family=self.name,
            parameters={"file": Path(str(parameters["file"])).name},
            graph=graph,
            kinds=("switch",),
            kind=np.zeros(graph.order, np.uint8),
            coordinates=np.arange(graph.order, dtype=np.int32)[:, None],
            endpoints=file.hosts,
            diameter=diameter(graph),
        )


def _file(parameters: Parameters) -> GraphFile:
    """Return the graph in the file that the parameter names."""
    return graph_file(str(parameters["file"]))


def _path_problems(file: GraphFile, name: str) -> list[Problem]:
    """Return the problem of a graph that is not connected, or whose diameter is too large.

    Args:
        file: the graph.
        name: the name of the file.
    """
    graph = Graph.from_edges(len(file.names), file.edges)
    table = neighbour_table(graph)
    component_of_vertex = components(table)
    if len(numbers := np.unique(component_of_vertex)) > 1:
        cut_off = file.names[int(np.flatnonzero(component_of_vertex == numbers[1])[0])]
        given = f"{len(numbers)} parts: no path from {file.names[0]} to {cut_off}"
        return [Problem("a connected graph", given, "add links", name)]
    # The diameter is at most twice the largest distance from the first vertex. A search from every
    # vertex takes long, so it is made only if this bound does not suffice.
    if int(distances(table, np.arange(1)).max()) > LARGEST_DIAMETER // 2:
        longest = diameter(graph)
        if longest > LARGEST_DIAMETER:
            given = "more" if longest == BEYOND else str(longest)
            required = f"a diameter of at most {LARGEST_DIAMETER}"
            return [Problem(required, given, "add links", name)]
    return []
