"""The pass of a compile that fits the weights of classes to the demand of `routing.demand`.

An *option* is one port of a class: the minimal port or an alternate. Its share is the part of the
class's traffic that takes it; weights are shares as whole numbers.

- For a file of flows, the shares are those that load the hottest link least (`weight_fit`).
- For the word `worst`, they are those whose worst traffic is least bad: oblivious routing over the
  options of tables. Where no switch sends or gets more than its hosts can, the worst traffic for a
  link is a matching of sources to destinations (Azar et al. 2003; Applegate and Cohen 2003).

Shares against the worst traffic are found by mirror descent. In each round every link finds its
worst matching for the shares so far; then options lose share by what these matchings load over
them, most of all on the hottest links. The mean of the matchings, weighted with the links' prices,
bounds what any shares reach, so the gap to the optimum is known.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from importlib.util import find_spec
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from compilers.demand.demand_file import between_hosts
from compilers.demand.fluid import Fluid
from compilers.demand.traffic_matrix import Traffic
from compilers.demand.weight_fit import FlowPaths, Reals, ShareSets, fit
from compilers.demand.whole_weights import PARTS, in_parts, rounded
from compilers.tables.build import Build
from inventory.problems import InputError, install_extra
from inventory.yamlfile import TextFile

MOST_CROSSINGS = 30_000_000
"""The most arcs that all flows of a demand cross on all their paths; a crossing takes 80 bytes."""
MOST_MATCHED = 400_000
"""The most crossings where matchings are looked for: PolarFly with q = 9 takes a minute or two."""
WITHOUT_FIT = (
    "remove it, and choose a minimal_share by `polarfab throughput BUILD --tradeoff`, or name a "
    "file of flows: weights are fitted to the worst traffic in small fabrics"
)
"""What to do where the worst traffic cannot be fitted, as a finding's text ends."""
ROUNDS = 300
"""The most rounds of the search for shares against the worst traffic."""
CLOSE = 0.05
"""The search ends when the worst load is above its bound by no more than this part of it."""
FORGET = 0.02
"""The part by which a round's matchings replace those of earlier rounds in the bound's mean."""
STEEP = (8.0, 88.0)
"""The powers of a link's load that its price rises with, in the first round and in the last."""
LEAST = 1e-9
"""The least share of an option; a share of 0 could not grow again."""
SLOW = 30
"""The first step is this much larger than the last, about."""


def with_demand(build: Build, file: TextFile | None, largest: float) -> Build:
    """Return a build with the weights that carry a demand best.

    Classes that no flow of the demand uses keep their weights.

    Args:
        build: with equal weights.
        file: of the demand; None for the worst traffic that hosts can send.
        largest: the largest share of an option, from 0 to 1.

    Raises:
        InputError: the file has mistakes or flows of switches without hosts, or there are more
            flows and paths than can be followed.
    """
    fluid = Fluid.of(build)
    if file is None:
        paths, weights = _against_the_worst(build, fluid, largest)
    else:
        traffic = between_hosts(build, file)
        paths = _paths(fluid, traffic, MOST_CROSSINGS, file.name)
        weights = rounded(paths, fit(paths, largest), largest).weights
    classes = build.tables.classes
    alternate, weight = np.asarray(classes.alternate), np.array(classes.weight)
    switch, number = np.divmod(paths.row, fluid.hops.classes + 2)
    weight[switch, number] = weights.astype(np.uint16)
    fitted = replace(classes, alternate=alternate, weight=weight)
    return replace(
        build,
        tables=replace(build.tables, classes=fitted),
        forwarding=replace(build.forwarding, weights="fitted"),
    )


def _paths(fluid: Fluid, traffic: Traffic, most: int, file: str = "") -> FlowPaths:
    """Return the paths of flows by their options.

    Args:
        fluid: follows the flows.
        traffic: the flows.
        most: the most crossings of arcs.
        file: of the demand, for messages; "" for the worst traffic.

    Raises:
        InputError: the flows cross more arcs.
    """
    try:
        return fluid.paths(traffic, most)
    except OverflowError:
        smaller = "leave out the smallest: classes without a demand keep equal shares"
        rounds = "" if file else f": up to {ROUNDS} rounds look for the worst traffic of every link"
        raise InputError.of(
            file=file,
            key="demand" if file else "routing.demand",
            required=f"flows whose paths cross at most {most:,} links together{rounds}",
            given=f"{len(traffic.source):,} flows, whose paths cross more",
            todo=smaller if file else WITHOUT_FIT,
        ) from None


def _against_the_worst(
    build: Build, fluid: Fluid, largest: float
) -> tuple[FlowPaths, NDArray[np.int64]]:
    """Return the paths of all flows, and weights against the worst of them, int64[G, W].

    Raises:
        InputError: SciPy is missing, or the fabric is too large.
    """
    if not find_spec("scipy"):
        raise InputError.of(
            key="routing.demand",
            required="scipy, which looks for the worst traffic",
            given="a Python without it",
            todo=f"{install_extra('placement')}, or name a file of flows",
        )
    ends = np.flatnonzero(build.topology.endpoints)
    traffic = Traffic.of(np.repeat(ends, len(ends)), np.tile(ends, len(ends)))
    paths = _paths(fluid, traffic, MOST_MATCHED)
    return paths, in_parts(worst_case(paths, traffic, largest).shares, PARTS[-1])


