"""The base of an expansion by swapped links: a random graph as it is."""

from __future__ import annotations

from dataclasses import dataclass

from compilers.expansion.spare_ports import Spare
from compilers.routing.minimal_routes import LARGEST_SHORTEST
from compilers.topology.labelled_graph import Topology
from compilers.topology.random_growth import swapped
from compilers.topology.replicated_clusters import Expansion
from compilers.wiring.wiring import Wiring
from inventory.problems import InputError, Problem

METHOD = "switch"


@dataclass(frozen=True, slots=True)
class SwappedFabric:
    """A random graph that grows by switches; `seed` is that of the links that are taken apart."""

    topology: Topology
    seed: int

    def require(self, method: str, count: int) -> None:
        """Refuse switches that cannot be added.

        Raises:
            InputError: another kind of cluster, none, or a fabric that is not whole.
        """
        problems = []
        if method != METHOD:
            required = f"{METHOD}:N, by which a {self.topology.family} grows"
            problems.append(Problem(required, method, key="clusters"))
        elif count < 1:
            problems.append(Problem("at least 1 switch", str(count), key="clusters"))
        if missing := int((~self.topology.present).sum()):
            todo = "install them first, or plan from the build of the whole fabric"
            problems.append(Problem("a whole fabric", f"{missing:,} switches missing", todo))
        if problems:
            raise InputError(problems)

    def most(self, method: str, spare: Spare, wiring: Wiring) -> int:  # noqa: ARG002
        """As many as routes are found for: no switch that stands needs a port more."""
        return LARGEST_SHORTEST - self.topology.graph.order

    def grown(self, method: str, count: int) -> Expansion:  # noqa: ARG002
        """The fabric with `count` switches more."""
        return swapped(self.topology, count, self.seed)
