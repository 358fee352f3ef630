"""The formulas that Table III of the Projective Networks paper prints for T, R and Δ0.

They are limits for large networks, so each is compared with the shape of a large member.
The functions here have one family each: its printed formulas, at a parameter.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from extensions.papers.limits import GraphShape
from extensions.papers.projective.network_growth import growth


class Limit(NamedTuple):
    """The printed formulas of a family, and the large member with which they are compared."""

    formulas: Callable[[int], dict[str, float]]
    """T, R and Δ0 by the printed formulas, of a parameter."""
    size: int
    """The parameter of a large member."""
    shape: Callable[[int], GraphShape]
    """Our shape of the member with a parameter."""


def _complete(n: int) -> dict[str, float]:
    return {"T": n**2, "R": 2 * n - 1, "Δ0": n}


def _turan(n: int) -> dict[str, float]:
    """Of 3n vertices in r = 3 parts."""
    order, r = 3 * n, 3
    return {
        "T": order**2 * (r - 1) / (r + 1),
        "R": order * (r - 1) * (2 * r + 1) / (r * (r + 1)),
        "Δ0": order * (r - 1) / (r + 1),
    }


def _bipartite(n: int) -> dict[str, float]:
    return {"T": 4 * n**2 / 3, "R": 5 * n / 3, "Δ0": 2 * n / 3}


def _hamming_2d(n: int) -> dict[str, float]:
    return {"T": n**3, "R": 3 * n - 2, "Δ0": n}


def _demi_pn(q: int) -> dict[str, float]:
    return {"T": q**3 / 2 + q**2 + q + 1 / 2, "R": 3 * (q + 1) / 2, "Δ0": (q + 1) / 2}


def _slim_fly(q: int) -> dict[str, float]:
    """ε is -1, 0 or 1, and q is congruent to it modulo 4."""
    epsilon = (q + 1) % 4 - 1
    links = 3 * q - epsilon
    return {"T": 4 * q**2 * links / 9, "R": 13 * links / 18, "Δ0": 2 * links / 9}


def _pn(q: int) -> dict[str, float]:
    return {
        "T": 4 * (q**3 + 2 * q**2 + 2 * q + 1) / 5,
        "R": 7 * (q + 1) / 5,
        "Δ0": 2 * (q + 1) / 5,
    }


def _dragonfly(h: int) -> dict[str, float]:
    return {"T": 4 * h**4 + 2 * h**2, "R": 4 * h - 1, "Δ0": h}


def _delorme(q: int) -> dict[str, float]:
    return {"T": (q + 1) ** 2 * (q**2 + 1) / 3, "R": 4 * (q + 1) / 3, "Δ0": (q + 1) / 3}


def _hamming_3d(n: int) -> dict[str, float]:
    return {"T": n**4, "R": 4 * n - 3, "Δ0": n}


def _quadrangle(q: int) -> dict[str, float]:
    return {
        "T": 4 * (q + 1) ** 2 * (q**2 + 1) / 7,
        "R": 9 * (q + 1) / 7,
        "Δ0": 2 * (q + 1) / 7,
    }


def _delorme_hexagon(q: int) -> dict[str, float]:
    return {
        "T": (q**4 + q**2 + 1) * (q + 1) ** 2 / 5,
        "R": 6 * (q + 1) / 5,
        "Δ0": (q + 1) / 5,
    }


def _hexagon(q: int) -> dict[str, float]:
    return {
        "T": 4 * (q**4 + q**2 + 1) * (q + 1) ** 2 / 11,
        "R": 13 * (q + 1) / 11,
        "Δ0": 2 * (q + 1) / 11,
    }


def _hypercube(n: int) -> dict[str, float]:
    return {"T": 2 ** (n + 1), "R": n + 2, "Δ0": 2}


LIMITS = {
    "complete graph, N=32": Limit(_complete, 4096, growth("complete graph").shape),
    "Turán, N=48 r=3": Limit(_turan, 2048, growth("Turán, r=3").shape),
    "complete bipartite, n=24": Limit(_bipartite, 2048, growth("complete bipartite").shape),
    "Hamming 2D, n=22": Limit(_hamming_2d, 2048, growth("Hamming 2D").shape),
    "demi-PN, q=27": Limit(_demi_pn, 2048, growth("demi-PN").shape),
    "Slim Fly, q=19": Limit(_slim_fly, 2048, growth("Slim Fly MMS").shape),
    "PN, q=23": Limit(_pn, 2048, growth("PN").shape),
    "Dragonfly, h=7": Limit(_dragonfly, 512, growth("dragonfly").shape),
    "Delorme quadrangle, q=32": Limit(_delorme, 32, growth("Delorme, quadrangles").shape),
    "Hamming 3D, n=9": Limit(_hamming_3d, 256, growth("Hamming 3D").shape),
    "quadrangle incidence, q=9": Limit(_quadrangle, 2048, growth("quadrangle incidence").shape),
    "Delorme hexagon, q=27": Limit(_delorme_hexagon, 27, growth("Delorme, hexagons").shape),
    "hexagon incidence, q=5": Limit(_hexagon, 2048, growth("hexagon incidence").shape),
    "hypercube, n=10": Limit(_hypercube, 16, growth("hypercube").shape),
}
"""The limits by rows of the table, which have the names of examples in `papers.yaml`."""
