"""How a curve of latency over load is simulated: at which loads, for how many cycles.

`WholeRuns` is for networks of the paper's size, and `QuickRuns` for small ones. The simulator moves
a packet as one (`BY_PACKETS`), or moves its flits one by one (`BY_FLITS`), which takes longer.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

from extensions.papers.paper_fabric import PaperFabric
from extensions.papers.result_cache import PointKey
from extensions.simulation.load_point import SimulationSettings

LEAST_BISECTIONS = 2
"""The least number of loads that are added to a refined curve. Each halves the interval between the
largest sustained load and the next one."""


@dataclass(frozen=True, slots=True)
class WholeRuns:
    """How a curve is simulated at the paper's size."""

    loads: tuple[float, ...]
    """The offered loads."""
    seeds: int
    """The number of runs of each load, with the seeds from 0. A load is sustained if it is
    sustained in each run."""
    settings: Mapping[str, Any]
    """Fields of `SimulationSettings`."""
    refines_loads: bool = False
    """Whether loads are left out far above saturation, and added near it."""
    may_lack_points: bool = False
    """Whether the cache may lack some points of this curve. The curve is then drawn without them.
    Otherwise a missing point is an error."""

    def point_key(self, fabric: PaperFabric, pattern: str, load: float, seed: int) -> PointKey:
        """The key under which the cache stores one simulated point."""
        return PointKey(fabric.text(), pattern, load, seed, json.dumps(self.settings))

    def sentences(self) -> tuple[str, str]:
        """A sentence on the switches, and one on the loads and cycles."""
        added_loads = (
            f", up to the second that is not sustained, and {LEAST_BISECTIONS} or more near"
            " saturation"
            if self.refines_loads
            else ""
        )
        seeds = f"each of the seeds 0 to {self.seeds - 1}" if self.seeds > 1 else "seed 0"
        return _sentences(SimulationSettings(**self.settings), self.loads, added_loads, seeds)


BY_PACKETS = WholeRuns(
    loads=(0.05, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 0.95),
    seeds=5,
    settings={"drain": 2_000},
    refines_loads=True,
)
"""Runs of packets that move as one. At sustained loads all measured packets arrive within 800
cycles, so 2,000 cycles of `drain` are enough to tell a load that is not sustained."""
BY_FLITS = WholeRuns(
    loads=(0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.85, 0.9, 0.95),
    seeds=1,
    settings={"level": "flit", "warmup": 600, "period": 200, "periods": 3, "drain": 600},
    may_lack_points=True,
)
"""Runs of flits, in a third of the cycles: flits take about three times as long to simulate."""
BY_FLITS_LONGER = replace(
    BY_FLITS,
    settings={"level": "flit", "warmup": 600, "period": 500, "periods": 3, "drain": 1_000},
)
"""Runs of flits on adaptive routes, unless traffic is uniform. On these routes the latencies of
packets differ much, and the 600 measured cycles of `BY_FLITS` are too few: the mean latency of the
packets that have arrived still grows then."""


def by_flits(pattern: str, routes: str) -> WholeRuns:
    """How a curve of flits is simulated.

    Args:
        pattern: the traffic pattern.
        routes: how packets are routed, one of `paper_fabric.ROUTES`.
    """
    # All `ROUTES` that do not begin with MIN are adaptive.
    adaptive = not routes.startswith("MIN")
    return BY_FLITS_LONGER if adaptive and pattern != "uniform" else BY_FLITS


class QuickRuns(NamedTuple):
    """How a curve of a small network is simulated in seconds: few loads, few measured cycles."""

    loads: tuple[float, ...] = (0.1, 0.4, 0.95)
    """The offered loads."""
    warmup: int = 200
    """Cycles before anything is measured."""
    period: int = 100
    """Cycles of a measured period."""
    periods: int = 2
    """How many periods are measured."""
    drain: int = 150
    """The most cycles to wait for packets that were measured."""

    def cycle_settings(self) -> dict[str, Any]:
        """All fields but the loads, as fields of `SimulationSettings`."""
        return {name: value for name, value in self._asdict().items() if name != "loads"}

    def sentences(self) -> tuple[str, str]:
        """A sentence on the switches, and one on the loads and cycles."""
        settings = SimulationSettings(**self.cycle_settings())
        return _sentences(settings, self.loads, added_loads="", seeds="seed 0")


QUICK_RUNS = QuickRuns()
"""The quick runs of all exhibits."""


def _sentences(
    settings: SimulationSettings, loads: Sequence[float], added_loads: str, seeds: str
) -> tuple[str, str]:
    """A sentence on the switches, and one on the loads and cycles.

    Args:
        settings: the settings of the runs.
        loads: the offered loads.
        added_loads: what follows the loads, for those that a refined curve has besides; or "".
        seeds: the seeds of the runs, in words.
    """
    cycles = settings.periods * settings.period
    return (
        f"Switches: {settings.vcs} virtual channels, any free one is taken; {settings.buffer} flits"
        f" a port; packets of {settings.packet} flits, made at random (Bernoulli)"
        + ("; flits move one by one." if settings.level == "flit" else "."),
        f"Loads {', '.join(f'{load:g}' for load in loads)}{added_loads}; {settings.warmup:,}"
        f" cycles of warm-up, {settings.periods} × {settings.period} measured; sustained means: for"
        f" these {cycles:,} cycles, with {seeds}.",
    )
