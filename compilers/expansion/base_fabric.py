"""The base of an expansion: the original PolarFly, and the clusters added so far."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from compilers.expansion.spare_ports import Spare, needed, room
from compilers.topology.families import family_before
from compilers.topology.labelled_graph import Topology
from compilers.topology.replicated_clusters import Expansion, added_clusters, check, expand
from compilers.wiring.wiring import Wiring
from inventory.problems import InputError, Problem


@dataclass(frozen=True, slots=True)
class BaseFabric:
    """A fabric that may have grown.

    first: the original fabric. method and count: the kind and number of clusters added, "" and 0
    for none.
    """

    topology: Topology
    first: Topology
    method: str
    count: int

    @classmethod
    def of(cls, topology: Topology) -> BaseFabric:
        """The base of a topology, by its parameters; clusters are added in one order."""
        family = family_before(topology)
        if not family.grows_by_clusters:
            return cls(topology, topology, "", 0)
        first = family.build({"q": int(topology.parameters["q"])})
        return cls(topology, first, *added_clusters(topology))

    def problems(self, method: str, count: int) -> list[Problem]:
        """Problems of adding `count` more clusters of a kind."""
        if self.method not in ("", method):
            given = f"{method}, where {self.count} by {self.method} were added"
            return [Problem(f"more clusters by {self.method}", given, "", key="clusters")]
        if count < 1 or self.method == "":
            return check(self.first, method, count)
        return [
            replace(problem, given=f"{self.count} installed and {count} more")
            for problem in check(self.first, method, self.count + count)
        ]

    def require(self, method: str, count: int) -> None:
        """Refuse clusters that cannot be added.

        Raises:
            InputError: the fabric cannot grow by these clusters, or is damaged.
        """
        if problems := self.problems(method, count):
            raise InputError(problems)
        order = self.topology.graph.order
        edges = expand(self.first, method, self.count + count).topology.graph.edges()
        complete = edges[edges.max(axis=1) < order]
        if not np.array_equal(complete, self.topology.graph.edges()):
            lacking = len(complete) - self.topology.graph.size
            todo = "install or repair them first, or plan from the build of the whole fabric"
            raise InputError.of("a whole fabric", f"{lacking:,} links missing", todo)

    def most(self, method: str, spare: Spare, wiring: Wiring) -> int:
        """The most clusters for which no node runs out of ports; every one needs more of them."""
        count = 0
        while not self.problems(method, count + 1):
            larger = self.grown(method, count + 1)
            if (needed(larger) > room(spare, larger, wiring)).any():
                break
            count += 1
        return count

    def grown(self, method: str, count: int) -> Expansion:
        """The fabric with `count` more clusters; `added` counts from the fabric as it is."""
        larger = expand(self.first, method, self.count + count)
        new = larger.added[larger.added.max(axis=1) >= self.topology.graph.order]
        return replace(larger, added=new)
