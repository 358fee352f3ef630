"""The minimal paths of a family by algebra, with the reason for each vertex.

`family_paths` returns the paths of a member of PolarFly, PN, the orthogonal fat tree or PolarStar.
`polarfab path` and the library call it. The rules themselves are in
`compilers.forwarding.algebraic_paths`.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from compilers.forwarding import algebraic_paths as rules
from compilers.forwarding.algebraic_paths import NO_VERTEX, Plane, Star, Vertices, plane, star
from compilers.forwarding.machine_code import for_packets
from compilers.topology.families import check_topology, family_named, parameters
from compilers.topology.polarity import lines, points
from inventory.problems import InputError, Problem

PACKETS_OF_A_PAIR = 20
"""How long plain Python takes for the path of a pair: as long as for so many packets."""


@dataclass(frozen=True, slots=True)
class PathStep:
    """A vertex of a path."""

    vertex: int
    """The number of the vertex."""
    coordinates: tuple[int, ...]
    """The coordinates that the topology of the family gives it."""
    reason: str
    """Why the path takes it: an equation of vectors, or a rule in words."""


class FamilyPaths(ABC):
    """The minimal paths of a member of a family, whose parameters are fixed."""

    tables: Plane | Star
    """The tables that the rules look things up in."""
    path_rule: Callable[..., None]
    """The rule for one pair."""
    paths_rule: Callable[..., None]
    """The rule for arrays of pairs."""
    longest: int
    """The most links of a minimal path."""
    order: int
    """The number of vertices."""

    def path(self, source: int, destination: int) -> list[int]:
        """A minimal path, from the source to the destination."""
        row = np.empty(self.longest + 1, np.int32)
        self.path_rule(self.tables, source, destination, row)
        return [vertex for vertex in row.tolist() if vertex != NO_VERTEX]

    def paths(self, sources: Vertices, destinations: Vertices) -> Vertices:
        """int32[P, longest + 1]: a minimal path of each pair, -1 behind its destination.

        Args:
            sources: int32[P], the first vertices.
            destinations: int32[P], the last vertices.
        """
        table = np.empty((len(sources), self.longest + 1), np.int32)
        rule = for_packets(PACKETS_OF_A_PAIR * len(sources), self.paths_rule)
        rule(self.tables, sources, destinations, table)
        return table

    def end_problems(self, vertex: int, key: str) -> list[Problem]:
        """The problem of a vertex at which no path may begin or end: none or one.

        Args:
            vertex: the vertex.
            key: the name of the argument that named it, for the message.
        """
        if 0 <= vertex < self.order:
            return []
        return [Problem(f"a vertex, from 0 to {self.order - 1:,}", str(vertex), key=key)]

    def may_end(self, vertices: NDArray[np.integer]) -> NDArray[np.bool_]:
        """bool[P]: whether a path may begin and end at each of some vertices, int[P]."""
        return np.asarray((vertices >= 0) & (vertices < self.order))

    @abstractmethod
    def every_path(self, source: int, destination: int) -> list[list[int]]:
        """All minimal paths of a pair that the algebra gives."""

    @abstractmethod
    def steps(self, path: Sequence[int]) -> Iterator[PathStep]:
        """The vertices of a minimal path, each with the reason why the path takes it."""


class _PolarFlyPaths(FamilyPaths):
    """PolarFly: one minimal path for each pair."""

    path_rule, paths_rule = staticmethod(rules.plane_path), staticmethod(rules.plane_paths)
    longest = 2

    def __init__(self, parameters: Mapping[str, Any]) -> None:
        self.tables: Plane = plane(int(parameters["q"]))
        self.order = self.tables.size

    def every_path(self, source: int, destination: int) -> list[list[int]]:
        """See `FamilyPaths.every_path`."""
        return [self.path(source, destination)]

    def steps(self, path: Sequence[int]) -> Iterator[PathStep]:
        """See `FamilyPaths.steps`."""
        yield PathStep(path[0], _coordinates(self.tables, path[0]), "source")
        if len(path) == 3:
            reason = _cross_product_text(self.tables, path[0], path[2])
            yield PathStep(path[1], _coordinates(self.tables, path[1]), reason)
        if len(path) > 1:
            reason = _dot_product_text(self.tables, path[-2], path[-1])
            yield PathStep(path[-1], _coordinates(self.tables, path[-1]), reason)


class _SidedPaths(FamilyPaths):
    """A family whose vertices are copies of the N points of a plane, one copy to a side.

    Vertex side·N + point is the copy of a point on that side.
    """

    sides: int
    """How many times the family has the points of the plane."""

    def __init__(self, parameters: Mapping[str, Any]) -> None:
        self.tables: Plane = plane(int(parameters["q"]))
        self.order = self.sides * self.tables.size

    def step(self, vertex: int, reason: str) -> PathStep:
        """A step to a vertex, whose coordinates are its side and its vector."""
        side, point = divmod(vertex, self.tables.size)
        return PathStep(vertex, (side, *_coordinates(self.tables, point)), reason)

    def neighbours(self, point: int) -> Vertices:
        """int32[q + 1]: the points orthogonal to a point, ascending."""
        (line,) = lines(self.tables.q, points(self.tables.q)[point : point + 1])
        return np.asarray(line)


class _PnPaths(_SidedPaths):
    """PN: points and the lines that pass through them."""

    path_rule, paths_rule = staticmethod(rules.incidence_path), staticmethod(rules.incidence_paths)
    longest = 3
    sides = 2

    def every_path(self, source: int, destination: int) -> list[list[int]]:
        """See `FamilyPaths.every_path`: one over each neighbour, where a path has three links."""
        path = self.path(source, destination)
        if len(path) < 4:
            return [path]
        size = self.tables.size
        side, start = divmod(source, size)
        paths = []
        for point in self.neighbours(start).tolist():
            middle = int(rules.meeting(self.tables, point, destination % size))
            paths.append([source, (1 - side) * size + point, side * size + middle, destination])
        return paths

    def steps(self, path: Sequence[int]) -> Iterator[PathStep]:
        """See `FamilyPaths.steps`."""
        vectors = [vertex % self.tables.size for vertex in path]
        yield self.step(path[0], "source")
        if len(path) == 4:
            yield self.step(path[1], _dot_product_text(self.tables, vectors[0], vectors[1]))
        if len(path) > 2:
            reason = _cross_product_text(self.tables, vectors[-3], vectors[-1])
            yield self.step(path[-2], reason)
        if len(path) > 1:
            yield self.step(path[-1], _dot_product_text(self.tables, vectors[-2], vectors[-1]))


class _OftPaths(_SidedPaths):
    """The orthogonal fat tree: two columns of leaves, and the spines between them."""

    path_rule, paths_rule = staticmethod(rules.tree_path), staticmethod(rules.tree_paths)
    longest = 2
    sides = 3

    def end_problems(self, vertex: int, key: str) -> list[Problem]:
        """See `FamilyPaths.end_problems`: only leaves may be ends, as spines have no hosts."""
        size = self.tables.size
        if 0 <= vertex < size or 2 * size <= vertex < self.order:
            return []
        required = f"a leaf, from 0 to {size - 1:,} or from {2 * size:,} to {self.order - 1:,}"
        return [Problem(required, str(vertex), key=key)]

    def may_end(self, vertices: NDArray[np.integer]) -> NDArray[np.bool_]:
        """See `FamilyPaths.may_end`: at leaves only."""
        return np.asarray(super().may_end(vertices) & (vertices // self.tables.size != 1))

    def every_path(self, source: int, destination: int) -> list[list[int]]:
        """See `FamilyPaths.every_path`: one over each spine, of two leaves of one point."""
        point = source % self.tables.size
        if source == destination or point != destination % self.tables.size:
            return [self.path(source, destination)]
        spines = self.tables.size + self.neighbours(point)
        return [[source, spine, destination] for spine in spines.tolist()]

    def steps(self, path: Sequence[int]) -> Iterator[PathStep]:
        """See `FamilyPaths.steps`."""
        vectors = [vertex % self.tables.size for vertex in path]
        yield self.step(path[0], "source")
        if len(path) == 1:
            return
        if vectors[0] == vectors[2]:
            yield self.step(path[1], _dot_product_text(self.tables, vectors[0], vectors[1]))
        else:
            reason = _cross_product_text(self.tables, vectors[0], vectors[2])
            yield self.step(path[1], reason)
        yield self.step(path[2], _dot_product_text(self.tables, vectors[1], vectors[2]))


class _PolarStarPaths(FamilyPaths):
    """PolarStar: supernodes at the vertices of ER_q."""

    path_rule, paths_rule = staticmethod(rules.star_path), staticmethod(rules.star_paths)
    longest = 3

    def __init__(self, parameters: Mapping[str, Any]) -> None:
        kind, degree = str(parameters["supernode"]), int(parameters["degree"])
        self.tables: Star = star(int(parameters["q"]), kind, degree)
        self.order = self.tables.plane.size * self.tables.members

    def every_path(self, source: int, destination: int) -> list[list[int]]:
        """See `FamilyPaths.every_path`: the path that the tables of a build have."""
        return [self.path(source, destination)]

    def steps(self, path: Sequence[int]) -> Iterator[PathStep]:
        """See `FamilyPaths.steps`."""
        reason = "source"
        for place, vertex in enumerate(path):
            x, member = divmod(vertex, self.tables.members)
            yield PathStep(vertex, (*_coordinates(self.tables.plane, x), member), reason)
            if place + 1 < len(path):
                reason = self._reason(vertex, path[place + 1], path[-1])

    def _reason(self, vertex: int, next_vertex: int, destination: int) -> str:
        """Why a path goes from a vertex to the next one."""
        tables = self.tables
        x, member = divmod(vertex, tables.members)
        z, image = divmod(next_vertex, tables.members)
        y = destination // tables.members
        bijection = "f" if x <= z else "f⁻¹"
        in_every_supernode = tables.is_joined[0]  # without the loops of quadrics
        if x == z and in_every_supernode[member, image]:
            return f"members {member} and {image} are joined in every supernode"
        image_text = f"{bijection}({member}) = {image}"
        if x == z:
            return f"{image_text}, by the loop of a quadric"
        if z == y:
            return f"{_dot_product_text(tables.plane, x, z)}, and {image_text}"
        if x == y:
            return f"a neighbour of the supernode, which has no shorter way, and {image_text}"
        return f"{_cross_product_text(tables.plane, x, y)}, and {image_text}"


PATHS_OF_FAMILY: dict[str, Callable[[Mapping[str, Any]], FamilyPaths]] = {
    "polarfly": _PolarFlyPaths,
    "demi-pn": _PolarFlyPaths,
    "pn": _PnPaths,
    "oft": _OftPaths,
    "polarstar": _PolarStarPaths,
}
"""The paths of each family that has paths by algebra, by the family's name."""


