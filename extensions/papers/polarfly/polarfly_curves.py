"""What the simulated figures 8 to 11 of the PolarFly paper share: networks, loads, and claims.

Each of these figures has a file of its own, such as `polarfly_fig8`. They plot latency over load
(§VIII). MIN, UGAL and UGAL_PF are the paper's routings: minimal, adaptive, and adaptive with
Compact Valiant's detours.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from math import nan
from typing import NamedTuple

from extensions.papers.compared_network import ComparedNetwork
from extensions.papers.exhibit import PaperClaim
from extensions.papers.latency_curves import PaperFabric, deadlocks_of, latency_at
from extensions.simulation.latency_curve import LatencyCurve

SIMULATED_SMALL = {
    "PF": ComparedNetwork("polarfly", {"q": 7}, 4),
    "SF": ComparedNetwork("slimfly", {"q": 5}, 4),
    "DF1": ComparedNetwork("dragonfly", {"h": 2, "a": 4}, 2),
    "DF2": ComparedNetwork("dragonfly", {"h": 6, "a": 3}, 3),
    "JF": ComparedNetwork("jellyfish", {"nodes": 57, "degree": 8}, 4),
    "FT": ComparedNetwork("fat-tree", {"k": 4, "pods": 4}, 4),
}
"""Networks of the kinds of Table V, of 36 to 57 routers, which are simulated quickly."""
ADAPTIVE = ("UGAL", "UGAL_PF")
"""The adaptive routings."""
PERMUTED = ("permutation", "tornado")
"""The permutations of figure 8; figure 9 compares its own with these."""

# Loads at which curves are compared.
LOW_LOAD = 0.1
"""The load at which latencies are compared far below saturation."""
PERMUTATION_LOAD = 0.4
"""The load of a permutation at which minimal routes of every compared network are full."""
BELOW_THE_KNEE, ABOVE_THE_KNEE = 0.8, 0.9
"""Loads of uniform traffic, below and above that at which latency rises steeply."""

# How words of the paper are read.
RATIO_ERROR = 0.1
"""By how much values differ at most that the paper calls "comparable" or "similar"."""
WITHIN_TEN_PERCENT = "Read as 10 % apart at most."
"""How these words are read (`RATIO_ERROR`)."""
NOT_AT_THIS_LOAD = "With seed 0 {} does not sustain this load."
"""The remark on a latency at a load that is above the saturation of a routing."""


class NetworkRouting(NamedTuple):
    """A network with a routing."""

    network: str
    """The short name of the network."""
    routing: str
    """The routing: MIN, UGAL or UGAL_PF."""


class PatternRouting(NamedTuple):
    """A traffic pattern and a routing, of PolarFly."""

    pattern: str
    """The traffic pattern."""
    routing: str
    """The routing: MIN, UGAL or UGAL_PF."""


def routed_fabrics(
    networks: Mapping[str, ComparedNetwork],
) -> dict[NetworkRouting, PaperFabric]:
    """The networks, each with the routings that the paper gives it.

    The authors' program has one path a pair for PolarFly, Slim Fly and Jellyfish. It has BookSim's
    own Dragonfly, with one path too, and BookSim's fat tree, whose packets go up by any link
    (`nca`).
    """
    routes_of = {"PF": ("MIN", "UGAL", "UGAL_PF"), "FT": ("MIN, all shortest paths",)}
    return {
        NetworkRouting(name, routes.partition(",")[0]): network.fabric(routes)
        for name, network in networks.items()
        for routes in routes_of.get(name, ("MIN", "UGAL"))
    }


def adaptation_claims(curves: Mapping[PatternRouting, LatencyCurve]) -> Iterator[PaperClaim]:
    """Yield the claims that UGAL_PF has higher latency than UGAL, in all patterns but two."""
    patterns = dict.fromkeys(key.pattern for key in curves)
    for pattern in patterns:
        if pattern not in ("uniform", "perm1hop"):
            curve_of = {routing: curves[PatternRouting(pattern, routing)] for routing in ADAPTIVE}
            remarks = " ".join(
                NOT_AT_THIS_LOAD.format(routing)
                for routing, curve in curve_of.items()
                if not _sustains(curve, PERMUTATION_LOAD)
            )
            yield PaperClaim.of_order(
                says=f"UGAL_PF takes longer than UGAL, load {PERMUTATION_LOAD}: {pattern}",
                first=simulated_latency(curve_of["UGAL_PF"], PERMUTATION_LOAD),
                relation=">",
                second=simulated_latency(curve_of["UGAL"], PERMUTATION_LOAD),
                interpretation=remarks,
            )


def simulated_latency(curve: LatencyCurve, load: float) -> float:
    """The mean latency at a load; nan if that was not simulated."""
    return latency_at(curve, load) if load in {point.offered for point in curve.points} else nan


def _sustains(curve: LatencyCurve, load: float) -> bool:
    """Whether all points of this load are sustained; also where there is none."""
    return all(point.sustained for point in curve.points if point.offered == load)


def next_load(load: float, curve: LatencyCurve) -> float:
    """The next larger load of the curve; nan if there is none, or `load` is nan."""
    return min((point.offered for point in curve.points if point.offered > load), default=nan)


def deadlocks_by_name(curves: Mapping[str, LatencyCurve]) -> tuple[str, ...]:
    """A line that names the curves with a deadlock; () without any."""
    return deadlocks_of(((name,), curve) for name, curve in curves.items())
