"""PN, the incidence graph of a projective plane: routes by algebra; marks stay on a side."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from math import isqrt
from typing import Any

import numpy as np

from compilers.topology.adjacency import Graph
from compilers.topology.field import prime_power
from compilers.topology.labelled_graph import Design, Family, Parameters, Topology
from compilers.topology.layout import subplane_racks
from compilers.topology.polarity import LARGEST_Q, check_q, lines, order
from compilers.topology.projective import sided
from inventory.problems import Problem


class ProjectiveNetwork(Family):
    """PN, the incidence graph G_q: points 0..n-1, then lines n..2n-1; diameter 3 (§III-A)."""

    name = "pn"
    parameters: tuple[str, ...] = ("q",)
    place = 3
    least_marked = 2
    keeps_marks = True

    def check(self, parameters: Parameters) -> list[Problem]:
        """The order q must be a prime power."""
        return check_q(parameters["q"])

    def order(self, parameters: Parameters) -> int:
        """N = 2(q² + q + 1)."""
        return 2 * order(int(parameters["q"]))

    def build(self, parameters: Parameters) -> Topology:
        """G_q; coordinates, int32[N, 4], are 0 for a point or 1 for a line, and the vector."""
        q = int(parameters["q"])
        n, incidence = order(q), lines(q)
        return Topology(
            family=self.name,
            parameters={"q": q},
            graph=Graph.from_padded(np.concatenate((incidence + n, incidence))),
            kinds=("point", "line"),
            kind=np.repeat(np.array([0, 1], np.uint8), n),
            coordinates=sided(q, 2),
            endpoints=np.ones(2 * n, np.bool_),
            diameter=3,
        )

    def designs(self, radix: int) -> Iterator[Design]:
        """G_(radix-1) where radix-1 is a prime power."""
        q = radix - 1
        if q <= LARGEST_Q and prime_power(q):
            n = order(q)
            yield Design(
                family=self.name, radix=radix, nodes=2 * n, links=n * (q + 1), diameter=3, q=q
            )

    def routes(self, topology: Topology) -> Any:
        """See `compilers.routing.projective_minimal`."""
        from compilers.routing.projective_minimal import pn_routes

        return pn_routes(topology)

    def layouts(self, topology: Topology) -> Mapping[str, Any]:
        """Subplanes, where q is a square."""
        q = int(topology.parameters["q"])
        return {"subplanes": subplane_racks} if isqrt(q) ** 2 == q else {}
