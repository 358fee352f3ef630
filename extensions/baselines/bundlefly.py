"""Bundlefly: the star product of MMS(q) and a Paley graph (Lei et al., ICS 2020).

The Paley graph of degree d has the elements of F_n as vertices, with n = 2d + 1 ≡ 1 (mod 4). Two
are joined if their difference is a square. Router (x, x') is vertex x·n + x'. For a link of MMS(q)
between x and y, x < y, it is joined to (y, ν·x'), where ν is the least non-square of F_n. MMS(q)
has diameter 2, so Bundlefly has diameter 3 (PolarStar paper, §4.2).
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from compilers.families.polarstar import star_product
from compilers.topology.family import Design, Family, Modules, integers
from compilers.topology.labelled_graph import Parameters, Topology
from compilers.topology.supernodes import SUPERNODE_KINDS, degrees_near, exists, supernode
from extensions.baselines import slimfly
from inventory.problems import Problem


class BundleflyShape(NamedTuple):
    """The parameters of a Bundlefly as numbers."""

    q: int
    """The q of its structure graph MMS(q)."""
    degree: int
    """The degree of its supernode, a Paley graph."""


def shape(parameters: Parameters) -> BundleflyShape:
    """The parameters q and degree as numbers."""
    return BundleflyShape(int(parameters["q"]), int(parameters["degree"]))


class Bundlefly(Family):
    """The family MMS(q) * Paley(2·degree + 1), of diameter 3."""

    name = "bundlefly"
    place = 14  # in lists of families
    compared = True
    parameters = ("q", "degree")

    def check(self, parameters: Parameters) -> list[Problem]:
        """Problems unless q is a prime power other than 2, and there is a Paley graph of `degree`.

        There is one if 2·degree + 1 is a prime power and 1 modulo 4.
        """
        problems = slimfly.check_q(parameters)
        if degree_problems := integers(parameters, {"degree": 2}):
            return problems + degree_problems
        degree = int(parameters["degree"])
        if not exists("paley", degree):
            near = " and ".join(str(d) for d in degrees_near("paley", degree) if d)
            problems.append(
                Problem(
                    key="degree",
                    required=SUPERNODE_KINDS["paley"].requirement,
                    given=f"{degree}, which makes {2 * degree + 1}",
                    todo=f"the nearest that work: {near}",
                )
            )
        return problems

    def order(self, parameters: Parameters) -> int:
        """N = 2q²·(2·degree + 1)."""
        q, degree = shape(parameters)
        return slimfly.order(q) * (2 * degree + 1)

    def degree(self, parameters: Parameters) -> int:
        """The degree of MMS(q) plus that of the supernode."""
        q, degree = shape(parameters)
        return slimfly.degree(q) + degree

    def build(self, parameters: Parameters) -> Topology:
        """The star product with the coordinates (s, x, y, x')."""
        q, degree = shape(parameters)
        structure = slimfly.SlimFly().build({"q": q})
        paley = supernode("paley", degree)
        graph = star_product(structure.graph, np.zeros(structure.graph.order, np.bool_), paley)
        member = np.tile(np.arange(paley.order, dtype=np.int32), structure.graph.order)
        return Topology(
            family=self.name,
            parameters={"q": q, "degree": degree},
            graph=graph,
            kinds=structure.kinds,
            kind=np.repeat(structure.kind, paley.order),
            coordinates=np.column_stack(
                (np.repeat(structure.coordinates, paley.order, axis=0), member)
            ),
            endpoints=np.ones(graph.order, np.bool_),
            diameter=3,
        )

    def designs(self, radix: int) -> Iterator[Design]:
        """Yield a design for every split of radix into degrees of MMS(q) and of a Paley graph."""
        for degree in range(2, radix):
            if not exists("paley", degree):
                continue
            for q in slimfly.feasible(radix - degree):
                nodes = slimfly.order(q) * (2 * degree + 1)
                yield self.design(
                    radix,
                    nodes,
                    diameter=3,
                    parameters={"q": q, "degree": degree},
                    supernode="paley",
                    supernode_degree=degree,
                    supernode_order=2 * degree + 1,
                )

    def modules(self, parameters: Parameters) -> Iterator[Modules]:
        """Yield modules of one supernode each."""
        q, degree = shape(parameters)
        supernode_order, supernodes = 2 * degree + 1, slimfly.order(q)
        bundles = supernodes * slimfly.degree(q) // 2
        yield Modules(
            size=supernode_order,
            count=supernodes,
            inside=supernode_order * degree // 2,
            bundles=bundles,
        )
