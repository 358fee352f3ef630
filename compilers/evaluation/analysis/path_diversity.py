"""Path diversity: simple paths of 1 to 4 links between two vertices (PolarFly paper, Table VI).

It is the analysis `paths`. `diversity` takes a topology and returns a `PathClass` for each class of
pairs.
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
    """The pairs so far."""
    fewest: NDArray[np.float64]
    """float64[4], the fewest paths of a pair by length."""
    most: NDArray[np.float64]
    """float64[4], the most paths of a pair by length."""

    @classmethod
    def of(cls, counts: NDArray[np.float64]) -> PathCounts:
        """Return the counts of some pairs, float64[pairs, 4]."""
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
    classes: dict[int, PathCounts] = {}
    """The counts of each class, by its code."""
    for sources in reported_blocks(np.arange(order), report):
        counts = _simple_paths(table, sources, closed_walks)
        distinct = np.ones(counts.shape[1:], np.bool_)
        distinct[order] = False
        distinct[sources, np.arange(len(sources))] = False
        code_of_pair = _codes(topology, table, sources, counts)[distinct]
        codes, place = np.unique(code_of_pair.astype(np.int64), return_inverse=True)
        counts_of_pair = counts[:, distinct].T
        for number, code in enumerate(codes.tolist()):
            of_class = PathCounts.of(counts_of_pair[place == number])
            if code in classes:
                classes[code].add(of_class)
            else:
                classes[code] = of_class
    return [_class(topology, code, classes[code]) for code in sorted(classes)]


def _codes(
    topology: Topology,
    table: NDArray[np.int64],
    sources: NDArray[np.int64],
    counts: NDArray[np.float64],
) -> NDArray[np.float64]:
    """float64[N + 1, B]: the code of the class of each vertex with each source.

    The digits of a code are: whether the two are adjacent, the lower and the higher of their kinds,
    and 1 + the kind of their one common neighbour, or 0. `_class` takes it apart.

    Args:
        topology: the kinds of vertices.
        table: int64[N + 1, K], `distance.neighbour_table`.
        sources: int64[B].
        counts: float64[4, N + 1, B], of `_simple_paths`.
    """
    kinds = len(topology.kinds)
    kind = np.append(topology.kind, 0).astype(np.float64)[:, None]
    low, high = np.minimum(kind, kind[sources].T), np.maximum(kind, kind[sources].T)
    is_adjacent, paths_of_2, *_ = counts
    # With one path of two links, the sum over common neighbours has one summand.
    sum_of_kinds = over_neighbours(table, (kind + 1) * is_adjacent)
    middle = np.where(paths_of_2 == 1, sum_of_kinds, 0)
    codes: NDArray[np.float64] = ((is_adjacent * kinds + low) * kinds + high) * (kinds + 1) + middle
    return codes


def _class(topology: Topology, code: int, counts: PathCounts) -> PathClass:
    """Return the class of a code of `_codes`."""
    kinds = topology.kinds
    code, middle = divmod(code, len(kinds) + 1)
    code, high = divmod(code, len(kinds))
    adjacent, low = divmod(code, len(kinds))
    return PathClass(
        adjacent=bool(adjacent),
        ends=(kinds[low], kinds[high]),
        middle=kinds[middle - 1] if middle else None,
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
        near = over_neighbours(table, _one_hot(order, sources))
        closed_walks[sources, 0] = (near * over_neighbours(table, near)).sum(axis=0)
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
    paths_of_2 = over_neighbours(table, adjacency)  # A² at first, and M below
    paths_of_2[order] = 0
    adjacency_cubed = over_neighbours(table, paths_of_2)
    paths_of_3 = adjacency_cubed - adjacency * (degree + source_degree - 1)
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
