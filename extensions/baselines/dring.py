"""DRing: a ring of groups, each joined to the two before it and the two behind it.

Harsh, Abdu Jyothi and Godfrey, "Spineless Data Centers" (HotNets 2020). Every router of a group has
a link to every router of the groups 1 and 2 steps away, and none within its group. Router r of
group i is vertex i·a + r.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from compilers.topology.adjacency import Graph
from compilers.topology.family import Design, Family, integers
from compilers.topology.labelled_graph import Parameters, Topology
from inventory.problems import Problem

STEPS = (1, 2)


def shape(parameters: Parameters) -> tuple[int, int]:
    """(groups, a)."""
    return int(parameters["groups"]), int(parameters["a"])


class DRing(Family):
    """The family of DRings: `groups` in a ring, a routers each with 4a links."""

    name = "dring"
    place = 16
    compared = True
    parameters = ("groups", "a")

    def check(self, parameters: Parameters) -> list[Problem]:
        """At least five groups, so that the four that a group is joined to differ."""
        return integers(parameters, {"groups": 5, "a": 1})

    def order(self, parameters: Parameters) -> int:
        """N = a·groups."""
        groups, a = shape(parameters)
        return groups * a

    def build(self, parameters: Parameters) -> Topology:
        """The DRing; the farthest groups are half a ring away, two groups a hop."""
        groups, a = shape(parameters)
        one, step, u, v = np.ix_(np.arange(groups), np.array(STEPS), np.arange(a), np.arange(a))
        ends = np.broadcast_arrays(one * a + u, (one + step) % groups * a + v)
        graph = Graph.from_edges(groups * a, np.stack(ends, axis=-1).reshape(-1, 2))
        coordinates = np.stack(np.divmod(np.arange(groups * a, dtype=np.int32), a), axis=1)
        diameter = max(_hops(groups).max(), 2 if a > 1 else 1)
        return self.direct({"groups": groups, "a": a}, graph, coordinates, int(diameter))

    def designs(self, radix: int) -> Iterator[Design]:  # noqa: ARG002
        """None: any number of groups will do, and the diameter grows with it."""
        return iter(())

    def mean_distance(self, parameters: Parameters) -> float:
        """Two hops within a group, else half of the steps between the groups, rounded up."""
        groups, a = shape(parameters)
        return float((2 * (a - 1) + a * _hops(groups).sum()) / (groups * a - 1))


def _hops(groups: int) -> NDArray[np.int64]:
    """int64[groups - 1]: the distance of a group from each other one."""
    steps = np.arange(1, groups)
    return np.asarray((np.minimum(steps, groups - steps) + 1) // 2, np.int64)
