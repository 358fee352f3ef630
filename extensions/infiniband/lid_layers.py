"""LID layers: L in-trees towards every switch, one for each LID of its hosts.

A LID is an InfiniBand address, and a port can have several. The target opensm calls `lid_layers`
where hosts have several LIDs: a host that sends to another LID of the same port then uses another
path. The result is the tables for each LID, and a virtual lane for each pair of switches, so that
no packets wait for each other in a cycle. `plane_layers` finds the layers of PolarFly, and
`star_layers` those of PolarStar.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import lru_cache
from typing import cast

import numpy as np
from numpy.typing import NDArray

from compilers.tables.build import Build
from compilers.tables.fib import Fib
from compilers.tables.intermediate_form import Egress, Routes, Tables, empty_egress, local
from compilers.topology.families import family_of
from extensions.infiniband.plane_layers import plane_layers
from extensions.infiniband.star_layers import star_layers
from extensions.lossless.layers import Layers

Numbers = NDArray[np.int64]


@dataclass(frozen=True, slots=True, eq=False)
class LidLayers:
    """The tables of every LID of a port, and the lane of each path."""

    tables: tuple[Tables, ...]
    """The tables of each layer, one layer a LID."""
    lane: NDArray[np.uint8]
    """uint8[S, S], the lane of the paths from each switch to each other one."""
    count: int
    """How many lanes there are."""

    @property
    def lanes(self) -> Layers:
        """The lanes as layers free of deadlock, in the form that those of a build have."""
        return Layers(self.lane, self.count)


@lru_cache(maxsize=1)
def lid_layers(build: Build, layers: int, lanes: int) -> LidLayers:
    """The layers of a whole PolarFly or PolarStar, every link and switch there.

    Args:
        build: with minimal routes.
        layers: L, 2 to q; of PolarStar 2.
        lanes: the most that ports can run, an even number.
    """
    switch = np.arange(build.tables.switches)
    fib = Fib.of(build.tables, build.wiring.far_by_port())
    minimal = fib.next_switch(switch).astype(np.int64)
    graph = build.topology.graph
    if family_of(build.topology.family).by_supernodes:
        routes = star_layers(graph, minimal, lanes)
    else:
        routes = plane_layers(graph, minimal, layers, lanes)
    class_to = _class_to_neighbour(fib)
    tables = tuple(_with_routes(build.tables, class_to, layer) for layer in routes.next_switch)
    routes.lane.flags.writeable = False
    return LidLayers(tables, routes.lane, int(routes.lane.max()) + 1)


def _class_to_neighbour(fib: Fib) -> Egress:
    """The class of each switch that leads to each of its neighbours, [S, S]; local to itself."""
    # int[S, C], the neighbour behind each class: `step` has two columns before the classes, and one
    # after them.
    neighbour = fib.step[:, 2:-1]
    switches, classes = neighbour.shape
    class_to = empty_egress(switches, switches, classes)
    np.fill_diagonal(class_to, local(class_to))
    for number, far in enumerate(neighbour.T):
        switch = np.flatnonzero(far >= 0)
        class_to[switch, far[switch]] = number
    return class_to


def _with_routes(tables: Tables, class_to: Egress, next_switch: Numbers) -> Tables:
    """Tables with other routes.

    Args:
        tables: the tables of S switches.
        class_to: [S, S], the class of each switch that leads to each of its neighbours.
        next_switch: int64[S, S], the next switch from each switch to each destination.
    """
    egress = cast(Egress, np.take_along_axis(class_to, next_switch, axis=1))
    prefixes = np.arange(len(next_switch), dtype=np.int32)
    return replace(tables, routes=Routes(prefixes[None], egress, np.full_like(prefixes, -1)))
