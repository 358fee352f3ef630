"""Resilience to random link failures (PolarFly paper §IX-B, PolarStar paper §11.2).

The papers' protocol: in each of 100 runs, links fail in random order until the network is
disconnected. Diameter and mean distance of the run with the median disconnection ratio are drawn
over the fraction of failed links, since the mean over all runs would be infinite.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from compilers.evaluation.analysis.distances import distribution
from compilers.evaluation.analysis.neighbour_sums import Report
from compilers.topology.graph import Graph
from compilers.topology.labelled_graph import Topology

RUNS = 100
FAILED_STEP = 0.05


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
) -> Resilience:
    """The median run's curve, in steps of a fraction of the links, up to its disconnection.

    Only nodes with hosts have to stay connected. Runs are the same on every machine: run i orders
    links by the raw output of PCG64 seeded with (seed, i).
    """
    edges = topology.graph.edges()
    orders = [_order(len(edges), seed, run) for run in range(runs)]
    survived = []
    for run, order in enumerate(orders):
        survived.append(_survives(topology, edges[order]))
        if report:
            report(run + 1, 2 * runs)
    ranked = sorted(range(runs), key=lambda run: (survived[run], run))
    median = ranked[(runs - 1) // 2]
    counts = _steps(len(edges), survived[median], step)
    curve = []
    for done, failed in enumerate(counts):
        curve.append(_point(topology, edges, orders[median], failed))
        if report:
            report(runs + runs * (done + 1) // len(counts), 2 * runs)
    ratios = [(survived[run] + 1) / len(edges) for run in ranked]
    return Resilience(tuple(ratios), ratios[(runs - 1) // 2], tuple(curve))


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
    for u, v in edges[::-1].tolist():
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
