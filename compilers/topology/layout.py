"""Layouts: vertices in clusters, one rack each, and the links between them (PolarFly paper, §V).

Clusters of one kind (fans, stars, supernodes, subplanes) are wired alike inside: the same positions
are joined in each.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from compilers.topology.adjacency import Graph
from compilers.topology.families import family_of
from compilers.topology.labelled_graph import Topology
from inventory.problems import InputError


@dataclass(frozen=True, slots=True)
class Layout:
    """A placement of N vertices in R clusters, here called racks."""

    name: str
    """The name of the layout."""
    rack: NDArray[np.int32]
    """int32[N]: the rack of each vertex."""
    position: NDArray[np.int32]
    """int32[N]: the place of each vertex in its rack, from 0."""
    kinds: tuple[str, ...]
    """The names of the kinds of racks."""
    kind: NDArray[np.uint8]
    """uint8[R]: the kind of each rack, an index into kinds."""
    names: tuple[str, ...]
    """The names of racks."""
    centre: NDArray[np.int32]
    """int32[R]: the vertex that is joined to all others of its rack; -1 where there is none."""

    @classmethod
    def of_one_kind(
        cls,
        name: str,
        rack: NDArray[np.int32],
        position: NDArray[np.int32],
        kind: str,
        names: Iterable[str] = (),
    ) -> Layout:
        """Of racks that are alike and have no centre; without names they are called by number."""
        known = tuple(names) or tuple(f"{kind}{r}" for r in range(int(rack.max()) + 1))
        alike, none = np.zeros(len(known), np.uint8), np.full(len(known), -1, np.int32)
        return cls(name, rack, position, (kind,), alike, known, none)

    def members(self, rack: int) -> NDArray[np.int64]:
        """The vertices in a rack, in order of position."""
        inside = np.flatnonzero(self.rack == rack)
        return inside[np.argsort(self.position[inside])]


def places_in(group: NDArray[np.integer], *keys: NDArray[Any]) -> NDArray[np.int32]:
    """int32[n]: the place of each in its group, from 0, in the order of keys as of `lexsort`."""
    order = np.lexsort((*keys, group))
    grouped = group[order]
    found = np.empty(len(order), np.int32)
    found[order] = np.arange(len(order)) - np.searchsorted(grouped, grouped)
    return found


def layouts(topology: Topology) -> tuple[str, ...]:
    """The names of a topology's layouts, the default first."""
    return tuple(family_of(topology.family).layouts(topology))


def layout(topology: Topology, name: str = "", start: int | None = None) -> Layout:
    """A layout of the topology by name, or its default.

    Args:
        topology: the fabric graph.
        name: one of `layouts(topology)`.
        start: the quadric that Algorithm 1 starts from, a vertex of ER_q; the first by default.

    Raises:
        InputError: the topology has no such layout, or the start is not a quadric.
    """
    family = family_of(topology.family)
    known = {**family.layouts(topology), **family.cassette_layouts(topology)}
    if (name or not layouts(topology)) and name not in known:
        required = ", ".join(known) or "a family with racks: polarfly, polarstar, pn of square q"
        raise InputError.of(required, given=name or topology.title(), key="layout")
    made: Layout = known[name or layouts(topology)[0]](topology, start)
    return made


def links_between(graph: Graph, layout: Layout) -> NDArray[np.int64]:
    """int64[R, R]: links between racks, symmetric; within a rack on the diagonal."""
    racks = len(layout.names)
    u, v = layout.rack[graph.edges()].astype(np.int64).T
    count = np.bincount(u * racks + v, minlength=racks * racks).reshape(racks, racks)
    return count + count.T - np.diag(np.diag(count))
