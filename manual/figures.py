"""Pictures of the manual: `polarfab draw`, for the mathematics with paths laid over it."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

import numpy as np
import yaml

import polarfab
from compilers.cabling.shuffle import Shuffle

SMALL = {
    "name": "er3",
    "topology": {"family": "polarfly", "q": 3},
    "routing": {"balance": "compact-valiant", "protect": "link"},
}
"""The fabric of the figures of paths."""
EXAMPLES = Path(__file__).parents[1] / "examples"
CABLED = EXAMPLES / "q7-copackaged" / "fabric.yaml"
"""The fabric of the charts."""
PANELS = EXAMPLES / "q7-panels" / "fabric.yaml"
"""The fabric of the figures of panels."""
MINIMAL, OTHER, DEAD = "#d55e00", "#0072b2", "#c1121f"
"""The colours of minimal paths, of other paths, and of paths over dead links."""
OVERLAY = '<g id="overlay"></g>'
"""The place in a picture for what is laid over it."""
NODE = re.compile(r'<use href="[^"]*" x="([\d.]+)" y="([\d.]+)" data-vertex="(\d+)"')
"""A vertex of a picture: its place, and its number."""
Point = tuple[float, float]
"""Pixels from the left, and from the top."""
BEND = 0.25
"""How far a curve keeps from the straight line, as a part of its length."""
TOP, FRONT_PITCH, LANE_PITCH = 40, 50, 5
"""Pixels: the first port, the distance of ports, and the distance of lanes."""


@dataclass(frozen=True, slots=True)
class PathStyle:
    """A path that is laid over a picture."""

    vertices: Sequence[int]
    """The vertices along it."""
    colour: str
    """Its colour, such as `#d55e00`."""
    dashes: str = ""
    """The lengths of dashes and gaps; "" for a line without gaps."""


def figures() -> Iterator[tuple[str, str]]:
    """Name and SVG of every figure of the glossary."""
    for name, q, rack in (("quadrics", 3, "quadrics"), ("fan", 5, "fan1")):
        yield name, polarfab.draw(polarfab.topology("polarfly", q=q), racks=[rack])
    star = polarfab.topology("polarstar", q=3, supernode="inductive-quad", degree=3)
    yield "supernode", polarfab.draw(star, racks=["supernode0", "supernode1"])
    fabric = polarfab.Fabric.from_spec(SMALL).compile()
    plain = polarfab.draw(fabric)
    explained = fabric.explain("0", "2")
    paths = [PathStyle(alternate, OTHER, "6 4") for alternate in explained.alternates]
    paths.append(PathStyle(explained.minimal, MINIMAL))
    yield "alternates", overlaid(plain, paths)
    down = fabric.explain("7", "12", ["7-12"])
    bounced = min((failing.path for failing in down.failing), key=len)
    paths = [PathStyle(down.minimal, DEAD, "2 5"), PathStyle(bounced, OTHER)]
    yield "bounce", overlaid(plain, paths)


def pictures() -> Iterator[tuple[str, str]]:
    """File and SVG of each picture in docs/pictures that the README and pages show.

    `pytest --update-golden tests/manual` writes them.
    """
    for name, picture in figures():
        yield f"{name}.svg", picture
    flown = polarfab.topology("polarfly", q=7)
    yield "polarfly-q7.svg", polarfab.draw(flown, racks=["quadrics", "fan3"])
    inventory = CABLED.with_name("inventory.yaml")
    spec = yaml.safe_load(CABLED.read_text()) | {"inventory": None, "routing": {}}
    before = polarfab.Fabric.from_spec(spec, inventory).compile()
    spec["routing"] = SMALL["routing"]
    after = polarfab.Fabric.from_spec(spec, inventory).compile()
    panels = polarfab.Fabric.from_spec(PANELS).compile()
    yield "panels.svg", cassettes(panels)
    yield "panel-racks.svg", polarfab.chart(panels, "racks")
    yield "racks.svg", polarfab.chart(before, "racks")
    yield "load.svg", polarfab.chart(after, "load", pattern="tornado")
    yield "failures.svg", polarfab.chart(after, "failures")
    yield "rounds.svg", polarfab.chart(after, "rounds", before=before)
    addressed = SMALL | {"addressing": {"ipv6": "fd00::/48"}}
    carried = polarfab.Fabric.from_spec(addressed).compile()
    minimal, second, third, last = polarfab.host_paths(carried, 0, 2, 4).paths
    paths = [
        PathStyle(minimal.nodes, MINIMAL),
        PathStyle(second.nodes, OTHER, "6 4"),
        PathStyle(third.nodes, OTHER, "6 4"),
        PathStyle(last.nodes, DEAD, "2 4"),
    ]
    yield "path-set.svg", overlaid(polarfab.draw(carried), paths)


def overlaid(picture: str, paths: Sequence[PathStyle]) -> str:
    """The picture with paths on it."""
    place = {int(vertex): (float(x), float(y)) for x, y, vertex in NODE.findall(picture)}
    lines = ""
    for path in paths:
        curves = "".join(bent(place[u], place[v]) for u, v in pairwise(path.vertices))
        lines += (
            f'<path d="{curves}" fill="none" stroke="{path.colour}" stroke-width="3.5"'
            f' stroke-opacity=".85" stroke-dasharray="{path.dashes}"/>'
        )
    return picture.replace(OVERLAY, lines)


def bent(start: Point, end: Point) -> str:
    """A curve that keeps clear of vertices on the straight line between its ends."""
    (x, y), (u, v) = start, end
    return f"M{x} {y}Q{(x + u) / 2 + (y - v) * BEND} {(y + v) / 2 + (u - x) * BEND} {u} {v}"


def cassettes(fabric: polarfab.Fabric) -> str:
    """Two fans' cassettes from lanes in front to trunks behind, and the trunk between them."""
    (plan,) = polarfab.cables(fabric).plans
    shuffle = plan.shuffle
    left, right = (plan.names.index(f"fan{number}-P1") for number in (1, 2))
    trunk = int(np.flatnonzero((shuffle.ends == [left, right]).all(axis=1))[0])
    left_port, right_port = shuffle.rear_ports[trunk].tolist()
    elements = [
        *cassette(shuffle, left, left_port, Sides(150, 290, plan.names[left])),
        *cassette(shuffle, right, right_port, Sides(570, 430, plan.names[right])),
    ]
    for position in range(int((shuffle.trunk == trunk).sum())):
        start = 310, port_top(left_port) + LANE_PITCH * position
        end = 410, port_top(right_port) + LANE_PITCH * position
        elements.append(line(start, end, True))
    body = "\n".join(elements)
    frame = '<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 720 400" font-size="12"'
    background = '<rect width="720" height="400" fill="#fff"/>'
    return f'{frame} font-family="sans-serif">\n{background}\n{body}\n</svg>\n'


