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

MARGIN, DRAWING_WIDTH, HEADING_HEIGHT = 34, 300, 34
"""Pixels around a drawing, of its width, and of its heading."""
CHARACTER_WIDTH = 8
"""About the pixels of a character of the heading."""
HIDDEN, FAINT = -1, -2
"""In place of the number of a colour: not drawn, or drawn in the background."""
HOST = 4
"""The number of the colour of hosts, white."""
COLOURS = 7
"""The number of colours in the template: red, green, blue, brown, white, violet, light green."""
Places = NDArray[np.float64]
"""float64[n, 2], places of vertices, y downwards, in any unit."""


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
    kinds: Sequence[int] | NDArray[np.integer] = ()
    """int[N], a number that chooses the colour of each vertex; HIDDEN for a bend in a line, HOST
    for white."""
    faint: Sequence[bool] = ()
    """bool[E], whether a link is drawn in the background."""
    width: int = DRAWING_WIDTH
    """Pixels of the picture without its margins."""
    radius: float = 5.0
    """Pixels of a vertex."""
    hues: Sequence[int] | NDArray[np.integer] = ()
    """int[E], a number that chooses the colour of each link, as for vertices; HIDDEN for black."""

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
        """The links as SVG paths, one for each colour; those in the background come first."""
        faint = list(self.faint) or [False] * len(self.links)
        link_hues = np.asarray(list(self.hues) or [HIDDEN] * len(self.links), np.int64)
        hues = np.where(faint, FAINT, link_hues)
        ends = pixels[np.asarray(self.links, np.int64).reshape(-1, 2)]
        return [
            {"hue": hue, "d": _path(ends[hues == hue].tolist())} for hue in np.unique(hues).tolist()
        ]

    def _circles(self, pixels: Places) -> list[dict[str, Any]]:
        """The vertices as circles; hidden ones only where they have a label."""
        kinds = list(self.kinds) or [0] * len(pixels)
        labels = list(self.labels) or [""] * len(pixels)
        return [
            {"x": x, "y": y, "kind": kind % COLOURS, "label": label, "shown": kind != HIDDEN}
            for (x, y), kind, label in zip(pixels.tolist(), kinds, labels, strict=True)
            if kind != HIDDEN or label
        ]


def _path(ends: Iterable[list[list[float]]]) -> str:
    """Lines as one SVG path, each with the places of its two ends."""
    return "".join(f"M{x1:g} {y1:g}L{x2:g} {y2:g}" for (x1, y1), (x2, y2) in ends)


def ring(count: int, radius: float = 1.0, centre: tuple[float, float] = (0, 0)) -> Places:
    """Places on a circle, clockwise from the top: float64[count, 2]."""
    angle = 2 * np.pi * np.arange(count) / max(count, 1)
    places: Places = np.stack((np.sin(angle), -np.cos(angle)), axis=1) * radius + np.array(centre)
    return places


def columns(*sizes: int, apart: float = 1.6) -> Places:
    """Places in columns, all of the same height: float64[N, 2].

    Args:
        sizes: the number of vertices in each column, from left to right.
        apart: the distance of columns, over a third of their height.
    """
    height = max(sizes) - 1
    parts = [
        np.stack((np.full(n, apart * x * max(height, 1) / 3), (np.arange(n) + 0.5) * height / n), 1)
        for x, n in enumerate(sizes)
    ]
    return np.concatenate(parts)


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
        side: -1 if hosts are drawn on the left, 1 on the right.
    """
    leaf = np.repeat(leaves, hosts_of_leaf)
    x_offset = np.full(len(leaf), 1.3 * side)
    y_offset = np.tile(0.28 * (np.arange(hosts_of_leaf) - (hosts_of_leaf - 1) / 2), len(leaves))
    hosts = len(places) + np.arange(len(leaf))
    return (
        np.concatenate((places, places[leaf] + np.stack((x_offset, y_offset), axis=1))),
        np.concatenate((links, np.stack((leaf, hosts), axis=1))),
    )


def matrix_links(adjacent: NDArray[np.bool_]) -> NDArray[np.int64]:
    """The links of a symmetric adjacency matrix, int64[E, 2]."""
    return np.argwhere(np.triu(adjacent, 1))
