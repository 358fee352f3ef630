"""The routes of a whole PolarFly, computed from the lines of its projective plane.

Every switch s of ER_q is a point of the plane and has a *line*: its neighbours, and s itself where
s is a quadric. Any two lines meet in exactly one point. So the minimal path from s to t has

- one hop where t is on the line of s (the *direct* class of the neighbour t), or
- two hops, by the one switch on both lines (the *two-hop* class of that neighbour).

A class of s is numbered by the index of its neighbour on the line of s, in ascending order
(PolarFly paper, §IV-D). A quadric has no link to itself, so the classes of the neighbours after
itself have numbers that are smaller by one (the *quadric shift*). K is the number of links of a
switch, S that of switches, C that of classes. `compilers.routing.plane_minimal` gives these routes
to fabrics that are too large to store them: q + 1 numbers a switch take the place of S egress
values.

In ER_2, switch 4 is a quadric with the line 1, 4, 6. So its class 0 leads to switch 1, and its
class 1 to switch 6. The line of switch 0 is 1, 3, 5. Both lines meet in 1, so the row of switch 4
for switch 0 has class 0.

A damaged file may state lines that are not those of a plane. Its rows are the same function of the
lines, so proofs and checks can read them and find what is wrong. Single values and columns are then
taken from whole rows (`LineEgress.are_ascending_and_mutual`).
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
    """int32[1], the offset of the direct classes: 0 if shared with the two-hop class, else K.

    `compilers.routing.split_classes` divides shared classes.
    """


class LineEgress(ComputedEgress):
    """`Routes.egress` of a whole PolarFly, uint8 or uint16[S, S], computed from its lines."""

    packed: LineProgram
    """The lines that the rows are computed from."""

    def __init__(self, packed: LineProgram) -> None:
        switches, line_length = packed.around.shape
        # The number of the first direct class.
        self.direct_offset = int(packed.direct[0])
        self.classes = self.direct_offset + line_length
        super().__init__(packed, (switches, switches), empty_egress(0, 0, self.classes).dtype)
        self.line_points = packed.around.astype(np.intp)
        # intp[q + 1], the indices of points on a line.
        self.index_on_line = np.arange(line_length)
        # [(q + 1)²], the two-hop classes of a switch that is no quadric: for each point on the
        # line of its first neighbour, for each point on the line of its second one, …
        self.two_hop_classes: Egress = self.index_on_line.astype(self.dtype).repeat(line_length)
        self.local, self.no_route = local(self.two_hop_classes), no_route(self.two_hop_classes)

    def split(self, links: int) -> LineEgress:
        """Return these routes with the direct classes numbered from `links` on."""
        return LineEgress(replace(self.packed, direct=np.array([links], np.int32)))

    def rows(self, number: NDArray[np.int64]) -> Egress:
        """Return the egress values of switches, [n, S], for their numbers, int64[n]."""
        egress: Egress = np.full((len(number), len(self)), self.no_route, self.dtype)
        lines = self.line_points[number]
        # Two-hop classes go to all points of the neighbours' lines. What does not belong there is
        # overwritten: first the rows of quadrics, then neighbours, then the switch itself.
        for row, line in zip(egress, lines, strict=True):
            row[self.line_points.take(line, axis=0).ravel()] = self.two_hop_classes
        index_on_line = np.broadcast_to(self.index_on_line, lines.shape)
        is_itself = lines == number[:, None]
        if is_itself.any():
            is_after_itself = is_itself.cumsum(axis=1) - is_itself
            index_on_line = index_on_line - is_after_itself  # the quadric shift
            for i in np.flatnonzero(is_itself.any(axis=1)).tolist():
                two_hop_classes = index_on_line[i].astype(self.dtype).repeat(lines.shape[1])
                egress[i, self.line_points.take(lines[i], axis=0).ravel()] = two_hop_classes
        row = np.arange(len(number))
        egress[row[:, None], lines] = index_on_line + self.direct_offset
        egress[row, number] = self.local
        return egress

    def _cells(self, index: Any) -> Egress:
        """Return the egress value of each pair of a switch and a destination.

        Args:
            index: the switches and the destinations, two arrays of one shape; or the switches
                alone, for whole rows.
        """
        if len(index) != 2 or not self.are_ascending_and_mutual:
            egress: Egress = super()._cells(index)
            return egress
        switch, destination = (np.asarray(part).ravel().astype(np.intp) for part in index)
        key = switch * len(self) + destination
        position = np.minimum(np.searchsorted(self.point_keys, key), self.point_keys.size - 1)
        is_direct = self.point_keys[position] == key
        index_on_line = np.where(is_direct, position % len(self.index_on_line), -1)
        two_hops = np.flatnonzero(~is_direct)
        index_on_line[two_hops] = self._meeting_indices(switch[two_hops], destination[two_hops])
        quadric_shift = self.quadric[switch] & (self.line_points[switch, index_on_line] > switch)
        value = index_on_line - quadric_shift + np.where(is_direct, self.direct_offset, 0)
        value = np.where(index_on_line < 0, self.no_route, value)
        value = np.where(switch == destination, self.local, value)
        return value.astype(self.dtype).reshape(index[0].shape)

    def _meeting_indices(self, switch: Numbers, destination: Numbers) -> Numbers:
        """Return the index on each switch's line of the point where both lines meet, [n].

        -1 where the lines do not meet.
        """
        meeting = np.full(len(switch), -1, np.intp)
        if not len(switch):
            return meeting
        # The pairs of one switch are looked up together, on a line that is marked once.
        order = np.argsort(switch, kind="stable")
        starts = np.flatnonzero(np.diff(switch[order])) + 1
        # int16[S], the index of each point on the line in question, -1 beside it.
        index_of = np.full(len(self), -1, np.int16)
        for pairs in np.split(order, starts):
            line = self.line_points[switch[pairs[0]]]
            index_of[line] = self.index_on_line
            far_lines = self.line_points.take(destination[pairs], axis=0)
            meeting[pairs] = index_of.take(far_lines).max(axis=1)
            index_of[line] = -1
        return meeting

    def towards(self, destinations: NDArray[np.int64]) -> Egress:
        """Return the egress values of all switches, [S, D], for destinations, int64[D]."""
        if not self.are_ascending_and_mutual:
            return np.concatenate([rows[:, destinations] for _, rows in self.blocks()])
        class_at_neighbour = self.class_at_neighbour
        egress: Egress = np.full((len(destinations), len(self)), self.no_route, self.dtype)
        for column, destination in zip(egress, destinations.tolist(), strict=True):
            line = self.line_points[destination]
            two_hop_classes = class_at_neighbour.take(line, axis=0)
            column[self.line_points.take(line, axis=0).ravel()] = two_hop_classes.ravel()
            column[line] = class_at_neighbour[destination] + self.dtype.type(self.direct_offset)
            column[destination] = self.local
        return egress.T

    @cached_property
    def are_ascending_and_mutual(self) -> bool:
        """Whether every line ascends, and every switch is on the lines of all switches on its own.

        The lines of a plane are like this. `_cells` and `towards` rely on it. The switch between s
        and t is looked for on the lines of s and t, so its own line has to name t. A binary search
        needs ascending lines, and so does a quadric shift by the comparison of switch numbers. Only
        `rows` takes other lines, too.
        """
        line_points = self.line_points
        is_ascending = (line_points[:, 1:] > line_points[:, :-1]).all()
        switch_there = line_points[line_points, self.index_at_neighbour]
        return bool(is_ascending and (switch_there == np.arange(len(self))[:, None]).all())

    @cached_property
    def index_at_neighbour(self) -> NDArray[np.int16]:
        """The index of s on the line of each neighbour line_points[s, j], int16[S, q + 1].

        Arbitrary where s is not on that line. Sorting the entries of all lines by the switch that
        they name lists the lines on which each switch is.
        """
        index = np.empty(self.line_points.shape, np.int16)
        index.ravel()[stable_order(self.line_points.ravel())] = np.tile(
            self.index_on_line.astype(np.int16), len(self)
        )
        return index

    @cached_property
    def class_at_neighbour(self) -> Egress:
        """The class by which each neighbour of s sends packets over s, [S, q + 1].

        The neighbour is t = line_points[s, j], and the class is the two-hop class of s at t.
        """
        switch = np.arange(len(self))[:, None]
        quadric_shift = self.quadric[self.line_points] & (switch > self.line_points)
        classes: Egress = (self.index_at_neighbour - quadric_shift).astype(self.dtype)
        return classes

    @cached_property
    def point_keys(self) -> Numbers:
        """One number s·S + t for each t on the line of s, intp[S·(q + 1)]; they ascend."""
        keys: Numbers = (np.arange(len(self))[:, None] * len(self) + self.line_points).ravel()
        return keys

    @cached_property
    def quadric(self) -> NDArray[np.bool_]:
        """Which switches are on their own lines, bool[S]."""
        quadric: NDArray[np.bool_] = (self.line_points == np.arange(len(self))[:, None]).any(axis=1)
        return quadric

    def destination_counts(self, classes: int) -> NDArray[np.int64]:
        """Count the destinations of each of the first `classes` classes, int64[S, C].

        A neighbour t of s has q + 1 points on its line. Its two-hop class at s leads to all of them
        but two: s itself, and the point where the lines of s and t meet, to which s has a direct
        class. If s is a quadric, these two points are one.
        """
        line_length = len(self.index_on_line)
        has_class = self.index_on_line < (line_length - self.quadric)[:, None]
        two_hop_destinations = (line_length - 2 + self.quadric)[:, None]
        counts = np.zeros((len(self), classes), np.int64)
        counts[:, :line_length] += np.where(has_class, two_hop_destinations, 0)
        counts[:, self.direct_offset : self.direct_offset + line_length] += has_class
        return counts

    def row_counts(self) -> NDArray[np.int64]:
        """Return the number of rows of each switch, int64[S]: a row for every destination."""
        return np.full(len(self), len(self))
