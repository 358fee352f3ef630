"""The routes of a whole PolarFly, computed a switch at a time from the lines of its plane.

The line of a switch has its neighbours, and the switch itself where that is a quadric. Two switches
are on each other's line, or their lines meet in the one switch that is next to both. So the class
of s towards the k-th neighbour leads to all switches on the neighbour's line, but for those on the
line of s, each of which has a class that leads to it directly (PolarFly paper, §IV-D).
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Annotated, Any

import numpy as np
from numpy.typing import NDArray

from compilers.tables.computed_array import ComputedEgress
from compilers.tables.intermediate_form import Egress, empty_egress, local, no_route
from compilers.topology.adjacency import stable_order

Numbers = NDArray[np.intp]


@dataclass(frozen=True, slots=True, eq=False)
class LineProgram:
    """The minimal routes of ER_q.

    around: int32[S, q + 1], the line of each switch, ascending. direct: int32[1], the class that
    leads to the first neighbour itself: 0, or the number of links where there are two classes a
    link (`compilers.routing.split_classes`).
    """

    around: Annotated[NDArray[np.int32], "S lines", "0..S"]
    direct: Annotated[NDArray[np.int32], "1", "0..C"]


class LineEgress(ComputedEgress):
    """`Routes.egress`, uint8 or uint16[S, S]."""

    packed: LineProgram

    def __init__(self, packed: LineProgram) -> None:
        order, lines = packed.around.shape
        self.direct = int(packed.direct[0])
        self.classes = self.direct + lines
        super().__init__(packed, (order, order), empty_egress(0, 0, self.classes).dtype)
        self.around = packed.around.astype(np.intp)
        self.place = np.arange(lines)
        self.behind: Egress = self.place.astype(self.dtype).repeat(lines)
        self.here, self.nothing = local(self.behind), no_route(self.behind)

    def split(self, links: int) -> LineEgress:
        """The same with the classes that lead to neighbours themselves after so many links."""
        return LineEgress(replace(self.packed, direct=np.array([links], np.int32)))

    def rows(self, number: NDArray[np.int64]) -> Egress:
        """[n, S]: the egress values of switches."""
        found: Egress = np.full((len(number), len(self)), self.nothing, self.dtype)
        near, at = self.around[number], np.arange(len(number))
        itself = near == number[:, None]
        place = np.broadcast_to(self.place, near.shape)
        take, behind = self.around.take, self.behind
        for row, line in zip(found, near, strict=True):
            row[take(line, axis=0).ravel()] = behind
        if itself.any():  # a quadric has no link to itself
            quadrics = np.flatnonzero(itself.any(axis=1))
            place = place - (itself.cumsum(axis=1) - itself)
            for i in quadrics.tolist():
                values = place[i].astype(self.dtype).repeat(len(self.place))
                found[i, take(near[i], axis=0).ravel()] = values
        found[at[:, None], near] = place + self.direct
        found[at, number] = self.here
        return found

    def _cells(self, index: Any) -> Egress:
        """The values of pairs of switches: the other is on the line of the one, or the lines meet.

        What lines that are no plane's say, their rows say.
        """
        keys = self.keys
        if len(index) != 2 or keys is None or self.number is None:
            found: Egress = super()._cells(index)
            return found
        s, end = (np.asarray(part).ravel().astype(np.intp) for part in index)
        on_line = np.minimum(np.searchsorted(keys, s * len(self) + end), len(keys) - 1)
        direct = keys[on_line] == s * len(self) + end
        place = np.where(direct, on_line % len(self.place), -1)
        behind = np.flatnonzero(~direct)
        behind = behind[np.argsort(s[behind], kind="stable")]
        mark = np.full(len(self), -1, np.int16)
        ends = np.flatnonzero(np.diff(s[behind])) + 1
        for some in np.split(behind, ends) if len(behind) else ():
            line = self.around[s[some[0]]]
            mark[line] = self.place
            place[some] = mark.take(self.around.take(end[some], axis=0)).max(axis=1)
            mark[line] = -1
        own = self.around[s, place] > s  # the classes of a quadric leave itself out
        value = place - (own & self.quadric[s]) + self.direct * direct
        value = np.where(place < 0, self.nothing, np.where(s == end, self.here, value))
        return value.astype(self.dtype).reshape(index[0].shape)

    def towards(self, destinations: NDArray[np.int64]) -> Egress:
        """[S, D]: the egress values of all switches for each destination."""
        number = self.number
        if number is None:
            return np.concatenate([rows[:, destinations] for _, rows in self.blocks()])
        found: Egress = np.full((len(destinations), len(self)), self.nothing, self.dtype)
        for column, destination in zip(found, destinations.tolist(), strict=True):
            near = self.around[destination]
            column[self.around.take(near, axis=0).ravel()] = number.take(near, axis=0).ravel()
            column[near] = number[destination] + self.dtype.type(self.direct)
            column[destination] = self.here
        return found.T

    @cached_property
    def number(self) -> Egress | None:
        """[S, q + 1]: the class behind each switch of a line at that switch, to the line's own.

        None if a switch is not on the lines of those on its own: no whole PolarFly has that.
        """
        around, own = self.around, np.arange(len(self))[:, None]
        place = np.empty_like(around)
        place.ravel()[stable_order(around.ravel())] = np.tile(self.place, len(around))
        if (around[around, place] != own).any():
            return None
        number: Egress = (place - (self.quadric[around] & (own > around))).astype(self.dtype)
        return number

    @cached_property
    def keys(self) -> Numbers | None:
        """[S·(q + 1)]: s·S + t for each switch t on the line of s, if they ascend."""
        keys: Numbers = np.arange(len(self))[:, None] * len(self) + self.around
        return keys.ravel() if (keys.ravel()[1:] > keys.ravel()[:-1]).all() else None

    @cached_property
    def quadric(self) -> NDArray[np.bool_]:
        """bool[S]: which switches are on their own lines."""
        quadric: NDArray[np.bool_] = (self.around == np.arange(len(self))[:, None]).any(axis=1)
        return quadric

    def served(self, classes: int) -> NDArray[np.int64]:
        """int64[S, C]: how many destinations have each of so many classes, of a plane's lines."""
        lines = len(self.place)
        there = self.place < (lines - self.quadric)[:, None]
        found = np.zeros((len(self), classes), np.int64)
        found[:, :lines] += there * (lines - 2 + self.quadric)[:, None]
        found[:, self.direct : self.direct + lines] += there
        return found

    def routed(self) -> NDArray[np.int64]:
        """int64[S]: how many rows each switch has, as the lines of a plane have it."""
        return np.full(len(self), len(self))
