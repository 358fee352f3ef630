"""The family `polarfly`: the polarity graphs ER_q (PolarFly paper).

Vertices are the points of a projective plane over the field of q elements; two are joined if their
dot product is 0. A *quadric* is orthogonal to itself. Routes, alternates and repairs are by
algebra. `compilers.topology.polarity` has the graph; here are its formulas and its layouts, fans
and stars.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from math import comb
from typing import Any

import numpy as np
from numpy.typing import NDArray

from compilers.topology import polarity
from compilers.topology.family import Design, Family, Modules
from compilers.topology.field import prime_power
from compilers.topology.labelled_graph import Parameters, Topology
from compilers.topology.layout import Layout, places_in
from compilers.topology.polarity import (
    VERTEX_KINDS,
    affine,
    check_q,
    cross,
    label_in_fan,
    order,
    points,
    structure,
)
from inventory.problems import InputError, Problem

QUADRIC = VERTEX_KINDS.index("W")
"""The kind of quadrics. All other vertices are *ordinary*."""
LEAST_SPREAD = 3
"""The smallest q at which a switch has two links for marked packets."""
LEAST_NEAR_VALIANT = 5
"""The smallest q at which `spread` guarantees at least .85 of what `valiant` does. The part is .75
at q = 3, .82 at 4, .86 at 5, .91 at 7."""


class PolarFly(Family):
    """ER_q, for every prime power q."""

    name = "polarfly"
    parameters: tuple[str, ...] = ("q",)
    place = 1  # in lists of families
    polarity = True  # members are ER_q
    constructed = True  # alternates and repairs are by algebra, in a fabric of any size
    single = True  # pairs have one shortest path
    grows_by_clusters = True  # by copies of fans or of the quadrics
    holds_edges = False  # edges are made in blocks

    def check(self, parameters: Parameters) -> list[Problem]:
        """Return a problem unless the order q is a prime power."""
        return check_q(parameters["q"])

    def order(self, parameters: Parameters) -> int:
        """Return N = q² + q + 1."""
        return order(int(parameters["q"]))

    def build(self, parameters: Parameters) -> Topology:
        """Build ER_q, with quadrics W, their neighbours V1, and all other vertices V2."""
        q = int(parameters["q"])
        graph, quadric = structure(q)
        kind = np.full(graph.order, VERTEX_KINDS.index("V2"), np.uint8)
        for vertex in np.flatnonzero(quadric).tolist():
            kind[graph.neighbours(vertex)] = VERTEX_KINDS.index("V1")
        kind[quadric] = QUADRIC
        return Topology(
            family=self.name,
            parameters={"q": q},
            graph=graph,
            kinds=VERTEX_KINDS,
            kind=kind,
            coordinates=points(q),
            endpoints=np.ones(graph.order, np.bool_),
            diameter=2,
        )

    def degree(self, parameters: Parameters) -> int:
        """Return q + 1."""
        return int(parameters["q"]) + 1

    def designs(self, radix: int) -> Iterator[Design]:
        """Yield ER_(radix-1) if radix - 1 is a prime power."""
        q = radix - 1
        if prime_power(q):
            yield self.design(radix, order(q), 2, {"q": q}, links=q * (q + 1) ** 2 // 2)

    def mean_distance(self, parameters: Parameters) -> float:
        """Return the mean distance: 1 for the q(q + 1)² ordered pairs of neighbours, else 2."""
        q = int(parameters["q"])
        return 2 - q * (q + 1) ** 2 / (order(q) * (order(q) - 1))

    def utilisation(self, parameters: Parameters) -> float:
        """Return u of ER_q, which is exact (`polarity_utilisation`)."""
        return polarity_utilisation(int(parameters["q"]))

    def symmetries(self, topology: Topology) -> Iterator[NDArray[np.int32]]:
        """Yield automorphisms of ER_q."""
        return polarity.symmetries(int(topology.parameters["q"]))

    def marked_share(self, parameters: Parameters, hosts: int) -> tuple[float, bool] | None:
        """Return (q² - 1)/(2p(2q - 1)) for p hosts a switch, and whether some permutation gets no
        more.

        `compilers.routing.marked_spread` has the paths of these packets. If q is even, the share is
        exact. If q is odd, tables carry a little more: 1.1 % at q = 3, .2 % at 5, and ever less.
        """
        q = int(parameters["q"])
        share = (q * q - 1) / (2 * hosts * (2 * q - 1))
        return (share, q % 2 == 0) if q >= LEAST_SPREAD else None

    def marks_suit_any_traffic(self, parameters: Parameters) -> bool:
        """Return whether `spread` guarantees at least .85 of what `valiant` does."""
        return int(parameters["q"]) >= LEAST_NEAR_VALIANT

    def modules(self, parameters: Parameters) -> Iterator[Modules]:
        """Yield the fans."""
        yield fan_modules(int(parameters["q"]), 1, 0, 0)

    def edge_blocks(self, parameters: Parameters) -> Iterator[NDArray[np.int32]]:
        """Yield the edges of ER_q, each block computed by itself."""
        return polarity.edge_blocks(int(parameters["q"]))

    def routes(self, topology: Topology) -> Any:
        """Return routes by algebra (`compilers.routing.plane_minimal`)."""
        from compilers.routing.plane_minimal import polarfly_routes

        return polarfly_routes(topology)

    def choices(
        self, tables: Any, topology: Topology, wiring: Any, forwarding: Any, module: Any
    ) -> Any:
        """Add Compact Valiant's alternates, bounces over the conic, and protection, by algebra."""
        from compilers.routing.conic_bounces import conic_bounces
        from compilers.routing.plane_choices import (
            with_plane_alternates,
            with_plane_bounces,
            with_plane_repairs,
        )
        from compilers.routing.split_classes import split_direct

        tables, bounce_links = split_direct(tables, wiring), None
        if forwarding.bounces:
            bounce_links = conic_bounces(int(topology.parameters["q"]), wiring)
        if forwarding.has_alternates:
            tables = with_plane_alternates(tables, wiring, forwarding)
        if forwarding.repairs:
            return with_plane_repairs(tables, wiring, bounce_links, module)
        return tables if bounce_links is None else with_plane_bounces(tables, wiring, bounce_links)

    def constructed_alternates(
        self, topology: Topology, wiring: Any, classes: int, forwarding: Any
    ) -> Any:
        """Return alternates by algebra, for a whole ER_q with two classes a link."""
        from compilers.routing.plane_choices import alternate_links

        whole = polarity.is_whole(topology) and classes == 2 * wiring.port.shape[1]
        return alternate_links(wiring, forwarding) if whole else None

    def layouts(self, topology: Topology) -> Mapping[str, Any]:
        """Return the layouts `fans` and, for even q, `stars`."""
        even = int(topology.parameters["q"]) % 2 == 0
        return {"fans": fans, "stars": stars} if even else {"fans": fans}

    def headings(self, topology: Topology) -> NDArray[np.int32] | None:
        """Return a number for each link of a switch, the same in all fans.

        These are the numbers of `polarity.headings`. None if links of ER_q are missing.
        """
        if not polarity.is_whole(topology):
            return None
        return polarity.headings(_q(topology), topology.graph.padded())


