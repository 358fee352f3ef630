"""The network families of the Projective Networks paper, with formulas for members of every size.

A member has N vertices of degree Δ, mean distance k̄ and link utilisation u; from these follow the
compute nodes T that it carries and the ports R of its routers. `ideal_mean` and `ideal_hosts` are
the bounds that generalised Moore graphs set.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from itertools import takewhile
from math import isnan, nan
from typing import Literal

from compilers.topology.family import moore_bound
from compilers.topology.field import prime_power
from extensions.baselines import slimfly
from extensions.papers.graph_shapes import (
    GraphShape,
    baseline_shape,
    delorme_shape,
    demi_shape,
    moore_mean,
    moore_shape,
)

LARGEST_ROUTER = 64
"""R, the ports of a router in figures 7 to 9."""
NEAR_A_LIMIT = 0.001
"""The relative distance from its limit that a large member may have."""
CUBES = range(2, 17)
"""The dimensions of hypercubes."""
PRIME_POWERS = tuple(q for q in range(2, 65) if prime_power(q))
"""The parameters q of families that exist for prime powers."""
SaidOfBound = Literal["attains", "attains in the limit", "does not attain", "is drawn above"]
"""The values of `NetworkGrowth.said_of_bound`."""


@dataclass(frozen=True, slots=True)
class NetworkGrowth:
    """How the size, k̄ and u of a family of networks grow with its parameter."""

    name: str
    """The name of the family."""
    shape: Callable[[int], GraphShape]
    """The shape of the member with a parameter."""
    sizes: Iterable[int]
    """Parameters of members in ascending order. The largest has routers of more than
    `LARGEST_ROUTER` ports, but for hypercubes, which end at `CUBES`, and Delorme's graphs."""
    large_parameter: int
    """A parameter so large that k̄ and u are close to their limits."""
    diameter: int
    """The diameter that Table II prints."""
    mean_limit: float
    """The limit of k̄ that Table II prints."""
    utilisation_limit: float = 1.0
    """The limit of u that Table II prints."""
    said_of_bound: SaidOfBound = "is drawn above"
    """What the paper says of its curve and the bound of figure 7. Of some families it says nothing:
    their curves are drawn, and the bound is below all curves. Of demi-PN it says that it attains
    the bound; that is true in the limit."""
    has_formulas: bool = True
    """Whether there are formulas of k̄ and u."""
    largest: str = f"the largest with R up to {LARGEST_ROUTER}"
    """The last of `members`, in words."""

    @property
    def is_optimal(self) -> bool:
        """Whether the paper counts it among the optimal topologies: it attains the bound."""
        return self.said_of_bound in ("attains", "attains in the limit")

    def members(self) -> list[GraphShape]:
        """The shapes of the members that routers of `LARGEST_ROUTER` ports can build.

        Those whose u is not computed are left out.
        """
        shapes = [shape for shape in map(self.shape, self.sizes) if not isnan(shape.utilisation)]
        fitting = takewhile(lambda shape: shape.quantities()["R"] <= LARGEST_ROUTER, shapes)
        return list(fitting)


def cost(shape: GraphShape) -> float:
    """k̄/u, the measure of cost of formula (2); nan where u is not computed."""
    return shape.mean / shape.utilisation


def least_diameter(order: int, degree: int) -> int:
    """The diameter of a generalised Moore graph: the least whose Moore bound holds the order."""
    diameter = 1
    while moore_bound(degree, diameter) < order:
        diameter += 1
    return diameter


def ideal_mean(shape: GraphShape) -> float:
    """The k̄ of a generalised Moore graph of this order and degree; no graph has a smaller one."""
    return moore_mean(shape.order, shape.degree, least_diameter(shape.order, shape.degree))


def ideal_hosts(mean: float) -> float:
    """The compute nodes T of the ideal network with this k̄, u = 1 and `LARGEST_ROUTER` ports R.

    It is a generalised Moore graph, and no network with more compute nodes has this k̄/u. Formula
    (5) of the paper is used without rounding: the degree and the numbers of vertices may be any
    real numbers.

    - By formula (1), Δ0 = Δ/k̄, so R = Δ + Δ/k̄ and the degree is Δ = R·k̄/(k̄ + 1).
    - At each distance t below the diameter D there are n_t = Δ·(Δ - 1)^(t - 1) vertices. All
      further ones are at distance D.
    - With M vertices besides the first one, the sum of their distances is
      k̄·M = Σ t·n_t + D·(M - Σ n_t). So M = Σ (D - t)·n_t / (D - k̄).
    - D is the least diameter at which the mean distance of all vertices within it, were it full,
      would reach k̄.
    """
    degree = LARGEST_ROUTER * mean / (mean + 1)
    # The numbers of vertices at distance 1, 2, …, up to a diameter, and their sum.
    at_distance, within_diameter = [degree], degree
    diameter = 2
    while True:
        at_distance.append(at_distance[-1] * (degree - 1))
        within_diameter += at_distance[-1]
        if sum(t * n for t, n in enumerate(at_distance, 1)) >= mean * within_diameter:
            break
        diameter += 1
    others = sum((diameter - t) * n for t, n in enumerate(at_distance, 1)) / (diameter - mean)
    order = 1 + others
    return order * degree / mean


def _sum_of_powers(q: int, highest: int) -> int:
    """1 + q + q² + … + q^highest."""
    return sum(int(q**power) for power in range(highest + 1))


