"""What is asked of a simulation, and what it says of one load."""

from __future__ import annotations

from dataclasses import dataclass

from extensions.simulation.packet_kernel import SwitchRules

USUAL_LOADS = tuple(round(0.1 * step, 1) for step in range(1, 11))
POLICIES = ("minimal", "emitted", "adaptive", "shortest", "ugal")
BESIDE_TABLES = POLICIES[3:]
"""Ways that need no tables: any shortest path, and UGAL over these."""
SCHEMES = ("single", "hop", "valley")
LEVELS = ("packet", "flit")


@dataclass(frozen=True, slots=True)
class TimedFailure:
    """Links that go down at a cycle, each by its two switches."""

    links: tuple[tuple[int, int], ...]
    cycle: int


@dataclass(frozen=True, slots=True)
class SimulationSettings:
    """How switches are built, and what is measured; as in the papers (PolarFly §VIII-A).

    packet: flits. buffer: flits of each port, shared out among its virtual channels. ways: of
    packets from hosts, one of `POLICIES`. scheme: of channels, one of `SCHEMES`; channels: how many
    there are, the virtual ones shared out among them. threshold: packets that wait for its minimal
    way when an adaptive packet looks for another one, as a part of a virtual channel's buffer: so
    the authors' BookSim has it. samples: switches drawn where `ways` are `ugal`, by one of which a
    packet may go. level: of `LEVELS`, what moves as one. flows: of a host to another, 0 for each
    packet by itself. warmup, period: cycles; periods: measured. drain: most cycles to
    wait for what was measured.
    """

    loads: tuple[float, ...] = USUAL_LOADS
    packet: int = 4
    buffer: int = 128
    vcs: int = 4
    ways: str = "emitted"
    scheme: str = "valley"
    channels: int = 2
    threshold: float = 2 / 3
    level: str = "packet"
    flows: int = 0
    samples: int = 4
    warmup: int = 1_500
    period: int = 500
    periods: int = 4
    drain: int = 10_000
    seed: int = 0
    failures: tuple[TimedFailure, ...] = ()

    @property
    def last(self) -> int:
        """The cycle at which the measurement ends."""
        return self.warmup + self.periods * self.period

    def rules(self) -> SwitchRules:
        """The settings as numbers; no more channels than virtual ones."""
        channels = 1 if self.scheme == "single" else min(self.channels, self.vcs)
        depth = max(1, self.buffer // (self.vcs * self.packet))
        return SwitchRules(
            length=self.packet,
            depth=depth,
            vcs=self.vcs,
            policy=POLICIES.index(self.ways),
            threshold=self.threshold * depth,
            scheme=SCHEMES.index(self.scheme),
            channels=channels,
            group=self.vcs // channels,
            begin=self.warmup,
            end=self.last,
            flows=self.flows,
            samples=self.samples,
        )


@dataclass(frozen=True, slots=True)
class LoadPoint:
    """One offered load; latencies in cycles, from when a packet is made until its last flit came.

    offered, generated, accepted: parts of what the links of the hosts that send can carry.
    sustained: packets were made, all arrived, and latency did not grow. packets: measured.
    link_use, hottest_use: the part of the time in which links, and the most used one, carried
    something; hottest: its two switches. buffer_use: the part of the buffers that was taken.
    lost: packets that were dropped. deadlock: the switches along a cycle of full buffers, first
    and last the same; empty if there is none.
    """

    offered: float
    generated: float
    accepted: float
    sustained: bool
    packets: int
    mean_latency: float | None
    median_latency: int | None
    p99_latency: int | None
    worst_latency: int | None
    mean_hops: float | None
    link_use: float
    hottest_use: float
    hottest: tuple[int, int]
    buffer_use: float
    lost: int
    cycles: int
    deadlock: tuple[int, ...] = ()
