"""Installation in phases, so that the fabric is of use early.

The first rack is the one with most links inside; each next one has most links to the racks already
installed. A cable belongs to the phase of whichever end is installed later.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from compilers.cabling.cable_plan import Cables, cables_of
from compilers.tables.build import Build
from compilers.tables.fib import Fib
from compilers.topology.adjacency import Graph
from compilers.topology.distance import components, neighbour_table
from compilers.wiring.hardware import Hardware
from compilers.wiring.wiring import Wiring
from inventory.problems import InputError, Problem

if TYPE_CHECKING:  # pydantic is slow to import, and a build is read without it
    from inventory.model import Inventory

PAIRS_AT_ONCE = 1 << 22
PHASES = 8  # by default


@dataclass(frozen=True, slots=True)
class Stage:
    """The progress of an installation: its phase, from 1, and the count of phases (`phases_of`)."""

    phase: int
    count: int


@dataclass(frozen=True, slots=True, eq=False)
class Phases:
    """The phase, from 1, of each rack (int32[R]), vertex (int32[S]) and cable (int32[E]).

    0 for planned nodes and for racks that hold no others.
    """

    rack: NDArray[np.int32]
    vertex: NDArray[np.int32]
    cable: NDArray[np.int32]

    @property
    def count(self) -> int:
        """The number of phases."""
        return int(self.rack.max())


def phases_of(graph: Graph, cables: Cables, count: int) -> Phases:
    """At most `count` phases, whose numbers of racks differ by one at most."""
    known = cables.hardware
    order = install_order(graph, known)
    count = min(count, len(order))
    rack = np.zeros(len(known.rack_names), np.int32)
    rack[order] = np.arange(len(order)) * count // len(order) + 1
    vertex = np.where(graph.degrees > 0, rack[known.rack], 0).astype(np.int32)
    return Phases(rack, vertex, vertex[cables.ends].max(axis=1))


def install_order(graph: Graph, known: Hardware) -> NDArray[np.int64]:
    """int64[n]: the racks that hold nodes, in the order of their installation."""
    racks = len(known.rack_names)
    ends = known.rack[graph.edges()].astype(np.int64)
    keys, links = np.unique(np.concatenate((ends, ends[:, ::-1])) @ [racks, 1], return_counts=True)
    tail, head = np.divmod(keys, racks)
    starts = np.searchsorted(tail, np.arange(racks + 1))
    score = np.zeros(racks)
    inside = tail == head
    score[tail[inside]] = links[inside] / links.sum()  # decides among equals only
    done = np.bincount(known.rack[graph.degrees > 0], minlength=racks) == 0
    order = []
    for _ in range(int((~done).sum())):
        following = int(np.argmax(np.where(done, -1.0, score)))
        done[following] = True
        order.append(following)
        near = slice(starts[following], starts[following + 1])
        score[head[near]] += links[near]
    return np.array(order, np.int64)


def installed(
    inventory: Inventory, wiring: Wiring, known: Hardware, graph: Graph, stage: Stage
) -> Inventory:
    """The inventory after a phase, in which all nodes of later phases are planned.

    Raises:
        InputError: there is no such phase.
    """
    phases = phases_of(graph, cables_of(wiring, known), stage.count)
    if stage.phase > phases.count:
        problem = Problem(f"a phase from 1 to {phases.count}", str(stage.phase), key="phase")
        raise InputError(problem)
    later = {wiring.names[v] for v in np.flatnonzero(phases.vertex > stage.phase)}
    planned = {"state": "planned"}
    nodes = (n.model_copy(update=planned) if n.name in later else n for n in inventory.nodes)
    return inventory.model_copy(update={"nodes": tuple(nodes)})


def working_pairs(build: Build, phases: Phases) -> NDArray[np.int64]:
    """int64[phases]: ordered pairs of switches whose path in the tables exists after each phase."""
    fib = Fib.of(build.tables, build.wiring.cables())
    order = len(phases.vertex)
    phase = phases.vertex.astype(np.int16)
    new = np.zeros(phases.count + 1, np.int64)
    present = np.flatnonzero(build.topology.present)
    step = max(1, PAIRS_AT_ONCE // order)
    for first in range(0, len(present), step):
        to = present[first : first + step]
        after = fib.next_switch(to)
        at: NDArray[np.int64] = np.broadcast_to(present[:, None], (len(present), len(to)))
        latest = np.maximum(phase[present, None], phase[to])
        for _ in range(build.topology.diameter - 1):
            at = np.take_along_axis(after, at, axis=0).astype(np.int64)
            latest = np.maximum(latest, phase[at])
        new += np.bincount(latest.ravel(), minlength=phases.count + 1)
    new -= np.bincount(phase[present], minlength=phases.count + 1)
    return np.cumsum(new[1:])


def connected_pairs(graph: Graph, phases: Phases) -> NDArray[np.int64]:
    """int64[phases]: ordered pairs of switches with any path at all after each phase."""
    edges = graph.edges()
    when = phases.vertex[edges].max(axis=1)
    joined = []
    for phase in range(1, phases.count + 1):
        table = neighbour_table(Graph.from_edges(graph.order, edges[when <= phase]))
        sizes = np.unique(components(table), return_counts=True)[1]
        joined.append((sizes * (sizes - 1)).sum())
    return np.array(joined, np.int64)
