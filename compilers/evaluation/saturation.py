"""Estimated throughput: the rate at which the hottest link of the tables is full.

Traffic is a fluid that follows the tables: ingress traffic is split over the ports of its class by
their weights, then goes minimally. All hosts send the same share of their rates. The saturation is
the largest share at which no link is overloaded, including the links of hosts. If the inventory
gives the speeds of all ports, links have these capacities; else every link has the capacity of a
host's link. Queues are not modelled. `adaptive` is the estimate with weights that are fitted to the
traffic, one set for each switch and class.

Loads and capacities of links are in units of the largest host capacity of any switch: of what all
hosts of a switch can send, at the switch where they can send most
(`HostRates.largest_host_rate`). Arrays of loads have L entries for each of S switches: its K links,
and one entry for its hosts, which is not used here (`compilers.forwarding.many_packets`).
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
from compilers.evaluation.host_rates import HostRates
from compilers.evaluation.optimum import Arcs, optimum
from compilers.evaluation.pattern_traffic import (
    highest_host_utilisation,
    pattern_traffic,
    relative_host_rates,
    require_pattern,
)
from compilers.evaluation.traffic import MOST_INTERMEDIATES, PATTERNS, over_intermediates, two_legs
from compilers.routing.intermediates import intermediates
from compilers.tables.build import Build
from compilers.workers.shards import THIS_PROCESS, Workers, reported
from inventory.problems import InputError

Reals = NDArray[np.float64]
PATHS_TO_FIT = 300_000
"""The most paths of a pattern for which weights are fitted."""
LEAST_SWITCHES = 256
"""Switches below which another process for a pattern costs more than it saves."""
ROUNDING = 1e-9
"""The relative difference of loads that are the same."""


@dataclass(frozen=True, slots=True)
class Saturation:
    """The rate at which hosts can send, as a share of their links' rate, and the limiting link."""

    share: float
    """The share, at most 1."""
    peak: float
    """The load of the link that is full first, in units of the largest host capacity."""
    mean: float
    """The mean load of all links, in the same units."""
    hottest: tuple[int, int]
    """The two switches of that link."""


@dataclass(frozen=True, slots=True)
class PatternThroughput:
    """The saturations of a pattern, by several ways to route it.

    If a build has no alternates and no intermediates, all its paths are minimal. Then `as_emitted`
    and `adaptive` are None, and `emitted` is `minimal`.
    """

    pattern: str
    """Its name, or a file of rates."""
    flows: int
    """Pairs of switches with traffic."""
    minimal: Saturation
    """By minimal routes."""
    as_emitted: Saturation | None = None
    """By the tables, if these have more than minimal routes."""
    adaptive: Saturation | None = None
    """With weights fitted to the pattern. Also None if it has more paths than PATHS_TO_FIT, or
    packets are marked, carry an intermediate or are shared at every hop: their weights are
    fixed."""
    valiant: Saturation | None = None
    """Over any switch but the ends, drawn for each packet; None in fabrics of more than
    `MOST_INTERMEDIATES`."""
    optimum: float | None = None
    """What the best routing over any paths gets; if not exact, a share that no routing exceeds."""
    optimum_exact: bool = False
    """Whether some routing reaches `optimum`."""
    share_of_optimum: float | None = None
    """The share by the tables, divided by `optimum`."""

    @property
    def emitted(self) -> Saturation:
        """The saturation by the tables, also if these have minimal routes only."""
        return self.as_emitted or self.minimal


