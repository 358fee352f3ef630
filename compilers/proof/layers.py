"""Layers: one channel a pair, for lossless fabrics whose packets keep theirs all the way.

An InfiniBand packet has one service level for its whole path, and so one lane. Pairs are split into
layers such that the waits within each (`compilers.proof.channels`) close no circle:

- Rank the switches. A path that rises and then falls waits for nothing that waits for it, whatever
  the others are, as long as they do so too; so do paths that fall and then rise. These two layers
  hold every path of two links: PolarFly needs no more.
- What has neither shape goes to further layers, each filled with all that is left and then rid of
  its circles: where one closes, the wait that the fewest paths cause is taken out, and they move
  on (the last step of DFSSSP: Domke, Hoefler, Nagel, IPDPS 2011, section IV).
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from compilers.proof.channels import ranking
from compilers.tables.build import Build
from compilers.tables.walk import MOST_HOPS, Walker

LAYER_CELLS_AT_ONCE = 1 << 22
RISES_FIRST, FALLS_FIRST = np.uint8(1), np.uint8(2)
UNSET = 255

Wait = tuple[int, int]
"""A link and the link that packets which came over it go on by."""


@dataclass(frozen=True, slots=True, eq=False)
class Layers:
    """layer: uint8[S, S], that of the packets from each switch to each other; count: how many."""

    layer: NDArray[np.uint8]
    count: int


def layers(build: Build) -> Layers:
    """Split the minimal paths between the endpoints of a build into layers free of deadlock.

    Alternates are not followed. Pairs that send nothing are in layer 0.

    Raises:
        ValueError: a packet does not arrive.
    """
    ends = build.topology.endpoints
    wanted = ends[:, None] & ends & ~np.eye(len(ends), dtype=bool)
    layer = np.where(wanted, UNSET, 0).astype(np.uint8)
    count = 0
    shapes = _shapes(build, np.flatnonzero(ends))
    for which in (RISES_FIRST, FALLS_FIRST):
        here = (layer == UNSET) & (shapes & which > 0)
        if here.any():
            layer[here] = count
            count += 1
    source, destination = np.nonzero(layer == UNSET)
    links = _links(build, source, destination)
    while len(source):
        stays = _without_circles(links)
        layer[source[stays], destination[stays]] = count
        source, destination, links = source[~stays], destination[~stays], links[~stays]
        count += 1
    layer.flags.writeable = False
    return Layers(layer, count)


def _shapes(build: Build, ends: NDArray[np.int64]) -> NDArray[np.uint8]:
    """uint8[S, S]: the bits of the shapes that each path to an endpoint has."""
    rank = ranking(build)
    shapes = np.zeros((len(rank), len(rank)), np.uint8)
    walker = Walker.of(build.tables, build.wiring.cables())
    size = max(1, LAYER_CELLS_AT_ONCE // len(rank))
    for first in range(0, len(ends), size):
        block = ends[first : first + size]
        after, column = walker.next_switch(block), np.arange(len(block))
        # Nothing starts at a switch that is not there: it counts as arrived.
        at = np.where(build.topology.present[:, None], np.arange(len(rank))[:, None], block)
        fell, rose = np.zeros(after.shape, bool), np.zeros(after.shape, bool)
        shape = np.full(after.shape, RISES_FIRST | FALLS_FIRST)
        for _ in range(MOST_HOPS):
            there = after[at, column]
            moving = there != at
            if not moving.any():
                break
            up = rank[there] > rank[at]
            shape[fell & up & moving] &= ~RISES_FIRST
            shape[rose & ~up & moving] &= ~FALLS_FIRST
            rose |= up & moving
            fell |= ~up & moving
            at = there
        if (at != block).any():
            raise ValueError("a packet does not arrive")
        shapes[:, block] = shape
    return shapes


def _links(
    build: Build, source: NDArray[np.int64], destination: NDArray[np.int64]
) -> NDArray[np.int64]:
    """int64[n, h]: the links of each path, from·S + to, -1 beyond the last."""
    order = build.tables.switches
    after = Walker.of(build.tables, build.wiring.cables()).next_switch(np.arange(order))
    at, links = source, []
    while (at != destination).any():
        there = after[at, destination].astype(np.int64)
        links.append(np.where(there == at, -1, at * order + there))
        at = there
    return np.stack(links, axis=1) if links else np.zeros((0, 1), np.int64)


def _without_circles(links: NDArray[np.int64]) -> NDArray[np.bool_]:
    """bool[n]: which of the paths to keep, so that no circle of waits is left."""
    known, link = np.unique(links, return_inverse=True)
    link, count = link.reshape(links.shape), len(known)
    wait = np.where(links[:, 1:] < 0, -1, link[:, :-1] * count + link[:, 1:])
    caused, paths = np.unique(wait[wait >= 0], return_counts=True)
    ahead: list[list[int]] = [[] for _ in range(count)]
    for before, after in zip(*(part.tolist() for part in divmod(caused, count)), strict=True):
        ahead[before].append(after)
    removed = [
        before * count + after
        for before, after in _removed(
            ahead, dict(zip(caused.tolist(), paths.tolist(), strict=True))
        )
    ]
    kept: NDArray[np.bool_] = np.logical_and.reduce(np.isin(wait, removed, invert=True), axis=1)
    return kept


def _removed(ahead: list[list[int]], paths: dict[int, int]) -> set[Wait]:
    """Waits without which there is no circle: of each that is met, the one with the fewest paths.

    One depth-first search. Where it meets a link that it stands on, it takes a wait out and goes
    back to the link before it; what it has left again is searched anew.

    Args:
        ahead: the links that each link's packets wait for.
        paths: how many paths cause the wait of link a for link b, by a·links + b.
    """
    count = len(ahead)
    removed: set[Wait] = set()
    done, tried, depth = bytearray(count), [0] * count, [-1] * count
    for root in range(count):
        stack = [] if done[root] else [root]
        if stack:
            depth[root] = 0
        while stack:
            here = stack[-1]
            if tried[here] == len(ahead[here]):
                done[stack.pop()], depth[here] = 1, -1
                continue
            there = ahead[here][tried[here]]
            tried[here] += 1
            if done[there] or (here, there) in removed:
                continue
            if depth[there] < 0:
                depth[there] = len(stack)
                stack.append(there)
                continue
            circle = [*stack[depth[there] :], there]
            rarest = min(pairwise(circle), key=lambda wait: paths[wait[0] * count + wait[1]])
            removed.add(rarest)
            while stack[-1] != rarest[0]:
                left = stack.pop()
                depth[left], tried[left] = -1, 0
    return removed
