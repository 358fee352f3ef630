"""Which neighbours of a switch are loop-free alternates (RFC 5286) for each of its egress classes.

A neighbour is a loop-free alternate for a destination if its own minimal path does not lead back to
the switch. It is node-protecting if that path also avoids the switch's next hop, disjoint if the
path shares no switch with the switch's own minimal path, and *downstream* if it is strictly closer
to the destination than the switch.

The next hops towards one destination form a tree. So two paths to the destination that meet share
all links from there on. The `Conflict` of a neighbour says where its path meets the path of the
switch first. `NeighbourPaths` has, for each class and link, the best and the worst conflict over
all destinations of the class. With it the soundness checks judge the alternates and the repairs of
a build (`compilers.proof.soundness.forwarding_soundness`).
"""

from __future__ import annotations

from dataclasses import dataclass, fields
from enum import IntEnum
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from compilers.proof.soundness.link_sets import Bits, Sets
from compilers.tables.build import Build
from compilers.tables.fib import MOST_HOPS, Fib

PATH_CELLS_AT_ONCE = 1 << 22
"""The most pairs of a switch and a destination that are walked at once."""
Vertices = NDArray[np.int32]


class Conflict(IntEnum):
    """What a neighbour's path meets first on the switch's own minimal path, the worst last."""

    NONE = 0
    """Nothing: the paths are disjoint."""
    LATER = 1
    """A switch after the next hop and before the destination."""
    NEXT_HOP = 2
    """The switch's next hop, if that is not the destination."""
    BACK = 3
    """The switch itself: packets would loop."""
    ABOVE_ALL = 4
    """No conflict of a path. As a limit it allows every neighbour: all conflicts are below it."""


class MinimalRoutes(NamedTuple):
    """The minimal paths of all S switches to D destinations."""

    egress_class: NDArray[np.intp]
    """intp[S, D], the egress class of each switch; a number that no class has where it has no
    route."""
    has_route: Bits
    """bool[S, D], whether the switch has a route."""
    next_switch: Vertices
    """int32[S, D], the next switch; the switch itself where it has no route."""
    switches_on_path: list[Vertices]
    """int32[S, D] each, the switch that the packets of each switch come to after 1, 2, … links."""
    hops: NDArray[np.uint8]
    """uint8[S, D], the links of each path."""


