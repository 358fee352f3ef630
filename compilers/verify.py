"""Verification: every ordered pair is walked through the tables that are emitted.

The walker never sees the graph; the graph only says how short a path could have been.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np

from compilers.build import Build
from compilers.topologies.distance import distances, neighbour_table
from compilers.walk import FAULTS, LOOPED, TTL, Walker

PAIRS_AT_ONCE = 1 << 20
EXAMPLES = 10
ITSELF = -128


@dataclass(frozen=True, slots=True)
class Fault:
    """A pair that does not do what it should, and what it does instead."""

    source: int
    destination: int
    what: str


@dataclass(frozen=True, slots=True)
class FailureCase:
    """What all single failures of a kind do to the pairs between the nodes that are left."""

    kind: str
    cases: int
    lost_pairs: int
    max_hops: int


@dataclass(frozen=True, slots=True)
class Report:
    """Counts over all ordered pairs of nodes with hosts; hops are links.

    hop_counts[h] pairs were delivered over h links. faults are the first few that went wrong.
    """

    pairs: int
    delivered: int
    minimal: int
    loops: int
    hop_counts: tuple[int, ...]
    faults: tuple[Fault, ...]
    failures: tuple[FailureCase, ...] = field(default=())

    @property
    def passed(self) -> bool:
        """Whether every pair is delivered over a minimal path."""
        return self.delivered == self.pairs == self.minimal and not self.loops

    @property
    def max_hops(self) -> int:
        """The longest delivered path."""
        return max((h for h, count in enumerate(self.hop_counts) if count), default=0)

    @property
    def mean_hops(self) -> float:
        """Mean over the delivered pairs."""
        total = sum(h * count for h, count in enumerate(self.hop_counts))
        return total / self.delivered if self.delivered else 0.0


def verify(build: Build, progress: Callable[[int, int], None] | None = None) -> Report:
    """Walk every ordered pair of endpoints; progress(done, all) counts destinations."""
    walker = Walker.of(build.tables, build.wiring.cables())
    table = neighbour_table(build.topology.graph)
    ends = np.flatnonzero(build.topology.endpoints)
    hop_counts = np.zeros(TTL + 1, np.int64)
    minimal = loops = 0
    faults: list[Fault] = []
    step = max(1, PAIRS_AT_ONCE // build.tables.switches)
    for first in range(0, len(ends), step):
        destinations = ends[first : first + step]
        hops = walker.hops(destinations)[ends]
        hops[np.arange(first, first + len(destinations)), np.arange(len(destinations))] = ITSELF
        longest = int(hops.max(initial=0))
        shortest = distances(table, destinations, depth=longest - 1).T[ends]
        best = (hops >= 0) & (hops <= shortest)

        hop_counts[: longest + 1] += [np.count_nonzero(hops == h) for h in range(longest + 1)]
        minimal += int(np.count_nonzero(best))
        loops += int(np.count_nonzero(hops == LOOPED))
        if len(faults) < EXAMPLES and not best.all():
            wrong = np.argwhere(~best & (hops != ITSELF))[: EXAMPLES - len(faults)]
            faults += [
                Fault(int(ends[i]), int(destinations[j]), _what(hops[i, j], shortest[i, j]))
                for i, j in wrong
            ]
        if progress:
            progress(first + len(destinations), len(ends))
    return Report(
        pairs=len(ends) * (len(ends) - 1),
        delivered=int(hop_counts.sum()),
        minimal=minimal,
        loops=loops,
        hop_counts=tuple(np.trim_zeros(hop_counts, "b").tolist()),
        faults=tuple(faults),
    )


def _what(hops: np.int8, shortest: np.uint8) -> str:
    return FAULTS.get(int(hops), f"{hops} hops, {shortest} are enough")
