"""Planned nodes: what the fabric lacks as long as they are not installed."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from compilers.topology.adjacency import Graph
from compilers.topology.distance import BEYOND, distances, neighbour_table
from compilers.wiring.damage import damage_of
from compilers.wiring.lost_links import MOST_SWITCHES, SOURCES_AT_ONCE
from compilers.wiring.placed_fabric import Placed


@dataclass(frozen=True, slots=True)
class PlannedNodes:
    """The nodes with a vertex that are not installed yet."""

    names: tuple[str, ...] = ()
    """Their names."""
    sentences: tuple[str, ...] = ()
    """For each node, how many links and hosts are left out with it."""
    hops: tuple[int, int] | None = None
    """The longest shortest path between installed nodes with hosts, with the planned nodes and
    without them; None in fabrics that are too large to compare, or where no node is planned.
    """

    @classmethod
    def of(cls, placed: Placed) -> PlannedNodes:
        """Those of one plane."""
        if all(node.state != "planned" for node in placed.inventory.nodes):
            return cls()
        wiring = placed.wiring
        absent = damage_of(placed.inventory, wiring).absent
        planned = np.flatnonzero(absent).tolist()
        if not planned:
            return cls()
        sentences = tuple(
            f"{wiring.names[v]}, with {_counted(int((wiring.far[v] >= 0).sum()), 'link')} and "
            f"{_counted(int((wiring.host_port[v] > 0).sum()), 'host')}"
            for v in planned
        )
        names = tuple(wiring.names[v] for v in planned)
        small = placed.topology.graph.order <= MOST_SWITCHES
        return cls(names, sentences, _hops(placed, absent) if small else None)

    def cost(self) -> str:
        """What their absence costs, in a sentence; "" where it was not computed."""
        if self.hops is None:
            return ""
        before, after = self.hops
        return (
            f"still at most {after} hops"
            if before == after
            else (f"at most {after} hops, not {before}")
        )


def _counted(count: int, noun: str) -> str:
    return f"{count:,} {noun}" if count == 1 else f"{count:,} {noun}s"


def _hops(placed: Placed, absent: NDArray[np.bool_]) -> tuple[int, int]:
    """The longest shortest path between installed nodes with hosts, with all nodes and without."""
    far = placed.wiring.far
    left = np.where(absent[:, None] | absent[far], np.int32(-1), far)
    ends = np.flatnonzero(placed.topology.endpoints & ~absent)
    tables = [neighbour_table(Graph.from_padded(some)) for some in (far, left)]
    most = [0, 0]
    for first in range(0, len(ends), SOURCES_AT_ONCE):
        some = ends[first : first + SOURCES_AT_ONCE]
        for number, table in enumerate(tables):
            found = distances(table, some)[:, ends]
            longest = int(np.max(found, where=found < BEYOND, initial=0))
            most[number] = max(most[number], longest)
    return most[0], most[1]
