"""`spraypoint`: packets take a random link twice, and then shortest paths, in every family."""

from __future__ import annotations

from collections.abc import Iterator
from types import MappingProxyType
from typing import TYPE_CHECKING

from compilers.balances.spread import Spread
from compilers.topology.family import Family
from compilers.topology.labelled_graph import Parameters, Topology
from inventory.problems import Finding

if TYPE_CHECKING:
    from compilers.spec.fabric_spec import RoutingSpec


class Spraypoint(Spread):
    """Spraypoint (RNG, arXiv 2604.15261) in the form of `compilers.routing.marked_spread`.

    The stage of a packet is its mark. In PolarFly each link of the second switch leads over another
    neighbour of the destination, so to choose a link is to choose a waypoint: the tables are those
    of `spread`. In other graphs the waypoint is whichever neighbour the shortest path enters by.
    """

    name = "spraypoint"
    place = 7
    figures = MappingProxyType({})

    def fitting(self, traffic: str, family: Family, topology: Topology) -> str | None:  # noqa: ARG002
        """None: `spread` where there are marks, else `valiant`, which never carries less than
        half of uniform traffic.
        """
        return None

    def unfit(
        self,
        routing: RoutingSpec,
        family: Family,
        parameters: Parameters,
    ) -> Iterator[Finding]:
        """No family: what is short of links is refused by `marked_spread.require_onward`."""
        del routing, family, parameters
        return iter(())
