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
    """Links that go down at a cycle."""

    links: tuple[tuple[int, int], ...]
    """The two switches of each link."""
    cycle: int
    """The cycle."""


@dataclass(frozen=True, slots=True)
class SimulationSettings:
    """How switches are built, and what is measured; as in the papers (PolarFly §VIII-A)."""

    loads: tuple[float, ...] = USUAL_LOADS
    """The offered loads, as parts of what the links of hosts can carry."""
    packet: int = 4
    """Flits of a packet."""
    buffer: int = 128
    """Flits of each port, shared out among its virtual channels."""
    vcs: int = 4
    """Virtual channels of a port."""
    routing: str = "emitted"
    """How packets from hosts are routed, one of `POLICIES`."""
    scheme: str = "single"
    """How packets change channels, one of `SCHEMES`. By `single` a packet takes any free virtual
    channel, as in the papers' BookSim (`anynet`)."""
    channels: int = 2
    """How many channels the scheme has; the virtual channels are shared out among them."""
    paths: str = "shortest"
    """The paths that `BESIDE_TABLES` take, one of `PATHS`."""
    threshold: float = 2 / 3
    """When an adaptive packet looks for another path: the flits that wait for its minimal path, as
    a part of a virtual channel's buffer, as in the authors' BookSim."""
    level: str = "packet"
    """What moves as one, one of `LEVELS`."""
    router: FlitRouter = USUAL_ROUTER
    """The router, where flits move."""
    link: int = 1
    """Cycles of a link between switches."""
    metres: float = 0.0
    """Metres of cable that a flit passes in a cycle, by the lengths of the cable plan; 0: every
    link takes `link` cycles."""
    flows: int = 0
    """Flows from a host to another one; 0: each packet chooses its path by itself."""
    samples: int = 4
    """How many switches are drawn where `routing` is `ugal`; a packet may go by one of them."""
    warmup: int = 1_500
    """Cycles before anything is measured."""
    period: int = 500
    """Cycles of a measured period."""
    periods: int = 4
    """How many periods are measured."""
    drain: int = 10_000
    """The most cycles to wait for packets that were measured."""
    seed: int = 0
    """The seed of the first run."""
    runs: int = 1
    """How many runs there are, with seeds from `seed` on."""
    failures: tuple[TimedFailure, ...] = ()
    """The links that go down during a run."""

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
    `accepted_error`, `latency_error`: half of the 95 % confidence interval of the mean of the runs
    (Student's t); None for one run.
    """

    offered: float
    """The load that hosts are to send. Loads are parts of what the links of the sending hosts can
    carry."""
    generated: float
    """The load that hosts made."""
    accepted: float
    """The load that arrived."""
    sustained: bool
    """Whether packets were made, all arrived, and latency did not grow."""
    packets: int
    """How many packets were measured."""
    mean_latency: float | None
    """The mean latency; None where no packet arrived."""
    median_latency: int | None
    """The median latency."""
    p99_latency: int | None
    """The latency that 99 % of the packets do not exceed."""
    worst_latency: int | None
    """The largest latency."""
    mean_hops: float | None
    """The mean number of links of a packet."""
    link_use: float
    """The part of the time in which links carried something, over all links."""
    hottest_use: float
    """The part of the time in which the most used link carried something."""
    hottest: tuple[int, int]
    """The two switches of the most used link."""
    buffer_use: float
    """The part of the buffers that was taken."""
    lost: int
    """Packets that were dropped."""
    cycles: int
    """How many cycles were simulated."""
    deadlock: tuple[int, ...] = ()
    """The switches along a cycle of full buffers, first and last the same; empty if there is none.
    """
    settled: int = 0
    """The cycle from which the number of packets in the network was steady, by MSER (White, 1997);
    the warm-up is too short if it is before that."""
    runs: int = 1
    """How many runs there were."""
    accepted_error: float | None = None
    """Half of the 95 % confidence interval of the mean over the runs (Student's t); None for one
    run."""
    latency_error: float | None = None
    """Half of that interval of the mean latency; None for one run."""

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
    measured = [value for value in values if value is not None]
    return sum(measured) / len(measured) if measured else None


def _half_interval(values: Sequence[float | None]) -> float | None:
    measured = [value for value in values if value is not None]
    if len(measured) < 2:
        return None
    return student(len(measured)) * stdev(measured) / sqrt(len(measured))


def student(runs: int) -> float:
    """The quantile of .975 of Student's t for the mean of several runs."""
    return STUDENT[min(runs - 2, len(STUDENT) - 1)]
