"""Pictures of the manual: `polarfab draw`, for the mathematics with paths laid over it."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from itertools import pairwise
from pathlib import Path as File

import yaml

import polarfab
from compilers.drawing.plots import Curve, Panel, plot
from extensions.clusters.nccl_order import ring_order
from extensions.clusters.trees.allreduce_time import SPEED, AllreduceTime

SMALL = {
    "name": "er3",
    "topology": {"family": "polarfly", "q": 3},
    "routing": {"balance": "compact-valiant", "protect": "link"},
}
CABLED = File(__file__).parents[1] / "examples" / "q7-copackaged" / "fabric.yaml"
MINIMAL, OTHER, DEAD = "#d55e00", "#0072b2", "#c1121f"
OVERLAY = '<g id="overlay"></g>'
NODE = re.compile(r'<use href="[^"]*" x="([\d.]+)" y="([\d.]+)" data-vertex="(\d+)"')
Path = Sequence[int]
Point = tuple[float, float]
BEND = 0.25


def figures() -> Iterator[tuple[str, str]]:
    """Name and SVG of every figure."""
    for name, q, rack in (("quadrics", 3, "quadrics"), ("fan", 5, "fan1")):
        yield name, polarfab.draw(polarfab.topology("polarfly", q=q), racks=[rack])
    star = polarfab.topology("polarstar", q=3, supernode="inductive-quad", degree=3)
    yield "supernode", polarfab.draw(star, racks=["supernode0", "supernode1"])
    fabric = polarfab.Fabric.from_spec(SMALL).compile()
    plain = fabric.draw()
    way = fabric.explain("0", "2")
    paths = [(alternate, OTHER, "6 4") for alternate in way.alternates]
    yield "alternates", overlaid(plain, [*paths, (way.minimal, MINIMAL, "")])
    down = fabric.explain("7", "12", ["7-12"])
    bounced = min((failing.path for failing in down.failing), key=len)
    yield "bounce", overlaid(plain, [(down.minimal, DEAD, "2 5"), (bounced, OTHER, "")])


def pictures() -> Iterator[tuple[str, str]]:
    """File and SVG of each picture in docs/pictures that the README and pages show.

    `pytest --update-golden tests/manual` writes them.
    """
    small = polarfab.topology("polarfly", q=3)
    order = ring_order(small.graph, range(small.graph.order))
    trees = polarfab.trees(polarfab.Fabric.from_spec({**SMALL, "routing": {}}).compile()).trees
    edges = zip(trees, (MINIMAL, OTHER), strict=True)
    lines = [(edge, colour, "") for tree, colour in edges for edge in tree.edges.tolist()]
    yield "trees.svg", overlaid(polarfab.draw(small), lines)
    yield "allreduce.svg", plot([allreduce(q) for q in (7, 13)], "svg", plain=True).decode()
    yield "ring.svg", overlaid(polarfab.draw(small), [(order, OTHER, "")])
    flown = polarfab.topology("polarfly", q=7)
    yield "polarfly-q7.svg", polarfab.draw(flown, racks=["quadrics", "fan3"])
    inventory = CABLED.with_name("inventory.yaml")
    spec = yaml.safe_load(CABLED.read_text()) | {"inventory": None, "routing": {}}
    before = polarfab.Fabric.from_spec(spec, inventory).compile()
    spec["routing"] = SMALL["routing"]
    after = polarfab.Fabric.from_spec(spec, inventory).compile()
    yield "racks.svg", before.chart("racks")
    yield "load.svg", after.chart("load", pattern="tornado")
    yield "failures.svg", after.chart("failures")
    yield "rounds.svg", after.chart("rounds", before=before)
    addressed = SMALL | {"addressing": {"ipv6": "fd00::/48"}}
    carried = polarfab.Fabric.from_spec(addressed).compile()
    ways = [path.nodes for path in polarfab.host_paths(carried, 0, 2, 4).paths]
    dashes = ["", "6 4", "6 4", "2 4"]
    colours = [MINIMAL, OTHER, OTHER, DEAD]
    yield "path-set.svg", overlaid(carried.draw(), list(zip(ways, colours, dashes, strict=True)))


def allreduce(q: int) -> Panel:
    """How many links' worth an allreduce gets over trees of PolarFly, beside a ring."""
    fabric = polarfab.Fabric.from_spec({"name": "er", "topology": {"family": "polarfly", "q": q}})
    compiled, sizes = fabric.compile(), [1 << power for power in range(12, 33)]
    known = {
        kind: [AllreduceTime.of(polarfab.trees(compiled, kind), size) for size in sizes]
        for kind in ("disjoint", "low-depth")
    }
    times = known["disjoint"]
    seconds = {f"{kind} trees": [each.trees for each in found] for kind, found in known.items()}
    seconds["ring"] = [each.ring for each in times]
    seconds["ForestColl, at most"] = [each.forestcoll for each in times]
    powers = tuple(float(size.bit_length() - 1) for size in sizes)
    rates = {
        name: tuple(8e-9 * size / (took * SPEED) for size, took in zip(sizes, of, strict=True))
        for name, of in seconds.items()
    }
    curves = tuple(Curve(name, powers, rate) for name, rate in rates.items())
    axes = "vector, 2 to the power of … bytes", "vector over time, in links"
    return Panel(f"Allreduce on PolarFly q = {q}", *axes, curves)


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
