"""Pictures of the manual: `polarfab draw`, for the mathematics with paths laid over it."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from itertools import pairwise
from pathlib import Path as File

import numpy as np
import yaml

import polarfab

SMALL = {
    "name": "er3",
    "topology": {"family": "polarfly", "q": 3},
    "routing": {"balance": "compact-valiant", "protect": "link"},
}
CABLED = File(__file__).parents[1] / "examples" / "q7-copackaged" / "fabric.yaml"
PANELS = CABLED.parents[1] / "q7-panels" / "fabric.yaml"
MINIMAL, OTHER, DEAD = "#d55e00", "#0072b2", "#c1121f"
OVERLAY = '<g id="overlay"></g>'
NODE = re.compile(r'<use href="[^"]*" x="([\d.]+)" y="([\d.]+)" data-vertex="(\d+)"')
Path = Sequence[int]
Point = tuple[float, float]
BEND = 0.25


def figures() -> Iterator[tuple[str, str]]:
    """Name and SVG of every figure of the glossary."""
    for name, q, rack in (("quadrics", 3, "quadrics"), ("fan", 5, "fan1")):
        yield name, polarfab.draw(polarfab.topology("polarfly", q=q), racks=[rack])
    star = polarfab.topology("polarstar", q=3, supernode="inductive-quad", degree=3)
    yield "supernode", polarfab.draw(star, racks=["supernode0", "supernode1"])
    fabric = polarfab.Fabric.from_spec(SMALL).compile()
    plain = polarfab.draw(fabric)
    explained = fabric.explain("0", "2")
    paths = [(alternate, OTHER, "6 4") for alternate in explained.alternates]
    yield "alternates", overlaid(plain, [*paths, (explained.minimal, MINIMAL, "")])
    down = fabric.explain("7", "12", ["7-12"])
    bounced = min((failing.path for failing in down.failing), key=len)
    yield "bounce", overlaid(plain, [(down.minimal, DEAD, "2 5"), (bounced, OTHER, "")])


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
    node_paths = [path.nodes for path in polarfab.host_paths(carried, 0, 2, 4).paths]
    dashes = ["", "6 4", "6 4", "2 4"]
    colours = [MINIMAL, OTHER, OTHER, DEAD]
    yield (
        "path-set.svg",
        overlaid(polarfab.draw(carried), list(zip(node_paths, colours, dashes, strict=True))),
    )


def overlaid(picture: str, paths: Sequence[tuple[Path, str, str]]) -> str:
    """The picture with paths on it, each with its colour and its dashes."""
    at = {int(vertex): (float(x), float(y)) for x, y, vertex in NODE.findall(picture)}
    lines = [
        f'<path d="{"".join(bent(at[u], at[v]) for u, v in pairwise(path))}" fill="none"'
        f' stroke="{colour}" stroke-width="3.5" stroke-opacity=".85" stroke-dasharray="{dashes}"/>'
        for path, colour, dashes in paths
    ]
    return picture.replace(OVERLAY, "".join(lines))


def bent(start: Point, end: Point) -> str:
    """A curve that keeps clear of vertices on the straight line between its ends."""
    (x, y), (u, v) = start, end
    return f"M{x} {y}Q{(x + u) / 2 + (y - v) * BEND} {(y + v) / 2 + (u - x) * BEND} {u} {v}"


def cassettes(fabric: polarfab.Fabric) -> str:
    """Two fans' cassettes from lanes in front to trunks behind, and the trunk between them."""
    (plan,) = polarfab.cables(fabric).plans
    found = plan.shuffle
    one, other = (plan.names.index(f"fan{n}-P1") for n in (1, 2))
    shared = int(np.flatnonzero((found.ends == [one, other]).all(axis=1))[0])
    drawn = []
    for panel, left in ((one, True), (other, False)):
        front, behind = (150, 290) if left else (570, 430)
        for f, text in enumerate(found.types[int(found.kind[panel])][1]):
            words, top = text.split(), 40 + 50 * f
            drawn.append(label(front, top + 18, f"switch {f + 1}", "end" if left else "start"))
            for k, word in enumerate(words):
                if word[0] == "T":
                    t, place = map(int, word[1:].split("."))
                    mine = (t - 1 == found.sockets[shared]) @ (found.ends[shared] == panel)
                    end = 40 + 50 * (t - 1) + 5 * (place - 1)
                    drawn.append(line((front, top + 5 * k), (behind, end), bool(mine)))
        beside, anchor = (behind + 8, "start") if left else (behind - 8, "end")
        trunks = range(found.sockets[found.ends == panel].max() + 1)
        drawn += [label(beside, 44 + 50 * t, f"T{t + 1}", anchor) for t in trunks]
        drawn.append(label((front + behind) / 2, 20, plan.names[panel], "middle"))
    tops = [40 + 50 * int(socket) for socket in found.sockets[shared]]
    for place in range(int((found.trunk == shared).sum())):
        here, there = ((x, y + 5 * place) for x, y in zip((310, 410), tops, strict=True))
        drawn.append(line(here, there, True))
    body = "\n".join(drawn)
    frame = '<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 720 400" font-size="12"'
    ground = '<rect width="720" height="400" fill="#fff"/>'
    return f'{frame} font-family="sans-serif">\n{ground}\n{body}\n</svg>\n'


def line(start: Point, end: Point, chosen: bool) -> str:
    """A fibre; of the trunk that is shown or of another one."""
    ink = f'stroke="{MINIMAL}" stroke-width="1.5"' if chosen else 'stroke="#bbb"'
    (x, y), (u, v) = start, end
    return f'<line x1="{x:g}" y1="{y:g}" x2="{u:g}" y2="{v:g}" {ink}/>'


def label(x: float, y: float, text: str, anchor: str) -> str:
    """A word at a place."""
    return f'<text x="{x:g}" y="{y:g}" text-anchor="{anchor}">{text}</text>'
