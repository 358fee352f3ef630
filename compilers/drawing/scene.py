"""Compose a picture as values for an SVG template: boxes, vertices, links, legend and texts.

`picture.draw` calls `compose`. It takes the positions of `positions.place`, and adds what is drawn
and written there. A *rack* is a part of the layout that is drawn, as in `positions`. All values are
pixels, rounded so that every machine gives the same bytes.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import sqrt
from typing import Any

import numpy as np
from numpy.typing import NDArray

from compilers.drawing.positions import RACKS, Floats, Positions, noun_of
from compilers.topology.labelled_graph import Topology
from compilers.topology.layout import Layout
from compilers.wiring.shared_risk import RiskGroup
from compilers.wiring.wiring import Wiring

PICTURE_MARGIN = 24.0
"""Pixels at the left and at the right of everything."""
HEAD = 62.0
"""Pixels above the boxes, for the heading."""
FOOT = 64.0
"""Pixels below the boxes, for the legend."""
ORIGIN = np.array([PICTURE_MARGIN, HEAD])
"""Where the place (0, 0) of `Positions` is in the picture."""
ROW = 15.0
"""Pixels of a line of the list of highlighted cables."""
LETTER = 5.6
"""Pixels of a letter in a vertex."""
LONGEST_NAME = 14
"""The most letters of a name in a vertex."""
CABLES_WIDTH = 270.0
"""Pixels of the width of the list of highlighted cables."""
LEGEND_GAP = 22.0
"""Pixels from the boxes to the legend, and from its first row to the second."""
SIGN_WIDTH = 40.0
"""Pixels of the sign of an entry of the legend, and the gap behind it."""
ENTRY_GAP = 18.0
"""Pixels between two entries of the legend."""
LEGEND_LETTER = 6.6
"""Pixels of a letter of the legend."""
SUBTITLE_LETTER = 7
"""Pixels of a letter of the line below the heading."""
MOST_LINES = 20_000
"""The most lines that are drawn for links of one style."""
KIND_WORDS = {
    "W": "quadric",
    "V1": "next to a quadric",
    "V2": "not next to a quadric",
    "quadrics": "the quadrics",
}
"""What kinds of vertices are, by their short names."""


@dataclass(frozen=True, slots=True)
class Strokes:
    """Lines of one style, as one SVG path."""

    name: str
    """The style, a class in the template."""
    path: str
    """The commands of the path."""
    lines: int
    """How many lines the path has."""
    links: int
    """How many links these lines stand for."""


@dataclass(frozen=True, slots=True)
class Box:
    """A rack or a cluster."""

    x: float
    """Pixels, the top left corner."""
    y: float
    """Pixels, the top left corner."""
    width: float
    """Pixels."""
    height: float
    """Pixels."""
    middle: float
    """The x of the middle of its label."""
    label: str
    """Its name."""
    marked: bool
    """Whether it is highlighted."""


@dataclass(frozen=True, slots=True)
class DrawnNode:
    """A vertex."""

    vertex: int
    """Its number in the topology."""
    x: float
    """Pixels, its middle."""
    y: float
    """Pixels, its middle."""
    kind: int
    """Its kind, a number; it chooses the colour."""
    label: str
    """The text inside; "" for none."""
    about: str
    """Its description, which is shown when the pointer is on it."""


@dataclass(frozen=True, slots=True)
class Disc:
    """A supernode."""

    x: float
    """Pixels, its middle."""
    y: float
    """Pixels, its middle."""
    radius: float
    """Pixels."""
    label: str
    """Its name."""
    marked: bool
    """Whether it is highlighted."""


@dataclass(frozen=True, slots=True)
class Key:
    """An entry of the legend."""

    x: float
    """Pixels, where the sign is drawn."""
    y: float
    """Pixels, where the sign is drawn."""
    sign: str
    """What the entry explains: the number of a kind of vertex, or the name of a style of line."""
    text: str
    """What the sign means."""


@dataclass(frozen=True, slots=True)
class Style:
    """Line widths in pixels, and the opacity of lines: fainter if there are many."""

    between_width: float
    """The width of a link between racks."""
    between_opacity: float
    """The opacity of a link between racks."""
    inside_width: float
    """The width of a link within a rack."""
    marked_width: float
    """The width of a highlighted link."""
    marked_opacity: float
    """The opacity of a highlighted link."""
    ring: float
    """The width of the line around a vertex."""


@dataclass(frozen=True, slots=True)
class Marked:
    """What is highlighted: the links of one rack, the links between two racks, or a group."""

    racks: tuple[int, ...] = ()
    """The numbers of one rack or two; empty if a group is highlighted."""
    group: RiskGroup | None = None
    """A shared risk link group, or None."""

    def __bool__(self) -> bool:
        """Whether anything is highlighted."""
        return bool(self.racks or self.group)

    def links(self, edges: NDArray[np.int32], rack: NDArray[np.int32]) -> NDArray[np.bool_]:
        """Which links are highlighted, bool[E].

        Args:
            edges: int32[E, 2], the vertices of each link.
            rack: int32[S], the rack of each vertex.
        """
        if self.group:
            in_group = np.isin(
                _pair_numbers(edges), _pair_numbers(np.array(self.group.links).reshape(-1, 2))
            )
            return in_group | np.isin(edges, self.group.switches).any(axis=1)
        in_racks = np.isin(rack[edges], self.racks)
        touches = in_racks.all(axis=1) if len(self.racks) == 2 else in_racks.any(axis=1)
        is_marked: NDArray[np.bool_] = touches & (rack[edges[:, 0]] != rack[edges[:, 1]])
        return is_marked


def _pair_numbers(pairs: NDArray[np.integer]) -> NDArray[np.int64]:
    """One number for each pair, int64[n], whatever its order.

    Args:
        pairs: int[n, 2], numbers below 2^31.
    """
    ordered = np.sort(pairs.astype(np.int64), axis=1)
    return ordered[:, 0] << 32 | ordered[:, 1]


NOTHING = Marked()
"""The value of `compose`'s argument for a picture in which nothing is highlighted."""


