"""Planes that forward alike, so that what is proved or measured of one holds for the other.

The planes of a fabric have names, addresses and racks of their own. Mostly they have the same
ports, graph and tables.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from compilers.tables.build import Build
from compilers.tables.build_codec import arrays_of

OF_ONE_PLANE = ("datapath_id", "host_mac", "hardware_")
"""The first letters of the names of arrays that differ between planes that forward alike."""


def first_plane_forwarding_alike(builds: Sequence[Build], plane: int) -> int | None:
    """Return the first plane before this one that forwards alike, None where none does."""
    for earlier in range(plane):
        if forward_alike(builds[earlier], builds[plane]):
            return earlier
    return None


def forward_alike(first: Build, second: Build) -> bool:
    """Whether two builds forward alike: the same meaning, tables, ports and graph."""
    if first.forwarding != second.forwarding or first.policy != second.policy:
        return False
    arrays, second_arrays = _forwarding_arrays(first), _forwarding_arrays(second)
    if arrays.keys() != second_arrays.keys():
        return False
    pairs = ((array, second_arrays[name]) for name, array in arrays.items())
    return all(array is twin or np.array_equal(array, twin) for array, twin in pairs)


def _forwarding_arrays(build: Build) -> dict[str, NDArray[Any]]:
    """Return the arrays of a build by name, without those that each plane has for itself."""
    return {
        declared.name: array
        for declared, array in arrays_of(build)
        if not declared.name.startswith(OF_ONE_PLANE)
    }
