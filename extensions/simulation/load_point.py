"""The settings of a simulation, and its result at one load.

`SimulationSettings` has what users choose; `rules` turns it into numbers for the loops. A
`LoadPoint` is what one offered load gave, or the mean over several runs (`LoadPoint.of_runs`).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from math import sqrt
from statistics import stdev
from typing import Any

from extensions.simulation.flit_router import USUAL_ROUTER, FlitRouter
from extensions.simulation.packet_kernel import SwitchRules

USUAL_LOADS = tuple(round(0.1 * step, 1) for step in range(1, 11))
"""The offered loads by default: a tenth, two tenths … all of what the hosts' links carry."""
POLICIES = ("minimal", "emitted", "adaptive", "shortest", "ugal", "valiant", "ugal-pf")
"""How packets choose their paths, in the order of the numbers of `hop_choice` and `path_choice`."""
INTERMEDIATE_POLICIES = ("ugal", "valiant", "ugal-pf")
"""Policies of `path_choice` that may send packets over an intermediate."""
OWN_PATH_POLICIES = ("shortest", *INTERMEDIATE_POLICIES)
"""The policies of `path_choice`, which do without the tables of a balance. Which paths they take is
a setting (`PATHS`)."""
PATHS = ("shortest", "table")
"""The paths of `OWN_PATH_POLICIES`: any shortest path, or the one of the minimal table."""
SCHEMES = ("single", "hop", "valley")
"""How packets change channels (`compilers.proof.lossless.channels`)."""
LEVELS = ("packet", "flit")
"""What moves as one, and so which kernel simulates it: `packet_kernel` or `flit_kernel`."""
IN_CYCLES = ("median_latency", "p99_latency")
"""Fields of `LoadPoint` that are whole numbers of cycles; their means are rounded."""
AVERAGED = (
    *IN_CYCLES,
    "mean_latency",
    "mean_hops",
    "generated",
    "accepted",
    "link_use",
    "buffer_use",
)
"""Fields of `LoadPoint` that are the mean of several runs."""
MAXIMA = ("worst_latency", "hottest_use", "cycles")
"""Fields of `LoadPoint` that are the largest value of several runs."""
STUDENT = (12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228)
"""Quantiles of .975 of Student's t, by degrees of freedom from 1 to 10. With more of them the
quantile is smaller, so the last one is safe."""


@dataclass(frozen=True, slots=True)
class TimedFailure:
    """Links that go down during a run."""

    links: tuple[tuple[int, int], ...]
    """The two switches of each link."""
    cycle: int
    """The cycle before which they go down."""


