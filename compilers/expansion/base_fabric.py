"""A fabric that may have grown by clusters before, and the clusters that can be added to it.

`grow` asks it for the larger topology. A *cluster* is a set of switches that are added together, as
copies of a cluster of the first fabric. Clusters are always counted from the first fabric.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from compilers.expansion.link_ports import LinkPorts, links_to_add, ports_for_links
from compilers.expansion.new_hosts import needs_of_new_hosts
from compilers.tables.build import Build
from compilers.topology.families import family_before
from compilers.topology.labelled_graph import Topology
from compilers.topology.replicated_clusters import (
    Expansion,
    added_clusters,
    expand,
    growth_problems,
)
from compilers.wiring.hardware import Hardware
from inventory.problems import InputError, Problem


@dataclass(frozen=True, slots=True)
class BaseFabric:
    """A fabric that may have grown by clusters before."""

    topology: Topology
    """The fabric as it is."""
    first: Topology
    """The fabric before any cluster was added."""
    method: str
    """The kind of the clusters that were added; "" if there are none."""
    count: int
    """How many clusters were added."""

    @classmethod
    def of(cls, topology: Topology) -> BaseFabric:
        """Return the first fabric of a topology and the clusters added since, by its parameters."""
        family = family_before(topology)
        if not family.grows_by_clusters:
            return cls(topology, topology, "", 0)
        first = family.build({"q": int(topology.parameters["q"])})
        return cls(topology, first, *added_clusters(topology))

    def problems(self, method: str, count: int) -> list[Problem]:
        """Return why `count` more clusters of a kind cannot be added; [] if they can."""
        if self.method not in ("", method):
            given = f"{method}, where {self.count} by {self.method} were added"
            required = f"more clusters by {self.method}"
            if self.method == "nucleus":  # of which a fabric has one
                required = "a fabric that has not grown by the nucleus"
            return [Problem(required, given, "", key="clusters")]
        if count < 1 or self.method == "":
            return growth_problems(self.first, method, count)
        return [
            replace(problem, given=f"{self.count} installed and {count} more")
            for problem in growth_problems(self.first, method, self.count + count)
        ]

    def require(self, method: str, count: int) -> None:
        """Pass if `count` more clusters of a kind can be added.

        Raises:
            InputError: the fabric cannot grow by these clusters, or is damaged.
        """
        if problems := self.problems(method, count):
            raise InputError(problems)
        vertices = self.topology.graph.order
        edges = expand(self.first, method, self.count + count).topology.graph.edges()
        complete = edges[edges.max(axis=1) < vertices]
        if not np.array_equal(complete, self.topology.graph.edges()):
            lacking = len(complete) - self.topology.graph.size
            todo = "install or repair them first, or plan from the build of the whole fabric"
            raise InputError.of("a whole fabric", f"{lacking:,} links missing", todo)

    def clusters_that_fit(
        self, method: str, link_ports: LinkPorts, build: Build, hardware: Hardware
    ) -> int:
        """Return the most clusters of a kind that can be added before a node runs out of ports.

        Links need ports at old and new nodes, and hosts at new ones.
        """
        count, wiring = 0, build.wiring
        while not self.problems(method, count + 1):
            larger = self.grown(method, count + 1)
            if (links_to_add(larger) > ports_for_links(link_ports, larger, wiring)).any():
                break
            if any(
                need.lacks_ports for need in needs_of_new_hosts(build, larger, link_ports, hardware)
            ):
                break
            count += 1
        return count

    def grown(self, method: str, count: int) -> Expansion:
        """Return the fabric with `count` more clusters.

        `Expansion.added` has the edges that are not there yet.
        """
        larger = expand(self.first, method, self.count + count)
        new = larger.added[larger.added.max(axis=1) >= self.topology.graph.order]
        return replace(larger, added=new)
