"""The flow model: throughput that tables and link rates allow, as fluid flows."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from compilers.evaluation.max_min import max_min
from mininet_scenarios.scenario.engine import Flows, HostSample, Throughput
from mininet_scenarios.verdict.predict import Prediction

HOST_LINKS = 10_000.0
"""Mb/s that a host takes and gives where links have no rate: flows are bounded by something."""


def carry(walked: Prediction, hosts: HostSample, flows: Flows, rate: float | None) -> Throughput:
    """Max-min fair rates when every flow divides itself over its paths by their weights.

    The shares are fixed: the fullest of its paths limits a flow, as it would one that must arrive
    whole. Links between switches carry `rate` each way, hosts' links any amount. What a path loses
    counts as sent, and not as arrived.
    """
    arcs, flow, share, arrives = crossed(walked, hosts, flows)
    capacity = np.full(walked.arcs, np.inf if rate is None else rate)
    demand = np.minimum(flows.rate, HOST_LINKS if rate is None else np.inf)
    fair = max_min(arcs, flow, share, capacity, np.where(arrives > 0, demand, 0))
    loads = np.zeros(walked.arcs)
    np.add.at(loads, arcs, share * fair[flow])
    ports = walked.by_port(loads)
    return Throughput(fair * arrives, dict(zip(walked.build.wiring.names, ports, strict=True)))


def crossed(walked: Prediction, hosts: HostSample, flows: Flows) -> tuple[NDArray[Any], ...]:
    """int64[m], int64[m], float64[m]: an arc, a flow over it, its share there; and float64[n], what
    part of each flow arrives.
    """
    source, destination = hosts.switch[flows.source], hosts.switch[flows.destination]
    paths = walked.paths(source, destination)
    hop, path = np.nonzero(paths.arcs >= 0)
    home = np.where(paths.hops >= 0, paths.part, 0)
    arrives = np.bincount(paths.pair, home, len(source))
    # Hosts of one switch reach each other over no link.
    arrives[(source == destination) & walked.outage.up(walked.build.wiring.names)[source]] = 1
    return paths.arcs[hop, path].astype(np.int64), paths.pair[path], paths.part[path], arrives
