"""Growth of PolarFly by clusters or one node, without removing a link (PolarFly paper, §VI).

Old vertices keep their numbers and new ones follow, so the larger graph is the old one plus links.
Its family is `polarfly-expanded`, as the algebra of ER_q no longer routes it.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from compilers.topology.adjacency import Graph
from compilers.topology.families import family_of
from compilers.topology.labelled_graph import EXPANDED, Topology
from compilers.topology.layout import Layout, layout
from inventory.problems import InputError, Problem

Edges = NDArray[np.int64]


@dataclass(frozen=True, slots=True, eq=False)
class Expansion:
    """A grown fabric."""

    topology: Topology
    """The larger fabric; its coordinates, int32[N', 4], end with the number of the copy, 0 for old
    vertices.
    """
    added: NDArray[np.int32]
    """int32[A, 2]: the links to add, u < v, ascending."""
    origin: NDArray[np.int32]
    """int32[N']: the vertex that each is a copy of; old vertices are their own."""
    layout: Layout
    """The clusters of the larger fabric."""


def added_clusters(topology: Topology) -> tuple[str, int]:
    """The method and number of the clusters that a topology has grown by; "" and 0 for none.

    Builds of version 0.1 call them racks.
    """
    parameters = topology.parameters if topology.grown_from else {}
    text = str(parameters.get("clusters") or parameters.get("racks") or "")
    method, _, count = text.partition(":")
    return method, int(count or 0)


def check(topology: Topology, method: str, count: int) -> list[Problem]:
    """Problems of `count` expansions of a topology by a method of `METHODS`."""
    if not family_of(topology.family).grows_by_clusters:
        required = "a PolarFly, a graph or a jellyfish"
        return [Problem(key="clusters", required=required, given=topology.title())]
    if method not in METHODS:
        return [Problem(key="clusters", required=f"one of {', '.join(METHODS)}", given=method)]
    q = int(topology.parameters["q"])
    if method == "quadric" and q % 2 == 0:
        # All of even q's quadrics are neighbours of the nucleus, whose degree each copy would
        # raise by q + 1.
        todo = f"use fan or nucleus: a copy would give the nucleus {2 * (q + 1)} links"
        return [Problem(key="clusters", required="odd q for quadric", given=str(q), todo=todo)]
    if method == "nucleus" and q % 2:
        todo = "use quadric or fan"
        return [Problem(key="clusters", required="even q for nucleus", given=str(q), todo=todo)]
    most = {"quadric": MOST_QUADRICS, "fan": q - (q % 2 == 0), "nucleus": 1}[method]
    if 1 <= count <= most:
        return []
    required = f"1 to {most} for {method}" if most > 1 else f"1 for {method}"
    return [Problem(key="clusters", required=required, given=str(count))]


def expand(topology: Topology, method: str, count: int = 1, start: int | None = None) -> Expansion:
    """The topology grown by `count` quadric clusters, fans, or a twin of its nucleus.

    Args:
        topology: a PolarFly.
        method: `quadric`, for odd q: the diameter stays 2; `fan`: near-equal degrees, diameter 3;
            `nucleus`: one node that makes even q regular without raising the largest degree.
        count: the number of clusters; by `fan` at most all fans, q or for even q q - 1.
        start: the quadric that the clusters start from, as for `layout`.

    Raises:
        InputError: the topology cannot grow by this method and count.
    """
    if problems := check(topology, method, count):
        raise InputError(problems)
    return METHODS[method](topology, layout(topology, "fans", start), count)


def _quadric(topology: Topology, racks: Layout, count: int) -> Expansion:
    """Copies of C0; every quadric is joined to all its copies, and they to each other (§VI-A)."""
    quadrics = topology.of_kind("W")
    graph = topology.graph
    new = graph.order + np.arange(count * len(quadrics)).reshape(count, -1)
    from_quadric = np.isin(graph.tails(), quadrics)
    around = graph.targets[from_quadric].reshape(len(quadrics), -1)
    same = np.vstack((quadrics, new))
    one, other = np.triu_indices(count + 1, 1)
    edges = [
        _pairs(new[:, :, None], np.broadcast_to(around, (count, *around.shape))),
        _pairs(same[one], same[other]),
    ]
    origin = np.tile(quadrics, count)
    copy = np.repeat(np.arange(1, count + 1), len(quadrics))
    names = tuple(f"quadrics-{n}" for n in range(1, count + 1))
    return _grown(topology, racks, np.concatenate(edges), origin, copy, names, "quadric", 2)


def _fan(topology: Topology, racks: Layout, count: int) -> Expansion:
    """Copies of C1, C2, … (Definition VI.1), for odd q with balancing links (§VI-B).

    The result of copying one by one, each from the graph so far: a copy has the links of its
    original, to originals and copies in other clusters and to copies in its own. For odd q, for
    every other fan C_j, one vertex of the copied fan that is not its centre has no link to C_j; its
    copy is joined to the centre of C_j, and to that of C_j's copy if there is one. For even q only
    the centre has none, so there is nothing to balance.
    """
    q, order = int(topology.parameters["q"]), topology.graph.order
    copied = np.concatenate([racks.members(i) for i in range(1, count + 1)])
    twin = np.full(order, -1, np.int64)
    twin[copied] = order + np.arange(len(copied))

    u, v = topology.graph.edges().astype(np.int64).T
    between = racks.rack[u] != racks.rack[v]
    links = [
        _pairs(twin[u], v)[between],
        _pairs(u, twin[v])[between],
        _pairs(twin[u], twin[v]),
    ]
    if q % 2:
        rack, other = np.nonzero(~np.eye(q + 1, dtype=np.bool_))
        balanced = (rack > 0) & (rack <= count) & (other > 0)
        rack, other = rack[balanced], other[balanced]
        lonely, centre = twin[_lonely(topology, racks)[rack, other]], racks.centre[other]
        links += [_pairs(lonely, centre), _pairs(lonely, twin[centre])]
    added = np.concatenate(links)
    added = added[(added >= 0).all(axis=1)]
    copy = np.ones(len(copied), np.int64)
    names = tuple(f"fan{i}-1" for i in range(1, count + 1))
    return _grown(topology, racks, added, copied, copy, names, "fan", 3)


def _lonely(topology: Topology, racks: Layout) -> NDArray[np.int64]:
    """int64[R, R]: [i, j] is the vertex of fan i, not its centre, without a link to fan j."""
    graph, count = topology.graph, len(racks.names)
    linked = np.zeros((graph.order, count), np.bool_)
    linked[graph.tails(), racks.rack[graph.targets]] = True
    linked[racks.centre[1:]] = True
    linked[np.arange(graph.order), racks.rack] = True
    vertex, other = np.nonzero(~linked)
    table = np.zeros((count, count), np.int64)
    table[racks.rack[vertex], other] = vertex
    return table


def _nucleus(topology: Topology, racks: Layout, count: int) -> Expansion:
    """A twin of the nucleus: every vertex then has degree q+1, the diameter stays 2."""
    nucleus = racks.centre[:1]
    around = topology.graph.neighbours(int(nucleus[0]))
    added = _pairs(np.full(len(around), topology.graph.order), around)
    copy = np.ones(count, np.int64)
    return _grown(topology, racks, added, nucleus, copy, ("nucleus-twin",), "nucleus", 2)


def _pairs(u: NDArray[np.integer], v: NDArray[np.integer]) -> Edges:
    u, v = np.broadcast_arrays(u, v)
    return np.stack((u.ravel(), v.ravel()), axis=1).astype(np.int64)


def _grown(
    topology: Topology,
    racks: Layout,
    added: Edges,
    copied: NDArray[np.integer],
    copy: NDArray[np.integer],
    names: tuple[str, ...],
    method: str,
    diameter: int,
) -> Expansion:
    """The topology with copies of the vertices `copied`, in equal clusters called `names`."""
    old = topology.graph.order
    origin = np.concatenate((np.arange(old), copied)).astype(np.int32)
    keys = np.sort(np.sort(added, axis=1) @ [len(origin), 1])
    added = np.stack(np.divmod(keys, len(origin)), axis=1)
    copies = np.concatenate((np.zeros(old, np.int64), copy))
    number = len(racks.names) + np.repeat(np.arange(len(names)), len(copied) // len(names))
    larger = Topology(
        family=topology.family.removesuffix(EXPANDED) + EXPANDED,
        parameters={**topology.parameters, "clusters": f"{method}:{len(names)}"},
        graph=Graph.from_edges(len(origin), np.concatenate((topology.graph.edges(), added))),
        kinds=topology.kinds,
        kind=topology.kind[origin],
        coordinates=np.column_stack((topology.coordinates[origin], copies)).astype(np.int32),
        endpoints=topology.endpoints[origin],
        diameter=diameter,
    )
    sources = racks.rack[copied[:: len(copied) // len(names)]]
    centre = old + np.arange(len(names)) * (len(copied) // len(names))
    grown = Layout(
        name=racks.name,
        rack=np.concatenate((racks.rack, number)).astype(np.int32),
        position=racks.position[origin],
        kinds=racks.kinds,
        kind=np.concatenate((racks.kind, racks.kind[sources])),
        names=racks.names + names,
        centre=np.concatenate((racks.centre, np.where(method == "fan", centre, -1))).astype(
            np.int32
        ),
    )
    return Expansion(larger, added.astype(np.int32), origin, grown)


MOST_QUADRICS = 1024
METHODS: dict[str, Callable[[Topology, Layout, int], Expansion]] = {
    "quadric": _quadric,
    "fan": _fan,
    "nucleus": _nucleus,
}
