"""PolarFly, the family of ER_q: routes, alternates and repairs are by algebra."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from compilers.topology import polarity
from compilers.topology.field import prime_power
from compilers.topology.labelled_graph import Design, Family, Parameters, Topology
from compilers.topology.layout import fans, stars
from compilers.topology.polarity import VERTEX_KINDS, check_q, order, points, structure
from inventory.problems import Problem


class PolarFly(Family):
    """The family of ER_q for every prime power q."""

    name = "polarfly"
    parameters: tuple[str, ...] = ("q",)
    place = 1
    constructed = single = True
    least_marked = 3

    def check(self, parameters: Parameters) -> list[Problem]:
        """The order q must be a prime power."""
        return check_q(parameters["q"])

    def order(self, parameters: Parameters) -> int:
        """N = q² + q + 1."""
        return order(int(parameters["q"]))

    def build(self, parameters: Parameters) -> Topology:
        """ER_q with its quadrics W, their neighbours V1 and the rest V2."""
        q = int(parameters["q"])
        graph, quadric = structure(q)
        kind = np.full(graph.order, 2, np.uint8)
        for vertex in np.flatnonzero(quadric).tolist():
            kind[graph.neighbours(vertex)] = 1
        kind[quadric] = 0
        return Topology(
            family=self.name,
            parameters={"q": q},
            graph=graph,
            kinds=VERTEX_KINDS,
            kind=kind,
            coordinates=points(q),
            endpoints=np.ones(graph.order, np.bool_),
            diameter=2,
        )

    def designs(self, radix: int) -> Iterator[Design]:
        """ER_(radix-1) where radix-1 is a prime power."""
        q = radix - 1
        if prime_power(q):
            yield Design(
                family=self.name,
                radix=radix,
                nodes=order(q),
                links=q * (q + 1) ** 2 // 2,
                diameter=2,
                q=q,
            )

    def edge_blocks(self, parameters: Parameters) -> Iterator[NDArray[np.int32]]:
        """The edges of ER_q, which are not held together."""
        return polarity.edge_blocks(int(parameters["q"]))

    def routes(self, topology: Topology) -> Any:
        """See `compilers.routing.polarfly_minimal`."""
        from compilers.routing.polarfly_minimal import routes

        return routes(topology)

    def choices(
        self, tables: Any, topology: Topology, wiring: Any, policy: Any, module: Any
    ) -> Any:
        """Compact Valiant, bounces over the conic, and protection, all by algebra."""
        from compilers.routing.alternates import compact_valiant
        from compilers.routing.bounces.conic_bounces import conic_bounces
        from compilers.routing.protection import polarfly, with_bounces
        from compilers.routing.split_classes import split_direct

        tables, bounced = split_direct(tables, wiring), None
        if policy.bounces:
            bounced = conic_bounces(int(topology.parameters["q"]), wiring)
        if policy.balances:
            shares = policy.edge_disjoint, policy.minimal_share, policy.bounces or policy.marks
            tables = compact_valiant(tables, wiring, *shares)
        if policy.protects:
            return polarfly(tables, wiring, bounced, module)
        return tables if bounced is None else with_bounces(tables, wiring, bounced)

    def layouts(self, topology: Topology) -> Mapping[str, Any]:
        """Fans around quadrics; stars where q is even."""
        even = int(topology.parameters["q"]) % 2 == 0
        return {"fans": fans, "stars": stars} if even else {"fans": fans}
