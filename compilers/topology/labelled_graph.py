"""The labelled graph of a fabric, and the interface of a family of such graphs."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Annotated, Protocol

import numpy as np
from numpy.typing import NDArray

from compilers.topology.graph import Graph
from inventory.problems import Problem

Parameters = Mapping[str, int | str]


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


@dataclass(frozen=True, slots=True)
class Design:
    """One feasible fabric of a family, from formulas, without building the graph.

    radix is the number of fabric ports in use at a node.
    """

    family: str
    radix: int
    nodes: int
    links: int
    diameter: int
    q: int | None = None
    supernode: str | None = None
    supernode_degree: int | None = None
    supernode_order: int | None = None

    @property
    def moore_efficiency(self) -> float:
        """Nodes over the Moore bound of the radix and the diameter."""
        return self.nodes / moore_bound(self.radix, self.diameter)


def moore_bound(degree: int, diameter: int) -> int:
    """The largest order of a graph of degree d and diameter D: 1 + d·Σ(d-1)^i, i < D."""
    return 1 + degree * sum(int((degree - 1) ** i) for i in range(diameter))


class Family(Protocol):
    """A family of topologies. To add one, see `families.py`."""

    name: str
    parameters: tuple[str, ...]

    def check(self, parameters: Parameters) -> list[Problem]:
        """Problems of the parameters; each key is the parameter's name."""

    def order(self, parameters: Parameters) -> int:
        """The number of vertices, by formula, for parameters that pass `check`."""

    def build(self, parameters: Parameters) -> Topology:
        """The topology. Parameters that pass `check` always build."""

    def designs(self, radix: int) -> Iterator[Design]:
        """Every member whose largest degree is exactly `radix`."""
