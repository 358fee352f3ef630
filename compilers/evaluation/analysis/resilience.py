"""Resilience to random link failures (PolarFly paper §IX-B, PolarStar paper §11.2).

It is the analysis `resilience`, by the papers' protocol. In each of 100 runs, links fail in random
order until the network is disconnected. The *disconnection ratio* of a run is the fraction of links
that have failed then. Diameter and mean distance of the run with the median ratio are drawn over
the fraction of failed links, since the mean over all runs would be infinite.
"""

from __future__ import annotations

from collections.abc import Callable
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
"""The runs of the papers."""
FAILED_STEP = 0.05
"""The step of the curve, as a fraction of all links."""
LEAST_LINKS = 4096
"""Links below which another process for a run costs more than it saves."""


@dataclass(frozen=True, slots=True)
class FailurePoint:
    """A point of the curve: the fabric with some links failed."""

    fraction: float
    """Failed links over all links."""
    failed: int
    """The number of failed links."""
    diameter: int | None
    """The largest distance of nodes with hosts; None if a pair has no path."""
    mean_distance: float | None
    """The mean distance of nodes with hosts; None if a pair has no path."""


@dataclass(frozen=True, slots=True)
class Resilience:
    """The result of the failure runs."""

    ratios: tuple[float, ...]
    """The disconnection ratio of each run, ascending."""
    median: float
    """The median ratio; of an even number of runs, the lower of the two in the middle."""
    curve: tuple[FailurePoint, ...]
    """The points of the run with the median ratio."""


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

    Args:
        topology: the links, and the nodes with hosts.
        runs: how many runs.
        seed: the seed of the runs.
        step: the step of the curve, as a fraction of all links.
        report: called with (work done, all work).
        workers: the processes that share the runs.
    """
    edges = topology.graph.edges()
    # Other processes are used from `least` runs on. In a small topology that is never the case.
    least = runs + 1 if len(edges) < LEAST_LINKS else 2
    survived = []  # by run, how many links can fail before the network is disconnected
    survived_by_run = partial(_survived_by_run, seed=seed)
    for run, links in enumerate(workers.over(survived_by_run, topology, range(runs), least=least)):
        survived.append(links)
        if report:  # the runs are the first half of the work, the curve is the second
            report(run + 1, 2 * runs)
    ranked = sorted(range(runs), key=lambda run: (survived[run], run))
    median_run = ranked[(runs - 1) // 2]
    failed_counts = _failed_counts(len(edges), survived[median_run], step)
    curve = []
    point_of = partial(_point_of_failed, order=_order(len(edges), seed, median_run))
    for done, point in enumerate(workers.over(point_of, topology, failed_counts, least=least), 1):
        curve.append(point)
        if report:
            report(runs + runs * done // len(failed_counts), 2 * runs)
    ratios = [(survived[run] + 1) / len(edges) for run in ranked]
    return Resilience(tuple(ratios), ratios[(runs - 1) // 2], tuple(curve))


def _survived_by_run(topology: Topology, seed: int) -> Callable[[int], int]:
    """Return the function from a run's number to how many failed links it survives."""
    edges = topology.graph.edges()
    return lambda run: _survived_failures(topology, edges[_order(len(edges), seed, run)])


def _point_of_failed(topology: Topology, order: NDArray[np.int64]) -> Callable[[int], FailurePoint]:
    """Return the function from a number of failed links to the point of the curve."""
    edges = topology.graph.edges()
    return lambda failed: _point(topology, edges, order, failed)


def _order(links: int, seed: int, run: int) -> NDArray[np.int64]:
    """int64[links]: the order in which links fail in a run."""
    source = np.random.PCG64(np.random.SeedSequence((seed, run)))
    return np.argsort(source.random_raw(links), kind="stable")


def _survived_failures(topology: Topology, edges: NDArray[np.int32]) -> int:
    """How many links can fail, in this order, before nodes with hosts are disconnected.

    All links are taken out, and put back from the last one to the first, until all nodes with hosts
    are connected. The links that are still out are those that can fail.
    """
    parent = list(range(topology.graph.order))
    endpoints_in_tree = topology.endpoints.astype(np.int64).tolist()  # by the root of the tree
    endpoint_count = sum(endpoints_in_tree)

    def root(vertex: int) -> int:
        """The root of a vertex's tree of connected vertices, whose path is halved (union-find)."""
        while parent[vertex] != vertex:
            parent[vertex] = vertex = parent[parent[vertex]]
        return vertex

    failed = len(edges)
    for u, v in zip(*edges[::-1].T.tolist(), strict=True):
        failed -= 1
        root_of_u, root_of_v = root(u), root(v)
        if root_of_u != root_of_v:
            parent[root_of_u] = root_of_v
            endpoints_in_tree[root_of_v] += endpoints_in_tree[root_of_u]
            if endpoints_in_tree[root_of_v] == endpoint_count:
                return failed
    return 0


def _failed_counts(links: int, survived: int, step: float) -> list[int]:
    """The number of failed links at each point of the curve, up to what the run survives.

    >>> _failed_counts(links=100, survived=12, step=0.05)
    [0, 5, 10, 12]
    """
    counts: list[int] = []
    failed = 0
    while failed < survived:
        counts.append(failed)
        failed = round(len(counts) * step * links)
    return [*counts, survived]


def _point(
    topology: Topology, edges: NDArray[np.int32], order: NDArray[np.int64], failed: int
) -> FailurePoint:
    """The point of the curve with some links failed."""
    remaining = Graph.from_edges(topology.graph.order, edges[order[failed:]])
    distances = distribution(topology, graph=remaining)
    return FailurePoint(failed / len(edges), failed, distances.diameter, distances.mean)
