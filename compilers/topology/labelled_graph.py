"""The labelled graph of a fabric, and the interface of a family of such graphs."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Annotated, Any

import numpy as np
from numpy.typing import NDArray

from compilers.topology.adjacency import Graph
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


class Family:
    """A family of topologies; what it can do is asked of it.

    A file of `compilers/families/` has one, or a package registers its class by an entry point of
    the group `polarfab.families`. Without more than the methods below its routes, alternates and
    repairs are searched for.

    name: in a spec. parameters: their names there, and optional those that have a default. place:
    in lists of families. compared: only so that it can be compared; a check of it reports
    parameters that are missing. described: by a file. constructed: alternates and repairs are by
    algebra, for any size. single: there is one shortest path between two switches, or rows lead to
    whole supernodes; by_supernodes: the latter. least_marked: the smallest q with marked packets
    (`compilers.routing.marked_spread`), None: it has none. keeps_marks: packets stay marked on
    their destination's side. any_links: switches may have more links or fewer. grows_by_switches: a
    random graph, which grows by single switches.
    """

    name: str
    parameters: tuple[str, ...] = ()
    optional: tuple[str, ...] = ()
    place = 100
    compared = False
    described = False
    constructed = False
    single = False
    by_supernodes = False
    least_marked: int | None = None
    keeps_marks = False
    any_links = False
    grows_by_switches = False

    def check(self, parameters: Parameters) -> list[Problem]:  # noqa: ARG002
        """Problems of the parameters; each key is the parameter's name."""
        return []

    def order(self, parameters: Parameters) -> int:
        """The number of vertices, by formula, for parameters that pass `check`."""
        raise NotImplementedError

    def build(self, parameters: Parameters) -> Topology:
        """The topology. Parameters that pass `check` always build."""
        raise NotImplementedError

    def designs(self, radix: int) -> Iterator[Design]:  # noqa: ARG002
        """Every member whose largest degree is exactly `radix`."""
        return iter(())

    def vertex_names(self, parameters: Parameters) -> tuple[str, ...]:  # noqa: ARG002
        """Names that vertices have of their own; none where these are their numbers."""
        return ()

    def edge_blocks(self, parameters: Parameters) -> Iterator[NDArray[np.int32]]:
        """int32[n, 2]: the edges of `build`, block by block."""
        return self.build(parameters).graph.edge_blocks()

    def routes(self, topology: Topology) -> Any:  # noqa: ARG002
        """Minimal routes by algebra (`compilers.tables.intermediate_form.Routes`); None: search."""
        return None

    def choices(
        self, tables: Any, topology: Topology, wiring: Any, policy: Any, module: Any
    ) -> Any:
        """Minimal `Tables` of a whole member with what a policy asks for; None: search.

        The arguments are those of `compilers.routing.policy_passes.choices`.
        """
        del tables, topology, wiring, policy, module

    def constructed_classes(self, parameters: Parameters) -> bool:  # noqa: ARG002
        """Whether alternates and repairs of a whole member are constructed, however large it is."""
        return self.constructed

    def layouts(self, topology: Topology) -> Mapping[str, Any]:  # noqa: ARG002
        """Racks by the name of their layout, the default first: functions of the topology and a
        vertex to start from, or None, that give a `compilers.topology.layout.Layout`.
        """
        return {}

    def mean_distance(self, parameters: Parameters) -> float | None:  # noqa: ARG002
        """Mean hops from a node with hosts to another, by formula; None where none is known.

        Routes are the family's usual minimal ones.
        """
        return None

    def utilisation(self, parameters: Parameters) -> float | None:  # noqa: ARG002
        """Mean over largest link load, u, for uniform traffic on those routes, evenly split.

        By formula; None where none is known.
        """
        return None

    def has_marks(self, parameters: Parameters) -> bool:
        """Whether packets can be marked in this member."""
        return self.least_marked is not None and int(parameters.get("q", 0)) >= self.least_marked
