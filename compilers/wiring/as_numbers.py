"""AS numbers: a node's own, as the inventory says it, else counted on from the first by vertex."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from inventory.asn_range import PRIVATE_AS

FIRST, OWN = "asn", "node_asn"
"""Keys of a build's `base`: the number of vertex 0, and those of nodes by name."""


def as_numbers(base: Mapping[str, Any], names: Sequence[str]) -> NDArray[np.int64]:
    """int64[S]: the AS number of every vertex.

    Args:
        base: of the build.
        names: of the nodes.
    """
    own: dict[str, int] = base.get(OWN, {})
    usual = range(base.get(FIRST, PRIVATE_AS), base.get(FIRST, PRIVATE_AS) + len(names))
    return np.array([own.get(*each) for each in zip(names, usual, strict=True)], np.int64)