@dataclass(frozen=True, slots=True)
class SimulationSettings:
    """How switches work, and what is measured. The defaults are the papers' (PolarFly §VIII-A)."""

    loads: tuple[float, ...] = USUAL_LOADS
    """The offered loads, as parts of what the links of hosts can carry."""
    packet: int = 4
    """The flits of a packet."""
    buffer: int = 128
    """The flits that the buffers of a port hold; its virtual channels share them."""
    vcs: int = 4
    """Virtual channels of a port."""
    routing: str = "emitted"
    """How packets from hosts are routed, one of `POLICIES`."""
    scheme: str = "single"
    """How packets change channels, one of `SCHEMES`. By `single` a packet takes any free virtual
    channel, as in the papers' BookSim (`anynet`)."""
    channels: int = 2
    """How many channels the scheme has. Each is a group of the virtual channels."""
    paths: str = "shortest"
    """The paths that `OWN_PATH_POLICIES` take, one of `PATHS`."""
    threshold: float = 2 / 3
    """An adaptive packet looks for another path if so many flits wait for its minimal path, as a
    fraction of a virtual channel's buffer; as in the authors' BookSim."""
    level: str = "packet"
    """What moves as one, one of `LEVELS`."""
    router: FlitRouter = USUAL_ROUTER
    """The router of level `flit`."""
    link: int = 1
    """The cycles that a link between switches takes."""
    metres: float = 0.0
    """Metres of cable that a flit passes in a cycle, by the lengths of the cable plan; 0: every
    link takes `link` cycles."""
    flows: int = 0
    """Flows from a host to another one; 0: each packet chooses its path by itself."""
    samples: int = 4
    """How many switches are drawn for each packet with routing `ugal`, which may go over one of
    these."""
    warmup: int = 1_500
    """Cycles before anything is measured."""
    period: int = 500
    """Cycles of a measured period."""
    periods: int = 4
    """How many periods are measured."""
    drain: int = 10_000
    """The most cycles to wait for measured packets after the last period."""
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
        """The settings as the loops take them.

        Buffers are counted in packets, thresholds in flits, policies and schemes by number. There
        are no more channels than virtual channels.
        """
        channels = 1 if self.scheme == "single" else min(self.channels, self.vcs)
        depth = max(1, self.buffer // (self.vcs * self.packet))
        return SwitchRules(
            packet_flits=self.packet,
            buffer_packets=depth,
            virtual_channels=self.vcs,
            policy=POLICIES.index(self.routing),
            threshold=self.threshold * depth * self.packet,
            scheme=SCHEMES.index(self.scheme),
            channels=channels,
            channel_size=self.vcs // channels,
            measured_from=self.warmup,
            measured_until=self.last,
            flows=self.flows,
            samples=self.samples,
            router=self.router,
        )


@dataclass(frozen=True, slots=True)
class LoadPoint:
    """The result at one offered load, of one run or of several.

    Loads are parts of what the links of the sending hosts can carry. Latencies are in cycles, from
    when a packet is made until its last flit has come. Of several runs the values are means, unless
    a field says otherwise.
    """

    offered: float
    """The load that hosts are to send."""
    generated: float
    """The load of the packets that hosts made."""
    accepted: float
    """The load of the packets that arrived."""
    sustained: bool
    """Whether packets were made, all arrived, and latency did not grow; in all runs."""
    packets: int
    """How many packets were measured in all runs."""
    mean_latency: float | None
    """The mean latency; None if no packet arrived."""
    median_latency: int | None
    """The median latency."""
    p99_latency: int | None
    """The latency that 99 % of the packets do not exceed."""
    worst_latency: int | None
    """The largest latency of any run."""
    mean_hops: float | None
    """The mean number of links of a packet."""
    link_use: float
    """The part of the time in which links carried something, over all links."""
    hottest_use: float
    """The part of the time in which the most used link of any run carried something."""
    hottest: tuple[int, int]
    """The two switches of the most used link."""
    buffer_use: float
    """The part of the buffers that was filled."""
    lost: int
    """How many packets were dropped in all runs."""
    cycles: int
    """How many cycles were simulated."""
    deadlock: tuple[int, ...] = ()
    """The switches along a cycle of full buffers, first and last the same; empty if there is none.
    """
    settled: int = 0
    """The cycle from which the number of packets in the network was steady, by MSER (White, 1997).

    If that is after the warm-up, the warm-up is too short. Of several runs it is the median, as in
    one run in eighty it is late by chance.
    """
    runs: int = 1
    """How many runs there were."""
    accepted_error: float | None = None
    """Half of the 95 % confidence interval of `accepted` (Student's t); None for one run."""
    latency_error: float | None = None
    """Half of the 95 % confidence interval of `mean_latency`; None for one run."""

    @classmethod
    def of_runs(cls, runs: Sequence[LoadPoint]) -> LoadPoint:
        """The result of several runs at one load, with different seeds.

        `AVERAGED` and `MAXIMA` name the fields that are means and maxima. How the others are made
        is written here. `offered` is the same in all runs.
        """
        first = runs[0]
        if len(runs) == 1:
            return first
        rows = [asdict(run) for run in runs]
        values: dict[str, Any] = {}
        for name in AVERAGED:
            mean = _mean([row[name] for row in rows])
            values[name] = round(mean) if mean is not None and name in IN_CYCLES else mean
        for name in MAXIMA:
            values[name] = max((row[name] for row in rows if row[name] is not None), default=None)
        return replace(
            first,
            **values,
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


def _mean(values: Sequence[float | None]) -> float | None:
    """The mean of the values that are not None; None if there are none."""
    measured = [value for value in values if value is not None]
    return sum(measured) / len(measured) if measured else None


def _half_interval(values: Sequence[float | None]) -> float | None:
    """Half of the 95 % confidence interval of the mean; None for fewer than two values."""
    measured = [value for value in values if value is not None]
    if len(measured) < 2:
        return None
    return student(len(measured)) * stdev(measured) / sqrt(len(measured))


def student(runs: int) -> float:
    """The quantile of .975 of Student's t for the mean of several runs, at least two."""
    degrees_of_freedom = runs - 1
    return STUDENT[min(degrees_of_freedom, len(STUDENT)) - 1]
