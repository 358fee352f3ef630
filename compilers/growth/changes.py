"""What an expansion does to the tables of the switches that stand, and to their cables."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from compilers.tables import Classes, Tables
from compilers.wiring import Wiring


def moved(before: Wiring, after: Wiring) -> int:
    """How many cables of the old fabric are not in the new one, from port to port."""
    old = _ends(before)
    return len(old) - len(np.intersect1d(old, _ends(after), assume_unique=True))


def _ends(wiring: Wiring) -> NDArray[np.int64]:
    """int64[E]: a number for each cable that tells both of its ports."""
    switch, link = np.nonzero(wiring.far > np.arange(len(wiring.far))[:, None])
    cable = (
        switch,
        wiring.port[switch, link],
        wiring.far[switch, link],
        wiring.far_port[switch, link],
    )
    number = np.zeros(len(switch), np.int64)
    for part in cable:
        number = number << 16 | part
    return number


def changes(before: Tables, after: Tables) -> dict[str, NDArray[np.int64]]:
    """int64[S] a word: rows and classes that each old switch gains, and those that differ now."""
    old = len(before.routes.egress)
    one, two = before.routes.egress, after.routes.egress[:old, :old]
    differ = (one != two) & ~np.eye(old, dtype=np.bool_)
    classes = [_used(tables.classes)[:old] for tables in (before, after)]
    return {
        "rows_added": np.full(old, after.switches - old, np.int64),
        "rows_changed": differ.sum(axis=1).astype(np.int64),
        "classes_added": classes[1] - classes[0],
        "classes_changed": _class_changes(before.classes, after.classes, old),
    }


def _used(classes: Classes) -> NDArray[np.int64]:
    used: NDArray[np.int64] = np.count_nonzero(classes.port, axis=1)
    return used


def _class_changes(before: Classes, after: Classes, old: int) -> NDArray[np.int64]:
    """int64[S]: the classes of a number that both have, but that do something else now."""
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
