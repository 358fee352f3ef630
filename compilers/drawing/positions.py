"""Place the vertices and racks of a picture, in pixels from the top left corner.

`picture.draw` calls `place`, and `scene` draws at the positions that it returns. A *rack* is here a
part of the layout that is drawn, whatever the layout is of: a rack of the inventory, a cluster, or
a kind of vertices.

A rack that is the only one of its kind, such as the quadrics, is a *strip* at the top, with its
members in rows. All other racks are *panels* in a grid below, with the members of a rack on a ring
round its centre. Two members that form a triangle with the centre stand closer together, as in the
fans of the PolarFly paper's figure 5. The supernodes of a PolarStar are *discs* in the places of
the vertices of its structure graph.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import ceil, pi, sqrt
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from compilers.families.polarfly import PolarFly
from compilers.topology.families import family_of
from compilers.topology.labelled_graph import Topology
from compilers.topology.layout import Layout, layout, places_in

Floats = NDArray[np.float64]
"""Pixels, or numbers of pixels."""

RACKS = "racks"
"""The name of the layout of the inventory's racks."""
GAP = 14.0
"""Pixels between boxes."""
LABEL = 18.0
"""Pixels of the name of a box."""
SPACING = 2.6
"""The distance between two vertices, in halves of a vertex."""
SQUEEZE = 0.68
"""How much closer two members stand that form a triangle with the centre, as a factor of their
distance on an even ring."""
WIDEST_STRIP = 40
"""The most members in a row of a strip above panels, as far as these do not need more width."""
ASPECT = 1.7
"""How many times as many columns of panels there are as rows, about."""


@dataclass(frozen=True, slots=True)
class Positions:
    """The geometry of a picture of S vertices, in pixels."""

    middles: Floats
    """float[S, 2], the middle of each vertex."""
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
    """Place a topology.

    Args:
        topology: the fabric graph.
        racks: the layout. The supernodes of a PolarStar are drawn in their clusters, whatever
            layout is given, except for the racks of the inventory.
        widest_name: pixels of the widest name that is written in a vertex; 0 for none.
    """
    if family_of(topology.family).by_supernodes and racks.name != RACKS:
        return _place_supernodes(topology)
    half = node_radius(topology.graph.order)
    half_width = max(half, widest_name / 2 + 3)
    geometry = _place_racks(racks, half, half_width)
    return Positions(
        middles=geometry.middles,
        half=half,
        half_width=half_width,
        boxes=geometry.boxes,
        box_names=racks.names,
        discs=np.empty((0, 3)),
        disc_box=np.empty(0, np.int32),
        size=geometry.size,
    )


def node_radius(vertices: int) -> float:
    """Half the height of a vertex: large enough for a name if there are few vertices."""
    if vertices <= 200:
        return 11.0
    return 6.0 if vertices <= 600 else 4.5


def noun_of(racks: Layout) -> str:
    """The word for a part of a layout: `rack`, `kind` or `cluster`."""
    return {RACKS: "rack", "kinds": "kind"}.get(racks.name, "cluster")


def by_kind(topology: Topology) -> Layout:
    """A layout with a rack for each kind of vertex, such as points and lines.

    It is for families that have no layouts.
    """
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
    """The places of `count` members on a ring round (0, 0), float[count, 2], member 0 on top."""
    turn = 2 * pi * np.arange(count) / count
    return radius * np.stack((np.sin(turn), -np.cos(turn)), axis=1)


def _place_supernodes(topology: Topology) -> Positions:
    """Place a PolarStar: discs of members in the places of the vertices of the structure graph."""
    structure = PolarFly().build({"q": topology.parameters["q"]})
    members = topology.graph.order // structure.graph.order
    half = 4.0 if structure.graph.order < 60 else 2.8
    ring = max(2.2 * half, members * SPACING * half / (2 * pi))
    disc = ring + 1.8 * half
    fans = layout(structure, "fans")
    geometry = _place_racks(fans, disc, disc)
    middle = geometry.middles
    return Positions(
        middles=(middle[:, None, :] + spokes(members, ring)).reshape(-1, 2),
        half=half,
        half_width=half,
        boxes=geometry.boxes,
        box_names=fans.names,
        discs=np.column_stack((middle, np.full(len(middle), disc))),
        disc_box=fans.rack,
        size=geometry.size,
    )


class _RackGeometry(NamedTuple):
    """Racks and their members, in pixels."""

    middles: Floats
    """float[S, 2], the middle of each vertex."""
    boxes: Floats
    """float[R, 4], x, y, width and height of each rack."""
    size: tuple[float, float]
    """Width and height of the picture."""


class _Rings(NamedTuple):
    """Where S vertices stand on the rings of their racks."""

    place: NDArray[np.int64]
    """int64[S], the place of each vertex on its ring, from 0; -1 for a centre."""
    is_centre: NDArray[np.bool_]
    """bool[S], whether the vertex is the centre, and not on the ring."""
    size: NDArray[np.int64]
    """int64[S], how many vertices its ring has."""


