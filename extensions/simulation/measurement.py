"""Run a simulation at one load: warm-up, measured periods, draining, and the figures of the point.

A `Measurement` owns the state of `packet_kernel` or `flit_kernel`, lets cycles pass in chunks, cuts
links that fail, and turns counts into a `LoadPoint`. Both kernels count the same things at the same
places of `counts`, whose names are in `packet_kernel`. If packets do not arrive, the measurement
looks for a cycle of full buffers (`waiting_cycle`).

A measurement is used once, in one of two ways:

- `point` offers a load: cycles pass through the warm-up and the measured periods, and then until
  all measured packets have arrived (draining).
- `until_delivered` has hosts send messages (`HostMessages`), and lets cycles pass until all have
  come.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from types import ModuleType
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from compilers.forwarding.machine_code import compiled, compiled_for
from extensions.simulation import flit_kernel, packet_kernel
from extensions.simulation.host_messages import NOT_DUE
from extensions.simulation.load_point import LoadPoint, SimulationSettings, TimedFailure
from extensions.simulation.simulated_network import HostTraffic, SimulatedNetwork

Numbers = NDArray[Any]
CHUNK = 125
"""The most cycles between two looks at what has arrived: a quarter of a usual period."""
SILENCE = 2_000
"""Cycles without any move after which the simulation ends, as nothing will move any more. With
links that take longer than half of that, it ends after twice the cycles of the longest link."""
SUSTAINED_FRACTION = 0.975
"""The fraction of its traffic that has to arrive for a load to be sustained."""
STEADY = 0.05
"""The fraction by which the mean latency may change in the last period of a sustained load."""


@dataclass(slots=True, eq=False)
class Measurement:
    """The state of a simulation at one load."""

    network: SimulatedNetwork
    """The network that is simulated."""
    traffic: HostTraffic
    """Where the packets of each host go."""
    settings: SimulationSettings
    """The settings of the simulation."""
    load: float
    """The offered load."""
    rules: packet_kernel.SwitchRules
    """The settings as the loops take them."""
    state: packet_kernel.PacketState | flit_kernel.FlitState
    """Everything that moves."""
    next_cycle: int = 0
    """The next cycle."""
    pending_failures: list[TimedFailure] = field(default_factory=list)
    """The failures whose links are still up, by cycle."""
    mean_latencies: tuple[float, ...] = ()
    """The mean latency after the warm-up and after each period."""
    packets_in_network: list[tuple[int, int]] = field(default_factory=list)
    """Cycles, at most `CHUNK` apart, and how many packets were in the network then."""
    advance: Callable[..., None] | None = None
    """The loop that lets cycles pass, in machine code; None before the first cycle."""

    @classmethod
    def of(
        cls,
        network: SimulatedNetwork,
        traffic: HostTraffic,
        settings: SimulationSettings,
        load: float,
    ) -> Measurement:
        """A simulation before its first cycle.

        Args:
            network: the network.
            traffic: where the packets of each host go.
            settings: the settings.
            load: the offered load.
        """
        rules = settings.rules()
        state_class = (
            flit_kernel.FlitState if settings.level == "flit" else packet_kernel.PacketState
        )
        return cls(
            network=network,
            traffic=traffic,
            settings=settings,
            load=load,
            rules=rules,
            state=state_class.of(network, traffic, rules, load, settings.seed),
            pending_failures=sorted(settings.failures, key=lambda failure: failure.cycle),
        )

    @property
    def _kernel(self) -> ModuleType:
        """The module with the loops `advance` and `blocked` for the level of the settings."""
        moves_flits = isinstance(self.state, flit_kernel.FlitState)
        return flit_kernel if moves_flits else packet_kernel

    def compile(self) -> None:
        """Compile the loops, or find them where an earlier process has left them."""
        self._run(1)  # one cycle calls the loop that lets cycles pass
        self._generated()

    def point(self) -> LoadPoint:
        """Simulate the load, and measure it."""
        settings = self.settings
        period_ends = {
            settings.warmup + settings.period * period for period in range(settings.periods + 1)
        }
        for stop in sorted(period_ends | {failure.cycle for failure in self.pending_failures}):
            self._run(stop)
            self._take_due_links_down()
            if stop in period_ends:
                self.mean_latencies += (self.mean_latency,)
        generated = self._generated()
        while self.state.counts[packet_kernel.MEASURED_OUT] < generated and self._worth_waiting():
            self._run(self.next_cycle + CHUNK)
        return self._figures(generated)

    def until_delivered(self, packets: int) -> int | None:
        """Simulate until so many packets have arrived.

        Returns:
            The cycle in which the last flit came; None if nothing moves any more before that.
        """
        counts = self.state.counts
        while counts[packet_kernel.DELIVERED] < packets:
            if self._is_silent and not self._more_to_come():
                return None
            self._take_due_links_down()
            next_failure = [failure.cycle for failure in self.pending_failures[:1]]
            self._run(min([self.next_cycle + CHUNK, *next_failure]))
        # Of messages the kernel counts the last arrival as the worst latency.
        return int(counts[packet_kernel.WORST])

    def _take_due_links_down(self) -> None:
        """Take the links of failures down whose cycle has come."""
        while self.pending_failures and self.pending_failures[0].cycle <= self.next_cycle:
            self._take_down(self.pending_failures.pop(0).links)

    @property
    def mean_latency(self) -> float:
        """The mean latency of the measured packets that have arrived."""
        measured_packets = self.state.hops.sum()  # each has taken some number of links
        return float(self.state.counts[packet_kernel.LATENCY] / max(1, measured_packets))

    @property
    def lost(self) -> int:
        """Packets that were dropped."""
        return int(self.state.counts[packet_kernel.LOST])

    def _run(self, stop: int) -> None:
        """Let cycles pass up to `stop`."""
        while self.next_cycle < stop:
            end = min(stop, self.next_cycle + CHUNK)
            arguments = self.network, self.traffic, self.rules, self.state
            if self.advance is None:
                self.advance = compiled_for(self._kernel.advance, *arguments, self.next_cycle, end)
            self.advance(*arguments, self.next_cycle, end)
            self.next_cycle = end
            counts = self.state.counts
            out_of_network = counts[packet_kernel.DELIVERED] + counts[packet_kernel.LOST]
            self.packets_in_network.append(
                (end, int(counts[packet_kernel.INJECTED] - out_of_network))
            )

    def _more_to_come(self) -> bool:
        """Whether a host sends in cycle `next_cycle` or later without waiting for a message."""
        due = cast("packet_kernel.PacketState", self.state).due_cycle
        return bool(((due >= self.next_cycle) & (due < NOT_DUE)).any())

    @property
    def _is_silent(self) -> bool:
        """Whether nothing has moved for so long that the simulation ends.

        A packet or a credit on a link does not count as a move until it has come.
        """
        silence = max(SILENCE, 2 * int(self.network.delay.max()))
        return bool(self.next_cycle - self.state.counts[packet_kernel.LAST] > silence)

    def _worth_waiting(self) -> bool:
        """Whether packets still move, and the time to wait for them is not over."""
        return not self._is_silent and self.next_cycle < self.settings.last + self.settings.drain

    def _take_down(self, links: Iterable[tuple[int, int]]) -> None:
        """Take links down, in both directions; a link is a pair of switches."""
        ports, end = self.network.ports, self.network.far_arc
        state = cast("packet_kernel.PacketState", self.state)  # flits have no failures
        cable = self.network.program.cable
        for u, v in links:
            link_arcs = np.arange(u * ports, u * ports + self.network.links_a_switch)
            arcs_to_v = link_arcs[end[link_arcs] // ports == v]
            dead = np.append(
                state.failed_elements, cable[u, arcs_to_v - u * ports].astype(np.int64)
            )
            self.state = state = state._replace(failed_elements=dead)
            for arc in arcs_to_v:
                for direction in (int(arc), int(end[arc])):
                    compiled(packet_kernel.take_arc_down)(
                        self.network, self.rules, state, direction, self.next_cycle
                    )

    def _generated(self) -> int:
        """How many packets were made in the measured cycles, those that wait in hosts included."""
        state, rules = self.state, self.rules
        unsent = compiled(packet_kernel.unsent_packets)(
            state.streams.copy(),  # as numbers are drawn from it
            state.made_cycle,
            state.chance,
            rules.measured_from,
            rules.measured_until,
        )
        return int(unsent + state.counts[packet_kernel.MEASURED_IN])

    def _figures(self, generated: int) -> LoadPoint:
        """The figures of the load.

        Args:
            generated: how many packets were made in the measured cycles, of `_generated`.
        """
        counts, settings, network = self.state.counts, self.settings, self.network
        measured_cycles = settings.last - settings.warmup
        # The packets that hosts would make in the measured cycles at a load of 1.
        packets_at_full_load = measured_cycles * self.traffic.volume.sum() / settings.packet
        link_arcs = np.flatnonzero(network.far_arc >= 0)
        link_use = self.state.carried_flits[link_arcs] / measured_cycles
        hottest_arc = int(link_arcs[link_use.argmax()])
        # Each port with a cable, to a switch or to a host, has buffers for packets that come in.
        input_ports = len(link_arcs) + np.count_nonzero(network.endpoints) * network.hosts_a_switch
        buffer_flits = measured_cycles * input_ports * settings.buffer
        all_arrived = counts[packet_kernel.MEASURED_OUT] >= generated
        accepted = float(counts[packet_kernel.ACCEPTED])
        keeps_up = accepted >= SUSTAINED_FRACTION * generated
        return LoadPoint(
            offered=self.load,
            generated=float(generated / packets_at_full_load),
            accepted=float(accepted / packets_at_full_load),
            sustained=bool(generated and all_arrived and self._is_steady() and keeps_up),
            packets=int(self.state.hops.sum()),
            **self._latencies(),
            link_use=float(link_use.mean()),
            hottest_use=float(link_use.max()),
            hottest=(
                hottest_arc // network.ports,
                int(network.far_arc[hottest_arc]) // network.ports,
            ),
            buffer_use=float(counts[packet_kernel.HELD] / buffer_flits),
            lost=self.lost,
            cycles=self.next_cycle,
            deadlock=() if all_arrived else self.deadlock(),
            settled=first_steady_cycle(
                [
                    (cycle, packets)
                    for cycle, packets in self.packets_in_network
                    if cycle <= settings.last
                ]
            ),
        )

    def _is_steady(self) -> bool:
        """Whether the mean latency did not change much in the last period."""
        if len(self.mean_latencies) < 2:
            return True
        before, last = self.mean_latencies[-2:]
        return abs(last - before) <= STEADY * last

    def _latencies(self) -> dict[str, Any]:
        """The fields of `LoadPoint` about latencies and hops."""
        packets_by_latency, packets_by_hops = self.state.latency, self.state.hops
        total = int(packets_by_latency.sum())
        if not total:
            names = ("mean_latency", "median_latency", "p99_latency", "worst_latency", "mean_hops")
            return dict.fromkeys(names)
        rank = np.cumsum(packets_by_latency)  # how many packets had at most each latency
        return {
            "mean_latency": self.mean_latency,
            "median_latency": int(np.searchsorted(rank, 0.5 * total)),
            "p99_latency": int(np.searchsorted(rank, 0.99 * total)),
            "worst_latency": int(self.state.counts[packet_kernel.WORST]),
            "mean_hops": float(packets_by_hops @ np.arange(len(packets_by_hops)) / total),
        }

    def deadlock(self) -> tuple[int, ...]:
        """The switches along a cycle of full buffers that wait for each other; () for none."""
        buffers_of_switch = self.network.ports * self.rules.virtual_channels
        buffers = self.network.switches * buffers_of_switch
        waits = np.zeros(buffers, np.bool_)
        next_buffers = np.full((buffers, self.rules.virtual_channels), -1, np.int32)
        compiled(self._kernel.blocked)(self.network, self.rules, self.state, waits, next_buffers)
        cycle = waiting_cycle(waits, next_buffers)
        return tuple(buffer // buffers_of_switch for buffer in cycle)


def first_steady_cycle(samples: Sequence[tuple[int, int]]) -> int:
    """The cycle from which a series is steady, by MSER (White, 1997); 0: it is so from the start.

    The series is cut in its first half, where the variance of the samples after the cut, divided by
    their number, is least.

    Args:
        samples: cycles, and what was counted in each.
    """
    cycles, counted = np.array(samples, np.float64).T
    tails = (counted[cut:] for cut in range(len(counted) // 2 + 1))
    best_cut = int(np.argmin([tail.var() / len(tail) for tail in tails]))
    return int(cycles[best_cut - 1]) if best_cut else 0


def waiting_cycle(waits: Numbers, next_buffers: Numbers) -> list[int]:
    """A cycle of buffers that wait for each other, the first one again at the end; [] for none.

    A buffer can move if a buffer that its first packet may take has room, or can move itself. All
    others are stuck: they wait for stuck buffers only, so there is a cycle among them.

    Args:
        waits: bool[n], whether all buffers that the first packet may take are full.
        next_buffers: int[n, V], these buffers; -1: none.

    >>> waiting_cycle(np.array([True, True, False]), np.array([[1], [0], [0]]))
    [0, 1, 0]
    """
    can_move = np.append(~waits, False)  # the last entry is for the buffer -1, which is none
    while True:
        freed = waits & ~can_move[:-1] & can_move[next_buffers].any(axis=1)
        if not freed.any():
            break
        can_move[:-1] |= freed
    stuck = np.flatnonzero(~can_move[:-1])
    if not len(stuck):
        return []
    # From a stuck buffer on, follow any of those that it waits for until one comes again.
    trail = [int(stuck[0])]
    while (after := int(next_buffers[trail[-1]].max())) not in trail:
        trail.append(after)
    return [*trail[trail.index(after) :], after]
