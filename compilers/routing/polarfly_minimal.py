"""Minimal routes in ER_q: one exact row per destination.

The next hop from s to d is d itself where they are adjacent, else the point s×d (PolarFly paper,
§IV-D), which is where the lines of s and d meet (`compilers.tables.line_rows`).
"""

from __future__ import annotations

import numpy as np

from compilers.tables.computed_array import unless_large
from compilers.tables.intermediate_form import Routes
from compilers.tables.line_rows import LineEgress, LineProgram
from compilers.topology import polarity
from compilers.topology.labelled_graph import Topology


def routes(topology: Topology) -> Routes:
    """Exact minimal rows, N a switch; those of a large fabric are computed when they are read."""
    around = polarity.lines(int(topology.parameters["q"]))
    order = np.arange(len(around), dtype=np.int32)
    return Routes(
        prefix=order[None],
        egress=unless_large(LineEgress(LineProgram(around, np.zeros(1, np.int32)))),
        aggregate=np.full_like(order, -1),
    )