@dataclass(frozen=True, slots=True, eq=False)
class LinkLoads:
    """The load of each link under a pattern if every host sends all that it can.

    Loads are float64[S·L], by switch and link.
    """

    fluid: Fluid
    """The tables, and the index of each link in arrays of loads."""
    pattern: str
    """As in `PatternThroughput`."""
    traffic: Traffic
    """What switches send each other, in the unit of the loads."""
    capacity: Reals
    """float64[S·L], the capacity of each link; inf where there is no link."""
    host_limit: float
    """The share of their rates that all hosts can send over their own links, at most 1."""
    minimal: Reals
    """The loads by minimal routes."""
    by_tables: Reals | None
    """The loads by the tables; None if these have minimal routes only."""
    adaptive: Reals | None
    """The loads with fitted weights; None as in `PatternThroughput`."""

    @classmethod
    def of(cls, build: Build, pattern: str, hosts: int = 0, seed: int = 0) -> LinkLoads:
        """Follow a pattern of `compilers.evaluation.pattern_traffic`.

        Args:
            build: its tables and cables.
            pattern: its name, or a file of rates.
            hosts: of every switch, with links of one speed; 0: as built.
            seed: of random patterns.
        """
        fluid, rates = Fluid.of(build), HostRates.of(build, hosts)
        traffic = pattern_traffic(build, pattern, rates, seed)
        capacity = link_capacity(fluid, rates)
        minimal = fluid.loads(traffic, fluid.minimal())
        by_tables, adaptive = _loads_unless_minimal(build, fluid, traffic), None
        paths = len(traffic.source) * len(fluid.first_arcs)
        has_alternates = bool((fluid.table_shares[1:] > 0).any())
        weights_adjustable = has_alternates and not fluid.marks and not build.forwarding.every_hop
        if by_tables is not None and weights_adjustable and 0 < paths <= PATHS_TO_FIT:
            adaptive = _fitted_loads(fluid, traffic, capacity, [minimal, by_tables])
        busiest_host_link = highest_host_utilisation(traffic, relative_host_rates(build, rates))
        host_limit = 1 / busiest_host_link if busiest_host_link > 1 + ROUNDING else 1.0
        return cls(fluid, pattern, traffic, capacity, host_limit, minimal, by_tables, adaptive)

    @property
    def flows(self) -> int:
        """Pairs of switches with traffic."""
        return len(self.traffic.source)

    @property
    def arcs(self) -> Arcs:
        """The links that exist."""
        forwarding = self.fluid.forwarding
        number = np.flatnonzero(forwarding.far_arc >= 0)
        tail = number // forwarding.arcs_a_switch
        head = forwarding.far_arc[number].astype(np.int64) // forwarding.arcs_a_switch
        return Arcs(tail, head, self.capacity[number])

    def saturation(self, load: Reals) -> Saturation:
        """The rate at which hosts can send with one of the three loads."""
        forwarding, utilisation = self.fluid.forwarding, load / self.capacity
        hot = int(utilisation.argmax())
        highest = float(utilisation[hot])
        return Saturation(
            share=min(self.host_limit, 1 / highest) if highest else self.host_limit,
            peak=float(load[hot]),
            mean=float(load[forwarding.far_arc >= 0].mean()),
            hottest=(
                hot // forwarding.arcs_a_switch,
                int(forwarding.far_arc[hot]) // forwarding.arcs_a_switch,
            ),
        )


def link_capacity(fluid: Fluid, rates: HostRates) -> Reals:
    """float64[S·L]: the capacity of each link; inf where there is no link."""
    forwarding = fluid.forwarding
    link_rate = np.ones((forwarding.switches, forwarding.arcs_a_switch))
    link_rate[:, : rates.link_rate.shape[1]] = rates.link_rate
    capacity: Reals = np.where(
        forwarding.far_arc >= 0, link_rate.ravel() / rates.largest_host_rate, np.inf
    )
    return capacity


def _loads_unless_minimal(build: Build, fluid: Fluid, traffic: Traffic) -> Reals | None:
    """float64[S·L]: the load of each link by the tables; None where all paths are minimal.

    Args:
        build: its tables.
        fluid: of the build.
        traffic: what switches send each other.
    """
    if (fluid.table_shares[1:] > 0).any():
        return fluid.loads_by_weights(traffic)
    if build.forwarding.intermediates:
        return fluid.loads(_over_own_intermediates(build, traffic), fluid.minimal())
    return None


def loads_by_tables(build: Build, fluid: Fluid, traffic: Traffic) -> Reals:
    """float64[S·L]: the load of each link by the tables, also where all paths are minimal.

    Args:
        build: its tables.
        fluid: of the build.
        traffic: what switches send each other.
    """
    load = _loads_unless_minimal(build, fluid, traffic)
    return fluid.loads(traffic, fluid.minimal()) if load is None else load


