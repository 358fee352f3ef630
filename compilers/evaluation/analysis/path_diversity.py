"""Path diversity: simple paths of 1 to 4 links between two vertices (PolarFly paper, Table VI)."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from compilers.evaluation.analysis.neighbour_sums import Report, blocks, over_neighbours
from compilers.topology.distance import neighbour_table
from compilers.topology.labelled_graph import Topology

PATH_LENGTHS = (1, 2, 3, 4)


@dataclass(frozen=True, slots=True)
class PathClass:
    """A class of ordered pairs of vertices, with the fewest and most paths of each length.

    ends: the kinds of the two vertices. middle: the kind of their one common neighbour, None if
    they have none or several.
    """

    adjacent: bool
    ends: tuple[str, str]
    middle: str | None
    pairs: int
    fewest: tuple[int, ...]
    most: tuple[int, ...]


def diversity(topology: Topology, report: Report | None = None) -> list[PathClass]:
    """Path counts of every ordered pair of vertices, by class."""
    table = neighbour_table(topology.graph)
    order, kinds = topology.graph.order, len(topology.kinds)
    kind = np.append(topology.kind, 0).astype(np.float64)[:, None]
    closed = _closed_threes(table)
    everyone = np.arange(order)
    fewest: dict[int, NDArray[np.float64]] = {}
    most: dict[int, NDArray[np.float64]] = {}
    pairs: dict[int, int] = {}
    for sources in blocks(everyone, report):
        counts = _simple_paths(table, sources, closed)
        middle = over_neighbours(table, (kind + 1) * counts[0])
        low, high = np.minimum(kind, kind[sources].T), np.maximum(kind, kind[sources].T)
        one = np.where(counts[1] == 1, middle, 0)
        code = ((counts[0] * kinds + low) * kinds + high) * (kinds + 1) + one
        other = np.ones(code.shape, np.bool_)
        other[order] = False
        other[sources, np.arange(len(sources))] = False
        found, place = np.unique(code[other].astype(np.int64), return_inverse=True)
        values = counts[:, other].T
        for number, each in enumerate(found.tolist()):
            inside = values[place == number]
            least, largest = inside.min(axis=0), inside.max(axis=0)
            fewest[each] = np.minimum(fewest.get(each, least), least)
            most[each] = np.maximum(most.get(each, largest), largest)
            pairs[each] = pairs.get(each, 0) + len(inside)
    return [_class(topology, code, pairs[code], fewest[code], most[code]) for code in sorted(pairs)]


def _class(
    topology: Topology,
    code: int,
    pairs: int,
    fewest: NDArray[np.float64],
    most: NDArray[np.float64],
) -> PathClass:
    kinds = topology.kinds
    rest, middle = divmod(code, len(kinds) + 1)
    rest, high = divmod(rest, len(kinds))
    adjacent, low = divmod(rest, len(kinds))
    return PathClass(
        adjacent=bool(adjacent),
        ends=(kinds[low], kinds[high]),
        middle=kinds[middle - 1] if middle else None,
        pairs=pairs,
        fewest=tuple(int(n) for n in fewest),
        most=tuple(int(n) for n in most),
    )


def _one_hot(order: int, sources: NDArray[np.int64]) -> NDArray[np.float64]:
    table = np.zeros((order + 1, len(sources)))
    table[sources, np.arange(len(sources))] = 1
    return table


def _closed_threes(table: NDArray[np.int64]) -> NDArray[np.float64]:
    """float64[N + 1, 1]: closed walks of three links at each vertex, twice its triangles."""
    order = len(table) - 1
    closed = np.zeros((order + 1, 1))
    for sources in blocks(np.arange(order)):
        near = over_neighbours(table, _one_hot(order, sources))
        closed[sources, 0] = (near * over_neighbours(table, near)).sum(axis=0)
    return closed


def _simple_paths(
    table: NDArray[np.int64], sources: NDArray[np.int64], closed: NDArray[np.float64]
) -> NDArray[np.float64]:
    """float64[4, N + 1, B]: simple paths from each source to each vertex, by length.

    Walks less those that visit a vertex twice. With A the adjacency, D the degrees, M = A² - D,
    t = diag(A³), all off the diagonal, and ∘ the product element by element: M has the paths of
    length 2, A³ - A∘(d_i + d_j - 1) those of 3, and those of 4 are
    M² - A∘(t_i + t_j - 3M) - ADA + 2M.
    """
    order = len(table) - 1
    columns = np.arange(len(sources))
    degree = (table < order).sum(axis=1, keepdims=True).astype(np.float64)
    here = degree[sources].T
    one = over_neighbours(table, _one_hot(order, sources))
    one[order] = 0
    two = over_neighbours(table, one)
    two[order] = 0
    walks = over_neighbours(table, two)
    three = walks - one * (degree + here - 1)
    two[sources, columns] = 0
    onward = over_neighbours(table, two)
    onward[order] = 0
    squared = over_neighbours(table, onward) - degree * two
    through = over_neighbours(table, degree * one)
    four = squared - one * (closed + closed[sources].T - 3 * two) - through + 2 * two
    return np.stack((one, two, three, four))
