"""What is asked of a simulation, and what it says of one load."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from math import sqrt
from statistics import stdev
from typing import Any

from extensions.simulation.flit_router import USUAL_ROUTER, FlitRouter
from extensions.simulation.packet_kernel import SwitchRules

USUAL_LOADS = tuple(round(0.1 * step, 1) for step in range(1, 11))
POLICIES = ("minimal", "emitted", "adaptive", "shortest", "ugal", "valiant", "ugal-pf")
BESIDE_TABLES = POLICIES[3:]
"""Policies that need no alternates in tables: shortest paths, then those over two of these."""
PATHS = ("shortest", "table")
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

    packet: flits. buffer: flits of each port, shared out among its virtual channels. routing: of
    packets from hosts, one of `POLICIES`. paths: of `PATHS`, what `BESIDE_TABLES` take. scheme: of
    channels, one of `SCHEMES`: by `single` a packet takes any free virtual channel, as in the
    papers' BookSim (`anynet`); channels: how many there are, the virtual ones shared out among
    them. threshold: flits that wait for its minimal path when an adaptive packet looks for another
    one, as a part of a virtual channel's buffer: so the authors' BookSim has it. samples: switches
    drawn where `routing` is `ugal`, by one of which a packet may go. level: of `LEVELS`, what moves
    as one. router: that flits go through. link: cycles of a link between switches; metres: of cable
    a cycle, in the place of `link`, with the lengths of the cable plan; 0 for none. flows: of a
    host to another, 0 for each packet by itself. warmup, period: cycles; periods: measured. drain:
    most cycles to wait for what was measured. runs: replications, with seeds from `seed` on.
    """

    loads: tuple[float, ...] = USUAL_LOADS
    packet: int = 4
    buffer: int = 128
    vcs: int = 4
    routing: str = "emitted"
    scheme: str = "single"
    channels: int = 2
    paths: str = "shortest"
    threshold: float = 2 / 3
    level: str = "packet"
    router: FlitRouter = USUAL_ROUTER
    link: int = 1
    metres: float = 0.0
    flows: int = 0
    samples: int = 4
    warmup: int = 1_500
    period: int = 500
    periods: int = 4
    drain: int = 10_000
    seed: int = 0
    runs: int = 1
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
            policy=POLICIES.index(self.routing),
            threshold=self.threshold * depth * self.packet,
            scheme=SCHEMES.index(self.scheme),
            channels=channels,
            group=self.vcs // channels,
            begin=self.warmup,
            end=self.last,
            flows=self.flows,
            samples=self.samples,
            router=self.router,
        )


@dataclass(frozen=True, slots=True)
class LoadPoint:
    """One offered load; latencies in cycles, from when a packet is made until its last flit came.

    Of several runs: means of them, `sustained` if all are, the worst `worst_latency`, `hottest_use`
    with its link, the median `settled` (one run in eighty has a late one by chance), all packets.
    `accepted_error`, `latency_error`: half of the 95 % confidence
    interval of the mean of the runs (Student's t); None for one run.
    offered, generated, accepted: parts of what the links of the hosts that send can carry.
    sustained: packets were made, all arrived, and latency did not grow. packets: measured.
    link_use, hottest_use: the part of the time in which links, and the most used one, carried
    something; hottest: its two switches. buffer_use: the part of the buffers that was taken.
    lost: packets that were dropped. deadlock: the switches along a cycle of full buffers, first
    and last the same; empty if there is none. settled: the cycle from which the number of packets
    in the network was steady, by MSER (White, 1997); the warm-up is too short if it is before that.
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
    settled: int = 0
    runs: int = 1
    accepted_error: float | None = None
    latency_error: float | None = None

    @classmethod
    def of_runs(cls, runs: Sequence[LoadPoint]) -> LoadPoint:
        """Replications of one load as one point."""
        first = runs[0]
        if len(runs) == 1:
            return first
        rows = [asdict(run) for run in runs]
        means: dict[str, Any] = {name: _mean([row[name] for row in rows]) for name in AVERAGED}
        ranks: dict[str, Any] = {
            name: value and round(value) for name, value in means.items() if name in RANKS
        }
        most: dict[str, Any] = {
            name: max((row[name] for row in rows if row[name] is not None), default=None)
            for name in ("worst_latency", "hottest_use", "cycles")
        }
        return replace(
            first,
            **{**means, **ranks, **most},
            sustained=all(run.sustained for run in runs),
            hottest=max(runs, key=lambda run: run.hottest_use).hottest,
            settled=sorted(run.settled for run in runs)[len(runs) // 2],
            packets=sum(run.packets for run in runs),
            lost=sum(run.lost for run in runs),
            deadlock=next((run.deadlock for run in runs if run.deadlock), ()),
            runs=len(runs),
            accepted_error=_half_interval([run.accepted for run in runs]),
            latency_error=_half_interval([run.mean_latency for run in runs]),
        )


RANKS = ("median_latency", "p99_latency")
AVERAGED = (*RANKS, "mean_latency", "mean_hops", "generated", "accepted", "link_use", "buffer_use")
STUDENT = (12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228)
"""Quantiles of .975 of Student's t, by degrees of freedom from 1; the last one is safe beyond."""


def _mean(values: Sequence[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return sum(known) / len(known) if known else None


def _half_interval(values: Sequence[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    if len(known) < 2:
        return None
    return student(len(known)) * stdev(known) / sqrt(len(known))


def student(runs: int) -> float:
    """The quantile of .975 of Student's t for the mean of several runs."""
    return STUDENT[min(runs - 2, len(STUDENT) - 1)]
