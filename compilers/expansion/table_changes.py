"""Changes that an expansion makes to the tables and cables of installed switches."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from compilers.tables.build import Build
from compilers.update.compare import compare
from compilers.wiring.wiring import Wiring


def moved(before: Wiring, after: Wiring) -> int:
    """The number of old cables that do not join the same two ports in the new fabric."""
    old, new = _ends(before), _ends(after)
    stayed = len(old) + len(new) - len(np.unique(np.concatenate((old, new)), axis=0))
    return len(old) - stayed


def _ends(wiring: Wiring) -> NDArray[np.int64]:
    """int64[E, 4]: both ends of each cable, vertex and port, the lower vertex first."""
    switch, link = wiring.links()
    columns = (column[switch, link] for column in (wiring.port, wiring.far, wiring.far_port))
    return np.column_stack((switch, *columns)).astype(np.int64)


def changes(before: Build, after: Build) -> dict[str, NDArray[np.int64]]:
    """The table changes of each old switch, int64[S] each, as `plan` and `diff` count them."""
    counted = [switch.counts() for switch in compare(before, after).switches]
    return {word: np.array([each[word] for each in counted]) for word in counted[0]}
