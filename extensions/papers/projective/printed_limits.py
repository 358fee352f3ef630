"""The formulas that Table III of the Projective Networks paper prints for T, R and Δ0.

A network has N routers of degree Δ, and Δ0 compute nodes at each. It has T = N·Δ0 compute nodes,
and routers of R = Δ + Δ0 ports. Formula (1) of the paper is Δ0 = Δ·u/k̄, with the mean distance k̄
and the mean load u of a link over the largest. The paper does not say of which network it takes
k̄ and u. `READINGS` has the ways that give the printed digits.

`LIMITS` has the printed formulas of each family and the way in which we compute Δ0. The exhibit of
Table III compares both at the example of each row.
"""

from __future__ import annotations

from collections.abc import Callable
from math import floor
from typing import NamedTuple

from extensions.papers.graph_shapes import GraphShape
from extensions.papers.projective.network_growth import growth

Shape = Callable[[int], GraphShape]
"""Computes the size, k̄ and u of a graph from its parameter (`NetworkGrowth.shape`)."""


class Limit(NamedTuple):
    """The printed formulas of a family, and how Δ0 is computed."""

    formulas: Callable[[int], dict[str, float]]
    """T, R and Δ0 by the printed formulas, from the parameter of a member."""
    size: int
    """The parameter of the example in Table III."""
    shape: Shape
    """Computes the size, k̄ and u of the member with a parameter, by our formulas."""
    hosts_of_router: Callable[[Shape, int], float] | None
    """Computes Δ0 of the example from `shape` and `size`, in one of the ways in `READINGS`; None
    where u is not known at its limit."""

    def quantities(self) -> dict[str, float]:
        """T, R and Δ0 of the example, as computed here; empty where Δ0 is not computed."""
        if self.hosts_of_router is None:
            return {}
        example, hosts = self.shape(self.size), self.hosts_of_router(self.shape, self.size)
        return {"T": example.order * hosts, "R": example.degree + hosts, "Δ0": hosts}


# The printed T, R and Δ0 of each family, from the parameter of a member.


def _complete(n: int) -> dict[str, float]:
    """The complete graph of n vertices."""
    return {"T": n**2, "R": 2 * n - 1, "Δ0": n}


def _turan(n: int) -> dict[str, float]:
    """The Turán graph of 3n vertices in r = 3 parts."""
    order, r = 3 * n, 3
    return {
        "T": order**2 * (r - 1) / (r + 1),
        "R": order * (r - 1) * (2 * r + 1) / (r * (r + 1)),
        "Δ0": order * (r - 1) / (r + 1),
    }


def _bipartite(n: int) -> dict[str, float]:
    """The complete bipartite graph with n vertices on each side."""
    return {"T": 4 * n**2 / 3, "R": 5 * n / 3, "Δ0": 2 * n / 3}


def _hamming_2d(n: int) -> dict[str, float]:
    """The Hamming graph of pairs from n × n."""
    return {"T": n**3, "R": 3 * n - 2, "Δ0": n}


def _demi_pn(q: int) -> dict[str, float]:
    """The modified incidence graph, which is PolarFly's."""
    return {"T": q**3 / 2 + q**2 + q + 1 / 2, "R": 3 * (q + 1) / 2, "Δ0": (q + 1) / 2}


def _slim_fly(q: int) -> dict[str, float]:
    """Slim Fly's graph; q is congruent to ε modulo 4, which is -1, 0 or 1."""
    epsilon = (q + 1) % 4 - 1
    links = 3 * q - epsilon
    return {"T": 4 * q**2 * links / 9, "R": 13 * links / 18, "Δ0": 2 * links / 9}


def _pn(q: int) -> dict[str, float]:
    """The incidence graph of a projective plane of order q."""
    return {
        "T": 4 * (q**3 + 2 * q**2 + 2 * q + 1) / 5,
        "R": 7 * (q + 1) / 5,
        "Δ0": 2 * (q + 1) / 5,
    }


def _dragonfly(h: int) -> dict[str, float]:
    """The balanced dragonfly with h global links a router."""
    return {"T": 4 * h**4 + 2 * h**2, "R": 4 * h - 1, "Δ0": h}


def _delorme(q: int) -> dict[str, float]:
    """Delorme's graph on the generalised quadrangle of order q."""
    return {"T": (q + 1) ** 2 * (q**2 + 1) / 3, "R": 4 * (q + 1) / 3, "Δ0": (q + 1) / 3}


def _hamming_3d(n: int) -> dict[str, float]:
    """The Hamming graph of triples from n × n × n."""
    return {"T": n**4, "R": 4 * n - 3, "Δ0": n}


def _quadrangle(q: int) -> dict[str, float]:
    """The incidence graph of the generalised quadrangle of order q."""
    return {
        "T": 4 * (q + 1) ** 2 * (q**2 + 1) / 7,
        "R": 9 * (q + 1) / 7,
        "Δ0": 2 * (q + 1) / 7,
    }


