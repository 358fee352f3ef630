"""The traffic of a pattern: one of those that have names, or that of a file."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from compilers.demand.demand_file import between_hosts, read_demand
from compilers.demand.traffic_matrix import Traffic
from compilers.evaluation.traffic import PATTERNS
from compilers.tables.build import Build
from inventory.problems import InputError, not_among
from inventory.yamlfile import read_text

FILE = ".csv"
"""How the name of a file of traffic ends."""


def require_pattern(pattern: str) -> None:
    """Pass for the name of a pattern, or of a file.

    Raises:
        InputError: it is neither.
    """
    if pattern not in PATTERNS and not pattern.endswith(FILE):
        raise InputError(not_among(pattern, PATTERNS, "pattern"))


def pattern_traffic(build: Build, pattern: str, hosts: int, seed: int) -> Traffic:
    """What switches send each other.

    Args:
        build: its switches and hosts.
        pattern: a name of `PATTERNS`, or that of a file of rates.
        hosts: of every switch that has some. Where these are as many as the fullest switch of the
            build has, a file's rates are for the hosts that each has.
        seed: of random patterns.

    Raises:
        InputError: the file has mistakes.
    """
    if not pattern.endswith(FILE):
        return PATTERNS[pattern](build.topology, hosts, seed)
    traffic = between_hosts(build, read_demand(read_text(pattern), build.wiring), pattern)
    return scaled(build, traffic, hosts)


def fullest(build: Build) -> int:
    """The hosts of the switch that has most; 1 in a fabric without hosts.

    It may be fewer than `hosts_per_node`, for which the wiring has room.
    """
    return max(1, int(np.count_nonzero(build.wiring.host_port > 0, axis=1).max(initial=0)))


def scaled(build: Build, traffic: Traffic, hosts: int) -> Traffic:
    """Rates in the unit that the busiest switch sends or takes all that its hosts can."""
    count = np.count_nonzero(build.wiring.host_port > 0, axis=1)
    if count.max(initial=0) != hosts:
        count = np.full(len(count), hosts)
    can, order = np.maximum(1, count) / hosts, len(count)
    sent = np.bincount(traffic.source, traffic.amount, minlength=order)
    taken = np.bincount(traffic.destination, traffic.amount, minlength=order)
    busiest = float((np.maximum(sent, taken) / can).max())
    return replace(traffic, amount=traffic.amount / busiest)
