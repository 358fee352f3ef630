"""Growth of a random graph switch by switch (Singla et al., Jellyfish, NSDI 2012, section 4).

For every two links of a new switch a random link (u, v) is taken away, and u and v are joined to
the new switch. So no other switch needs a port more, and the graph stays connected and random. Old
vertices keep their numbers and new ones follow. The family's name ends with `-expanded` then.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from compilers.topology.adjacency import Graph
from compilers.topology.distance import diameter
from compilers.topology.labelled_graph import EXPANDED, Topology
from compilers.topology.layout import Layout
from compilers.topology.replicated_clusters import Expansion
from inventory.problems import InputError

DRAWS = 200
Link = tuple[int, int]


def swapped(topology: Topology, count: int, seed: int) -> Expansion:
    """The graph with `count` switches more, each with the degree of the others.

    The degree is the family's, or the largest in a graph from a file. Of an odd degree, new
    switches are joined two by two by their last port; one that is alone leaves it unused.

    Raises:
        InputError: every link touches a neighbour of the new switch already.
    """
    graph, old = topology.graph, topology.graph.order
    degree = int(topology.parameters.get("degree", int(graph.degrees.max())))
    edges = _swapped(graph, count, degree, np.random.PCG64([seed, old]))
    before, after = (_keys(part, old + count) for part in (graph.edges(), edges))
    added, removed = np.setdiff1d(after, before), np.setdiff1d(before, after)
    larger = Graph.from_edges(old + count, edges)
    new, family = np.arange(old + count) >= old, topology.grown_from or topology.family
    steps = [*steps_of(topology), (count, seed)]
    grown = Topology(
        family=family + EXPANDED,
        parameters={**topology.parameters, "switches": _said(steps)},
        graph=larger,
        kinds=topology.kinds,
        kind=np.concatenate((topology.kind, np.repeat(topology.kind[:1], count))),
        coordinates=np.arange(old + count, dtype=np.int32)[:, None],
        endpoints=np.concatenate((topology.endpoints, np.ones(count, np.bool_))),
        diameter=diameter(larger),
    )
    place = np.arange(old + count, dtype=np.int32) - np.int32(old) * new
    names = "all", f"added-{old}"
    layout = Layout.of_one_kind("whole", new.astype(np.int32), place, "whole", names)
    return Expansion(
        topology=grown,
        added=_links(added, old + count),
        origin=np.where(new, int(graph.degrees.argmax()), np.arange(old + count)).astype(np.int32),
        layout=layout,
        removed=_links(removed, old + count),
        stem="added",
    )


def steps_of(topology: Topology) -> list[tuple[int, int]]:
    """By how many switches a graph has grown, and with which seed, in turn.

    Raises:
        ValueError: its parameter `switches` was not written by us.
    """
    text = str(topology.parameters.get("switches", "")) if topology.grown_from else ""
    pairs = (step.split(":") for step in text.split("+") if step)
    return [(int(count), int(seed)) for count, seed in pairs]


def _said(steps: list[tuple[int, int]]) -> str:
    return "+".join(f"{count}:{seed}" for count, seed in steps)


def regrown(first: Topology, steps: list[tuple[int, int]]) -> Topology:
    """The graph that this one grows to."""
    for count, seed in steps:
        first = swapped(first, count, seed).topology
    return first


def _swapped(graph: Graph, count: int, degree: int, source: np.random.PCG64) -> NDArray[np.int64]:
    """int64[E', 2]: the links of the larger graph."""
    links: list[Link] = [(u, v) for u, v in graph.edges().tolist()]
    near = [set(graph.neighbours(v).tolist()) for v in range(graph.order)]
    for new in range(graph.order, graph.order + count):
        near.append(set())
        for _ in range(degree // 2):
            place = _usable(links, near[new], new, source)
            u, v = links[place]
            links[place] = (u, new)
            links.append((v, new))
            near[u] ^= {v, new}
            near[v] ^= {u, new}
            near[new] |= {u, v}
    if degree % 2:
        links += _pairs(near, graph.order)
    return np.array(links, np.int64)


def _usable(links: list[Link], near: set[int], new: int, source: np.random.PCG64) -> int:
    """The place of a random link whose ends are neither the new switch nor its neighbours.

    Raises:
        InputError: there is none.
    """
    taken = near | {new}
    for _ in range(DRAWS):
        place = int(source.random_raw()) % len(links)
        if taken.isdisjoint(links[place]):
            return place
    free = [place for place, link in enumerate(links) if taken.isdisjoint(link)]
    if not free:
        todo = "a graph as dense as that has no room for another switch of its degree"
        raise InputError.of(
            "a link away from the new switch's neighbours", "none", todo, key="clusters"
        )
    return free[int(source.random_raw()) % len(free)]


def _pairs(near: list[set[int]], first: int) -> Iterator[Link]:
    """New switches two by two, where they are no neighbours yet."""
    for u in range(first, len(near) - 1, 2):
        if u + 1 not in near[u]:
            yield u, u + 1


def _keys(edges: NDArray[np.integer], order: int) -> NDArray[np.int64]:
    return np.asarray(np.sort(edges.astype(np.int64), axis=1) @ [order, 1], np.int64)


def _links(keys: NDArray[np.int64], order: int) -> NDArray[np.int32]:
    return np.column_stack(np.divmod(keys, order)).astype(np.int32)
