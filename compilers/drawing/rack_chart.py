"""A chart of the racks: what is in each unit, and the cables or trunks from rack to rack.

Racks are drawn as they stand in the inventory, with their nodes, hosts and cassettes. Beside or
below them are two grids of racks by racks: how many cables or trunks join two racks, and the
longest of these.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from compilers.cabling.cable_plan import cables_of, hardware_of
from compilers.cabling.cords import trunk_lengths
from compilers.cabling.panel_plan import PanelPlan, panel_plan
from compilers.drawing.chart import (
    CHART_HEAD,
    CHART_MARGIN,
    GRID_GAP,
    Array,
    Chart,
    Frame,
    Grid,
    Label,
    Scale,
    Shape,
    composed,
    side_by_side,
)
from compilers.drawing.link_matrix import MATRIX_PIXELS
from compilers.drawing.scene import kind_words, shortened
from compilers.tables.build import Build
from compilers.topology.layout import places_in
from compilers.wiring.hardware import Hardware
from inventory.problems import InputError

MOST_DRAWN_RACKS, SMALL_FABRIC = 400, 400
"""The most racks of a chart, and the most nodes whose units are drawn large."""
RACK_PIXELS, WIDEST_RACK, RACK_GAP, FRAME_HEAD = 76, 150, 10, 20
"""Pixels: the least and the largest width of a rack if few are in a row, between racks, and above
one for its name."""
BOLD_LETTER = 9
"""Pixels of a letter of a rack's name."""
CASSETTE, CASSETTE_PIXELS = "s5", 4
"""The style of a cassette in the template, and its height in pixels."""
MOST_ABREAST = 700
"""Pixels of racks that leave room for the grids of cables on their right."""


