"""The orthogonal fat tree, of two planes: routes by algebra; spines have no hosts."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from compilers.families.pn import parallels, sided
from compilers.topology.adjacency import Graph
from compilers.topology.family import Design, Family
from compilers.topology.field import LARGEST_Q, prime_power
from compilers.topology.labelled_graph import Parameters, Topology
from compilers.topology.polarity import check_q, headings, lines, order
from inventory.problems import Problem


class OrthogonalFatTree(Family):
    """OFT: leaves 0..n-1, spines n..2n-1, leaves 2n..3n-1; hosts on leaves only (§V).

    Any two leaves are 2 links apart. The graph has diameter 3, from a leaf to a spine.
    """

    name = "oft"
    parameters: tuple[str, ...] = ("q",)
    place = 4

    def check(self, parameters: Parameters) -> list[Problem]:
        """The order q must be a prime power."""
        return check_q(parameters["q"])

    def order(self, parameters: Parameters) -> int:
        """N = 3(q² + q + 1)."""
        return 3 * order(int(parameters["q"]))

    def build(self, parameters: Parameters) -> Topology:
        """The OFT; coordinates, int32[N, 4], are the column 0, 1 or 2, and the vector."""
        q = int(parameters["q"])
        n, incidence = order(q), lines(q)
        spine = np.repeat(np.array([0, 1, 0], np.uint8), n)
        padded = np.full((3 * n, 2 * (q + 1)), -1, np.int32)
        padded[:n, : q + 1] = padded[2 * n :, : q + 1] = incidence + n
        padded[n : 2 * n] = np.concatenate((incidence, incidence + 2 * n), axis=1)
        return Topology(
            family=self.name,
            parameters={"q": q},
            graph=Graph.from_padded(padded),
            kinds=("leaf", "spine"),
            kind=spine,
            coordinates=sided(q, 3),
            endpoints=spine == 0,
            diameter=3,
        )

    def degree(self, parameters: Parameters) -> int:
        """2(q + 1), of a spine."""
        return 2 * (int(parameters["q"]) + 1)

    def designs(self, radix: int) -> Iterator[Design]:
        """The OFT whose spines have `radix` links, radix/2-1 a prime power."""
        q = radix // 2 - 1
        if radix % 2 == 0 and q <= LARGEST_Q and prime_power(q):
            n = order(q)
            of_leaves = {"links": 2 * n * (q + 1), "endpoints": 2 * n, "host_diameter": 2}
            yield self.design(radix, 3 * n, 3, {"q": q}, **of_leaves)

    def mean_distance(self, parameters: Parameters) -> float:  # noqa: ARG002
        """Any two leaves are 2 links apart (§VI)."""
        return 2.0

    def utilisation(self, parameters: Parameters) -> float:  # noqa: ARG002
        """All links are alike (§VI)."""
        return 1.0

    def marked_share(self, parameters: Parameters, hosts: int) -> tuple[float, bool]:
        """See `compilers.routing.marked_spread`: twins have the same neighbours."""
        return (int(parameters["q"]) + 1) / (2 * hosts), True

    def cassette_layouts(self, topology: Topology) -> Mapping[str, Any]:  # noqa: ARG002
        """Parallel classes."""
        return {"parallels": parallels}

    def headings(self, topology: Topology) -> NDArray[np.int32] | None:
        """Numbers of links that are the same in all racks of parallel classes."""
        q, graph = int(topology.parameters["q"]), topology.graph
        whole = graph.size == 2 * order(q) * (q + 1)
        return headings(q, graph.padded()) if whole else None

    def routes(self, topology: Topology) -> Any:
        """See `compilers.routing.plane_minimal`."""
        from compilers.routing.plane_minimal import oft_routes

        return oft_routes(topology)
