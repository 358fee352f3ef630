"""The rows and classes that differ between two builds, and whether switches can change in place.

An OpenFlow switch has the numbers of classes in metadata and in the numbers of groups. It holds
them in one of two *generations*, two separate ranges of numbers. A move is *in place* if the new
tables keep the generation: then only rows and classes that differ are sent. Otherwise the new
tables come in the other generation next to the old ones, and every row changes. The
conditions for a move in place are:

- each class number means the same port before and after;
- with paths that are shared at every hop, also no class changes;
- if either build marks packets, cables and next hops do not change at all. Otherwise a row of the
  new build could spread a packet that a route of the old build has classified, and a route could
  lead it back. Two generations exclude that, as rows that spread packets match class numbers.

What comes in are two builds; what goes out is a `TableDifference`, of which `move_plan` makes
rounds. A *cell* is a switch and a destination. It has an *own row* if the switch has a row for that
destination alone, and otherwise is served by an aggregate. The *minimal port* of a class is its
next hop on shortest paths; its *bounce* ports are next hops of packets that came in by the minimal
port. In shapes, S is the number of switches of a build, M
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
from compilers.update.matching import SwitchMatching
from compilers.update.order import ComparedCells, bounce_fibs, has_own_row, path_fibs

Numbers = NDArray[Any]
NO_ROUTE = -1
"""In place of a class: the cell has no route."""
LOCAL = -2
"""In place of a class: the switch delivers the packet."""
NOT_IN_OLD_BUILD = -3
"""In place of a class of the old build: the old build has no such switch or destination."""
COMPARED_AT_ONCE = 256
"""How many destinations are compared at once, so that a difference is found soon."""
CLASS_PARTS = ("alternate", "weight", "protection", "bounce")
"""The arrays of `Classes` besides the minimal port."""


def same_class_ports(old: Classes, new: Classes, nodes: SwitchMatching) -> bool:
    """Whether each class number means the same port in both builds, at all common switches.

    A number that one of the builds does not use, where the port is 0, is no contradiction.
    """
    if old.port.shape[1] != new.port.shape[1]:
        return False
    both = nodes.is_in_both
    before, after = old.port[nodes.old_vertex[both]], new.port[nodes.new_vertex[both]]
    return bool(((before == after) | (before == 0) | (after == 0)).all())


def changed_by_number(old: Classes, new: Classes, nodes: SwitchMatching) -> NDArray[np.bool_]:
    """Which classes do something else, are new, or are gone, bool[M, C] by node and class number.

    Class numbers have to mean the same ports (`same_class_ports`).
    """
    # A switch that a build does not have is compared as vertex 0, and set right below.
    old_vertex, new_vertex = np.maximum(nodes.old_vertex, 0), np.maximum(nodes.new_vertex, 0)
    differ = classes_differ(old, (old_vertex,), new, (new_vertex,))
    differ[~nodes.is_in_both] = True
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
        old_part, new_part = getattr(old, part)[old_index], getattr(new, part)[new_index]
        width = max(old_part.shape[-1], new_part.shape[-1])
        differ |= (_with_width(old_part, width) != _with_width(new_part, width)).any(axis=-1)
    return differ


def _with_width(ports: Numbers, width: int) -> Numbers:
    """Ports or weights, with more columns of 0 (no port) up to a width."""
    if ports.shape[-1] == width:
        return ports
    other_axes = [(0, 0)] * (ports.ndim - 1)
    return np.pad(ports, [*other_axes, (0, width - ports.shape[-1])])


@dataclass(frozen=True, slots=True, eq=False)
class TableDifference:
    """Two builds, compared cell by cell.

    What counts as a change depends on `is_in_place`: if it is False, every row and class changes.
    """

    old: Build
    """The build to move from."""
    new: Build
    """The build to move to."""
    nodes: SwitchMatching
    """The switches that either has."""
    is_in_place: bool
    """Whether the move is in place, so that rows and classes are compared by class numbers."""
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
        either_marks = old.forwarding.marks or new.forwarding.marks
        difference = cls(
            old=old,
            new=new,
            nodes=SwitchMatching.of(old, new),
            is_in_place=True,
            fibs=path_fibs(new),
            fibs_before=path_fibs(old),
            bounces=bounce_fibs(new) if either_marks else (),
            bounces_before=bounce_fibs(old) if either_marks else (),
        )
        # The conditions ask what would change in place, so they are asked of this difference.
        if difference._can_stay_in_place():
            return difference
        return replace(difference, is_in_place=False)

    def _can_stay_in_place(self) -> bool:
        """Whether a difference in place fulfils the conditions of this module."""
        old, new = self.old.forwarding, self.new.forwarding
        if not same_class_ports(self.old.tables.classes, self.new.tables.classes, self.nodes):
            return False
        if old.every_hop != new.every_hop:
            return False
        if new.every_hop and self.changed_classes()[self.nodes.is_in_both].any():
            return False
        if old.marks or new.marks:
            return old.marks == new.marks and self._same_next_hops()
        return True

    def _same_next_hops(self) -> bool:
        """Whether all cables stay, and all rows lead where they led."""
        old, new, nodes = self.old.wiring, self.new.wiring, self.nodes
        same_switches = np.array_equal(nodes.old_vertex, nodes.new_vertex)
        if not same_switches or not np.array_equal(old.far, new.far):
            return False
        switches = self.new.tables.switches
        for first in range(0, switches, COMPARED_AT_ONCE):
            destinations = np.arange(first, min(first + COMPARED_AT_ONCE, switches))
            if self.compare_cells(destinations).is_changed.any():
                return False
        return True

    def compare_cells(self, destinations: NDArray[np.int64]) -> ComparedCells:
        """Compare the cells of some destinations.

        A cell changes if its switch is in both builds, and its row leads to another class, comes or
        goes. Switches that are new have their whole program before any packet is led to them, so
        their cells do not count as changed.

        Args:
            destinations: int64[D], vertices of the new build.
        """
        # bool[S], the switches that both builds have.
        stays = self.nodes.old_vertex[self.nodes.node_of_new] >= 0
        stays &= self.nodes.node_of_new >= 0
        shape = len(stays), len(destinations)
        new, old = self.new.tables.routes, self.old.tables.routes
        all_have_rows = new.exact and old.exact
        had_row = np.broadcast_to(np.True_, shape) if all_have_rows else self._had_row(destinations)
        changed = np.broadcast_to(stays[:, None], shape)
        if self.is_in_place:  # otherwise all rows change
            same = _comparable(self.fib.egress(destinations)) == self.old_classes(destinations)
            if not all_have_rows:
                has_row = has_own_row(new, self.fib, destinations) if not new.exact else True
                same &= has_row == had_row
            changed = changed & ~same
        # An old aggregate serves a cell only if the switch was there and had no own row.
        return ComparedCells(changed, not_in_old_aggregate=had_row | ~stays[:, None])

    def old_classes(self, destinations: NDArray[np.int64]) -> NDArray[np.int32]:
        """The class of each cell in the old build.

        Args:
            destinations: int64[D], vertices of the new build.

        Returns:
            int32[S, D], by vertex of the new build: the class; LOCAL, NO_ROUTE or NOT_IN_OLD_BUILD.
        """
        in_both, old_destination = self._old_destinations(destinations)
        egress_before = np.full(
            (self.new.tables.switches, len(destinations)), NOT_IN_OLD_BUILD, np.int32
        )
        if in_both.any():
            egress = _comparable(self.fib_before.egress(old_destination[in_both]))
            egress_before[:, in_both] = self._by_new_vertex(egress, of_new_switch=NOT_IN_OLD_BUILD)
        return egress_before

    def _had_row(self, destinations: NDArray[np.int64]) -> NDArray[np.bool_]:
        """Whether the old tables of a switch have a row for the destination alone, bool[S, D]."""
        in_both, old_destination = self._old_destinations(destinations)
        has_row = np.zeros((self.new.tables.switches, len(destinations)), np.bool_)
        routes = self.old.tables.routes
        if routes.exact or not in_both.any():
            has_row[:, in_both] = True
            return has_row
        by_old_vertex = has_own_row(routes, self.fib_before, old_destination[in_both])
        has_row[:, in_both] = self._by_new_vertex(by_old_vertex, of_new_switch=False)
        return has_row

    def _old_destinations(self, destinations: NDArray[np.int64]) -> tuple[Numbers, Numbers]:
        """Which destinations the old build has, bool[D], and their vertices there, int64[D].

        A destination's vertex is its prefix number, as a build numbers the prefixes of its vertices
        first. Prefixes with higher numbers are those of no vertex.
        """
        old_destination = self.nodes.old_prefix[destinations]
        in_both = (old_destination >= 0) & (old_destination < self.old.tables.switches)
        return in_both, old_destination

    def _by_new_vertex(self, values: Numbers, of_new_switch: Any) -> Numbers:
        """Values of switches by their vertices in the new build.

        Args:
            values: [S, D], by vertex of the old build.
            of_new_switch: the value of switches that only the new build has.

        Returns:
            [S', D], by vertex of the new build.
        """
        old_vertex = np.where(
            self.nodes.node_of_new >= 0, self.nodes.old_vertex[self.nodes.node_of_new], -1
        )
        at_new: Numbers = np.where((old_vertex >= 0)[:, None], values[old_vertex], of_new_switch)
        return at_new

    def changed_classes(self) -> NDArray[np.bool_]:
        """The classes that change, bool[M, C]; all of them if the move is not in place."""
        if self.is_in_place:
            return changed_by_number(self.old.tables.classes, self.new.tables.classes, self.nodes)
        count = self.new.tables.classes.port.shape[1]
        return np.ones((len(self.nodes.datapath_id), count), np.bool_)


def _comparable(egress: Egress) -> NDArray[np.int32]:
    """Values of `Routes.egress` that compare between builds: class, LOCAL or NO_ROUTE, int32.

    In `Routes.egress` the numbers for delivery and for no route depend on the type of integers.
    """
    comparable = egress.astype(np.int32)
    comparable[egress == local(egress)] = LOCAL
    comparable[egress == no_route(egress)] = NO_ROUTE
    return comparable
