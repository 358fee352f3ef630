"""Spanning trees of a fabric, for collectives and multicast: built, bounded, repaired, emitted."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, get_args

from compilers.choices import TreeKind

if TYPE_CHECKING:
    from extensions.clusters.trees.tree_set import TreeSet
    from polarfab.fabric import Fabric

KINDS = get_args(TreeKind)


def trees(
    fabric: Fabric,
    kind: TreeKind = "disjoint",
    root: str | int | None = None,
    fail: Iterable[str] = (),
    members: Sequence[str | int] = (),
) -> TreeSet:
    """Spanning trees for allreduce, broadcast and multicast.

    Args:
        fabric: compiled, or it is compiled now.
        kind: `disjoint`, no link is in two trees, or `low-depth`, short and two on a link.
        root: the switch at the root of every tree; None: where each is least deep.
        fail: what is down, nodes, and links as `A-B`; trees that lose links are joined again.
        members: switches to reach from the root; none for all.

    Raises:
        InputError: there is no such kind, switch or link, or what is up is not connected.
    """
    from extensions.clusters.trees.tree_set import plan_trees

    return plan_trees(fabric.build, kind, root, fail, members)
