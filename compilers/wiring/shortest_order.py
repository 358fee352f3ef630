"""The order in which clusters are placed in racks so that cables are short (`order: shortest`).

A *cluster* is a set of switches that belong into one rack. `compilers.wiring.placement` calls
`shortest_order` with the racks that clusters would get in their listed order; the result says which
cluster goes where.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from compilers.topology.adjacency import Graph
from compilers.topology.layout import Layout, links_between
from inventory.problems import InputError, install_extra

MOST_CLUSTERS = 1500
"""The most clusters whose shortest order is searched."""


def shortest_order(
    graph: Graph, layout: Layout, racks: Sequence[int], places: NDArray[np.float64]
) -> NDArray[np.int64]:
    """Return an order in which clusters are placed so that cables are short, int64[C].

    SciPy's FAQ algorithm solves a quadratic assignment: clusters go to the *slots* that clusters
    have in the listed order, so that the sum of cable lengths is small. The listed order is
    returned if the result is not shorter.

    Args:
        graph: the fabric.
        layout: its clusters.
        racks: the rack of the i-th cluster that is placed.
        places: float64[R, 2], where the racks are, in metres.

    Raises:
        InputError: SciPy is not installed, or there are too many clusters.
    """
    try:
        from scipy.optimize import quadratic_assignment
    except ImportError:
        raise _refusal(
            "scipy for placement.order: shortest", "none", install_extra("placement")
        ) from None
    count = len(racks)
    if count > MOST_CLUSTERS:
        required = f"at most {MOST_CLUSTERS:,} clusters for placement.order: shortest"
        raise _refusal(required, f"{count:,}", "write order: listed")
    flow = links_between(graph, layout).astype(np.float64)  # float64[C, C], links of two clusters
    np.fill_diagonal(flow, 0)
    position_of_slot = places[list(racks)]  # float64[C, 2]
    # float64[C, C], along rows plus across them, as cables run.
    distance = np.abs(position_of_slot[:, None] - position_of_slot[None]).sum(axis=2)
    listed = np.arange(count)
    # Slots are permuted over clusters: slot i holds cluster solution[i].
    solution = quadratic_assignment(
        distance, flow, method="faq", options={"rng": np.random.default_rng(0)}
    ).col_ind
    listed_length = (distance * flow).sum()
    solution_length = (distance * flow[np.ix_(solution, solution)]).sum()
    return np.asarray(solution if solution_length < listed_length else listed, np.int64)


def _refusal(required: str, given: str, todo: str) -> InputError:
    """Return the error that `placement.order: shortest` is not possible."""
    return InputError.of(key="placement.order", required=required, given=given, todo=todo)
