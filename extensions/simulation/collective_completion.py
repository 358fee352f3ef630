"""Collective operations as messages between hosts, and how long one takes on a build.

`ring_allreduce`, `tree_allreduce`, `all_to_all` and `sweep` make the messages of a collective.
`completion_time` lets hosts send them through an empty network, and counts the cycles until the
last packet has come.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from math import ceil, isqrt
from typing import Any, NamedTuple, cast

import numpy as np
from numpy.typing import NDArray

from compilers.tables.build import Build
from extensions.simulation import packet_kernel
from extensions.simulation.build_simulation import network_for
from extensions.simulation.channel_counts import with_channels
from extensions.simulation.host_messages import HostMessages
from extensions.simulation.load_point import SimulationSettings
from extensions.simulation.measurement import Measurement
from extensions.simulation.simulated_network import HostTraffic, SimulatedNetwork
from inventory.problems import InputError, not_among

Numbers = NDArray[Any]
BLOCKS = 10
"""How many messages a host of a sweep sends each neighbour, for each corner of the grid."""
CORNERS = ((1, 1), (1, -1), (-1, 1), (-1, -1))
"""The steps of a sweep's waves from each corner of the grid, by rows and by columns."""


class Collective(NamedTuple):
    """The n messages of a collective between hosts, as `HostMessages.of` takes them."""

    source: Numbers
    """int64[n], the host that sends each message."""
    destination: Numbers
    """int64[n], the host that it is for."""
    stage: Numbers
    """int64[n], the stage of its sender that it belongs to. Hosts send stage by stage."""
    releases_stage: Numbers
    """int64[n], the stage from which messages of its receiver wait for it."""
    part: float = 1.0
    """The share of the vector that each message has; 1 where it has the whole vector."""


def _hosts_and_numbers(hosts: int, count: int) -> tuple[Numbers, Numbers]:
    """The messages of hosts that send `count` messages each.

    Returns:
        int[M], the host of each message; and int[M], its number among the messages of the host.
    """
    host, index = np.divmod(np.arange(hosts * count), count)
    return host, index


def ring_allreduce(hosts: int) -> Collective:
    """The messages of an all-reduce round a ring of H hosts.

    It has 2(H - 1) steps. In each step a host sends the next host the part that came in the step
    before.
    """
    host, step = _hosts_and_numbers(hosts, 2 * (hosts - 1))
    return Collective(host, (host + 1) % hosts, step, step + 1, 1 / hosts)


def tree_allreduce(hosts: int) -> Collective:
    """The messages of an all-reduce over a binary tree: whole vectors up to host 0, and down."""
    child = np.arange(1, hosts)
    parent = (child - 1) // 2
    # By host, from 1 at the root: host h is at the level of the bits of h + 1.
    level = np.frexp(np.arange(1, hosts + 1))[1]
    lowest = int(level[-1])
    up, down = lowest - level[child], lowest + level[parent]
    return Collective(
        np.concatenate((child, parent)),
        np.concatenate((parent, child)),
        np.concatenate((up, down)),
        np.concatenate((up + 1, down + 1)),
    )


def all_to_all(hosts: int) -> Collective:
    """A message from each host to each other host, the next one first; no message waits."""
    host, index = _hosts_and_numbers(hosts, hosts - 1)
    no_stage = np.full_like(host, hosts)  # after the last one, so that no message waits
    return Collective(host, (host + 1 + index) % hosts, index, no_stage)


