"""Generalised quadrangles W(q) and their incidence graphs.

The Projective Networks paper (§IV-C) takes the graph from the literature. It is computed here from
coordinates, so that its distances and loads are measured and not assumed.

Points are (∞), (a), (k, b), (a, l, a'), and lines are [∞], [k], [a, l], [k, b, k'], with
coordinates from F_q (Van Maldeghem, *Generalized Polygons*, §3.4.1). A point is on a line where one
follows the other in

    [∞] – (∞) – [k] – (k, b) – [k, b, k'] – (a, l, a') – [a, l] – (a) – [∞],

the middle pair where a' = ak + b and k' = a²k + l - 2aa'.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from compilers.topology.adjacency import Graph
from compilers.topology.field import field
from compilers.topology.labelled_graph import Topology


def points_on_lines(q: int) -> NDArray[np.int32]:
    """int32[N, q + 1]: the points on each line of W(q), N = q³ + q² + q + 1.

    Points are numbered (∞), (a), (k, b), (a, l, a'), each kind in the order of its coordinates;
    lines likewise [∞], [k], [a, l], [k, b, k'].

    Raises:
        ValueError: q is not a prime power.
    """
    f = field(q)
    # The first point with one, two, three coordinates.
    first_1, first_2, first_3 = first_with_coordinates(q)
    number = np.arange(q, dtype=np.int32)
    table = np.empty((first_3 + q**3, q + 1), np.int32)
    table[0] = np.append(0, first_1 + number)  # [∞]: (∞), and every (a)
    table[first_1:first_2, 0] = 0  # [k]: (∞), and every (k, b)
    table[first_1:first_2, 1:] = first_2 + np.arange(q * q).reshape(q, q)
    table[first_2:first_3, 0] = first_1 + np.repeat(number, q)  # [a, l]: (a), and every (a, l, a')
    table[first_2:first_3, 1:] = first_3 + np.arange(q**3).reshape(q * q, q)
    axes = np.meshgrid(number, number, number, indexing="ij")
    k, b, last = (axis.reshape(-1, 1) for axis in axes)
    a = number[None, :]
    # of the points (a, l, a') on [k, b, last]: a' = ak + b, and l = last - a²k + 2aa'
    a_prime = f.add[f.mul[a, k], b]
    twice = f.add[f.mul[a, a_prime], f.mul[a, a_prime]]
    middle = f.add[f.add[last, f.neg[f.mul[f.mul[a, a], k]]], twice]
    table[first_3:, :1] = first_2 + k * q + b  # [k, b, k']: (k, b), and the (a, l, a') that fit
    table[first_3:, 1:] = first_3 + (a * q + middle) * q + a_prime
    return table


def quadrangle_incidence(q: int) -> Topology:
    """The incidence graph of W(q): points 0 to N - 1, lines N to 2N - 1, degree q + 1, diameter 4.

    Raises:
        ValueError: q is not a prime power.
    """
    return incidence_graph("quadrangle incidence", q, points_on_lines(q), 4)


def first_with_coordinates(q: int) -> tuple[int, int, int]:
    """The numbers of the first point (or line) with one, with two, and with three coordinates.

    The only one without, (∞) or [∞], has number 0; q follow with one coordinate, q² with two.
    """
    return 1, 1 + q, 1 + q + q * q


def incidences(on_line: NDArray[np.integer]) -> NDArray[np.int64]:
    """int64[N(q + 1), 2]: lines and the points on them.

    Args:
        on_line: int[N, q + 1], the points on each line.
    """
    lines = np.repeat(np.arange(len(on_line)), on_line.shape[1])
    return np.column_stack((lines, on_line.ravel())).astype(np.int64)


def incidence_graph(family: str, q: int, on_line: NDArray[np.integer], diameter: int) -> Topology:
    """The incidence graph of points, which are 0 to N - 1, and lines, N to 2N - 1.

    Args:
        family: the name of the graphs.
        q: the order of the field.
        on_line: int[N, q + 1], the points on each line.
        diameter: the diameter of the graph.
    """
    size = len(on_line)
    edges: NDArray[np.int64] = incidences(on_line)[:, ::-1] + np.array([0, size])
    return router_graph(family, q, Graph.from_edges(2 * size, edges), diameter)


def polarity_graph(family: str, q: int, on_line_of: NDArray[np.integer], diameter: int) -> Topology:
    """The graph of points p and p' that are joined where p is on the line of p'.

    A polarity gives each point a line, so that p is on the line of p' if p' is on that of p.

    Args:
        family: the name of the graphs.
        q: the order of the field.
        on_line_of: int[N, q + 1], the points on the line of each point by a polarity.
        diameter: the diameter of the graph.
    """
    pairs = incidences(on_line_of)
    graph = Graph.from_edges(len(on_line_of), pairs[pairs[:, 0] < pairs[:, 1]])
    return router_graph(family, q, graph, diameter)


def router_graph(family: str, q: int, graph: Graph, diameter: int) -> Topology:
    """The topology of a graph whose routers all carry hosts, of a family whose parameter is q."""
    return Topology(
        family=family,
        parameters={"q": q},
        graph=graph,
        kinds=("router",),
        kind=np.zeros(graph.order, np.uint8),
        coordinates=np.arange(graph.order, dtype=np.int32)[:, None],
        endpoints=np.ones(graph.order, np.bool_),
        diameter=diameter,
    )
