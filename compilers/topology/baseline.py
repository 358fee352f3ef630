"""The interface of a baseline, an extension of `Family`, and checks that baselines share."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from compilers.topology.adjacency import Graph
from compilers.topology.labelled_graph import Design, Family, Parameters, Topology
from inventory.problems import Problem


@dataclass(frozen=True, slots=True, kw_only=True)
class BaselineDesign(Design):
    """A design with the parameters that build it.

    endpoints is how many of the nodes carry hosts; host_diameter is the largest distance between
    two of those (Projective Networks paper, §VI), which in the direct families is the diameter.
    """

    parameters: Parameters
    endpoints: int
    host_diameter: int


class Baseline(Family):
    """A family that the papers compare with. `check` also reports parameters that are missing."""

    compared = True

    def direct(
        self,
        parameters: Parameters,
        graph: Graph,
        coordinates: NDArray[np.int32],
        diameter: int,
    ) -> Topology:
        """The topology of a graph of routers that are alike and all carry hosts."""
        return Topology(
            family=self.name,
            parameters=parameters,
            graph=graph,
            kinds=("router",),
            kind=np.zeros(graph.order, np.uint8),
            coordinates=coordinates,
            endpoints=np.ones(graph.order, np.bool_),
            diameter=diameter,
        )

    def regular(
        self, radix: int, nodes: int, diameter: int, parameters: Parameters, **more: Any
    ) -> BaselineDesign:
        """A design whose nodes all have radix links and carry hosts; `more` is of `Design`."""
        return BaselineDesign(
            family=self.name,
            radix=radix,
            nodes=nodes,
            links=nodes * radix // 2,
            diameter=diameter,
            host_diameter=diameter,
            parameters=parameters,
            endpoints=nodes,
            **more,
        )


def integers(
    parameters: Parameters, least: Mapping[str, int], optional: tuple[str, ...] = ()
) -> list[Problem]:
    """Problems of the keys of `least`: missing, not an integer, or below the least value."""
    return [
        Problem(
            key=key,
            required=f"an integer of at least {floor}",
            given="none" if key not in parameters else str(parameters[key]),
            todo=f"the smallest is {floor}",
        )
        for key, floor in least.items()
        if not (key in optional and key not in parameters)
        and not _is_integer(parameters.get(key), floor)
    ]


def _is_integer(value: int | str | None, least: int) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and value >= least
