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
    compose_chart,
    side_by_side,
)
from compilers.drawing.link_matrix import MATRIX_PIXELS
from compilers.drawing.scene import kind_words, shortened
from compilers.tables.build import Build
from compilers.topology.layout import places_in
from compilers.wiring.hardware import Hardware
from inventory.problems import InputError

MOST_DRAWN_RACKS = 400
"""The most racks of a chart."""
SMALL_FABRIC = 400
"""The most nodes whose units are drawn large."""
TALL_RACK = 48
"""The most units of a rack whose units are drawn large."""
LARGE_UNIT, SMALL_UNIT = 10, 5
"""The height of a unit in pixels, drawn large or small."""
ROW_PIXELS = 1200
"""The width of a full row of racks in pixels."""
NARROWEST_RACK = 18
"""The least width of a rack in pixels, where many are in a row."""
FEW_ABREAST = 16
"""The most racks in a row that are wide enough for their names."""
RACK_PIXELS = 76
"""The least width of a rack, where few are in a row."""
WIDEST_RACK = 150
"""The largest width of a rack in pixels, where few are in a row."""
RACK_GAP = 10
"""Pixels between two racks."""
FRAME_HEAD = 20
"""Pixels above a rack for its name."""
BOLD_LETTER = 9
"""Pixels of a letter of a rack's name."""
CASSETTE = "s5"
"""The style of a cassette in the template."""
CASSETTE_PIXELS = 4
"""The height of a cassette."""
LEGEND_LINE = 18
"""The height of a line of the legend in pixels."""
WRITTEN_CELL = 22
"""The least side in pixels of cells that have their value as text."""
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
        floor_row, floor_column = hardware.rack_place.T
        is_small = tallest <= TALL_RACK and len(hardware.rack) <= SMALL_FABRIC
        unit = LARGE_UNIT if is_small else SMALL_UNIT
        row = np.unique(floor_row, return_inverse=True)[1]
        most_in_row = int(np.bincount(row).max())
        width = max(NARROWEST_RACK, ROW_PIXELS // most_in_row)
        if most_in_row <= FEW_ABREAST:
            longest_name = BOLD_LETTER * max(map(len, hardware.rack_names)) - RACK_GAP
            width = max(RACK_PIXELS, min(longest_name, WIDEST_RACK, width))
        left = CHART_MARGIN + places_in(row, floor_column).astype(np.int64) * (width + RACK_GAP)
        row_height = tallest * unit + FRAME_HEAD + RACK_GAP
        height = hardware.rack_units.astype(np.int64) * unit
        top = CHART_HEAD + FRAME_HEAD + row * row_height + (tallest * unit - height)
        return cls(left, top, height, width, unit)

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
        width = np.full(len(rack), self.width - 4)
        return np.stack((self.left[rack] + 2, y, width, units * self.unit - 1), axis=1)


@dataclass(frozen=True, slots=True, eq=False)
class Runs:
    """The n cables of a build, or its trunks where links run through cassettes."""

    noun: str
    """`cables` or `trunks`."""
    racks: NDArray[np.int64]
    """int64[n, 2], the racks at both ends."""
    length: NDArray[np.float64]
    """float64[n], metres."""

    @classmethod
    def of(cls, build: Build, hardware: Hardware, plan: PanelPlan | None) -> Runs:
        """The trunks of a plan; the cables where there is none."""
        if plan:
            racks = plan.rack[plan.shuffle.ends].astype(np.int64)
            return cls("trunks", racks, trunk_lengths(plan))
        cables = cables_of(build.wiring, hardware)
        return cls("cables", hardware.rack[cables.ends].astype(np.int64), cables.length)


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
    floor = Floor.of(hardware)
    plan = panel_plan(build.topology, build.wiring, hardware)
    runs = Runs.of(build, hardware, plan)
    right, bottom = floor.end
    signs, keys = _legend(build, plan, bottom + 24)
    lowest = bottom + 24 + LEGEND_LINE * len(signs)
    # From back to front.
    shapes = [*_host_boxes(hardware, floor), *_node_boxes(build, hardware, floor), *signs]
    if plan:
        shapes.append(_cassettes(plan, floor))
    labels = [*_node_names(build, hardware, floor), *keys]
    corner = CHART_MARGIN, lowest + GRID_GAP
    if right <= MOST_ABREAST:
        corner = right + GRID_GAP, CHART_HEAD - 8
    racks = len(hardware.rack_names)
    grids = _run_grids(racks, runs)
    legends = [(Scale.of(grids[0].value), runs.noun), (Scale.of(grids[1].value), "metres")]
    middles = np.arange(racks) + 0.5
    drawing = side_by_side(grids, legends, hardware.rack_names, middles, corner)
    return compose_chart(
        f"{build.name}: racks and {runs.noun}",
        subtitle=_subtitle(build, hardware, runs),
        frames=_frames(hardware, floor),
        shapes=[*shapes, *drawing.shapes],
        labels=[*labels, *drawing.labels],
        ends=(max(right, drawing.right), max(lowest, drawing.bottom)),
        grids=grids,
    )


def _subtitle(build: Build, hardware: Hardware, runs: Runs) -> str:
    """The line below the heading: the topology, the nodes and racks, and the metres."""
    filled = len(np.unique(hardware.rack))
    noun = "rack" if filled == 1 else "racks"
    nodes = f"{build.topology.graph.order:,} nodes in {filled:,} {noun}"
    metres = f"{len(runs.length):,} {runs.noun} of {runs.length.sum():,.0f} m"
    return f"{build.topology.title()}, {nodes}, {metres}"


def _cassettes(plan: PanelPlan, floor: Floor) -> Shape:
    """The cassettes of each rack side by side, on top of it."""
    width = (floor.width - 4) // np.bincount(plan.rack)[plan.rack]
    left = floor.left[plan.rack] + 2 + places_in(plan.rack) * width
    top = floor.top[plan.rack] - CASSETTE_PIXELS
    height = np.full(len(width), CASSETTE_PIXELS)
    return _boxes_as_shape(CASSETTE, np.stack((left, top, width - 1, height), axis=1))


def _run_grids(racks: int, runs: Runs) -> list[Grid]:
    """Two grids of racks by racks: how many cables or trunks join them, and the longest of these.

    Args:
        racks: how many racks there are.
        runs: the cables or trunks.
    """
    lower, upper = np.sort(runs.racks, axis=1).T
    pairs, pair_of_run = np.unique(lower * racks + upper, return_inverse=True)
    count = np.bincount(pair_of_run, minlength=len(pairs))
    longest = np.zeros(len(pairs))
    np.maximum.at(longest, pair_of_run, runs.length)
    lower, upper = np.divmod(pairs, racks)
    is_between = lower != upper  # such a pair has a cell on both sides of the diagonal
    row = np.concatenate((lower, upper[is_between]))
    column = np.concatenate((upper, lower[is_between]))
    size = max(3, min(28, MATRIX_PIXELS // racks))
    between = int(np.count_nonzero(is_between))
    joined = f"{between:,} pairs of racks are" if between != 1 else "1 pair of racks is"

    def grid(title: str, note: str, value: Array) -> Grid:
        """A grid with a value for each pair."""
        cells = np.concatenate((value, value[is_between]))
        return Grid(
            title,
            note=note,
            row=row,
            column=column,
            value=cells,
            size=size,
            rows=racks,
            columns=racks,
            writes_values=size >= WRITTEN_CELL,
        )

    return [
        grid(f"{runs.noun} from rack to rack", f"{joined} joined", count),
        grid("the longest of them, m", "the length to buy", longest),
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
    units_of_type = np.array([node_type.units for node_type in hardware.types])
    height = units_of_type[build.wiring.node_type]
    stacked = places_in(hardware.rack) * height + 1
    lowest = np.where(hardware.unit > 0, hardware.unit, stacked)
    return np.stack((lowest, height), axis=1)


def _node_boxes(build: Build, hardware: Hardware, floor: Floor) -> Iterator[Shape]:
    """Yield the boxes of nodes: a path for each kind of vertex, and one for nodes without
    cables.
    """
    boxes = floor.boxes(hardware.rack, *_units(build, hardware).T)
    kind, without_cables = build.topology.kind, _without_cables(build)
    for number in np.unique(kind).tolist():
        yield _boxes_as_shape(f"n{number} node", boxes[(kind == number) & ~without_cables])
    yield _boxes_as_shape("bare node", boxes[without_cables])


def _without_cables(build: Build) -> NDArray[np.bool_]:
    """Which nodes have no cables, bool[S]; they are missing or planned."""
    without_cables: NDArray[np.bool_] = np.count_nonzero(build.wiring.far >= 0, axis=1) == 0
    return without_cables


def _host_boxes(hardware: Hardware, floor: Floor) -> Iterator[Shape]:
    """Yield the boxes of hosts whose places are known, a unit for each host."""
    is_placed = (hardware.host_rack >= 0) & (hardware.host_unit > 0)
    rack, unit = hardware.host_rack[is_placed], hardware.host_unit[is_placed]
    yield _boxes_as_shape("host", floor.boxes(rack, unit, np.ones_like(unit)))


def _boxes_as_shape(style: str, boxes: Array) -> Shape:
    """Boxes as one path.

    Args:
        style: the class of the path in the template.
        boxes: int64[n, 4], x, y, width and height.
    """
    path = "".join(f"M{x} {y}h{w}v{h}h-{w}z" for x, y, w, h in boxes.tolist())
    return Shape(style, path, len(boxes))


def _node_names(build: Build, hardware: Hardware, floor: Floor) -> Iterator[Label]:
    """Yield the names of nodes whose boxes have room for them."""
    boxes = floor.boxes(hardware.rack, *_units(build, hardware).T)
    letters = floor.width // 6
    if letters < 4:
        return
    nodes = zip(build.wiring.names, boxes.tolist(), _without_cables(build).tolist(), strict=True)
    for name, (x, y, width, height), is_absent in nodes:
        if height >= 9:
            style = "node-name absent" if is_absent else "node-name"
            middle = x + width / 2, y + height / 2 + 0.5
            yield Label(*middle, shortened(name, letters), style)


def _legend(build: Build, plan: PanelPlan | None, top: int) -> tuple[list[Shape], list[Label]]:
    """The legend: signs and texts of the kinds of vertices, of cassettes, and of missing nodes.

    Args:
        build: the build.
        plan: of the cassettes; None without any.
        top: pixels where the legend begins.
    """
    kinds, without_cables = build.topology.kinds, _without_cables(build)
    counts = np.bincount(build.topology.kind[~without_cables], minlength=len(kinds))
    entries = [
        (f"n{kind}", kind_words(kinds[kind], int(counts[kind])))
        for kind in np.flatnonzero(counts).tolist()
    ]
    if plan:
        entries.append((CASSETTE, f"cassettes ({len(plan.names):,})"))
    if without_cables.any():
        count = np.count_nonzero(without_cables)
        entries.append(("bare", f"missing or planned ({count:,})"))
    shapes, labels = [], []
    for line, (style, words) in enumerate(entries):
        y = top + LEGEND_LINE * line
        shapes.append(Shape(style, f"M{CHART_MARGIN} {y}h18v10h-18z", 1))
        labels.append(Label(CHART_MARGIN + 26, y + 9, words, "key"))
    return shapes, labels
