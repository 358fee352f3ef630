"""Trees of a star product from trees of its structure graph (arXiv 2403.12231, universal solution).

Over a tree of the structure graph the star product falls into k copies of it, each with one member
of every supernode: f is a bijection along each link, and a tree has no cycle on which bijections
could mix the copies. A tree of the supernode, at the root, joins the copies. So there are as many
trees, with as many on a link, and they are as deep as a tree of the structure and one of the
supernode together. Trees with different roots share no link within a supernode.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import numpy as np

from compilers.topology.supernodes import Supernode
from extensions.clusters.trees.spanning_tree import SpanningTree, shortest_tree


def lifted_trees(trees: Iterable[SpanningTree], supernode: Supernode) -> Iterator[SpanningTree]:
    """The trees of the star product, one over each of these, in the numbers of `star_product`.

    A tree whose root is taken begins at the next vertex that is free. None if the supernode
    is not connected.
    """
    k, taken = supernode.order, set[int]()
    inner = shortest_tree(supernode.graph)
    if inner is None:
        return
    for given in trees:
        near = np.argsort(given.level, kind="stable").tolist()
        tree = given.rooted_at(next(v for v in near if v not in taken))
        taken.add(tree.root)
        child = np.flatnonzero(tree.parent >= 0)
        above = tree.parent[child]
        images = np.where((above < child)[:, None], supernode.backward, supernode.forward)
        parent = np.full((len(tree.parent), k), -1, np.int32)
        parent[child] = above[:, None] * k + images
        first = tree.root * k
        parent[tree.root] = np.where(inner.parent >= 0, first + inner.parent, -1)
        yield SpanningTree(first + inner.root, parent.ravel())
