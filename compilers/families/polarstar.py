"""PolarStar, the family of ER_q * supernode: routes by algebra; classes of the large ones, too."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from compilers.families.polarfly import PolarFly, fan_modules, fans, polarity_utilisation
from compilers.topology import polarity, supernodes
from compilers.topology.adjacency import Graph
from compilers.topology.family import Design, Family, Modules, construction
from compilers.topology.field import LARGEST_Q, prime_power
from compilers.topology.labelled_graph import Parameters, Topology
from compilers.topology.layout import Layout
from compilers.topology.polarity import order
from compilers.topology.supernodes import SUPERNODE_KINDS, Supernode, SupernodeShape, shape
from inventory.problems import Problem, not_among

LARGEST_DEGREE = 255
SHORT = {"inductive-quad": "IQ", "paley": "Paley", "complete": "K"}
DESIGNED = ("inductive-quad", "paley", "complete")
WITH_CLASSES = ("inductive-quad", "paley", "complete", "cayley")
"""Supernodes of which every PolarStar has constructed classes; those of BDF have too few links."""


class PolarStar(Family):
    """The family of ER_q * supernode, diameter 3."""

    name = "polarstar"
    parameters: tuple[str, ...] = ("q", "supernode", "degree")
    place = 2
    single = by_supernodes = estimated = True

    def check(self, parameters: Parameters) -> list[Problem]:
        """The order q must be a prime power, and the supernode must exist with this degree."""
        problems = polarity.check_q(parameters["q"])
        kind, degree = parameters["supernode"], parameters["degree"]
        if kind not in SUPERNODE_KINDS:
            problems.append(not_among(str(kind), SUPERNODE_KINDS, "supernode"))
        else:
            problems += _check_degree(str(kind), degree)
        return problems

    def order(self, parameters: Parameters) -> int:
        """N = (q² + q + 1)·k for a supernode of order k."""
        q, found = _sizes(parameters)
        return order(q) * found.order

    def degree(self, parameters: Parameters) -> int:
        """Q + 1 + d'."""
        return int(parameters["q"]) + 1 + int(parameters["degree"])

    def hierarchy(self, parameters: Parameters) -> int:
        """The members of the supernode."""
        return _sizes(parameters)[1].order or 1

    def title(self, parameters: Parameters) -> str:
        """With the supernode in short: `polarstar q=11 IQ 3`."""
        kind = str(parameters["supernode"])
        return f"{self.name} q={parameters['q']} {SHORT.get(kind, kind)} {parameters['degree']}"

    def build(self, parameters: Parameters) -> Topology:
        """The star product; a vertex has the kind of its structure vertex.

        Coordinates, int32[N, 4], are those of the structure vertex and the member.
        """
        q, kind = int(parameters["q"]), str(parameters["supernode"])
        degree = int(parameters["degree"])
        supernode = supernodes.supernode(kind, degree)
        structure = PolarFly().build({"q": q})
        k = supernode.order
        member = np.tile(np.arange(k, dtype=np.int32), structure.graph.order)
        return Topology(
            family=self.name,
            parameters={"q": q, "supernode": kind, "degree": degree},
            graph=star_product(structure.graph, structure.kind == 0, supernode),
            kinds=structure.kinds,
            kind=np.repeat(structure.kind, k),
            coordinates=np.column_stack((np.repeat(structure.coordinates, k, axis=0), member)),
            endpoints=np.ones(len(member), np.bool_),
            diameter=3,
            hierarchy=k,
        )

    def headings(self, topology: Topology) -> NDArray[np.int32] | None:
        """Links inside the supernode, then those to others, however racks are filled."""
        far, k = topology.graph.padded(), topology.hierarchy
        inside = far // k == np.arange(len(far))[:, None] // k
        number = np.where(far < 0, len(far), far - inside * len(far))
        return number.astype(np.int32)

    def designs(self, radix: int) -> Iterator[Design]:
        """Every q and d' ≥ 1 of the kinds `DESIGNED` with q + 1 + d' = radix.

        Inductive-Quad of degree 0 gives the family `pn`. BDF and Cayley supernodes can be built,
        but give the largest fabric at no radix.
        """
        for q in range(2, min(radix - 2, LARGEST_Q) + 1):
            if not prime_power(q):
                continue
            for kind in DESIGNED:
                if shape(kind, radix - 1 - q) is not None:
                    yield self.member({"q": q, "supernode": kind, "degree": radix - 1 - q})

    def member(self, parameters: Parameters) -> Design:
        """The design of these parameters."""
        (q, found), degree = _sizes(parameters), int(parameters["degree"])
        bundles = q * (q + 1) ** 2 // 2 * found.order
        return self.design(
            self.degree(parameters),
            order(q) * found.order,
            3,
            parameters,
            links=bundles + order(q) * found.links + (q + 1) * found.loops,
            supernode=str(parameters["supernode"]),
            supernode_degree=degree,
            supernode_order=found.order,
        )

    def mean_distance(self, parameters: Parameters) -> float | None:
        """By `polarstar_distances`; none is known of BDF, whose members differ in degree."""
        if parameters["supernode"] == "bdf":
            return None
        pairs = self.order(parameters) * (self.order(parameters) - 1)
        return self._total(parameters) / pairs

    def utilisation(self, parameters: Parameters) -> float | None:
        """Estimated, see `_fullest`; no more than `mean_distance` where that is not known."""
        if self.mean_distance(parameters) is None:
            return None
        links = self.member(parameters).links
        return min(self._total(parameters) / (2 * links) / _fullest(parameters), 1.0)

    def _total(self, parameters: Parameters) -> int:
        """The sum of the distances of all ordered pairs."""
        nodes, links = self.order(parameters), self.member(parameters).links
        near, far = polarstar_distances(parameters, links)
        return near + 2 * far + 3 * (nodes * (nodes - 1) - near - far)

    def modules(self, parameters: Parameters) -> Iterator[Modules]:
        """Supernodes, or the supernodes of each cluster of ER_q."""
        q, found = _sizes(parameters)
        edges, loops = q * (q + 1) ** 2 // 2, (q + 1) * found.loops
        yield Modules(found.order, order(q), found.links, loose=loops, bundles=edges)
        yield fan_modules(q, found.order, found.links, found.loops)

    def routes(self, topology: Topology) -> Any:
        """See `compilers.routing.polarstar_minimal`."""
        from compilers.routing.polarstar_minimal import routes

        return routes(topology)

    def choices(
        self, tables: Any, topology: Topology, wiring: Any, forwarding: Any, module: Any
    ) -> Any:
        """Classes of whole supernodes, in fabrics that are too large for a search."""
        from compilers.spec.policy import constructs_classes

        del module
        if not constructs_classes(self, topology.parameters, topology.graph.order):
            return None
        return construction(self.name).choices(tables, topology, wiring, forwarding)

    def constructed_alternates(
        self, topology: Topology, wiring: Any, classes: int, forwarding: Any
    ) -> Any:
        """Three classes a link, in fabrics that are too large for a search."""
        from compilers.spec.policy import constructs_classes

        del forwarding
        links, order = wiring.port.shape[1], topology.graph.order
        if classes != 3 * links or not is_whole(topology):
            return None
        large = constructs_classes(self, topology.parameters, order)
        return construction(self.name).alternates(topology, links) if large else None

    def constructed_classes(self, parameters: Parameters) -> bool:
        """Whether the supernode has links enough to construct the classes."""
        return str(parameters["supernode"]) in WITH_CLASSES and int(parameters["degree"]) > 0

    def layouts(self, topology: Topology) -> Mapping[str, Any]:  # noqa: ARG002
        """A supernode a rack, or clusters of them."""
        return {"supernodes": supernode_racks, "clusters": supernode_clusters}


