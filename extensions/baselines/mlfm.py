"""Multi-layer full mesh: the vertices of K_n, n - 1 times each, joined to the edges of K_n.

Fujitsu 2014; Projective Networks paper, §VI. A *leaf* (i, layer) stands for vertex i of K_n, and a
*spine* {i, j} for an edge. Leaf (i, layer) is joined to all spines {i, j}. The vertices are the
leaves i·(n - 1) + layer, and then the spines in ascending order.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from compilers.topology.adjacency import Graph
from compilers.topology.family import Design, Family, integers
from compilers.topology.labelled_graph import Parameters, Topology
from extensions.baselines.group_graph import complete
from inventory.problems import Problem


def diameter(n: int) -> int:
    """The diameter: 4, between two spines whose edges have no vertex in common.

    With n = 3 any two edges have one in common, and the diameter is 3.
    """
    return 4 if n > 3 else 3


class Mlfm(Family):
    """The family of multi-layer full meshes; leaves carry hosts."""

    name = "mlfm"
    place = 13  # in lists of families
    compared = True
    parameters = ("n",)

    def check(self, parameters: Parameters) -> list[Problem]:
        """A problem unless n is 3 or more."""
        return integers(parameters, {"n": 3})

    def order(self, parameters: Parameters) -> int:
        """N = 3n(n-1)/2: n(n-1) leaves and n(n-1)/2 spines."""
        n = int(parameters["n"])
        return 3 * n * (n - 1) // 2

    def degree(self, parameters: Parameters) -> int:
        """The links of a spine: 2(n - 1)."""
        return 2 * (int(parameters["n"]) - 1)

    def build(self, parameters: Parameters) -> Topology:
        """The mesh with the coordinates (i, layer) of leaves, and {i, j} of spines."""
        n = int(parameters["n"])
        leaves, pairs = n * (n - 1), complete(n)
        tails = pairs[:, :, None] * (n - 1) + np.arange(n - 1)
        spines = np.broadcast_to(leaves + np.arange(len(pairs))[:, None, None], tails.shape)
        leaf = np.stack(np.divmod(np.arange(leaves), n - 1), axis=1)
        kind = np.repeat(np.arange(2, dtype=np.uint8), (leaves, len(pairs)))
        return Topology(
            family=self.name,
            parameters={"n": n},
            graph=Graph.from_edges(len(kind), np.stack((tails, spines), axis=-1)),
            kinds=("leaf", "spine"),
            kind=kind,
            coordinates=np.concatenate((leaf, pairs)).astype(np.int32),
            endpoints=kind == 0,
            diameter=diameter(n),
        )

    def designs(self, radix: int) -> Iterator[Design]:
        """Yield the design of n = radix/2 + 1: a spine has 2(n - 1) links.

        There is none for an odd radix.
        """
        n = radix // 2 + 1
        if radix % 2 == 0 and n >= 3:
            yield self.design(
                radix,
                3 * n * (n - 1) // 2,
                diameter=diameter(n),
                parameters={"n": n},
                links=n * (n - 1) ** 2,
                endpoints=n * (n - 1),
                host_diameter=2,
            )

    def mean_distance(self, parameters: Parameters) -> float | None:  # noqa: ARG002
        """Any two leaves are 2 links apart."""
        return 2.0

    def utilisation(self, parameters: Parameters) -> float | None:  # noqa: ARG002
        """All links carry the same traffic."""
        return 1.0
