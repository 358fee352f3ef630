"""The rates of flows between hosts, by the paths of the tables.

`FlowSpread` has the part of each flow that crosses each link. `carry` gives the flows max-min fair
rates: the model engine takes these as the result, and a rehearsal compares the rates of real
packets with them. An arc is a link in one direction.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from compilers.evaluation.max_min import max_min
from mininet_scenarios.scenario.engine import HostSample
from mininet_scenarios.scenario.observations import FlowRates, Flows
from mininet_scenarios.verdict.predict import Prediction

HOST_LINKS = 10_000.0
"""The most Mb/s of a host if links have no rate: something must bound the flows."""


def carry(prediction: Prediction, hosts: HostSample, flows: Flows, rate: float | None) -> FlowRates:
    """The max-min fair rates of flows that are divided over their paths by weight.

    The shares are fixed, so the fullest path of a flow limits the whole flow. Traffic that a path
    loses counts as sent, and not as arrived.

    Args:
        prediction: has the paths.
        hosts: the ends of the flows.
        flows: the flows, with the rates that they offer.
        rate: Mb/s of each link between switches in each direction; None for no limit. Links to
            hosts have no limit.
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
    """The arcs that n flows cross, by the paths of the tables and their weights.

    There are m rows, one for each arc on each path of each flow.
    """

    arc: NDArray[np.int64]
    """int64[m], the arc."""
    flow: NDArray[np.int64]
    """int64[m], the flow."""
    share: NDArray[np.float64]
    """float64[m], the share of the flow that takes the path, and so crosses the arc."""
    arrives: NDArray[np.float64]
    """float64[n], the part of each flow that arrives."""

    @classmethod
    def of(cls, prediction: Prediction, hosts: HostSample, flows: Flows) -> FlowSpread:
        """Follow the flows of these hosts over all paths of the tables."""
        source, destination = hosts.switch[flows.source], hosts.switch[flows.destination]
        paths = prediction.paths(source, destination)
        hop, path = np.nonzero(paths.arcs >= 0)
        arriving = np.where(paths.links_or_fault >= 0, paths.share, 0)
        arrives = np.bincount(paths.pair, arriving, len(source)).astype(np.float64)
        # Hosts of one switch reach each other over no link.
        up = prediction.outage.up(prediction.build.wiring.names)
        arrives[(source == destination) & up[source]] = 1
        arcs = paths.arcs[hop, path].astype(np.int64)
        return cls(arcs, paths.pair[path], paths.share[path], arrives)
