"""Fat tree with three levels (Leiserson 1985): pods of k edge and k aggregation routers, and a
core.

An edge router has k hosts, and k links up, one to each aggregation router of its pod. Aggregation
router i of every pod is joined to the core routers i·k to i·k + k - 1. With pods = k this is the
k-ary 3-tree of the papers' tables: it has 3k² routers, and half of the ports of core routers are
free. With pods = 2k all routers use 2k ports, as in Al-Fares et al., SIGCOMM 2008.

A core router with free ports can take the place of several. With `merged` = m there are k²/m core
routers, in k/m groups of k. Router j of group g, which is core router g·k + j, is joined to the
aggregation routers g·m to g·m + m - 1 of every pod. This oversubscribes no link.

Vertices are all edge routers pod by pod, then all aggregation routers, then the core.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from compilers.topology.adjacency import Graph
from compilers.topology.family import Design, Family, integers
from compilers.topology.labelled_graph import Parameters, Topology
from inventory.problems import Problem


class FatTreeShape(NamedTuple):
    """The parameters of a fat tree as numbers, with their defaults."""

    k: int
    """The edge routers of a pod, and its aggregation routers."""
    pods: int
    """The number of pods."""
    merged: int
    """How many core routers of a tree without merging each core router takes the place of."""


def shape(parameters: Parameters) -> FatTreeShape:
    """The parameters k, pods and merged as numbers, with their defaults."""
    k = int(parameters["k"])
    return FatTreeShape(k, int(parameters.get("pods", k)), int(parameters.get("merged", 1)))


def most_merged(k: int, pods: int) -> int:
    """How many core routers one with 2k ports can replace, at most; a divisor of k."""
    return max(m for m in range(1, k + 1) if k % m == 0 and (m == 1 or m * pods <= 2 * k))


class FatTree(Family):
    """The family of three-level fat trees without oversubscription."""

    name = "fat-tree"
    place = 11  # in lists of families
    compared = True
    parameters = ("k", "pods", "merged")
    optional = ("pods", "merged")

    def check(self, parameters: Parameters) -> list[Problem]:
        """Problems unless k is 2 or more, there are 2 to 2k pods, and core routers can be merged.

        A core router has 2k ports, like all others.
        """
        if problems := integers(parameters, {"k": 2, "pods": 2, "merged": 1}, self.optional):
            return problems
        k, pods, merged = shape(parameters)
        if pods > 2 * k:
            todo = f"the nearest is {2 * k}"
            required = f"at most 2k = {2 * k}, the ports of a core router"
            return [Problem(key="pods", required=required, given=str(pods), todo=todo)]
        if k % merged or (merged > 1 and merged * pods > 2 * k):
            required = f"a divisor of k = {k}, and merged · pods at most 2k = {2 * k}"
            todo = f"the most is {most_merged(k, pods)}"
            return [Problem(key="merged", required=required, given=str(merged), todo=todo)]
        return []

    def order(self, parameters: Parameters) -> int:
        """N = 2k·pods + k²/merged."""
        k, pods, merged = shape(parameters)
        return 2 * k * pods + k * k // merged

    def degree(self, parameters: Parameters) -> int:
        """The most links of a router, 2k: k links down and k up of an aggregation router.

        A core router has no more.
        """
        return 2 * shape(parameters).k

    def build(self, parameters: Parameters) -> Topology:
        """The fat tree with the coordinates (level, pod, position); the core counts as pod 0."""
        k, pods, merged = shape(parameters)
        cores = k * k // merged
        # Aggregation router i of each pod is joined to edge router j of the pod, and up to core
        # router j of its group of core routers.
        pod, i, j = np.indices((pods, k, k)).reshape(3, -1)
        aggregation = k * pods + pod * k + i
        edges = np.concatenate(
            (
                np.stack((pod * k + j, aggregation), axis=1),
                np.stack((aggregation, 2 * k * pods + i // merged * k + j), axis=1),
            )
        )
        kind = np.repeat(np.arange(3, dtype=np.uint8), (k * pods, k * pods, cores))
        # The pod and the position in it of all edge routers, all aggregation routers, and the core.
        in_pods = np.indices((pods, k)).reshape(2, -1)
        in_core = np.stack((np.zeros(cores, np.int64), np.arange(cores)))
        pod_and_position = np.concatenate((in_pods, in_pods, in_core), axis=1)
        coordinates = np.vstack((kind, pod_and_position))
        return Topology(
            family=self.name,
            parameters=_parameters(k, pods, merged),
            graph=Graph.from_edges(self.order(parameters), edges),
            kinds=("edge", "aggregation", "core"),
            kind=kind,
            coordinates=coordinates.T.astype(np.int32),
            endpoints=kind == 0,
            diameter=4,
        )

    def designs(self, radix: int) -> Iterator[Design]:
        """Yield two designs of k = radix/2, with k and with 2k pods; none for odd radix."""
        k = radix // 2
        if radix % 2 or k < 2:
            return
        for pods in (k, 2 * k):
            yield self._design(radix, FatTreeShape(k, pods, merged=1))

    def sized_designs(self, radix: int, most: int | None = None) -> Iterator[Design]:  # noqa: ARG002
        """Yield designs with each number of pods, and as few core routers as these allow."""
        k = radix // 2
        if radix % 2 or k < 2:
            return
        for pods in range(2, 2 * k + 1):
            yield self._design(radix, FatTreeShape(k, pods, most_merged(k, pods)))

    def _design(self, radix: int, sizes: FatTreeShape) -> Design:
        """The design with these sizes; only edge routers have hosts."""
        k, pods, _ = sizes
        parameters = _parameters(*sizes)
        return self.design(
            radix,
            self.order(parameters),
            diameter=4,
            parameters=parameters,
            links=2 * k * k * pods,
            endpoints=k * pods,
        )

    def mean_distance(self, parameters: Parameters) -> float | None:
        """Edge routers are 2 links apart within a pod, and 4 between pods."""
        k, pods, _ = shape(parameters)
        return 4 - 2 * (k - 1) / (k * pods - 1)

    def utilisation(self, parameters: Parameters) -> float | None:
        """The mean load of a link over the largest.

        A link at an edge router carries pods - 1/k pairs in each direction, and a link at the core
        pods - 1. There are as many of both.
        """
        k, pods, _ = shape(parameters)
        edge_load, core_load = pods - 1 / k, pods - 1
        return (core_load + edge_load) / (2 * edge_load)


def _parameters(k: int, pods: int, merged: int) -> dict[str, int]:
    """The parameters of a tree; `merged` is left out if it is 1, its default."""
    return {"k": k, "pods": pods} | ({"merged": merged} if merged > 1 else {})