def _turan(parts: int) -> Callable[[int], GraphShape]:
    """The shapes of Turán graphs by the vertices of a part."""
    return lambda n: moore_shape(order=parts * n, degree=(parts - 1) * n, diameter=2)


def _hamming(dimensions: int) -> Callable[[int], GraphShape]:
    """The shapes of Hamming graphs by their side."""

    def shape(n: int) -> GraphShape:
        """The shape of the Hamming graph with side n."""
        sides = "x".join([str(n)] * dimensions)
        return baseline_shape("hyperx", dimensions * (n - 1), sides=sides)

    return shape


def _hypercube(n: int) -> GraphShape:
    """The shape of the hypercube of n dimensions."""
    return GraphShape(order=2**n, degree=n, mean=n * 2 ** (n - 1) / (2**n - 1))


def _incidence(diameter: int, highest: int) -> Callable[[int], GraphShape]:
    """The shapes of incidence graphs of generalised polygons by q.

    Args:
        diameter: the diameter of the graphs.
        highest: the highest power in the number of points, 1 + q + … + q^highest.
    """
    return lambda q: moore_shape(
        order=2 * _sum_of_powers(q, highest), degree=q + 1, diameter=diameter
    )


def _delorme_hexagon(q: int) -> GraphShape:
    """The shape without k̄ and u, of which there is no formula here."""
    return GraphShape(order=_sum_of_powers(q, 5), degree=q + 1, mean=nan, utilisation=nan)


def _slim_fly(q: int) -> GraphShape:
    """The shape of Slim Fly's McKay–Miller–Širáň graph."""
    return baseline_shape("slimfly", slimfly.degree(q), q=q)


def _dragonfly(h: int) -> GraphShape:
    """The shape of the balanced dragonfly with h global links a router."""
    return baseline_shape("dragonfly", 3 * h - 1, h=h)


GROWTHS = (
    NetworkGrowth(
        "complete graph",
        shape=lambda n: moore_shape(order=n, degree=n - 1, diameter=1),
        sizes=range(2, 99),
        large_parameter=4096,
        diameter=1,
        mean_limit=1.0,
        said_of_bound="attains",
    ),
    NetworkGrowth(
        "Turán, r=3",
        shape=_turan(3),
        sizes=range(2, 99),
        large_parameter=2048,
        diameter=2,
        mean_limit=4 / 3,
        said_of_bound="attains",
    ),
    NetworkGrowth(
        "complete bipartite",
        shape=_turan(2),
        sizes=range(2, 99),
        large_parameter=2048,
        diameter=2,
        mean_limit=1.5,
        said_of_bound="attains",
    ),
    NetworkGrowth(
        "Hamming 2D",
        shape=_hamming(2),
        sizes=range(3, 99),
        large_parameter=2048,
        diameter=2,
        mean_limit=2.0,
        said_of_bound="attains",
    ),
    NetworkGrowth(
        "demi-PN",
        shape=demi_shape,
        sizes=PRIME_POWERS,
        large_parameter=2048,
        diameter=2,
        mean_limit=2.0,
        said_of_bound="attains in the limit",
    ),
    NetworkGrowth(
        "Slim Fly MMS",
        shape=_slim_fly,
        sizes=PRIME_POWERS[3:],
        large_parameter=2048,
        diameter=2,
        mean_limit=2.0,
        utilisation_limit=8 / 9,
        said_of_bound="does not attain",
    ),
    NetworkGrowth(
        "PN",
        shape=_incidence(diameter=3, highest=2),
        sizes=PRIME_POWERS,
        large_parameter=2048,
        diameter=3,
        mean_limit=2.5,
        said_of_bound="attains",
    ),
    NetworkGrowth(
        "dragonfly",
        shape=_dragonfly,
        sizes=range(1, 99),
        large_parameter=512,
        diameter=3,
        mean_limit=3.0,
        said_of_bound="does not attain",
    ),
    NetworkGrowth(
        "Delorme, quadrangles",
        shape=delorme_shape,
        sizes=(2, 8, 32),
        large_parameter=2048,
        diameter=3,
        mean_limit=3.0,
        said_of_bound="attains in the limit",
    ),
    NetworkGrowth(
        "Hamming 3D",
        shape=_hamming(3),
        sizes=range(2, 99),
        large_parameter=2048,
        diameter=3,
        mean_limit=3.0,
    ),
    NetworkGrowth(
        "quadrangle incidence",
        shape=_incidence(diameter=4, highest=3),
        sizes=PRIME_POWERS,
        large_parameter=2048,
        diameter=4,
        mean_limit=3.5,
    ),
    NetworkGrowth(
        "Delorme, hexagons",
        shape=_delorme_hexagon,
        sizes=(3, 27),
        large_parameter=2187,
        diameter=5,
        mean_limit=5.0,
        has_formulas=False,
    ),
    NetworkGrowth(
        "hexagon incidence",
        shape=_incidence(diameter=6, highest=5),
        sizes=PRIME_POWERS,
        large_parameter=2048,
        diameter=6,
        mean_limit=5.5,
    ),
    NetworkGrowth(
        "hypercube",
        shape=_hypercube,
        sizes=CUBES,
        large_parameter=10,
        diameter=10,
        mean_limit=5.0,
        largest=f"{CUBES[-1]} dimensions, R = {CUBES[-1] + 2}",
    ),
)
"""The rows of Tables II and III."""


def growth(name: str) -> NetworkGrowth:
    """The family of `GROWTHS` with a name."""
    return next(family for family in GROWTHS if family.name == name)
