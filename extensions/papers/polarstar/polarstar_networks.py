"""The networks that the PolarStar paper simulates, and small ones of the same kinds."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class ComparedNetwork:
    """A network of Table 3.

    hosts: of a switch that has some. group: switches of a supernode, group or pod, in the order of
    their numbers; 0 in a network that has none.
    """

    family: str
    parameters: Mapping[str, int | str | None]
    hosts: int
    group: int = 0


def networks(quick: bool) -> dict[str, ComparedNetwork]:
    """By their short names, PolarStar's first."""
    return SMALLER if quick else CONFIGURED


def _star(q: int, supernode: str, degree: int, hosts: int, group: int) -> ComparedNetwork:
    parameters: dict[str, int | str | None] = {"q": q, "supernode": supernode, "degree": degree}
    return ComparedNetwork("polarstar", parameters, hosts, group)


CONFIGURED = {
    "PS-IQ": _star(11, "inductive-quad", 3, 5, 8),
    "PS-Pal": _star(8, "paley", 6, 5, 13),
    "BF": ComparedNetwork("bundlefly", {"q": 7, "degree": 4}, 5, 9),
    "HX": ComparedNetwork("hyperx", {"sides": "9x9x8"}, 8),
    "DF": ComparedNetwork("dragonfly", {"h": 6, "a": 12}, 6, 12),
    "SF": ComparedNetwork("spectralfly", {"p": 23, "q": 13}, 8),
    "MF": ComparedNetwork("megafly", {"h": 8, "a": 16}, 8, 16),
    "FT": ComparedNetwork("fat-tree", {"k": 18, "pods": 18}, 18),
}
"""Table 3, the Paley PolarStar corrected."""
SMALLER = {
    "PS-IQ": _star(3, "inductive-quad", 3, 2, 8),
    "PS-Pal": _star(4, "paley", 2, 2, 5),
    "BF": ComparedNetwork("bundlefly", {"q": 3, "degree": 2}, 2, 5),
    "HX": ComparedNetwork("hyperx", {"sides": "4x4x4"}, 3),
    "DF": ComparedNetwork("dragonfly", {"h": 3, "a": 6}, 3, 6),
    "SF": ComparedNetwork("spectralfly", {"p": 11, "q": 7}, 4),
    "MF": ComparedNetwork("megafly", {"h": 3, "a": 6}, 3, 6),
    "FT": ComparedNetwork("fat-tree", {"k": 6, "pods": 6}, 6),
}
"""Of about a tenth of the routers."""
