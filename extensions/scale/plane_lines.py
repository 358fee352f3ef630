"""Minimal delivery of every pair, proved of the lines that a large PolarFly's rows come from.

The rows of `compilers.tables.line_rows` are a function of the lines, so none is computed. If

1. the line of a switch has its neighbours by the cables, and the switch itself if that has one link
   less, and no more; the k-th of its classes leads to the k-th of these neighbours, as does the
   k-th of the classes for a neighbour itself,
2. the coordinates of the switches are the points of the plane over F_q, normalised, and those of
   the switches on a line are orthogonal to the switch whose line it is,
3. the tables of F_q by which that is computed are those of a field,

then all pairs have minimal paths. A line has q + 1 switches by (1), so all that are orthogonal to
its own; and two equations that are independent, in three unknowns, have one solution up to a
factor. So neighbours are served directly, and the line of any other switch d meets that of s in one
switch w. That is a neighbour of both; no other has d on its line; so the row of s has one class for
d, that of w, which serves d directly.

That rows are decoded so is looked at in some, as for `extensions.scale.row_sample`.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from compilers.proof.soundness.port_use import PortUse
from compilers.tables.build import Build
from compilers.tables.line_rows import LineEgress, LineProgram
from compilers.topology.field import Field, field, prime_power

POINTS_AT_ONCE = 1 << 10
Lines = NDArray[np.int32]


def proved_lines(build: Build) -> tuple[int, ...] | None:
    """The hop counts of a whole PolarFly of which the lines prove that all pairs are minimal.

    None where rows are stored, or a condition does not hold, which proves nothing.

    Args:
        build: sound cables and prefixes (`compilers.proof.soundness.build_soundness.walkable`).
    """
    routes, far = build.tables.routes, build.wiring.far
    if not isinstance(routes.egress, LineEgress) or not build.topology.endpoints.all():
        return None
    program: LineProgram = routes.egress.packed
    order, links = program.around.shape
    if not routes.exact or len(far) != order or order != links * (links - 1) + 1:
        return None
    if not _cabled(build, program) or not _orthogonal(build, program.around):
        return None
    ones = int(np.count_nonzero(far >= 0))
    return 0, ones, order * (order - 1) - ones


def _cabled(build: Build, program: LineProgram) -> bool:
    """Condition 1."""
    use, far, classes = PortUse.of(build.wiring), build.wiring.far, build.tables.classes.port
    links, direct = program.around.shape[1], int(program.direct[0])
    if classes.shape[1] < direct + links or direct not in (0, links):
        return False
    for some in use.blocks():
        if (np.diff(program.around[some], axis=1) <= 0).any():
            return False
        beside = _beside(program.around[some], some.start)
        if not np.array_equal((far[some] >= 0).sum(axis=1), (beside >= 0).sum(axis=1)):
            return False
        for first in {0, direct}:
            link = use.part(some).links(classes[some, first : first + links])
            behind = np.take_along_axis(far[some], np.maximum(link, 0), axis=1)
            if (np.where(link < 0, -1, behind) != beside).any():
                return False
    return True


def _beside(around: Lines, first: int) -> Lines:
    """int32[n, K]: the lines of switches from `first` on, without themselves; -1 at the end."""
    is_itself = around == np.arange(first, first + len(around))[:, None]
    quadric, beside = is_itself.any(axis=1), around.copy()
    beside[quadric, :-1] = around[quadric][~is_itself[quadric]].reshape(-1, around.shape[1] - 1)
    beside[quadric, -1] = -1
    return beside


def _orthogonal(build: Build, around: Lines) -> bool:
    """Conditions 2 and 3."""
    q, point = around.shape[1] - 1, build.topology.coordinates
    if not prime_power(q) or point.shape != (len(around), 3) or point.min() < 0 or point.max() >= q:
        return False
    numbers = point @ (q * q, q, 1)
    first = np.take_along_axis(point, (point != 0).argmax(axis=1)[:, None], axis=1)
    if (first != 1).any() or np.bincount(numbers).max() > 1 or not _is_field(field(q)):
        return False
    add, mul = field(q).add, field(q).mul
    for begin in range(0, len(point), POINTS_AT_ONCE):
        some = slice(begin, begin + POINTS_AT_ONCE)
        x, y, z = (
            mul[coordinate[some, None], coordinate[around[some]]]
            for coordinate in np.ascontiguousarray(point.T)
        )
        if add[add[x, y], z].any():
            return False
    return True


def _is_field(f: Field) -> bool:
    """Condition 3: the axioms of a field, for all elements."""
    number, add, mul = np.arange(f.q), f.add, f.mul
    neutral = (add[0] == number).all() and (mul[1] == number).all() and not mul[0].any()
    inverse = (add == 0).any(axis=1).all() and (mul[1:] == 1).any(axis=1).all()
    if not neutral or not inverse or (add != add.T).any() or (mul != mul.T).any():
        return False
    return all(
        np.array_equal(add[add[a]], add[a][add])
        and np.array_equal(mul[mul[a]], mul[a][mul])
        and np.array_equal(mul[a][add], add[mul[a][:, None], mul[a]])
        for a in range(f.q)
    )
