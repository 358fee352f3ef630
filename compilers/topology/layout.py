"""Layouts: which rack and which place in it each vertex has (PolarFly paper, §V).

A rack holds a *cluster* of vertices. All clusters of one kind (fans, stars, supernodes, subplanes)
have the same links inside: the same positions are joined in each. Families define the layouts.
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
    """The name of each rack."""
    centre: NDArray[np.int32]
    """int32[R]: the vertex that is joined to all others of its rack, -1 in a rack without one."""

    @classmethod
    def of_one_kind(
        cls,
        name: str,
        rack: NDArray[np.int32],
        position: NDArray[np.int32],
        kind: str,
        names: Iterable[str] = (),
    ) -> Layout:
        """Return a layout whose racks are all of one kind and have no centre.

        Args:
            name: the name of the layout.
            rack: int32[N], the rack of each vertex.
            position: int32[N], the place of each vertex in its rack.
            kind: the kind of all racks.
            names: the names of racks; left out, the kind with the number of the rack.
        """
        rack_names = tuple(names) or tuple(f"{kind}{r}" for r in range(int(rack.max()) + 1))
        kind_of_rack = np.zeros(len(rack_names), np.uint8)
        no_centre = np.full(len(rack_names), -1, np.int32)
        return cls(
            name,
            rack=rack,
            position=position,
            kinds=(kind,),
            kind=kind_of_rack,
            names=rack_names,
            centre=no_centre,
        )

    def members(self, rack: int) -> NDArray[np.int64]:
        """Return the vertices in a rack, int64[n], in order of position."""
        inside = np.flatnonzero(self.rack == rack)
        return inside[np.argsort(self.position[inside])]


def places_in(group: NDArray[np.integer], *keys: NDArray[Any]) -> NDArray[np.int32]:
    """Return the place of each item in its group, int32[n], from 0.

    Args:
        group: int[n], the group of each item.
        keys: [n] each, by which a group is sorted, the most important one last.

    >>> places_in(np.array([1, 0, 1]), np.array([9, 5, 2]))
    array([1, 0, 0], dtype=int32)
    """
    order = np.lexsort((*keys, group))
    grouped = group[order]
    place = np.empty(len(order), np.int32)
    place[order] = np.arange(len(order)) - np.searchsorted(grouped, grouped)
    return place


def layouts(topology: Topology) -> tuple[str, ...]:
    """Return the names of a topology's layouts, the default first."""
    return tuple(family_of(topology.family).layouts(topology))


def layout_names(topology: Topology) -> tuple[str, ...]:
    """Return the names of a topology's layouts, and of its layouts for cassettes."""
    family = family_of(topology.family)
    return *family.layouts(topology), *family.cassette_layouts(topology)


def layout(topology: Topology, name: str = "", start: int | None = None) -> Layout:
    """Return a layout of a topology by name, or its default layout.

    Args:
        topology: the topology.
        name: one of `layouts(topology)` or of the family's cassette layouts; "" for the default.
        start: the quadric that Algorithm 1 of the PolarFly paper starts from, a vertex of ER_q;
            None for the first.

    Raises:
        InputError: the topology has no such layout, or the start is no quadric.
    """
    family = family_of(topology.family)
    by_name = {**family.layouts(topology), **family.cassette_layouts(topology)}
    if (name or not layouts(topology)) and name not in by_name:
        required = ", ".join(by_name) or "a family with racks: polarfly, polarstar, pn of square q"
        raise InputError.of(required, given=name or topology.title(), key="layout")
    chosen: Layout = by_name[name or layouts(topology)[0]](topology, start)
    return chosen


def links_between(graph: Graph, layout: Layout) -> NDArray[np.int64]:
    """Count the links between racks, int64[R, R], symmetric; within racks on the diagonal."""
    racks = len(layout.names)
    u, v = layout.rack[graph.edges()].astype(np.int64).T
    count = np.bincount(u * racks + v, minlength=racks * racks).reshape(racks, racks)
    return count + count.T - np.diag(np.diag(count))
