"""RNG: a quasi-random graph out of passive boxes (Bernardi et al., arXiv 2604.15261, 2026).

Of the paper its abstract and introduction were at hand, and notes of readers on its section 6: a
ShuffleBox has 32 ports for routers with 4 pairs of fibres each, and 4 ports behind with 32 pairs
each, one of every router port; boxes are wired at random. What is more is ours: switches are in
rows of `ports`, a row has degree/lanes boxes with a port of every switch, and at each box these are
plugged in a random order. A box leads lane k of port i to position s_k(i) of trunk k; the shuffles
s_k are drawn once, so all boxes are one type. Straight trunks join boxes as a random regular graph.
So a trunk is a random permutation between two rows, or of one.

Links from a switch to itself and doubled links are mended by plugs that change places at one box.
Switch i of row r is vertex r·ports + i.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

import numpy as np
from numpy.typing import NDArray

from compilers.topology.adjacency import Graph
from compilers.topology.distance import BEYOND, diameter
from compilers.topology.family import integers
from compilers.topology.labelled_graph import Parameters, Topology
from compilers.topology.layout import Layout
from extensions.baselines.jellyfish import Jellyfish, random_regular
from inventory.problems import Problem

Plugs = NDArray[np.int64]
"""int64[B, P]: the switch at each port of each box."""
PORTS, LANES, TRIES = 32, 4, 1000
SPARSE = 4
"""The nodes are at least so many times the degree: mending then finds a place for every plug."""


def shape(parameters: Parameters) -> tuple[int, int, int, int]:
    """(rows, ports, boxes of a row, lanes), defaults filled in."""
    ports, lanes = int(parameters.get("ports", PORTS)), int(parameters.get("lanes", LANES))
    return int(parameters["nodes"]) // ports, ports, int(parameters["degree"]) // lanes, lanes


class Rng(Jellyfish):
    """Quasi-random graphs of boxes with `ports` ports of `lanes` links, one for each seed."""

    name = "rng"
    place = 17
    any_links = grows_by_switches = False
    parameters: tuple[str, ...] = ("nodes", "degree", "ports", "lanes", "seed")
    optional: tuple[str, ...] = ("ports", "lanes", "seed")
    defaults = MappingProxyType({"ports": PORTS, "lanes": LANES, "seed": 0})

    def check(self, parameters: Parameters) -> list[Problem]:
        """Whole rows and whole boxes, more boxes than lanes, and few links among many nodes."""
        least = {"nodes": 8, "degree": 3, "ports": 8, "lanes": 1, "seed": 0}
        if problems := integers(parameters, least, self.optional):
            return problems
        nodes, degree = int(parameters["nodes"]), int(parameters["degree"])
        rows, ports, boxes, lanes = shape(parameters)
        if nodes != rows * ports:
            todo = _nearest(rows, ports)
            return [_problem("nodes", f"a multiple of a box's {ports} ports", nodes, todo)]
        if degree != boxes * lanes:
            todo = _nearest(boxes, lanes)
            return [_problem("degree", f"a multiple of a port's {lanes} lanes", degree, todo)]
        if degree * SPARSE > nodes:
            required, todo = f"at most nodes/{SPARSE} = {nodes // SPARSE}", "take more nodes"
            return [_problem("degree", required, degree, todo)]
        if rows * boxes <= lanes or rows * boxes * lanes % 2:
            required = f"more boxes than lanes = {lanes}, and an even number of trunk ends"
            given = f"{rows * boxes} boxes: nodes/ports = {rows} times degree/lanes = {boxes}"
            return [_problem("ports", required, given, "take fewer ports or lanes, or more nodes")]
        return []

    def drawn(self, parameters: Parameters, source: np.random.PCG64) -> NDArray[np.int64]:
        """The links of boxes that are plugged and cabled at random."""
        return _boxes(parameters, source).switch

    def boxes(self, topology: Topology) -> Boxes | None:
        """Those of the draw that gave the graph; None where it is none of the seed's."""
        given, edges = topology.parameters, topology.graph.edges()
        if 2 * len(edges) != int(given["nodes"]) * int(given["degree"]):
            return None
        source = np.random.PCG64(int(given["seed"]))
        while True:
            found = _boxes(given, source)
            pairs = np.sort(found.switch, axis=1)
            if np.array_equal(pairs[np.lexsort(pairs.T[::-1])], edges):
                return found
            if diameter(Graph.from_edges(topology.graph.order, found.switch)) < BEYOND:
                return None  # `build` draws no further

    def headings(self, topology: Topology) -> NDArray[np.int32] | None:
        """A switch's links by box and lane, so that a ribbon has ports in a row."""
        far, found = topology.graph.padded(), self.boxes(topology)
        if found is None:
            return None
        *_, boxes, lanes = shape(topology.parameters)
        arcs = found.switch @ [len(far), 1], found.switch @ [1, len(far)]
        keys = np.arange(len(far))[:, None] * len(far) + far
        number = np.empty(far.size, np.int32)
        for side, arc in enumerate(arcs):
            place = np.searchsorted(keys.ravel(), arc)
            number[place] = found.box[:, side] % boxes * lanes + found.lane[:, side]
        return number.reshape(far.shape)

    def layouts(self, topology: Topology) -> Mapping[str, Any]:  # noqa: ARG002
        """A row a rack."""
        return {"rows": _rows}


