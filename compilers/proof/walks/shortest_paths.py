"""Shortest paths: whether the alternates of a class are all shortest paths, and nothing longer.

Distances are of the graph; the tables only say which destinations share a class.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from compilers.proof.soundness.policy_soundness import given_alternates, wrong_links
from compilers.proof.soundness.port_use import Bits, PortUse
from compilers.proof.soundness.unsound import Unsound, where
from compilers.tables.build import Build
from compilers.tables.fib import Fib
from compilers.topology.distance import distances, neighbour_table
from inventory.problems import Finding

SHORTEST_CELLS_AT_ONCE = 1 << 22


@dataclass(frozen=True, slots=True, eq=False)
class ShortestPaths:
    """The links that shortest paths of S switches with C classes take, of K links each.

    used: bool[S, C], classes by which some destination is reached. every, some: bool[S, C, K], the
    link is on a shortest path to every destination of the class, or to some.
    """

    used: Bits
    every: Bits
    some: Bits

    @classmethod
    def of(cls, build: Build) -> ShortestPaths:
        """Look from every neighbour of every switch."""
        shape = (*build.tables.classes.port.shape, build.wiring.far.shape[1])
        result = cls(
            used=np.zeros(shape[:2], np.bool_),
            every=np.ones(shape, np.bool_),
            some=np.zeros(shape, np.bool_),
        )
        fib = Fib.of(build.tables, build.wiring.cables())
        table = neighbour_table(build.topology.graph)
        ends = np.flatnonzero(build.topology.endpoints)
        step = max(1, SHORTEST_CELLS_AT_ONCE // build.tables.switches)
        for first in range(0, len(ends), step):
            part = ends[first : first + step]
            result._add(fib.egress(part), distances(table, part), build.wiring.far)
        result.every[~result.used] = False
        return result

    def _add(
        self, egress: NDArray[np.unsignedinteger], links: NDArray[np.uint8], far: NDArray[np.int32]
    ) -> None:
        """Some destinations: [S, D], the class of each; uint8[D, S], how many links it is there."""
        order = np.argsort(egress, axis=1, kind="stable")
        count = np.count_nonzero(egress < self.used.shape[1], axis=1)
        for s in np.flatnonzero(count).tolist():
            columns = order[s, : count[s]]
            classes, first = np.unique(egress[s, columns], return_index=True)
            nearer = links[columns][:, far[s]] + 1 == links[columns, s][:, None]
            nearer &= far[s] >= 0
            self.used[s, classes] = True
            self.every[s, classes] &= np.logical_and.reduceat(nearer, first)
            self.some[s, classes] |= np.logical_or.reduceat(nearer, first)


def shortest_paths(build: Build, use: PortUse) -> Iterator[Unsound]:
    """Alternates that lack a shortest path, or have a longer one.

    Args:
        build: tables that deliver every pair, of `balance: ecmp`.
        use: of its ports.
    """
    found, port = ShortestPaths.of(build), build.tables.classes.port
    if build.tables.routes.exact:  # a row that serves a supernode has the paths of all its switches
        yield from where(
            (found.every != found.some).any(axis=2),
            lambda s, k: Finding(
                (build.wiring.names[s], "class", k),
                "rows with the same shortest paths",
                "rows with others, too",
            ),
        )
    other = build.wiring.port[:, None] != port[..., None]
    given = given_alternates(build, use)
    wanted = np.packbits(found.every & other, axis=2)
    given[~found.used] = 0
    yield from wrong_links(build, use, "alternate", wanted & ~given, "{}", "nothing")
    wrong = given & ~wanted
    yield from wrong_links(build, use, "alternate", wrong, "a shortest path", "{}")
