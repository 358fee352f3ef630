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
from extensions.papers.curve_presentation import deadlock_lines
from extensions.papers.curve_values import latency_at
from extensions.papers.exhibit import PaperClaim
from extensions.papers.paper_fabric import PaperFabric
from extensions.simulation.latency_curve import LatencyCurve

SIMULATED_SMALL = {
    "PF": ComparedNetwork("polarfly", {"q": 7}, hosts=4),
    "SF": ComparedNetwork("slimfly", {"q": 5}, hosts=4),
    "DF1": ComparedNetwork("dragonfly", {"h": 2, "a": 4}, hosts=2),
    "DF2": ComparedNetwork("dragonfly", {"h": 6, "a": 3}, hosts=3),
    "JF": ComparedNetwork("jellyfish", {"nodes": 57, "degree": 8}, hosts=4),
    "FT": ComparedNetwork("fat-tree", {"k": 4, "pods": 4}, hosts=4),
}
"""Networks of the kinds of Table V, of 36 to 57 routers, which are simulated quickly."""
ADAPTIVE = ("UGAL", "UGAL_PF")
"""The adaptive routings."""
PERMUTATIONS = ("permutation", "tornado")
"""The traffic patterns of figure 8 that are permutations; figure 9 compares its own with these."""

# Loads at which curves are compared.
LOW_LOAD = 0.1
"""The load at which latencies are compared far below saturation."""
PERMUTATION_LOAD = 0.4
"""The load at which latencies under a permutation are compared: minimal routes of every compared
network are full there."""
BELOW_THE_KNEE, ABOVE_THE_KNEE = 0.8, 0.9
"""Loads of uniform traffic, below and above that at which latency rises steeply."""

# How words of the paper are read.
COMPARABLE_ERROR = 0.1
"""How far from 1 the ratio of two values may be that the paper calls "comparable" or "similar"."""
WITHIN_TEN_PERCENT = "Read as 10 % apart at most."
"""How these words are read (`COMPARABLE_ERROR`)."""
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
    fabrics = {}
    for name, network in networks.items():
        for routes in routes_of.get(name, ("MIN", "UGAL")):
            routing, _, _ = routes.partition(",")  # of "MIN, all shortest paths" MIN
            fabrics[NetworkRouting(name, routing)] = network.fabric(routes)
    return fabrics


def adaptation_claims(curves: Mapping[PatternRouting, LatencyCurve]) -> Iterator[PaperClaim]:
    """Yield the claims that UGAL_PF has higher latency than UGAL.

    The paper excepts uniform traffic and perm1hop, so these patterns are left out.
    """
    # The patterns, each once and in order: a dict as an ordered set.
    patterns = dict.fromkeys(key.pattern for key in curves)
    for pattern in patterns:
        if pattern in ("uniform", "perm1hop"):
            continue
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
    """Whether the load is sustained; True if it was not simulated, as then no remark is needed."""
    return all(point.sustained for point in curve.points if point.offered == load)


def next_load(load: float, curve: LatencyCurve) -> float:
    """The next larger load of the curve; nan if there is none, or `load` is nan."""
    return min((point.offered for point in curve.points if point.offered > load), default=nan)


def deadlock_lines_by_name(curves: Mapping[str, LatencyCurve]) -> tuple[str, ...]:
    """The line of `deadlock_lines` for curves with names; none without a deadlock."""
    return deadlock_lines(((name,), curve) for name, curve in curves.items())
