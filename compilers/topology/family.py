"""The base class of all families of topologies: what the compiler asks a family.

A new family must know its number of vertices and build its graph. Everything else has a default. A
family may also know formulas (sizes, distances, loads), racks, and routes by algebra. Types of
folders that this folder may not import (`Tables`, `Wiring`) are `Any` here.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from math import comb
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from compilers.entry_points import CONSTRUCTIONS, load, registered
from compilers.topology.adjacency import Graph
from compilers.topology.labelled_graph import Parameters, Topology
from inventory.problems import InputError, Problem


@dataclass(frozen=True, slots=True, kw_only=True)
class Design:
    """The size of one possible fabric of a family, from formulas, without building the graph."""

    family: str
    """The name of the family."""
    radix: int
    """The fabric ports in use at a node."""
    nodes: int
    """How many nodes there are."""
    links: int
    """How many links there are."""
    diameter: int | None
    """The largest distance between two nodes; None where only a search of the graph gives it."""
    parameters: Parameters
    """The parameters that build it."""
    endpoints: int
    """How many of the nodes carry hosts."""
    host_diameter: int
    """The largest distance between two nodes with hosts (Projective Networks paper, §VI).

    The same as the diameter where all nodes have hosts.
    """
    supernode: str | None = None
    """The kind of supernodes; None where there are none."""
    supernode_degree: int | None = None
    """The links of a node inside its supernode."""
    supernode_order: int | None = None
    """The nodes of a supernode."""

    @property
    def q(self) -> int | None:
        """The order of the field, where there is one."""
        return int(self.parameters["q"]) if "q" in self.parameters else None

    @property
    def moore_efficiency(self) -> float | None:
        """The number of nodes divided by the Moore bound for the radix and the diameter.

        None where no formula gives the diameter.
        """
        if self.diameter is None:
            return None
        return self.nodes / moore_bound(self.radix, self.diameter)


def moore_bound(degree: int, diameter: int) -> int:
    """Return the largest number of vertices of a graph: 1 + d·Σ(d-1)^i for i < D.

    Args:
        degree: the largest degree, d.
        diameter: the diameter, D.

    >>> moore_bound(3, 2)  # reached by the Petersen graph
    10
    """
    return 1 + degree * sum(int((degree - 1) ** i) for i in range(diameter))


@dataclass(frozen=True, slots=True)
class Modules:
    """A fabric cut into modules that are alike, and perhaps a smaller last one."""

    size: int
    """The nodes of a module."""
    count: int
    """How many modules there are."""
    inside: int
    """The links inside a module."""
    between: int | None = None
    """The links between any two modules; None if pairs differ."""
    rest: int = 0
    """The nodes of a last, smaller module."""
    loose: int = 0
    """Links that `inside` does not count, although they never leave a module: those within the last
    module, and those that only some modules have."""
    bundles: int | None = None
    """The number of pairs of modules that are cabled; None for all pairs."""
    splits: bool = False
    """Whether a module, whose nodes are all joined to each other, may be cut in parts."""

    def nodes(self, merged: int) -> int:
        """Return the nodes of a group of `merged` modules."""
        return self.size * merged

    def electrical(self, merged: int) -> int:
        """Return the links within groups of `merged` modules, which copper cables can serve."""
        groups, in_last_group = divmod(self.count, merged)
        pairs = groups * comb(merged, 2) + comb(in_last_group, 2)
        between = self.between or 0
        return self.count * self.inside + self.loose + pairs * between

    def groups(self, merged: int) -> int:
        """Return the number of groups of `merged` modules, with a smaller last one."""
        return -(-self.count // merged) + (1 if self.rest else 0)


class Construction(Protocol):
    """Constructs the classes of whole members of a family that is too large for a search.

    A package registers a module with these functions by an entry point of the group
    `polarfab.constructions`, under the family's name.
    """

    def with_alternates_and_repairs(
        self, tables: Any, topology: Topology, wiring: Any, forwarding: Any
    ) -> Any:
        """Return minimal `Tables` with alternates and repairs."""

    def alternates(self, topology: Topology, links: int) -> Any:
        """Return the links of alternates as bits, uint8[S, C, ⌈K/8⌉], for K links a switch."""


def construction(name: str) -> Construction:
    """Return the construction for the family of this name.

    Raises:
        InputError: no package registers one, or the package that does is broken.
    """
    entries = registered(CONSTRUCTIONS).get(name)
    if not entries:
        required = "a package that constructs classes of such large fabrics"
        raise InputError.of(required, "none", key=f"family {name}")
    loaded: Construction = load(entries[0])
    return loaded


class Family(ABC):
    """A family of topologies.

    A file of `compilers/families/` defines one, or a package registers its class by an entry point
    of the group `polarfab.families`. Routes, alternates and repairs of its members are searched
    unless it overrides `routes` and `choices`.
    """

    name: str
    """The name in a spec."""
    parameters: tuple[str, ...] = ()
    """The names of the parameters in a spec."""
    optional: tuple[str, ...] = ()
    """The parameters that have a default."""
    place = 100
    """The place in lists of families."""
    compared = False
    """Whether it exists for comparisons only; then `check` reports missing parameters."""
    estimated = False
    """Whether `utilisation` is an estimate."""
    described = False
    """Whether a file describes its only member."""
    holds_edges = True
    """Whether all edges are in memory at once while the graph is made."""
    polarity = False
    """Whether members are ER_q, numbered as by `compilers.topology.polarity`."""
    constructed = False
    """Whether alternates and repairs are made by algebra, for any size."""
    single = False
    """Whether each row of a forwarding table has one shortest path: the graph has no other, or
    `by_supernodes` is set."""
    by_supernodes = False
    """Whether a row of a forwarding table is for all switches of a supernode, and not for one."""
    any_links = False
    """Whether a switch may have more or fewer links than others."""
    grows_by_clusters = False
    """Whether members grow as ER_q does (`compilers.topology.replicated_clusters`)."""

    def check(self, parameters: Parameters) -> list[Problem]:  # noqa: ARG002
        """Return the problems of the parameters; each key is the parameter's name."""
        return []

    @abstractmethod
    def order(self, parameters: Parameters) -> int:
        """Return the number of vertices, by formula, for parameters that pass `check`."""

    @abstractmethod
    def build(self, parameters: Parameters) -> Topology:
        """Build the topology, which parameters that pass `check` always allow."""

    def degree(self, parameters: Parameters) -> int | None:  # noqa: ARG002
        """Return the most links of a switch, by formula; None where no formula is known."""
        return None

    def hierarchy(self, parameters: Parameters) -> int:  # noqa: ARG002
        """Return the number of vertices of a supernode, by formula; 1 without supernodes."""
        return 1

    def title(self, parameters: Parameters) -> str:
        """Return the family and its parameters as text: `polarfly q=7`."""
        return " ".join([self.name, *(f"{key}={value}" for key, value in parameters.items())])

    def designs(self, radix: int) -> Iterator[Design]:  # noqa: ARG002
        """Yield every member whose largest degree is exactly `radix`."""
        return iter(())

    def sized_designs(self, radix: int, most: int | None = None) -> Iterator[Design]:  # noqa: ARG002
        """Yield the designs of a radix, and smaller ones, to choose from for a number of hosts.

        Args:
            radix: the number of ports of a switch.
            most: a number of nodes; larger designs may be left out. None: all designs.
        """
        return self.designs(radix)

    def direct(
        self,
        parameters: Parameters,
        graph: Graph,
        coordinates: NDArray[np.int32],
        diameter: int,
    ) -> Topology:
        """Return a topology whose vertices are all of one kind and all carry hosts."""
        return Topology(
            family=self.name,
            parameters=parameters,
            graph=graph,
            kinds=("router",),
            kind=np.zeros(graph.order, np.uint8),
            coordinates=coordinates,
            endpoints=np.ones(graph.order, np.bool_),
            diameter=diameter,
        )

    def design(
        self, radix: int, nodes: int, diameter: int | None, parameters: Parameters, **more: Any
    ) -> Design:
        """Return a design whose nodes all have `radix` links and carry hosts.

        Args:
            radix: the links of a node.
            nodes: the number of nodes.
            diameter: the diameter; None where no formula gives it.
            parameters: of the member.
            more: fields of `Design` that differ from this.
        """
        of_all = {"links": nodes * radix // 2, "endpoints": nodes, "host_diameter": diameter}
        sizes: dict[str, Any] = {"radix": radix, "nodes": nodes, "diameter": diameter}
        return Design(family=self.name, parameters=parameters, **sizes, **(of_all | more))

    def leaf_degree(self, design: Design) -> int:
        """Return the fabric ports of a node with hosts."""
        return design.radix // 2 if design.endpoints < design.nodes else design.radix

    def modules(self, parameters: Parameters) -> Iterator[Modules]:  # noqa: ARG002
        """Yield ways to cut a member into modules, the natural one first; none if it has no parts.

        Links within a module can be cabled before it is delivered.
        """
        return iter(())

    def vertex_names(self, parameters: Parameters) -> tuple[str, ...]:  # noqa: ARG002
        """Return the names that vertices have besides their numbers, () for none."""
        return ()

    def edge_blocks(self, parameters: Parameters) -> Iterator[NDArray[np.int32]]:
        """Yield the edges of `build` in blocks, int32[n, 2] each."""
        return self.build(parameters).graph.edge_blocks()

    def routes(self, topology: Topology) -> Any:  # noqa: ARG002
        """Return minimal `Routes` by algebra (`compilers.tables.intermediate_form`).

        None where they have to be searched.
        """
        return None

    def choices(
        self, tables: Any, topology: Topology, wiring: Any, forwarding: Any, module: Any
    ) -> Any:
        """Return minimal `Tables` of a whole member with alternates and repairs.

        None where they have to be searched. The arguments are those of
        `compilers.routing.choose.choices`.
        """
        del tables, topology, wiring, forwarding, module

    def constructed_alternates(
        self, topology: Topology, wiring: Any, classes: int, forwarding: Any
    ) -> Any:
        """Return the links of alternates by construction as bits, uint8[S, C, ⌈K/8⌉].

        None where there is no construction.

        Args:
            topology: a topology that may be a whole member.
            wiring: its cables.
            classes: C, the number of classes in its tables.
            forwarding: which alternates are asked for (`compilers.spec.forwarding.Forwarding`).
        """
        del topology, wiring, classes, forwarding

    def constructed_classes(self, parameters: Parameters) -> bool:  # noqa: ARG002
        """Whether alternates and repairs of a whole member are constructed, however large it is."""
        return self.constructed

    def layouts(self, topology: Topology) -> Mapping[str, Any]:  # noqa: ARG002
        """Return the ways to put vertices into racks by name, the default first.

        Each is a function of the topology and of a vertex to start from, or None, that returns a
        `compilers.topology.layout.Layout`.
        """
        return {}

    def cassette_layouts(self, topology: Topology) -> Mapping[str, Any]:  # noqa: ARG002
        """Return further `layouts`, whose racks need few types of cassettes.

        The first one is the default of fabrics with cassettes.
        """
        return {}

    def headings(self, topology: Topology) -> NDArray[np.int32] | None:  # noqa: ARG002
        """Return a number for each link of a vertex, int32[N, K].

        Racks that are alike have the same numbers at the same places, so that ports can be assigned
        by them in the same way in each rack. None where no numbers make racks alike.
        """
        return None

    def mean_distance(self, parameters: Parameters) -> float | None:  # noqa: ARG002
        """Return the mean hops between two nodes with hosts on minimal routes, by formula.

        None where no formula is known.
        """
        return None

    def utilisation(self, parameters: Parameters) -> float | None:  # noqa: ARG002
        """Return the mean link load divided by the largest one, u, for uniform traffic.

        By formula, on minimal routes that split evenly; None where no formula is known.
        """
        return None

    def symmetries(self, topology: Topology) -> Iterator[NDArray[np.int32]]:  # noqa: ARG002
        """Yield automorphisms of a whole graph, as the vertex that each vertex moves to, int32[S].

        Together they show which links are alike.
        """
        return iter(())

    def marked_share(self, parameters: Parameters, hosts: int) -> tuple[float, bool] | None:  # noqa: ARG002
        """Return what the balance `spread` guarantees to every host, by formula.

        Args:
            parameters: of the member.
            hosts: the hosts of a node.

        Returns:
            The part of its link's rate that every host can send under any permutation, and whether
            some permutation gets no more. None where no formula is known.
        """
        return None

    def marks_suit_any_traffic(self, parameters: Parameters) -> bool:
        """Return whether `spread` guarantees about as much as any balance, by formula.

        Args:
            parameters: of the member.
        """
        return self.marked_share(parameters, 1) is not None


def integers(
    parameters: Parameters, least: Mapping[str, int], optional: tuple[str, ...] = ()
) -> list[Problem]:
    """Return problems of parameters that are missing, no integers, or below their least value.

    Args:
        parameters: the values.
        least: the least value by the name of a parameter.
        optional: parameters that may be missing.
    """
    problems = []
    for key, smallest in least.items():
        if key in optional and key not in parameters:
            continue
        value = parameters.get(key)
        if type(value) is not int or value < smallest:
            required = f"an integer of at least {smallest}"
            given = str(value) if key in parameters else "none"
            todo = f"the smallest is {smallest}"
            problems.append(Problem(required, given, todo, key=key))
    return problems