def polarity_utilisation(q: int) -> float:
    """Return u of ER_q, the mean load of an arc over the largest.

    Arcs at a quadric carry 2q pairs, all others 2q - 1 (Projective Networks paper, Theorem 3.10).
    """
    return (2 * q * q + q + 1) / (2 * q * (q + 1))


def fan_modules(q: int, scale: int, inside: int, loop: int) -> Modules:
    """Return the sizes of the clusters of a fabric made from ER_q (PolarFly paper, §V).

    A cluster is a fan: an ordinary neighbour of a quadric P0, its centre, with the ordinary
    neighbours of the centre, which are joined in pairs. One more cluster has the quadrics. For even
    q one of the ordinary neighbours of P0 is the *nucleus*, which is joined to all quadrics, and is
    in their cluster.

    Args:
        q: the order of the field.
        scale: the nodes for each vertex of ER_q, and the links for each edge.
        inside: the links among the nodes of one vertex.
        loop: more links among the nodes of a quadric.
    """
    if q % 2 == 0:
        fan_vertices = q + 1  # the centre, and q around it
        fan_edges = q + q // 2  # those of the centre, and those of the pairs
        fans_count = q - 1  # one for each ordinary neighbour of P0 but the nucleus
        edges_between_fans = q
        last_vertices = q + 2  # the quadrics and the nucleus
        last_edges = q + 1  # those of the nucleus
    else:
        fan_vertices = q  # the centre, and q - 1 around it; two of its neighbours are quadrics
        fan_edges = 3 * (q - 1) // 2  # those of the centre, and those of the pairs
        fans_count = q  # one for each neighbour of P0, which are all ordinary
        edges_between_fans = q - 2
        last_vertices = q + 1  # the quadrics
        last_edges = 0  # no two quadrics are joined
    return Modules(
        size=scale * fan_vertices,
        count=fans_count,
        inside=scale * fan_edges + fan_vertices * inside,
        between=scale * edges_between_fans,
        rest=scale * last_vertices,
        loose=scale * last_edges + last_vertices * inside + (q + 1) * loop,
        bundles=comb(fans_count + 1, 2),
    )


