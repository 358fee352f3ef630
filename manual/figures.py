"""Figures of the page about the mathematics: `polarfab draw`, with paths laid over it."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

import polarfab

SMALL = {
    "name": "er3",
    "topology": {"family": "polarfly", "q": 3},
    "routing": {"balance": "compact-valiant", "protect": "link"},
}
STAR = {"family": "polarstar", "q": 3, "supernode": "inductive-quad", "degree": 3}
MINIMAL, OTHER, DEAD = "#d55e00", "#0072b2", "#c1121f"
OVERLAY = '<g id="overlay"></g>'
NODE = re.compile(r'<use href="[^"]*" x="([\d.]+)" y="([\d.]+)" data-vertex="(\d+)"')
Path = Sequence[int]


def figures() -> Iterator[tuple[str, str]]:
    """Name and SVG of every figure."""
    for name, rack in (("quadrics", "quadrics"), ("fan", "fan1")):
        yield name, polarfab.draw(polarfab.topology("polarfly", q=3), racks=[rack])
    yield "supernode", polarfab.draw(polarfab.topology(**STAR), racks=["supernode0", "supernode1"])
    fabric = polarfab.Fabric.from_spec(SMALL).compile()
    plain = fabric.draw()
    way = fabric.explain("0", "2")
    paths = [(alternate, OTHER, "6 4") for alternate in way.alternates]
    yield "alternates", overlaid(plain, [*paths, (way.minimal, MINIMAL, "")])
    down = fabric.explain("7", "12", ["7-12"])
    bounced = min((failing.path for failing in down.failing), key=len)
    yield "bounce", overlaid(plain, [(down.minimal, DEAD, "2 5"), (bounced, OTHER, "")])


def overlaid(picture: str, paths: Sequence[tuple[Path, str, str]]) -> str:
    """The picture with paths on it, each with its colour and its dashes."""
    at = {int(vertex): (x, y) for x, y, vertex in NODE.findall(picture)}
    lines = [
        f'<polyline points="{" ".join(",".join(at[v]) for v in path)}" fill="none" stroke="{colour}"'
        f' stroke-width="4" stroke-opacity=".85" stroke-linejoin="round" stroke-dasharray="{dashes}"/>'
        for path, colour, dashes in paths
    ]
    return picture.replace(OVERLAY, "".join(lines))
