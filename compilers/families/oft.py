"""The family `oft`: the orthogonal fat tree (Projective Networks paper, §V).

Its leaves are two copies of the points of a projective plane, and its spines are the lines: both
copies of a point are joined to the lines through it. Only leaves have hosts. Routes are by algebra.
In shapes, n is the number of points, and N = 3n that of all vertices.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from compilers.families.pn import copied_points, parallels
from compilers.topology.adjacency import Graph
from compilers.topology.family import Design, Family
from compilers.topology.field import LARGEST_Q, prime_power
from compilers.topology.labelled_graph import Parameters, Topology
from compilers.topology.polarity import check_q, headings, lines
from compilers.topology.polarity import order as points_of_plane
from inventory.problems import Problem


class OrthogonalFatTree(Family):
    """The OFT of a plane with n points: leaves 0..n-1, spines n..2n-1, leaves 2n..3n-1.

    Any two leaves are 2 links apart. The graph has diameter 3, from a leaf to a spine.
    """

    name = "oft"
    parameters: tuple[str, ...] = ("q",)
    place = 4  # in lists of families

    def check(self, parameters: Parameters) -> list[Problem]:
        """Return a problem unless the order q is a prime power."""
        return check_q(parameters["q"])

    def order(self, parameters: Parameters) -> int:
        """Return N = 3(q² + q + 1)."""
        return 3 * points_of_plane(int(parameters["q"]))

    def build(self, parameters: Parameters) -> Topology:
        """Build the OFT; coordinates, int32[N, 4], are the column 0, 1 or 2, and the vector."""
        q = int(parameters["q"])
        n, incidence = points_of_plane(q), lines(q)  # int32[n, q + 1], the points on each line
        is_spine = np.repeat(np.array([0, 1, 0], np.uint8), n)
        # int32[N, 2(q + 1)], the neighbours of each vertex; -1 where leaves have fewer links. By
        # the polarity, the lines through a point have the numbers of the points on the line.
        neighbours = np.full((3 * n, 2 * (q + 1)), -1, np.int32)
        neighbours[:n, : q + 1] = neighbours[2 * n :, : q + 1] = incidence + n
        neighbours[n : 2 * n] = np.concatenate((incidence, incidence + 2 * n), axis=1)
        return Topology(
            family=self.name,
            parameters={"q": q},
            graph=Graph.from_padded(neighbours),
            kinds=("leaf", "spine"),
            kind=is_spine,
            coordinates=copied_points(q, 3),
            endpoints=is_spine == 0,
            diameter=3,
        )

    def degree(self, parameters: Parameters) -> int:
        """Return the links of a spine, 2(q + 1)."""
        return 2 * (int(parameters["q"]) + 1)

    def designs(self, radix: int) -> Iterator[Design]:
        """Yield the OFT whose spines have `radix` links, if radix/2 - 1 is a prime power."""
        q = radix // 2 - 1
        if radix % 2 == 0 and q <= LARGEST_Q and prime_power(q):
            n = points_of_plane(q)
            yield self.design(
                radix,
                nodes=3 * n,
                diameter=3,
                parameters={"q": q},
                links=2 * n * (q + 1),
                endpoints=2 * n,
                host_diameter=2,
            )

    def mean_distance(self, parameters: Parameters) -> float:  # noqa: ARG002
        """Return 2, as any two leaves are 2 links apart (§VI)."""
        return 2.0

    def utilisation(self, parameters: Parameters) -> float:  # noqa: ARG002
        """Return 1, as all links carry the same load (§VI)."""
        return 1.0

    def marked_share(self, parameters: Parameters, hosts: int) -> tuple[float, bool]:
        """See `Family.marked_share`: (q + 1)/2p of the rate for p hosts a leaf, which is exact.

        It is exact as some permutation gets no more. `compilers.routing.marked_spread` has the
        paths of packets with the balance `spread`.
        """
        return (int(parameters["q"]) + 1) / (2 * hosts), True

    def cassette_layouts(self, topology: Topology) -> Mapping[str, Any]:  # noqa: ARG002
        """Return the layout by parallel classes."""
        return {"parallels": parallels}

    def headings(self, topology: Topology) -> NDArray[np.int32] | None:
        """See `Family.headings`: numbers that are the same in all racks of parallel classes.

        `polarity.headings` computes them. None if links of the plane are missing.
        """
        q, graph = int(topology.parameters["q"]), topology.graph
        is_whole = graph.size == 2 * points_of_plane(q) * (q + 1)
        return headings(q, graph.padded()) if is_whole else None

    def routes(self, topology: Topology) -> Any:
        """Return routes by algebra (`compilers.routing.plane_minimal`)."""
        from compilers.routing.plane_minimal import oft_routes

        return oft_routes(topology)
