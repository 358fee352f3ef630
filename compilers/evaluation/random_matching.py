"""Random permutations of switches in which only some destinations are allowed for each source.

The allowed pairs are the edges of a bipartite graph of sources and destinations. A permutation with
as many pairs as possible is a maximum matching of it, which Kuhn's algorithm finds: sources get a
destination one by one, and each may push earlier sources to other destinations.

For example, source 1 may have destinations 7 and 8, and source 2 only 7. If source 1 came first and
took 7, the augmenting path of source 2 is 2 → 7 → 1 → 8: source 2 takes 7, and source 1 takes 8.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

import numpy as np
from numpy.typing import NDArray

from compilers.demand.traffic_matrix import Traffic

Allowed = Callable[[int], NDArray[np.int64]]
"""A function from a source to the destinations that it may have, int64[n]."""
NO_SWITCH = -1
"""In place of a source or a destination: there is none."""


def random_matching(
    sources: NDArray[np.int64], switches: int, allowed: Allowed, seed: int
) -> Traffic:
    """A random permutation with as many allowed pairs as possible, as traffic.

    The sources, in random order, get a destination each, along an augmenting path.

    Args:
        sources: the switches that send.
        switches: the number of switches.
        allowed: the destinations that a source may have.
        seed: of the random order of sources and of their destinations.
    """
    rng = np.random.default_rng(seed)
    source_of = np.full(switches, NO_SWITCH)
    for source in rng.permutation(sources).tolist():
        for new_source, destination in _augmenting_path(source, source_of, allowed, rng):
            source_of[destination] = new_source
    destinations = np.flatnonzero(source_of != NO_SWITCH)
    return Traffic.of(source_of[destinations], destinations)


def _augmenting_path(
    source: int, source_of: NDArray[np.int64], allowed: Allowed, rng: np.random.Generator
) -> list[tuple[int, int]]:
    """The new pairs of source and destination if a further source gets a destination.

    The path is searched breadth first. The pair with the destination that had no source comes
    first. Where the source can have no destination, there are no pairs.

    Args:
        source: a source without a destination.
        source_of: int64[S], the source of each destination, or NO_SWITCH.
        allowed: the destinations that a source may have.
        rng: the random order in which these are tried.
    """
    reached_from = np.full(len(source_of), NO_SWITCH)
    """int64[S], by destination: the source from which it was reached first, or NO_SWITCH."""
    present_destination = {source: NO_SWITCH}
    """The present destination of each source that was reached, or NO_SWITCH."""
    queue = [source]
    for from_source in queue:  # the queue grows while it is read
        destinations = rng.permutation(allowed(from_source))
        destinations = destinations[reached_from[destinations] == NO_SWITCH]
        reached_from[destinations] = from_source
        free = destinations[source_of[destinations] == NO_SWITCH]
        if len(free):
            return _pairs_back(int(free[0]), reached_from, present_destination)
        sources = source_of[destinations].tolist()
        present_destination |= dict(zip(sources, destinations.tolist(), strict=True))
        queue += sources
    return []


def _pairs_back(
    destination: int, reached_from: NDArray[np.int64], present_destination: Mapping[int, int]
) -> list[tuple[int, int]]:
    """Each new pair of source and destination on an augmenting path, from its end back.

    Args:
        destination: the destination at the end, which no source has.
        reached_from: int64[S], the source before each destination on the path.
        present_destination: the destination before each source on the path.
    """
    pairs = []
    while destination != NO_SWITCH:
        source = int(reached_from[destination])
        pairs.append((source, destination))
        destination = present_destination[source]
    return pairs
