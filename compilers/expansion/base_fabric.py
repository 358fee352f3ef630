"""What stands of a PolarFly that grows: the fabric that it was, and the racks that it has got."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from compilers.topology import FAMILIES
from compilers.topology.labelled_graph import Topology
from compilers.topology.replication import Expansion, check, expand
from inventory.problems import InputError, Problem


@dataclass(frozen=True, slots=True)
class BaseFabric:
    """A fabric that may have grown.

    first: as it was before; method and count: the racks that it got, "" and 0 where none.
    """

    topology: Topology
    first: Topology
    method: str
    count: int

    @classmethod
    def of(cls, topology: Topology) -> BaseFabric:
        """Take a topology apart by its parameters; racks are added in the same order always."""
        if topology.family not in ("polarfly", "polarfly-expanded"):
            return cls(topology, topology, "", 0)
        method, _, count = str(topology.parameters.get("racks", ":0")).partition(":")
        first = FAMILIES["polarfly"].build({"q": int(topology.parameters["q"])})
        return cls(topology, first, method, int(count))

    def problems(self, method: str, count: int) -> list[Problem]:
        """What forbids so many more racks of a kind."""
        if self.method not in ("", method):
            given = f"{method}, where {self.count} by {self.method} were added"
            return [Problem(f"more racks by {self.method}", given, "", key="racks")]
        if count < 1 or self.method == "":
            return check(self.first, method, count)
        return [
            replace(problem, given=f"{self.count} that stand and {count} more")
            for problem in check(self.first, method, self.count + count)
        ]

    def require(self, method: str, count: int) -> None:
        """Pass where so many more racks of a kind can be added.

        Raises:
            InputError: they cannot, or something of what stands is missing.
        """
        if problems := self.problems(method, count):
            raise InputError(problems)
        order = self.topology.graph.order
        edges = expand(self.first, method, self.count + count).topology.graph.edges()
        whole = edges[edges.max(axis=1) < order]
        if not np.array_equal(whole, self.topology.graph.edges()):
            lacking = len(whole) - self.topology.graph.size
            todo = "install and mend the rest first, or plan from the whole fabric"
            raise InputError(Problem("a whole fabric", f"{lacking:,} links missing", todo))

    def grown(self, method: str, count: int) -> Expansion:
        """The fabric with so many more racks; what is added is added to what stands."""
        larger = expand(self.first, method, self.count + count)
        new = larger.added[larger.added.max(axis=1) >= self.topology.graph.order]
        return replace(larger, added=new)
