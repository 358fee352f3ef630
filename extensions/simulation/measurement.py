"""Run a simulation at one load: warm-up, measured periods, draining, and the figures of the point.

A `Measurement` owns the state of `packet_kernel` or `flit_kernel`, lets cycles pass in chunks, cuts
links that fail, and turns counts into a `LoadPoint`. Both kernels count the same things at the same
places of `counts`, whose names are in `packet_kernel`. If packets do not arrive, the measurement
looks for a cycle of full buffers (`waiting_cycle`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from compilers.forwarding.machine_code import compiled, compiled_for
from extensions.simulation import flit_kernel, packet_kernel
from extensions.simulation.host_messages import NOT_DUE
from extensions.simulation.load_point import LoadPoint, SimulationSettings
from extensions.simulation.simulated_network import HostTraffic, SimulatedNetwork

Numbers = NDArray[Any]
CHUNK = 125
"""The most cycles between two looks at what has arrived."""
SILENCE = 2_000
"""Cycles without any move after which the simulation ends."""
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
    now: int = 0
    """The next cycle."""
    mean_latencies: tuple[float, ...] = ()
    """The mean latency after each period."""
    in_network: list[tuple[int, int]] = field(default_factory=list)
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
        setup = network, traffic, rules, load, settings.seed
        flits = settings.level == "flit"
        state = flit_kernel.FlitState.of(*setup) if flits else packet_kernel.PacketState.of(*setup)
        return cls(network, traffic, settings, load, rules, state)

    @property
    def _loops(self) -> Any:
        """The kernel of the level: the module with `advance` and `blocked`."""
        flits = isinstance(self.state, flit_kernel.FlitState)
        return flit_kernel if flits else packet_kernel

    def compile(self) -> None:
        """Compile the loops, or find them where an earlier process has left them."""
        self._run(1)  # one cycle calls the loop that lets cycles pass
        self._generated()

    def point(self) -> LoadPoint:
        """Simulate the load, and measure it."""
        settings = self.settings
        periods = {
            settings.warmup + settings.period * period for period in range(settings.periods + 1)
        }
        cuts = {failure.cycle for failure in settings.failures if failure.cycle < settings.last}
        for stop in sorted(periods | cuts):
            self._run(stop)
            for failure in settings.failures:
                if failure.cycle == stop:
                    self._fail(failure.links)
            if stop in periods:
                self.mean_latencies += (self.mean_latency,)
        generated = self._generated()
        while self.state.counts[packet_kernel.MEASURED_OUT] < generated and self._worth_waiting():
            self._run(self.now + CHUNK)
        return self._figures(generated)

    def until_delivered(self, packets: int) -> int | None:
        """Simulate until so many packets have arrived.

        Returns:
            The cycle in which the last flit came; None if nothing moves any more before that.
        """
        counts = self.state.counts
        failures = sorted(self.settings.failures, key=lambda failure: failure.cycle)

        def run(stop: int) -> None:
            """Let cycles pass up to `stop`, or up to the next failure."""
            while failures and failures[0].cycle <= self.now:
                self._fail(failures.pop(0).links)
            self._run(min([stop, *(failure.cycle for failure in failures[:1])]))

        while counts[packet_kernel.DELIVERED] < packets:
            if self.now - counts[packet_kernel.LAST] > SILENCE and not self._more_to_come():
                return None
            run(self.now + CHUNK)
        # Of messages the kernel counts the last arrival as the worst latency.
        return int(counts[packet_kernel.WORST])

    @property
    def mean_latency(self) -> float:
        """The mean latency of the measured packets that have arrived."""
        arrived = self.state.hops.sum()  # `hops` counts each measured packet once
        return float(self.state.counts[packet_kernel.LATENCY] / max(1, arrived))

    @property
    def lost(self) -> int:
        """Packets that were dropped."""
        return int(self.state.counts[packet_kernel.LOST])

    def _run(self, stop: int) -> None:
        """Let cycles pass up to `stop`."""
        while self.now < stop:
            end = min(stop, self.now + CHUNK)
            arguments = self.network, self.traffic, self.rules, self.state
            if self.advance is None:
                self.advance = compiled_for(self._loops.advance, *arguments, self.now, end)
            self.advance(*arguments, self.now, end)
            self.now = end
            counts = self.state.counts
            gone = counts[packet_kernel.DELIVERED] + counts[packet_kernel.LOST]
            self.in_network.append((end, int(counts[packet_kernel.INJECTED] - gone)))

    def _more_to_come(self) -> bool:
        """Whether a host sends in cycle `now` or later without waiting for a message."""
        due = cast("packet_kernel.PacketState", self.state).due
        return bool(((due >= self.now) & (due < NOT_DUE)).any())

    def _worth_waiting(self) -> bool:
        """Whether packets still move, and the time to wait for them is not over."""
        quiet = self.now - self.state.counts[packet_kernel.LAST] > SILENCE
        return not quiet and self.now < self.settings.last + self.settings.drain

    def _fail(self, links: Iterable[tuple[int, int]]) -> None:
        """Take links down, in both directions; a link is a pair of switches."""
        ports, end = self.network.ports, self.network.end
        state = cast("packet_kernel.PacketState", self.state)  # flits have no failures
        cable = self.network.program.cable
        for u, v in links:
            arcs = np.arange(u * ports, u * ports + self.network.links)
            cut = arcs[end[arcs] // ports == v]
            dead = np.append(state.dead, cable[u, cut - u * ports].astype(np.int64))
            self.state = state = state._replace(dead=dead)
            for arc in cut:
                for direction in (int(arc), int(end[arc])):
                    compiled(packet_kernel.take_arc_down)(
                        self.network, self.rules, state, direction, self.now
                    )

    def _generated(self) -> int:
        """How many packets were made in the measured cycles, with those that wait in their
        hosts.
        """
        state, rules = self.state, self.rules
        hosts = state.streams.copy(), state.made, state.chance  # `unsent_packets` draws numbers
        unsent = compiled(packet_kernel.unsent_packets)(*hosts, rules.begin, rules.end)
        return int(unsent + self.state.counts[packet_kernel.MEASURED_IN])

    def _figures(self, generated: int) -> LoadPoint:
        """The figures of the load.

        Args:
            generated: how many packets were made in the measured cycles, of `_generated`.
        """
        counts, settings, net = self.state.counts, self.settings, self.network
        measured_cycles = settings.last - settings.warmup
        # The packets that hosts would make in the measured cycles at a load of 1.
        packets_at_full_load = measured_cycles * self.traffic.volume.sum() / settings.packet
        link_arcs = np.flatnonzero(net.end >= 0)
        link_use = self.state.carried[link_arcs] / measured_cycles
        hottest_arc = int(link_arcs[link_use.argmax()])
        buffers = len(link_arcs) + np.count_nonzero(net.endpoints) * net.hosts
        buffer_use = counts[packet_kernel.HELD] / (measured_cycles * buffers * settings.buffer)
        arrived = counts[packet_kernel.MEASURED_OUT] >= generated
        last_means = self.mean_latencies[-2:]
        steady = (
            len(last_means) < 2 or abs(last_means[-1] - last_means[-2]) <= STEADY * last_means[-1]
        )
        accepted = float(counts[packet_kernel.ACCEPTED])
        is_accepted = accepted >= SUSTAINED_FRACTION * generated
        return LoadPoint(
            offered=self.load,
            generated=float(generated / packets_at_full_load),
            accepted=float(accepted / packets_at_full_load),
            sustained=bool(generated and arrived and steady and is_accepted),
            packets=int(self.state.hops.sum()),
            **self._latencies(),
            link_use=float(link_use.mean()),
            hottest_use=float(link_use.max()),
            hottest=(hottest_arc // net.ports, int(net.end[hottest_arc]) // net.ports),
            buffer_use=float(buffer_use),
            lost=self.lost,
            cycles=self.now,
            deadlock=() if arrived else self.deadlock(),
            settled=settled([sample for sample in self.in_network if sample[0] <= settings.last]),
        )

    def _latencies(self) -> dict[str, Any]:
        """The fields of `LoadPoint` about latencies and hops."""
        packets_by_latency, packets_by_hops = self.state.latency, self.state.hops
        total = int(packets_by_latency.sum())
        if not total:
            none = ("mean_latency", "median_latency", "p99_latency", "worst_latency", "mean_hops")
            return dict.fromkeys(none)
        rank = np.cumsum(packets_by_latency)  # how many packets had at most this latency
        return {
            "mean_latency": self.mean_latency,
            "median_latency": int(np.searchsorted(rank, 0.5 * total)),
            "p99_latency": int(np.searchsorted(rank, 0.99 * total)),
            "worst_latency": int(self.state.counts[packet_kernel.WORST]),
            "mean_hops": float(packets_by_hops @ np.arange(len(packets_by_hops)) / total),
        }

    def deadlock(self) -> tuple[int, ...]:
        """The switches along a cycle of full buffers that wait for each other; () if there is
        none.
        """
        per_switch = self.network.ports * self.rules.vcs
        buffers = self.network.switches * per_switch
        waits = np.zeros(buffers, np.bool_)
        next_buffers = np.full((buffers, self.rules.vcs), -1, np.int32)
        compiled(self._loops.blocked)(self.network, self.rules, self.state, waits, next_buffers)
        cycle = waiting_cycle(waits, next_buffers)
        return tuple(buffer // per_switch for buffer in cycle)


def settled(samples: Sequence[tuple[int, int]]) -> int:
    """The cycle from which a series is steady, by MSER (White, 1997).

    The series is cut in its first half, where the variance of the samples after the cut, divided by
    their number, is least.

    Args:
        samples: cycles, and what was counted in each.
    """
    cycles, counted = np.array(samples, np.float64).T
    tails = (counted[cut:] for cut in range(len(counted) // 2 + 1))
    best = int(np.argmin([tail.var() / len(tail) for tail in tails]))
    return int(cycles[best - 1]) if best else 0


def waiting_cycle(waits: Numbers, choices: Numbers) -> list[int]:
    """A cycle of buffers that wait for each other, the first one again at the end; [] for none.

    A buffer moves if a buffer that its first packet may take has room, or will move. All others
    wait for buffers that wait, so there is a cycle among them.

    Args:
        waits: bool[n], whether all buffers that the first packet may take are full.
        choices: int[n, V], these buffers; -1: none.

    >>> waiting_cycle(np.array([True, True, False]), np.array([[1], [0], [0]]))
    [0, 1, 0]
    """
    moves = np.append(~waits, False)  # the last entry is for the buffer -1, which is none
    while True:
        freed = waits & ~moves[:-1] & moves[choices].any(axis=1)
        if not freed.any():
            break
        moves[:-1] |= freed
    stuck = np.flatnonzero(~moves[:-1])
    if not len(stuck):
        return []
    trail = [int(stuck[0])]
    while (after := int(choices[trail[-1]].max())) not in trail:
        trail.append(after)
    return [*trail[trail.index(after) :], after]
