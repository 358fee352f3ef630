"""The routes of LID layers, and the virtual lanes of the pairs of switches that use them."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

UNSET = 255
"""In the place of a lane's number: the paths of the pair fit no lane."""
Lanes = NDArray[np.uint8]


@dataclass(frozen=True, slots=True, eq=False)
class LayerRoutes:
    """The routes of L layers, and the lane of each pair of S switches."""

    next_switch: NDArray[np.int64]
    """int64[L, S, S], the next switch from each switch to each other, in each layer."""
    lane: Lanes
    """uint8[S, S], the lane of the paths from each switch to each other; UNSET if they fit none."""
