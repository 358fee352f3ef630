"""The guaranteed throughput: what every host gets, whoever sends to whom.

The tables have fixed shares, so the load of a link is a sum over pairs of switches: the share of
the pair's packets that cross the link, times the pair's rate. The largest load by any traffic is
an assignment or transportation problem (`worst_traffic.py`). The guarantee is the share of their
rates that all hosts can send until the link with the largest load is full. Queues are not modelled.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from importlib.util import find_spec

import numpy as np
from numpy.typing import NDArray

from compilers.evaluation.crossings import Arcs, Crossings, IntermediateCrossings, TableCrossings
from compilers.evaluation.host_rates import HostRates
from compilers.evaluation.worst_link import FIRST_BATCH, WorstLink
from compilers.evaluation.worst_traffic import WorstTraffic
from compilers.forwarding.link_crossings import LinkCrossings
from compilers.forwarding.link_orbits import orbit_representatives
from compilers.forwarding.returning_packets import bounds_by_symmetry
from compilers.tables.build import Build
from inventory.problems import InputError, install_extra

MOST_UNBOUNDED = 1 << 24
"""Pairs of switches, times links, up to which bounds of loads cost more time than they save.

In larger fabrics, many links need not be computed because of their bounds.
"""
SAMPLE_STEP = 64
"""One link of this many is computed first in larger fabrics. The highest utilisation of this sample
excludes all links whose bound is lower."""
LEAST_ORBIT_SIZE = 8
"""The mean number of links of an orbit if the tables have the automorphisms of the graph.

An orbit has the links that automorphisms of the tables map to each other.
"""


@dataclass(frozen=True, slots=True)
class Flow:
    """The rate from the hosts of one switch to the hosts of another in the worst traffic."""

    source: int
    """The switch that sends."""
    destination: int
    """The switch that takes."""
    rate: float
    """In hosts, or in Gb/s where the inventory says all speeds."""


@dataclass(frozen=True, slots=True)
class Guarantee:
    """The share that every host gets under any traffic, and the link that limits it.

    In the traffic no host sends or takes more than its rate.
    """

    share: float
    """The share of the rate of a host's link."""
    link: tuple[int, int] | None
    """The two switches of the link that limits it; None in a fabric without links."""
    traffic: tuple[Flow, ...]
    """Flows between switches that fill this link when all hosts send their share. Rates are in
    hosts, or in Gb/s where the inventory says all speeds."""


def guarantee(
    build: Build, hosts_per_node: int = 0, progress: Callable[[int, int], None] | None = None
) -> Guarantee:
    """The guaranteed throughput of a build, exact.

    Args:
        build: its tables and cables.
        hosts_per_node: hosts of every switch that has some; 0: as built.
        progress: called with (links done, all links).

    Raises:
        InputError: scipy is not installed.
    """
    require_scipy()
    rates = HostRates.of(build, hosts_per_node)
    if build.forwarding.intermediates:
        by_intermediates = IntermediateCrossings(build)
        return guarantee_of_links(build, by_intermediates, by_intermediates.arcs, rates, progress)
    by_tables = TableCrossings(LinkCrossings.of(build))
    arcs, load_bounds = by_tables.arcs, None
    if rates.are_equal and len(rates.host_rate_sum) == build.tables.switches:
        # All links of an orbit have the same worst load, so one of them is enough. If the tables
        # lack automorphisms of the graph, orbits are small. Then bounds exclude many of the links.
        representatives = orbit_representatives(build.topology, by_tables.link_crossings)
        has_small_orbits = LEAST_ORBIT_SIZE * len(representatives) > len(arcs)
        if has_small_orbits and needs_bounds(by_tables, len(representatives)):
            load_bounds = bounds_by_symmetry(
                build.topology, by_tables.link_crossings, *rates.by_switch(*by_tables.size)
            )
            load_bounds = load_bounds[representatives]
        arcs = arcs[representatives]
    return guarantee_of_links(
        build,
        crossings=by_tables,
        arcs=arcs,
        rates=rates,
        progress=progress,
        load_bounds=load_bounds,
    )


def require_scipy() -> None:
    """Pass where scipy can be imported.

    Raises:
        InputError: it is not installed.
    """
    if not find_spec("scipy"):
        required = "scipy, which finds the worst traffic of a link"
        raise InputError.of(
            required, "a Python without it", install_extra("placement"), key="guarantee"
        )


def guarantee_of_links(
    build: Build,
    crossings: Crossings,
    arcs: Arcs,
    rates: HostRates,
    progress: Callable[[int, int], None] | None = None,
    load_bounds: NDArray[np.float64] | None = None,
) -> Guarantee:
    """The guarantee by the link whose utilisation by its worst traffic is highest.

    Args:
        build: its switches.
        crossings: the shares of pairs on its links.
        arcs: int64[n, 2], the links, of which one is the worst.
        rates: the rates of hosts and links.
        progress: called with (links done, all links).
        load_bounds: float64[n], upper bounds of the links' loads; None: not known.
    """
    search, indexes = WorstLink(crossings, arcs, rates, progress), np.arange(len(arcs))
    # The links that are computed first: those with the highest bounds, or any.
    if load_bounds is None:
        sample = indexes[::SAMPLE_STEP]
        utilisation_bounds = np.full(len(arcs), np.inf)
    else:
        sample = np.argsort(-load_bounds, kind="stable")[:FIRST_BATCH]
        utilisation_bounds = load_bounds / search.capacity
    if needs_bounds(crossings, len(arcs)):
        # Tighter bounds are computed only for links that the sample does not exclude already.
        search.compute(sample, search.bounds(sample))
        not_excluded = np.flatnonzero(utilisation_bounds > search.peak)
        utilisation_bounds[not_excluded] = np.minimum(
            utilisation_bounds[not_excluded], search.bounds(not_excluded)
        )
    search.compute(indexes, utilisation_bounds)
    if search.worst is None:
        return Guarantee(1.0, None, ())
    switch, link_of_switch = arcs[search.worst_index].tolist()
    link = switch, int(build.wiring.far[switch, link_of_switch])
    return Guarantee(search.share, link, _flows(search.worst, rates.switches))


def needs_bounds(crossings: Crossings, links: int) -> bool:
    """Whether bounds of so many links are computed before the worst traffic of any."""
    return links * crossings.size[0] * crossings.size[1] > MOST_UNBOUNDED


def _flows(worst: WorstTraffic, switches: NDArray[np.int64]) -> tuple[Flow, ...]:
    """The flows of the worst traffic, between the numbers of switches.

    Args:
        worst: the traffic, by indexes of switches among those with hosts.
        switches: int64[H], the switches with hosts.
    """
    sources, destinations = switches[worst.source], switches[worst.destination]
    columns = sources.tolist(), destinations.tolist(), worst.rate.tolist()
    return tuple(
        Flow(source, destination, rate) for source, destination, rate in zip(*columns, strict=True)
    )
