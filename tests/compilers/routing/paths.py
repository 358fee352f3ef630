"""Paths of PolarFly by brute force on its graph: the definition in the white paper, spelt out."""

from __future__ import annotations

from itertools import pairwise

import networkx as nx


def graph_of(topology):
    return nx.Graph(topology.graph.edges().tolist())


def wanted(graph, source, destination):
    """The shortest path and, if it has two links, all edge-disjoint ones of three, as sets of
    lists of the vertices after the source.

    Of three links: by a neighbour of the source, then by the only path of two from there.
    """
    shortest = nx.shortest_path(graph, source, destination)
    found = [shortest[1:]]
    if len(shortest) == 3:
        used = {frozenset(edge) for edge in pairwise(shortest)}
        for near in sorted(set(graph[source]) - {shortest[1]}):
            (middle,) = set(graph[near]) & set(graph[destination])
            path = [source, near, middle, destination]
            if not used & {frozenset(edge) for edge in pairwise(path)}:
                found.append(path[1:])
    return found
