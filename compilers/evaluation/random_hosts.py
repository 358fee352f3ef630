"""The throughput of random permutations of hosts: the median of many draws.

What comes in is a build. What goes out is the share of its rate that every host can send, if each
host sends to another one that is drawn by chance.
"""

from __future__ import annotations

from statistics import median

from compilers.demand.fluid import Fluid
from compilers.evaluation.saturation import loads_by_tables
from compilers.evaluation.traffic import random_hosts
from compilers.tables.build import Build

DRAWS = 100
"""The permutations that are drawn."""


def random_hosts_share(build: Build, hosts: int, draws: int = DRAWS, seed: int = 0) -> float:
    """The median share of its rate that every host can send in permutations of hosts.

    Args:
        build: its tables and cables.
        hosts: hosts per switch.
        draws: how many permutations.
        seed: the seed of the first draw; each further draw has the next number.
    """
    fluid, shares = Fluid.of(build), []
    for number in range(seed, seed + draws):
        traffic = random_hosts(build.topology, hosts, number)
        load = loads_by_tables(build, fluid, traffic)
        shares.append(min(1.0, 1 / (hosts * float(load.max()))))
    return median(shares)
