"""Simulate the packets of a file, whose lines have cycle, source, destination and flits.

`read_trace` reads the file, and `trace_times` lets hosts send its messages through an empty network
and measures their latencies.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from compilers.tables.build import Build
from extensions.simulation.build_simulation import network_for
from extensions.simulation.collective_completion import MOST_MESSAGES, run_messages
from extensions.simulation.host_messages import HostMessages
from extensions.simulation.load_point import SimulationSettings
from inventory.problems import InputError, Problem, few, shown
from inventory.yamlfile import TextFile, read_text

LINE_FORM = "a cycle, two hosts of {hosts:,} from 0 on, and flits, such as 120 0 7 16"
"""A line of a trace, in words."""
CYCLE_LIMIT = 1 << 30
"""All messages are ready before this cycle. The simulation has cycles of 31 bits, and goes on."""
FLIT_LIMIT = 1 << 30
"""All messages have fewer flits than this."""


class PacketTrace(NamedTuple):
    """N messages in the order of their cycles, one for each line of the file."""

    cycle: NDArray[np.int64]
    """int64[N], the cycle from which each message may be sent."""
    source: NDArray[np.int64]
    """int64[N], the host that sends each."""
    destination: NDArray[np.int64]
    """int64[N], the host that each is for."""
    flits: NDArray[np.int64]
    """int64[N], the size of each."""


@dataclass(frozen=True, slots=True)
class TraceTimes:
    """How long the messages of a trace take on a build.

    Latencies are from a message's cycle until its last flit came; None if not all messages came.
    """

    messages: int
    """How many messages the trace has."""
    packets: int
    """How many packets carried them."""
    cycles: int | None
    """The cycle in which the last message had come; None if not all came."""
    mean_latency: float | None
    """The mean latency of a message."""
    median_latency: int | None
    """The median latency."""
    p99_latency: int | None
    """The latency that 99 % of the messages do not exceed."""
    worst_latency: int | None
    """The largest latency."""
    lost: int
    """Packets that were dropped."""
    deadlock: tuple[int, ...] = ()
    """The switches along a cycle of full buffers, as in `LoadPoint`."""

    def text(self, routing: str) -> str:
        """The result of a trace that ended, as a sentence after its name.

        Args:
            routing: how packets are routed, in words.
        """
        messages = "1 message" if self.messages == 1 else f"{self.messages:,} messages"
        packets = "1 packet" if self.packets == 1 else f"{self.packets:,} packets"
        return (
            f"has {messages} in {packets}, all there after "
            f"{self.cycles:,} cycles{routing}\nlatency: mean {self.mean_latency:.1f} cycles, "
            f"median {self.median_latency}, p99 {self.p99_latency}, worst {self.worst_latency}"
        )


def trace_times(build: Build, file: Path, hosts: int, settings: SimulationSettings) -> TraceTimes:
    """Simulate the packets of a file on an empty network.

    A host sends its messages in the order of their cycles, in packets of `settings.packet` flits.

    Args:
        build: the build with its tables and cables.
        file: the trace; its lines are as `LINE_FORM` says, and hosts are numbered switch by switch.
        hosts: how many hosts each switch has; 0 for as many as it was built with.
        settings: the settings, from `settings_for`.

    Raises:
        InputError: a line is wrong, or there are too many.
    """
    network = network_for(build, hosts or max(1, build.wiring.host_port.shape[1]), settings)
    host_count = int(network.endpoints.sum()) * network.hosts_a_switch
    trace = read_trace(read_text(file), host_count)
    packets = -(-trace.flits // settings.packet)  # int64[N], of each message, rounded up

    def host_messages(arcs: NDArray[np.int32]) -> HostMessages:
        """A message for each line of the trace, between hosts with these arcs."""
        numbers = np.arange(len(packets))
        # Each message is a stage by itself, in the order of the trace. When a message has arrived,
        # it releases a stage of its receiver. No message is of the stage `no_stage`, so no message
        # waits for another one.
        no_stage = np.full(len(packets), len(packets))
        return HostMessages.of(
            arcs,
            trace.source,
            trace.destination,
            stage=numbers,
            releases_stage=no_stage,
            size=packets,
            earliest=trace.cycle,
        )

    sent = run_messages(build, network, settings, host_messages, int(packets.sum()))
    latency = sent.state.messages.done_cycle - sent.state.messages.earliest_cycle
    ended = sent.cycles is not None

    def quantile(fraction: float) -> int | None:
        """The latency that this fraction of the messages does not exceed."""
        return int(np.quantile(latency, fraction)) if ended else None

    return TraceTimes(
        messages=len(packets),
        packets=int(packets.sum()),
        cycles=sent.cycles,
        mean_latency=float(latency.mean()) if ended else None,
        median_latency=quantile(0.5),
        p99_latency=quantile(0.99),
        worst_latency=quantile(1.0),
        lost=sent.run.lost,
        deadlock=() if ended else sent.run.deadlock(),
    )


def read_trace(file: TextFile, hosts: int) -> PacketTrace:
    """Read the messages of a file; empty lines and lines that begin with # are left out.

    Args:
        file: the file.
        hosts: how many hosts there are.

    Raises:
        InputError: lines are wrong, there are none, or there are too many.
    """
    required = LINE_FORM.format(hosts=hosts)
    rows, problems = list[tuple[int, ...]](), list[Problem]()
    for number, line in enumerate(file.text.splitlines(), 1):
        words = line.split()
        if not words or words[0].startswith("#"):
            continue
        # A word that is no number becomes -1, which no column may have.
        row = tuple(int(word) if word.isascii() and word.isdigit() else -1 for word in words)
        if _fits(row, hosts):
            rows.append(row)
        else:
            problems.append(Problem(required, shown(line.strip()), "", file.name, number))
    if problems:
        raise InputError(few(problems))
    if not 0 < len(rows) <= MOST_MESSAGES:
        given = f"{len(rows):,}"
        raise InputError.of(f"1 to {MOST_MESSAGES:,} packets", given, file=file.name)
    return PacketTrace(*np.array(sorted(rows), np.int64).T)


def _fits(row: tuple[int, ...], hosts: int) -> bool:
    """Whether numbers are a line of a trace between so many hosts."""
    if len(row) != 4:
        return False
    cycle, source, destination, flits = row
    ends_fit = 0 <= source < hosts and 0 <= destination < hosts and source != destination
    return ends_fit and 0 <= cycle < CYCLE_LIMIT and 0 < flits < FLIT_LIMIT
