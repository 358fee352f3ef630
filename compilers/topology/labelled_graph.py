"""The labelled graph of a fabric."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated

import numpy as np
from numpy.typing import NDArray

from compilers.topology.adjacency import Graph

Parameters = Mapping[str, int | str]
EXPANDED = "-expanded"
"""What the family of an expanded topology ends with; its parameters say how it has grown."""


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Topology:
    """A fabric graph in canonical numbering.

    kinds: the names of the kinds of vertices. kind: uint8[S], the kind of each vertex, an index
    into kinds. coordinates: int32[S, D], the vertex in the family's algebra. endpoints: bool[S],
    the vertices that carry hosts. diameter: the graph's, by theorem (tests check it). hierarchy:
    the number of consecutive vertices that make a supernode, 1 where there are none.
    """

    family: str
    parameters: Parameters
    graph: Graph
    kinds: Annotated[tuple[str, ...], "kinds"]
    kind: Annotated[NDArray[np.uint8], "S", "0..kinds"]
    coordinates: Annotated[NDArray[np.int32], "S D"]
    endpoints: Annotated[NDArray[np.bool_], "S"]
    diameter: int
    hierarchy: int = 1

    @property
    def present(self) -> NDArray[np.bool_]:
        """bool[S]: vertices with links; only in a damaged fabric some have none, and no program."""
        present: NDArray[np.bool_] = self.graph.degrees > 0
        return present

    @property
    def grown_from(self) -> str:
        """The family that it is an expanded member of; "" of another topology."""
        return self.family.removesuffix(EXPANDED) if self.family.endswith(EXPANDED) else ""

    def title(self) -> str:
        """The family and its parameters as text: `polarfly q=7`."""
        return " ".join([self.family, *(f"{k}={v}" for k, v in self.parameters.items())])

    def __repr__(self) -> str:
        """`<Topology polarfly q=7: 57 vertices, 224 edges>`."""
        graph = self.graph
        return f"<Topology {self.title()}: {graph.order:,} vertices, {graph.size:,} edges>"

    def of_kind(self, name: str) -> NDArray[np.int64]:
        """The vertices of the kind called `name`, ascending."""
        return np.flatnonzero(self.kind == self.kinds.index(name))
