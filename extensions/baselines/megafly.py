"""Megafly, or Dragonfly+: groups of a/2 leaves completely joined to a/2 spines.

Flajslik et al., "Megafly" (ISC 2018), §2; Shpiner et al., "Dragonfly+" (HiPINEB 2017). Leaves
carry hosts, spines have h global links each. Router r of group i is vertex i·a + r, leaves first.
"""

from __future__ import annotations

from collections.abc import Iterator
from math import comb
from typing import NamedTuple

import numpy as np

from compilers.topology.adjacency import Graph
from compilers.topology.distance import distances, neighbour_table
from compilers.topology.family import Design, Family, Modules, integers
from compilers.topology.labelled_graph import Parameters, Topology
from extensions.baselines.group_graph import (
    GROUP,
    PORT,
    check_groups,
    copies,
    global_links,
    group_count,
)
from inventory.problems import Problem


class MegaflyShape(NamedTuple):
    """The sizes of a Megafly, with the default number of groups."""

    leaves: int
    """The leaves of a group, and its spines: a/2."""
    h: int
    """The global links of a spine."""
    groups: int
    """The number of groups."""


def shape(parameters: Parameters) -> MegaflyShape:
    """The sizes of a Megafly as numbers, with the default number of groups."""
    h, leaves = int(parameters["h"]), int(parameters["a"]) // 2
    return MegaflyShape(leaves, h, group_count(parameters, leaves * h))


def diameter(graph: Graph, leaves: int, h: int, count: int) -> int:
    """The diameter of the whole graph: by a formula where there is one, else by search.

    All groups look alike, so a search from the first group is enough.

    Args:
        graph: the graph.
        leaves: how many leaves a group has.
        h: how many global links a spine has.
        count: how many groups there are.
    """
    formula = diameter_by_formula(leaves, h, count)
    if formula is not None:
        return formula
    return int(distances(neighbour_table(graph), np.arange(2 * leaves)).max())


def diameter_by_formula(leaves: int, h: int, count: int) -> int | None:
    """The diameter with the fewest groups and with the most; None for numbers of groups between.

    With the fewest, h + 1, every spine has a link to every other group, so no two routers are more
    than 3 links apart.

    Args:
        leaves: how many leaves a group has.
        h: how many global links a spine has.
        count: how many groups there are.
    """
    if count == h + 1:
        return 3
    return most_groups_diameter(leaves) if count == leaves * h + 1 else None


def most_groups_diameter(leaves: int) -> int:
    """The diameter with the most groups: 5 with three leaves or more, between two spines.

    Leaves are at most 3 links apart. With one or two leaves in a group it is 3 or 4.
    """
    return min(leaves, 3) + 2


class Megafly(Family):
    """The family of Megaflies."""

    name = "megafly"
    place = 12  # in lists of families
    compared = True
    parameters = ("h", "a", "groups")
    optional = ("groups",)

    def check(self, parameters: Parameters) -> list[Problem]:
        """Problems unless a group has an even number of routers, and `check_groups` finds none."""
        if problems := integers(parameters, {"h": 1, "a": 2, "groups": 2}, self.optional):
            return problems
        a, h = int(parameters["a"]), int(parameters["h"])
        if a % 2:
            todo = f"the nearest are {a - 1} and {a + 1}"
            return [Problem(key="a", required="an even number", given=str(a), todo=todo)]
        return check_groups(parameters, ports=a // 2 * h, router_ports=h)

    def order(self, parameters: Parameters) -> int:
        """N = a·groups."""
        leaves, _, count = shape(parameters)
        return 2 * leaves * count

    def degree(self, parameters: Parameters) -> int:
        """The links of a spine: a/2 to leaves, and h global ones."""
        leaves, h, _ = shape(parameters)
        return leaves + h

    def build(self, parameters: Parameters) -> Topology:
        """The Megafly with the coordinates (group, router); leaves are at most 3 hops apart."""
        leaves, h, count = shape(parameters)
        size = 2 * leaves
        leaf, spine = np.divmod(np.arange(leaves * leaves), leaves)
        links_of_first_group = np.stack((leaf, leaves + spine), axis=1)
        ends = global_links(count, leaves * h)
        between_groups = ends[..., GROUP] * size + leaves + ends[..., PORT] // h
        edges = np.concatenate((copies(links_of_first_group, count, size), between_groups))
        graph = Graph.from_edges(size * count, edges)
        group, router = np.divmod(np.arange(graph.order, dtype=np.int32), size)
        return Topology(
            family=self.name,
            parameters={"h": h, "a": size, "groups": count},
            graph=graph,
            kinds=("leaf", "spine"),
            kind=(router >= leaves).astype(np.uint8),
            coordinates=np.stack((group, router), axis=1),
            endpoints=router < leaves,
            diameter=diameter(graph, leaves, h, count),
        )

    def designs(self, radix: int) -> Iterator[Design]:
        """Yield a design for every a and h with a/2 + h = radix, the ports of a spine."""
        for h in range(1, radix):
            leaves = radix - h
            yield self._design(radix, MegaflyShape(leaves, h, groups=leaves * h + 1))

    def sized_designs(self, radix: int, most: int | None = None) -> Iterator[Design]:
        """Yield designs with each number of groups, and as many links between any two of them."""
        for h in range(1, radix):
            leaves = radix - h
            ports = leaves * h
            largest = ports if most is None else min(ports, most // (2 * leaves) - 1)
            if largest < h:
                continue
            other_groups = np.arange(h, largest + 1)
            for count in (other_groups[ports % other_groups == 0] + 1).tolist():
                yield self._design(radix, MegaflyShape(leaves, h, groups=count))

    def _design(self, radix: int, sizes: MegaflyShape) -> Design:
        """The design with these sizes; its leaves are at most 3 links apart."""
        leaves, h, count = sizes
        return self.design(
            radix,
            2 * leaves * count,
            diameter=diameter_by_formula(leaves, h, count),
            parameters={"h": h, "a": 2 * leaves, "groups": count},
            links=count * leaves * leaves + count * leaves * h // 2,
            endpoints=leaves * count,
            host_diameter=3,
        )

    def leaf_degree(self, design: Design) -> int:
        """The links of a leaf: one to every spine of its group."""
        return shape(design.parameters).leaves

    def modules(self, parameters: Parameters) -> Iterator[Modules]:
        """Yield modules of one group each."""
        leaves, h, count = shape(parameters)
        yield Modules(
            size=2 * leaves,
            count=count,
            inside=leaves * leaves,
            between=leaves * h // (count - 1),
            bundles=comb(count, 2),
        )

    def mean_distance(self, parameters: Parameters) -> float | None:
        """Leaves are 2 links apart within a group, and 3 links between groups."""
        leaves, _, count = shape(parameters)
        return 3 - (leaves - 1) / (leaves * count - 1)

    def utilisation(self, parameters: Parameters) -> float | None:
        """The mean load of a link over the largest.

        There are g groups of l leaves. A link between a leaf and a spine carries g - 1/l pairs of
        leaves in each direction, and a link between groups l(g - 1)/h. A group has 2l² arcs inside,
        and l·h arcs to other groups.
        """
        leaves, h, count = shape(parameters)
        local_load, global_load = count - 1 / leaves, leaves * (count - 1) / h
        total_load = 2 * leaves * local_load + h * global_load  # of a group, over its leaves
        return total_load / ((2 * leaves + h) * max(local_load, global_load))
