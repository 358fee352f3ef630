"""Resilience to random link failures (PolarFly paper §IX-B, PolarStar paper §11.2).

The papers' protocol: in each of 100 runs, links fail in random order until the network is
disconnected. Diameter and mean distance of the run with the median disconnection ratio are drawn
over the fraction of failed links, since the mean over all runs would be infinite.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial

import numpy as np
from numpy.typing import NDArray

from compilers.evaluation.analysis.distances import distribution
from compilers.evaluation.analysis.neighbour_sums import Report
from compilers.topology.adjacency import Graph
from compilers.topology.labelled_graph import Topology
from compilers.workers.shards import THIS_PROCESS, Workers

RUNS = 100
FAILED_STEP = 0.05
LEAST_LINKS = 4096
"""Links below which another process for a run costs more than it saves."""


@dataclass(frozen=True, slots=True)
class Point:
    """The fabric with some links failed."""

    fraction: float
    failed: int
    diameter: int | None
    mean_distance: float | None


@dataclass(frozen=True, slots=True)
class Resilience:
    """The result of the failure runs.

    ratios: the fraction of failed links that disconnected each run, ascending. median: the ratio of
    the run that `curve` shows, the lower of the two in the middle.
    """

    ratios: tuple[float, ...]
    median: float
    curve: tuple[Point, ...]


def resilience(
    topology: Topology,
    runs: int = RUNS,
    seed: int = 0,
    step: float = FAILED_STEP,
    report: Report | None = None,
    workers: Workers = THIS_PROCESS,
) -> Resilience:
    """The median run's curve, in steps of a fraction of the links, up to its disconnection.

    Only nodes with hosts have to stay connected. Runs are the same on every machine: run i orders
    links by the raw output of PCG64 seeded with (seed, i).
    """
    edges = topology.graph.edges()
    survived = []
    least = runs + 1 if len(edges) < LEAST_LINKS else 2
    found = workers.over(partial(_run, seed=seed), topology, range(runs), least=least)
    for run, left in enumerate(found):
        survived.append(left)
        if report:
            report(run + 1, 2 * runs)
    ranked = sorted(range(runs), key=lambda run: (survived[run], run))
    median = ranked[(runs - 1) // 2]
    counts = _steps(len(edges), survived[median], step)
    curve = []
    at = partial(_curve, order=_order(len(edges), seed, median))
    for done, point in enumerate(workers.over(at, topology, counts, least=least)):
        curve.append(point)
        if report:
            report(runs + runs * (done + 1) // len(counts), 2 * runs)
    ratios = [(survived[run] + 1) / len(edges) for run in ranked]
    return Resilience(tuple(ratios), ratios[(runs - 1) // 2], tuple(curve))


def _run(topology: Topology, seed: int) -> Callable[[int], int]:
    edges = topology.graph.edges()
    return lambda run: _survives(topology, edges[_order(len(edges), seed, run)])


def _curve(topology: Topology, order: NDArray[np.int64]) -> Callable[[int], Point]:
    edges = topology.graph.edges()
    return lambda failed: _point(topology, edges, order, failed)


def _order(links: int, seed: int, run: int) -> NDArray[np.int64]:
    """The order in which links fail."""
    source = np.random.PCG64(np.random.SeedSequence((seed, run)))
    return np.argsort(source.random_raw(links), kind="stable")


def _survives(topology: Topology, edges: NDArray[np.int32]) -> int:
    """The number of links that can fail, in this order, until nodes with hosts are disconnected.

    Links are put back, the last one first, until all these nodes are connected.
    """
    parent = list(range(topology.graph.order))
    inside = topology.endpoints.astype(np.int64).tolist()
    wanted = sum(inside)

    def root(vertex: int) -> int:
        while parent[vertex] != vertex:
            parent[vertex] = vertex = parent[parent[vertex]]
        return vertex

    left = len(edges)
    for u, v in zip(*edges[::-1].T.tolist(), strict=True):
        left -= 1
        a, b = root(u), root(v)
        if a != b:
            parent[a] = b
            inside[b] += inside[a]
            if inside[b] == wanted:
                return left
    return 0


def _steps(links: int, most: int, step: float) -> list[int]:
    def counts() -> Iterator[int]:
        number = 0
        while (failed := round(number * step * links)) < most:
            yield failed
            number += 1
        yield most

    return list(counts())


def _point(
    topology: Topology, edges: NDArray[np.int32], order: NDArray[np.int64], failed: int
) -> Point:
    left = Graph.from_edges(topology.graph.order, edges[order[failed:]])
    found = distribution(topology, graph=left)
    return Point(failed / len(edges), failed, found.diameter, found.mean)