@dataclass(frozen=True, slots=True, eq=False)
class Floor:
    """Where the R racks are drawn, in pixels."""

    left: NDArray[np.int64]
    """int64[R], the left edge of each rack."""
    top: NDArray[np.int64]
    """int64[R], the top edge of each rack."""
    height: NDArray[np.int64]
    """int64[R], the height of each rack."""
    width: int
    """The width of a rack."""
    unit: int
    """The height of a rack unit."""

    @classmethod
    def of(cls, hardware: Hardware) -> Floor:
        """Place the rows of racks below each other, and racks in the order of their columns."""
        tallest = int(hardware.rack_units.max())
        row, place = hardware.rack_place.T
        unit = 10 if tallest <= 48 and len(hardware.rack) <= SMALL_FABRIC else 5
        lines = np.unique(row, return_inverse=True)[1]
        fullest = int(np.bincount(lines).max())
        width = max(18, 1200 // fullest)
        if fullest <= 16:
            room = min(WIDEST_RACK, width)
            longest = BOLD_LETTER * max(map(len, hardware.rack_names)) - RACK_GAP
            width = max(RACK_PIXELS, min(longest, room))
        left = places_in(lines, place).astype(np.int64)
        line_height = tallest * unit + FRAME_HEAD + RACK_GAP
        height = hardware.rack_units.astype(np.int64) * unit
        top = CHART_HEAD + FRAME_HEAD + lines * line_height + (tallest * unit - height)
        return cls(CHART_MARGIN + left * (width + RACK_GAP), top, height, width, unit)

    @property
    def end(self) -> tuple[int, int]:
        """Pixels where the racks end on the right and below."""
        return int(self.left.max()) + self.width, int((self.top + self.height).max())

    def boxes(self, rack: Array, unit: Array, units: Array) -> NDArray[np.int64]:
        """The boxes of n nodes: x, y, width and height in pixels, int64[n, 4].

        Args:
            rack: int[n], the rack of each node.
            unit: int[n], its lowest unit.
            units: int[n], its height in units.
        """
        y = self.top[rack] + self.height[rack] - (unit + units - 1) * self.unit
        wide = np.full(len(rack), self.width - 4)
        return np.stack((self.left[rack] + 2, y, wide, units * self.unit - 1), axis=1)


def rack_chart(build: Build) -> Chart:
    """A chart of the racks of a build: those of the inventory, or those that were proposed.

    Raises:
        InputError: there are too many to draw.
    """
    hardware = hardware_of(build)
    if len(hardware.rack_names) > MOST_DRAWN_RACKS:
        required = f"at most {MOST_DRAWN_RACKS} racks in a chart"
        todo = "take the schedule: polarfab cables --format csv"
        raise InputError.of(required, f"{len(hardware.rack_names):,}", todo)
    cables, floor = cables_of(build.wiring, hardware), Floor.of(hardware)
    plan = panel_plan(build.topology, build.wiring, hardware)
    names, racks = hardware.rack_names, len(hardware.rack_names)
    right, bottom = floor.end
    signs, keys = _legend(build, plan, bottom + 24)
    # From back to front.
    shapes = [*_hosts(hardware, floor), *_nodes(build, hardware, floor), *signs]
    if plan:
        shapes.append(_cassettes(plan, floor))
    labels = [*_names(build, hardware, floor), *keys]
    lowest = bottom + 24 + 18 * len(signs)
    corner = CHART_MARGIN, lowest + GRID_GAP
    if right <= MOST_ABREAST:
        corner = right + GRID_GAP, CHART_HEAD - 8
    ends, length, noun = hardware.rack[cables.ends].astype(np.int64), cables.length, "cables"
    if plan:
        ends, length, noun = plan.rack[plan.shuffle.ends], trunk_lengths(plan), "trunks"
    grids = _cable_grids(racks, ends, length, noun)
    legends = [
        (Scale.of(grid.value), words) for grid, words in zip(grids, (noun, "metres"), strict=True)
    ]
    middles = np.arange(racks) + 0.5
    drawing = side_by_side(grids, legends, names, middles, corner)
    metres = f"{len(ends):,} {noun} of {length.sum():,.0f} m"
    filled = len(np.unique(hardware.rack))
    rack_noun = "rack" if filled == 1 else "racks"
    nodes = f"{build.topology.graph.order:,} nodes in {filled:,} {rack_noun}"
    return composed(
        f"{build.name}: racks and {noun}",
        f"{build.topology.title()}, {nodes}, {metres}",
        _frames(hardware, floor),
        [*shapes, *drawing.shapes],
        [*labels, *drawing.labels],
        (max(right, drawing.right), max(lowest, drawing.bottom)),
        grids,
    )


def _cassettes(plan: PanelPlan, floor: Floor) -> Shape:
    """The cassettes of each rack side by side, on top of it."""
    wide = (floor.width - 4) // np.bincount(plan.rack)[plan.rack]
    left = floor.left[plan.rack] + 2 + places_in(plan.rack) * wide
    high = np.full(len(wide), CASSETTE_PIXELS)
    boxes = np.stack((left, floor.top[plan.rack] - CASSETTE_PIXELS, wide - 1, high), axis=1)
    return _boxed(CASSETTE, boxes)


def _cable_grids(
    racks: int, ends: NDArray[np.int64], length: NDArray[np.float64], noun: str
) -> list[Grid]:
    """Two grids of racks by racks: how many cables or trunks join them, and the longest of these.

    Args:
        racks: how many racks there are.
        ends: int64[n, 2], the racks at both ends of each cable.
        length: float64[n], its length in metres.
        noun: `cables` or `trunks`.
    """
    keys, which = np.unique(np.sort(ends, axis=1) @ [racks, 1], return_inverse=True)
    count, longest = np.bincount(which, minlength=len(keys)), np.zeros(len(keys))
    np.maximum.at(longest, which, length)
    one, other = np.divmod(keys, racks)
    distinct = one != other  # a pair of two racks has a cell on both sides of the diagonal
    row = np.concatenate((one, other[distinct]))
    column = np.concatenate((other, one[distinct]))
    size = max(3, min(28, MATRIX_PIXELS // racks))
    between = int(np.count_nonzero(distinct))
    joined = f"{between:,} pairs of racks are" if between != 1 else "1 pair of racks is"
    notes = f"{joined} joined", "the length to buy"
    titles = f"{noun} from rack to rack", "the longest of them, m"
    values = (np.concatenate((of_pair, of_pair[distinct])) for of_pair in (count, longest))
    return [
        Grid(title, note, row, column, value, size, racks, racks, written=size >= 22)
        for title, note, value in zip(titles, notes, values, strict=True)
    ]


def _frames(hardware: Hardware, floor: Floor) -> list[Frame]:
    """A frame with its name for each rack."""
    place = np.stack((floor.left, floor.top, floor.height), axis=1).tolist()
    letters = max(3, (floor.width + RACK_GAP) // BOLD_LETTER)
    return [
        Frame(x, y, floor.width, height, shortened(name, letters))
        for name, (x, y, height) in zip(hardware.rack_names, place, strict=True)
    ]


def _units(build: Build, hardware: Hardware) -> Array:
    """The lowest unit and the height of each node, int64[S, 2].

    Nodes whose unit is unknown are stacked from the lowest unit up.
    """
    high = np.array([node_type.units for node_type in hardware.types])[build.wiring.node_type]
    rank = places_in(hardware.rack)
    return np.stack((np.where(hardware.unit > 0, hardware.unit, rank * high + 1), high), axis=1)


def _nodes(build: Build, hardware: Hardware, floor: Floor) -> Iterator[Shape]:
    """Yield the boxes of nodes: a path for each kind of vertex, and one for nodes without
    cables.
    """
    boxes = floor.boxes(hardware.rack, *_units(build, hardware).T)
    kind, bare = build.topology.kind, _bare(build)
    for number in np.unique(kind).tolist():
        yield _boxed(f"n{number} node", boxes[(kind == number) & ~bare])
    yield _boxed("bare node", boxes[bare])


def _bare(build: Build) -> NDArray[np.bool_]:
    """Which nodes have no cables, bool[S]; they are missing or planned."""
    bare: NDArray[np.bool_] = np.count_nonzero(build.wiring.far >= 0, axis=1) == 0
    return bare


def _hosts(hardware: Hardware, floor: Floor) -> Iterator[Shape]:
    """Yield the boxes of hosts whose places are known, a unit for each host."""
    placed = (hardware.host_rack >= 0) & (hardware.host_unit > 0)
    rack, unit = hardware.host_rack[placed], hardware.host_unit[placed]
    yield _boxed("host", floor.boxes(rack, unit, np.ones_like(unit)))


def _boxed(style: str, boxes: Array) -> Shape:
    """Boxes, int64[n, 4], as one path."""
    path = "".join(f"M{x} {y}h{w}v{h}h-{w}z" for x, y, w, h in boxes.tolist())
    return Shape(style, path, len(boxes))


def _names(build: Build, hardware: Hardware, floor: Floor) -> Iterator[Label]:
    """Yield the names of nodes whose boxes have room for them."""
    boxes = floor.boxes(hardware.rack, *_units(build, hardware).T)
    room, bare = floor.width // 6, _bare(build).tolist()
    named = zip(build.wiring.names, boxes.tolist(), bare, strict=True)
    for name, (x, y, wide, high), absent in named:
        if high >= 9 and room >= 4:
            style = "node-name absent" if absent else "node-name"
            yield Label(x + wide / 2, y + high / 2 + 0.5, shortened(name, room), style)


def _legend(build: Build, plan: PanelPlan | None, top: int) -> tuple[list[Shape], list[Label]]:
    """The legend: signs and texts of the kinds of vertices, of cassettes, and of missing nodes.

    top: pixels where it begins.
    """
    kinds, bare = build.topology.kinds, _bare(build)
    counts = np.bincount(build.topology.kind[~bare], minlength=len(kinds))
    entries = [
        (f"n{kind}", kind_words(kinds[kind], int(counts[kind])))
        for kind in np.flatnonzero(counts).tolist()
    ]
    if plan:
        entries.append((CASSETTE, f"cassettes ({len(plan.names):,})"))
    if bare.any():
        entries.append(("bare", f"missing or planned ({np.count_nonzero(bare):,})"))
    shapes, labels = [], []
    for line, (style, words) in enumerate(entries):
        y = top + 18 * line
        shapes.append(Shape(style, f"M{CHART_MARGIN} {y}h18v10h-18z", 1))
        labels.append(Label(CHART_MARGIN + 26, y + 9, words, "key"))
    return shapes, labels
