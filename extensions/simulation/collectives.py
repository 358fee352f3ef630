"""Collective operations as messages between hosts."""

from __future__ import annotations

from collections.abc import Callable
from math import isqrt
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

Numbers = NDArray[Any]
BLOCKS = 10
"""Messages that a host of a sweep sends each neighbour, from each corner of the grid."""
CORNERS = ((1, 1), (1, -1), (-1, 1), (-1, -1))


class Collective(NamedTuple):
    """Messages between hosts, as `HostMessages.of` takes them; `part` of the size is in each."""

    source: Numbers
    goal: Numbers
    stage: Numbers
    needed: Numbers
    part: float = 1.0


def _pairs(hosts: int, count: int) -> tuple[Numbers, Numbers]:
    """`count` messages of each host: int[M], the host, and the message's number."""
    host, number = np.divmod(np.arange(hosts * count), count)
    return host, number


def ring_allreduce(hosts: int) -> Collective:
    """2(H - 1) steps; in each a host sends its next one the part that came in the step before."""
    host, step = _pairs(hosts, 2 * (hosts - 1))
    return Collective(host, (host + 1) % hosts, step, step + 1, 1 / hosts)


def tree_allreduce(hosts: int) -> Collective:
    """Whole vectors up a binary tree, host 0 on top, and down again."""
    child = np.arange(1, hosts)
    parent = (child - 1) // 2
    level = np.frexp(np.arange(1, hosts + 1))[1]
    top = int(level[-1])
    up, down = top - level[child], top + level[parent]
    return Collective(
        np.concatenate((child, parent)),
        np.concatenate((parent, child)),
        np.concatenate((up, down)),
        np.concatenate((up + 1, down + 1)),
    )


def all_to_all(hosts: int) -> Collective:
    """A message from each host to each other one, the next one first; none waits."""
    host, number = _pairs(hosts, hosts - 1)
    return Collective(host, (host + 1 + number) % hosts, number, np.full_like(host, hosts))


def sweep(hosts: int) -> Collective:
    """Sweep3D: waves over a grid of hosts from each of its corners, `BLOCKS` behind each other.

    A host sends on to its two neighbours what came from the two others.
    """
    rows = next(rows for rows in range(isqrt(hosts), 0, -1) if hosts % rows == 0)
    row, column = np.divmod(np.arange(hosts), hosts // rows)
    parts = []
    for corner, (down, right) in enumerate(CORNERS):
        for block in range(BLOCKS):
            for rise, run in ((down, 0), (0, right)):
                to_row, to_column = row + rise, column + run
                inside = (to_row >= 0) & (to_row < rows) & (to_column >= 0)
                host = np.flatnonzero(inside & (to_column < hosts // rows))
                goal = to_row[host] * (hosts // rows) + to_column[host]
                parts.append((host, goal, np.full_like(host, corner * BLOCKS + block)))
    source, goal, stage = (np.concatenate(each) for each in zip(*parts, strict=True))
    return Collective(source, goal, stage, stage)


COLLECTIVES: dict[str, Callable[[int], Collective]] = {
    "ring-allreduce": ring_allreduce,
    "tree-allreduce": tree_allreduce,
    "all-to-all": all_to_all,
    "sweep3d": sweep,
}
