"""The paths that a search for alternates and repair looks at: one a pair, or all shortest ones."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from compilers.routing.split_classes import deciding_rows
from compilers.tables.intermediate_form import Tables
from compilers.tables.walk import Walker
from compilers.topology.distance import distances, neighbour_table
from compilers.topology.labelled_graph import Topology
from compilers.wiring.wiring import Wiring

Bits = NDArray[np.bool_]
Numbers = NDArray[Any]


@dataclass(frozen=True, slots=True, eq=False)
class SearchedPaths:
    """Minimal paths of S switches towards the D switches that have hosts.

    tables, wiring: their source. ends: int64[D], the destinations. after: int32[S, D], the next
    switch, or the destination itself once reached. egress: [S, D], the class. depth: the links of
    the longest path. distance: uint8[S, S], links between switches where packets take any shortest
    path, and turns: int32[n, S, D], where packets of several ways try to go that came in by one of
    these, -1: nowhere; else empty.
    """

    tables: Tables
    wiring: Wiring
    ends: NDArray[np.int64]
    after: NDArray[np.int32]
    egress: Numbers
    depth: int
    distance: NDArray[np.uint8]
    turns: NDArray[np.int32]

    @classmethod
    def of(
        cls, tables: Tables, wiring: Wiring, topology: Topology, every_hop: bool
    ) -> SearchedPaths:
        """The paths of tables that reach every destination."""
        ends = np.flatnonzero(topology.endpoints)
        walker = Walker.of(tables, wiring.cables())
        after, egress = walker.next_switch(ends), np.ascontiguousarray(walker.egress(ends))
        # A packet at a switch without links stays there.
        after = np.where(after < 0, np.arange(len(after), dtype=np.int32)[:, None], after)
        switches = np.arange(len(after) if every_hop else 0)
        distance = distances(neighbour_table(topology.graph), switches)
        other = _other_ways(wiring.far, after, distance[:, ends])
        turns = np.stack((other, np.where(other < 0, np.int32(-1), after[: len(other)])))
        return cls(tables, wiring, ends, after, egress, topology.diameter, distance, turns)

    def walk(self, first: Numbers) -> list[Numbers]:
        """The switch of each packet after 0, 1, … `depth` links from `first`, int32[…, D] each."""
        column = np.arange(len(self.ends))
        steps = [np.broadcast_to(first, (*first.shape[:-1], len(column)))]
        for _ in range(self.depth):
            steps.append(self.after[steps[-1], column])
        return steps

    def meets(self, first: Numbers, other: Numbers | int) -> Bits:
        """bool[…, D]: whether packets from `first` may come to another switch, or begin there."""
        if len(self.distance):
            between, ends = self.distance[first, other].astype(np.int16), self.ends
            met: Bits = between + self.distance[other, ends] == self.distance[first, ends]
            return met
        steps = self.walk(first)
        passed: Bits = np.any([step == other for step in steps], axis=0)
        return passed

    def turned(self, came: Numbers | int, at: Numbers) -> tuple[Bits, Numbers]:
        """bool[…, D]: whether the switch that a packet came from is a way of the one that it is at.

        And where it goes from there, -1: back, as that is the only way.
        """
        column = np.arange(len(self.ends))
        back: Bits = self.distance[came, self.ends] + 1 == self.distance[at, self.ends]
        over = np.full(back.shape, -1, np.int32)
        for turn in self.turns[::-1, at, column]:
            over = np.where((turn >= 0) & (turn != came), turn, over)
        return back, over

    def near(self, switch: int) -> Numbers:
        """int32[K, 1]: the neighbours of a switch."""
        far = self.wiring.far[switch]
        near: Numbers = far[far >= 0][:, None]
        return near

    def present(self) -> list[int]:
        """The switches that have links."""
        present: list[int] = np.flatnonzero(self.wiring.far[:, 0] >= 0).tolist()
        return present

    def routed(self, switch: int) -> NDArray[np.int64]:
        """int64[n]: the columns of the destinations that the switch has a link towards."""
        return np.flatnonzero(self.after[switch] != switch)

    def rows(self, switch: int) -> Numbers:
        """int64[D]: the row that matches each destination at the switch."""
        return deciding_rows(self.tables.routes, switch, self.ends)[0]


def _other_ways(
    far: NDArray[np.int32], after: NDArray[np.int32], distance: NDArray[np.uint8]
) -> NDArray[np.int32]:
    """int32[S, D]: the next switch on the first shortest path beside `after`, -1: there is none.

    The first is that of the link after the minimal one, or after that, round the switch, as in
    `compilers.routing.port_ranking`.
    """
    links = far.shape[1]
    found = np.full((len(distance), after.shape[1]), -1, np.int32)
    for switch, near in enumerate(far[: len(distance)]):
        nearer = (near >= 0)[:, None] & (distance[near] + 1 == distance[switch])
        minimal = (near[:, None] == after[switch]).argmax(axis=0)
        turn = (minimal + np.arange(1, links)[:, None]) % links
        there = np.take_along_axis(nearer, turn, axis=0)
        link = np.take_along_axis(turn, there.argmax(axis=0)[None], axis=0)[0]
        found[switch] = np.where(there.any(axis=0), near[link], -1)
    return found
