"""Estimated throughput: the rate at which the hottest link of the tables is full.

Traffic is a fluid that follows the tables: ingress traffic is split over the ports of its class by
their weights, then goes minimally. Every direction of a link carries 1, as does a host's link. If
the hottest link carries L times what a switch's hosts send, p hosts per switch can each send
1/(p·L) of their link's rate: the saturation. Queues are not modelled. `adaptive` is the estimate
with weights fitted to the traffic, one set per switch and class.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial

import numpy as np
from numpy.typing import NDArray

from compilers.demand.fluid import Fluid
from compilers.demand.traffic_matrix import Traffic
from compilers.demand.weight_fit import fit
from compilers.evaluation.pattern_traffic import fullest, pattern_traffic, require_pattern
from compilers.evaluation.traffic import MOST_MIDDLES, PATTERNS, over_intermediates, two_legs
from compilers.routing.intermediates import intermediates
from compilers.tables.build import Build
from compilers.topology.adjacency import Graph
from compilers.topology.distance import distances, neighbour_table
from compilers.workers.shards import THIS_PROCESS, Workers, reported
from inventory.problems import InputError

PATHS_TO_FIT = 300_000
DESTINATIONS_AT_ONCE = 128
LEAST_SWITCHES = 256
"""Switches below which another process for a pattern costs more than it saves."""


@dataclass(frozen=True, slots=True)
class Saturation:
    """The rate at which hosts can send, as a share of their links' rate, and the limiting link.

    peak: the load of that link, in units of what all hosts of a switch send. mean: the mean load of
    all links. hottest: the two switches of the limiting link.
    """

    share: float
    peak: float
    mean: float
    hottest: tuple[int, int]


@dataclass(frozen=True, slots=True)
class PatternThroughput:
    """A pattern's saturation by minimal routes, as emitted, and with weights fitted to it.

    The latter two are None if the build has no alternates; `adaptive` also if the pattern has more
    paths than PATHS_TO_FIT, or packets are marked, carry an intermediate or are shared at every
    hop: their weights are fixed. valiant: over any switch but the ends, drawn for each packet; None
    in fabrics of more than `MOST_MIDDLES`. optimum: a share that no routing over any paths exceeds,
    by distances. share_of_optimum: of what is emitted.
    """

    pattern: str
    flows: int
    minimal: Saturation
    as_emitted: Saturation | None = None
    adaptive: Saturation | None = None
    valiant: Saturation | None = None
    optimum: float | None = None
    share_of_optimum: float | None = None

    @property
    def emitted(self) -> Saturation:
        """What the tables give: with alternates where there are some, else by minimal routes."""
        return self.as_emitted or self.minimal


@dataclass(frozen=True, slots=True, eq=False)
class LinkLoads:
    """A pattern's load of each link, in units of what all hosts of a switch send: float64[S·L].

    hosts: p, hosts per switch. as_emitted and adaptive are None as in `PatternThroughput`.
    """

    fluid: Fluid
    pattern: str
    hosts: int
    flows: int
    minimal: NDArray[np.float64]
    as_emitted: NDArray[np.float64] | None
    adaptive: NDArray[np.float64] | None

    @classmethod
    def of(cls, build: Build, pattern: str, hosts: int, seed: int = 0) -> LinkLoads:
        """Follow a pattern of `compilers.evaluation.pattern_traffic`.

        Args:
            build: its tables and cables.
            pattern: its name, or a file of rates.
            hosts: p, hosts per switch, at least 1.
            seed: of random patterns.
        """
        fluid = Fluid.of(build)
        traffic = pattern_traffic(build, pattern, hosts, seed)
        minimal = fluid.loads(traffic, fluid.minimal())
        emitted = fitted = None
        if (fluid.emitted[1:] > 0).any():  # there are alternates
            emitted = fluid.loads(traffic, fluid.emitted)
            fixed = fluid.marks or build.forwarding.every_hop
            if not fixed and 0 < len(traffic.source) * len(fluid.options) <= PATHS_TO_FIT:
                least = min(minimal, emitted, key=lambda load: load.max())
                full = least.max() * hosts <= 1  # hosts can send all they have
                found = least if full else fit(fluid.paths(traffic)).loads
                fitted = min(found, least, key=lambda load: load.max())
        elif build.forwarding.intermediates:
            emitted = fluid.loads(two_legs_of(build, traffic), fluid.minimal())
        return cls(fluid, pattern, hosts, len(traffic.source), minimal, emitted, fitted)

    def saturation(self, load: NDArray[np.float64]) -> Saturation:
        """What one of the three loads lets hosts send."""
        f = self.fluid.hops
        hot = int(load.argmax())
        peak = float(load[hot])
        return Saturation(
            share=min(1.0, 1 / (self.hosts * peak)) if peak else 1.0,
            peak=peak,
            mean=float(load[f.end >= 0].mean()),
            hottest=(hot // f.slots, int(f.end[hot]) // f.slots),
        )


def two_legs_of(build: Build, traffic: Traffic) -> Traffic:
    """The traffic of both legs.

    Raises:
        InputError: there are so many intermediates that these are too many flows.
    """
    ends = intermediates(build)
    if len(ends) > MOST_MIDDLES:
        raise InputError.of(
            key="routing.balance",
            required=f"at most {MOST_MIDDLES:,} switches with hosts to follow traffic over "
            "intermediates",
            given=f"{len(ends):,}",
            todo="look at a smaller fabric of the family: every traffic gets about the same",
        )
    return over_intermediates(traffic, ends, build.tables.switches)


def throughput(build: Build, pattern: str, hosts: int, seed: int = 0) -> PatternThroughput:
    """The saturation of a pattern; the arguments are those of `LinkLoads.of`."""
    found = LinkLoads.of(build, pattern, hosts, seed)
    loads = found.minimal, found.as_emitted, found.adaptive
    rates = [None if load is None else found.saturation(load) for load in loads]
    result = PatternThroughput(pattern, found.flows, *rates)  # type: ignore[arg-type]
    if not found.flows:
        return result
    traffic = pattern_traffic(build, pattern, hosts, seed)
    over = two_legs(traffic, build.topology.endpoints)
    valiant = found.saturation(found.fluid.loads(over, found.fluid.minimal())) if over else None
    most = min(1.0, 1 / (hosts * least_load(build.topology.graph, traffic)))
    return replace(
        result, valiant=valiant, optimum=most, share_of_optimum=result.emitted.share / most
    )


def least_load(graph: Graph, traffic: Traffic) -> float:
    """What any routing loads the hottest link with, at least: every flow on shortest paths, and all
    directions of links alike.
    """
    table, crossed = neighbour_table(graph), 0.0
    for first in range(0, graph.order, DESTINATIONS_AT_ONCE):
        part = traffic.between(first, first + DESTINATIONS_AT_ONCE)
        ends, row = np.unique(part.destination, return_inverse=True)
        if len(ends):
            crossed += float(part.amount @ distances(table, ends)[row.ravel(), part.source])
    return crossed / (2 * graph.size)


def saturations(
    build: Build,
    patterns: Sequence[str] = (),
    hosts: int = 0,
    seed: int = 0,
    progress: Callable[[int, int], None] | None = None,
    workers: Workers = THIS_PROCESS,
) -> tuple[PatternThroughput, ...]:
    """The saturation of several patterns.

    Args:
        build: its tables and cables.
        patterns: their names, or files of rates; none for all that have names.
        hosts: hosts per switch; 0 for as built.
        seed: of the patterns that chance has a part in.
        progress: called with (patterns done, all patterns).
        workers: that share the patterns.

    Raises:
        InputError: there is no such pattern, or its file has mistakes.
    """
    for name in patterns:
        require_pattern(name)
    names = patterns or tuple(PATTERNS)
    hosts = hosts or fullest(build)
    follow = partial(_follower, hosts=hosts, seed=seed)
    least = 2 if build.tables.switches >= LEAST_SWITCHES else len(names) + 1
    found = workers.over(follow, build, names, least=least)
    return tuple(reported(found, [(name,) for name in names], progress))


def _follower(build: Build, hosts: int, seed: int) -> Callable[[str], PatternThroughput]:
    return lambda pattern: throughput(build, pattern, hosts, seed)
