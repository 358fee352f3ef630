"""The spanning trees of a build: disjoint or of low depth, from a root, around failures."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, get_args

import numpy as np
from numpy.typing import NDArray

from compilers.choices import TreeKind
from compilers.proof.explanation import find_failures, find_switch
from compilers.tables.build import Build
from compilers.topology.adjacency import Graph
from compilers.topology.distance import components, neighbour_table
from compilers.topology.labelled_graph import Topology
from extensions.clusters.trees.forest_packing import disjoint_trees, top_of
from extensions.clusters.trees.published_trees import published_trees
from extensions.clusters.trees.shallow_trees import CONGESTION, balanced_trees
from extensions.clusters.trees.spanning_tree import SpanningTree
from inventory.problems import InputError, at_key

DISJOINT, LOW_DEPTH = get_args(TreeKind)
SEARCHED = 8000
"""Links up to which disjoint trees are searched for although there are published ones: in PolarFly
they are less deep than Singer's paths, in PolarStar there are more."""


@dataclass(frozen=True, eq=False, repr=False)
class TreeSet:
    """Spanning trees of a build, to be used at the same time.

    bound: the most that there can be of this kind. graph: what is up. reached: bool[S], the
    switches to whose hosts the trees lead. remade: the numbers, from 0, of trees that lost links
    and were joined again.
    """

    build: Build
    kind: str
    trees: tuple[SpanningTree, ...]
    bound: int
    graph: Graph
    reached: NDArray[np.bool_]
    remade: tuple[int, ...] = ()

    def __repr__(self) -> str:
        """`<TreeSet lab: 4 disjoint trees>`."""
        return f"<TreeSet {self.build.name}: {len(self.trees):,} {self.kind} trees>"

    @property
    def congestion(self) -> int:
        """The most trees on a link."""
        used = np.concatenate([tree.links for tree in self.trees])
        return int(np.unique(used, return_counts=True)[1].max(initial=0))

    @property
    def bandwidth(self) -> float:
        """What an allreduce over all trees gets, in links: each has a part of the busiest one."""
        return len(self.trees) / max(self.congestion, 1)

    @property
    def most_bandwidth(self) -> float:
        """What no set of trees can exceed: L links carry L/(N - 1) trees of N switches."""
        return self.graph.size / (self.switches - 1)

    @property
    def switches(self) -> int:
        """N, those that are up."""
        return int((self.graph.degrees > 0).sum())

    @property
    def whole(self) -> bool:
        """Whether the trees reach every switch that is up."""
        return bool(self.reached[self.graph.degrees > 0].all())

    @property
    def fewest_links(self) -> int:
        """Those of a switch that is up and has no more than any other."""
        degrees = self.graph.degrees
        return int(degrees[degrees > 0].min())

    def as_dict(self) -> dict[str, Any]:
        """The trees as JSON has them; vertices by number."""
        trees = [
            {"root": tree.root, "edges": tree.edges.tolist(), "depth": tree.depth}
            for tree in self.trees
        ]
        return {
            "name": self.build.name,
            "kind": self.kind,
            "trees": trees,
            "bound": self.bound,
            "congestion": self.congestion,
            "bandwidth": self.bandwidth,
            "most_bandwidth": self.most_bandwidth,
            "remade": list(self.remade),
        }


def plan_trees(
    build: Build,
    kind: str = DISJOINT,
    root: str | int | None = None,
    fail: Iterable[str] = (),
    members: Sequence[str | int] = (),
) -> TreeSet:
    """The trees of a build.

    Args:
        build: one plane.
        kind: DISJOINT, no link is in two trees, or LOW_DEPTH, short and two on a link.
        root: the switch at the root of every tree; None: where each is least deep, or was grown.
        fail: what is down, nodes, links as `A-B`, groups such as `module:A/0`; trees that lose
            links are joined again.
        members: switches to reach from the root; none for all.

    Raises:
        InputError: there is no such switch or link, or what is up is not connected.
    """
    graph, everyone = build.topology.graph, build.topology.present
    _connected(graph, int(everyone.sum()), "compile the build again without what is cut off")
    trees, bound = _of_kind(build.topology, kind)
    made, remade = trees, tuple[int, ...]()
    with at_key("fail"):
        down = [element for word in fail for element in find_failures(build, word)]
    if down:
        nodes = sum(each >= graph.size for each in set(down))
        graph = _left(graph, down)
        _connected(graph, int(everyone.sum()) - nodes, "name fewer failures, or the nodes, too")
        made = list(repaired(trees, graph))
        remade = tuple(n for n, tree in enumerate(made) if tree is not trees[n])
    if root is not None:
        (start,) = _up(build, graph, [root], "root")
        made = [tree.rooted_at(start) for tree in made]
    reached = graph.degrees > 0
    if members:
        reached = np.isin(np.arange(graph.order), _up(build, graph, members, "member"))
        made = [tree.pruned(reached) for tree in made]
    return TreeSet(build, kind, tuple(made), bound, graph, reached, remade)


