"""Valiant's routing: packets go to a switch drawn at random, the intermediate, and on from there.

Both legs are minimal. The ingress switch draws an intermediate for each flow, among all switches
with hosts. If it draws itself or the destination, the whole path is minimal. So every traffic loads
links as two uniform traffics do, whoever sends to whom (L. G. Valiant, "A Scheme for Fast Parallel
Communication", 1982).

The packet carries the number of its intermediate. Besides its routes a switch needs one row for
each such number, which leads where the route to that intermediate leads. The intermediate takes the
number off. From there on the packet is forwarded like one of the intermediate's own hosts.

While links or switches are down, each leg is repaired as minimal routes are. A neighbour of the
intermediate whose link to it is down takes the number off in its place. The packet is not for
the intermediate's hosts, so it can still arrive if the intermediate itself is down.

Targets, the proof and walks call `intermediates` for the switches that are drawn from.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from compilers.tables.build import Build


def intermediates(build: Build) -> NDArray[np.int64]:
    """Return the switches that packets may go by, int64[M], ascending: all that have hosts."""
    return np.flatnonzero(build.topology.endpoints)
