"""Verification: every ordered pair is walked through the tables that are emitted.

The walker never sees the graph; the graph only says how short a path could have been.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from compilers.build import Build
from compilers.topologies.distance import distances
from compilers.walk import FAULTS, LOOPED, Walker

PAIRS_AT_ONCE = 1 << 21
EXAMPLES = 10


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
    """Walk every ordered pair of endpoints; progress(done, all) counts sources."""
    walker = Walker.of(build.tables, build.wiring.cables())
    ends = np.flatnonzero(build.topology.endpoints)
    hop_counts = np.zeros(256, np.int64)
    pairs = minimal = loops = 0
    faults: list[Fault] = []
    for sources, hops, shortest in _blocks(build, walker, ends):
        pairs += hops.size - len(sources)
        arrived = (hops >= 0) & (sources[:, None] != ends)
        hop_counts += np.bincount(hops[arrived], minlength=256)
        at_best = hops == shortest
        minimal += int(np.count_nonzero(arrived & at_best))
        loops += int(np.count_nonzero(hops == LOOPED))
        if len(faults) < EXAMPLES and not at_best.all():
            faults += _examples(sources, ends, hops, shortest)[: EXAMPLES - len(faults)]
        if progress:
            progress(int(np.searchsorted(ends, sources[-1])) + 1, len(ends))
    return Report(
        pairs=pairs,
        delivered=int(hop_counts.sum()),
        minimal=minimal,
        loops=loops,
        hop_counts=tuple(np.trim_zeros(hop_counts, "b").tolist()),
        faults=tuple(faults),
    )


def _blocks(
    build: Build, walker: Walker, ends: NDArray[np.int64]
) -> Iterator[tuple[NDArray[np.int64], NDArray[np.int8], NDArray[np.uint8]]]:
    """Blocks of sources with their hops and the graph's distances to all endpoints."""
    graph = build.topology.graph
    padded = graph.padded()
    step = max(1, PAIRS_AT_ONCE // max(1, graph.order))
    for first in range(0, len(ends), step):
        sources = ends[first : first + step]
        shortest = distances(graph, padded, sources)[:, ends]
        yield sources, walker.hops(sources, ends), shortest


def _examples(
    sources: NDArray[np.int64],
    ends: NDArray[np.int64],
    hops: NDArray[np.int8],
    shortest: NDArray[np.uint8],
) -> list[Fault]:
    rows, columns = np.nonzero(hops != shortest)
    return [
        Fault(
            source=int(sources[i]),
            destination=int(ends[j]),
            what=FAULTS.get(int(hops[i, j]), f"{hops[i, j]} hops, {shortest[i, j]} are enough"),
        )
        for i, j in zip(rows[:EXAMPLES], columns[:EXAMPLES], strict=True)
    ]
