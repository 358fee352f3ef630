"""Positions of the vertices and racks of a picture, in pixels from the top left corner.

A rack that is the only one of its kind (the quadrics) is a strip at the top; the others are panels
in a grid below, with the members of a rack on a ring round its centre. Members of one triangle with
the centre are closer together, as in the fans of the PolarFly paper's figure 5.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import ceil, pi, sqrt

import numpy as np
from numpy.typing import NDArray

from compilers.families.polarfly import PolarFly
from compilers.topology.families import family_of
from compilers.topology.labelled_graph import Topology
from compilers.topology.layout import Layout, layout, places_in

Floats = NDArray[np.float64]

RACKS = "racks"
"""The name of the layout of the inventory's racks."""
GAP = 14.0
LABEL = 18.0
SPACING = 2.6
SQUEEZE = 0.68
ASPECT = 1.7


@dataclass(frozen=True, slots=True)
class Positions:
    """The geometry of a picture of N vertices, in pixels."""

    at: Floats
    """float[N, 2], the middle of each vertex."""
    half: float
    """Half the height of a vertex."""
    half_width: float
    """Half the width of a vertex."""
    boxes: Floats
    """float[R, 4], x, y, width and height of each rack, or of each cluster of supernodes."""
    box_names: tuple[str, ...]
    """The name of each box."""
    discs: Floats
    """float[U, 3], the middle and the radius of each supernode; empty in other families."""
    disc_box: NDArray[np.int32]
    """int[U], the box of each supernode, which is its cluster."""
    size: tuple[float, float]
    """Width and height of the picture."""


def place(topology: Topology, racks: Layout, widest_name: float = 0.0) -> Positions:
    """The placement of a topology.

    Args:
        topology: the fabric graph.
        racks: a layout. Supernodes of PolarStar are drawn in their clusters in every layout.
        widest_name: the width of the widest name written in a vertex, 0 for none.
    """
    if family_of(topology.family).by_supernodes and racks.name != RACKS:
        return _hierarchy(topology)
    half = node_radius(topology.graph.order)
    half_width = max(half, widest_name / 2 + 3)
    at, boxes, size = _racks(racks, half, half_width)
    none = np.empty(0, np.int32)
    return Positions(at, half, half_width, boxes, racks.names, np.empty((0, 3)), none, size)


def node_radius(order: int) -> float:
    """Half the height of a vertex, large enough for a name if there are few vertices."""
    return 11.0 if order <= 200 else 6.0 if order <= 600 else 4.5


def noun_of(racks: Layout) -> str:
    """The word for the parts of a layout: rack, cluster, or kind where neither is known."""
    return {RACKS: "rack", "kinds": "kind"}.get(racks.name, "cluster")


def by_kind(topology: Topology) -> Layout:
    """One rack per kind of vertex, such as points over lines, for families without layouts."""
    kind = topology.kind.astype(np.int32)
    count = len(topology.kinds)
    return Layout(
        name="kinds",
        rack=kind,
        position=places_in(kind),
        kinds=topology.kinds,
        kind=np.arange(count, dtype=np.uint8),
        names=topology.kinds,
        centre=np.full(count, -1, np.int32),
    )


def spokes(count: int, radius: float) -> Floats:
    """float[k, 2]: the members of a supernode on a ring, member 0 on top."""
    turn = 2 * pi * np.arange(count) / count
    return radius * np.stack((np.sin(turn), -np.cos(turn)), axis=1)


def _hierarchy(topology: Topology) -> Positions:
    """PolarStar: discs of members at the positions of the structure graph's vertices."""
    structure = PolarFly().build({"q": topology.parameters["q"]})
    members = topology.graph.order // structure.graph.order
    half = 4.0 if structure.graph.order < 60 else 2.8
    ring = max(2.2 * half, members * SPACING * half / (2 * pi))
    disc = ring + 1.8 * half
    fans = layout(structure, "fans")
    middle, boxes, size = _racks(fans, disc, disc)
    return Positions(
        at=(middle[:, None, :] + spokes(members, ring)).reshape(-1, 2),
        half=half,
        half_width=half,
        boxes=boxes,
        box_names=fans.names,
        discs=np.column_stack((middle, np.full(len(middle), disc))),
        disc_box=fans.rack,
        size=size,
    )


