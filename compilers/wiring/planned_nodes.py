"""Planned nodes: the links and hosts that a fabric lacks until they are installed.

`polarfab compile` prints a sentence for each planned node, and how much longer paths are meanwhile.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from compilers.topology.adjacency import Graph
from compilers.topology.distance import distances, neighbour_table
from compilers.wiring.damage import damage_of
from compilers.wiring.lost_links import MOST_SWITCHES, SOURCES_AT_ONCE, largest_distance
from compilers.wiring.placed_fabric import PlacedFabric


@dataclass(frozen=True, slots=True)
class PlannedNodes:
    """The nodes with a vertex that are not installed yet."""

    names: tuple[str, ...] = ()
    """The names of the planned nodes."""
    sentences: tuple[str, ...] = ()
    """For each node, how many links and hosts are left out with it."""
    diameters: tuple[int, int] | None = None
    """The diameter with the planned nodes, and the diameter without them.

    A diameter is the most links of a shortest path between installed nodes with hosts. None in
    fabrics that are too large to compare, or where no node is planned.
    """

    @classmethod
    def of(cls, placed: PlacedFabric) -> PlannedNodes:
        """Find the planned nodes of one plane.

        Raises:
            Refused: a dead link is no link of the fabric.
        """
        if all(node.state != "planned" for node in placed.inventory.nodes):
            return cls()
        wiring = placed.wiring
        absent = damage_of(placed.inventory, wiring).absent
        planned = np.flatnonzero(absent).tolist()
        if not planned:
            return cls()
        links = np.count_nonzero(wiring.far >= 0, axis=1).tolist()
        hosts = np.count_nonzero(wiring.host_port > 0, axis=1).tolist()
        sentences = tuple(
            f"{wiring.names[v]}, with {_count_in_words(links[v], 'link')} and "
            f"{_count_in_words(hosts[v], 'host')}"
            for v in planned
        )
        names = tuple(wiring.names[v] for v in planned)
        # In larger fabrics it takes too long to search all distances.
        is_comparable = placed.topology.graph.order <= MOST_SWITCHES
        return cls(names, sentences, _diameters(placed, absent) if is_comparable else None)

    def cost(self) -> str:
        """Return in words what the absence of planned nodes costs; "" if it was not computed."""
        if self.diameters is None:
            return ""
        with_planned, without_planned = self.diameters
        if with_planned == without_planned:
            return f"still at most {without_planned} hops"
        return f"at most {without_planned} hops, not {with_planned}"


def _count_in_words(count: int, noun: str) -> str:
    """Return a number with its noun.

    >>> _count_in_words(1, "link"), _count_in_words(2, "link")
    ('1 link', '2 links')
    """
    return f"{count:,} {noun}" if count == 1 else f"{count:,} {noun}s"


def _diameters(placed: PlacedFabric, absent: NDArray[np.bool_]) -> tuple[int, int]:
    """Return the most links of a shortest path between installed nodes with hosts.

    Args:
        placed: the whole fabric.
        absent: bool[S], the planned nodes.

    Returns:
        The number with the planned nodes, and without them.
    """
    far = placed.wiring.far
    # int32[S, K], the neighbours without planned nodes. Beyond the last link `far` is -1, so that
    # `absent[far]` has the value of some other node there. Either way the result is -1.
    installed_far = np.where(absent[:, None] | absent[far], np.int32(-1), far)
    endpoints = np.flatnonzero(placed.topology.endpoints & ~absent)
    return _diameter(far, endpoints), _diameter(installed_far, endpoints)


def _diameter(far: NDArray[np.int32], endpoints: NDArray[np.int64]) -> int:
    """Return the most links of a shortest path between some switches, as far as paths exist.

    Args:
        far: int32[S, K], the neighbours of each switch, -1 for none.
        endpoints: int64[D], these switches.
    """
    table = neighbour_table(Graph.from_padded(far))
    longest = 0
    for first in range(0, len(endpoints), SOURCES_AT_ONCE):
        sources = endpoints[first : first + SOURCES_AT_ONCE]
        distance = distances(table, sources)[:, endpoints]
        longest = max(longest, largest_distance(distance))
    return longest