def triangles(topology: Topology) -> NDArray[np.int32]:
    """Return the triangles of ER_q, int32[C(q+1, 3), 3], vertices ascending.

    Each link between ordinary vertices u, v is in one, whose third vertex is u×v. So each triangle
    is found at its three links, and kept at the link of its two smallest vertices.
    """
    is_ordinary = (topology.kind[topology.graph.edges()] != QUADRIC).all(axis=1)
    u, v = topology.graph.edges()[is_ordinary].T
    corners = np.stack((u, v, cross(_q(topology), u, v)), axis=1)
    return corners[corners[:, 2] > corners[:, 1]]


def fans(topology: Topology, start: int | None) -> Layout:
    """Return the layout of Algorithm 1 of the PolarFly paper.

    The ordinary neighbours of a quadric P0 are the centres of fans, and the ordinary neighbours of
    a centre are around it. Rack 0 holds the quadrics and, for even q, the nucleus, which would be a
    fan of its own (layout A of the paper). In the affine coordinates of `polarity.affine`, vertex
    (t, w) of fan t has its position by w, for even q by w/t². So all fans have the same links
    inside, and links between two fans depend only on the difference of their t, for even q on the
    ratio.

    Args:
        topology: a PolarFly.
        start: the quadric P0; None for the first.

    Raises:
        InputError: the start is no quadric.
    """
    q, quadrics = _q(topology), topology.of_kind("W")
    p0 = _quadric(quadrics, start)
    nucleus = _nucleus(q, topology)
    neighbours_of_p0 = topology.graph.neighbours(p0)
    centres = neighbours_of_p0[~np.isin(neighbours_of_p0, nucleus)]
    rack = _racks_around(topology, centres)
    t, w, _ = affine(q, p0)
    label = label_in_fan(q, t, w)
    if q % 2:
        # Each quadric but P0 is in the affine plane: it is ordered by its t.
        label = np.where(rack == 0, t, label)
    label[p0] = q  # the last of its rack
    return _layout(
        "fans",
        rack,
        label,
        kinds=("quadrics", "fan"),
        names=("quadrics", *(f"fan{i}" for i in range(1, len(centres) + 1))),
        centre=np.concatenate((nucleus if len(nucleus) else [-1], centres)),
        mate=_mates(q, rack, np.concatenate(([-1], centres))),
    )


def _racks_around(topology: Topology, centres: NDArray[np.int32]) -> NDArray[np.int32]:
    """Return i + 1 for the i-th centre and its ordinary neighbours, 0 for others, int32[N]."""
    rack = np.zeros(topology.graph.order, np.int32)
    around = topology.graph.padded()[centres]
    number = np.broadcast_to(np.arange(1, len(centres) + 1)[:, None], around.shape)
    is_ordinary = (around >= 0) & (topology.kind[around] != QUADRIC)
    rack[around[is_ordinary]] = number[is_ordinary]
    rack[centres] = number[:, 0]
    return rack


