"""Dragonfly: groups of `a` routers that are all joined, with h global links at each router.

Kim et al., ISCA 2008, §3. The default is a = 2h, a balanced Dragonfly. With the most groups,
a·h + 1, one link joins any two groups. Router r of group i is vertex i·a + r.
"""

from __future__ import annotations

from collections.abc import Iterator
from math import comb
from typing import NamedTuple

import numpy as np

from compilers.topology.adjacency import Graph
from compilers.topology.family import Design, Family, Modules, integers
from compilers.topology.labelled_graph import Parameters, Topology
from extensions.baselines.group_graph import (
    GROUP,
    PORT,
    check_groups,
    complete,
    copies,
    global_links,
    group_count,
)
from inventory.problems import Problem


class DragonflyShape(NamedTuple):
    """The parameters of a Dragonfly as numbers, with their defaults."""

    a: int
    """The routers of a group."""
    h: int
    """The global links of a router."""
    groups: int
    """The number of groups."""


def shape(parameters: Parameters) -> DragonflyShape:
    """The parameters a, h and groups as numbers, with their defaults."""
    h = int(parameters["h"])
    a = int(parameters.get("a", 2 * h))
    return DragonflyShape(a, h, group_count(parameters, a * h))


class Dragonfly(Family):
    """The family of Dragonflies, balanced and custom."""

    name = "dragonfly"
    place = 8  # in lists of families
    compared = True
    parameters = ("h", "a", "groups")
    optional = ("a", "groups")

    def check(self, parameters: Parameters) -> list[Problem]:
        """Problems unless a group has two routers or more, and `check_groups` finds none."""
        if problems := integers(parameters, {"h": 1, "a": 2, "groups": 2}, self.optional):
            return problems
        a, h, _ = shape(parameters)
        return check_groups(parameters, ports=a * h, router_ports=h)

    def order(self, parameters: Parameters) -> int:
        """N = a·groups."""
        a, _, count = shape(parameters)
        return a * count

    def degree(self, parameters: Parameters) -> int:
        """Each router has a - 1 links in its group and h global links."""
        a, h, _ = shape(parameters)
        return a - 1 + h

    def build(self, parameters: Parameters) -> Topology:
        """The Dragonfly. Its diameter is 3, or 2 where every router has a link to every group."""
        a, h, count = shape(parameters)
        ends = global_links(count, a * h)
        between_groups = ends[..., GROUP] * a + ends[..., PORT] // h
        edges = np.concatenate((copies(complete(a), count, a), between_groups))
        graph = Graph.from_edges(a * count, edges)
        group, router = np.divmod(np.arange(graph.order, dtype=np.int32), a)
        coordinates = np.stack((group, router), axis=1)
        diameter = 2 if h == count - 1 else 3
        return self.direct({"h": h, "a": a, "groups": count}, graph, coordinates, diameter)

    def designs(self, radix: int) -> Iterator[Design]:
        """Yield a design for every a and h with a - 1 + h = radix, with the most groups."""
        for h in range(1, radix):
            a = radix + 1 - h
            count = a * h + 1
            parameters: Parameters = {"h": h, "a": a, "groups": count}
            yield self.design(radix, a * count, diameter=3, parameters=parameters)

    def modules(self, parameters: Parameters) -> Iterator[Modules]:
        """Yield modules of one group each."""
        a, h, count = shape(parameters)
        yield Modules(
            size=a,
            count=count,
            inside=comb(a, 2),
            between=a * h // (count - 1),
            bundles=comb(count, 2),
        )

    def mean_distance(self, parameters: Parameters) -> float | None:
        """The mean length of routes by a local, a global and a local link, with the most groups.

        The mean distance of the graph is a little less: two global links join some pairs that these
        routes join by three links.
        """
        a, h, count = shape(parameters)
        if count != a * h + 1:
            return None
        # How many routers are one, two and three links from a router. Two links are a global and a
        # local one, in this order or the other.
        others = a * count - 1
        one_apart, two_apart = a - 1 + h, 2 * h * (a - 1)
        three_apart = others - one_apart - two_apart
        return (one_apart + 2 * two_apart + 3 * three_apart) / others

    def utilisation(self, parameters: Parameters) -> float | None:
        """The mean load of a link over the largest, with the most groups.

        The only link between two groups carries a² pairs of routers in each direction. A local link
        from s to t carries 2ah + 1 pairs: from s to t; from s to the a·h routers of the groups that
        t has links to; and to t from the a·h routers of the groups that s has links to.
        """
        a, h, count = shape(parameters)
        if count != a * h + 1:
            return None
        local_load, global_load = 2 * a * h + 1, a * a
        load_of_router = (a - 1) * local_load + h * global_load
        return load_of_router / ((a - 1 + h) * max(local_load, global_load))
