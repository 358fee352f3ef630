"""Electrical groups: the links inside a group, and the bundles between natural modules.

Projective Networks paper, §V-C: nodes stand in fully electrical groups of about 500 hosts, and
cables between groups are optical. A natural module is a cluster or group of the family; small
modules are merged into one electrical group.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from math import comb, isqrt

from compilers.topology.labelled_graph import Design, Parameters
from compilers.topology.polarity import order
from compilers.topology.supernodes import shape


@dataclass(frozen=True, slots=True)
class Modules:
    """`count` modules of `size` nodes with `inside` links each, and one more of `rest` nodes.

    between: links between any two modules, None if pairs differ. loose: links within the last
    module and others that never leave a module. bundles: pairs of modules that are cabled.
    """

    size: int
    count: int
    inside: int
    between: int | None = None
    rest: int = 0
    loose: int = 0
    bundles: int | None = None
    splits: bool = False

    def nodes(self, merged: int) -> int:
        """The nodes of a group of `merged` modules."""
        return self.size * merged

    def electrical(self, merged: int) -> int:
        """The links inside groups of `merged` modules, and in a smaller last group."""
        groups, left = divmod(self.count, merged)
        pairs = groups * comb(merged, 2) + comb(left, 2)
        return self.count * self.inside + self.loose + pairs * (self.between or 0)

    def groups(self, merged: int) -> int:
        """The number of these groups."""
        return -(-self.count // merged) + (self.rest > 0)


@dataclass(frozen=True, slots=True)
class Packing:
    """Groups of at most `size` nodes, the links inside them, and bundles between modules."""

    size: int
    groups: int
    electrical: int
    bundles: int | None


def packing(design: Design, parameters: Parameters, hosts: float, wanted: float) -> Packing | None:
    """The groups nearest to `wanted` hosts, with `hosts` a node; None if all cables are optical."""
    candidates = list(MODULES.get(design.family, _none)(parameters))
    if not candidates:
        return None
    natural = candidates[0]
    options = [option for found in candidates for option in _options(found, hosts, wanted)]
    best = min(options, key=lambda option: abs(option.size * hosts - wanted))
    return Packing(best.size, best.groups, best.electrical, natural.bundles)


def _options(modules: Modules, hosts: float, wanted: float) -> Iterator[Packing]:
    most = 1 if modules.between is None else max(1, int(wanted / (modules.size * hosts)) + 1)
    for merged in range(1, min(most, modules.count) + 1):
        size, groups = modules.nodes(merged), modules.groups(merged)
        yield Packing(size, groups, modules.electrical(merged), modules.bundles)
    if modules.splits:
        for parts in range(2, int(modules.size * hosts / wanted) + 2):
            short, longer = divmod(modules.size, parts)
            inside = longer * comb(short + 1, 2) + (parts - longer) * comb(short, 2)
            size = short + (longer > 0)
            yield Packing(size, modules.count * parts, modules.count * inside, modules.bundles)


def _polarity(q: int, scale: int, inside: int, loop: int) -> Modules:
    """The fans of ER_q, with `scale` nodes for each vertex and `scale` links for each edge.

    inside: links among the nodes of a vertex; loop: further links at a quadric. The clusters are
    those of PolarFly paper §V; for even q the nucleus is among the quadrics.
    """
    even = q % 2 == 0
    size = q + even
    fan = q + q // 2 if even else 3 * (q - 1) // 2
    centre = q + 1 if even else 0
    count = q - even
    rest = q + 1 + even
    loose = scale * centre + rest * inside + (q + 1) * loop
    between = (q if even else q - 2) * scale
    within = scale * fan + size * inside
    return Modules(
        scale * size, count, within, between, scale * rest, loose, bundles=comb(count + 1, 2)
    )


def _polarfly(p: Parameters) -> Iterator[Modules]:
    yield _polarity(int(p["q"]), 1, 0, 0)


def _pn(p: Parameters) -> Iterator[Modules]:
    """Subplanes for q = r²; else a cluster of ER_q twice, its points and its lines."""
    q = int(p["q"])
    r = isqrt(q)
    if r * r == q:
        yield Modules(2 * order(r), q - r + 1, order(r) * (r + 1), bundles=comb(q - r + 1, 2))
    yield _polarity(q, 2, 0, 1)


def _polarstar(p: Parameters) -> Iterator[Modules]:
    """Supernodes, or the supernodes of each cluster of ER_q."""
    q, kind = int(p["q"]), str(p["supernode"])
    found = shape(kind, int(p["degree"]))
    if found is not None:
        edges = q * (q + 1) ** 2 // 2
        loops = (q + 1) * found.loops
        yield Modules(found.order, order(q), found.links, loose=loops, bundles=edges)
        yield _polarity(q, found.order, found.links, found.loops)


def _slimfly(p: Parameters) -> Iterator[Modules]:
    """Two sides (0, x, ·) and (1, x', ·) in one module, or each in its own."""
    q = int(p["q"])
    delta = (q + 1) % 4 - 1
    local = q * (q - delta) // 4
    yield Modules(2 * q, q, 2 * local + q, 2 * q, bundles=comb(q, 2))
    yield Modules(q, 2 * q, local)


def _dragonfly(p: Parameters) -> Iterator[Modules]:
    a, h, groups = int(p["a"]), int(p["h"]), int(p["groups"])
    between = a * h // (groups - 1)
    yield Modules(a, groups, comb(a, 2), between, bundles=comb(groups, 2))


def _megafly(p: Parameters) -> Iterator[Modules]:
    leaves, h, groups = int(p["a"]) // 2, int(p["h"]), int(p["groups"])
    between = leaves * h // (groups - 1)
    yield Modules(2 * leaves, groups, leaves * leaves, between, bundles=comb(groups, 2))


def _hyperx(p: Parameters) -> Iterator[Modules]:
    """Rows; in three dimensions planes too."""
    sides = [int(side) for side in str(p["sides"]).split("x")]
    row = sides[-1]
    if len(sides) == 3:
        plane = sides[1] * row
        inside = plane * (sides[1] + row - 2) // 2
        yield Modules(plane, sides[0], inside, plane, bundles=comb(sides[0], 2))
        yield Modules(row, sides[0] * sides[1], comb(row, 2))
    elif len(sides) == 2:
        yield Modules(row, sides[0], comb(row, 2), row, bundles=comb(sides[0], 2), splits=True)
    else:
        yield Modules(row, 1, comb(row, 2), splits=True)


def _bundlefly(p: Parameters) -> Iterator[Modules]:
    q, degree = int(p["q"]), int(p["degree"])
    k = 2 * degree + 1
    edges = q * q * (3 * q - ((q + 1) % 4 - 1)) // 2
    yield Modules(k, 2 * q * q, k * degree // 2, bundles=edges)


def _none(_: Parameters) -> Iterator[Modules]:
    return iter(())


MODULES: dict[str, Callable[[Parameters], Iterator[Modules]]] = {
    "polarfly": _polarfly,
    "pn": _pn,
    "polarstar": _polarstar,
    "slimfly": _slimfly,
    "dragonfly": _dragonfly,
    "megafly": _megafly,
    "hyperx": _hyperx,
    "bundlefly": _bundlefly,
}
