"""HyperX, the Hamming graph K_a □ K_b □ … (Ahn et al., SC 2009); also the flattened butterfly.

Vertices are the tuples (x_0, x_1, …) with x_i < side i, in lexicographic order. Two vertices are
joined if they differ in one dimension only.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from math import comb, prod

import numpy as np

from compilers.topology.adjacency import Graph
from compilers.topology.family import Design, Family, Modules
from compilers.topology.labelled_graph import Parameters, Topology
from extensions.baselines.group_graph import complete
from inventory.problems import Problem

DIMENSIONS = (1, 2, 3)
"""The dimensions of the designs that are offered."""


def sides(parameters: Parameters) -> tuple[int, ...]:
    """The sides of a HyperX.

    >>> sides({"sides": "9x9x8"})
    (9, 9, 8)
    """
    return tuple(int(side) for side in str(parameters["sides"]).split("x"))


class HyperX(Family):
    """The family of Hamming graphs of any dimension."""

    name = "hyperx"
    place = 9  # in lists of families
    compared = True
    parameters = ("sides",)

    def check(self, parameters: Parameters) -> list[Problem]:
        """A problem unless `sides` are integers of at least 2 with x between them."""
        given = str(parameters.get("sides", "none"))
        if re.fullmatch(r"[0-9]+(x[0-9]+)*", given) and min(sides({"sides": given})) >= 2:
            return []
        required = "integers of at least 2 with x between them"
        return [Problem(key="sides", required=required, given=given, todo="for example 9x9x8")]

    def order(self, parameters: Parameters) -> int:
        """The product of the sides."""
        return prod(sides(parameters))

    def degree(self, parameters: Parameters) -> int:
        """The sum of side - 1 over all sides."""
        return sum(side - 1 for side in sides(parameters))

    def build(self, parameters: Parameters) -> Topology:
        """The Hamming graph; its diameter is its dimension."""
        lengths = sides(parameters)
        count = prod(lengths)
        vertex = np.arange(count).reshape(lengths)
        # In each dimension the vertices of a row, which differ in it only, are a complete graph.
        edges = [
            np.moveaxis(vertex, dimension, -1)[..., complete(side)].reshape(-1, 2)
            for dimension, side in enumerate(lengths)
        ]
        graph = Graph.from_edges(count, np.concatenate(edges))
        coordinates = np.stack(np.unravel_index(vertex.ravel(), lengths), axis=1).astype(np.int32)
        return self.direct({"sides": "x".join(map(str, lengths))}, graph, coordinates, len(lengths))

    def designs(self, radix: int) -> Iterator[Design]:
        """Yield the largest design of each of `DIMENSIONS`: its sides are as equal as possible."""
        for dimension in DIMENSIONS:
            if radix < dimension:
                return
            # A side of n vertices takes n - 1 ports of the radix.
            ports, remainder = divmod(radix, dimension)
            lengths = [ports + 2] * remainder + [ports + 1] * (dimension - remainder)
            parameters = {"sides": "x".join(map(str, lengths))}
            yield self.design(radix, prod(lengths), diameter=dimension, parameters=parameters)

    def modules(self, parameters: Parameters) -> Iterator[Modules]:
        """Yield modules of one row each; with three dimensions also of one plane each."""
        lengths = sides(parameters)
        row = lengths[-1]
        if len(lengths) == 3:
            plane = lengths[1] * row
            inside = plane * (lengths[1] + row - 2) // 2
            bundles = comb(lengths[0], 2)
            yield Modules(
                size=plane, count=lengths[0], inside=inside, between=plane, bundles=bundles
            )
            yield Modules(size=row, count=lengths[0] * lengths[1], inside=comb(row, 2))
        elif len(lengths) == 2:
            yield Modules(
                size=row,
                count=lengths[0],
                inside=comb(row, 2),
                between=row,
                bundles=comb(lengths[0], 2),
                splits=True,
            )
        else:
            yield Modules(size=row, count=1, inside=comb(row, 2), splits=True)

    def mean_distance(self, parameters: Parameters) -> float | None:
        """The mean distance of two different vertices: in how many dimensions they differ.

        Of all pairs, those of a vertex with itself included, a fraction of 1 - 1/side_i differ in
        dimension i.
        """
        lengths = sides(parameters)
        count = prod(lengths)
        return sum(1 - 1 / side for side in lengths) * count / (count - 1)

    def utilisation(self, parameters: Parameters) -> float | None:
        """The mean load of a link over the largest.

        A link in dimension i carries N/side_i pairs in each direction, so the links of the shortest
        side carry the most.
        """
        lengths = sides(parameters)
        radix = sum(lengths) - len(lengths)
        return sum((side - 1) / side for side in lengths) * min(lengths) / radix