def share_by_tables(build: Build, pattern: str, hosts: int = 0, seed: int = 0) -> float:
    """`PatternThroughput.emitted.share` alone, which is quicker than to follow all ways to route.

    The arguments are those of `LinkLoads.of`.
    """
    fluid, rates = Fluid.of(build), HostRates.of(build, hosts)
    traffic = pattern_traffic(build, pattern, rates, seed)
    utilisation = loads_by_tables(build, fluid, traffic) / link_capacity(fluid, rates)
    busiest_host_link = highest_host_utilisation(traffic, relative_host_rates(build, rates))
    # A host link that is overloaded by a rounding error only limits nothing, as in `LinkLoads.of`.
    return 1 / max(1.0, float(utilisation.max()), busiest_host_link - ROUNDING)


def _fitted_loads(
    fluid: Fluid, traffic: Traffic, capacity: Reals, unfitted: Sequence[Reals]
) -> Reals:
    """float64[S·L]: the load of each link by weights that are fitted to a traffic.

    Args:
        fluid: the next hops of the tables.
        traffic: what switches send each other.
        capacity: float64[S·L], the capacity of each link.
        unfitted: loads by other weights. One of them may be better than the fitted one.
    """

    def highest_utilisation(load: Reals) -> float:
        """The utilisation of the link that is full first."""
        return float((load / capacity).max())

    best_unfitted = min(unfitted, key=highest_utilisation)
    if highest_utilisation(best_unfitted) <= 1:  # hosts can send all they have
        return best_unfitted
    is_link = np.isfinite(capacity)
    relative_capacity = capacity / capacity[is_link].max()
    # `fit` takes links of one capacity: traffic is scaled up on smaller links, and back after.
    paths = fluid.paths(traffic)
    paths = replace(paths, amount=paths.amount / relative_capacity[paths.arc])
    loads = fit(paths).loads
    fitted = np.where(is_link, loads * np.where(is_link, relative_capacity, 0), 0)
    return min(fitted, best_unfitted, key=highest_utilisation)


def _over_own_intermediates(build: Build, traffic: Traffic) -> Traffic:
    """The traffic to the intermediates that the build's packets carry, and from there.

    Raises:
        InputError: there are so many intermediates that these are too many flows.
    """
    ends = intermediates(build)
    if len(ends) > MOST_INTERMEDIATES:
        raise InputError.of(
            key="routing.balance",
            required=f"at most {MOST_INTERMEDIATES:,} switches with hosts to follow traffic over "
            "intermediates",
            given=f"{len(ends):,}",
            todo="look at a smaller fabric of the family: every traffic gets about the same",
        )
    return over_intermediates(traffic, ends, build.tables.switches)


def throughput(build: Build, pattern: str, hosts: int = 0, seed: int = 0) -> PatternThroughput:
    """The saturation of a pattern; the arguments are those of `LinkLoads.of`."""
    loads = LinkLoads.of(build, pattern, hosts, seed)
    result = PatternThroughput(
        pattern=pattern,
        flows=loads.flows,
        minimal=loads.saturation(loads.minimal),
        as_emitted=None if loads.by_tables is None else loads.saturation(loads.by_tables),
        adaptive=None if loads.adaptive is None else loads.saturation(loads.adaptive),
    )
    if not loads.flows:
        return result
    legs = two_legs(loads.traffic, build.topology.endpoints)
    valiant = loads.saturation(loads.fluid.loads(legs, loads.fluid.minimal())) if legs else None
    routings = result.minimal, result.as_emitted, result.adaptive, valiant
    known_share = max(routing.share for routing in routings if routing)
    best = optimum(build.topology.graph, loads.traffic, loads.arcs, loads.host_limit, known_share)
    return replace(
        result,
        valiant=valiant,
        optimum=best.share,
        optimum_exact=best.exact,
        share_of_optimum=result.emitted.share / best.share,
    )


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
        hosts: of every switch, with links of one speed; 0: as built.
        seed: of the patterns that chance has a part in.
        progress: called with (patterns done, all patterns).
        workers: that share the patterns.

    Raises:
        InputError: there is no such pattern, or its file has mistakes.
    """
    for name in patterns:
        require_pattern(name)
    names = patterns or tuple(PATTERNS)
    follow = partial(_follower, hosts=hosts, seed=seed)
    least = 2 if build.tables.switches >= LEAST_SWITCHES else len(names) + 1
    results = workers.over(follow, build, names, least=least)
    return tuple(reported(results, [(name,) for name in names], progress))


def _follower(build: Build, hosts: int, seed: int) -> Callable[[str], PatternThroughput]:
    """A function from a pattern to its throughput, as workers call it."""
    return lambda pattern: throughput(build, pattern, hosts, seed)