class WorstCase(NamedTuple):
    """Shares against the worst traffic, and how good they are."""

    shares: Reals
    """float64[G, W], the shares of the options of every choice."""
    worst: float
    """The load of the hottest link under the worst traffic for these shares."""
    bound: float
    """A load of the hottest link that the worst traffic reaches whatever the shares are."""


def worst_case(paths: FlowPaths, traffic: Traffic, largest: float = 1.0) -> WorstCase:
    """Return the shares that load the hottest link least under the traffic that is worst for them.

    Args:
        paths: of `traffic`, with its flows.
        traffic: a flow for every pair of switches with hosts, of all that a switch sends.
        largest: the largest share of an option.
    """
    sets, arcs = ShareSets.of(paths, largest), _arcs(paths, traffic)
    options, shares = paths.options, sets.even()
    mean, weight = np.zeros(options.shape), 0.0
    best = WorstCase(shares, np.inf, 0.0)
    for round_ in range(ROUNDS):
        done = round_ / ROUNDS
        matchings = [arc.worst_matching(shares[options]) for arc in arcs]
        loads = np.array([matching.load for matching in matchings])
        if loads.max() < best.worst:
            best = best._replace(shares=shares, worst=float(loads.max()))
        prices = (loads / loads.max()) ** (STEEP[0] + (STEEP[1] - STEEP[0]) * done)
        prices /= prices.sum()
        cost = _cost(options, matchings, prices)
        mean, weight = (1 - FORGET) * mean + cost, (1 - FORGET) * weight + 1
        best = best._replace(bound=max(best.bound, sets.least(mean) / weight))
        if best.worst <= (1 + CLOSE) * best.bound:
            break
        cheapest = np.where(options, cost, np.inf).min(axis=1)[:, None]
        dearer = np.where(options, cost - cheapest, 0)
        step = 1 / (max(float(dearer.max()), 1e-300) * (1 + SLOW * done))
        shares = sets.scaled(np.maximum(shares * np.exp(-dearer * step), LEAST * options))
    return best


class _Matching(NamedTuple):
    """The traffic that is worst for an arc."""

    load: float
    """What it loads on the arc."""
    shares: NDArray[np.int64]
    """int64[n], the numbers of the shares by which its flows cross the arc."""


@dataclass(frozen=True, slots=True, eq=False)
class _Arc:
    """The n ways of flows over an arc, as cells of a matrix of sources and destinations."""

    share: NDArray[np.int64]
    """int64[n], the number of the share by which a flow takes this way."""
    row: NDArray[np.int64]
    """int64[n], the row of the flow's source."""
    column: NDArray[np.int64]
    """int64[n], the column of the flow's destination."""
    size: tuple[int, int]
    """The rows and columns of the matrix."""

    def worst_matching(self, shares: Reals) -> _Matching:
        """Return the matching of sources to destinations that loads the arc most."""
        from scipy.optimize import linear_sum_assignment

        cell = self.row * self.size[1] + self.column
        load = np.bincount(cell, shares[self.share], minlength=self.size[0] * self.size[1])
        rows, columns = linear_sum_assignment(load.reshape(self.size), maximize=True)
        matched = np.zeros(len(load), np.bool_)
        matched[rows * self.size[1] + columns] = True
        return _Matching(float(load[matched].sum()), self.share[matched[cell]])


def _cost(options: NDArray[np.bool_], matchings: Sequence[_Matching], prices: Reals) -> Reals:
    """Return what each option pays for the arcs that the worst matchings cross by it.

    Args:
        options: bool[G, W], the options of every choice.
        matchings: the worst one of each arc.
        prices: float64[arcs], of a crossing of each arc.

    Returns:
        float64[G, W].
    """
    crossed = [matching.shares for matching in matchings]
    payments = np.repeat(prices, list(map(len, crossed)))
    cost = np.zeros(options.shape)
    cost[options] = np.bincount(
        np.concatenate(crossed), payments, minlength=np.count_nonzero(options)
    )
    return cost


def _arcs(paths: FlowPaths, traffic: Traffic) -> list[_Arc]:
    """Return the arcs that any flow can cross."""
    order = np.argsort(paths.arc, kind="stable")
    starts = np.flatnonzero(np.diff(paths.arc[order], prepend=-1))
    arcs = []
    for crossings in np.split(order, starts[1:]):
        flow = paths.flow[crossings]
        sources, row = np.unique(traffic.source[flow], return_inverse=True)
        ends, column = np.unique(traffic.destination[flow], return_inverse=True)
        arcs.append(
            _Arc(
                share=paths.share[crossings].astype(np.int64),
                row=row.ravel(),
                column=column.ravel(),
                size=(len(sources), len(ends)),
            )
        )
    return arcs
