"""Forwarding with alternates, protection and bounce: the rule of `Classes`.

Each link has two *arcs*, one at either switch. An arc stands for two things: a way out of its
switch, and a packet in that switch that came in over that link. So a packet moves from arc to arc:
the switch chooses a way out, and the packet is then at the arc on the other end of that link.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from compilers.routing.marked_spread import ONE_SIDE, onward_links, sides
from compilers.tables.build import Build
from compilers.tables.intermediate_form import local, no_route
from compilers.tables.walk import Walker
from compilers.wiring.wiring import Wiring

NOWHERE, HOME = -1, -2
WAYS_AT_ONCE = 1 << 16
Numbers = NDArray[Any]
Dead = tuple[Numbers, ...]


@dataclass(frozen=True, slots=True, eq=False)
class Forwarding:
    """The tables of S switches with K links and C classes, joined with the cables.

    Arc s·L + k, L = K + 1, is switch s and its k-th link; s·L + K a packet from a host at s.

    end: int32[S·L], the arc at the other end of the same link; NOWHERE if there is none.
    element: two int32[S·L + 2], the elements that an arc needs up: its link, by its number below E,
        and the switch at its other end, E + s. The last two entries are for HOME and NOWHERE.
    order: int32[1 + P, S·(C + 2)], ways out by class, the minimal one first; the last two classes
        of a switch deliver and drop. bounce: int32[B, S·(C + 2)], the same for a packet that came
        in on the minimal port. weighted: int32[1 + A, S·(C + 2)], ways for packets from hosts.
    onward: uint8[S·L, ⌈K/8⌉], by the arc that a marked packet came in by the links that it may
        leave by, a bit each, the lowest one first; no row where none is marked, else hosts mark
        what they send by `weighted` from `first_marked` on (`compilers.routing.marked_spread`).
        side: int8[S], of each switch.
    every_hop: whether packets in transit take the ways of `weighted`, too; those that came in by
        one of these go by `bounce`, and last by the minimal one.
    """

    walker: Walker
    slots: int
    classes: int
    links: int
    end: NDArray[np.int32]
    element: tuple[NDArray[np.int32], NDArray[np.int32]]
    order: NDArray[np.int32]
    bounce: NDArray[np.int32]
    weighted: NDArray[np.int32]
    onward: NDArray[np.uint8]
    side: NDArray[np.int8]
    every_hop: bool

    @classmethod
    def of(cls, build: Build) -> Forwarding:
        """Join the tables of a build with its cables."""
        classes, far = build.tables.classes, build.wiring.far
        count = classes.port.shape[1]
        minimal = classes.port[..., None]
        arc_of = _arcs_by_port(build.wiring.port, far)
        order = np.concatenate([_ways(arc_of, each) for each in (minimal, classes.protection)])
        alternate, weight = np.asarray(classes.alternate), np.asarray(classes.weight)
        used = ((minimal, weight[..., :1]), (alternate, weight[..., 1:]))
        order[0, count :: count + 2] = HOME
        end, link = _cables(build.wiring, arc_of)
        neighbour = np.full_like(end, NOWHERE)
        neighbour[end >= 0] = end[end >= 0] // (far.shape[1] + 1)
        links = int(link.max(initial=-1)) + 1
        none = np.full(2, -3, np.int32)
        return cls(
            walker=Walker.of(build.tables, build.wiring.cables()),
            slots=far.shape[1] + 1,
            classes=count,
            links=links,
            end=end,
            element=(
                np.concatenate((np.where(link >= 0, link, -3), none)),
                np.concatenate((np.where(end >= 0, links + neighbour, -3), none)),
            ),
            order=order,
            bounce=_ways(arc_of, classes.bounce),
            weighted=np.concatenate([_ways(arc_of, ports, share) for ports, share in used]),
            onward=_onward(build.wiring, build.marks),
            side=sides(build.topology),
            every_hop=build.every_hop,
        )

    @property
    def switches(self) -> int:
        """S, the number of switches."""
        return len(self.end) // self.slots

    @property
    def turned(self) -> NDArray[np.int32]:
        """int32[n, S·(C + 2)]: the ways of packets that came in by a way of their class."""
        return np.concatenate((self.bounce, self.order[: int(self.every_hop)]))

    @property
    def marks(self) -> bool:
        """Whether hosts' packets are marked."""
        return len(self.onward) > 0

    @property
    def first_marked(self) -> int:
        """The first of `weighted` by which packets are marked; none is beyond all."""
        two_sides = self.side[0] != ONE_SIDE
        return int(not two_sides) if self.marks else len(self.weighted)

    @property
    def hosts(self) -> NDArray[np.int64]:
        """int64[S], the arcs of packets from hosts."""
        return np.arange(self.switches) * self.slots + self.slots - 1

    def spread_number(self, number: Numbers) -> NDArray[np.bool_]:
        """Whether switches spread marked packets that these classes serve."""
        behind: NDArray[np.bool_] = (number < self.classes) & (number // (self.slots - 1) != 1)
        return behind

    def ends(self, link: int) -> tuple[int, int]:
        """The two switches that the link of this number joins."""
        arc = int(np.flatnonzero(self.element[0] == link)[0])
        return arc // self.slots, int(self.end[arc]) // self.slots

    def down(self, arcs: Numbers, dead: Dead) -> NDArray[np.bool_]:
        """bool[n]: whether each arc needs an element that is dead in its packet's case."""
        link, switch = self.element
        result = np.zeros(arcs.shape, np.bool_)
        for part in dead:
            result |= link.take(arcs, mode="wrap") == part
            result |= switch.take(arcs, mode="wrap") == part
        return result


class SpreadCells(NamedTuple):
    """Cells, arc·D + column, of marked packets after one link more, each of them once.

    ended: whose mark has ended; kept: that stay marked. others: of packets that are not spread,
    stuck: of those that have no way on; both where they were.
    """

    ended: Numbers
    kept: Numbers
    others: Numbers
    stuck: Numbers


@dataclass(frozen=True, slots=True, eq=False)
class Towards:
    """Forwarding to D destinations at once.

    rows: int32[S·D], the column of `Forwarding.order` of each switch for each destination.
    """

    forwarding: Forwarding
    destinations: NDArray[np.int64]
    rows: NDArray[np.int32]

    @classmethod
    def of(cls, forwarding: Forwarding, destinations: NDArray[np.int64]) -> Towards:
        """Look up the class of every switch for each destination."""
        egress = forwarding.walker.egress(destinations)
        width = forwarding.classes + 2
        number = np.minimum(egress, width - 1).astype(np.int32)
        number[egress == local(egress)] = width - 2
        number[egress == no_route(egress)] = width - 1
        number += (np.arange(len(egress), dtype=np.int32) * width)[:, None]
        return cls(forwarding, destinations, np.ascontiguousarray(number).ravel())

    def row(self, at: Numbers, column: Numbers) -> NDArray[np.int32]:
        """int32[n]: the columns of `Forwarding.order` at switches, for destinations by column."""
        row: NDArray[np.int32] = self.rows.take(at * len(self.destinations) + column)
        return row

    def way_out(self, arcs: Numbers, column: Numbers, dead: Dead = ()) -> NDArray[np.int32]:
        """int32[n]: the way out by the transit rule; HOME: delivered here, NOWHERE: dropped.

        Args:
            arcs: the arc that each packet came in by.
            column: its destination.
            dead: for each failure of its case, the link or E + switch, as in `element`.
        """
        f = self.forwarding
        row = self.row(arcs // f.slots, column)
        out: NDArray[np.int32] = f.order[0].take(row)
        back = out == arcs
        if f.every_hop:
            back |= (f.weighted.take(row, axis=1) == arcs).any(axis=0)
        stuck = np.flatnonzero(back | f.down(out, dead))
        if len(stuck):
            arc, row, back = arcs[stuck], row[stuck], back[stuck]
            parts = tuple(part[stuck] for part in dead)
            chosen = np.full(len(stuck), NOWHERE, np.int32)
            for turns, ways in enumerate((f.order, f.turned)):
                these = np.flatnonzero(back == turns)
                chosen[these] = self._first_live(
                    ways, row[these], arc[these], tuple(part[these] for part in parts)
                )
            out[stuck] = chosen
        return out

    def ways_out(
        self, arcs: Numbers, column: Numbers, dead: Dead = ()
    ) -> tuple[Numbers, NDArray[np.int32]]:
        """The ways out that packets may take in transit: which packet, ascending, and by what way.

        One each, by `way_out`, unless shortest paths are shared at every hop; the arguments are
        those of `way_out`.
        """
        every = np.arange(len(arcs))
        chooses, ways = self.shared(arcs, column, dead)
        if not len(chooses):
            return every, self.way_out(arcs, column, dead)
        rest = np.ones(len(arcs), np.bool_)
        rest[chooses] = False
        left = every[rest]
        single = self.way_out(arcs[left], column[left], tuple(part[left] for part in dead))
        packet, way = np.nonzero(ways >= 0)
        which = np.concatenate((left, chooses[packet]))
        out = np.concatenate((single, ways[packet, way]))
        order = np.argsort(which, kind="stable")
        return which[order], out[order]

    def shared(
        self, arcs: Numbers, column: Numbers, dead: Dead = ()
    ) -> tuple[Numbers, NDArray[np.int32]]:
        """int64[m], packets in transit that are shared over several ways, and int32[m, 1 + A].

        Those that came in by a way of their class are not, nor are others with no way that is up;
        in the place of a way that is down stands NOWHERE.
        """
        f = self.forwarding
        if not f.every_hop:
            return np.zeros(0, np.int64), np.zeros((0, len(f.weighted)), np.int32)
        ways = f.weighted.take(self.row(arcs // f.slots, column), axis=1)
        several = np.count_nonzero(ways >= 0, axis=0) > 1
        some = np.flatnonzero(several & (ways != arcs).all(axis=0))
        chosen, parts = ways[:, some].T, tuple(part[some, None] for part in dead)
        live = np.where((chosen >= 0) & ~f.down(chosen, parts), chosen, np.int32(NOWHERE))
        kept = (live >= 0).any(axis=1)
        return some[kept], live[kept]

    def spreads(self, at: Numbers, column: Numbers) -> NDArray[np.bool_]:
        """bool[n]: whether switches spread marked packets; else these go as others in transit.

        So they do to a switch itself and to its neighbours, whose classes are the second K
        (`compilers.routing.split_classes`).
        """
        f = self.forwarding
        return f.spread_number(self.row(at, column) - at * (f.classes + 2))

    def keeps(self, at: Numbers, column: Numbers) -> NDArray[np.bool_]:
        """bool[n]: whether packets that switches spread stay marked."""
        side = self.forwarding.side
        here = side[at]
        same: NDArray[np.bool_] = (here == side[self.destinations[column]]) & (here != ONE_SIDE)
        return same

    def onward(self, arcs: Numbers, column: Numbers) -> tuple[Numbers, NDArray[np.int32]]:
        """The ways out of marked packets that are spread: which of these, and by what way.

        Args:
            arcs: the arc that each packet came in by.
            column: its destination.
        """
        f = self.forwarding
        through = np.flatnonzero(self.spreads(arcs // f.slots, column))
        arc = arcs[through].astype(np.int32)
        which, link = np.nonzero(np.unpackbits(f.onward[arc], axis=1, bitorder="little"))
        return through[which], arc[which] // f.slots * f.slots + link.astype(np.int32)

    def spread(self, marked: NDArray[np.bool_]) -> SpreadCells:
        """Move marked packets on by a link.

        Args:
            marked: bool[S·L·D], the cells of packets that have come in, marked.
        """
        f, width = self.forwarding, len(self.destinations)
        comes = marked.reshape(f.switches, f.slots, width).copy()
        at, column = np.divmod(np.arange(f.switches * width), width)
        through = self.spreads(at, column).reshape(f.switches, 1, width)
        others = np.flatnonzero(comes & ~through)
        comes &= through
        sets = f.onward.reshape(f.switches, f.slots, -1)
        stuck = np.flatnonzero(comes & ~sets.any(axis=2, keepdims=True))
        leaves = np.zeros((f.switches, width, sets.shape[2]), np.uint8)
        for k in range(f.slots - 1):
            leaves |= np.where(comes[:, k, :, None], sets[:, k, None], 0)
        switch, to, link = np.nonzero(np.unpackbits(leaves, axis=2, bitorder="little"))
        after = f.end[switch * f.slots + link].astype(np.int64) * width + to
        kept = self.keeps(switch, to)
        return SpreadCells(after[~kept], after[kept], others, stuck)

    def delivered(self, out: Numbers, arcs: Numbers, column: Numbers) -> NDArray[np.bool_]:
        """bool[n]: whether these ways out, of `way_out`, deliver at the destination itself."""
        at = arcs // self.forwarding.slots
        home: NDArray[np.bool_] = (out == HOME) & (at == self.destinations[column])
        return home

    def _first_live(
        self, ways: NDArray[np.int32], row: Numbers, arcs: Numbers, dead: Dead
    ) -> NDArray[np.int32]:
        """int32[n]: the first way that is up and not the way in; else the way in, if allowed."""
        f = self.forwarding
        chosen = np.full(len(row), NOWHERE, np.int32)
        left = np.arange(len(row))
        for ranked in ways:
            way = ranked.take(row[left])
            live = (way >= 0) & (way != arcs[left])
            live &= ~f.down(way, tuple(part[left] for part in dead))
            chosen[left[live]] = way[live]
            left = left[~live]
        back = (f.order.take(row[left], axis=1) == arcs[left]).any(axis=0)
        chosen[left[back]] = arcs[left[back]]
        return chosen

    def path(self, arc: int, dead: tuple[int, ...], limit: int) -> tuple[list[int], int]:
        """The switches that a packet passes, and HOME, NOWHERE or, at the limit, its last arc.

        Args:
            arc: the arc by which the packet came to the first switch.
            dead: the failures, as in `Forwarding.element`.
            limit: the largest number of links to follow.
        """
        f = self.forwarding
        parts = tuple(np.array([part]) for part in dead)
        path = [arc // f.slots]
        while len(path) <= limit:
            out = int(self.way_out(np.array([arc]), np.zeros(1, np.int64), parts)[0])
            if out < 0:
                return path, out
            arc = int(f.end[out])
            path.append(arc // f.slots)
        return path, arc


def _onward(wiring: Wiring, marks: bool) -> NDArray[np.uint8]:
    """uint8[S·L, ⌈K/8⌉], the links that marked packets leave by; no row where none is marked."""
    order, links = wiring.far.shape
    found = np.zeros((order * marks, links + 1, (links + 7) // 8), np.uint8)
    for some, usable in onward_links(wiring) if marks else ():
        found[some, :-1] = np.packbits(usable, axis=2, bitorder="little")
    return found.reshape(-1, found.shape[2])


def _arcs_by_port(port: NDArray[np.int32], far: NDArray[np.int32]) -> NDArray[np.int32]:
    """int32[S, ports + 1]: the arc of each port number, NOWHERE without a cable."""
    table = np.full((len(port), int(port.max(initial=0)) + 1), NOWHERE, np.int32)
    switch, link = np.nonzero(far >= 0)
    table[switch, port[switch, link]] = switch * (far.shape[1] + 1) + link
    return table


def _ways(
    arc_of: NDArray[np.int32], ports: Numbers, weight: Numbers | None = None
) -> NDArray[np.int32]:
    """int32[n, S·(C + 2)]: ports of classes as arcs; the last two classes have none.

    Args:
        arc_of: int32[S, ports + 1], `_arcs_by_port`.
        ports: [S, C, n].
        weight: [S, C, n], ports without a weight are left out; None: all have one.
    """
    order, classes, count = ports.shape
    width = arc_of.shape[1]
    row = np.arange(0, order * width, width)[:, None, None]
    ways = np.full((count, order, classes + 2), NOWHERE, np.int32)
    step = max(1, WAYS_AT_ONCE // max(1, classes * count))
    for some in (slice(first, first + step) for first in range(0, order, step)):
        port = ports[some]
        known = (port > 0) & (port < width)
        if weight is not None:
            known &= weight[some] > 0
        arc = arc_of.take(np.where(known, port, 0) + row[some])
        ways[:, some, :classes] = np.moveaxis(arc, 2, 0)
    return ways.reshape(count, order * (classes + 2))


def _cables(
    wiring: Wiring, arc_of: NDArray[np.int32]
) -> tuple[NDArray[np.int32], NDArray[np.int32]]:
    """int32[S·L] twice: the arc at the other end of each, and the number of its link."""
    far, (order, links) = wiring.far, wiring.far.shape
    end = np.full((order, links + 1), NOWHERE, np.int32)
    number = np.full_like(end, NOWHERE)
    there = far >= 0
    end[:, :-1][there] = arc_of[far[there], wiring.far_port[there]]
    # Links in the order of their ends, the smaller one first.
    forth = there & (far > np.arange(order)[:, None])
    number[:, :-1][forth] = np.arange(np.count_nonzero(forth), dtype=np.int32)
    back = there & ~forth
    number[:, :-1][back] = number.ravel()[end[:, :-1][back]]
    return end.ravel(), number.ravel()
