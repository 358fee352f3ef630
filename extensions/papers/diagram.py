"""Diagrams of small graphs as circles and lines in SVG, as papers have them.

`Diagram` is a graph with a place for each vertex. `ring`, `columns` and `with_hosts` compute
places; the exhibits of the papers use them.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

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
    radius: float = field(default=5.0)
    """Pixels of a vertex."""
    hues: Sequence[int] | NDArray[np.integer] = ()
    """int[E], a number that chooses the colour of each link, as for vertices; HIDDEN for black."""

    def svg(self) -> str:
        """The diagram as SVG."""
        low, high = self.places.min(axis=0), self.places.max(axis=0)
        extent = np.maximum(high - low, 1e-9)
        scale = self.width / extent.max()
        at = np.round((self.places - low) * scale + [MARGIN, MARGIN + HEADING_HEIGHT], 1)
        width, height = np.ceil(extent * scale).astype(int).tolist()
        faint = list(self.faint) or [False] * len(self.links)
        link_colours = np.asarray(list(self.hues) or [HIDDEN] * len(self.links), np.int64)
        hues = np.where(faint, FAINT, link_colours)
        kinds = list(self.kinds) or [0] * len(at)
        labels = list(self.labels) or [""] * len(at)
        ends = at[np.asarray(self.links, np.int64).reshape(-1, 2)].tolist()
        circles = [
            {"x": x, "y": y, "kind": kind % COLOURS, "label": label, "shown": kind != HIDDEN}
            for (x, y), kind, label in zip(at.tolist(), kinds, labels, strict=True)
            if kind != HIDDEN or label
        ]
        text: str = (
            environment()
            .get_template("draw/diagram.svg.j2")
            .render(
                d=self,
                width=max(width, CHARACTER_WIDTH * len(self.title)) + 2 * MARGIN,
                height=height + 2 * MARGIN + HEADING_HEIGHT,
                paths=[
                    {
                        "hue": hue,
                        "d": _path(
                            link_ends
                            for link_ends, link_hue in zip(ends, hues, strict=True)
                            if link_hue == hue
                        ),
                    }
                    for hue in np.unique(hues).tolist()
                ],
                circles=circles,
            )
        )
        return text


def _path(ends: Iterable[list[list[float]]]) -> str:
    """Lines as one SVG path, each with the places of its two ends."""
    return "".join(f"M{a[0]:g} {a[1]:g}L{b[0]:g} {b[1]:g}" for a, b in ends)


def ring(count: int, radius: float = 1.0, centre: tuple[float, float] = (0, 0)) -> Places:
    """Places on a circle, clockwise from the top: float64[count, 2]."""
    turn = 2 * np.pi * np.arange(count) / max(count, 1)
    places: Places = np.stack((np.sin(turn), -np.cos(turn)), axis=1) * radius + np.array(centre)
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
    owner = np.repeat(leaves, hosts_of_leaf)
    across = np.full(len(owner), 1.3 * side)
    along = np.tile(0.28 * (np.arange(hosts_of_leaf) - (hosts_of_leaf - 1) / 2), len(leaves))
    hosts = len(places) + np.arange(len(owner))
    return (
        np.concatenate((places, places[owner] + np.stack((across, along), axis=1))),
        np.concatenate((links, np.stack((owner, hosts), axis=1))),
    )


def matrix_links(adjacent: NDArray[np.bool_]) -> NDArray[np.int64]:
    """The links of a symmetric adjacency matrix, int64[E, 2]."""
    return np.argwhere(np.triu(adjacent, 1))
