"""The weighted paths from a switch to every other switch, as lists of switches.

The SRv6 targets write them into carriers (`srv6`, `sonic_srv6`). A path begins with a port of the
egress class that the tables have for the destination, minimal or alternate, and has that port's
weight; from there on it is minimal. In ER_q that gives the white paper's shortest path and its
edge-disjoint paths of three hops, and in other fabrics what their tables say.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import ceil

import numpy as np
from numpy.typing import NDArray

from compilers.tables.build import Build
from compilers.tables.fib import Fib
from inventory.problems import InputError

PATHS_AT_ONCE = 256
"""Destinations whose next hops are looked up at once."""


@dataclass(frozen=True, slots=True)
class Srv6Paths:
    """The paths of a build of S switches."""

    build: Build
    """The build whose paths they are."""
    next_switch: NDArray[np.int32]
    """int32[S, S], the switch to which each switch sends a packet for each destination; negative
    where it has no route."""
    cables: NDArray[np.int32]
    """int32[S, ports + 1], the switch at the other end of each port's cable."""
    egress: NDArray[np.integer]
    """int[S, S], the egress class of each switch for each destination."""

    @classmethod
    def of(cls, build: Build) -> Srv6Paths:
        """Join the tables of a build with its cables."""
        cables = build.wiring.cables()
        fib = Fib.of(build.tables, cables)
        switches = build.tables.switches
        blocks = np.array_split(np.arange(switches), ceil(switches / PATHS_AT_ONCE))
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
        """The switches whose uSIDs may be a carrier's first at this switch, each with the next one.

        These are the destinations and the neighbours: a path names each of its switches, also one
        without hosts, which is no destination.
        """
        next_switch = self.next_switch[source].copy()
        next_switch[source] = -1
        other_ends = self.build.wiring.far[source]
        neighbours = other_ends[other_ends >= 0]
        to_neighbours = next_switch[neighbours]
        next_switch[neighbours] = np.where(to_neighbours < 0, neighbours, to_neighbours)
        destination = np.flatnonzero(next_switch >= 0)
        return list(zip(destination.tolist(), next_switch[destination].tolist(), strict=True))

    def weighted_paths(
        self, source: int, longest: int
    ) -> tuple[NDArray[np.int32], NDArray[np.integer]]:
        """Up to W paths to each of the D `destinations`, and their weights.

        Args:
            source: the switch where the paths begin.
            longest: the most links of a path.

        Returns:
            int32[D, W, H], the switches of each path after the source, then -1; and int[D, W], the
            weight of each path, 0 for none.

        Raises:
            InputError: a path is longer.
        """
        classes, destination = self.build.tables.classes, self.destinations(source)
        egress = self.egress[source, destination]
        # int[D, W]: the ports of each destination's class, the minimal one first; 0 for no port.
        port = np.column_stack((classes.port[source], classes.alternate[source]))[egress]
        weight = np.where(port > 0, classes.weight[source][egress], 0)
        switch = np.where(port > 0, self.cables[source, port], destination[:, None])
        steps = []
        while True:
            arrived = switch == destination[:, None]
            steps.append(switch)
            if arrived.all():
                break
            if len(steps) == longest:
                raise self._too_long(source, longest)
            # A packet at its destination is delivered there: it stays.
            switch = self.next_switch[switch, destination[:, None]]
        path = np.stack(steps, axis=2).astype(np.int32)
        has_arrived_before = path[:, :, :-1] == destination[:, None, None]
        path[:, :, 1:][has_arrived_before] = -1
        return path, weight

    def _too_long(self, source: int, longest: int) -> InputError:
        """The error that paths from a switch do not fit a carrier."""
        return InputError.of(
            key="topology.family",
            required=f"paths of at most {longest} links: target srv6 has them in one carrier",
            given=f"{self.build.topology.title()}, where {self.build.wiring.names[source]} "
            "has longer ones",
            todo="set decap=switch, change routing.balance, or choose another target",
        )
