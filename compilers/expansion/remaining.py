"""The rest of a partly installed fabric: nodes and cables to add, and proof that none move."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from compilers.cabling.cable_plan import Cables, cables_of, hardware_of
from compilers.expansion.table_changes import moved
from compilers.tables.build import Build
from compilers.tables.fib import Fib
from inventory.problems import InputError

DESTINATIONS_AT_ONCE = 1 << 22


@dataclass(frozen=True, slots=True, eq=False)
class Rest:
    """The nodes and cables that a fabric of S nodes still lacks.

    nodes: int64[n], the vertices to install. cables: of the larger fabric. added: int64[A], the new
    ones among them. moved: the number of installed cables with a different end or port in the
    larger fabric; relabelled: with a different label. renamed: the number of installed nodes with a
    different name, number or address. changes: int64[S] each, rows_added, rows_changed and
    rows_removed: the destinations that a switch newly reaches, reaches by another port, or no
    longer reaches.
    """

    nodes: NDArray[np.int64]
    cables: Cables
    added: NDArray[np.int64]
    moved: int
    relabelled: int
    renamed: int
    changes: Mapping[str, NDArray[np.int64]]


def rest_of(before: Build, after: Build) -> Rest:
    """The additions from one build of a fabric to a larger one.

    Raises:
        InputError: the builds are not of one fabric.
    """
    _require_one_fabric(before, after)
    cables, old = (cables_of(b.wiring, hardware_of(b)) for b in (after, before))
    keys, known = cables.keys(), old.keys()
    installed = np.isin(keys, known)
    both = np.intersect1d(known, keys, return_indices=True)[1:]
    return Rest(
        nodes=np.flatnonzero(after.topology.present & ~before.topology.present),
        cables=cables,
        added=np.flatnonzero(~installed),
        moved=moved(before.wiring, after.wiring),
        relabelled=int((old.number[both[0]] != cables.number[both[1]]).sum()),
        renamed=_renamed(before, after),
        changes=_changes(before, after),
    )


def _require_one_fabric(before: Build, after: Build) -> None:
    one, two = (
        (dict(b.topology.parameters), b.topology.family, len(b.wiring.names))
        for b in (before, after)
    )
    if one != two:
        todo = "use `clusters` to grow to another topology"
        given = f"{after.topology.title()} and {before.topology.title()}"
        raise InputError.of("two builds of one fabric", given, todo, key="whole")


def _renamed(before: Build, after: Build) -> int:
    """The number of installed nodes whose name, number or first address differs."""
    differ = np.array(before.wiring.names) != np.array(after.wiring.names)
    differ |= before.wiring.datapath_id != after.wiring.datapath_id
    blocks = [b.addressing.ipv4_blocks() for b in (before, after)]
    differ |= (blocks[0] != blocks[1]) | (before.addressing.ipv6 != after.addressing.ipv6)
    return int((differ & before.topology.present).sum())


def _changes(before: Build, after: Build) -> dict[str, NDArray[np.int64]]:
    order = len(before.wiring.names)
    words = ("rows_added", "rows_changed", "rows_removed")
    found = {word: np.zeros(order, np.int64) for word in words}
    fibs = [Fib.of(b.tables, b.wiring.cables()) for b in (before, after)]
    step = max(1, DESTINATIONS_AT_ONCE // order)
    for first in range(0, order, step):
        to = np.arange(first, min(first + step, order))
        old, new = (_ports(b, w, to) for b, w in zip((before, after), fibs, strict=True))
        found["rows_added"] += ((old == 0) & (new > 0)).sum(axis=1)
        found["rows_changed"] += ((old > 0) & (new > 0) & (old != new)).sum(axis=1)
        found["rows_removed"] += ((old > 0) & (new == 0)).sum(axis=1)
    return found


def _ports(build: Build, fib: Fib, to: NDArray[np.int64]) -> NDArray[np.int32]:
    """int32[S, n]: the port of every switch for each destination, 0 if either is missing."""
    port = np.pad(build.tables.classes.port, ((0, 0), (0, 1)))
    number = np.minimum(fib.egress(to), port.shape[1] - 1).astype(np.intp)
    return np.where(build.topology.present[to], np.take_along_axis(port, number, axis=1), 0)
