"""Estimated throughput: the rate at which the hottest link of the tables is full.

Traffic is a fluid that follows the tables: ingress traffic is split over the ports of its class by
their weights, then goes minimally. All hosts send the same share of their rates. The saturation is
the largest share at which no link is overloaded, including the links of hosts. If the inventory
gives the speeds of all ports, links have these capacities; else every link has the capacity of a
host's link. Queues are not modelled. `adaptive` is the estimate with weights that are fitted to the
traffic, one set for each switch and class.

Loads and capacities of links are in units of the largest host capacity of any switch: of what all
hosts of a switch can send, at the switch where they can send most
(`HostRates.largest_host_rate_sum`). Arrays of loads have L entries for each of S switches: its K
links, and one entry for its hosts, which is not used here (`compilers.forwarding.many_packets`).
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
from compilers.evaluation.optimum import DirectedLinks, optimum
from compilers.evaluation.pattern_traffic import (
    highest_host_utilisation,
    pattern_traffic,
    relative_host_rate_sums,
    require_pattern,
)
from compilers.evaluation.traffic import PATTERNS
from compilers.evaluation.valiant_traffic import MOST_INTERMEDIATES, over_intermediates, two_legs
from compilers.routing.intermediates import intermediates
from compilers.tables.build import Build
from compilers.workers.shards import THIS_PROCESS, Workers, reported
from inventory.problems import InputError

Numbers = NDArray[np.int64]
Reals = NDArray[np.float64]
PATHS_TO_FIT = 300_000
"""The most paths of a pattern for which weights are fitted. It bounds the time."""
LEAST_SWITCHES = 256
"""Switches below which another process for a pattern costs more than it saves."""
ROUNDING = 1e-9
"""The part by which the load of a host's link may exceed its rate by a rounding error."""


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
    """With weights that are fitted to the pattern.

    None also if there are more paths than PATHS_TO_FIT, or the weights are fixed: where packets are
    marked, carry an intermediate, or are shared at every hop.
    """
    valiant: Saturation | None = None
    """By Valiant's routing: each packet goes over a random switch that is neither of its ends. None
    in fabrics with more than `MOST_INTERMEDIATES` such switches, or with none."""
    optimum: float | None = None
    """The share by the best routing over any paths; if not exact, a share that none exceeds."""
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
            hosts: the number of hosts to assume at every switch with hosts, all links then having
                one speed; 0: hosts and speeds as built.
            seed: the seed of the patterns that chance has a part in.
        """
        fluid, rates = Fluid.of(build), HostRates.of(build, hosts)
        traffic = pattern_traffic(build, pattern, rates, seed)
        capacity = link_capacity(fluid, rates)
        minimal = fluid.loads(traffic, fluid.minimal_shares())
        by_tables = _loads_unless_minimal(build, fluid, traffic)
        adaptive = None
        if by_tables is not None and _can_fit_weights(build, fluid, traffic):
            adaptive = _fitted_loads(fluid, traffic, capacity, [minimal, by_tables])
        return cls(
            fluid=fluid,
            pattern=pattern,
            traffic=traffic,
            capacity=capacity,
            host_limit=_host_limit(traffic, rates, build.tables.switches),
            minimal=minimal,
            by_tables=by_tables,
            adaptive=adaptive,
        )

    @property
    def flows(self) -> int:
        """Pairs of switches with traffic."""
        return len(self.traffic.source)

    @property
    def directed_links(self) -> DirectedLinks:
        """Both directions of all links that exist."""
        arc = np.flatnonzero(self.fluid.forwarding.far_arc >= 0)
        tail, head = self._ends(arc)
        return DirectedLinks(tail, head, self.capacity[arc])

    def _ends(self, arc: Numbers) -> tuple[Numbers, Numbers]:
        """The switches at which arcs begin and end, int64[n] twice, from int64[n]."""
        forwarding = self.fluid.forwarding
        far_arc = forwarding.far_arc[arc].astype(np.int64)
        return arc // forwarding.arcs_a_switch, far_arc // forwarding.arcs_a_switch

    def saturation(self, load: Reals) -> Saturation:
        """The rate at which hosts can send with one of the three loads."""
        utilisation = load / self.capacity
        hottest = int(utilisation.argmax())
        highest = float(utilisation[hottest])
        tail, head = self._ends(np.array([hottest]))
        return Saturation(
            share=min(self.host_limit, 1 / highest) if highest else self.host_limit,
            peak=float(load[hottest]),
            mean=float(load[self.fluid.forwarding.far_arc >= 0].mean()),
            hottest=(int(tail[0]), int(head[0])),
        )


def link_capacity(fluid: Fluid, rates: HostRates) -> Reals:
    """float64[S·L]: the capacity of each link; inf where there is no link."""
    forwarding = fluid.forwarding
    link_rate = np.ones((forwarding.switches, forwarding.arcs_a_switch))
    link_rate[:, : rates.link_rate.shape[1]] = rates.link_rate
    capacity: Reals = np.where(
        forwarding.far_arc >= 0, link_rate.ravel() / rates.largest_host_rate_sum, np.inf
    )
    return capacity


def _loads_unless_minimal(build: Build, fluid: Fluid, traffic: Traffic) -> Reals | None:
    """float64[S·L]: the load of each link by the tables; None where all paths are minimal.

    Packets of hosts take other paths by alternates, or over intermediates.

    Args:
        build: its tables.
        fluid: of the build.
        traffic: what switches send each other.
    """
    if (fluid.table_shares[1:] > 0).any():
        return fluid.loads_by_weights(traffic)
    if build.forwarding.intermediates:
        return fluid.loads(_legs_over_intermediates(build, traffic), fluid.minimal_shares())
    return None


def _can_fit_weights(build: Build, fluid: Fluid, traffic: Traffic) -> bool:
    """Whether weights can be fitted to a traffic in reasonable time.

    The weights of marked packets, and of packets that are shared at every hop, are fixed.
    """
    has_alternates = bool((fluid.table_shares[1:] > 0).any())
    are_weights_fixed = fluid.marks or build.forwarding.every_hop
    paths = len(traffic.source) * len(fluid.first_arcs)
    return has_alternates and not are_weights_fixed and 0 < paths <= PATHS_TO_FIT


def _host_limit(traffic: Traffic, rates: HostRates, switches: int) -> float:
    """The share of their rates that all hosts can send over their own links, at most 1."""
    busiest = highest_host_utilisation(traffic, relative_host_rate_sums(rates, switches))
    return 1 / busiest if busiest > 1 + ROUNDING else 1.0


def loads_by_tables(build: Build, fluid: Fluid, traffic: Traffic) -> Reals:
    """float64[S·L]: the load of each link by the tables, also where all paths are minimal.

    Args:
        build: its tables.
        fluid: of the build.
        traffic: what switches send each other.
    """
    load = _loads_unless_minimal(build, fluid, traffic)
    return fluid.loads(traffic, fluid.minimal_shares()) if load is None else load


def share_by_tables(build: Build, pattern: str, hosts: int = 0, seed: int = 0) -> float:
    """`PatternThroughput.emitted.share` alone, which is quicker than to follow all ways to route.

    The arguments are those of `LinkLoads.of`.
    """
    fluid, rates = Fluid.of(build), HostRates.of(build, hosts)
    traffic = pattern_traffic(build, pattern, rates, seed)
    utilisation = loads_by_tables(build, fluid, traffic) / link_capacity(fluid, rates)
    share_of_links = 1 / max(1.0, float(utilisation.max()))
    return min(share_of_links, _host_limit(traffic, rates, build.tables.switches))


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
    # `fit` takes links of one capacity. So amounts on smaller links are raised in proportion, and
    # the loads of these links are lowered again.
    paths = fluid.paths(traffic)
    paths = replace(paths, amount=paths.amount / relative_capacity[paths.arc])
    loads = fit(paths).loads
    fitted = np.where(is_link, loads * np.where(is_link, relative_capacity, 0), 0)
    return min(fitted, best_unfitted, key=highest_utilisation)


def _legs_over_intermediates(build: Build, traffic: Traffic) -> Traffic:
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
    valiant = None
    if legs := two_legs(loads.traffic, build.topology.endpoints):
        valiant = loads.saturation(loads.fluid.loads(legs, loads.fluid.minimal_shares()))
    saturations_by_routing = result.minimal, result.as_emitted, result.adaptive, valiant
    known_share = max(saturation.share for saturation in saturations_by_routing if saturation)
    best = optimum(
        build.topology.graph, loads.traffic, loads.directed_links, loads.host_limit, known_share
    )
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
        hosts: as in `LinkLoads.of`.
        seed: the seed of the patterns that chance has a part in.
        progress: called with (patterns done, all patterns).
        workers: that share the patterns.

    Raises:
        InputError: there is no such pattern, or its file has mistakes.
    """
    for name in patterns:
        require_pattern(name)
    names = patterns or tuple(PATTERNS)
    throughput_of_build = partial(_throughput_of_pattern, hosts=hosts, seed=seed)
    # More than there are patterns: a small fabric is worked on in this process.
    least = 2 if build.tables.switches >= LEAST_SWITCHES else len(names) + 1
    results = workers.over(throughput_of_build, build, names, least=least)
    return tuple(reported(results, [(name,) for name in names], progress))


def _throughput_of_pattern(
    build: Build, hosts: int, seed: int
) -> Callable[[str], PatternThroughput]:
    """The function from a pattern to its throughput in a build, which each worker makes once."""
    return lambda pattern: throughput(build, pattern, hosts, seed)
