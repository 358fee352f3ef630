"""Formulas for the graphs of the Projective Networks paper: their size N, degree Δ, k̄ and u.

k̄ is the mean distance, and u the mean load of a link over the largest. The exhibits of that paper
read the formulas as a `GraphShape`. A test compares every formula with distances and loads that are
measured in small graphs. For polarity quotients of generalised hexagons there is no formula of k̄
and u.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from math import isnan, nan

from compilers.families.polarfly import polarity_utilisation
from compilers.topology.families import BASELINES
from extensions.papers.exhibit import or_nan


@dataclass(frozen=True, slots=True)
class GraphShape:
    """The size of a graph, and how well it uses its links."""

    order: int
    """N, how many vertices it has."""
    degree: int
    """The largest degree."""
    mean: float
    """The mean distance k̄ of two vertices."""
    utilisation: float = 1.0
    """u, the mean load of a link over the largest; nan where it is not computed."""
    irregular_arcs: int | None = None
    """The links in both directions, in a graph that is not regular; None in a regular one, where
    they are N·Δ."""

    def quantities(self) -> dict[str, float]:
        """The quantities by the paper's letters: T, R, N, Δ and Δ0.

        A network has T compute nodes, routers of R ports, N routers of degree Δ, and
        Δ0 = 2E·u/(N·k̄) compute nodes at each. If u is not computed, there are only N and Δ.
        """
        sizes: dict[str, float] = {"N": self.order, "Δ": self.degree}
        if isnan(self.utilisation):
            return sizes
        arcs = self.irregular_arcs
        if arcs is None:
            arcs = self.order * self.degree
        hosts = arcs * self.utilisation / (self.order * self.mean)
        return {"T": self.order * hosts, "R": self.degree + hosts, **sizes, "Δ0": hosts}


def moore_mean(order: int, degree: int, diameter: int) -> float:
    """The k̄ of a generalised Moore graph.

    It has as many vertices as its degree allows at each distance below the diameter.
    """
    # How many vertices are at each distance t below the diameter.
    at_distance = [degree * int((degree - 1) ** (t - 1)) for t in range(1, diameter)]
    at_diameter = order - 1 - sum(at_distance)
    total = sum(t * n for t, n in enumerate(at_distance, 1)) + diameter * at_diameter
    return total / (order - 1)


def moore_shape(*, order: int, degree: int, diameter: int) -> GraphShape:
    """The shape of a generalised Moore graph with u = 1."""
    return GraphShape(order=order, degree=degree, mean=moore_mean(order, degree, diameter))


DELORME_UTILISATION = {2: 1.0, 8: 39 / 40}
"""The u of Delorme's graph of the quadrangle W(q) by q, as measured."""


def delorme_shape(q: int) -> GraphShape:
    """The shape of Delorme's graph of the quadrangle W(q), for q an odd power of 2.

    The graph has no triangles and no squares. So all paths of two links lead to different vertices,
    and all other vertices are at distance 3. That was measured for q = 2, 8 and 32, and u for the q
    of `DELORME_UTILISATION`.
    """
    order = q**3 + q * q + q + 1
    absolute_points = q * q + 1  # points on their own line: they have degree q, others q + 1
    other_points = order - absolute_points
    arcs = absolute_points * q + other_points * (q + 1)
    at_two = absolute_points * q * (q - 1) + other_points * (q + 1) * q
    at_three = order * (order - 1) - arcs - at_two
    mean = (arcs + 2 * at_two + 3 * at_three) / (order * (order - 1))
    return GraphShape(
        order=order,
        degree=q + 1,
        mean=mean,
        utilisation=DELORME_UTILISATION.get(q, nan),
        irregular_arcs=arcs,
    )


def demi_shape(q: int) -> GraphShape:
    """The shape of the modified incidence graph, which is PolarFly's."""
    order, arcs = q * q + q + 1, q * (q + 1) ** 2
    mean = 2 - arcs / (order * (order - 1))
    return GraphShape(
        order=order,
        degree=q + 1,
        mean=mean,
        utilisation=polarity_utilisation(q),
        irregular_arcs=arcs,
    )


def baseline_shape(family: str, degree: int, **parameters: int | str) -> GraphShape:
    """The shape of a baseline family, by its formulas."""
    baseline = BASELINES[family]
    mean, utilisation = baseline.mean_distance(parameters), baseline.utilisation(parameters)
    return GraphShape(
        order=baseline.order(parameters),
        degree=degree,
        mean=or_nan(mean),
        utilisation=or_nan(utilisation),
    )


SHAPES: dict[str, Callable[[], GraphShape]] = {
    "complete graph, N=32": lambda: moore_shape(order=32, degree=31, diameter=1),
    "Turán, N=48 r=3": lambda: moore_shape(order=48, degree=32, diameter=2),
    "complete bipartite, n=24": lambda: moore_shape(order=48, degree=24, diameter=2),
    "Hamming 2D, n=22": lambda: baseline_shape("hyperx", 42, sides="22x22"),
    "demi-PN, q=27": lambda: demi_shape(27),
    "Slim Fly, q=19": lambda: baseline_shape("slimfly", 29, q=19),
    "PN, q=23": lambda: moore_shape(order=1106, degree=24, diameter=3),
    "Dragonfly, h=7": lambda: baseline_shape("dragonfly", 20, h=7),
    "Delorme quadrangle, q=32": lambda: delorme_shape(32),
    "Hamming 3D, n=9": lambda: baseline_shape("hyperx", 24, sides="9x9x9"),
    "quadrangle incidence, q=9": lambda: moore_shape(order=1640, degree=10, diameter=4),
    "Delorme hexagon, q=3": lambda: GraphShape(order=364, degree=4, mean=nan, utilisation=nan),
    "hexagon incidence, q=5": lambda: moore_shape(order=7812, degree=6, diameter=6),
    "hypercube, n=10": lambda: GraphShape(order=2**10, degree=10, mean=10 * 2**9 / (2**10 - 1)),
}
"""The example of each row of Table III, by the name of the row in `papers.yaml`."""


def structural_values(network: str) -> dict[str, float]:
    """T, R, N, Δ and Δ0 of the example in a row of Table III, by its name in `SHAPES`."""
    return SHAPES[network]().quantities()