def _check_degree(kind: str, degree: int | str) -> list[Problem]:
    number = degree if type(degree) is int else -1
    if number <= LARGEST_DEGREE and supernodes.exists(kind, number):
        return []
    required = f"{SUPERNODE_KINDS[kind].requirement}, at most {LARGEST_DEGREE}, for {kind}"
    near = supernodes.degrees_near(kind, min(number, LARGEST_DEGREE + 1))
    usable = [str(d) for d in near if d <= LARGEST_DEGREE]
    todo = f"the nearest {'are' if len(usable) > 1 else 'is'} {' and '.join(usable)}"
    return [Problem(key="degree", required=required, given=str(degree), todo=todo)]


def _sizes(parameters: Parameters) -> tuple[int, SupernodeShape]:
    """Of parameters that pass `check`: q, and the shape of the supernode."""
    found = shape(str(parameters["supernode"]), int(parameters["degree"]))
    return int(parameters["q"]), found or SupernodeShape(0, 0, 0)


def is_whole(topology: Topology) -> bool:
    """Whether a topology has all vertices and links of a PolarStar, and no more."""
    if topology.family != PolarStar.name:
        return False
    whole = PolarStar().member(topology.parameters)
    return (topology.graph.order, topology.graph.size) == (whole.nodes, whole.links)


