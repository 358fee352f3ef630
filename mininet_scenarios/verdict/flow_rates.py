"""The rates of flows between hosts, by the paths of the tables.

`FlowSpread` says which part of each flow crosses which link. `carry` gives the flows max-min fair
rates.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from compilers.evaluation.max_min import max_min
from mininet_scenarios.scenario.engine import FlowRates, Flows, HostSample
from mininet_scenarios.verdict.predict import Prediction

HOST_LINKS = 10_000.0
"""Mb/s that a host takes and gives where links have no rate: flows are bounded by something."""


def carry(prediction: Prediction, hosts: HostSample, flows: Flows, rate: float | None) -> FlowRates:
    """Max-min fair rates when every flow divides itself over its paths by their weights.

    The shares are fixed: the fullest of its paths limits a flow, as it would one that must arrive
    whole. Links between switches carry `rate` each way, hosts' links any amount. What a path loses
    counts as sent, and not as arrived.
    """
    spread = FlowSpread.of(prediction, hosts, flows)
    capacity = np.full(prediction.arcs, np.inf if rate is None else rate)
    demand = np.minimum(flows.rate, HOST_LINKS if rate is None else np.inf)
    demand = np.where(spread.arrives > 0, demand, 0)
    fair = max_min(spread.arc, spread.flow, spread.share, capacity, demand)
    loads = np.zeros(prediction.arcs)
    np.add.at(loads, spread.arc, spread.share * fair[spread.flow])
    return FlowRates(fair * spread.arrives, prediction.by_port(loads))


@dataclass(frozen=True, slots=True, eq=False)
class FlowSpread:
    """The arcs that n flows cross, by the paths of the tables and their weights: m rows."""

    arc: NDArray[np.int64]
    """int64[m], an arc."""
    flow: NDArray[np.int64]
    """int64[m], a flow over it."""
    share: NDArray[np.float64]
    """float64[m], the share of the flow that crosses the arc on one path."""
    arrives: NDArray[np.float64]
    """float64[n], the part of each flow that arrives."""

    @classmethod
    def of(cls, prediction: Prediction, hosts: HostSample, flows: Flows) -> FlowSpread:
        """Follow the flows of these hosts over all paths of the tables."""
        source, destination = hosts.switch[flows.source], hosts.switch[flows.destination]
        paths = prediction.paths(source, destination)
        hop, path = np.nonzero(paths.arcs >= 0)
        arriving = np.where(paths.hops >= 0, paths.part, 0)
        arrives = np.bincount(paths.pair, arriving, len(source)).astype(np.float64)
        # Hosts of one switch reach each other over no link.
        up = prediction.outage.up(prediction.build.wiring.names)
        arrives[(source == destination) & up[source]] = 1
        arcs = paths.arcs[hop, path].astype(np.int64)
        return cls(arcs, paths.pair[path], paths.part[path], arrives)
