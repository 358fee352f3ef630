"""The pass that fits the weights of classes to the demand of `routing.demand`.

For the worst demand they are the weights whose worst traffic is least bad: oblivious routing over
the options of tables. The worst traffic for a link, where no switch sends or gets more than its
hosts can, is a matching of sources to destinations (Azar et al. 2003; Applegate and Cohen 2003). In
rounds every link finds its worst matching for the weights so far, and an option loses weight by
what these load, most of all those of the hottest links (mirror descent). The matchings with the
links' prices bound what any weights reach, so the gap to the optimum is known.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from importlib.util import find_spec
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from compilers.demand.demand_file import between_hosts, read_demand
from compilers.demand.fluid import Fluid
from compilers.demand.traffic_matrix import Traffic
from compilers.demand.weight_fit import FlowPaths, Reals, ShareSets, fit
from compilers.demand.whole_weights import PARTS, in_parts, rounded
from compilers.tables.build import Build
from inventory.problems import InputError, install_extra
from inventory.yamlfile import TextFile

MOST_CROSSINGS = 30_000_000
"""Arcs that all flows of a demand cross on all their paths; each takes 80 bytes while they fit."""
MOST_MATCHED = 400_000
"""The same where matchings are looked for: up to PolarFly q = 9, in a minute or two."""
WITHOUT_FIT = (
    "remove it, and choose a minimal_share by `polarfab throughput BUILD --tradeoff`, or name a "
    "file of flows: weights are fitted to the worst traffic in small fabrics"
)


def with_demand(build: Build, file: TextFile | None, largest: float) -> Build:
    """A build whose weights carry a demand best; classes that it does not use keep theirs.

    Args:
        build: with equal weights.
        file: of the demand; None for the worst.
        largest: the largest share of an option, from 0 to 1.

    Raises:
        InputError: mistakes in the file, flows of switches without hosts, or more flows and paths
            than can be followed.
    """
    fluid = Fluid.of(build)
    if file is None:
        paths, weights = _against_the_worst(build, fluid, largest)
    else:
        traffic = between_hosts(build, read_demand(file, build.wiring), file.name)
        paths = _paths(fluid, traffic, MOST_CROSSINGS, file.name)
        weights = rounded(paths, fit(paths, largest), largest).weights
    classes = build.tables.classes
    port, weight = np.asarray(classes.alternate), np.array(classes.weight)
    switch, number = np.divmod(paths.row, fluid.hops.classes + 2)
    weight[switch, number] = weights.astype(np.uint16)
    fitted = replace(classes, alternate=port, weight=weight)
    return replace(
        build,
        tables=replace(build.tables, classes=fitted),
        forwarding=replace(build.forwarding, weights="fitted"),
    )


def _paths(fluid: Fluid, traffic: Traffic, most: int, file: str = "") -> FlowPaths:
    try:
        return fluid.paths(traffic, most)
    except OverflowError:
        smaller = "leave out the smallest: classes without a demand keep equal shares"
        raise InputError.of(
            file=file,
            key="demand" if file else "routing.demand",
            required=f"flows whose paths cross at most {most:,} links together",
            given=f"{len(traffic.source):,} flows, whose paths cross more",
            todo=smaller if file else WITHOUT_FIT,
        ) from None


def _against_the_worst(
    build: Build, fluid: Fluid, largest: float
) -> tuple[FlowPaths, NDArray[np.int64]]:
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


ROUNDS = 300
CLOSE = 0.05
"""The relative gap between the worst load and what no weights avoid at which it ends."""
FORGET = 0.02
"""What a round's matchings count for in the mean that bounds."""
STEEP = (8.0, 88.0)
"""The exponents of load that prices rise with, in the first round and the last."""
LEAST = 1e-9
"""The least share, so that none is lost for good."""
SLOW = 30
"""How much smaller the last step is than the first."""


class WorstCase(NamedTuple):
    """Shares, float64[G, W]; the hottest link's load under the worst traffic; what none avoids."""

    shares: Reals
    worst: float
    bound: float


def worst_case(paths: FlowPaths, traffic: Traffic, largest: float = 1.0) -> WorstCase:
    """The shares that load the hottest link least under whatever traffic is worst for them.

    Args:
        paths: of `traffic`, with its flows.
        traffic: every pair of switches with hosts, each with all that a switch sends.
        largest: the largest share of an option.
    """
    sets, arcs = ShareSets.of(paths, largest), _arcs(paths, traffic)
    options, shares, mean, weight = paths.options, sets.even(), np.zeros(paths.options.shape), 0.0
    best = WorstCase(shares, np.inf, 0.0)
    for round_ in range(ROUNDS):
        done = round_ / ROUNDS
        matched = [arc.worst(shares[options]) for arc in arcs]
        loads = np.array([load for load, _ in matched])
        if loads.max() < best.worst:
            best = best._replace(shares=shares, worst=float(loads.max()))
        prices = (loads / loads.max()) ** (STEEP[0] + (STEEP[1] - STEEP[0]) * done)
        prices /= prices.sum()
        crossed = [share for _, share in matched]
        pays = np.repeat(prices, list(map(len, crossed)))
        cost = np.zeros(options.shape)
        cost[options] = np.bincount(
            np.concatenate(crossed), pays, minlength=np.count_nonzero(options)
        )
        mean, weight = (1 - FORGET) * mean + cost, (1 - FORGET) * weight + 1
        best = best._replace(bound=max(best.bound, sets.least(mean) / weight))
        if best.worst <= (1 + CLOSE) * best.bound:
            break
        dearer = np.where(options, cost - np.where(options, cost, np.inf).min(axis=1)[:, None], 0)
        step = 1 / (max(float(dearer.max()), 1e-300) * (1 + SLOW * done))
        shares = sets.scaled(np.maximum(shares * np.exp(-dearer * step), LEAST * options))
    return best


@dataclass(frozen=True, slots=True, eq=False)
class _Arc:
    """The flows that can cross an arc: int64[n], the share by which, and source and destination as
    places in a matrix of this size.
    """

    share: NDArray[np.int64]
    row: NDArray[np.int64]
    column: NDArray[np.int64]
    size: tuple[int, int]

    def worst(self, shares: Reals) -> tuple[float, NDArray[np.int64]]:
        """The load of the worst matching, and the shares that load it."""
        from scipy.optimize import linear_sum_assignment

        place = self.row * self.size[1] + self.column
        load = np.bincount(place, shares[self.share], minlength=self.size[0] * self.size[1])
        rows, columns = linear_sum_assignment(load.reshape(self.size), maximize=True)
        matched = np.zeros(len(load), np.bool_)
        matched[rows * self.size[1] + columns] = True
        return float(load[matched].sum()), self.share[matched[place]]


def _arcs(paths: FlowPaths, traffic: Traffic) -> list[_Arc]:
    """Those that any flow can cross."""
    order = np.argsort(paths.arc, kind="stable")
    starts = np.flatnonzero(np.diff(paths.arc[order], prepend=-1))
    result = []
    for some in np.split(order, starts[1:]):
        flow = paths.flow[some]
        sources, row = np.unique(traffic.source[flow], return_inverse=True)
        ends, column = np.unique(traffic.destination[flow], return_inverse=True)
        size = len(sources), len(ends)
        result.append(_Arc(paths.share[some].astype(np.int64), row.ravel(), column.ravel(), size))
    return result
