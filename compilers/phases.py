"""Installation in phases, so that the fabric is of use early.

Racks come one after the other, next the one with most links to those that stand (first: most links
within). A cable belongs to the phase in which the later of its ends comes.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from compilers.build import Build
from compilers.cables import Cables
from compilers.hardware import Hardware
from compilers.topologies.graph import Graph
from compilers.walk import Walker

BLOCK = 1 << 22  # pairs that are walked at once


@dataclass(frozen=True, slots=True, eq=False)
class Phases:
    """The phase, from 1, of each rack (int32[R]), vertex (int32[S]) and cable (int32[E])."""

    rack: NDArray[np.int32]
    vertex: NDArray[np.int32]
    cable: NDArray[np.int32]

    @property
    def count(self) -> int:
        """How many phases there are."""
        return int(self.rack.max())


def phases_of(graph: Graph, cables: Cables, count: int) -> Phases:
    """At most `count` phases of as many racks each, give or take one."""
    known = cables.hardware
    order = install_order(graph, known)
    count = min(count, len(order))
    rack = np.zeros(len(known.rack_names), np.int32)
    rack[order] = np.arange(len(order)) * count // len(order) + 1
    vertex = rack[known.rack]
    return Phases(rack, vertex, vertex[cables.ends].max(axis=1))


def install_order(graph: Graph, known: Hardware) -> NDArray[np.int64]:
    """The racks that hold nodes, in the order of their installation."""
    racks = len(known.rack_names)
    ends = known.rack[graph.edges()].astype(np.int64)
    keys, links = np.unique(np.concatenate((ends, ends[:, ::-1])) @ [racks, 1], return_counts=True)
    tail, head = np.divmod(keys, racks)
    starts = np.searchsorted(tail, np.arange(racks + 1))
    score = np.zeros(racks)
    inside = tail == head
    score[tail[inside]] = links[inside] / links.sum()  # decides among equals only
    standing = np.bincount(known.rack, minlength=racks) == 0
    order = []
    for _ in range(int((~standing).sum())):
        following = int(np.argmax(np.where(standing, -1.0, score)))
        standing[following] = True
        order.append(following)
        near = slice(starts[following], starts[following + 1])
        score[head[near]] += links[near]
    return np.array(order, np.int64)


def working_pairs(build: Build, phases: Phases) -> NDArray[np.int64]:
    """int64[phases]: ordered pairs whose path in the build's tables is there after each phase."""
    walker = Walker.of(build.tables, build.wiring.cables())
    order = len(phases.vertex)
    phase = phases.vertex.astype(np.int16)
    new = np.zeros(phases.count + 1, np.int64)
    step = max(1, BLOCK // order)
    for first in range(0, order, step):
        to = np.arange(first, min(first + step, order))
        after = walker.next_switch(to)
        at: NDArray[np.int64] = np.broadcast_to(np.arange(order)[:, None], after.shape)
        latest = np.maximum(phase[:, None], phase[to])
        for _ in range(build.topology.diameter - 1):
            at = np.take_along_axis(after, at, axis=0).astype(np.int64)
            latest = np.maximum(latest, phase[at])
        new += np.bincount(latest.ravel(), minlength=phases.count + 1)
    new -= np.bincount(phase, minlength=phases.count + 1)
    return np.cumsum(new[1:])


def connected_pairs(graph: Graph, phases: Phases) -> NDArray[np.int64]:
    """int64[phases]: ordered pairs that some path joins: what tables for that phase could do."""
    edges = graph.edges()
    when = phases.vertex[edges].max(axis=1)
    return np.array(
        [_joined(graph.order, edges[when <= p]) for p in range(1, phases.count + 1)], np.int64
    )


def _joined(order: int, edges: NDArray[np.int32]) -> int:
    """Ordered pairs within the components of a graph, by spreading the least vertex."""
    least = np.arange(order, dtype=np.int32)
    while True:
        spread = least.copy()
        np.minimum.at(spread, edges[:, 0], least[edges[:, 1]])
        np.minimum.at(spread, edges[:, 1], least[edges[:, 0]])
        spread = spread[spread]
        if (spread == least).all():
            break
        least = spread
    sizes = np.bincount(least).astype(np.int64)
    return int((sizes * (sizes - 1)).sum())
