"""PolarFly, the family of ER_q: routes, alternates and repairs are by algebra."""

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
    order,
    points,
    scaled,
    structure,
)
from inventory.problems import InputError, Problem

LEAST_SPREAD = 3
"""The smallest q at which a switch has two links for marked packets."""
EXACT_SPREAD = 5
"""The q from which some permutation loads links as much as the formula for marks says."""


class PolarFly(Family):
    """The family of ER_q for every prime power q."""

    name = "polarfly"
    parameters: tuple[str, ...] = ("q",)
    place = 1
    polarity = constructed = single = grows_by_clusters = True
    holds_edges = False

    def check(self, parameters: Parameters) -> list[Problem]:
        """The order q must be a prime power."""
        return check_q(parameters["q"])

    def order(self, parameters: Parameters) -> int:
        """N = q² + q + 1."""
        return order(int(parameters["q"]))

    def build(self, parameters: Parameters) -> Topology:
        """ER_q with its quadrics W, their neighbours V1 and the rest V2."""
        q = int(parameters["q"])
        graph, quadric = structure(q)
        kind = np.full(graph.order, 2, np.uint8)
        for vertex in np.flatnonzero(quadric).tolist():
            kind[graph.neighbours(vertex)] = 1
        kind[quadric] = 0
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
        """Q + 1."""
        return int(parameters["q"]) + 1

    def designs(self, radix: int) -> Iterator[Design]:
        """ER_(radix-1) where radix-1 is a prime power."""
        q = radix - 1
        if prime_power(q):
            yield self.design(radix, order(q), 2, {"q": q}, links=q * (q + 1) ** 2 // 2)

    def mean_distance(self, parameters: Parameters) -> float:
        """2, but for the q(q + 1)² ordered pairs of neighbours."""
        q = int(parameters["q"])
        return 2 - q * (q + 1) ** 2 / (order(q) * (order(q) - 1))

    def utilisation(self, parameters: Parameters) -> float:
        """Arcs at a quadric carry 2q pairs, all others 2q - 1 (Theorem 3.10)."""
        return polarity_utilisation(int(parameters["q"]))

    def symmetries(self, topology: Topology) -> Iterator[NDArray[np.int32]]:
        """Those of the polarity."""
        return polarity.symmetries(int(topology.parameters["q"]))

    def marked_share(self, parameters: Parameters, hosts: int) -> tuple[float, bool] | None:
        """See `compilers.routing.marked_spread`; from q = 5 on some permutation gets no more."""
        q = int(parameters["q"])
        share = (q * q - 1) / (2 * hosts * (2 * q - 1))
        return (share, q >= EXACT_SPREAD) if q >= LEAST_SPREAD else None

    def modules(self, parameters: Parameters) -> Iterator[Modules]:
        """Fans."""
        yield fan_modules(int(parameters["q"]), 1, 0, 0)

    def edge_blocks(self, parameters: Parameters) -> Iterator[NDArray[np.int32]]:
        """The edges of ER_q, which are not held together."""
        return polarity.edge_blocks(int(parameters["q"]))

    def routes(self, topology: Topology) -> Any:
        """See `compilers.routing.plane_minimal`."""
        from compilers.routing.plane_minimal import polarfly_routes

        return polarfly_routes(topology)

    def choices(
        self, tables: Any, topology: Topology, wiring: Any, forwarding: Any, module: Any
    ) -> Any:
        """Compact Valiant, bounces over the conic, and protection, all by algebra."""
        from compilers.routing.plane_bounces import conic_bounces
        from compilers.routing.plane_choices import compact_valiant, polarfly, with_bounces
        from compilers.routing.split_classes import split_direct

        tables, bounced = split_direct(tables, wiring), None
        if forwarding.bounces:
            bounced = conic_bounces(int(topology.parameters["q"]), wiring)
        if forwarding.has_alternates:
            tables = compact_valiant(tables, wiring, forwarding)
        if forwarding.repairs:
            return polarfly(tables, wiring, bounced, module)
        return tables if bounced is None else with_bounces(tables, wiring, bounced)

    def constructed_alternates(
        self, topology: Topology, wiring: Any, classes: int, forwarding: Any
    ) -> Any:
        """Two classes a link."""
        from compilers.routing.plane_choices import alternate_links

        whole = polarity.is_whole(topology) and classes == 2 * wiring.port.shape[1]
        return alternate_links(wiring, forwarding) if whole else None

    def layouts(self, topology: Topology) -> Mapping[str, Any]:
        """Fans around quadrics; stars where q is even."""
        even = int(topology.parameters["q"]) % 2 == 0
        return {"fans": fans, "stars": stars} if even else {"fans": fans}

    def headings(self, topology: Topology) -> NDArray[np.int32] | None:
        """Numbers of links that are the same in all fans."""
        if not polarity.is_whole(topology):
            return None
        return polarity.headings(_q(topology), topology.graph.padded())


def polarity_utilisation(q: int) -> float:
    """The u of ER_q: arcs at a quadric carry 2q pairs, all others 2q - 1 (Theorem 3.10)."""
    return (2 * q * q + q + 1) / (2 * q * (q + 1))


def fan_modules(q: int, scale: int, inside: int, loop: int) -> Modules:
    """The fans of ER_q, with `scale` nodes for each vertex and `scale` links for each edge.

    inside: links among the nodes of a vertex; loop: further links at a quadric. The clusters are
    those of PolarFly paper §V; for even q the nucleus is among the quadrics.
    """
    even = q % 2 == 0
    size = q + even
    fan = q + q // 2 if even else 3 * (q - 1) // 2
    centre = q + 1 if even else 0
    count = q - even
    rest = q + 1 + even
    loose = scale * centre + rest * inside + (q + 1) * loop
    between = (q if even else q - 2) * scale
    within = scale * fan + size * inside
    return Modules(
        scale * size, count, within, between, scale * rest, loose, bundles=comb(count + 1, 2)
    )


def triangles(topology: Topology) -> NDArray[np.int32]:
    """int32[C(q+1, 3), 3], the triangles of ER_q, vertices ascending.

    Each link between ordinary vertices u, v is in one, with the apex u×v.
    """
    ordinary = (topology.kind[topology.graph.edges()] != 0).all(axis=1)
    u, v = topology.graph.edges()[ordinary].T
    found = np.stack((u, v, cross(_q(topology), u, v)), axis=1)
    return found[found[:, 2] > found[:, 1]]


def fans(topology: Topology, start: int | None) -> Layout:
    """Algorithm 1 from a quadric: its ordinary neighbours are centres, with theirs around them.

    C0 holds the quadrics and, for even q, the nucleus, which would be a fan of its own (layout A).
    In affine coordinates a vertex (t, w) of fan t has its position by w, for even q by w/t², so
    fans are the same inside, and links between two go by the difference or ratio of their t alone.
    """
    q, quadrics = _q(topology), topology.of_kind("W")
    first = _quadric(quadrics, start)
    nucleus = _nucleus(q, topology)
    near = topology.graph.neighbours(first)
    centres = near[~np.isin(near, nucleus)]
    rack = _around(topology, centres)
    t, w, _ = affine(q, first)
    label = scaled(q, t, w)
    if q % 2:
        label = np.where(rack == 0, t, label)
    label[first] = q
    return _layout(
        "fans",
        rack,
        label,
        kinds=("quadrics", "fan"),
        names=("quadrics", *(f"fan{i}" for i in range(1, len(centres) + 1))),
        centre=np.concatenate((nucleus if len(nucleus) else [-1], centres)),
        mate=_mates(q, rack, np.concatenate(([-1], centres))),
    )


def _around(topology: Topology, centres: NDArray[np.int32]) -> NDArray[np.int32]:
    """int32[N]: i + 1 for the i-th centre and its ordinary neighbours, 0 for the rest."""
    rack = np.zeros(topology.graph.order, np.int32)
    near = topology.graph.padded()[centres]
    numbered = np.broadcast_to(np.arange(1, len(centres) + 1)[:, None], near.shape)
    ordinary = (near >= 0) & (topology.kind[near] != 0)
    rack[near[ordinary]] = numbered[ordinary]
    rack[centres] = numbered[:, 0]
    return rack


def _mates(q: int, rack: NDArray[np.int32], centre: NDArray[np.int64]) -> NDArray[np.int32]:
    """int32[N]: the third vertex of the triangle with the centre of the fan; 0 at a centre."""
    vertex = np.arange(len(rack), dtype=np.int32)
    mate = np.zeros(len(rack), np.int32)
    blade = (rack > 0) & (vertex != centre[rack])
    mate[blade] = cross(q, vertex[blade], centre[rack[blade]].astype(np.int32))
    return mate


def stars(topology: Topology, start: int | None) -> Layout:
    """Layout B of even q: the nucleus alone, and each quadric with its q-1 other neighbours.

    These are ordered by their t: (t, w) and (s, v) are joined where st = w + v, in every pair of
    stars.
    """
    del start
    q, quadrics = _q(topology), topology.of_kind("W").astype(np.int32)
    nucleus = _nucleus(q, topology)
    rack = np.zeros(topology.graph.order, np.int32)
    near = topology.graph.padded()[quadrics, :q]
    rack[near] = rack[quadrics, None] = np.arange(1, q + 2)[:, None]
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
    """A layout whose first rack is the only one of the first kind.

    In a rack the centre comes first, then the vertices by label, those of one triangle with the
    centre side by side.
    """
    vertex = np.arange(len(rack), dtype=np.int32)
    lead = label if mate is None else np.where(rack == 0, label, np.minimum(label, label[mate]))
    position = places_in(rack, label, lead, vertex != centre[rack])
    kind = np.zeros(len(names), np.uint8)
    kind[1:] = 1
    return Layout(name, rack, position, kinds, kind, names, np.asarray(centre, np.int32))


def _quadric(quadrics: NDArray[np.int64], start: int | None) -> int:
    if start is None:
        return int(quadrics[0])
    if start in quadrics:
        return start
    shown = ", ".join(map(str, quadrics[:8])) + (", …" if len(quadrics) > 8 else "")
    raise InputError.of(key="start", required=f"a quadric: {shown}", given=str(start))


def _nucleus(q: int, topology: Topology) -> NDArray[np.int32]:
    """The vertex (1, 1, 1) of even q, which is joined to exactly the quadrics; none for odd q."""
    ones = (topology.coordinates == 1).all(axis=1)
    return np.flatnonzero(ones & (q % 2 == 0)).astype(np.int32)


def _q(topology: Topology) -> int:
    return int(topology.parameters["q"])