def sweep(hosts: int, rows: int = 0) -> Collective:
    """The messages of Sweep3D: waves over a grid of hosts, `BLOCKS` from each of its corners.

    A host sends to two neighbours what came from its two other neighbours.

    Args:
        hosts: the number of hosts.
        rows: the rows of the grid, a divisor of `hosts`; 0 for a grid as near to a square as can
            be.
    """
    rows = rows or next(rows for rows in range(isqrt(hosts), 0, -1) if hosts % rows == 0)
    row, column = np.divmod(np.arange(hosts), hosts // rows)
    sources, destinations, stages = list[Numbers](), list[Numbers](), list[Numbers]()
    for corner, (down, right) in enumerate(CORNERS):
        for block in range(BLOCKS):
            for rise, run in ((down, 0), (0, right)):
                to_row, to_column = row + rise, column + run
                inside = (to_row >= 0) & (to_row < rows) & (to_column >= 0)
                host = np.flatnonzero(inside & (to_column < hosts // rows))
                sources.append(host)
                destinations.append(to_row[host] * (hosts // rows) + to_column[host])
                stages.append(np.full_like(host, corner * BLOCKS + block))
    stage = np.concatenate(stages)
    return Collective(np.concatenate(sources), np.concatenate(destinations), stage, stage)


COLLECTIVES: dict[str, Callable[[int], Collective]] = {
    "ring-allreduce": ring_allreduce,
    "tree-allreduce": tree_allreduce,
    "all-to-all": all_to_all,
    "sweep3d": sweep,
}
"""By the name of a collective the function that makes its messages, from the number of hosts."""
FLIT = 64
"""Bytes of a flit."""
LINK_SPEED = 400
"""Gbit/s of a link, which takes a flit a cycle."""
MOST_MESSAGES = 1 << 23
"""The most messages of a collective or a trace."""
TO_THE_END: dict[str, Any] = {"warmup": 0, "period": packet_kernel.NEVER, "periods": 1}
"""The settings with which all cycles are measured."""


@dataclass(frozen=True, slots=True)
class CompletionTime:
    """How long a collective over all hosts of a build takes."""

    collective: str
    """Its name."""
    size: int
    """Bytes of the vector, or of each message."""
    hosts: int
    """How many hosts take part."""
    messages: int
    """How many messages were sent."""
    packets: int
    """How many packets were sent."""
    cycles: int | None
    """The cycle in which the last message had come; None if the collective did not end."""
    seconds: float | None
    """These cycles in seconds; None if it did not end."""
    least: int
    """How many cycles the busiest host needs to send its messages: no run takes fewer."""
    hottest_use: float
    """The part of the time in which the link that was used most carried something."""
    lost: int
    """Packets that were dropped."""
    deadlock: tuple[int, ...] = ()
    """The switches along a cycle of full buffers, as in `LoadPoint`."""

    def text(self, routing: str) -> str:
        """The result of a collective that ended, as a sentence after its name.

        routing: how packets are routed, in words.
        """
        microseconds = 0 if self.seconds is None else self.seconds * 1e6
        return (
            f"of {self.size:,} bytes over {self.hosts:,} hosts{routing} takes "
            f"{self.cycles:,} cycles, {microseconds:.3g} us at {LINK_SPEED} Gbit/s\n"
            f"{self.messages:,} messages; the busiest host sends for {self.least:,} cycles, "
            f"the hottest link is used {self.hottest_use:.0%} of the time"
        )


def completion_time(
    build: Build,
    collective: str,
    size: int,
    hosts: int,
    settings: SimulationSettings,
    rows: int = 0,
) -> CompletionTime:
    """Simulate a collective over all hosts, numbered switch by switch, on an empty network.

    Args:
        build: the build with its tables and cables.
        collective: one of `COLLECTIVES`.
        size: the bytes of the vector, or of each message.
        hosts: how many hosts each switch has; 0 for as many as it was built with.
        settings: the settings, from `settings_for`.
        rows: the rows of the grid of `sweep3d`, as for `sweep`.

    Raises:
        InputError: there is no such collective or grid, a setting does not apply, or there are too
            many messages.
    """
    if collective not in COLLECTIVES:
        raise InputError(not_among(collective, COLLECTIVES, "collective"))
    hosts = hosts or max(1, build.wiring.host_port.shape[1])
    network = network_for(build, hosts, settings)
    host_count = int(network.endpoints.sum()) * hosts
    messages = _messages_of(collective, host_count, rows)
    packets = max(1, ceil(size * messages.part / (settings.packet * FLIT)))
    total = packets * len(messages.source)

    def host_messages(arcs: NDArray[np.int32]) -> HostMessages:
        """The messages between the arcs of the hosts."""
        return HostMessages.of(
            arcs,
            messages.source,
            messages.destination,
            messages.stage,
            messages.releases_stage,
            packets,
        )

    sent = run_messages(build, network, settings, host_messages, total)
    cycles = sent.cycles
    simulated = sent.run.now if cycles is None else cycles
    hottest_use = sent.state.carried[network.end >= 0].max() / max(1, simulated)
    send_cycles = np.bincount(messages.source).max() * packets * settings.packet
    return CompletionTime(
        collective=collective,
        size=size,
        hosts=host_count,
        messages=len(messages.source),
        packets=total,
        cycles=cycles,
        seconds=None if cycles is None else cycles * FLIT * 8 / (LINK_SPEED * 1e9),
        least=int(send_cycles),
        hottest_use=float(hottest_use),
        lost=sent.run.lost,
        deadlock=() if cycles is not None else sent.run.deadlock(),
    )


def _messages_of(collective: str, hosts: int, rows: int) -> Collective:
    """The messages of a collective over so many hosts.

    Args:
        collective: one of `COLLECTIVES`.
        hosts: the number of hosts.
        rows: the rows of the grid, as for `sweep`.

    Raises:
        InputError: there are too many messages, or there is no such grid.
    """
    message_counts = {
        "ring-allreduce": 2 * hosts * (hosts - 1),
        "all-to-all": hosts * (hosts - 1),
    }
    if message_counts.get(collective, 0) > MOST_MESSAGES:
        counts = f"{message_counts[collective]:,} of {hosts:,} hosts"
        todo = "take fewer hosts a switch (`hosts_per_node`), or tree-allreduce"
        raise InputError.of(f"at most {MOST_MESSAGES:,} messages", counts, todo, key="collective")
    if rows and (collective != "sweep3d" or hosts % rows):
        raise InputError.of(f"sweep3d with a divisor of {hosts:,}", f"{rows} rows", key="rows")
    return sweep(hosts, rows) if rows else COLLECTIVES[collective](hosts)


class MessagesSent(NamedTuple):
    """What became of messages that hosts sent through an empty network."""

    run: Measurement
    """The simulation."""
    state: packet_kernel.PacketState
    """Its state at the end."""
    cycles: int | None
    """The cycle in which the last flit came; None if some did not come."""


def run_messages(
    build: Build,
    network: SimulatedNetwork,
    settings: SimulationSettings,
    messages: Callable[[NDArray[np.int32]], HostMessages],
    packets: int,
) -> MessagesSent:
    """Let hosts send messages on an empty network, until all their packets have come.

    Args:
        build: the build with its tables and cables.
        network: the network, from `network_for`.
        settings: the settings, from `settings_for`.
        messages: makes the messages from the arcs of the hosts, switch by switch.
        packets: how many packets all messages have.

    Raises:
        InputError: flits are simulated instead of packets, or there are too few virtual channels.
    """
    if settings.level == "flit":
        raise InputError.of("`level packet` for a collective or a trace", "flit", key="level")
    settings = replace(with_channels(build, network, settings), **TO_THE_END)
    traffic = HostTraffic.none(np.repeat(network.endpoints, network.hosts))
    run = Measurement.of(network, traffic, settings, load=0.5)
    state = cast("packet_kernel.PacketState", run.state)
    state = state._replace(messages=messages(state.host))
    state.due[:] = state.messages.first_due
    run.state = state
    return MessagesSent(run, state, run.until_delivered(packets))
