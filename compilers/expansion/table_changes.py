"""Changes that an expansion makes to the tables and cables of installed switches."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from compilers.tables.intermediate_form import Classes, Tables
from compilers.wiring.wiring import Wiring


def moved(before: Wiring, after: Wiring) -> int:
    """The number of old cables that do not join the same two ports in the new fabric."""
    old, new = _ends(before), _ends(after)
    stayed = len(old) + len(new) - len(np.unique(np.concatenate((old, new)), axis=0))
    return len(old) - stayed


def _ends(wiring: Wiring) -> NDArray[np.int64]:
    """int64[E, 4]: both ends of each cable, vertex and port, the lower vertex first."""
    switch, link = np.nonzero(wiring.far > np.arange(len(wiring.far))[:, None])
    columns = (column[switch, link] for column in (wiring.port, wiring.far, wiring.far_port))
    return np.column_stack((switch, *columns)).astype(np.int64)


def changes(before: Tables, after: Tables) -> dict[str, NDArray[np.int64]]:
    """The rows and classes that each old switch gains, and those that change, int64[S] each."""
    old = len(before.routes.egress)
    one, two = before.routes.egress, after.routes.egress[:old, :old]
    differ = (one != two) & ~np.eye(old, dtype=np.bool_)
    classes = [np.count_nonzero(t.classes.port[:old], axis=1) for t in (before, after)]
    return {
        "rows_added": np.full(old, after.switches - old, np.int64),
        "rows_changed": differ.sum(axis=1).astype(np.int64),
        "classes_added": classes[1] - classes[0],
        "classes_changed": _class_changes(before.classes, after.classes, old),
    }


def _class_changes(before: Classes, after: Classes, old: int) -> NDArray[np.int64]:
    """int64[S]: the number of classes that both builds have, with different contents."""
    count = min(before.port.shape[1], after.port.shape[1])
    both = (before.port[:, :count] > 0) & (after.port[:old, :count] > 0)
    differ = before.port[:, :count] != after.port[:old, :count]
    for word in ("alternate", "weight", "protection", "bounce"):
        one, two = getattr(before, word)[:, :count], getattr(after, word)[:old, :count]
        width = max(one.shape[2], two.shape[2])
        one, two = (np.pad(a, ((0, 0), (0, 0), (0, width - a.shape[2]))) for a in (one, two))
        differ = differ | (one != two).any(axis=2)
    count_differing: NDArray[np.int64] = np.count_nonzero(both & differ, axis=1)
    return count_differing
