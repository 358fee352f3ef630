"""The flows of a traffic pattern, or of a file of rates, between the hosts that take part.

A rehearsal makes the flows of its scenario here; its plan first tries whether it can.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from compilers.demand.demand_file import host_traffic
from compilers.demand.traffic_matrix import Traffic
from compilers.evaluation.pattern_traffic import RATES_SUFFIX
from compilers.evaluation.traffic import PATTERNS
from compilers.tables.build import Build
from inventory.problems import InputError
from inventory.yamlfile import read_text
from mininet_scenarios.scenario.engine import HostSample
from mininet_scenarios.scenario.observations import Flows
from mininet_scenarios.scenario.scenario_file import FlowSpec


def host_flows(build: Build, hosts: HostSample, spec: FlowSpec, rate: float) -> Flows:
    """The flows of a traffic pattern between hosts.

    The pattern has flows between switches: the i-th host of a switch sends to the i-th host of each
    destination switch, counted modulo the hosts there. The rates of a file are shared evenly by the
    hosts of the sending switch. Only their proportions count: the host that sends or receives most
    has the whole `rate`.

    Args:
        build: has the switches of the pattern.
        hosts: the hosts that take part.
        spec: the pattern, its seed, the protocol and the connections of a flow.
        rate: Mb/s that a flow offers, times its amount in the pattern.

    Raises:
        InputError: the pattern has no flows on this fabric, or the file has mistakes.
    """
    # int64[S] each: how many hosts a switch has, and the number of the first of them.
    host_counts = np.bincount(hosts.switch, minlength=build.tables.switches)
    first_host = np.cumsum(host_counts) - host_counts
    is_file = spec.pattern.endswith(RATES_SUFFIX)
    if is_file:
        traffic = _of_file(build, spec.pattern)
    else:
        traffic = PATTERNS[spec.pattern](build.topology, int(host_counts.max()), spec.seed)
    number = np.arange(len(hosts)) - first_host[hosts.switch]  # of each host at its switch
    # int64[n] each: a flow of the pattern, for each host of its switch, and that host.
    flow, source = np.nonzero(traffic.source[:, None] == hosts.switch)
    has_receiver = host_counts[traffic.destination[flow]] > 0
    flow, source = flow[has_receiver], source[has_receiver]
    if not len(flow):
        raise InputError.of(
            key="traffic.flows.pattern",
            required="a pattern that has flows on this fabric",
            given=spec.pattern,
        )
    switch = traffic.destination[flow]
    destination = (first_host[switch] + number[source] % host_counts[switch]).astype(np.int64)
    amount = traffic.amount[flow]
    if is_file:
        amount = amount / host_counts[hosts.switch[source]]
        amount = _relative_to_busiest(source, destination, amount)
    return Flows(
        source=source,
        destination=destination,
        rate=rate * amount,
        protocol=spec.protocol,
        parallel=spec.parallel,
    )


def _relative_to_busiest(
    source: NDArray[np.int64], destination: NDArray[np.int64], amount: NDArray[np.float64]
) -> NDArray[np.float64]:
    """float64[n], the amounts of flows, as parts of what the busiest host sends or receives."""
    most_sent = np.bincount(source, amount).max()
    most_received = np.bincount(destination, amount).max()
    return np.asarray(amount / max(most_sent, most_received))


def _of_file(build: Build, file: str) -> Traffic:
    """The flows of a file between switches.

    Raises:
        InputError: the file cannot be read, or has mistakes.
    """
    return host_traffic(build, read_text(file))