def family_paths(family: str, given: Mapping[str, int | str | None]) -> FamilyPaths:
    """The minimal paths of a member of a family.

    Args:
        family: its name.
        given: its parameters, as a user gives them.

    Raises:
        InputError: the family is unknown or has no paths by algebra, or its parameters are wrong.

    Example:
        >>> paths = family_paths("polarfly", {"q": 31})
        >>> paths.path(17, 400)
        [17, 440, 400]
        >>> [step.reason for step in paths.steps([17, 440, 400])][1]
        '(0, 1, 16) × (1, 11, 27) = (6, 16, 30) = 6 (1, 13, 5)'
    """
    if family_named(family) and family not in PATHS_OF_FAMILY:
        todo = "compile a fabric of it: polarfab explain finds its paths"
        raise InputError.of(f"one of {', '.join(PATHS_OF_FAMILY)}", family, todo, key="family")
    if problems := check_topology(family, given):
        raise InputError(problems)
    return PATHS_OF_FAMILY[family](parameters(family, given))


def _coordinates(tables: Plane, point: int) -> tuple[int, ...]:
    """The coordinates of a point."""
    return int(tables.x[point]), int(tables.y[point]), int(tables.z[point])


def _vector(coordinates: Sequence[int]) -> str:
    """A vector as text, such as `(0, 1, 16)`."""
    return f"({', '.join(map(str, coordinates))})"


def _cross_product_text(tables: Plane, u: int, v: int) -> str:
    """The cross product of two vertices, and the vertex that it is a multiple of."""
    product = tuple(map(int, rules.cross(tables, u, v)))
    normalised = _coordinates(tables, rules.meeting(tables, u, v))
    factor = next(coordinate for coordinate in product if coordinate)
    as_multiple = "" if factor == 1 else f" = {factor} {_vector(normalised)}"
    factors = f"{_vector(_coordinates(tables, u))} × {_vector(_coordinates(tables, v))}"
    return f"{factors} = {_vector(product)}{as_multiple}"


def _dot_product_text(tables: Plane, u: int, v: int) -> str:
    """The equation by which two vertices are joined."""
    return f"{_vector(_coordinates(tables, u))} · {_vector(_coordinates(tables, v))} = 0: joined"
