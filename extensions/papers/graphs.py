"""Small graphs that papers show and polarfab does not compile, and what is measured in graphs.

A graph is its adjacency matrix here. The exhibits of the papers call these functions.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from compilers.topology.adjacency import Graph
from compilers.topology.family import moore_bound

Adjacency = NDArray[np.bool_]
"""bool[N, N], the adjacency matrix of a graph."""
NOT_CHOSEN = -1
"""In place of the image of a vertex that the search for an involution has not chosen yet."""


def turan(order: int, parts: int) -> Adjacency:
    """The Turán graph: vertices of different parts are joined; all parts have the same size.

    The parts are ranges of numbers, such as 0 to 2, 3 to 5 and 6 to 8 with order 9 and 3 parts.
    """
    part = np.arange(order) * parts // order
    return np.asarray(part[:, None] != part)


def paley(q: int) -> Adjacency:
    """The Paley graph of a prime q ≡ 1 (mod 4): numbers whose difference is a square are joined."""
    square = np.zeros(q, np.bool_)
    square[np.arange(1, q) ** 2 % q] = True
    number = np.arange(q)
    return np.asarray(square[(number[:, None] - number) % q])


def hamming(n: int) -> Adjacency:
    """The Hamming graph of pairs from n x n: pairs that differ in one place are joined."""
    row, column = np.divmod(np.arange(n * n), n)
    return np.asarray((row[:, None] == row) ^ (column[:, None] == column))


def cartesian(first: Adjacency, second: Adjacency) -> Adjacency:
    """The Cartesian product: its vertices are the pairs of a vertex of each graph.

    Two pairs are joined if they have one vertex in common, and the other two are joined.
    """
    first_equal, second_equal = (np.eye(len(graph), dtype=np.bool_) for graph in (first, second))
    return np.asarray(np.kron(first, second_equal) | np.kron(first_equal, second))


def complement(graph: Adjacency) -> Adjacency:
    """The complement: vertices are joined if they are not joined in the graph."""
    return ~graph & ~np.eye(len(graph), dtype=np.bool_)


def matrix_of(graph: Graph) -> Adjacency:
    """The adjacency matrix of a graph."""
    adjacency = np.zeros((graph.order, graph.order), np.bool_)
    adjacency[graph.tails(), graph.targets] = True
    return adjacency


class GraphCounts(NamedTuple):
    """The size, degree and diameter of a connected graph, as they are counted in it."""

    order: int
    """How many vertices it has."""
    degree: int
    """The largest degree."""
    diameter: int
    """The largest distance."""

    def fraction_of_moore_bound(self) -> float:
        """The order over the Moore bound of this degree and diameter."""
        return self.order / moore_bound(self.degree, self.diameter)


def counts_of(graph: Adjacency) -> GraphCounts:
    """The number of vertices, the largest degree and the diameter of a connected graph."""
    return GraphCounts(len(graph), int(graph.sum(axis=1).max()), diameter_of(graph))


def diameter_of(graph: Adjacency) -> int:
    """The largest distance in a connected graph."""
    # bool[N, N]: whether two vertices are at a distance of at most 1, and of at most `distance`.
    within_one = graph | np.eye(len(graph), dtype=np.bool_)
    within_distance, distance = within_one, 1
    while not within_distance.all():
        paths = within_distance.astype(np.float32) @ within_one.astype(np.float32)
        within_distance, distance = paths > 0, distance + 1
    return distance


def mean_distance(graph: Adjacency) -> float:
    """The mean distance of two different vertices, in a graph of diameter 2 at most.

    Adjacent vertices are at distance 1, and all others at distance 2.
    """
    order = len(graph)
    return 2 - float(graph.sum()) / (order * (order - 1))


def is_vertex_transitive(graph: Adjacency) -> bool:
    """Whether automorphisms map the first vertex onto each vertex; by search, in small graphs."""
    return all(_is_completable(graph, [vertex]) for vertex in range(len(graph)))


def _is_completable(graph: Adjacency, images: list[int]) -> bool:
    """Whether the images of the first vertices can be completed to an automorphism; by search."""
    vertex = len(images)
    if vertex == len(graph):
        return True
    # An image fits if it is joined to the same images as the vertex is to earlier vertices.
    row = graph[vertex, :vertex]
    fits = (graph[:, images] == row).all(axis=1)
    fits[images] = False
    return any(_is_completable(graph, [*images, int(image)]) for image in np.flatnonzero(fits))


def bijection_of_r1(graph: Adjacency) -> list[int] | None:
    """The image of each vertex under a bijection f with Property R1; None: there is none.

    Property R1: any two vertices are joined, or they are f(x) and f(y) of two that are joined. All
    bijections are tried, vertex by vertex. The search is for the preimages x of vertices f(x), as
    the property is about these.
    """
    order = len(graph)

    def completed(preimages: list[int]) -> list[int] | None:
        """The preimages of all vertices, given those of the first ones; None: there are none."""
        vertex = len(preimages)
        if vertex == order:
            return preimages
        for candidate in range(order):
            fits = candidate not in preimages and all(
                graph[vertex, earlier] or graph[candidate, preimage]
                for earlier, preimage in enumerate(preimages)
            )
            if fits and (all_preimages := completed([*preimages, candidate])):
                return all_preimages
        return None

    preimages = completed([])
    return None if preimages is None else np.argsort(preimages).tolist()


def involution_of_rstar(graph: Adjacency) -> list[int] | None:
    """The image of each vertex under an involution f with Property R*; None: there is none.

    Property R*: for any two different vertices x and y, x and y are joined, or f(x) and f(y) are
    joined, or y is f(x) (PolarStar paper, §5.1). All involutions are tried, vertex by vertex. An
    image is refused if the property fails for two vertices whose images are chosen.
    """
    order = len(graph)
    image = [NOT_CHOSEN] * order

    def fits(vertex: int) -> bool:
        """Whether the property holds for a vertex and every other one with an image."""
        return all(
            other in (vertex, image[vertex])
            or graph[vertex, other]
            or graph[image[vertex], image[other]]
            for other in range(order)
            if image[other] != NOT_CHOSEN
        )

    def complete() -> bool:
        """Choose all images that are not chosen yet, if that is possible; whether it was."""
        if NOT_CHOSEN not in image:
            return True
        vertex = image.index(NOT_CHOSEN)
        for partner in range(vertex, order):
            if image[partner] != NOT_CHOSEN:
                continue
            image[vertex], image[partner] = partner, vertex
            if fits(vertex) and fits(partner) and complete():
                return True
            image[vertex] = image[partner] = NOT_CHOSEN
        return False

    return image if complete() else None