@dataclass(frozen=True, slots=True, eq=False)
class NeighbourPaths:
    """The minimal paths of all neighbours of S switches, judged for each of C classes.

    A *candidate* for an alternate of a class is any cabled link but that of its minimal port.
    """

    leads_to_neighbour: Bits
    """bool[S, C], whether the class has the neighbour behind its link as a destination."""
    leads_to_others: Bits
    """bool[S, C], whether the class has other destinations."""
    is_candidate: Bits
    """bool[S, C, K], the candidates of each class."""
    best_conflict: NDArray[np.uint8]
    """uint8[S, C, K], the smallest `Conflict` of the neighbour behind each link, over the
    destinations of the class."""
    worst_conflict: NDArray[np.uint8]
    """uint8[S, C, K], the largest `Conflict` over the destinations of the class."""
    downstream_for_all: Bits
    """bool[S, C, K], candidates whose neighbour is downstream for every destination of the
    class."""
    downstream_for_some: Bits
    """bool[S, C, K], candidates whose neighbour is downstream for some destination of the class."""

    @classmethod
    def of(cls, build: Build) -> NeighbourPaths:
        """Walk from every neighbour of every switch to every destination.

        Args:
            build: its tables deliver every pair over minimal ports.
        """
        port, wiring = build.tables.classes.port, build.wiring
        cabled = wiring.far >= 0
        is_candidate = (
            cabled[:, None, :]
            & (port[..., None] > 0)
            & (wiring.port[:, None, :] != port[..., None])
        )
        paths_of_neighbours = cls(
            leads_to_neighbour=np.zeros(port.shape, np.bool_),
            leads_to_others=np.zeros(port.shape, np.bool_),
            is_candidate=is_candidate,
            best_conflict=np.full(is_candidate.shape, Conflict.BACK, np.uint8),
            worst_conflict=np.full(is_candidate.shape, Conflict.NONE, np.uint8),
            downstream_for_all=is_candidate.copy(),
            downstream_for_some=np.zeros(is_candidate.shape, np.bool_),
        )
        fib = Fib.of(build.tables, wiring.far_by_port())
        destinations = np.flatnonzero(build.topology.endpoints)
        step = max(1, PATH_CELLS_AT_ONCE // len(port))
        for first in range(0, len(destinations), step):
            block = destinations[first : first + step]
            paths_of_neighbours._add(fib, block, np.where(cabled, wiring.far, 0))
        return paths_of_neighbours

    def _add(self, fib: Fib, destinations: NDArray[np.int64], far: Vertices) -> None:
        """Add the paths to some destinations.

        Args:
            fib: the routes of the build.
            destinations: int64[D].
            far: int32[S, K], the neighbour behind each link; 0 where there is none.
        """
        paths = _minimal_routes(fib, destinations, self.leads_to_neighbour.shape[1])
        # The destinations in the type of switches, to be compared with them.
        vertices = destinations.astype(np.int32)
        # Destinations sorted by class, so that each class is a range of columns. Destinations
        # without a route are last, as their class has a larger number than any other.
        order = np.argsort(paths.egress_class, axis=1, kind="stable")
        for s, count in enumerate(np.count_nonzero(paths.has_route, axis=1).tolist()):
            if not count:
                continue
            # The classes of switch s, and where the columns of each begin (for `reduceat`).
            columns = order[s, :count]
            classes, begins = np.unique(paths.egress_class[s, columns], return_index=True)

            # Whether the neighbour is the destination, for some destination of each class.
            direct = (paths.next_switch[s] == vertices)[columns]
            self.leads_to_neighbour[s, classes] |= np.logical_or.reduceat(direct, begins)
            self.leads_to_others[s, classes] |= np.logical_or.reduceat(~direct, begins)

            # The conflicts of neighbours: [K, columns], then [classes, K].
            conflict = _conflicts(paths.switches_on_path, s, far[s], vertices)[:, columns]
            best = np.minimum.reduceat(conflict, begins, axis=1).T
            worst = np.maximum.reduceat(conflict, begins, axis=1).T
            self.best_conflict[s, classes] = np.minimum(self.best_conflict[s, classes], best)
            self.worst_conflict[s, classes] = np.maximum(self.worst_conflict[s, classes], worst)

            # The neighbours that are downstream, in the same shapes.
            downstream = (paths.hops[far[s]] < paths.hops[s])[:, columns]
            for_all = np.logical_and.reduceat(downstream, begins, axis=1).T
            for_some = np.logical_or.reduceat(downstream, begins, axis=1).T
            self.downstream_for_all[s, classes] &= for_all
            self.downstream_for_some[s, classes] |= self.is_candidate[s, classes] & for_some

    def of_switches(self, switches: slice) -> NeighbourPaths:
        """The paths of the neighbours of some switches."""
        return NeighbourPaths(*(getattr(self, field.name)[switches] for field in fields(self)))

    @property
    def is_used(self) -> Bits:
        """bool[S, C], whether the class has any destination."""
        return self.leads_to_neighbour | self.leads_to_others

    @property
    def leads_only_to_others(self) -> Bits:
        """bool[S, C], whether the class has destinations behind its neighbour, and no others."""
        return self.leads_to_others & ~self.leads_to_neighbour

    def candidate_links(self) -> Sets:
        """All candidates, also those whose paths come back to the switch, as sets of links."""
        return self._candidates_below(Conflict.ABOVE_ALL)

    def loop_free_links(self) -> Sets:
        """The candidates whose paths do not come back to the switch, as sets of links."""
        return self._candidates_below(Conflict.BACK)

    def node_protecting_links(self) -> Sets:
        """The candidates whose paths meet neither the switch nor its next hop, as sets of links."""
        return self._candidates_below(Conflict.NEXT_HOP)

    def disjoint_links(self) -> Sets:
        """The candidates whose paths meet no switch of the minimal path, as sets of links."""
        return self._candidates_below(Conflict.LATER)

    def _candidates_below(self, limit: Conflict) -> Sets:
        """The candidates that serve all destinations of their class, as sets of links.

        Args:
            limit: a candidate serves a destination if its conflict is smaller, for instance than
                BACK.
        """
        serves_all = self.is_candidate & self.is_used[..., None] & (self.worst_conflict < limit)
        return np.packbits(serves_all, axis=2)

    def partly_node_protecting_classes(self) -> Bits:
        """The classes with a candidate that is node-protecting for some destinations only."""
        return self._partly_served(Conflict.NEXT_HOP)

    def partly_disjoint_classes(self) -> Bits:
        """The classes with a candidate that is disjoint for some destinations only, bool[S, C]."""
        return self._partly_served(Conflict.LATER)

    def _partly_served(self, limit: Conflict) -> Bits:
        """The classes with a candidate that serves only some of their destinations, bool[S, C].

        Args:
            limit: a candidate serves a destination if its conflict is smaller.
        """
        # Conflicts below the limit are as good as none.
        best, worst = (
            np.where(conflict < limit, Conflict.NONE, conflict)
            for conflict in (self.best_conflict, self.worst_conflict)
        )
        partly: Bits = (self.is_candidate & self.is_used[..., None] & (best != worst)).any(axis=2)
        return partly

    def partly_downstream_classes(self) -> Bits:
        """The classes with a link that is downstream for some destinations only, bool[S, C]."""
        only_some = self.downstream_for_some & ~self.downstream_for_all
        partly: Bits = only_some.any(axis=2) & self.is_used
        return partly


def _minimal_routes(fib: Fib, destinations: NDArray[np.int64], class_count: int) -> MinimalRoutes:
    """The minimal paths of all switches to some destinations, int64[D]."""
    egress_class = fib.egress(destinations).astype(np.intp)
    has_route = egress_class < class_count
    itself = np.arange(len(egress_class), dtype=np.int32)[:, None]
    next_switch = np.where(has_route, fib.next_switch(destinations), itself)
    # The destinations in the type of switches, to be compared with them.
    vertices = destinations.astype(np.int32)
    switches_on_path = _switches_on_path(next_switch, vertices)
    return MinimalRoutes(
        egress_class=egress_class,
        has_route=has_route,
        next_switch=next_switch,
        switches_on_path=switches_on_path,
        hops=_hops(switches_on_path, vertices),
    )


def _switches_on_path(next_switch: Vertices, destinations: Vertices) -> list[Vertices]:
    """`MinimalRoutes.switches_on_path`, up to the number of links after which all have arrived.

    Args:
        next_switch: int32[S, D], the next switch of every switch.
        destinations: int32[D].
    """
    column, steps = np.arange(len(destinations)), [next_switch]
    while len(steps) < MOST_HOPS and (steps[-1] != destinations).any():
        next_step = next_switch[steps[-1], column]
        if (next_step == steps[-1]).all():
            break
        steps.append(next_step)
    return steps


def _hops(switches_on_path: list[Vertices], destinations: Vertices) -> NDArray[np.uint8]:
    """The links of every path, uint8[S, D]; of one that does not arrive, at least as many as steps.

    They are counted as the times at which the packet has not arrived yet: at the beginning, and
    after 1, 2, … links.
    """
    source = np.arange(len(switches_on_path[0]))[:, None]
    hops: NDArray[np.uint8] = (source != destinations).astype(np.uint8)
    for switch in switches_on_path[:-1]:
        hops += switch != destinations
    return hops


def _conflicts(
    switches_on_path: list[Vertices], s: int, far: Vertices, destinations: Vertices
) -> NDArray[np.uint8]:
    """The `Conflict` of each neighbour's path with the minimal path of a switch, uint8[K, D].

    Args:
        switches_on_path: of `MinimalRoutes`.
        s: the switch.
        far: int32[K], its neighbours.
        destinations: int32[D].
    """
    conflicts = np.full((len(far), len(destinations)), Conflict.NONE, np.uint8)
    # The switches on the neighbours' paths, [K, D]: the neighbours, then those after 1, 2, … links.
    for on_path in (far[:, None], *(switches[far] for switches in switches_on_path[:-1])):
        conflicts[np.broadcast_to(on_path == s, conflicts.shape)] = Conflict.BACK
        is_before_end = on_path != destinations
        for conflict, own_path in (
            (Conflict.NEXT_HOP, switches_on_path[:1]),
            (Conflict.LATER, switches_on_path[1:-1]),
        ):
            for switches in own_path:
                meets = (on_path == switches[s]) & is_before_end
                value = np.where(meets, np.uint8(conflict), np.uint8(Conflict.NONE))
                np.maximum(conflicts, value, out=conflicts)
    return conflicts
