"""Shared risk: the links that fail together, as the inventory gives them.

A module (an optical module, a line card, a block of ports) takes all links at its switch's ports
with it. A switch all of whose links are on one module has no modules that matter: that one dies
with the switch.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from compilers.wiring.hardware import Hardware
from compilers.wiring.wiring import Wiring


def modules_of(wiring: Wiring, hardware: Hardware | None) -> NDArray[np.int32] | None:
    """int32[S, K]: the module of its switch that each link is on, -1 beyond the last link.

    None where nothing is known of modules.
    """
    if hardware is None:
        return None
    known = [facts.module for facts in hardware.types]
    table = np.full((len(known), max(map(len, known)) + 1), -1, np.int32)
    for row, module in zip(table, known, strict=True):
        row[1 : len(module) + 1] = module
    found: NDArray[np.int32] = table[wiring.node_type[:, None], wiring.port]
    return found


def several_modules(module: NDArray[np.int32]) -> bool:
    """Whether the links of any switch are on more than one module."""
    first = module.max(axis=1, initial=-1, keepdims=True)
    return bool(((module >= 0) & (module != first)).any())
