"""The family `polarstar`: star products of ER_q with a supernode (PolarStar paper).

Every vertex of the structure graph ER_q is replaced by a copy of the supernode, a small graph of k
members. A *structure arc* is an arc of ER_q: over it each member of one supernode is joined to one
member of the next. In formulas, n is the number of structure vertices, N = n·k that of switches,
and d' the degree of a member inside its supernode. Routes are by algebra; in fabrics that are too
large for a search, alternates and repairs are constructed by the package that registers this
(`compilers.topology.family.construction`).
"""

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
"""The largest degree of a supernode."""
SHORT_NAMES = {"inductive-quad": "IQ", "paley": "Paley", "complete": "K"}
"""Short names of supernodes in titles."""
DESIGNED_KINDS = ("inductive-quad", "paley", "complete")
"""The supernodes of `designs`: those that give the largest fabric at some radix."""
KINDS_WITH_CLASSES = ("inductive-quad", "paley", "complete", "cayley")
"""Supernodes with enough links for constructed classes; those of BDF have too few."""


class PolarStar(Family):
    """ER_q * supernode, with diameter 3."""

    name = "polarstar"
    parameters: tuple[str, ...] = ("q", "supernode", "degree")
    place = 2  # in lists of families
    single = True  # rows have one shortest path
    by_supernodes = True  # rows of remote supernodes lead to the whole supernode
    estimated = True  # `utilisation` returns an estimate

    def check(self, parameters: Parameters) -> list[Problem]:
        """Return problems unless q is a prime power and the supernode exists with this degree."""
        problems = polarity.check_q(parameters["q"])
        kind, degree = parameters["supernode"], parameters["degree"]
        if kind not in SUPERNODE_KINDS:
            problems.append(not_among(str(kind), SUPERNODE_KINDS, "supernode"))
        else:
            problems += _check_degree(str(kind), degree)
        return problems

    def order(self, parameters: Parameters) -> int:
        """Return N = (q² + q + 1)·k for a supernode of k members."""
        q, supernode = _sizes(parameters)
        return order(q) * supernode.order

    def degree(self, parameters: Parameters) -> int:
        """Return q + 1 + d'."""
        return int(parameters["q"]) + 1 + int(parameters["degree"])

    def hierarchy(self, parameters: Parameters) -> int:
        """Return the number of members of the supernode; 1 if no such supernode exists."""
        return _sizes(parameters)[1].order or 1

    def title(self, parameters: Parameters) -> str:
        """Return the title with a short name of the supernode: `polarstar q=11 IQ 3`."""
        kind = str(parameters["supernode"])
        short = SHORT_NAMES.get(kind, kind)
        return f"{self.name} q={parameters['q']} {short} {parameters['degree']}"

    def build(self, parameters: Parameters) -> Topology:
        """Build the star product; a vertex has the kind of its structure vertex.

        Coordinates, int32[N, 4], are the vector of the structure vertex, and the member.
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
        """Return a sort key for each link: links inside the supernode first, then all others."""
        far, k = topology.graph.padded(), topology.hierarchy
        switches = len(far)
        is_inside = far // k == np.arange(switches)[:, None] // k
        # The key is the neighbour's vertex. It is made negative for links inside the supernode,
        # and where there is no link it is N, which is greater than any vertex.
        sort_key = np.where(far < 0, switches, far - is_inside * switches)
        return sort_key.astype(np.int32)

    def symmetries(self, topology: Topology) -> Iterator[NDArray[np.int32]]:
        """Yield automorphisms of ER_q, by which supernodes move and members keep their numbers.

        Members of neighbour supernodes are joined by a bijection f (`star_product`). The
        automorphisms keep these links only if f is its own inverse, so else there are none.
        """
        parameters, k = topology.parameters, topology.hierarchy
        kind, degree = str(parameters["supernode"]), int(parameters["degree"])
        if supernodes.supernode(kind, degree).involution:
            for structure in polarity.symmetries(int(parameters["q"])):
                moved = structure[:, None] * k + np.arange(k, dtype=np.int32)
                yield moved.ravel().astype(np.int32)

    def designs(self, radix: int) -> Iterator[Design]:
        """Yield a design for every q and d' ≥ 1 of `DESIGNED_KINDS` with q + 1 + d' = radix.

        Inductive-Quad of degree 0 gives the family `pn`. BDF and Cayley supernodes can be built,
        but there is no radix at which they give the largest fabric.
        """
        for q in range(2, min(radix - 2, LARGEST_Q) + 1):
            if not prime_power(q):
                continue
            for kind in DESIGNED_KINDS:
                if shape(kind, radix - 1 - q) is not None:
                    yield self.member({"q": q, "supernode": kind, "degree": radix - 1 - q})

    def member(self, parameters: Parameters) -> Design:
        """Return the design with these parameters."""
        q, supernode = _sizes(parameters)
        between = q * (q + 1) ** 2 // 2 * supernode.order  # the links of structure edges
        inside = order(q) * supernode.links
        loop_links = (q + 1) * supernode.loops  # those of quadrics' supernodes
        return self.design(
            radix=self.degree(parameters),
            nodes=order(q) * supernode.order,
            diameter=3,
            parameters=parameters,
            links=between + inside + loop_links,
            supernode=str(parameters["supernode"]),
            supernode_degree=int(parameters["degree"]),
            supernode_order=supernode.order,
        )

    def mean_distance(self, parameters: Parameters) -> float | None:
        """Return the mean by `polarstar_distances`; None for BDF, where degrees differ."""
        if parameters["supernode"] == "bdf":
            return None
        pairs = self.order(parameters) * (self.order(parameters) - 1)
        return self._total_distance(parameters) / pairs

    def utilisation(self, parameters: Parameters) -> float | None:
        """Return an estimate of u by `_largest_load`; None where no mean distance is known."""
        if self.mean_distance(parameters) is None:
            return None
        links = self.member(parameters).links
        mean_load = self._total_distance(parameters) / (2 * links)
        return min(mean_load / _largest_load(parameters), 1.0)

    def _total_distance(self, parameters: Parameters) -> int:
        """Return the sum of the distances of all ordered pairs."""
        nodes, links = self.order(parameters), self.member(parameters).links
        one_link, two_links = polarstar_distances(parameters, links)
        three_links = nodes * (nodes - 1) - one_link - two_links
        return one_link + 2 * two_links + 3 * three_links

    def modules(self, parameters: Parameters) -> Iterator[Modules]:
        """Yield the supernodes, then clusters of supernodes as ER_q has clusters of vertices."""
        q, supernode = _sizes(parameters)
        yield Modules(
            size=supernode.order,
            count=order(q),
            inside=supernode.links,
            loose=(q + 1) * supernode.loops,
            bundles=q * (q + 1) ** 2 // 2,
        )
        yield fan_modules(q, supernode.order, supernode.links, supernode.loops)

    def routes(self, topology: Topology) -> Any:
        """Return routes by algebra (`compilers.routing.polarstar_minimal`)."""
        from compilers.routing.polarstar_minimal import routes

        return routes(topology)

    def choices(
        self, tables: Any, topology: Topology, wiring: Any, forwarding: Any, module: Any
    ) -> Any:
        """Construct classes in fabrics that are too large for a search; None for others."""
        from compilers.spec.policy import constructed_instead_of_searched

        del module
        if not constructed_instead_of_searched(self, topology.parameters, topology.graph.order):
            return None
        return construction(self.name).with_alternates_and_repairs(
            tables, topology, wiring, forwarding
        )

    def constructed_alternates(
        self, topology: Topology, wiring: Any, classes: int, forwarding: Any
    ) -> Any:
        """Return constructed alternates where there are three classes a link; None for others.

        Only fabrics that are too large for a search have them.
        """
        from compilers.spec.policy import constructed_instead_of_searched

        del forwarding
        most_links, order = wiring.port.shape[1], topology.graph.order
        if classes != 3 * most_links or not is_whole(topology):
            return None
        large = constructed_instead_of_searched(self, topology.parameters, order)
        return construction(self.name).alternates(topology, most_links) if large else None

    def constructed_classes(self, parameters: Parameters) -> bool:
        """Whether the supernode has links enough to construct the classes."""
        return str(parameters["supernode"]) in KINDS_WITH_CLASSES and int(parameters["degree"]) > 0

    def layouts(self, topology: Topology) -> Mapping[str, Any]:  # noqa: ARG002
        """Return the layouts with one supernode in each rack, and with clusters of supernodes."""
        return {"supernodes": supernode_racks, "clusters": supernode_clusters}


def _check_degree(kind: str, degree: int | str) -> list[Problem]:
    """Return the problem of a degree for which this kind of supernode does not exist."""
    number = (
        degree if type(degree) is int else -1
    )  # a text is no degree: the nearest to -1 are named
    if number <= LARGEST_DEGREE and supernodes.exists(kind, number):
        return []
    required = f"{SUPERNODE_KINDS[kind].requirement}, at most {LARGEST_DEGREE}, for {kind}"
    nearest = supernodes.degrees_near(kind, min(number, LARGEST_DEGREE + 1))
    usable = [str(near_degree) for near_degree in nearest if near_degree <= LARGEST_DEGREE]
    todo = f"the nearest {'are' if len(usable) > 1 else 'is'} {' and '.join(usable)}"
    return [Problem(key="degree", required=required, given=str(degree), todo=todo)]


def _sizes(parameters: Parameters) -> tuple[int, SupernodeShape]:
    """Return q and the size of the supernode: all zeros if no such supernode exists."""
    size = shape(str(parameters["supernode"]), int(parameters["degree"]))
    return int(parameters["q"]), size or SupernodeShape(0, 0, 0)


def is_whole(topology: Topology) -> bool:
    """Whether a topology has all vertices and links of a PolarStar, and no more."""
    if topology.family != PolarStar.name:
        return False
    whole = PolarStar().member(topology.parameters)
    return (topology.graph.order, topology.graph.size) == (whole.nodes, whole.links)


def polarstar_distances(parameters: Parameters, links: int) -> tuple[int, int]:
    """Count the ordered pairs at distance 1 and at distance 2; all others are at distance 3.

    Args:
        parameters: of a PolarStar.
        links: the number of its links.
    """
    (q, supernode), degree = _sizes(parameters), int(parameters["degree"])
    n, k, arcs = order(q), supernode.order, q * (q + 1) ** 2
    # Ordered pairs at distance 2. One member of each supernode that is two structure arcs away:
    over_two_arcs = (n * (n - 1) - arcs) * k
    # All members of a neighbour supernode but the neighbour itself:
    in_next_supernode = arcs * k * (k - 1)
    # All members of the same supernode that are no neighbours:
    in_same_supernode = n * k * (k - 1 - degree)
    two_links = over_two_arcs + in_next_supernode + in_same_supernode
    if parameters["supernode"] == "inductive-quad":
        # Each member of a quadric's supernode has a loop link, so one more member is at distance 1.
        two_links -= (q + 1) * k
        if degree % 4 == 0:
            # In each of the q² other supernodes, one pair of members is at distance 3.
            two_links -= 2 * q * q
    return 2 * links, two_links


def _largest_load(parameters: Parameters) -> float:
    """Estimate the largest load of an arc: the mean over structure arcs or supernode arcs.

    The load is the number of ordered pairs of members whose minimal path takes the arc. A minimal
    path over d structure arcs, d = 1 or 2, has one more arc in a supernode unless it has reached
    the member already. Quadrics unbalance structure arcs as they do in ER_q. The resulting u was
    measured against graphs up to q = 16: 6 % too low to 8 % too high for Inductive-Quad and
    complete supernodes, at most 23 % too high for Paley.

    For complete supernodes the loads are known. An arc of ER_q next to a quadric is on the minimal
    paths of 2q pairs of structure vertices, each of which has k pairs of members on the copy of the
    arc: 2qk. An arc in a supernode carries a pair of members for each of the n destination
    supernodes: n.
    """
    (q, supernode), degree = _sizes(parameters), int(parameters["degree"])
    n, k, arcs = order(q), supernode.order, q * (q + 1) ** 2
    if parameters["supernode"] == "complete":
        return max(2 * q * k, n)
    # Members of another supernode that a path reaches over an arc within a supernode, and those
    # that it reaches by a detour over one more structure arc.
    by_inner_arc = k - 2 if parameters["supernode"] == "inductive-quad" else k - 1
    by_detour = k - 1 - by_inner_arc
    # The arcs that all paths from one member take to the k members of another supernode: structure
    # arcs, by distance of the supernodes, and supernode arcs.
    structure_arcs_far, structure_arcs_next = 2 * k + by_detour, k + by_detour
    # The arcs to the members of the same supernode: d' at distance 1, and all others at distance 2.
    to_same_supernode = degree + 2 * (k - 1 - degree)
    far_pairs = n * (n - 1) - arcs  # ordered pairs of structure vertices that are two arcs apart
    structure_load = far_pairs * k * structure_arcs_far + arcs * k * structure_arcs_next
    supernode_load = (far_pairs + arcs) * k * by_inner_arc + n * k * to_same_supernode
    mean_of_structure_arc = structure_load / (arcs * k)
    mean_of_supernode_arc = supernode_load / (n * k * degree)
    return max(mean_of_structure_arc / polarity_utilisation(q), mean_of_supernode_arc)


def star_product(structure: Graph, quadric: NDArray[np.bool_], supernode: Supernode) -> Graph:
    """Return the star product: a copy of the supernode for every structure vertex.

    Member x' of the supernode at structure vertex x is (x, x'), with the number x·k + x'. Along an
    arc from the smaller x to the larger y, x' is joined to f(x'), against it to f⁻¹(x'). For an
    involution the self-loop of a quadric becomes the links (x, x')–(x, f(x')). Time and memory grow
    with the number of links.

    Args:
        structure: the structure graph, without loops.
        quadric: bool[n], which of its vertices have a self-loop.
        supernode: of k members.
    """
    k = supernode.order
    structure_neighbours = structure.padded()  # int32[n, K]; -1 for none
    most_arcs = structure_neighbours.shape[1]
    x = np.arange(structure.order, dtype=np.int32)[:, None]
    # int32[n, k, K + 1 + d'], the neighbours of (x, x'): over K structure arcs, over the loop link,
    # and within the supernode.
    neighbours = np.full((structure.order, k, most_arcs + 1 + supernode.degree), -1, np.int32)

    bijections = np.stack((supernode.forward, supernode.backward))
    bijection_of_arc = np.where(x < structure_neighbours, 0, 1)
    image = bijections[bijection_of_arc].transpose(0, 2, 1)  # int32[n, k, K]
    over_arcs = structure_neighbours[:, None, :] * k + image
    is_arc = structure_neighbours[:, None, :] >= 0
    neighbours[:, :, :most_arcs] = np.where(is_arc, over_arcs, -1)

    looped_members = supernode.loops()
    looped = np.flatnonzero(quadric)[:, None]
    over_loops = x[looped[:, 0]] * k + supernode.forward[looped_members]
    neighbours[looped, looped_members, most_arcs] = over_loops

    member_neighbours = supernode.graph.padded()
    within = x[:, :, None] * k + member_neighbours
    neighbours[:, :, most_arcs + 1 :] = np.where(member_neighbours >= 0, within, -1)
    rows = neighbours.reshape(structure.order * k, -1)
    rows.sort(axis=1)
    return Graph.from_padded(rows)


def supernode_racks(topology: Topology, start: int | None) -> Layout:
    """Return the layout with one supernode in each rack, members in canonical order.

    Racks of quadrics are of another kind, as they have loop links.
    """
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
    """Return the layout with the supernodes of each cluster of ER_q in one rack (§8).

    Supernodes are in the order of the cluster's vertices, one after the other.
    """
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