def _delorme_hexagon(q: int) -> dict[str, float]:
    """Delorme's graph on the generalised hexagon of order q."""
    return {
        "T": (q**4 + q**2 + 1) * (q + 1) ** 2 / 5,
        "R": 6 * (q + 1) / 5,
        "Δ0": (q + 1) / 5,
    }


def _hexagon(q: int) -> dict[str, float]:
    """The incidence graph of the generalised hexagon of order q."""
    return {
        "T": 4 * (q**4 + q**2 + 1) * (q + 1) ** 2 / 11,
        "R": 13 * (q + 1) / 11,
        "Δ0": 2 * (q + 1) / 11,
    }


def _hypercube(n: int) -> dict[str, float]:
    """The hypercube of n dimensions."""
    return {"T": 2 ** (n + 1), "R": n + 2, "Δ0": 2}


HUGE = 2**24
"""A parameter at which k̄ and u are at their limits, but for one part in a million."""


def hosts_by_mean_degree(shape: Shape, size: int) -> float:
    """Δ0 of the example, by formula (1) with its mean degree 2E/N in place of Δ, for E links."""
    return shape(size).quantities()["Δ0"]


def hosts_at_the_limit(shape: Shape, size: int) -> float:
    """Δ0 of the example, by formula (1) with k̄ and u of a huge member."""
    huge = shape(HUGE)
    return shape(size).degree * huge.utilisation / huge.mean


def hosts_with_itself(shape: Shape, size: int) -> float:
    """Δ0 of the example, by formula (1), where k̄ counts a vertex itself, too, at distance 0."""
    example = shape(size)
    mean_with_itself = example.mean * (example.order - 1) / example.order
    return example.degree * example.utilisation / mean_with_itself


def hosts_in_whole_nodes(shape: Shape, size: int) -> float:
    """Δ0 of the example, by formula (1) with its mean degree, rounded down."""
    return floor(hosts_by_mean_degree(shape, size))


READINGS: dict[Callable[[Shape, int], float], str] = {
    hosts_by_mean_degree: "With the mean degree in formula (1).",
    hosts_at_the_limit: f"With k̄ and u at their limits, here those of {HUGE:,}.",
    hosts_with_itself: "With k̄ over all vertices, itself at distance 0 included.",
    hosts_in_whole_nodes: "Read as whole compute nodes: the most that formula (1) allows.",
}
"""How the printed formulas are read, by the function that computes Δ0."""
LIMITS = {
    "complete graph, N=32": Limit(
        formulas=_complete,
        size=32,
        shape=growth("complete graph").shape,
        hosts_of_router=hosts_with_itself,
    ),
    "Turán, N=48 r=3": Limit(
        formulas=_turan,
        size=16,
        shape=growth("Turán, r=3").shape,
        hosts_of_router=hosts_at_the_limit,
    ),
    "complete bipartite, n=24": Limit(
        formulas=_bipartite,
        size=24,
        shape=growth("complete bipartite").shape,
        hosts_of_router=hosts_at_the_limit,
    ),
    "Hamming 2D, n=22": Limit(
        formulas=_hamming_2d,
        size=22,
        shape=growth("Hamming 2D").shape,
        hosts_of_router=hosts_with_itself,
    ),
    "demi-PN, q=27": Limit(
        formulas=_demi_pn,
        size=27,
        shape=growth("demi-PN").shape,
        hosts_of_router=hosts_by_mean_degree,
    ),
    "Slim Fly, q=19": Limit(
        formulas=_slim_fly,
        size=19,
        shape=growth("Slim Fly MMS").shape,
        hosts_of_router=hosts_at_the_limit,
    ),
    "PN, q=23": Limit(
        formulas=_pn, size=23, shape=growth("PN").shape, hosts_of_router=hosts_at_the_limit
    ),
    "Dragonfly, h=7": Limit(
        formulas=_dragonfly,
        size=7,
        shape=growth("dragonfly").shape,
        hosts_of_router=hosts_in_whole_nodes,
    ),
    "Delorme quadrangle, q=32": Limit(
        formulas=_delorme, size=32, shape=growth("Delorme, quadrangles").shape, hosts_of_router=None
    ),
    "Hamming 3D, n=9": Limit(
        formulas=_hamming_3d,
        size=9,
        shape=growth("Hamming 3D").shape,
        hosts_of_router=hosts_with_itself,
    ),
    "quadrangle incidence, q=9": Limit(
        formulas=_quadrangle,
        size=9,
        shape=growth("quadrangle incidence").shape,
        hosts_of_router=hosts_at_the_limit,
    ),
    "Delorme hexagon, q=3": Limit(
        formulas=_delorme_hexagon,
        size=3,
        shape=growth("Delorme, hexagons").shape,
        hosts_of_router=None,
    ),
    "hexagon incidence, q=5": Limit(
        formulas=_hexagon,
        size=5,
        shape=growth("hexagon incidence").shape,
        hosts_of_router=hosts_at_the_limit,
    ),
    "hypercube, n=10": Limit(
        formulas=_hypercube,
        size=10,
        shape=growth("hypercube").shape,
        hosts_of_router=hosts_with_itself,
    ),
}
"""The formulas by rows of the table, which have the names of examples in `papers.yaml`."""
