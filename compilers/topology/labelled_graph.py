"""The topology of a fabric: its graph, with the family it comes from and labels of its vertices.

Families build topologies (`compilers.topology.family`); wiring, routing and drawing read them. The
texts in `Annotated[…]` are the shape of an array and the range of its values. `build_codec` checks
them when a stored build is read.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated

import numpy as np
from numpy.typing import NDArray

from compilers.topology.adjacency import Graph

Parameters = Mapping[str, int | str]
"""The values of a family's parameters by name, such as {"q": 7}."""
EXPANDED = "-expanded"
"""The end of the family's name of an expanded topology; the parameters say how it has grown."""


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Topology:
    """A fabric graph in canonical numbering."""

    family: str
    """The name of the family."""
    parameters: Parameters
    """The parameters of the member."""
    graph: Graph
    """The links."""
    kinds: Annotated[tuple[str, ...], "kinds"]
    """The names of the kinds of vertices."""
    kind: Annotated[NDArray[np.uint8], "S", "0..kinds"]
    """uint8[S]: the kind of each vertex, an index into kinds."""
    coordinates: Annotated[NDArray[np.int32], "S D"]
    """int32[S, D]: the vertex in the family's algebra."""
    endpoints: Annotated[NDArray[np.bool_], "S"]
    """bool[S]: the vertices that carry hosts."""
    diameter: int
    """The graph's diameter, by theorem (tests check it)."""
    hierarchy: int = 1
    """The size of a supernode: so many consecutive vertices are one. 1 where there are none."""

    @property
    def present(self) -> NDArray[np.bool_]:
        """The vertices with links, bool[S]; only in a damaged fabric vertices have none."""
        present: NDArray[np.bool_] = self.graph.degrees > 0
        return present

    @property
    def grown_from(self) -> str:
        """The family of the topology before it was expanded; "" if it was not."""
        return self.family.removesuffix(EXPANDED) if self.family.endswith(EXPANDED) else ""

    def title(self) -> str:
        """Return the family and its parameters as text: `polarfly q=7`."""
        return " ".join([self.family, *(f"{k}={v}" for k, v in self.parameters.items())])

    def __repr__(self) -> str:
        """`<Topology polarfly q=7: 57 vertices, 224 edges>`."""
        graph = self.graph
        return f"<Topology {self.title()}: {graph.order:,} vertices, {graph.size:,} edges>"

    def of_kind(self, name: str) -> NDArray[np.int64]:
        """Return the vertices of the kind called `name`, int64[n], ascending."""
        return np.flatnonzero(self.kind == self.kinds.index(name))
