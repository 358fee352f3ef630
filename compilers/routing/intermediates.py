"""Valiant's routing: packets go to a switch drawn at random, the intermediate, and on from there.

Both legs are minimal. The intermediate is drawn where a packet enters, for each flow, among all
switches with hosts, its own and the destination's included: then the path is minimal. So every
traffic loads links as two uniform traffics do, whoever sends to whom (L. G. Valiant, "A Scheme for
Fast Parallel Communication", 1982).

The packet carries the number of its intermediate, so N rows by that number are all that a switch
needs besides its routes, and they lead where the routes to the intermediates lead. The intermediate
takes the number off, and from there the packet is one that a host of the intermediate sends.

While links or switches are down, each leg is repaired as minimal routes are. A switch whose link to
the intermediate, its neighbour, is down takes the number off in its place: the intermediate may be
down, and the packet does not want to go there anyway.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from compilers.tables.build import Build


def intermediates(build: Build) -> NDArray[np.int64]:
    """Return the switches that packets may go by, int64[M], ascending: all that have hosts."""
    return np.flatnonzero(build.topology.endpoints)
