"""Path diversity: simple paths of 1 to 4 links between two vertices (PolarFly paper, Table VI).

It is the analysis `paths`. `diversity` takes a topology and returns a `PathClass` for each class of
ordered pairs of vertices. The class of a pair is given by four figures: whether the two are
adjacent, the lower and the higher of their kinds, and the kind of their one common neighbour.

In arrays, N is the number of vertices, and B of the sources of a block. Row N stands for no vertex
(`neighbour_sums`).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from compilers.evaluation.analysis.neighbour_sums import Report, over_neighbours, reported_blocks
from compilers.topology.distance import neighbour_table
from compilers.topology.labelled_graph import Topology

PATH_LENGTHS = (1, 2, 3, 4)
"""The lengths of paths that are counted, in links."""
NO_MIDDLE = 0
"""In place of 1 + the kind of the common neighbour: the pair has none, or several."""


@dataclass(frozen=True, slots=True)
class PathClass:
    """A class of ordered pairs of vertices, with the fewest and most paths of each length."""

    adjacent: bool
    """Whether a link joins the two vertices."""
    ends: tuple[str, str]
    """The kinds of the two vertices."""
    middle: str | None
    """The kind of their one common neighbour; None if they have none or several."""
    pairs: int
    """The ordered pairs in the class."""
    fewest: tuple[int, ...]
    """The fewest paths of a pair, for each length of `PATH_LENGTHS`."""
    most: tuple[int, ...]
    """The most paths of a pair, for each length of `PATH_LENGTHS`."""


@dataclass(slots=True)
class PathCounts:
    """The path counts of the pairs of a class, block by block."""

    pairs: int
    """The number of pairs so far."""
    fewest: NDArray[np.float64]
    """float64[4], the fewest paths of a pair by length."""
    most: NDArray[np.float64]
    """float64[4], the most paths of a pair by length."""

    @classmethod
    def of(cls, counts: NDArray[np.float64]) -> PathCounts:
        """The counts of a class with these pairs.

        Args:
            counts: float64[pairs, 4], the paths of each pair by length.
        """
        return cls(len(counts), counts.min(axis=0), counts.max(axis=0))

    def add(self, counts: PathCounts) -> None:
        """Add further pairs of the class."""
        self.pairs += counts.pairs
        self.fewest = np.minimum(self.fewest, counts.fewest)
        self.most = np.maximum(self.most, counts.most)


def diversity(topology: Topology, report: Report | None = None) -> list[PathClass]:
    """Path counts of every ordered pair of vertices, by class."""
    table = neighbour_table(topology.graph)
    order = topology.graph.order
    closed_walks = _closed_walks_of_3(table)
    counts_of_class: dict[int, PathCounts] = {}
    """The counts of each class, by its number (`_class_numbers`)."""
    for sources in reported_blocks(np.arange(order), report):
        counts = _simple_paths(table, sources, closed_walks)
        # bool[N + 1, B], the pairs of two vertices.
        is_pair = np.ones(counts.shape[1:], np.bool_)
        is_pair[order] = False
        is_pair[sources, np.arange(len(sources))] = False
        class_of_pair = _class_numbers(topology, table, sources, counts)[is_pair]
        counts_of_pair = counts[:, is_pair].T
        for number in np.unique(class_of_pair).tolist():
            counts_in_block = PathCounts.of(counts_of_pair[class_of_pair == number])
            if number in counts_of_class:
                counts_of_class[number].add(counts_in_block)
            else:
                counts_of_class[number] = counts_in_block
    return [
        _path_class(topology, number, counts) for number, counts in sorted(counts_of_class.items())
    ]


def _class_shape(topology: Topology) -> tuple[int, int, int, int]:
    """How many values each figure of a class has: adjacent, lower kind, higher kind, middle."""
    kinds = len(topology.kinds)
    return 2, kinds, kinds, kinds + 1


def _class_numbers(
    topology: Topology,
    table: NDArray[np.int64],
    sources: NDArray[np.int64],
    counts: NDArray[np.float64],
) -> NDArray[np.int64]:
    """int64[N + 1, B]: the number of the class of each vertex with each source.

    It is the index of the class in an array of `_class_shape`. The fourth figure is 1 + the kind of
    the one common neighbour, or NO_MIDDLE.

    Args:
        topology: the kinds of vertices.
        table: int64[N + 1, K], `distance.neighbour_table`.
        sources: int64[B].
        counts: float64[4, N + 1, B], of `_simple_paths`.
    """
    kind = np.append(topology.kind, 0).astype(np.float64)[:, None]
    low, high = np.minimum(kind, kind[sources].T), np.maximum(kind, kind[sources].T)
    is_adjacent, paths_of_2, *_ = counts
    # With one path of two links, the sum over common neighbours has one summand.
    sum_of_kinds = over_neighbours(table, (kind + 1) * is_adjacent)
    middle = np.where(paths_of_2 == 1, sum_of_kinds, NO_MIDDLE)
    figures = tuple(figure.astype(np.int64) for figure in (is_adjacent, low, high, middle))
    return np.ravel_multi_index(figures, _class_shape(topology))


def _path_class(topology: Topology, number: int, counts: PathCounts) -> PathClass:
    """The class with a number of `_class_numbers`."""
    kinds = topology.kinds
    adjacent, low, high, middle = np.unravel_index(number, _class_shape(topology))
    return PathClass(
        adjacent=bool(adjacent),
        ends=(kinds[low], kinds[high]),
        middle=None if middle == NO_MIDDLE else kinds[middle - 1],
        pairs=counts.pairs,
        fewest=tuple(int(n) for n in counts.fewest),
        most=tuple(int(n) for n in counts.most),
    )


def _one_hot(order: int, sources: NDArray[np.int64]) -> NDArray[np.float64]:
    """float64[N + 1, B]: a column for each source, 1 in the source's row."""
    table = np.zeros((order + 1, len(sources)))
    table[sources, np.arange(len(sources))] = 1
    return table


