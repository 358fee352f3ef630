"""Walk the minimal paths of a build: which pairs are delivered, and over how many links.

Every switch forwards by the minimal port of its row alone. The length of each path is compared
with the distance in the graph. `compilers.proof.walks.delivery` walks the destinations to which
delivery is not proved in another way.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import reduce

import numpy as np
from numpy.typing import NDArray

from compilers.forwarding.walks import LEAST_BLOCKS, Progress, minimal_hops
from compilers.proof.walks.delivery_report import NO_PAIRS, PAIR_EXAMPLES, PairFault, Report
from compilers.tables.build import Build
from compilers.tables.fib import FAULTS, LOOPED, Fib
from compilers.topology.distance import distances, neighbour_table
from compilers.workers.shards import THIS_PROCESS, Workers, in_blocks, reported

PAIRS_AT_ONCE = 1 << 18
"""The most pairs of a switch and a destination that are walked at once."""
ITSELF = -128
"""In place of the links from a switch to itself, which is no pair. No fault has this number."""


def walk_minimal(
    build: Build,
    progress: Progress | None,
    destinations: NDArray[np.int64] | None = None,
    workers: Workers = THIS_PROCESS,
) -> Report:
    """Walk the minimal paths from all switches with hosts.

    Args:
        build: its tables and wiring are walked.
        progress: called with destinations done and all.
        destinations: int64[D], ascending; None: all switches with hosts.
        workers: that share the destinations.
    """
    if destinations is None:
        destinations = np.flatnonzero(build.topology.endpoints)
    blocks = in_blocks(destinations, max(1, PAIRS_AT_ONCE // build.tables.switches))
    parts = workers.over(_MinimalPaths.of, build, blocks, least=LEAST_BLOCKS)
    return reduce(Report.with_pairs_of, reported(parts, blocks, progress), NO_PAIRS)


@dataclass(frozen=True, slots=True, eq=False)
class _MinimalPaths:
    """The walk over minimal ports of a build, and what its paths are compared with."""

    fib: Fib
    """The routes of the build."""
    neighbours: NDArray[np.int64]
    """int64[S, degree], the neighbours of each switch in the graph."""
    sources: NDArray[np.int64]
    """int64[n], the switches with hosts."""

    @classmethod
    def of(cls, build: Build) -> _MinimalPaths:
        """Prepare the walk of a build."""
        sources = np.flatnonzero(build.topology.endpoints)
        fib = Fib.of(build.tables, build.wiring.far_by_port())
        return cls(fib, neighbour_table(build.topology.graph), sources)

    def __call__(self, destinations: NDArray[np.int64]) -> Report:
        """The report on the pairs towards some destinations, int64[D], ascending."""
        sources = self.sources
        # int8[n, D], the links of each minimal path, or a negative number for its fault.
        hops = minimal_hops(self.fib, destinations)[sources]
        hops[np.searchsorted(sources, destinations), np.arange(len(destinations))] = ITSELF
        longest = int(hops.max(initial=0))
        # The search for distances stops one link before `longest`: all pairs that are farther apart
        # get a greater number (BEYOND), and no path between them can be too long.
        shortest = distances(self.neighbours, destinations, depth=longest - 1).T[sources]
        is_minimal = (hops >= 0) & (hops <= shortest)
        counts = [int(np.count_nonzero(hops == h)) for h in range(longest + 1)]
        wrong = np.argwhere(~is_minimal & (hops != ITSELF))[:PAIR_EXAMPLES]
        return Report(
            pairs=len(destinations) * (len(sources) - 1),
            delivered=sum(counts),
            minimal=int(np.count_nonzero(is_minimal)),
            loops=int(np.count_nonzero(hops == LOOPED)),
            hop_counts=tuple(counts) if any(counts) else (),
            faults=tuple(
                PairFault(int(sources[i]), int(destinations[j]), _fault(hops[i, j], shortest[i, j]))
                for i, j in wrong
            ),
        )


def _fault(hops: np.int8, shortest: np.uint8) -> str:
    """The fault of a pair in words: why its packets are lost, or that they take a detour."""
    return FAULTS.get(int(hops), f"{hops} hops, {shortest} are enough")
