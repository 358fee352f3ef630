"""PolarStar, the family of ER_q * supernode: routes by algebra; classes of the large ones, too."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np

from compilers.families.polarfly import PolarFly
from compilers.topology import polarity, supernodes
from compilers.topology.field import prime_power
from compilers.topology.labelled_graph import Design, Family, Parameters, Topology
from compilers.topology.layout import supernode_clusters, supernode_racks
from compilers.topology.polarstar import NAME, PARAMETERS, design, star_product
from compilers.topology.supernodes import SUPERNODE_KINDS, shape
from inventory.problems import Problem, did_you_mean

LARGEST_DEGREE = 255
DESIGNED = ("inductive-quad", "paley", "complete")
WITH_CLASSES = ("inductive-quad", "paley", "complete", "cayley")
"""Supernodes of which every PolarStar has constructed classes; those of BDF have too few links."""


class PolarStar(Family):
    """The family of ER_q * supernode, diameter 3."""

    name = NAME
    parameters: tuple[str, ...] = PARAMETERS
    place = 2
    single = by_supernodes = True

    def check(self, parameters: Parameters) -> list[Problem]:
        """The order q must be a prime power, and the supernode must exist with this degree."""
        problems = polarity.check_q(parameters["q"])
        kind, degree = parameters["supernode"], parameters["degree"]
        if kind not in SUPERNODE_KINDS:
            todo = did_you_mean(str(kind), SUPERNODE_KINDS)
            known = f"one of {', '.join(SUPERNODE_KINDS)}"
            problems.append(Problem(key="supernode", required=known, given=str(kind), todo=todo))
        else:
            problems += _check_degree(str(kind), degree)
        return problems

    def order(self, parameters: Parameters) -> int:
        """N = (q² + q + 1)·k for a supernode of order k."""
        found = shape(str(parameters["supernode"]), int(parameters["degree"]))
        return polarity.order(int(parameters["q"])) * (found.order if found else 0)

    def build(self, parameters: Parameters) -> Topology:
        """The star product; a vertex has the kind of its structure vertex.

        Coordinates, int32[N, 4], are those of the structure vertex and the member.
        """
        q, kind = int(parameters["q"]), str(parameters["supernode"])
        degree = int(parameters["degree"])
        supernode = supernodes.supernode(kind, degree)
        structure = PolarFly().build({"q": q})
        k = supernode.order
        member = np.tile(np.arange(k, dtype=np.int32), structure.graph.order)
        return Topology(
            family=self.name,
            parameters={"q": q, "supernode": kind, "degree": degree},
            graph=star_product(structure.graph, structure.kind == 0, supernode),
            kinds=structure.kinds,
            kind=np.repeat(structure.kind, k),
            coordinates=np.column_stack((np.repeat(structure.coordinates, k, axis=0), member)),
            endpoints=np.ones(len(member), np.bool_),
            diameter=3,
            hierarchy=k,
        )

    def designs(self, radix: int) -> Iterator[Design]:
        """Every q and d' ≥ 1 of the kinds `DESIGNED` with q + 1 + d' = radix.

        Inductive-Quad of degree 0 gives the family `pn`. BDF and Cayley supernodes can be built,
        but give the largest fabric at no radix.
        """
        for q in range(2, min(radix - 2, polarity.LARGEST_Q) + 1):
            if not prime_power(q):
                continue
            for kind in DESIGNED:
                found = shape(kind, radix - 1 - q)
                if found is not None:
                    yield design(radix, q, kind, found)

    def routes(self, topology: Topology) -> Any:
        """See `compilers.routing.star.polarstar_minimal`."""
        from compilers.routing.star.polarstar_minimal import routes

        return routes(topology)

    def choices(
        self, tables: Any, topology: Topology, wiring: Any, policy: Any, module: Any
    ) -> Any:
        """Classes of whole supernodes, in fabrics that are too large for a search."""
        from compilers.routing.star import star_choices
        from compilers.spec.policy import constructs_classes

        del module
        if not constructs_classes(self.name, topology.parameters, topology.graph.order):
            return None
        return star_choices.with_choices(tables, topology, wiring, policy)

    def constructed_classes(self, parameters: Parameters) -> bool:
        """Those of supernodes with links enough."""
        return str(parameters["supernode"]) in WITH_CLASSES and int(parameters["degree"]) > 0

    def layouts(self, topology: Topology) -> Mapping[str, Any]:  # noqa: ARG002
        """A supernode a rack, or clusters of them."""
        return {"supernodes": supernode_racks, "clusters": supernode_clusters}


def _check_degree(kind: str, degree: int | str) -> list[Problem]:
    number = degree if type(degree) is int else -1
    if number <= LARGEST_DEGREE and supernodes.exists(kind, number):
        return []
    required = f"{SUPERNODE_KINDS[kind].requirement}, at most {LARGEST_DEGREE}, for {kind}"
    near = supernodes.degrees_near(kind, min(number, LARGEST_DEGREE + 1))
    usable = [str(d) for d in near if d <= LARGEST_DEGREE]
    todo = f"the nearest {'are' if len(usable) > 1 else 'is'} {' and '.join(usable)}"
    return [Problem(key="degree", required=required, given=str(degree), todo=todo)]