def _racks(
    racks: Layout, half: float, half_width: float
) -> tuple[Floats, Floats, tuple[float, float]]:
    """Middles float[N, 2], boxes float[R, 4] and the size of the picture."""
    strip = (np.bincount(racks.kind, minlength=len(racks.kinds)) == 1)[racks.kind]
    sizes = np.bincount(racks.rack, minlength=len(racks.names))
    radius = _ring_radius(racks, sizes, strip, half_width)
    side = 2 * (radius + half_width) + GAP
    panels = int((~strip).sum())
    columns = ceil(sqrt(ASPECT * panels))
    step = half_width * SPACING
    width = max(columns * (side + GAP) - GAP, _strip_width(sizes[strip], step, panels))
    boxes = np.empty((len(sizes), 4))
    top = 0.0
    for rack in np.flatnonzero(strip).tolist():
        rows = _strip_rows(racks, rack, sizes, width, step)
        height = LABEL + rows * SPACING * half + GAP
        boxes[rack] = 0, top, width, height
        top += height + (4 if panels == 0 else 2) * GAP
    boxes[~strip], bottom = _grid(panels, columns, side, width, top)
    at = _ring(racks, sizes, boxes, radius)
    _fill_strips(at, racks, sizes, boxes, strip, step)
    return at, boxes, (width, bottom)


def _ring_radius(
    racks: Layout, sizes: NDArray[np.int64], strip: NDArray[np.bool_], half_width: float
) -> float:
    """One radius for all panels, so that the members of the fullest ring do not touch."""
    _, _, count = _turns(racks, sizes)
    fullest = int(count[~strip[racks.rack]].max(initial=1))
    closest = SQUEEZE if racks.name == "fans" else 1.0
    return max(4 * half_width, fullest * SPACING * half_width / (2 * pi * closest))


def _strip_width(sizes: NDArray[np.int64], step: float, panels: int) -> float:
    """Room for the fullest strip in one row, or in rows of a wide picture without panels."""
    widest = int(sizes.max(initial=0))
    if panels:
        return min(widest, 40) * step + GAP
    return ceil(sqrt(8 * widest)) * step + GAP


def _grid(panels: int, columns: int, side: float, width: float, top: float) -> tuple[Floats, float]:
    """Boxes of the panels, float[P, 4], rows centred, and the bottom of the last row."""
    number = np.arange(panels)
    row, column = np.divmod(number, max(columns, 1))
    in_row = np.minimum(columns, panels - row * columns)
    left = (width - in_row * (side + GAP) + GAP) / 2
    height = side + LABEL
    boxes = np.column_stack(
        (
            left + column * (side + GAP),
            top + row * (height + GAP),
            np.full(panels, side),
            np.full(panels, height),
        )
    )
    rows = ceil(panels / columns) if panels else 0
    return boxes, top + rows * (height + GAP) - GAP


def _turns(
    racks: Layout, sizes: NDArray[np.int64]
) -> tuple[NDArray[np.int64], NDArray[np.bool_], NDArray[np.int64]]:
    """For each vertex: place on its ring, int64[N]; whether it is a centre; size of the ring."""
    centred = racks.centre[racks.rack] >= 0
    centre = centred & (racks.position == 0)
    return racks.position.astype(np.int64) - centred, centre, sizes[racks.rack] - centred


def _ring(racks: Layout, sizes: NDArray[np.int64], boxes: Floats, radius: float) -> Floats:
    """float[N, 2]: members on rings in their panels, a centre in the middle."""
    place, centre, count = _turns(racks, sizes)
    slot = place.astype(np.float64)
    if racks.name == "fans":
        slot = 2 * (place // 2) + 0.5 + SQUEEZE * (place % 2 - 0.5)
    turn = 2 * pi * (slot + 0.5) / np.maximum(count, 1)
    reach = np.where(centre, 0, radius)
    x, y, width, height = boxes[racks.rack].T
    return np.column_stack(
        (
            x + width / 2 + reach * np.sin(turn),
            y + LABEL + (height - LABEL) / 2 - reach * np.cos(turn),
        )
    )


def _strip_rows(
    racks: Layout, rack: int, sizes: NDArray[np.int64], width: float, step: float
) -> int:
    """Rows of a strip; a centre has the first row to itself, so that its links are visible."""
    per_row = max(1, int((width - GAP) // step))
    centre = int(racks.centre[rack] >= 0)
    return ceil(int(sizes[rack] - centre) / per_row) + centre


def _fill_strips(
    at: Floats,
    racks: Layout,
    sizes: NDArray[np.int64],
    boxes: Floats,
    strip: NDArray[np.bool_],
    step: float,
) -> None:
    """Put the members of strips in rows of equal length, spread over the width."""
    for rack in np.flatnonzero(strip).tolist():
        members = np.flatnonzero(racks.rack == rack)
        x, y, width, height = boxes[rack]
        rows = _strip_rows(racks, rack, sizes, width, step)
        centre = int(racks.centre[rack] >= 0)
        in_row = max(1, ceil((sizes[rack] - centre) / max(1, rows - centre)))
        place = racks.position[members] - centre
        row, column = place // in_row + centre, place % in_row
        across = (width - GAP) / np.bincount(row, minlength=rows)[row]
        column[place < 0] = 0
        at[members, 0] = x + GAP / 2 + across * (column + 0.5)
        at[members, 1] = y + LABEL + (height - LABEL - GAP / 2) * (row + 0.5) / rows
