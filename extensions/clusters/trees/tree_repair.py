"""A tree that has lost links, joined again over the links that other trees use least."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence

from compilers.topology.adjacency import Graph
from extensions.clusters.trees.forest_packing import top_of
from extensions.clusters.trees.spanning_tree import SpanningTree

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
