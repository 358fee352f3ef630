"""The order of clusters in racks that makes the cables between racks short."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from compilers.topology.adjacency import Graph
from compilers.topology.layout import Layout, links_between
from inventory.problems import InputError, install_extra

MOST_CLUSTERS = 1500


def shortest_order(
    graph: Graph, found: Layout, homes: Sequence[int], places: NDArray[np.float64]
) -> NDArray[np.int64]:
    """The order in which clusters are placed, int64[C]: the listed one, or a shorter one.

    A quadratic assignment (scipy's FAQ) of clusters to the places that clusters get in the listed
    order; what it finds is taken only where it is shorter.

    Args:
        graph: the fabric.
        found: its clusters.
        homes: the rack of the i-th cluster that is placed.
        places: float64[R, 2], where the racks stand, in metres.

    Raises:
        InputError: scipy is not installed, or there are too many clusters.
    """
    try:
        from scipy.optimize import quadratic_assignment
    except ImportError:
        raise _refusal(
            "scipy for placement.order: shortest", "none", install_extra("placement")
        ) from None
    count = len(homes)
    if count > MOST_CLUSTERS:
        required = f"at most {MOST_CLUSTERS:,} clusters for placement.order: shortest"
        raise _refusal(required, f"{count:,}", "write order: listed")
    flow = links_between(graph, found).astype(np.float64)
    np.fill_diagonal(flow, 0)
    stand = places[list(homes)]
    distance = np.abs(stand[:, None] - stand[None]).sum(axis=2)
    listed = np.arange(count)
    # Slots are permuted over clusters: slot i holds cluster solution[i].
    solution = quadratic_assignment(
        distance, flow, method="faq", options={"rng": np.random.default_rng(0)}
    ).col_ind
    before = (distance * flow).sum()
    after = (distance * flow[np.ix_(solution, solution)]).sum()
    return np.asarray(solution if after < before else listed, np.int64)


def _refusal(required: str, given: str, todo: str) -> InputError:
    return InputError.of(key="placement.order", required=required, given=given, todo=todo)
