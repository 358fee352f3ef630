"""Build and measure small members of the families of the Projective Networks paper.

The exhibits and tests compare their distances and link loads with the values that
`extensions.papers.graph_shapes` computes by formulas.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from compilers.evaluation.analysis.distances import distribution
from compilers.evaluation.analysis.link_load import uniform
from compilers.topology.adjacency import Graph
from compilers.topology.families import build_topology
from compilers.topology.labelled_graph import Topology
from extensions.papers.exhibit import or_nan
from extensions.papers.graphs import Adjacency, turan
from extensions.papers.projective.delorme_graph import delorme
from extensions.papers.projective.generalised_hexagon import (
    SELF_POLAR,
    delorme_of_hexagon,
    hexagon_incidence,
)
from extensions.papers.projective.generalised_quadrangle import quadrangle_incidence, router_graph


@dataclass(frozen=True, slots=True)
class MeasuredMember:
    """What was measured in a built graph, with traffic split evenly over all minimal paths."""

    size: int
    """The parameter of the family."""
    diameter: float
    """The largest distance."""
    mean: float
    """k̄, the mean distance."""
    utilisation: float
    """u, the mean load of a link over the largest."""


class SmallMembers(NamedTuple):
    """Small members of a family, which are built and measured."""

    sizes: tuple[int, ...]
    """The parameters of the members, ascending."""
    build: Callable[[int], Topology]
    """Builds the member with a parameter."""


def measured_members(family: str) -> Iterator[MeasuredMember]:
    """Yield what is measured in the small members of a family of `network_growth.GROWTHS`.

    The dragonfly, which is not in `SMALL_MEMBERS`, has none.
    """
    if family not in SMALL_MEMBERS:
        return
    sizes, build = SMALL_MEMBERS[family]
    for size in sizes:
        topology = build(size)
        distances = distribution(topology)
        utilisation = uniform(topology).utilisation
        yield MeasuredMember(
            size=size,
            diameter=or_nan(distances.diameter),
            mean=or_nan(distances.mean),
            utilisation=utilisation,
        )


def _of_adjacency(adjacency: Adjacency, diameter: int) -> Topology:
    """The topology of the graph with an adjacency matrix.

    `router_graph` names graphs by a parameter q. It is the number of vertices here.
    """
    order = len(adjacency)
    graph = Graph.from_edges(order, np.argwhere(np.triu(adjacency)))
    return router_graph("small graph", order, graph, diameter)


def _complete(n: int) -> Topology:
    """The complete graph of n vertices."""
    return _of_adjacency(~np.eye(n, dtype=np.bool_), diameter=1)


def _turan(n: int, parts: int) -> Topology:
    """The Turán graph: n vertices in equal parts; those of different parts are joined."""
    return _of_adjacency(turan(n, parts), diameter=2)


def _hamming(dimensions: int) -> Callable[[int], Topology]:
    """The function that builds a Hamming graph by its side."""
    return lambda n: build_topology("hyperx", {"sides": "x".join([str(n)] * dimensions)})


def _hypercube(n: int) -> Topology:
    """The hypercube of n dimensions."""
    return build_topology("hyperx", {"sides": "x".join("2" * n)})


def _by_q(family: str) -> Callable[[int], Topology]:
    """The function that builds a member of a family by its parameter q."""
    return lambda q: build_topology(family, {"q": q})


SMALL_MEMBERS = {
    "complete graph": SmallMembers((4, 9), _complete),
    "Turán, r=3": SmallMembers((2, 5), lambda n: _turan(3 * n, parts=3)),
    "complete bipartite": SmallMembers((2, 5), lambda n: _turan(2 * n, parts=2)),
    "Hamming 2D": SmallMembers((3, 5), _hamming(2)),
    "demi-PN": SmallMembers((4, 5, 9), _by_q("polarfly")),
    "Slim Fly MMS": SmallMembers((5, 7, 8, 9), _by_q("slimfly")),
    "PN": SmallMembers((3, 4, 5), _by_q("pn")),
    "Delorme, quadrangles": SmallMembers((2, 8), delorme),
    "Hamming 3D": SmallMembers((3, 4), _hamming(3)),
    "quadrangle incidence": SmallMembers((2, 3, 4), quadrangle_incidence),
    "Delorme, hexagons": SmallMembers((SELF_POLAR,), lambda _: delorme_of_hexagon()),
    "hexagon incidence": SmallMembers((2, 3), hexagon_incidence),
    "hypercube": SmallMembers((3, 10), _hypercube),
}
"""The small members of each family.

The dragonfly is missing: its k̄ and u are those of its usual routes, with one global link, which
are not always minimal."""

EXAMPLES: dict[str, Callable[[], Topology]] = {
    "complete graph, N=32": lambda: _complete(32),
    "Turán, N=48 r=3": lambda: _turan(48, parts=3),
    "complete bipartite, n=24": lambda: _turan(48, parts=2),
    "Hamming 2D, n=22": lambda: _hamming(2)(22),
    "demi-PN, q=27": lambda: build_topology("polarfly", {"q": 27}),
    "Slim Fly, q=19": lambda: build_topology("slimfly", {"q": 19}),
    "PN, q=23": lambda: build_topology("pn", {"q": 23}),
    "Dragonfly, h=7": lambda: build_topology("dragonfly", {"h": 7}),
    "Delorme quadrangle, q=32": lambda: delorme(32),
    "Hamming 3D, n=9": lambda: _hamming(3)(9),
    "quadrangle incidence, q=9": lambda: quadrangle_incidence(9),
    "Delorme hexagon, q=3": delorme_of_hexagon,
    "hexagon incidence, q=5": lambda: hexagon_incidence(5),
    "hypercube, n=10": lambda: _hypercube(10),
}
"""The examples in the rows of Table III, as `papers.yaml` names them."""


def order_and_degree(network: str) -> tuple[int, int]:
    """The vertices of an example of Table III and its largest degree, counted in its graph."""
    graph = EXAMPLES[network]().graph
    return graph.order, int(graph.degrees.max())


MEASURED_DRAGONFLY = 3
"""The h of the dragonfly whose diameter is measured."""


def diameter_of_a_dragonfly() -> float:
    """The diameter of the balanced dragonfly with h = `MEASURED_DRAGONFLY`."""
    return or_nan(distribution(build_topology("dragonfly", {"h": MEASURED_DRAGONFLY})).diameter)
