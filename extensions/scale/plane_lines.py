"""Every pair of a large PolarFly has a minimal path: proved from the lines of its plane.

Its switches are the points of a projective plane. The *line* of a switch has the switches that are
orthogonal to it: its neighbours, and itself if it is a *quadric*. `LineProgram.around` stores the
lines, and the rows of `compilers.tables.line_rows` are a function of them. So no row is computed.
The proof checks three conditions:

1. The line of a switch consists of its neighbours by the cables. If the switch has one link less
   than others, it is a quadric, and on its own line, too. The k-th class of the switch leads to the
   k-th of these neighbours, and so does the k-th of its classes for a neighbour itself.
2. The coordinates of the switches are the points of the plane over F_q, normalised. Those of the
   switches on a line are orthogonal to the switch whose line it is.
3. The tables of F_q by which orthogonality is computed are those of a field.

Then all pairs have minimal paths. A line has q + 1 switches by (1), so it has all that are
orthogonal to its own. Two independent equations in three unknowns have one solution up to a factor.
So neighbours are served directly, and the line of any other switch d meets that of s in one switch
w. This w is a neighbour of both, and no other neighbour of s has d on its line. So the row of s has
one class for d, that of w, and w serves d directly.

`extensions.scale.row_sample` checks by samples that the rows are decoded as is assumed here.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from compilers.proof.soundness.port_use import PortUse
from compilers.tables.build import Build
from compilers.tables.line_rows import LineEgress, LineProgram
from compilers.topology.field import Field, field, prime_power

NO_SWITCH = -1
"""In place of a neighbour: a quadric has one less than other switches."""
POINTS_AT_ONCE = 1 << 10
"""The points whose lines are compared at once."""
Lines = NDArray[np.int32]
"""int32[n, K], the switches on each of n lines."""


def proved_lines(build: Build) -> tuple[int, ...] | None:
    """The hop counts of a whole PolarFly whose lines prove that all pairs are minimal.

    Args:
        build: with sound cables and prefixes (`compilers.proof.soundness.build_soundness`).

    Returns:
        How many pairs of switches have a path of 0, 1 and 2 links. None if rows are stored, or if a
        condition does not hold, which proves nothing.
    """
    routes, far = build.tables.routes, build.wiring.far
    if not isinstance(routes.egress, LineEgress) or not build.topology.endpoints.all():
        return None
    program: LineProgram = routes.egress.packed
    switches, line_length = program.around.shape
    is_plane_size = switches == line_length * (line_length - 1) + 1
    if not routes.exact or len(far) != switches or not is_plane_size:
        return None
    if not _lines_are_cabled(build, program) or not _lines_are_orthogonal(build, program.around):
        return None
    neighbour_pairs = int(np.count_nonzero(far >= 0))
    return 0, neighbour_pairs, switches * (switches - 1) - neighbour_pairs


def _lines_are_cabled(build: Build, program: LineProgram) -> bool:
    """Whether condition 1 holds."""
    use, far, classes = PortUse.of(build.wiring), build.wiring.far, build.tables.classes.port
    # Classes for destinations behind a neighbour begin with 0, those for a neighbour itself with
    # `first_direct`. That is 0, too, if the same classes serve both.
    line_length, first_direct = program.around.shape[1], int(program.direct[0])
    if classes.shape[1] < first_direct + line_length or first_direct not in (0, line_length):
        return False
    for block in use.blocks():
        lines = program.around[block]
        if (np.diff(lines, axis=1) <= 0).any():
            return False
        neighbours = _neighbours_on_lines(lines, block.start)
        if not np.array_equal((far[block] >= 0).sum(axis=1), (neighbours >= 0).sum(axis=1)):
            return False
        for first_class in {0, first_direct}:
            ports = classes[block, first_class : first_class + line_length]
            link = use.part(block).links(ports)
            behind = np.take_along_axis(far[block], np.maximum(link, 0), axis=1)
            if (np.where(link < 0, NO_SWITCH, behind) != neighbours).any():
                return False
    return True


def _neighbours_on_lines(lines: Lines, first_switch: int) -> Lines:
    """The lines of consecutive switches without these switches themselves, int32[n, K].

    Those of quadrics have NO_SWITCH at the end.

    Args:
        lines: int32[n, K], ascending.
        first_switch: the switch whose line is the first one.
    """
    is_itself = lines == np.arange(first_switch, first_switch + len(lines))[:, None]
    is_quadric, neighbours = is_itself.any(axis=1), lines.copy()
    neighbours_of_quadrics = lines[is_quadric][~is_itself[is_quadric]]
    neighbours[is_quadric, :-1] = neighbours_of_quadrics.reshape(-1, lines.shape[1] - 1)
    neighbours[is_quadric, -1] = NO_SWITCH
    return neighbours


def _lines_are_orthogonal(build: Build, lines: Lines) -> bool:
    """Whether conditions 2 and 3 hold."""
    q, points = lines.shape[1] - 1, build.topology.coordinates
    if not prime_power(q) or points.shape != (len(lines), 3):
        return False
    if points.min() < 0 or points.max() >= q:
        return False
    # The points are all different, and the first coordinate other than 0 is 1. As there are q² + q
    # + 1 of them, they are all points of the plane.
    numbers = points @ (q * q, q, 1)
    leading = np.take_along_axis(points, (points != 0).argmax(axis=1)[:, None], axis=1)
    if (leading != 1).any() or np.bincount(numbers).max() > 1 or not _is_field(field(q)):
        return False
    add, mul = field(q).add, field(q).mul
    for start in range(0, len(points), POINTS_AT_ONCE):
        block = slice(start, start + POINTS_AT_ONCE)
        # [n, K] each: the products of the coordinates of a switch and of those on its line.
        x, y, z = (
            mul[coordinate[block, None], coordinate[lines[block]]]
            for coordinate in np.ascontiguousarray(points.T)
        )
        if add[add[x, y], z].any():
            return False
    return True


def _is_field(f: Field) -> bool:
    """Whether condition 3 holds: the axioms of a field, for all elements."""
    elements, add, mul = np.arange(f.q), f.add, f.mul
    has_neutral = (add[0] == elements).all() and (mul[1] == elements).all() and not mul[0].any()
    has_inverses = (add == 0).any(axis=1).all() and (mul[1:] == 1).any(axis=1).all()
    commutes = (add == add.T).all() and (mul == mul.T).all()
    if not has_neutral or not has_inverses or not commutes:
        return False
    return all(
        np.array_equal(add[add[a]], add[a][add])
        and np.array_equal(mul[mul[a]], mul[a][mul])
        and np.array_equal(mul[a][add], add[mul[a][:, None], mul[a]])
        for a in range(f.q)
    )