@dataclass(frozen=True, slots=True)
class Scene:
    """A complete picture, in pixels."""

    title: str
    """The heading."""
    subtitle: str
    """The line below the heading."""
    width: float
    """Pixels of the whole picture."""
    height: float
    """Pixels of the whole picture."""
    half: float
    """Half the height of a vertex."""
    half_width: float
    """Half the width of a vertex."""
    boxes: tuple[Box, ...]
    """The racks or clusters."""
    discs: tuple[Disc, ...]
    """The supernodes."""
    strokes: tuple[Strokes, ...]
    """The links, from back to front."""
    nodes: tuple[DrawnNode, ...]
    """The vertices."""
    keys: tuple[Key, ...]
    """The legend."""
    cables: tuple[str, ...]
    """The lines of the list of highlighted cables."""
    cables_x: float
    """Pixels, where that list begins."""
    style: Style
    """The widths of lines."""
    noun: str
    """What a box is called, such as "rack"."""


def name_width(names: Sequence[str]) -> float:
    """The width of the widest name in a vertex."""
    return LETTER * max(map(len, map(shortened, names)), default=0)


def compose(
    title: str,
    topology: Topology,
    wiring: Wiring,
    racks: Layout,
    placement: Positions,
    marked: Marked = NOTHING,
) -> Scene:
    """Compose the picture of a topology.

    Args:
        title: the heading.
        topology: the fabric graph.
        wiring: the names and ports of its vertices.
        racks: the layout.
        placement: the positions (`compilers.drawing.positions.place`).
        marked: what is highlighted.
    """
    cables = _cables(topology, wiring, racks, marked)
    middles = placement.middles + ORIGIN
    width = placement.size[0] + 2 * PICTURE_MARGIN
    height = placement.size[1] + HEAD + FOOT
    most_cables = int(placement.size[1] // ROW) - 2  # as many as have room beside the boxes
    if len(cables) > most_cables:
        cables = (*cables[: most_cables - 1], f"… and {len(cables) - most_cables + 1} more")
    keys = _legend(topology, racks, placement, marked, height - FOOT + LEGEND_GAP)
    subtitle = _subtitle(topology, racks, placement, marked)
    ends_of_legend = (key.x + SIGN_WIDTH + LEGEND_LETTER * len(key.text) for key in keys)
    width = max(width, SUBTITLE_LETTER * len(subtitle), *ends_of_legend)
    strokes = _strokes(topology, racks, placement, middles, marked)
    return Scene(
        title=title,
        subtitle=subtitle,
        width=_to_tenths(width + (CABLES_WIDTH if cables else 0)),
        height=_to_tenths(height),
        half=placement.half,
        half_width=_to_tenths(placement.half_width),
        boxes=_boxes(racks, placement, marked),
        discs=_discs(racks, placement, marked),
        strokes=strokes,
        nodes=_nodes(topology, wiring, racks, placement, middles),
        keys=keys,
        cables=cables,
        cables_x=_to_tenths(width),
        style=_style(strokes, placement, bool(marked)),
        noun=noun_of(racks),
    )


def _style(strokes: Sequence[Strokes], placement: Positions, marked: bool) -> Style:
    """Lines that are thin and faint if there are many, and fainter if others are highlighted."""
    lines = max(1, strokes[0].lines)  # between racks, which are drawn first
    marked_lines = max(1, strokes[-1].lines)  # highlighted lines, if any, are drawn last
    faint = 0.4 if marked else 1.0
    has_small_vertices = placement.half < 5
    return Style(
        between_width=1.0 if lines < 2000 else 0.6,
        between_opacity=round(faint * min(0.6, max(0.07, 9 / sqrt(lines))), 3),
        inside_width=1.0 if has_small_vertices else 1.8,
        marked_width=1.8 if marked_lines < 300 else 0.8,
        marked_opacity=0.85 if marked_lines < 300 else 0.5,
        ring=1.3 if has_small_vertices else 2.0,
    )


def _to_tenths(value: float) -> float:
    """A length rounded to tenths of a pixel."""
    return float(_rounded(np.float64(value)))


def _rounded(values: Any) -> Any:
    """Values rounded to millionths, and then to tenths.

    The last bit of a sine differs between machines. Without the first rounding it could decide how
    the second one rounds.
    """
    return np.round(np.round(values, 6), 1)


def shortened(name: str, most: int = LONGEST_NAME) -> str:
    """A name, cut to so many letters at most.

    >>> shortened("leaf-switch-17", 8)
    'leaf-sw…'
    """
    return name if len(name) <= most else name[: most - 1] + "…"


def _nodes(
    topology: Topology, wiring: Wiring, racks: Layout, placement: Positions, middles: Floats
) -> tuple[DrawnNode, ...]:
    """The vertices with their texts.

    Args:
        topology: the kinds and coordinates of vertices.
        wiring: the names of vertices.
        racks: the layout.
        placement: the sizes of what is drawn.
        middles: float[S, 2], the middle of each vertex in the picture.
    """
    has_room = placement.half >= 9
    nodes = []
    for v, name in enumerate(wiring.names):
        kind = topology.kinds[topology.kind[v]]
        coordinates = ", ".join(map(str, topology.coordinates[v].tolist()))
        about = [name, f"{kind} ({coordinates})", f"{noun_of(racks)} {racks.names[racks.rack[v]]}"]
        nodes.append(
            DrawnNode(
                vertex=v,
                x=_to_tenths(middles[v, 0]),
                y=_to_tenths(middles[v, 1]),
                kind=int(topology.kind[v]),
                label=shortened(name) if has_room else "",
                about="\n".join(about),
            )
        )
    return tuple(nodes)


def _boxes(racks: Layout, placement: Positions, marked: Marked) -> tuple[Box, ...]:
    """The boxes of racks or clusters."""
    names = [racks.names[rack] for rack in marked.racks]
    return tuple(
        Box(
            x=_to_tenths(x + PICTURE_MARGIN),
            y=_to_tenths(y + HEAD),
            width=_to_tenths(width),
            height=_to_tenths(height),
            middle=_to_tenths(x + PICTURE_MARGIN + width / 2),
            label=name,
            marked=name in names,
        )
        for name, (x, y, width, height) in zip(
            placement.box_names, placement.boxes.tolist(), strict=True
        )
    )


def _discs(racks: Layout, placement: Positions, marked: Marked) -> tuple[Disc, ...]:
    """The discs of supernodes; () in families without supernodes."""
    return tuple(
        Disc(
            x=_to_tenths(x + PICTURE_MARGIN),
            y=_to_tenths(y + HEAD),
            radius=_to_tenths(radius),
            label=f"supernode{number}",
            marked=racks.name == "supernodes" and number in marked.racks,
        )
        for number, (x, y, radius) in enumerate(placement.discs.tolist())
    )


def _strokes(
    topology: Topology, racks: Layout, placement: Positions, middles: Floats, marked: Marked
) -> tuple[Strokes, ...]:
    """Links, bottom layer first; as bundles between supernodes, and between racks if many."""
    edges = topology.graph.edges()
    group = _groups(topology, racks, placement)
    is_inside = group[edges[:, 0]] == group[edges[:, 1]]
    outer = edges[~is_inside]
    if len(placement.discs):
        middle = placement.discs[:, :2] + ORIGIN
        cluster = placement.disc_box[group[outer]]
        in_cluster = cluster[:, 0] == cluster[:, 1]
        strokes = [
            _bundles("between", group[outer[~in_cluster]], middle),
            _bundles("cluster", group[outer[in_cluster]], middle),
        ]
    elif len(outer) > MOST_LINES:
        corner, size = np.split(placement.boxes, 2, axis=1)
        middle = corner + size / 2 + ORIGIN
        strokes = [_bundles("between", group[outer], middle)]
    else:
        strokes = [_lines("between", middles[outer], len(outer))]
    strokes.append(_lines("inside", middles[edges[is_inside]], int(is_inside.sum())))
    if marked:
        is_marked = marked.links(edges, racks.rack)
        strokes.append(_lines("marked", middles[edges[is_marked]], int(is_marked.sum())))
    return tuple(strokes)


def _groups(topology: Topology, racks: Layout, placement: Positions) -> NDArray[np.int32]:
    """The supernode of each vertex, int32[S]; in families without supernodes its rack."""
    if not len(placement.discs):
        return racks.rack
    members = topology.graph.order // len(placement.discs)
    return np.arange(topology.graph.order, dtype=np.int32) // members


def _bundles(name: str, ends: NDArray[np.int32], middle: Floats) -> Strokes:
    """A line for each pair of groups that is joined, from middle to middle.

    Args:
        name: the style.
        ends: int32[n, 2], the groups at the ends of each link.
        middle: float[groups, 2], the middle of each group.
    """
    lower, upper = np.sort(ends.astype(np.int64), axis=1).T
    joined = np.unique(lower * len(middle) + upper)
    pairs = np.column_stack(np.divmod(joined, len(middle)))
    return _lines(name, middle[pairs], len(ends))


def _lines(name: str, ends: Floats, links: int) -> Strokes:
    """Straight lines in one style.

    Args:
        name: the style.
        ends: float[n, 2, 2], the places of both ends of each line.
        links: how many links the lines stand for.
    """
    places = _rounded(ends).reshape(-1, 4)
    path = "".join(f"M{x:g} {y:g}L{x2:g} {y2:g}" for x, y, x2, y2 in places.tolist())
    return Strokes(name=name, path=path, lines=len(places), links=links)


def _cables(topology: Topology, wiring: Wiring, racks: Layout, marked: Marked) -> tuple[str, ...]:
    """The cables of a group, or between two highlighted racks, as `node:port – node:port`."""
    if len(marked.racks) != 2 and not marked.group:
        return ()
    edges = topology.graph.edges()
    texts = []
    for u, v in edges[marked.links(edges, racks.rack)].tolist():
        # The end in the rack that was named first comes first.
        is_swapped = len(marked.racks) == 2 and racks.rack[u] != marked.racks[0]
        first, second = (v, u) if is_swapped else (u, v)
        link = int(np.flatnonzero(wiring.far[first] == second)[0])
        first_port = wiring.port_name(first, int(wiring.port[first, link]))
        second_port = wiring.port_name(second, int(wiring.far_port[first, link]))
        texts.append(f"{wiring.names[first]}:{first_port} – {wiring.names[second]}:{second_port}")
    return tuple(texts)


def _subtitle(topology: Topology, racks: Layout, placement: Positions, marked: Marked) -> str:
    """The line below the heading: sizes, the layout, and what is highlighted."""
    graph = topology.graph
    parts = [f"{graph.order:,} nodes, {graph.size:,} links, diameter {topology.diameter}"]
    if len(placement.discs):
        parts.append(
            f"{len(placement.discs):,} supernodes in {int(topology.parameters['q']) + 1} clusters"
        )
    elif racks.name != "kinds":
        layout_name = "" if racks.name == RACKS else f" ({racks.name})"
        parts.append(f"{len(racks.names)} {noun_of(racks)}s{layout_name}")
    if marked:
        count = int(marked.links(graph.edges(), racks.rack).sum())
        names = " and ".join(racks.names[rack] for rack in marked.racks)
        if marked.group:
            where = f"of {marked.group.name}"
        elif len(marked.racks) == 2:
            where = f"between {names}"
        else:
            where = f"leaving {names}"
        parts.append(f"{count} links {where}")
    return " · ".join(parts)


def _legend(
    topology: Topology, racks: Layout, placement: Positions, marked: Marked, top: float
) -> tuple[Key, ...]:
    """The legend in two rows: kinds of vertices, and kinds of lines.

    Args:
        topology: the kinds of vertices.
        racks: the layout.
        placement: whether there are supernodes.
        marked: what is highlighted.
        top: pixels where the legend begins.
    """
    counts = np.bincount(topology.kind, minlength=len(topology.kinds))
    vertices = [
        (str(number), kind_words(kind, int(counts[number])))
        for number, kind in enumerate(topology.kinds)
        if counts[number]
    ]
    if len(placement.discs):
        links = [
            ("inside", "in a supernode"),
            ("cluster", "bundle in a cluster"),
            ("between", "bundle between clusters"),
        ]
    else:
        noun = noun_of(racks)
        links = [("inside", f"inside a {noun}"), ("between", f"between {noun}s")]
    if marked:
        links.append(("marked", "highlighted"))
    keys = []
    for row, entries in enumerate((vertices, links)):
        x = PICTURE_MARGIN
        for sign, text in entries:
            keys.append(
                Key(x=_to_tenths(x), y=_to_tenths(top + LEGEND_GAP * row), sign=sign, text=text)
            )
            x += SIGN_WIDTH + ENTRY_GAP + LEGEND_LETTER * len(text)
    return tuple(keys)


def kind_words(kind: str, count: int) -> str:
    """A kind of vertices and how many there are, for a legend.

    >>> kind_words("W", 8), kind_words("spine", 4)
    ('W: quadric (8)', 'spine (4)')
    """
    return f"{kind}: {KIND_WORDS[kind]} ({count})" if kind in KIND_WORDS else f"{kind} ({count})"
