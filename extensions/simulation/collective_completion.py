"""How long a collective takes, from the first packet of its hosts to the last."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from math import ceil
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from compilers.tables.build import Build
from extensions.simulation import packet_kernel as kernel
from extensions.simulation.build_simulation import network_for, with_channels
from extensions.simulation.collectives import COLLECTIVES
from extensions.simulation.host_messages import HostMessages
from extensions.simulation.load_point import SimulationSettings
from extensions.simulation.measurement import Measurement
from extensions.simulation.simulated_network import HostTraffic, SimulatedNetwork
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

    def text(self, routing: str) -> str:
        """What follows its name, of one that ended; routing: of packets, in words."""
        return (
            f"of {self.size:,} bytes over {self.hosts:,} hosts{routing} takes "
            f"{self.cycles:,} cycles, {(self.seconds or 0) * 1e6:.3g} us at 400 Gbit/s\n"
            f"{self.messages:,} messages; the busiest host sends for {self.least:,} cycles, "
            f"the hottest link is used {self.hottest_use:.0%} of the time"
        )


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
        InputError: no such collective, a setting that it does not have, or too many messages.
    """
    if collective not in COLLECTIVES:
        todo = did_you_mean(collective, COLLECTIVES, "choose one of these")
        raise InputError.of(", ".join(COLLECTIVES), collective, todo, key="collective")
    hosts = hosts or max(1, build.wiring.host_port.shape[1])
    network = network_for(build, hosts, settings)
    count = int(network.endpoints.sum()) * hosts
    most = {"ring-allreduce": 2 * count * (count - 1), "all-to-all": count * (count - 1)}
    if most.get(collective, 0) > MOST_MESSAGES:
        given = f"{most[collective]:,} of {count:,} hosts"
        todo = "take fewer hosts a switch (`hosts_per_node`), or tree-allreduce"
        raise InputError.of(f"at most {MOST_MESSAGES:,} messages", given, todo, key="collective")
    made = COLLECTIVES[collective](count)
    packets = max(1, ceil(size * made.part / (settings.packet * FLIT)))
    total = packets * len(made.source)
    run, state, cycles = run_messages(
        build, network, settings, lambda arcs: HostMessages.of(arcs, *made[:4], packets), total
    )
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
        lost=run.lost,
        deadlock=() if cycles is not None else run.deadlock(),
    )


def run_messages(
    build: Build,
    network: SimulatedNetwork,
    settings: SimulationSettings,
    messages: Callable[[NDArray[np.int32]], HostMessages],
    packets: int,
) -> tuple[Measurement, kernel.PacketState, int | None]:
    """Have hosts send messages on a network that is empty, until all their packets have come.

    Args:
        build: its tables and cables.
        network: of `network_for`.
        settings: of `settings_for`.
        messages: of the hosts, given their arcs, switch by switch.
        packets: of all messages.

    Returns:
        The run, its state, and when the last flit came; None if some did not.

    Raises:
        InputError: flit by flit, or too few virtual channels.
    """
    if settings.level == "flit":
        raise InputError.of("`level packet` for a collective or a trace", "flit", key="level")
    settings = replace(with_channels(build, network, settings), **TO_THE_END)
    traffic = HostTraffic.none(np.repeat(network.endpoints, network.hosts))
    run = Measurement.of(network, traffic, settings, load=0.5)
    state = cast("kernel.PacketState", run.state)
    state = state._replace(messages=messages(state.host))
    state.due[:] = state.messages.first_due
    run.state = state
    return run, state, run.until_delivered(packets)
