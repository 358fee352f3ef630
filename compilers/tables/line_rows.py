"""The routes of a whole PolarFly, computed from the lines of its projective plane.

Every switch s of ER_q is a point of the plane and has a *line*: its neighbours, and s itself where
s is a quadric. Any two lines meet in exactly one point. So the minimal path from s to t has

- one hop where t is on the line of s (the *direct* class of the neighbour t), or
- two hops, by the one switch on both lines (the class that leads *behind* that neighbour).

The classes of s are numbered by the places of its neighbours on its line (PolarFly paper, §IV-D).
`compilers.routing.plane_minimal` gives these routes to fabrics that are too large to store them:
q + 1 numbers a switch take the place of S egress values.
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
    """The minimal routes of ER_q, as a build stores them."""

    around: Annotated[NDArray[np.int32], "S lines", "0..S"]
    """int32[S, q + 1], the points on the line of each switch, ascending."""
    direct: Annotated[NDArray[np.int32], "1", "0..C"]
    """int32[1], the class that leads to the first neighbour itself.

    0 where one class serves a neighbour and what is behind it. Where these are two classes, the
    number of links, as `compilers.routing.split_classes` numbers them.
    """


class LineEgress(ComputedEgress):
    """`Routes.egress` of a whole PolarFly, uint8 or uint16[S, S], computed from its lines."""

    packed: LineProgram
    """The lines that the rows are computed from."""

    def __init__(self, packed: LineProgram) -> None:
        order, line_length = packed.around.shape
        self.direct = int(packed.direct[0])
        self.classes = self.direct + line_length
        super().__init__(packed, (order, order), empty_egress(0, 0, self.classes).dtype)
        self.around = packed.around.astype(np.intp)
        # intp[q + 1], the places on a line.
        self.place = np.arange(line_length)
        # [(q + 1)²], the place of the first switch for each switch on the lines of a line.
        self.behind: Egress = self.place.astype(self.dtype).repeat(line_length)
        self.local, self.no_route = local(self.behind), no_route(self.behind)

    def split(self, links: int) -> LineEgress:
        """Return these routes with the direct classes numbered from `links` on."""
        return LineEgress(replace(self.packed, direct=np.array([links], np.int32)))

    def rows(self, number: NDArray[np.int64]) -> Egress:
        """Return the egress values of switches, [n, S], for their numbers, int64[n]."""
        egress: Egress = np.full((len(number), len(self)), self.no_route, self.dtype)
        lines = self.around[number]
        for row, line in zip(egress, lines, strict=True):
            row[self.around.take(line, axis=0).ravel()] = self.behind
        place = np.broadcast_to(self.place, lines.shape)
        is_itself = lines == number[:, None]
        if is_itself.any():
            # A quadric has no link to itself, so the classes after its own place move up by one.
            place = place - (is_itself.cumsum(axis=1) - is_itself)
            for i in np.flatnonzero(is_itself.any(axis=1)).tolist():
                behind = place[i].astype(self.dtype).repeat(len(self.place))
                egress[i, self.around.take(lines[i], axis=0).ravel()] = behind
        row_of = np.arange(len(number))
        egress[row_of[:, None], lines] = place + self.direct
        egress[row_of, number] = self.local
        return egress

    def _cells(self, index: Any) -> Egress:
        """Return the egress value of each pair of a switch and a destination.

        `index` has the switches and the destinations, two arrays of one shape.

        Lines that are not those of a plane do not meet in one point. Their values are taken from
        whole rows, which are defined for any lines.
        """
        keys = self.keys
        if len(index) != 2 or keys is None or self.class_behind is None:
            egress: Egress = super()._cells(index)
            return egress
        switch, destination = (np.asarray(part).ravel().astype(np.intp) for part in index)
        key = switch * len(self) + destination
        position = np.minimum(np.searchsorted(keys, key), len(keys) - 1)
        is_direct = keys[position] == key
        place = np.where(is_direct, position % len(self.place), -1)
        two_hops = np.flatnonzero(~is_direct)
        place[two_hops] = self._meeting_places(switch[two_hops], destination[two_hops])
        after_itself = self.quadric[switch] & (self.around[switch, place] > switch)
        value = place - after_itself + np.where(is_direct, self.direct, 0)
        value = np.where(place < 0, self.no_route, value)
        value = np.where((place >= 0) & (switch == destination), self.local, value)
        return value.astype(self.dtype).reshape(index[0].shape)

    def _meeting_places(self, switch: Numbers, destination: Numbers) -> Numbers:
        """Return the place on each switch's line where its destination's line meets it, [n].

        -1 where the lines do not meet.
        """
        meeting = np.full(len(switch), -1, np.intp)
        if not len(switch):
            return meeting
        # The pairs of one switch are looked up together, on a line that is marked once.
        order = np.argsort(switch, kind="stable")
        starts = np.flatnonzero(np.diff(switch[order])) + 1
        # int16[S], the place of each switch on the line in question, -1 beside it.
        place_of = np.full(len(self), -1, np.int16)
        for pairs in np.split(order, starts):
            line = self.around[switch[pairs[0]]]
            place_of[line] = self.place
            far_lines = self.around.take(destination[pairs], axis=0)
            meeting[pairs] = place_of.take(far_lines).max(axis=1)
            place_of[line] = -1
        return meeting

    def towards(self, destinations: NDArray[np.int64]) -> Egress:
        """Return the egress values of all switches, [S, D], for destinations, int64[D]."""
        class_behind = self.class_behind
        if class_behind is None:
            return np.concatenate([rows[:, destinations] for _, rows in self.blocks()])
        egress: Egress = np.full((len(destinations), len(self)), self.no_route, self.dtype)
        for column, destination in zip(egress, destinations.tolist(), strict=True):
            line = self.around[destination]
            behind = class_behind.take(line, axis=0)
            column[self.around.take(line, axis=0).ravel()] = behind.ravel()
            column[line] = class_behind[destination] + self.dtype.type(self.direct)
            column[destination] = self.local
        return egress.T

    @cached_property
    def class_behind(self) -> Egress | None:
        """The class of the switch t = around[s, j] that leads to s and behind it, [S, q + 1].

        None where some switch t on the line of s does not have s on its own line, which happens
        in no whole PolarFly.
        """
        around, switch = self.around, np.arange(len(self))[:, None]
        # [S, q + 1], the place of s on the line of around[s, j]: sorting all entries of all lines
        # by the switch that they name lists the lines on which each switch is.
        place = np.empty_like(around)
        place.ravel()[stable_order(around.ravel())] = np.tile(self.place, len(around))
        if (around[around, place] != switch).any():
            return None
        after_itself = self.quadric[around] & (switch > around)
        classes: Egress = (place - after_itself).astype(self.dtype)
        return classes

    @cached_property
    def keys(self) -> Numbers | None:
        """One number s·S + t for each t on the line of s, intp[S·(q + 1)]; None if unsorted."""
        keys: Numbers = (np.arange(len(self))[:, None] * len(self) + self.around).ravel()
        return keys if (keys[1:] > keys[:-1]).all() else None

    @cached_property
    def quadric(self) -> NDArray[np.bool_]:
        """Which switches are on their own lines, bool[S]."""
        quadric: NDArray[np.bool_] = (self.around == np.arange(len(self))[:, None]).any(axis=1)
        return quadric

    def served(self, classes: int) -> NDArray[np.int64]:
        """Count the destinations of each of the first `classes` classes, int64[S, C].

        A neighbour t of s has q + 1 points on its line. Not behind t are s itself, and the point
        where the lines of s and t meet, to which s has a direct class. If s is a quadric, these
        two points are one.
        """
        line_length = len(self.place)
        has_class = self.place < (line_length - self.quadric)[:, None]
        behind = (line_length - 2 + self.quadric)[:, None]
        served = np.zeros((len(self), classes), np.int64)
        served[:, :line_length] += np.where(has_class, behind, 0)
        served[:, self.direct : self.direct + line_length] += has_class
        return served

    def routed(self) -> NDArray[np.int64]:
        """Return the number of rows of each switch, int64[S]: a row for every destination."""
        return np.full(len(self), len(self))
