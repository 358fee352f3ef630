"""The interface of a family of topologies, and what it says of its members by formula."""

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
    """One feasible fabric of a family, from formulas, without building the graph."""

    family: str
    """The name of the family."""
    radix: int
    """The fabric ports in use at a node."""
    nodes: int
    """How many nodes there are."""
    links: int
    """How many links there are."""
    diameter: int
    """The largest distance between two nodes."""
    parameters: Parameters
    """The parameters that build it."""
    endpoints: int
    """How many of the nodes carry hosts."""
    host_diameter: int
    """The largest distance between two nodes with hosts (Projective Networks paper, §VI), which in
    the direct families is the diameter.
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
    def moore_efficiency(self) -> float:
        """Nodes over the Moore bound of the radix and the diameter."""
        return self.nodes / moore_bound(self.radix, self.diameter)


def moore_bound(degree: int, diameter: int) -> int:
    """The largest order of a graph of degree d and diameter D: 1 + d·Σ(d-1)^i, i < D."""
    return 1 + degree * sum(int((degree - 1) ** i) for i in range(diameter))


@dataclass(frozen=True, slots=True)
class Modules:
    """`count` modules of `size` nodes with `inside` links each, and one more of `rest` nodes."""

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
    """The links within the last module, and others that never leave a module."""
    bundles: int | None = None
    """The pairs of modules that are cabled; None for all."""
    splits: bool = False
    """Whether a module, whose nodes are all joined, may be cut in parts."""

    def nodes(self, merged: int) -> int:
        """The nodes of a group of `merged` modules."""
        return self.size * merged

    def electrical(self, merged: int) -> int:
        """The links inside groups of `merged` modules, and in a smaller last group."""
        groups, left = divmod(self.count, merged)
        pairs = groups * comb(merged, 2) + comb(left, 2)
        return self.count * self.inside + self.loose + pairs * (self.between or 0)

    def groups(self, merged: int) -> int:
        """The number of groups of `merged` modules, with a smaller last one."""
        return -(-self.count // merged) + (1 if self.rest else 0)


class Construction(Protocol):
    """What an entry point of the group `polarfab.constructions` names: classes of whole members."""

    def choices(self, tables: Any, topology: Topology, wiring: Any, forwarding: Any) -> Any:
        """Minimal `Tables` with alternates and repairs."""

    def alternates(self, topology: Topology, links: int) -> Any:
        """uint8[S, C, ⌈K/8⌉]: the links of alternates, of K links a switch."""


def construction(name: str) -> Construction:
    """That of the family of this name.

    Raises:
        InputError: the package that registers it is broken, or not there.
    """
    entries = registered(CONSTRUCTIONS).get(name)
    if not entries:
        required = "a package that constructs classes of such large fabrics"
        raise InputError.of(required, "none", key=f"family {name}")
    found: Construction = load(entries[0])
    return found


class Family(ABC):
    """A family of topologies; what it can do is asked of it.

    A file of `compilers/families/` has one, or a package registers its class by an entry point of
    the group `polarfab.families`. Without more than the methods below its routes, alternates and
    repairs are searched for.

    name: in a spec. parameters: their names there, and optional those that have a default. place:
    in lists of families. compared: only so that it can be compared; a check of it reports
    parameters that are missing. estimated: `utilisation` is not exact. described: by a file.
    holds_edges: all at once, while the graph is made. polarity: members are ER_q as
    `compilers.topology.polarity` numbers it. constructed: alternates and repairs are by algebra,
    for any size. single: there is one shortest path between two switches, or rows lead to whole
    supernodes; by_supernodes: the latter. any_links: switches may have more links or fewer.
    grows_by_clusters: as ER_q does (`compilers.topology.replicated_clusters`).
    """

    name: str
    parameters: tuple[str, ...] = ()
    optional: tuple[str, ...] = ()
    place = 100
    compared = False
    estimated = False
    described = False
    holds_edges = True
    polarity = False
    constructed = False
    single = False
    by_supernodes = False
    any_links = False
    grows_by_clusters = False

    def check(self, parameters: Parameters) -> list[Problem]:  # noqa: ARG002
        """Problems of the parameters; each key is the parameter's name."""
        return []

    @abstractmethod
    def order(self, parameters: Parameters) -> int:
        """The number of vertices, by formula, for parameters that pass `check`."""

    @abstractmethod
    def build(self, parameters: Parameters) -> Topology:
        """The topology. Parameters that pass `check` always build."""

    def degree(self, parameters: Parameters) -> int | None:  # noqa: ARG002
        """The most links of a switch, by formula; None where none is known."""
        return None

    def hierarchy(self, parameters: Parameters) -> int:  # noqa: ARG002
        """The number of vertices in a supernode, by formula; 1 where there are none."""
        return 1

    def title(self, parameters: Parameters) -> str:
        """The family and its parameters as text: `polarfly q=7`."""
        return " ".join([self.name, *(f"{key}={value}" for key, value in parameters.items())])

    def designs(self, radix: int) -> Iterator[Design]:  # noqa: ARG002
        """Every member whose largest degree is exactly `radix`."""
        return iter(())

    def sized_designs(self, radix: int) -> Iterator[Design]:
        """The members of `designs`, and smaller ones, to choose from for a number of hosts."""
        return self.designs(radix)

    def direct(
        self,
        parameters: Parameters,
        graph: Graph,
        coordinates: NDArray[np.int32],
        diameter: int,
    ) -> Topology:
        """The topology of a graph of routers that are alike and all carry hosts."""
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
        self, radix: int, nodes: int, diameter: int, parameters: Parameters, **more: Any
    ) -> Design:
        """A design whose nodes all have `radix` links and carry hosts, but for what `more` says."""
        of_all = {"links": nodes * radix // 2, "endpoints": nodes, "host_diameter": diameter}
        sizes: dict[str, Any] = {"radix": radix, "nodes": nodes, "diameter": diameter}
        return Design(family=self.name, parameters=parameters, **sizes, **(of_all | more))

    def leaf_degree(self, design: Design) -> int:
        """The fabric ports of a node with hosts."""
        return design.radix // 2 if design.endpoints < design.nodes else design.radix

    def modules(self, parameters: Parameters) -> Iterator[Modules]:  # noqa: ARG002
        """The natural modules, first, and other parts of a member that can be cabled within.

        None where all cables are alike.
        """
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
        self, tables: Any, topology: Topology, wiring: Any, forwarding: Any, module: Any
    ) -> Any:
        """Minimal `Tables` of a whole member with alternates and repairs; None: search.

        The arguments are those of `compilers.routing.choose.choices`.
        """
        del tables, topology, wiring, forwarding, module

    def constructed_alternates(
        self, topology: Topology, wiring: Any, classes: int, forwarding: Any
    ) -> Any:
        """uint8[S, C, ⌈K/8⌉]: the links of alternates by construction; None: it has none.

        Args:
            topology: what may be a whole member.
            wiring: its cables.
            classes: C, those of its tables.
            forwarding: which alternates are asked for (`compilers.spec.forwarding.Forwarding`).
        """
        del topology, wiring, classes, forwarding

    def constructed_classes(self, parameters: Parameters) -> bool:  # noqa: ARG002
        """Whether alternates and repairs of a whole member are constructed, however large it is."""
        return self.constructed

    def layouts(self, topology: Topology) -> Mapping[str, Any]:  # noqa: ARG002
        """Racks by the name of their layout, the default first: functions of the topology and a
        vertex to start from, or None, that give a `compilers.topology.layout.Layout`.
        """
        return {}

    def cassette_layouts(self, topology: Topology) -> Mapping[str, Any]:  # noqa: ARG002
        """Further racks, which few types of cassettes serve: the first where none are named."""
        return {}

    def headings(self, topology: Topology) -> NDArray[np.int32] | None:  # noqa: ARG002
        """int32[N, K]: numbers of each vertex' links, the same in racks that are alike.

        None where no order of links makes racks alike.
        """
        return None

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

    def symmetries(self, topology: Topology) -> Iterator[NDArray[np.int32]]:  # noqa: ARG002
        """int32[S] each: maps of a whole graph onto itself, as the vertex that each moves to."""
        return iter(())

    def marked_share(self, parameters: Parameters, hosts: int) -> tuple[float, bool] | None:  # noqa: ARG002
        """The share of its link's rate that every host can send under any permutation, with marks.

        And whether some permutation gets no more; `hosts` a node. None where no formula is known.
        """
        return None


def integers(
    parameters: Parameters, least: Mapping[str, int], optional: tuple[str, ...] = ()
) -> list[Problem]:
    """Problems of the keys of `least`: missing, not an integer, or below the least value."""
    return [
        Problem(
            key=key,
            required=f"an integer of at least {floor}",
            given="none" if key not in parameters else str(parameters[key]),
            todo=f"the smallest is {floor}",
        )
        for key, floor in least.items()
        if not (key in optional and key not in parameters)
        and not (type(value := parameters.get(key)) is int and value >= floor)
    ]