def _up(build: Build, graph: Graph, words: Sequence[str | int], key: str) -> list[int]:
    """The switches of these names.

    Raises:
        InputError: there is no such switch, or it is down.
    """
    switches = [find_switch(build, word) for word in words]
    for switch, word in zip(switches, words, strict=True):
        if not graph.degrees[switch]:
            raise InputError.of("a switch that is up", str(word), key=key)
    return switches


def _of_kind(topology: Topology, kind: str) -> tuple[list[SpanningTree], int]:
    """The trees and their bound.

    The search for disjoint trees finds as many as there are (Edmonds), so its number is the bound.
    """
    graph, there = topology.graph, int(topology.present.sum())
    low_depth, links = kind == LOW_DEPTH, max(there - 1, 1)
    known = low_depth or graph.size > SEARCHED
    trees = published_trees(topology, low_depth) if known else []
    if low_depth:
        trees = trees or balanced_trees(graph, topology.present)
        return trees, CONGESTION * graph.size // links
    if trees:
        return trees, graph.size // links
    found = disjoint_trees(graph.order, there, graph.edges(), graph.size // links)
    return [SpanningTree.of_edges(graph.order, each.tolist()) for each in found], len(found)


def _connected(graph: Graph, there: int, todo: str) -> None:
    """Pass when the vertices that have links, or should have, are in one part.

    Raises:
        InputError: they are not.
    """
    least = components(neighbour_table(graph))
    up = graph.degrees > 0
    parts = len(np.unique(least[up])) + there - int(up.sum())
    if there < 2 or parts != 1:
        given = f"{parts} parts" if there > 1 else f"{there} switches"
        raise InputError.of("a connected fabric of two switches or more", given, todo)


def _left(graph: Graph, down: Sequence[int]) -> Graph:
    """The graph without links and nodes that are down, numbered as `find_failures` has them."""
    edges, numbers = graph.edges(), np.array(down)
    gone = np.isin(edges, numbers - len(edges)).any(axis=1)
    gone |= np.isin(np.arange(len(edges)), numbers)
    return Graph.from_edges(graph.order, edges[~gone])


Link = tuple[int, int]


def repaired(trees: Sequence[SpanningTree], left: Graph) -> Iterator[SpanningTree]:
    """The trees over what is left of the graph; one that has lost nothing is itself.

    A broken tree keeps all links that it still has. Where no link is free that joins its parts, one
    carries two trees.

    Args:
        trees: of the whole graph.
        left: the graph without what failed, of the same vertices, connected but for those that have
            no link.
    """
    links: list[Link] = [(u, v) for u, v in left.edges().tolist()]
    there = set(links)
    kept = [[link for link in links_of(tree) if link in there] for tree in trees]
    load = Counter(link for each in kept for link in each)
    for tree, own in zip(trees, kept, strict=True):
        if len(own) == len(tree.edges):
            yield tree
            continue
        more = _joining(own, sorted(links, key=lambda link: load[link]), left.order)
        load.update(more)
        root = tree.root if left.degrees[tree.root] else None
        yield SpanningTree.of_edges(left.order, own + more, root)


def links_of(tree: SpanningTree) -> list[Link]:
    """The links of a tree, each with its smaller end first."""
    return [(min(u, v), max(u, v)) for u, v in tree.edges.tolist()]


def _joining(own: list[Link], links: list[Link], order: int) -> list[Link]:
    """The first of the links that join what own links leave disconnected."""
    above, more = list(range(order)), []
    for place, (u, v) in enumerate([*own, *links]):
        one, other = top_of(above, u), top_of(above, v)
        if one != other:
            above[one] = other
            if place >= len(own):
                more.append((u, v))
    return more
