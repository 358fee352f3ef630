"""Flows between the hosts of a running Mininet network: UDP by a probe, TCP by iperf3."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from time import sleep

import numpy as np

from mininet_scenarios.engines.network import FabricNetwork
from mininet_scenarios.machine.netns import entered, no_offloads
from mininet_scenarios.traffic.iperf import Stream, run
from mininet_scenarios.traffic.probing import ProbeProcess, decode

LARGEST_PAYLOAD = 1242
"""Bytes of a frame of the fastest UDP flow; it fits everywhere."""
Flow = tuple[int, int, float]
"""From host, to host, Mb/s."""


def ends(network: FabricNetwork) -> list[tuple[int, str]]:
    """What a probe takes of each host: a process in its namespace, and its address."""
    return [(host.pid, network.address(i, 4)) for i, host in enumerate(network.hosts)]


def carry_udp(network: FabricNetwork, flows: Sequence[Flow], seconds: float) -> list[float]:
    """Mb/s that arrived in the second half of the time, when queues are as full as they get.

    All send as often; the fastest with the largest packets.
    """
    rates = np.array([rate for *_, rate in flows])
    frames = np.maximum(1, np.round(LARGEST_PAYLOAD * rates / rates.max()))
    interval = LARGEST_PAYLOAD * 8 / 1e6 / float(rates.max())
    pairs = [(s, d) for s, d, _ in flows]
    probe = ProbeProcess(ends(network), pairs, interval, frames.astype(int).tolist())
    sleep(seconds)
    probed = decode(probe.stop())
    half = float(probed.sent.mean())
    later = (probed.received >= half) & (probed.received < probed.sent[-1])
    came = np.bincount(probed.pair[later], minlength=len(flows))
    arrived: list[float] = (came * frames * 8 / 1e6 / (probed.sent[-1] - half)).tolist()
    return arrived


def carry_tcp(
    network: FabricNetwork, flows: Sequence[Flow], parallel: int, seconds: float, logs: Path
) -> list[float]:
    """Mb/s that arrived.

    Raises:
        EngineError: iperf3 failed.
    """
    hosts = network.hosts
    for host in {end for s, d, _ in flows for end in (s, d)}:
        with entered(hosts[host].pid):
            no_offloads("eth0")
    streams = [
        Stream(hosts[s].popen, hosts[d].popen, hosts[d].pid, network.address(d, 4), rate)
        for s, d, rate in flows
    ]
    return run(streams, parallel, seconds, logs)