def polarstar_distances(parameters: Parameters, links: int) -> tuple[int, int]:
    """Ordered pairs at distance 1 and at distance 2; all others are at distance 3.

    A member at distance 2 is the one reached at a structure vertex two arcs away, or any but the
    neighbour at an adjacent structure vertex, or in the same supernode.
    """
    (q, found), degree = _sizes(parameters), int(parameters["degree"])
    n, k, arcs = order(q), found.order, q * (q + 1) ** 2
    far = (n * (n - 1) - arcs) * k + arcs * (k * k - k) + n * k * (k - 1 - degree)
    if parameters["supernode"] == "inductive-quad":
        far -= (q + 1) * k + (2 * q * q if degree % 4 == 0 else 0)
    return 2 * links, far


def _fullest(parameters: Parameters) -> float:
    """An estimate of the largest arc load: the mean over structure arcs or supernode arcs.

    A minimal path over d structure arcs, d = 1 or 2, has one more arc in a supernode unless it has
    reached the member already. Quadrics unbalance structure arcs as they do in ER_q. The resulting
    u was measured against graphs up to q = 16: 6 % too low to 8 % too high for Inductive-Quad and
    complete supernodes, at most 23 % too high for Paley.
    """
    (q, found), degree = _sizes(parameters), int(parameters["degree"])
    n, k, arcs = order(q), found.order, q * (q + 1) ** 2
    distant = n * (n - 1) - arcs
    if parameters["supernode"] == "complete":
        return max(2 * q * k, n)
    other = k - 2 if parameters["supernode"] == "inductive-quad" else k - 1
    detours = k - 1 - other
    outside = distant * k * (2 * k + detours) + arcs * k * (k + detours)
    inside = (distant + arcs) * k * other + n * k * (2 * k - 2 - degree)
    return max(outside / (arcs * k) / polarity_utilisation(q), inside / (n * k * degree))


def star_product(structure: Graph, quadric: NDArray[np.bool_], supernode: Supernode) -> Graph:
    """A copy of the supernode for every structure vertex, f between the copies of neighbours.

    Vertex (x, x') is numbered x·k + x'. Along an arc from the smaller x to the larger y, x' is
    joined to f(x'), against it to f⁻¹(x'). For an involution a quadric's self-loop becomes the
    links (x, x')–(x, f(x')). Time and memory grow with the number of links.
    """
    k = supernode.order
    around = structure.padded()
    own = np.arange(structure.order, dtype=np.int32)[:, None]
    width = around.shape[1] + 1 + supernode.degree
    table = np.full((structure.order, k, width), -1, np.int32)

    image = np.where(own < around, 0, 1)
    images = np.stack((supernode.forward, supernode.backward))
    far = around[:, None, :] * k + images[image].transpose(0, 2, 1)
    table[:, :, : around.shape[1]] = np.where(around[:, None, :] >= 0, far, -1)

    loops = supernode.loops()
    at = np.flatnonzero(quadric)[:, None]
    table[at, loops, around.shape[1]] = own[at[:, 0]] * k + supernode.forward[loops]

    inside = supernode.graph.padded()
    within = own[:, :, None] * k + inside
    table[:, :, around.shape[1] + 1 :] = np.where(inside >= 0, within, -1)
    rows = table.reshape(-1, width)
    rows.sort(axis=1)
    return Graph.from_padded(rows)


def supernode_racks(topology: Topology, start: int | None) -> Layout:
    """One rack per supernode, members in canonical order; those of quadrics have loop links."""
    del start
    count = order(int(topology.parameters["q"]))
    members = topology.graph.order // count
    vertices = np.arange(topology.graph.order, dtype=np.int32)
    return Layout(
        name="supernodes",
        rack=vertices // members,
        position=vertices % members,
        kinds=("quadric", "supernode"),
        kind=np.minimum(topology.kind[::members], 1),
        names=tuple(f"supernode{i}" for i in range(count)),
        centre=np.full(count, -1, np.int32),
    )


def supernode_clusters(topology: Topology, start: int | None) -> Layout:
    """The supernodes of each cluster of ER_q in one rack, one by one (PolarStar paper, §8)."""
    structure = fans(PolarFly().build({"q": topology.parameters["q"]}), start)
    members = topology.graph.order // len(structure.rack)
    within = np.tile(np.arange(members, dtype=np.int32), len(structure.rack))
    return Layout(
        name="clusters",
        rack=np.repeat(structure.rack, members),
        position=np.repeat(structure.position, members) * members + within,
        kinds=structure.kinds,
        kind=structure.kind,
        names=structure.names,
        centre=np.full(len(structure.names), -1, np.int32),
    )
