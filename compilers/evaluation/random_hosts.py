"""The throughput of random permutations of hosts: the median of many draws.

In a permutation each host sends to one host, and receives from one. The throughput is the share of
its rate that every host can send by the tables of a build. `Balance.figures` are measured with it
(`benchmarks/carried_shares.py`).
"""

from __future__ import annotations

from statistics import median

from compilers.demand.fluid import Fluid
from compilers.evaluation.saturation import loads_by_tables
from compilers.evaluation.traffic import random_hosts
from compilers.tables.build import Build

DRAWS = 100
"""How many permutations are drawn."""


def random_hosts_share(build: Build, hosts: int, draws: int = DRAWS, seed: int = 0) -> float:
    """The median share of its rate that every host can send in permutations of hosts.

    Args:
        build: its tables and cables. All links are taken to have the rate of a host.
        hosts: hosts per switch.
        draws: how many permutations.
        seed: the seed of the first draw; each further draw has the next number.
    """
    fluid, shares = Fluid.of(build), []
    for draw_seed in range(seed, seed + draws):
        traffic = random_hosts(build.topology, hosts, draw_seed)
        # Loads are in units of what all hosts of a switch send; in units of one host's rate, the
        # hottest link has `hosts` times as much.
        hottest = hosts * float(loads_by_tables(build, fluid, traffic).max())
        shares.append(min(1.0, 1 / hottest))
    return median(shares)
