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
    first_1, first_2, first_3 = first_with_coordinates(q)
    elements = np.arange(q, dtype=np.int32)
    points = np.empty((first_3 + q**3, q + 1), np.int32)
    # [∞]: (∞), and every (a)
    points[0] = np.append(0, first_1 + elements)
    # [k]: (∞), and every (k, b)
    points[first_1:first_2, 0] = 0
    points[first_1:first_2, 1:] = first_2 + np.arange(q * q).reshape(q, q)
    # [a, l]: (a), and every (a, l, a')
    points[first_2:first_3, 0] = first_1 + np.repeat(elements, q)
    points[first_2:first_3, 1:] = first_3 + np.arange(q**3).reshape(q * q, q)
    # [k, b, k']: (k, b), and for each a the (a, l, a') with a' = ak + b and l = k' - a²k + 2aa'
    axes = np.meshgrid(elements, elements, elements, indexing="ij")
    k, b, k_prime = (axis.reshape(-1, 1) for axis in axes)
    a = elements[None, :]
    a_prime = f.add[f.mul[a, k], b]
    twice_a_a_prime = f.add[f.mul[a, a_prime], f.mul[a, a_prime]]
    minus_a_squared_k = f.neg[f.mul[f.mul[a, a], k]]
    l_of_point = f.add[f.add[k_prime, minus_a_squared_k], twice_a_a_prime]
    points[first_3:, :1] = first_2 + k * q + b
    points[first_3:, 1:] = first_3 + (a * q + l_of_point) * q + a_prime
    return points


def quadrangle_incidence(q: int) -> Topology:
    """The incidence graph of W(q): points 0 to N - 1, lines N to 2N - 1, degree q + 1, diameter 4.

    Raises:
        ValueError: q is not a prime power.
    """
    return incidence_graph("quadrangle incidence", q, points_on_lines(q), diameter=4)


def first_with_coordinates(q: int) -> tuple[int, int, int]:
    """The numbers of the first point (or line) with one, with two, and with three coordinates.

    The only one without, (∞) or [∞], has number 0; q follow with one coordinate, q² with two.
    """
    return 1, 1 + q, 1 + q + q * q


def incidences(points: NDArray[np.integer]) -> NDArray[np.int64]:
    """int64[N(q + 1), 2]: lines and the points on them.

    Args:
        points: int[N, q + 1], the points on each line.
    """
    lines = np.repeat(np.arange(len(points)), points.shape[1])
    return np.column_stack((lines, points.ravel())).astype(np.int64)


def incidence_graph(family: str, q: int, points: NDArray[np.integer], diameter: int) -> Topology:
    """The incidence graph of points, which are 0 to N - 1, and lines, N to 2N - 1.

    Args:
        family: the name of the graphs.
        q: the order of the field.
        points: int[N, q + 1], the points on each line.
        diameter: the diameter of the graph.
    """
    count = len(points)  # of points, and of lines
    edges: NDArray[np.int64] = incidences(points)[:, ::-1] + np.array([0, count])
    return router_graph(family, q, Graph.from_edges(2 * count, edges), diameter)


def polarity_graph(
    family: str, q: int, points_of_polar: NDArray[np.integer], diameter: int
) -> Topology:
    """The graph of points p and p' that are joined where p is on the line of p'.

    A polarity gives each point a line, so that p is on the line of p' if p' is on that of p.

    Args:
        family: the name of the graphs.
        q: the order of the field.
        points_of_polar: int[N, q + 1], for each point the points on its line in the polarity.
        diameter: the diameter of the graph.
    """
    # A pair is listed from both of its points. A point on its own line is not joined to itself.
    pairs = incidences(points_of_polar)
    graph = Graph.from_edges(len(points_of_polar), pairs[pairs[:, 0] < pairs[:, 1]])
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
