"""BookSim under the traffic that a guarantee states, a little below and above it: kept points.

`python -m tests.extensions.simulation.booksim.worst_traffic PROGRAM` measures those that the file
lacks with BookSim as `program.build` makes it. Samples are long: a link that gets a few per cent
too much fills its buffers slowly.
"""

from __future__ import annotations

import csv
import sys
from itertools import product
from math import inf
from pathlib import Path

import numpy as np

from compilers.demand.traffic_matrix import Traffic
from compilers.evaluation.guarantee import Guarantee, guarantee
from compilers.tables.build import Build
from extensions.simulation.build_simulation import network_for
from extensions.simulation.load_point import SimulationSettings
from extensions.simulation.simulated_network import HostTraffic
from polarfab.fabric import Fabric
from tests.extensions.simulation.booksim import program
from tests.extensions.simulation.booksim.agreement import ROUTES

FILE = Path(__file__).parent / "worst_traffic.csv"
PERIOD = 4000
"""Cycles of a sample."""
AROUND = (-0.03, 0.045)
"""The loads, from the guarantee: below saturation, and above it."""
ROUTES_OF = {"minimal": "MIN", "valiant": "VAL"}
"""By balance, the routes of BookSim that are the same. It draws an intermediate among all switches
but the two ends, where our tables draw among all."""


def compiled(q: int, balance: str) -> Build:
    spec = {"name": "lab", "topology": {"family": "polarfly", "q": q}}
    spec |= {"hosts_per_node": (q + 1) // 2, "routing": {"balance": balance}}
    return Fabric.from_spec(spec).compile().build


def traffic_of(found: Guarantee, hosts: int) -> Traffic:
    """The traffic that gets no more."""
    ends = ([getattr(f, end) for f in found.traffic] for end in ("source", "destination"))
    rates = np.array([flow.rate for flow in found.traffic]) / hosts
    return Traffic.of(*map(np.array, ends), rates)


def latency(booksim: Path, q: int, balance: str, load: float) -> float:
    """The mean latency in cycles; inf where the network deadlocks, or latencies grow for ever."""
    build, hosts = compiled(q, balance), (q + 1) // 2
    routes, chosen = ROUTES[ROUTES_OF[balance]]
    settings = SimulationSettings(**chosen)  # type: ignore[arg-type]
    network = network_for(build, hosts, settings)
    traffic = HostTraffic.of(traffic_of(guarantee(build), hosts), network.switches, hosts)
    printed = program.run(booksim, network, traffic, settings, routes, load, period=PERIOD)
    return inf if printed.deadlock or printed.latency is None else printed.latency


def read() -> dict[tuple[int, str, float], float]:
    """Mean latencies by q, balance and load."""
    with FILE.open() as stream:
        return {
            (int(q), balance, float(load)): float(cycles)
            for q, balance, load, cycles in csv.reader(stream)
        }


if __name__ == "__main__":
    kept = read()
    for q, balance, away in product((5, 7), ROUTES_OF, AROUND):
        load = round(guarantee(compiled(q, balance)).share + away, 3)
        if (q, balance, load) not in kept:
            row = q, balance, load, round(latency(Path(sys.argv[1]), q, balance, load), 1)
            with FILE.open("a", newline="") as out:
                csv.writer(out, lineterminator="\n").writerow(row)