def _place_racks(racks: Layout, half: float, half_width: float) -> _RackGeometry:
    """Place all racks: strips at the top, and panels in a grid below.

    Args:
        racks: the layout.
        half: half the height of a vertex.
        half_width: half its width.
    """
    # bool[R], the racks that are the only one of their kind.
    racks_of_kind = np.bincount(racks.kind, minlength=len(racks.kinds))
    is_strip = (racks_of_kind == 1)[racks.kind]
    sizes = np.bincount(racks.rack, minlength=len(racks.names))
    radius = _ring_radius(racks, sizes, is_strip, half_width)
    side = 2 * (radius + half_width) + GAP
    panels = int((~is_strip).sum())
    columns = ceil(sqrt(ASPECT * panels))
    step = half_width * SPACING
    width = max(columns * (side + GAP) - GAP, _strip_width(sizes[is_strip], step, panels))
    boxes = np.empty((len(sizes), 4))
    top = 0.0
    for rack in np.flatnonzero(is_strip).tolist():
        rows = _strip_rows(racks, rack, sizes, width, step)
        height = LABEL + rows * SPACING * half + GAP
        boxes[rack] = 0, top, width, height
        top += height + (4 if panels == 0 else 2) * GAP
    boxes[~is_strip], bottom = _panel_boxes(panels, columns, side, width, top)
    middles = _middles_on_rings(racks, sizes, boxes, radius)
    _fill_strips(middles, racks=racks, sizes=sizes, boxes=boxes, is_strip=is_strip, step=step)
    return _RackGeometry(middles, boxes, (width, bottom))


def _ring_radius(
    racks: Layout, sizes: NDArray[np.int64], is_strip: NDArray[np.bool_], half_width: float
) -> float:
    """The radius of all rings, so that the members of the fullest ring do not touch."""
    count = _rings(racks, sizes).size
    fullest = int(count[~is_strip[racks.rack]].max(initial=1))
    closest = SQUEEZE if racks.name == "fans" else 1.0
    return max(4 * half_width, fullest * SPACING * half_width / (2 * pi * closest))


def _strip_width(sizes: NDArray[np.int64], step: float, panels: int) -> float:
    """The width of the fullest strip: in one row, or in several rows if there are no panels."""
    widest = int(sizes.max(initial=0))
    if panels:
        return min(widest, WIDEST_STRIP) * step + GAP
    return ceil(sqrt(8 * widest)) * step + GAP  # about eight times as many columns as rows


def _panel_boxes(
    panels: int, columns: int, side: float, width: float, top: float
) -> tuple[Floats, float]:
    """The boxes of panels, float[P, 4], in centred rows; and the bottom of the last row.

    Args:
        panels: P, how many panels there are.
        columns: how many are in a row.
        side: the side of a panel.
        width: the width of the picture.
        top: where the first row begins.
    """
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


def _rings(racks: Layout, sizes: NDArray[np.int64]) -> _Rings:
    """Where the vertices stand on the rings of their racks.

    Args:
        racks: the layout.
        sizes: int64[R], how many vertices each rack has.
    """
    has_centre = racks.centre[racks.rack] >= 0
    is_centre = has_centre & (racks.position == 0)  # the centre has the first position
    place = racks.position.astype(np.int64) - has_centre
    return _Rings(place, is_centre, sizes[racks.rack] - has_centre)


def _middles_on_rings(
    racks: Layout, sizes: NDArray[np.int64], boxes: Floats, radius: float
) -> Floats:
    """The middle of each vertex on the ring of its rack, or in the centre: float[S, 2]."""
    rings = _rings(racks, sizes)
    place = rings.place.astype(np.float64)
    if racks.name == "fans":  # the places 2k and 2k + 1 form a triangle with the centre
        place = 2 * (rings.place // 2) + 0.5 + SQUEEZE * (rings.place % 2 - 0.5)
    turn = 2 * pi * (place + 0.5) / np.maximum(rings.size, 1)
    reach = np.where(rings.is_centre, 0, radius)
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
    """How many rows a strip has; a centre has the first row alone, so that its links are
    visible.
    """
    per_row = max(1, int((width - GAP) // step))
    centre = int(racks.centre[rack] >= 0)
    return ceil(int(sizes[rack] - centre) / per_row) + centre


def _fill_strips(
    middles: Floats,
    racks: Layout,
    sizes: NDArray[np.int64],
    boxes: Floats,
    is_strip: NDArray[np.bool_],
    step: float,
) -> None:
    """Write the middles of the members of strips, in rows of equal length over the whole width.

    Args:
        middles: float[S, 2], the middle of each vertex, which is written.
        racks: the layout.
        sizes: int64[R], how many vertices each rack has.
        boxes: float[R, 4], x, y, width and height of each rack.
        is_strip: bool[R], the racks that are strips.
        step: pixels from one member to the next.
    """
    for rack in np.flatnonzero(is_strip).tolist():
        members = np.flatnonzero(racks.rack == rack)
        x, y, width, height = boxes[rack]
        rows = _strip_rows(racks, rack, sizes, width, step)
        centre = int(racks.centre[rack] >= 0)
        in_row = max(1, ceil((sizes[rack] - centre) / max(1, rows - centre)))
        place = racks.position[members] - centre  # of all members but the centre, from 0
        row, column = place // in_row + centre, place % in_row
        spacing = (width - GAP) / np.bincount(row, minlength=rows)[row]
        column[place < 0] = 0  # the centre, alone in the first row
        middles[members, 0] = x + GAP / 2 + spacing * (column + 0.5)
        middles[members, 1] = y + LABEL + (height - LABEL - GAP / 2) * (row + 0.5) / rows
