"""Diagrams of small graphs as circles and lines in SVG, as papers have them.

`Diagram` is a graph with a place for each vertex. `ring`, `columns` and `with_hosts` compute
places; the exhibits of the papers use them.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from templates import environment

MARGIN = 34
"""Pixels around a drawing."""
DRAWING_WIDTH = 300
"""Pixels of the width of a drawing."""
HEADING_HEIGHT = 34
"""Pixels of the height of its heading."""
CHARACTER_WIDTH = 8
"""About the pixels of a character of the heading."""

# Colours are numbers, as the template `draw/diagram.svg.j2` lists them.
RED, GREEN, BLUE, BROWN, WHITE, VIOLET, LIGHT_GREEN = range(7)
COLOURS = 7
"""The number of these colours; a larger number of a vertex counts modulo this one."""
HIDDEN = -1
"""In place of the colour of a vertex: it is not drawn, as it is only a bend in a line."""
BLACK, FAINT = -1, -2
"""In place of the colour of a link: black, or a thin and pale line in the background."""
Places = NDArray[np.float64]
"""float64[n, 2], places of vertices, y downwards, in any unit."""

# Lengths of drawings, chosen by eye.
COLUMN_DISTANCE = 1.6
"""The distance of two neighbouring columns. A column is 3 high."""
LEFT, RIGHT = -1, 1
"""On which side of their leaf hosts are drawn: the sign of the horizontal distance."""
HOST_DISTANCE, HOST_ROW_DISTANCE = 1.3, 0.28
"""How far hosts are to the side of their leaf, and how far from each other."""


@dataclass(frozen=True, slots=True, eq=False)
class Diagram:
    """A graph of N vertices and E links, drawn."""

    title: str
    """The heading."""
    places: Places
    """float64[N, 2], the place of each vertex, y downwards, in any unit."""
    links: NDArray[np.integer]
    """int[E, 2], the two vertices of each link."""
    labels: Sequence[str] = ()
    """The label of each vertex; empty where vertices have none."""
    vertex_colours: Sequence[int] | NDArray[np.integer] = ()
    """int[N], the colour of each vertex, or HIDDEN; empty if all are red."""
    faint: Sequence[bool] = ()
    """bool[E], whether a link is drawn in the background; empty if none is."""
    width: int = DRAWING_WIDTH
    """Pixels of the picture without its margins."""
    radius: float = 5.0
    """Pixels of a vertex."""
    link_colours: Sequence[int] | NDArray[np.integer] = ()
    """int[E], the colour of each link that is not faint; empty if all are black."""

    def svg(self) -> str:
        """The diagram as SVG."""
        low, high = self.places.min(axis=0), self.places.max(axis=0)
        extent = np.maximum(high - low, 1e-9)
        scale = self.width / extent.max()
        pixels = np.round((self.places - low) * scale + [MARGIN, MARGIN + HEADING_HEIGHT], 1)
        width, height = np.ceil(extent * scale).astype(int).tolist()
        text: str = (
            environment()
            .get_template("draw/diagram.svg.j2")
            .render(
                d=self,
                width=max(width, CHARACTER_WIDTH * len(self.title)) + 2 * MARGIN,
                height=height + 2 * MARGIN + HEADING_HEIGHT,
                paths=self._paths(pixels),
                circles=self._circles(pixels),
            )
        )
        return text

    def _paths(self, pixels: Places) -> list[dict[str, Any]]:
        """The links as SVG paths, one for each colour; those in the background come first.

        `hue` and `d` are the names in the template of a path's colour and of its lines.
        """
        faint = list(self.faint) or [False] * len(self.links)
        in_front = np.asarray(list(self.link_colours) or [BLACK] * len(self.links), np.int64)
        colours = np.where(faint, FAINT, in_front)
        ends = pixels[np.asarray(self.links, np.int64).reshape(-1, 2)]
        return [
            {"hue": colour, "d": _path(ends[colours == colour].tolist())}
            for colour in np.unique(colours).tolist()
        ]

    def _circles(self, pixels: Places) -> list[dict[str, Any]]:
        """The vertices as circles; hidden ones only where they have a label.

        `kind` is the name in the template of a circle's colour.
        """
        colours = list(self.vertex_colours) or [RED] * len(pixels)
        labels = list(self.labels) or [""] * len(pixels)
        return [
            {"x": x, "y": y, "kind": colour % COLOURS, "label": label, "shown": colour != HIDDEN}
            for (x, y), colour, label in zip(pixels.tolist(), colours, labels, strict=True)
            if colour != HIDDEN or label
        ]


def _path(ends: Iterable[list[list[float]]]) -> str:
    """Lines as one SVG path, each with the places of its two ends."""
    return "".join(f"M{x1:g} {y1:g}L{x2:g} {y2:g}" for (x1, y1), (x2, y2) in ends)


def ring(count: int, radius: float = 1.0, centre: tuple[float, float] = (0, 0)) -> Places:
    """Places on a circle, clockwise from the top: float64[count, 2]."""
    angle = 2 * np.pi * np.arange(count) / max(count, 1)
    places: Places = np.stack((np.sin(angle), -np.cos(angle)), axis=1) * radius + np.array(centre)
    return places


def columns(*sizes: int) -> Places:
    """Places in columns, all of the same height: float64[N, 2].

    The vertices of the largest column are nearly 1 apart.

    Args:
        sizes: the number of vertices in each column, from left to right.
    """
    height = max(sizes) - 1
    places_of_columns = [
        np.stack(
            (
                np.full(size, COLUMN_DISTANCE * column * max(height, 1) / 3),
                (np.arange(size) + 0.5) * height / size,
            ),
            axis=1,
        )
        for column, size in enumerate(sizes)
    ]
    return np.concatenate(places_of_columns)


def with_hosts(
    places: Places,
    links: NDArray[np.integer],
    leaves: NDArray[np.int64],
    hosts_of_leaf: int,
    side: int,
) -> tuple[Places, NDArray[np.integer]]:
    """Places and links with those of hosts added.

    Args:
        places: float64[N, 2], of the switches.
        links: int[E, 2], of the switches.
        leaves: int64[n], the switches with hosts.
        hosts_of_leaf: how many hosts each has.
        side: on which side of its leaf a host is drawn, LEFT or RIGHT.
    """
    leaf = np.repeat(leaves, hosts_of_leaf)  # the leaf of each host
    x_offset = np.full(len(leaf), HOST_DISTANCE * side)
    rows = np.arange(hosts_of_leaf) - (hosts_of_leaf - 1) / 2  # as many above the leaf as below
    y_offset = np.tile(HOST_ROW_DISTANCE * rows, len(leaves))
    hosts = len(places) + np.arange(len(leaf))
    return (
        np.concatenate((places, places[leaf] + np.stack((x_offset, y_offset), axis=1))),
        np.concatenate((links, np.stack((leaf, hosts), axis=1))),
    )


def matrix_links(adjacent: NDArray[np.bool_]) -> NDArray[np.int64]:
    """The links of a symmetric adjacency matrix, int64[E, 2]."""
    return np.argwhere(np.triu(adjacent, 1))