@dataclass(frozen=True, slots=True)
class Sides:
    """Where a cassette is drawn."""

    front: int
    """The pixels from the left to its front ports."""
    behind: int
    """The pixels from the left to its trunks."""
    name: str
    """Its name."""

    @property
    def faces_left(self) -> bool:
        """Whether its front ports are on the left."""
        return self.front < self.behind


def cassette(shuffle: Shuffle, number: int, shown: int, sides: Sides) -> Iterator[str]:
    """The lines and words of a cassette.

    Args:
        shuffle: has the cassette.
        number: its number.
        shown: the rear port whose trunk is shown.
        sides: where it is drawn.
    """
    outward, inward = ("end", "start") if sides.faces_left else ("start", "end")
    _, front_ports = shuffle.types[int(shuffle.cassette_type[number])]
    for port, text in enumerate(front_ports):
        top = port_top(port)
        yield label(sides.front, top + 18, f"switch {port + 1}", outward)
        for lane, word in enumerate(text.split()):
            if word[0] == "T":
                trunk, position = map(int, word[1:].split("."))
                start = sides.front, top + LANE_PITCH * lane
                end = sides.behind, port_top(trunk - 1) + LANE_PITCH * (position - 1)
                yield line(start, end, trunk - 1 == shown)
    beside = sides.behind + 8 if sides.faces_left else sides.behind - 8
    for port in range(int(shuffle.rear_ports[shuffle.ends == number].max()) + 1):
        yield label(beside, port_top(port) + 4, f"T{port + 1}", inward)
    yield label((sides.front + sides.behind) / 2, 20, sides.name, "middle")


def port_top(number: int) -> int:
    """The pixels from the top to a port, counted from 0."""
    return TOP + FRONT_PITCH * number


def line(start: Point, end: Point, chosen: bool) -> str:
    """A fibre; of the trunk that is shown or of another one."""
    ink = f'stroke="{MINIMAL}" stroke-width="1.5"' if chosen else 'stroke="#bbb"'
    (x, y), (u, v) = start, end
    return f'<line x1="{x:g}" y1="{y:g}" x2="{u:g}" y2="{v:g}" {ink}/>'


def label(x: float, y: float, text: str, anchor: str) -> str:
    """A word at a place."""
    return f'<text x="{x:g}" y="{y:g}" text-anchor="{anchor}">{text}</text>'
