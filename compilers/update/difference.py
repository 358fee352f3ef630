"""The cells, rows and classes that differ between two builds, and whether they change in place.

In place means in the generation of metadata and group numbers that switches hold: only rows and
classes that differ are sent. That is possible where a class number means the same port before and
after; where packets are marked, only if no row leads elsewhere: a switch knows by the generation
whether a row that spreads is for a packet; where transit is shared over several next hops, only if
no class changes. Otherwise the new tables come in the other generation, next to the
old ones, and every row changes.
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
from compilers.update.order import bounce_fibs, own_rows, path_fibs

Numbers = NDArray[Any]
LOCAL, NO_ROUTE, NO_NETWORK = -2, -1, -3
COMPARED_AT_ONCE = 256
"""Destinations."""
CLASS_PARTS = ("alternate", "weight", "protection", "bounce")


def same_numbers(old: Classes, new: Classes, nodes: Matching) -> bool:
    """Whether class numbers, and so group numbers, mean the same ports at all common switches."""
    if old.port.shape[1] != new.port.shape[1]:
        return False
    both = nodes.both
    before, after = old.port[nodes.before[both]], new.port[nodes.after[both]]
    return bool(((before == after) | (before == 0) | (after == 0)).all())


def changed_classes(old: Classes, new: Classes, nodes: Matching) -> NDArray[np.bool_]:
    """bool[M, C]: the classes of a number that do something else now, or are new, or are gone.

    Needs `same_numbers`.
    """
    before, after = (np.maximum(vertex, 0) for vertex in (nodes.before, nodes.after))
    differ = classes_differ((old, new), ((before,), (after,)))
    differ[~nodes.both] = True
    return differ


def classes_differ(
    sides: tuple[Classes, Classes], places: tuple[tuple[Numbers, ...], tuple[Numbers, ...]]
) -> NDArray[np.bool_]:
    """Whether classes of two tables, at places of each, do something else."""
    one, other = (c.port[place] for c, place in zip(sides, places, strict=True))
    differ: NDArray[np.bool_] = one != other
    for word in CLASS_PARTS:
        one, other = (getattr(c, word)[place] for c, place in zip(sides, places, strict=True))
        width = max(one.shape[-1], other.shape[-1])
        if one.shape != other.shape:
            room = [(0, 0)] * (one.ndim - 1)
            one, other = (np.pad(a, [*room, (0, width - a.shape[-1])]) for a in (one, other))
        differ |= (one != other).any(axis=-1)
    return differ


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
    """The tables of the new build, one for each path that packets may take (`order.path_fibs`)."""
    fibs_before: tuple[Fib, ...]
    """The same of the old build."""
    bounces: tuple[Fib, ...] = ()
    """The tables of the new build by each bounce (`order.bounce_fibs`); empty where neither build
    marks packets."""
    bounces_before: tuple[Fib, ...] = ()
    """The same of the old build."""

    @property
    def fib(self) -> Fib:
        """By the minimal ports of the new build."""
        return self.fibs[0]

    @property
    def fib_before(self) -> Fib:
        """By those of the old one."""
        return self.fibs_before[0]

    @classmethod
    def of(cls, old: Build, new: Build) -> TableDifference:
        """Compare; in place wherever that is possible."""
        nodes = Matching.of(old, new)
        marks = old.forwarding.marks or new.forwarding.marks
        difference = cls(
            old=old,
            new=new,
            nodes=nodes,
            in_place=same_numbers(old.tables.classes, new.tables.classes, nodes),
            fibs=path_fibs(new),
            fibs_before=path_fibs(old),
            bounces=bounce_fibs(new) if marks else (),
            bounces_before=bounce_fibs(old) if marks else (),
        )
        if difference.in_place and (old.forwarding.every_hop or new.forwarding.every_hop):
            same = (
                old.forwarding.every_hop
                and new.forwarding.every_hop
                and not difference.classes()[nodes.both].any()
            )
            difference = replace(difference, in_place=same)
        if not difference.in_place or not marks:
            return difference
        same_marks = old.forwarding.marks == new.forwarding.marks
        return replace(difference, in_place=same_marks and difference._same_next_hops())

    def _same_next_hops(self) -> bool:
        """Whether all cables are the same, and rows lead where they led; needs `in_place`."""
        old, new, nodes = self.old.wiring, self.new.wiring, self.nodes
        if not np.array_equal(nodes.before, nodes.after) or not np.array_equal(old.far, new.far):
            return False
        order = self.new.tables.switches
        blocks = (
            range(first, order)[:COMPARED_AT_ONCE] for first in range(0, order, COMPARED_AT_ONCE)
        )
        return not any(self.compare(np.array(block))[0].any() for block in blocks)

    def compare(
        self, destinations: NDArray[np.int64]
    ) -> tuple[NDArray[np.bool_], NDArray[np.bool_]]:
        """bool[S, D] twice: cells whose row is not the old one, at switches that stay; and cells
        that no aggregate of the old tables serves.

        Switches that are new have their whole program before any packet is led to them.
        """
        stays = self.nodes.before[self.nodes.node_after] >= 0
        stays &= self.nodes.node_after >= 0
        shape = len(stays), len(destinations)
        changed = np.broadcast_to(stays[:, None], shape)
        new, old = self.new.tables.routes, self.old.tables.routes
        exact = new.exact and old.exact
        own_before = np.broadcast_to(np.True_, shape) if exact else self._own_before(destinations)
        if self.in_place:
            same = _plain(self.fib.egress(destinations)) == self.before(destinations)
            if not exact:
                own_now = own_rows(new, self.fib, destinations) if not new.exact else True
                same &= own_now == own_before
            changed = changed & ~same
        return changed, own_before | ~stays[:, None]

    def before(self, destinations: NDArray[np.int64]) -> NDArray[np.int32]:
        """int32[S, D]: the old class of each cell, in new vertices; LOCAL, NO_ROUTE, NO_NETWORK."""
        in_both, earlier = self._earlier(destinations)
        egress_before = np.full((self.new.tables.switches, len(destinations)), NO_NETWORK, np.int32)
        if in_both.any():
            egress = _plain(self.fib_before.egress(earlier[in_both]))
            egress_before[:, in_both] = self._at_new(egress, NO_NETWORK)
        return egress_before

    def _own_before(self, destinations: NDArray[np.int64]) -> NDArray[np.bool_]:
        in_both, earlier = self._earlier(destinations)
        has_own = np.zeros((self.new.tables.switches, len(destinations)), np.bool_)
        routes = self.old.tables.routes
        if routes.exact or not in_both.any():
            has_own[:, in_both] = True
            return has_own
        has_own[:, in_both] = self._at_new(
            own_rows(routes, self.fib_before, earlier[in_both]), False
        )
        return has_own

    def _earlier(self, destinations: NDArray[np.int64]) -> tuple[Numbers, Numbers]:
        """Which destinations were a network of the old build, and which vertices they were."""
        earlier = self.nodes.prefix[destinations]
        return (earlier >= 0) & (earlier < self.old.tables.switches), earlier

    def _at_new(self, values: Numbers, otherwise: Any) -> Numbers:
        """Values of old vertices, [S, D], in the order of the new ones."""
        vertex = np.where(self.nodes.node_after >= 0, self.nodes.before[self.nodes.node_after], -1)
        result: Numbers = np.where((vertex >= 0)[:, None], values[vertex], otherwise)
        return result

    def classes(self) -> NDArray[np.bool_]:
        """bool[M, C]: `changed_classes`; every one where the numbers are others."""
        if self.in_place:
            return changed_classes(self.old.tables.classes, self.new.tables.classes, self.nodes)
        count = self.new.tables.classes.port.shape[1]
        return np.ones((len(self.nodes.datapath_id), count), np.bool_)


def _plain(egress: Egress) -> NDArray[np.int32]:
    """int32: classes as they are, LOCAL and NO_ROUTE, whatever the type was."""
    plain = egress.astype(np.int32)
    plain[egress == local(egress)] = LOCAL
    plain[egress == no_route(egress)] = NO_ROUTE
    return plain