def _closed_walks_of_3(table: NDArray[np.int64]) -> NDArray[np.float64]:
    """float64[N + 1, 1]: closed walks of three links at each vertex, twice its triangles."""
    order = len(table) - 1
    closed_walks = np.zeros((order + 1, 1))
    for sources in reported_blocks(np.arange(order)):
        # The walk goes to a neighbour of the source, to one of that neighbour's, and back.
        walks_of_1 = over_neighbours(table, _one_hot(order, sources))
        walks_of_2 = over_neighbours(table, walks_of_1)
        closed_walks[sources, 0] = (walks_of_1 * walks_of_2).sum(axis=0)
    return closed_walks


def _simple_paths(
    table: NDArray[np.int64], sources: NDArray[np.int64], closed_walks: NDArray[np.float64]
) -> NDArray[np.float64]:
    """float64[4, N + 1, B]: simple paths from each source to each vertex, by length.

    It is the number of walks, less the walks that visit a vertex twice. With A the adjacency, D the
    degrees, M = A² - D, t = diag(A³), all off the diagonal, and ∘ the product element by element:
    M has the paths of length 2, A³ - A∘(d_i + d_j - 1) the paths of length 3, and the paths of
    length 4 are M² - A∘(t_i + t_j - 3M) - ADA + 2M.

    Args:
        table: int64[N + 1, K], `distance.neighbour_table`.
        sources: int64[B].
        closed_walks: float64[N + 1, 1], of `_closed_walks_of_3`.
    """
    order = len(table) - 1
    columns = np.arange(len(sources))
    degree = (table < order).sum(axis=1, keepdims=True).astype(np.float64)
    source_degree = degree[sources].T
    adjacency = over_neighbours(table, _one_hot(order, sources))
    adjacency[order] = 0
    adjacency_squared = over_neighbours(table, adjacency)
    adjacency_squared[order] = 0
    adjacency_cubed = over_neighbours(table, adjacency_squared)
    paths_of_3 = adjacency_cubed - adjacency * (degree + source_degree - 1)
    paths_of_2 = adjacency_squared.copy()  # M
    paths_of_2[sources, columns] = 0
    adjacency_times_m = over_neighbours(table, paths_of_2)
    adjacency_times_m[order] = 0
    m_squared = over_neighbours(table, adjacency_times_m) - degree * paths_of_2
    over_degrees = over_neighbours(table, degree * adjacency)  # ADA
    paths_of_4 = (
        m_squared
        - adjacency * (closed_walks + closed_walks[sources].T - 3 * paths_of_2)
        - over_degrees
        + 2 * paths_of_2
    )
    return np.stack((adjacency, paths_of_2, paths_of_3, paths_of_4))
