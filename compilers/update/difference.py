"""The rows and classes that differ between two builds, and whether switches can change in place.

Class numbers are in metadata and group numbers of OpenFlow. Switches hold them in one of two
*generations*. A move is *in place* if the new tables keep the generation: then only rows and
classes that differ are sent. Otherwise the new tables come in the other generation next to the old
ones, and every row changes. A move is in place if

- each class number means the same port before and after;
- with paths that are shared at every hop, also no class changes;
- with marked packets, also all cables stay and no row leads elsewhere. A row that spreads marked
  packets matches class numbers, and so a generation: it acts only on packets that a route of its
  own build has classified. In place nothing would keep the builds apart, and a packet that is
  spread by the rows of one build could be led back by routes of the other.

What comes in are two builds; what goes out is a `TableDifference`, of which `move_plan` makes
rounds. A *cell* is a switch and a destination. In shapes, S is the number of switches of a build, M
of the switches that either build has, C of the classes of a switch, and D of destinations.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from compilers.tables.build import Build
from compilers.tables.fib import Fib
from compilers.tables.intermediate_form import Classes, Egress, local, no_route
from compilers.update.matching import Matching
from compilers.update.order import bounce_fibs, has_own_row, path_fibs

Numbers = NDArray[Any]
NO_ROUTE, LOCAL, NO_NETWORK = -1, -2, -3
"""In place of an old class: no route; delivery here; the old build has no such network."""
COMPARED_AT_ONCE = 256
"""The destinations that are compared at once."""
CLASS_PARTS = ("alternate", "weight", "protection", "bounce")
"""The arrays of `Classes` besides the minimal port."""


def same_numbers(old: Classes, new: Classes, nodes: Matching) -> bool:
    """Whether class numbers, and so group numbers, mean the same ports at all common switches."""
    if old.port.shape[1] != new.port.shape[1]:
        return False
    both = nodes.both
    before, after = old.port[nodes.old_vertex[both]], new.port[nodes.new_vertex[both]]
    return bool(((before == after) | (before == 0) | (after == 0)).all())


def changed_by_node(old: Classes, new: Classes, nodes: Matching) -> NDArray[np.bool_]:
    """Which classes do something else, are new, or are gone, bool[M, C] by switch and number.

    Class numbers have to mean the same ports (`same_numbers`).
    """
    before, after = np.maximum(nodes.old_vertex, 0), np.maximum(nodes.new_vertex, 0)
    differ = classes_differ(old, (before,), new, (after,))
    differ[~nodes.both] = True
    return differ


def classes_differ(
    old: Classes, old_index: tuple[Numbers, ...], new: Classes, new_index: tuple[Numbers, ...]
) -> NDArray[np.bool_]:
    """Whether classes of one table do something else than classes of another.

    Args:
        old: the first table.
        old_index: an index into its arrays [S, C, …]: the switches, or switches and classes.
        new: the second table.
        new_index: an index into its arrays.

    Returns:
        bool, in the shape of the indexed classes.
    """
    differ: NDArray[np.bool_] = old.port[old_index] != new.port[new_index]
    for part in CLASS_PARTS:
        before, after = getattr(old, part)[old_index], getattr(new, part)[new_index]
        width = max(before.shape[-1], after.shape[-1])
        differ |= (_with_width(before, width) != _with_width(after, width)).any(axis=-1)
    return differ


def _with_width(ports: Numbers, width: int) -> Numbers:
    """Ports or weights, with more columns of 0 (no port) up to a width."""
    if ports.shape[-1] == width:
        return ports
    other_axes = [(0, 0)] * (ports.ndim - 1)
    return np.pad(ports, [*other_axes, (0, width - ports.shape[-1])])


@dataclass(frozen=True, slots=True, eq=False)
class TableDifference:
    """Two builds, compared cell by cell."""

    old: Build
    """The build to move from."""
    new: Build
    """The build to move to."""
    nodes: Matching
    """The switches that either has."""
    in_place: bool
    """Whether rows change in place, so that the numbers of classes count."""
    fibs: tuple[Fib, ...]
    """Next hops by the new build, one for each path that packets may take (`order.path_fibs`)."""
    fibs_before: tuple[Fib, ...]
    """Next hops by the old build, one for each path."""
    bounces: tuple[Fib, ...] = ()
    """Next hops by the new build, for each port of `bounce` (`order.bounce_fibs`); empty if neither
    build marks packets."""
    bounces_before: tuple[Fib, ...] = ()
    """Next hops by the old build, for each port of `bounce`."""

    @property
    def fib(self) -> Fib:
        """Next hops by the minimal ports of the new build."""
        return self.fibs[0]

    @property
    def fib_before(self) -> Fib:
        """Next hops by the minimal ports of the old build."""
        return self.fibs_before[0]

    @classmethod
    def of(cls, old: Build, new: Build) -> TableDifference:
        """Compare two builds; in place wherever that is possible."""
        marks = old.forwarding.marks or new.forwarding.marks
        difference = cls(
            old=old,
            new=new,
            nodes=Matching.of(old, new),
            in_place=True,
            fibs=path_fibs(new),
            fibs_before=path_fibs(old),
            bounces=bounce_fibs(new) if marks else (),
            bounces_before=bounce_fibs(old) if marks else (),
        )
        return replace(difference, in_place=difference._can_be_in_place())

    def _can_be_in_place(self) -> bool:
        """Whether the move can be in place, by the conditions above.

        `in_place` has to hold, so that classes and rows are compared by their numbers.
        """
        old, new = self.old.forwarding, self.new.forwarding
        if not same_numbers(self.old.tables.classes, self.new.tables.classes, self.nodes):
            return False
        if old.every_hop != new.every_hop:
            return False
        if new.every_hop and self.changed_classes()[self.nodes.both].any():
            return False
        if old.marks or new.marks:
            return old.marks == new.marks and self._same_next_hops()
        return True

    def _same_next_hops(self) -> bool:
        """Whether all cables stay, and all rows lead where they led; `in_place` has to hold."""
        old, new, nodes = self.old.wiring, self.new.wiring, self.nodes
        if not np.array_equal(nodes.old_vertex, nodes.new_vertex) or not np.array_equal(
            old.far, new.far
        ):
            return False
        switches = self.new.tables.switches
        for first in range(0, switches, COMPARED_AT_ONCE):
            changed, _ = self.compare_cells(
                np.arange(first, min(first + COMPARED_AT_ONCE, switches))
            )
            if changed.any():
                return False
        return True

    def compare_cells(
        self, destinations: NDArray[np.int64]
    ) -> tuple[NDArray[np.bool_], NDArray[np.bool_]]:
        """Compare the cells, pairs of a switch and a destination, of some destinations.

        Switches that are new are left out: they have their whole program before any packet is led
        to them.

        Args:
            destinations: int64[D], vertices of the new build.

        Returns:
            bool[S, D] twice: the cells of switches that stay whose row changes; and the cells that
            no aggregate of the old tables serves.
        """
        # bool[S], the switches that both builds have.
        stays = self.nodes.old_vertex[self.nodes.node_of_new] >= 0
        stays &= self.nodes.node_of_new >= 0
        shape = len(stays), len(destinations)
        changed = np.broadcast_to(stays[:, None], shape)
        new, old = self.new.tables.routes, self.old.tables.routes
        exact = new.exact and old.exact
        had_row = np.broadcast_to(np.True_, shape) if exact else self._had_row(destinations)
        if self.in_place:  # otherwise all rows change
            same = _comparable(self.fib.egress(destinations)) == self.old_classes(destinations)
            if not exact:
                has_row = has_own_row(new, self.fib, destinations) if not new.exact else True
                same &= has_row == had_row
            changed = changed & ~same
        return changed, had_row | ~stays[:, None]

    def old_classes(self, destinations: NDArray[np.int64]) -> NDArray[np.int32]:
        """The class of each cell in the old build.

        Args:
            destinations: int64[D], vertices of the new build.

        Returns:
            int32[S, D], by vertex of the new build: the class; LOCAL, NO_ROUTE or NO_NETWORK.
        """
        in_both, old_destination = self._old_destinations(destinations)
        egress_before = np.full((self.new.tables.switches, len(destinations)), NO_NETWORK, np.int32)
        if in_both.any():
            egress = _comparable(self.fib_before.egress(old_destination[in_both]))
            egress_before[:, in_both] = self._by_new_vertex(egress, NO_NETWORK)
        return egress_before

    def _had_row(self, destinations: NDArray[np.int64]) -> NDArray[np.bool_]:
        """Whether the old tables of a switch have a row for the destination alone, bool[S, D]."""
        in_both, old_destination = self._old_destinations(destinations)
        had_row = np.zeros((self.new.tables.switches, len(destinations)), np.bool_)
        routes = self.old.tables.routes
        if routes.exact or not in_both.any():
            had_row[:, in_both] = True
            return had_row
        rows = has_own_row(routes, self.fib_before, old_destination[in_both])
        had_row[:, in_both] = self._by_new_vertex(rows, False)
        return had_row

    def _old_destinations(self, destinations: NDArray[np.int64]) -> tuple[Numbers, Numbers]:
        """Which destinations the old build has, bool[D], and their vertices there, int64[D]."""
        # The first prefix numbers of a build are those of its vertices.
        old_destination = self.nodes.prefix[destinations]
        is_vertex = (old_destination >= 0) & (old_destination < self.old.tables.switches)
        return is_vertex, old_destination

    def _by_new_vertex(self, values: Numbers, otherwise: Any) -> Numbers:
        """Values of switches by their vertices in the new build.

        Args:
            values: [S, D], by vertex of the old build.
            otherwise: the value of switches that only the new build has.

        Returns:
            [S', D], by vertex of the new build.
        """
        old_vertex = np.where(
            self.nodes.node_of_new >= 0, self.nodes.old_vertex[self.nodes.node_of_new], -1
        )
        at_new: Numbers = np.where((old_vertex >= 0)[:, None], values[old_vertex], otherwise)
        return at_new

    def changed_classes(self) -> NDArray[np.bool_]:
        """The classes that change, bool[M, C]; all of them if the move is not in place."""
        if self.in_place:
            return changed_by_node(self.old.tables.classes, self.new.tables.classes, self.nodes)
        count = self.new.tables.classes.port.shape[1]
        return np.ones((len(self.nodes.datapath_id), count), np.bool_)


def _comparable(egress: Egress) -> NDArray[np.int32]:
    """Values of `Routes.egress` as int32 that compare between builds: class, LOCAL or NO_ROUTE."""
    plain = egress.astype(np.int32)
    plain[egress == local(egress)] = LOCAL
    plain[egress == no_route(egress)] = NO_ROUTE
    return plain
