"""The flow model: throughput that tables and link rates allow, as fluid flows."""

from __future__ import annotations

import numpy as np

from compilers.evaluation.max_min import max_min
from compilers.proof.walks.forwarding import Numbers, Towards
from mininet_scenarios.scenario.engine import Carried, Flows, HostSample
from mininet_scenarios.verdict.predict import Prediction, follow, ways

HOST_LINKS = 10_000.0
"""Mb/s that a host takes and gives where links have no rate: flows are bounded by something."""


def carry(walked: Prediction, hosts: HostSample, flows: Flows, rate: float | None) -> Carried:
    """Max-min fair rates when every flow divides itself over its ways by their weights.

    The shares are fixed: the fullest of its ways limits a flow, as it would one that must arrive
    whole. Links between switches carry `rate` each way, hosts' links any amount. What a way loses
    counts as sent, and not as arrived.
    """
    f = walked.forwarding
    arcs, flow, share, arrives = crossed(walked, hosts, flows)
    capacity = np.full(len(f.end), np.inf if rate is None else rate)
    demand = np.minimum(flows.rate, HOST_LINKS if rate is None else np.inf)
    fair = max_min(arcs, flow, share, capacity, np.where(arrives > 0, demand, 0))
    loads = np.zeros(len(f.end))
    np.add.at(loads, arcs, share * fair[flow])
    return Carried(fair * arrives, walked.by_port(loads))


def crossed(walked: Prediction, hosts: HostSample, flows: Flows) -> tuple[Numbers, ...]:
    """int64[m], int64[m], float64[m]: an arc, a flow over it, its share there; and float64[n], what
    part of each flow arrives.
    """
    f = walked.forwarding
    source, destination = hosts.switch[flows.source], hosts.switch[flows.destination]
    ends, column = np.unique(destination, return_inverse=True)
    towards = Towards.of(f, ends)
    weights = _weights(walked)
    row = towards.row(source, column)
    dark = ~walked.outage.up(f.switches)
    found: list[tuple[Numbers, ...]] = []
    arrives, total = np.zeros(len(source)), np.zeros(len(source))
    parts = []
    for way in ways(walked.build, towards, source, column):
        lit = np.flatnonzero(~(dark[source[way.which]] | dark[destination[way.which]]))
        way = way.take(lit)
        which, weight = way.which, way.part
        if way.number < len(weights):
            weight = weight * weights[way.number, row[which]]
        total[which] += weight
        parts.append((way, weight))
    for way, weight in parts:
        which = way.which
        part = weight / total[which]

        def note(
            packet: Numbers, out: Numbers, which: Numbers = which, part: Numbers = part
        ) -> None:
            found.append((out.astype(np.int64), which[packet], part[packet]))

        hops = follow(towards, way, column[which], source[which], note)
        arrives[which] += np.where(hops >= 0, part, 0)
    # Hosts of one switch reach each other over no link.
    arrives[(source == destination) & ~dark[source]] = 1
    nothing = (np.zeros(0, np.int64), np.zeros(0, np.int64), np.zeros(0))
    columns = zip(nothing, *found, strict=True)
    return *(np.concatenate(part) for part in columns), arrives


def _weights(walked: Prediction) -> Numbers:
    """float64[1 + A, S·(C + 2)]: the weights of the ways in `Forwarding.weighted`."""
    weight = np.moveaxis(walked.build.tables.classes.weight, 2, 0)
    return np.pad(weight, ((0, 0), (0, 0), (0, 2))).reshape(len(weight), -1).astype(np.float64)