def _mates(q: int, rack: NDArray[np.int32], centre: NDArray[np.int64]) -> NDArray[np.int32]:
    """Return the mate of each vertex, int32[N]: the third vertex of its triangle with its centre.

    Of centres and of vertices in no fan it is 0, and means nothing.

    Args:
        q: the order of the field.
        rack: int32[N], the rack of each vertex; 0 for vertices in no fan.
        centre: int64[R], the centre of each rack.
    """
    vertex = np.arange(len(rack), dtype=np.int32)
    mate = np.zeros(len(rack), np.int32)
    around_centre = (rack > 0) & (vertex != centre[rack])
    centre_of = centre[rack[around_centre]].astype(np.int32)
    mate[around_centre] = cross(q, vertex[around_centre], centre_of)
    return mate


def stars(topology: Topology, start: int | None) -> Layout:
    """Return layout B of even q: the nucleus alone, and each quadric with its q-1 other neighbours.

    The neighbours of a quadric are ordered by their t: in every pair of stars, (t, w) and (s, v)
    are joined where st = w + v.
    """
    del start
    q, quadrics = _q(topology), topology.of_kind("W").astype(np.int32)
    nucleus = _nucleus(q, topology)
    rack = np.zeros(topology.graph.order, np.int32)
    # int32[q + 1, q], the neighbours of quadrics: the nucleus, and q - 1 others.
    neighbours = topology.graph.padded()[quadrics, :q]
    rack[neighbours] = rack[quadrics, None] = np.arange(1, q + 2)[:, None]
    rack[nucleus] = 0
    return _layout(
        "stars",
        rack,
        affine(q)[0],
        kinds=("nucleus", "star"),
        names=("nucleus", *(f"star{i}" for i in range(1, q + 2))),
        centre=np.concatenate((nucleus, quadrics)),
    )


def _layout(
    name: str,
    rack: NDArray[np.int32],
    label: NDArray[np.int32],
    kinds: tuple[str, str],
    names: tuple[str, ...],
    centre: NDArray[np.integer],
    mate: NDArray[np.int32] | None = None,
) -> Layout:
    """Return a layout whose first rack is the only one of the first kind.

    In a rack the centre comes first, then the vertices by label. Two vertices in one triangle with
    the centre are side by side.

    Args:
        name: the name of the layout.
        rack: int32[N], the rack of each vertex.
        label: int32[N], the order within a rack.
        kinds: the kind of the first rack, and that of all others.
        names: the name of each rack.
        centre: int[R], the centre of each rack, -1 for none.
        mate: int32[N], the third vertex of each triangle with a centre; None without triangles.
    """
    vertex = np.arange(len(rack), dtype=np.int32)
    # Mates are sorted by the lower of their labels first, so that they are side by side.
    lower = label if mate is None else np.where(rack == 0, label, np.minimum(label, label[mate]))
    is_centre = vertex == centre[rack]
    position = places_in(rack, label, lower, ~is_centre)
    kind = np.zeros(len(names), np.uint8)
    kind[1:] = 1
    return Layout(
        name,
        rack=rack,
        position=position,
        kinds=kinds,
        kind=kind,
        names=names,
        centre=np.asarray(centre, np.int32),
    )


def _quadric(quadrics: NDArray[np.int64], start: int | None) -> int:
    """Return the quadric to start from: `start`, or the first one.

    Raises:
        InputError: the start is no quadric.
    """
    if start is None:
        return int(quadrics[0])
    if start in quadrics:
        return start
    shown = ", ".join(map(str, quadrics[:8])) + (", …" if len(quadrics) > 8 else "")
    raise InputError.of(key="start", required=f"a quadric: {shown}", given=str(start))


def _nucleus(q: int, topology: Topology) -> NDArray[np.int32]:
    """Return the nucleus of even q, int32[1]: (1, 1, 1), whose neighbours are the quadrics.

    Empty for odd q.
    """
    ones = (topology.coordinates == 1).all(axis=1)
    return np.flatnonzero(ones & (q % 2 == 0)).astype(np.int32)


def _q(topology: Topology) -> int:
    """Return q of a PolarFly."""
    return int(topology.parameters["q"])
