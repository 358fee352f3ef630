"""A network that a paper compares with others: a topology with hosts, built or simulated.

The exhibits of PolarFly and PolarStar have a `ComparedNetwork` for each network of a table.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from compilers.topology.families import build_topology
from compilers.topology.labelled_graph import Topology
from extensions.papers.paper_fabric import PaperFabric


@dataclass(frozen=True, slots=True)
class ComparedNetwork:
    """A network of a paper's table of configurations."""

    family: str
    """The family of the topology."""
    parameters: Mapping[str, int | str | None]
    """The parameters of the topology, as in a spec."""
    hosts: int
    """The number of hosts at each switch that has hosts."""
    group: int = 0
    """The number of switches in a supernode, group or pod, which have consecutive numbers; 0 in a
    network that has none."""

    def topology(self) -> Topology:
        """The topology, without hosts."""
        return build_topology(self.family, self.parameters)

    def fabric(self, routes: str) -> PaperFabric:
        """The network as it is simulated, with routes of `paper_fabric.ROUTES`."""
        spec = {"family": self.family, **self.parameters}
        return PaperFabric(spec, hosts=self.hosts, routes=routes, group=self.group)

    def title(self) -> str:
        """The family and its parameters in words, such as `polarfly q=31`."""
        parameters = (f"{name}={value}" for name, value in self.parameters.items())
        return " ".join((self.family, *parameters))
