"""How long a collective takes, from the first packet of its hosts to the last."""

from __future__ import annotations

from dataclasses import dataclass, replace
from math import ceil
from typing import Any, cast

import numpy as np

from compilers.tables.build import Build
from extensions.simulation import packet_kernel as kernel
from extensions.simulation.build_simulation import network_for, with_channels
from extensions.simulation.collectives import COLLECTIVES
from extensions.simulation.host_messages import HostMessages
from extensions.simulation.load_point import SimulationSettings
from extensions.simulation.measurement import Measurement
from extensions.simulation.simulated_network import HostTraffic
from inventory.problems import InputError, did_you_mean

FLIT = 64
"""Bytes."""
SPEED = 400
"""Gbit/s of a link, which takes a flit a cycle."""
MOST_MESSAGES = 1 << 23
TO_THE_END: dict[str, Any] = {"warmup": 0, "period": kernel.NEVER, "periods": 1}
"""The settings of what is measured: all of it."""


@dataclass(frozen=True, slots=True)
class CompletionTime:
    """Of a collective over all hosts of a build.

    size: bytes; of the vector, or of each message. cycles, seconds: None if it did not end. least:
    cycles that the busiest host needs for what it sends. hottest_use: the part of the time in which
    the link that was used most carried something. lost: packets. deadlock: as in `LoadPoint`.
    """

    collective: str
    size: int
    hosts: int
    messages: int
    packets: int
    cycles: int | None
    seconds: float | None
    least: int
    hottest_use: float
    lost: int
    deadlock: tuple[int, ...] = ()


def completion_time(
    build: Build, collective: str, size: int, hosts: int, settings: SimulationSettings
) -> CompletionTime:
    """Simulate a collective over all hosts, numbered switch by switch, on a network that is empty.

    Args:
        build: its tables and cables.
        collective: of `COLLECTIVES`.
        size: bytes, of the vector or of each message.
        hosts: a switch; 0 for as built.
        settings: of `settings_for`.

    Raises:
        InputError: no such collective, a setting that does not go with it, or too many messages.
    """
    if collective not in COLLECTIVES:
        todo = did_you_mean(collective, COLLECTIVES, "choose one of these")
        raise InputError.of(", ".join(COLLECTIVES), collective, todo, key="--collective")
    if settings.level == "flit":
        raise InputError.of("a collective without --level flit", "--level flit")
    hosts = hosts or max(1, build.wiring.host_port.shape[1])
    network = network_for(build, hosts, settings)
    count = int(network.endpoints.sum()) * hosts
    most = {"ring-allreduce": 2 * count * (count - 1), "all-to-all": count * (count - 1)}
    if most.get(collective, 0) > MOST_MESSAGES:
        given = f"{most[collective]:,} of {count:,} hosts"
        todo = "take fewer hosts a switch (--hosts), or tree-allreduce"
        raise InputError.of(f"at most {MOST_MESSAGES:,} messages", given, todo, key="--collective")
    made = COLLECTIVES[collective](count)
    packets = max(1, ceil(size * made.part / (settings.packet * FLIT)))
    settings = replace(with_channels(build, network, settings), **TO_THE_END)
    switches = network.switches
    nowhere = np.zeros(switches + 1, np.int64), np.zeros(0, np.int32), np.zeros(0)
    traffic = HostTraffic(*nowhere, network.endpoints.astype(np.float64))
    run = Measurement.of(network, traffic, settings, load=0.5)
    state = cast("kernel.PacketState", run.state)
    messages = HostMessages.of(state.host, *made[:4], packets)
    state = state._replace(messages=messages)
    state.due[:] = messages.first_due
    run.state = state
    total = packets * len(made.source)
    cycles = run.until_delivered(total)
    use = state.carried[network.end >= 0].max() / max(1, run.now if cycles is None else cycles)
    sent = np.bincount(made.source).max() * packets * settings.packet
    return CompletionTime(
        collective=collective,
        size=size,
        hosts=count,
        messages=len(made.source),
        packets=total,
        cycles=cycles,
        seconds=None if cycles is None else cycles * FLIT * 8 / (SPEED * 1e9),
        least=int(sent),
        hottest_use=float(use),
        lost=int(state.counts[kernel.LOST]),
        deadlock=() if cycles is not None else run.deadlock(),
    )