@dataclass(frozen=True, slots=True, eq=False)
class Boxes:
    """Passive boxes of one type that all E links of a member run through, each in two.

    switch, box, front, lane: int64[E, 2], at both ends: front is the switch's port at the box, lane
    that of the port, which is the trunk behind, too. trunk: int64[E]; position: int64[E], on it.
    """

    switch: NDArray[np.int64]
    box: NDArray[np.int64]
    front: NDArray[np.int64]
    lane: NDArray[np.int64]
    trunk: NDArray[np.int64]
    position: NDArray[np.int64]


def _boxes(parameters: Parameters, source: np.random.PCG64) -> Boxes:
    """Boxes that are plugged and cabled at random, of which no link is a loop or doubled."""
    rows, ports, boxes, lanes = shape(parameters)
    while True:
        trunks = random_regular(rows * boxes, lanes, source)
        behind = np.empty(trunks.size, np.int64)
        behind[trunks.ravel().argsort(kind="stable")] = np.arange(trunks.size) % lanes
        inside = source.random_raw(lanes * ports).reshape(lanes, ports).argsort(axis=1)
        place = source.random_raw(rows * boxes * ports).reshape(-1, ports).argsort(axis=1)
        plug = place + np.arange(rows * boxes)[:, None] // boxes * ports
        cabled = _Cabled.of(trunks, inside[behind.reshape(-1, 2)])
        if not cabled.mend(plug, source):
            continue
        number, position = np.divmod(np.arange(trunks.size // 2 * ports), ports)
        return Boxes(
            switch=cabled.ends(plug).reshape(-1, 2),
            box=trunks[number],
            front=cabled.port.swapaxes(1, 2).reshape(-1, 2),
            lane=behind.reshape(-1, 2)[number],
            trunk=number,
            position=position,
        )


def _nearest(times: int, unit: int) -> str:
    near = f"the nearest are {times * unit} and {(times + 1) * unit}"
    return near if times else f"the smallest is {unit}"


def _problem(key: str, required: str, given: object, todo: str) -> Problem:
    return Problem(key=key, required=required, given=str(given), todo=todo)


@dataclass(frozen=True, slots=True)
class _Cabled:
    """Trunks between boxes: int64[T, 2], and port, int64[T, 2, P]: at both ends that of a link."""

    trunks: NDArray[np.int64]
    port: NDArray[np.int64]
    far: list[list[tuple[int, NDArray[np.int64]]]]
    """By box its trunks: the other box, and int64[P], the port there by the port here."""

    @classmethod
    def of(cls, trunks: NDArray[np.int64], port: NDArray[np.int64]) -> _Cabled:
        """A straight trunk joins what is at the same position of its ends."""
        far: list[list[tuple[int, NDArray[np.int64]]]] = [[] for _ in range(trunks.max() + 1)]
        for (a, b), (here, there) in zip(trunks.tolist(), port, strict=True):
            far[a].append((b, there[here.argsort()]))
            far[b].append((a, here[there.argsort()]))
        return cls(trunks, port, far)

    def ends(self, plug: Plugs) -> NDArray[np.int64]:
        """int64[T, P, 2]: the switches that each link joins."""
        joined: NDArray[np.int64] = plug[self.trunks[:, :, None], self.port].swapaxes(1, 2)
        return joined

    def mend(self, plug: Plugs, source: np.random.PCG64) -> bool:
        """Let plugs change places at a box, at random, until no link is a loop or doubled.

        A change that makes more of these is taken back. False in the rare case that some stay.
        """
        joined = Counter(map(tuple, np.sort(self.ends(plug).reshape(-1, 2)).tolist()))
        for _ in range(TRIES):
            if not len(bad := self._clashes(plug)):
                return True
            for trunk, position in bad.tolist():
                draw = int(source.random_raw())
                end, other = draw % 2, draw // 2 % plug.shape[1]
                box = int(self.trunks[trunk, end])
                ports = [int(self.port[trunk, end, position]), other]
                before = self._links(plug, box, ports)
                ended = _count(joined, before, -1)
                plug[box, ports] = plug[box, ports[::-1]]
                after = self._links(plug, box, ports)
                if _count(joined, after, 1) > ended:
                    _count(joined, after, -1)
                    plug[box, ports] = plug[box, ports[::-1]]
                    _count(joined, before, 1)
        return False

    def _links(self, plug: Plugs, box: int, ports: list[int]) -> list[tuple[int, int]]:
        """The links of ports of a box."""
        ends = [(int(plug[box, p]), int(plug[b, to[p]])) for p in ports for b, to in self.far[box]]
        return [(min(pair), max(pair)) for pair in ends]

    def _clashes(self, plug: Plugs) -> NDArray[np.int64]:
        """int64[n, 2], trunk and position of the links that are loops or double another one."""
        ends = np.sort(self.ends(plug))
        bad = np.ones(ends.shape[:2], np.bool_)
        bad.flat[np.unique(ends @ [plug.size, 1], return_index=True)[1]] = False
        return np.argwhere(bad | (ends[..., 0] == ends[..., 1]))


def _count(joined: Counter[tuple[int, ...]], links: list[tuple[int, int]], step: int) -> int:
    """Add links (step 1) or take them away (-1); how many of them are loops or double others."""
    found = 0
    for link in links:
        joined[link] += min(step, 0)
        found += link[0] == link[1] or joined[link] > 0
        joined[link] += max(step, 0)
    return found


def _rows(topology: Topology, start: int | None) -> Layout:  # noqa: ARG001
    """The layout by rows, with their boxes in them."""
    row, position = np.divmod(
        np.arange(topology.graph.order, dtype=np.int32), int(topology.parameters["ports"])
    )
    return Layout.of_one_kind("rows", row, position, "row")
