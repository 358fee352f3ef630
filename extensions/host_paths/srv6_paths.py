"""Paths from a switch to every other switch as lists of switches, minimal ones and alternates.

The first hop is a port of the destination's class, with its weight; from there on the packet goes
minimally. In ER_q that gives the white paper's shortest path and its edge-disjoint paths of three
hops, and in other fabrics what their tables say.
"""

from __future__ import annotations

from dataclasses import dataclass

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
    after: NDArray[np.int32]
    """int32[S, S], the switch to which each switch sends a packet for each destination."""
    cables: NDArray[np.int32]
    """int32[S, ports + 1], the switch behind each port."""
    egress: NDArray[np.integer]
    """int[S, S], the egress class of each switch for each destination."""

    @classmethod
    def of(cls, build: Build) -> Srv6Paths:
        """Join the tables of a build with its cables."""
        cables = build.wiring.cables()
        fib = Fib.of(build.tables, cables)
        order = build.tables.switches
        blocks = np.array_split(np.arange(order), -(-order // PATHS_AT_ONCE))
        return cls(
            build=build,
            after=np.concatenate([fib.next_switch(block) for block in blocks], axis=1),
            cables=cables,
            egress=np.concatenate([fib.egress(block) for block in blocks], axis=1),
        )

    def destinations(self, source: int) -> NDArray[np.int64]:
        """int64[D]: the other switches that this one has a route to."""
        reached = self.after[source] >= 0
        reached[source] = False
        return np.flatnonzero(reached)

    def locators(self, source: int) -> list[tuple[int, int]]:
        """Switches whose uSIDs a packet at this one may carry first, each with the next switch.

        Destinations, and neighbours: a path names each of its switches, also one without hosts that
        no packet is for.
        """
        after = self.after[source].copy()
        after[source] = -1
        far = self.build.wiring.far[source]
        near = far[far >= 0]
        after[near] = np.where(after[near] < 0, near, after[near])
        reached = np.flatnonzero(after >= 0)
        return list(zip(reached.tolist(), after[reached].tolist(), strict=True))

    def of_switch(self, source: int, longest: int) -> tuple[NDArray[np.int32], NDArray[np.integer]]:
        """int32[D, W, H], int[D, W]: for each of `destinations` up to W paths, and their weights.

        A path is its switches after the source, with -1 after the destination. Unused places have
        weight 0.

        Raises:
            InputError: a path of more than `longest` links.
        """
        classes, destination = self.build.tables.classes, self.destinations(source)
        port = np.column_stack((classes.port[source], classes.alternate[source]))
        number = self.egress[source, destination]
        port, weight = port[number], classes.weight[source][number]
        weight = np.where(port > 0, weight, 0)
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
            switch = self.after[switch, destination[:, None]]
        path = np.stack(steps, axis=2).astype(np.int32)
        path[:, :, 1:][path[:, :, :-1] == destination[:, None, None]] = -1
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
