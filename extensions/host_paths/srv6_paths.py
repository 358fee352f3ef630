"""The weighted paths from a switch to every other switch, as lists of switches.

Target srv6 writes them into carriers, and SRv6 of SONiC takes its routes from here. A path begins
with a port of the egress class that the tables have for the destination, minimal or alternate, and
has that port's weight; from there on it is minimal. In ER_q that gives the white paper's shortest
path and its edge-disjoint paths of three hops, and in other fabrics what their tables say.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import ceil
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from compilers.tables.build import Build
from compilers.tables.fib import Fib
from extensions.host_paths.path_sets import CARRIER
from inventory.problems import InputError

DESTINATIONS_AT_ONCE = 256
"""The destinations whose next hops are looked up at once."""


class WeightedPaths(NamedTuple):
    """Up to W paths of at most H links to each of D destinations."""

    switches: NDArray[np.int32]
    """int32[D, W, H], the switches of each path after the source, then -1."""
    weights: NDArray[np.integer]
    """int[D, W], the weight of each path; 0 for none."""


@dataclass(frozen=True, slots=True)
class Srv6Paths:
    """The paths of a build of S switches."""

    build: Build
    """The build whose paths they are."""
    next_switch: NDArray[np.int32]
    """int32[S, S], the switch to which each switch sends a packet for each destination: itself for
    its own, and a negative number where it has no route."""
    cables: NDArray[np.int32]
    """int32[S, ports + 1], the switch at the other end of each port's cable."""
    egress: NDArray[np.integer]
    """int[S, S], the egress class of each switch for each destination."""

    @classmethod
    def of(cls, build: Build) -> Srv6Paths:
        """Join the tables of a build with its cables."""
        cables = build.wiring.far_by_port()
        fib = Fib.of(build.tables, cables)
        switches = build.tables.switches
        blocks = np.array_split(np.arange(switches), ceil(switches / DESTINATIONS_AT_ONCE))
        return cls(
            build=build,
            next_switch=np.concatenate([fib.next_switch(block) for block in blocks], axis=1),
            cables=cables,
            egress=np.concatenate([fib.egress(block) for block in blocks], axis=1),
        )

    def destinations(self, source: int) -> NDArray[np.int64]:
        """int64[D]: the other switches that this one has a route to."""
        has_route = self.next_switch[source] >= 0
        has_route[source] = False
        return np.flatnonzero(has_route)

    def locators(self, source: int) -> list[tuple[int, int]]:
        """The switches that a switch needs a locator route to, each with the next hop.

        These are the destinations, by the tables, and the neighbours, by their link. A carrier
        names each switch of a path, so it may name a neighbour without hosts, which is no
        destination.
        """
        next_switch = self.next_switch[source].copy()
        next_switch[source] = -1
        other_ends = self.build.wiring.far[source]
        neighbours = other_ends[other_ends >= 0]
        to_neighbours = next_switch[neighbours]
        next_switch[neighbours] = np.where(to_neighbours < 0, neighbours, to_neighbours)
        destination = np.flatnonzero(next_switch >= 0)
        return list(zip(destination.tolist(), next_switch[destination].tolist(), strict=True))

    def weighted_paths(self, source: int, longest: int) -> WeightedPaths:
        """The paths to each of the `destinations`.

        Args:
            source: the switch where the paths begin.
            longest: the most links of a path.

        Raises:
            InputError: a path has more links.
        """
        classes, destination = self.build.tables.classes, self.destinations(source)
        egress = self.egress[source, destination]
        # int[D, W]: the ports of each destination's class, the minimal one first; 0 for no port.
        port = np.column_stack((classes.port[source], classes.alternate[source]))[egress]
        weight = np.where(port > 0, classes.weight[source][egress], 0)
        # The first link of each path. One that stands for none is at its destination at once.
        switch = np.where(port > 0, self.cables[source, port], destination[:, None])
        # In each round all paths go on by a link. One that has arrived stays where it is.
        columns = [switch]
        while not (switch == destination[:, None]).all():
            if len(columns) == longest:
                raise self._too_long(source, longest)
            switch = self.next_switch[switch, destination[:, None]]
            columns.append(switch)
        path = np.stack(columns, axis=2).astype(np.int32)
        has_arrived_before = path[:, :, :-1] == destination[:, None, None]
        path[:, :, 1:][has_arrived_before] = -1
        return WeightedPaths(path, weight)

    def _too_long(self, source: int, longest: int) -> InputError:
        """The error that paths from a switch do not fit a carrier."""
        ends_at_switch = longest == CARRIER - 1  # the last SID is the switch's own
        todo = "" if ends_at_switch else "set decap=switch, "
        return InputError.of(
            key="topology.family",
            required=f"paths of at most {longest} links: target srv6 has them in one carrier",
            given=f"{self.build.topology.title()}, where {self.build.wiring.names[source]} "
            "has longer ones",
            todo=f"{todo}change routing.balance, or choose another target",
        )
