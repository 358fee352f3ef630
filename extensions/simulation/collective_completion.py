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
FLIT = 64
"""Bytes of a flit."""
LINK_SPEED = 400
"""Gbit/s of a link, which takes a flit a cycle."""
MOST_MESSAGES = 1 << 23
"""The most messages of a collective or a trace."""
TO_THE_END: dict[str, Any] = {"warmup": 0, "period": packet_kernel.NEVER, "periods": 1}
"""The settings with which all cycles are measured."""
BLOCKS = 10
"""How many messages a host of a sweep sends each neighbour, for each corner of the grid."""
CORNERS = ((1, 1), (1, -1), (-1, 1), (-1, -1))
"""Where a sweep's waves go from each corner of the grid: rows down or up, columns right or left."""


class Collective(NamedTuple):
    """The n messages of a collective between hosts, as `HostMessages.of` takes them.

    Each host sends its messages stage by stage. A message releases a stage of its receiver: the
    messages of that stage and of later ones are sent only when it has come.
    """

    source: Numbers
    """int64[n], the host that sends each message."""
    destination: Numbers
    """int64[n], the host that each is for."""
    stage: Numbers
    """int64[n], the stage of the sender that each belongs to."""
    releases_stage: Numbers
    """int64[n], the stage of the receiver that each releases."""
    vector_share: float = 1.0
    """The share of the vector that each message has; 1 where it has the whole vector."""


def ring_allreduce(hosts: int) -> Collective:
    """The messages of an all-reduce round a ring of H hosts.

    It has 2(H - 1) steps. In each step a host sends the next host the part that came in the step
    before.
    """
    steps = 2 * (hosts - 1)
    host, step = np.divmod(np.arange(hosts * steps), steps)
    return Collective(host, (host + 1) % hosts, step, step + 1, vector_share=1 / hosts)


def tree_allreduce(hosts: int) -> Collective:
    """The messages of an all-reduce over a binary tree: whole vectors up to host 0, and down.

    The children of host h are the hosts 2h + 1 and 2h + 2. Stages are the levels of the tree, first
    from the lowest one up, and then down again.
    """
    child = np.arange(1, hosts)
    parent = (child - 1) // 2
    # By host, from 1 at the root: the level of host h is the number of bits of h + 1.
    level = np.frexp(np.arange(1, hosts + 1))[1]
    lowest = int(level[-1])
    stage_up, stage_down = lowest - level[child], lowest + level[parent]
    stage = np.concatenate((stage_up, stage_down))
    return Collective(
        source=np.concatenate((child, parent)),
        destination=np.concatenate((parent, child)),
        stage=stage,
        releases_stage=stage + 1,
    )


def all_to_all(hosts: int) -> Collective:
    """A message from each host to each other host, the next one first; no message waits."""
    host, stage = np.divmod(np.arange(hosts * (hosts - 1)), hosts - 1)
    no_stage = np.full_like(host, hosts)  # after the last one, so that no message waits
    return Collective(host, (host + 1 + stage) % hosts, stage, no_stage)


def sweep(hosts: int, rows: int = 0) -> Collective:
    """The messages of Sweep3D: waves over a grid of hosts, `BLOCKS` from each of its corners.

    A host sends to two neighbours what came from its two other neighbours. A wave is a stage, in
    which a host sends only when both have sent.

    Args:
        hosts: the number of hosts.
        rows: the rows of the grid, a divisor of `hosts`; 0 for a grid as near to a square as can
            be.
    """
    rows = rows or next(rows for rows in range(isqrt(hosts), 0, -1) if hosts % rows == 0)
    columns = hosts // rows
    row, column = np.divmod(np.arange(hosts), columns)
    sources, destinations, stages = list[Numbers](), list[Numbers](), list[Numbers]()
    for corner, (row_step, column_step) in enumerate(CORNERS):
        for block in range(BLOCKS):
            for next_row, next_column in ((row + row_step, column), (row, column + column_step)):
                is_in_rows = (next_row >= 0) & (next_row < rows)
                is_in_columns = (next_column >= 0) & (next_column < columns)
                host = np.flatnonzero(is_in_rows & is_in_columns)
                sources.append(host)
                destinations.append(next_row[host] * columns + next_column[host])
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

        Args:
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
    packets_a_message = max(1, ceil(size * messages.vector_share / (settings.packet * FLIT)))
    packets = packets_a_message * len(messages.source)

    def host_messages(arcs: NDArray[np.int32]) -> HostMessages:
        """The messages between hosts with these arcs."""
        return HostMessages.of(
            arcs,
            messages.source,
            messages.destination,
            messages.stage,
            messages.releases_stage,
            size=packets_a_message,
        )

    sent = run_messages(build, network, settings, host_messages, packets)
    cycles = sent.cycles
    simulated = sent.run.next_cycle if cycles is None else cycles
    hottest_use = sent.state.carried_flits[network.far_arc >= 0].max() / max(1, simulated)
    most_packets = np.bincount(messages.source).max() * packets_a_message  # of a host
    return CompletionTime(
        collective=collective,
        size=size,
        hosts=host_count,
        messages=len(messages.source),
        packets=packets,
        cycles=cycles,
        seconds=None if cycles is None else cycles * FLIT * 8 / (LINK_SPEED * 1e9),
        least=int(most_packets * settings.packet),
        hottest_use=float(hottest_use),
        lost=sent.run.lost,
        deadlock=() if cycles is not None else sent.run.deadlock(),
    )


def _messages_of(collective: str, hosts: int, rows: int) -> Collective:
    """The messages of a collective over all hosts.

    Args:
        collective: one of `COLLECTIVES`.
        hosts: the number of hosts.
        rows: the rows of the grid, as for `sweep`.

    Raises:
        InputError: there are too many messages, or there is no such grid.
    """
    # The number of messages of the other collectives grows with that of hosts only.
    message_counts = {
        "ring-allreduce": 2 * hosts * (hosts - 1),
        "all-to-all": hosts * (hosts - 1),
    }
    if message_counts.get(collective, 0) > MOST_MESSAGES:
        given = f"{message_counts[collective]:,} of {hosts:,} hosts"
        todo = "take fewer hosts a switch (`hosts_per_node`), or tree-allreduce"
        raise InputError.of(f"at most {MOST_MESSAGES:,} messages", given, todo, key="collective")
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
        messages: a function that makes the messages from the arcs of the hosts, which are numbered
            switch by switch.
        packets: how many packets all messages have.

    Raises:
        InputError: flits are simulated instead of packets, or there are too few virtual channels.
    """
    if settings.level == "flit":
        raise InputError.of("`level packet` for a collective or a trace", "flit", key="level")
    settings = replace(with_channels(build, network, settings), **TO_THE_END)
    traffic = HostTraffic.none(np.repeat(network.endpoints, network.hosts_a_switch))
    # The load says how often hosts make random packets; with messages they make none.
    run = Measurement.of(network, traffic, settings, load=0.5)
    state = cast("packet_kernel.PacketState", run.state)
    state = state._replace(messages=messages(state.host))
    state.due_cycle[:] = state.messages.first_due
    run.state = state
    return MessagesSent(run, state, run.until_delivered(packets))
