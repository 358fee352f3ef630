"""Layers: one channel per pair of switches, for lossless fabrics whose packets keep their channel.

An InfiniBand packet has one service level for its whole path, and so one lane. Pairs are split into
layers such that the waits within each layer (`compilers.proof.lossless.channels`) form no cycle:

- Rank the switches. Paths that rise and then fall cause no cycle among themselves, and neither do
  paths that fall and then rise. These two layers hold every path of two links, so PolarFly needs no
  more.
- Paths of neither shape go to further layers. Each takes all the paths that are left; while it has
  a cycle, the wait of that cycle that the fewest paths cause is removed, and these paths move on to
  the next layer (the last step of DFSSSP: Domke, Hoefler, Nagel, IPDPS 2011, section IV).
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from compilers.proof.lossless.channels import ranking
from compilers.tables.build import Build
from compilers.tables.fib import MOST_HOPS, Fib

LAYER_CELLS_AT_ONCE = 1 << 22
RISES_FIRST, FALLS_FIRST = np.uint8(1), np.uint8(2)
UNSET = 255

Wait = tuple[int, int]
"""A link, and the link that packets which came over it wait for."""


@dataclass(frozen=True, slots=True, eq=False)
class Layers:
    """The layers of a build, in none of which packets wait in a circle."""

    layer: NDArray[np.uint8]
    """uint8[S, S], the layer of the packets from each switch to each other one."""
    count: int
    """How many layers there are."""


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
    for shape in (RISES_FIRST, FALLS_FIRST):
        fits = (layer == UNSET) & (shapes & shape > 0)
        if fits.any():
            layer[fits] = count
            count += 1
    source, destination = np.nonzero(layer == UNSET)
    links = _links(build, source, destination)
    while len(source):
        stays = _without_cycles(links)
        layer[source[stays], destination[stays]] = count
        source, destination, links = source[~stays], destination[~stays], links[~stays]
        count += 1
    layer.flags.writeable = False
    return Layers(layer, count)


def _shapes(build: Build, ends: NDArray[np.int64]) -> NDArray[np.uint8]:
    """uint8[S, S]: the bits of the shapes that each path to an endpoint has."""
    rank = ranking(build)
    shapes = np.zeros((len(rank), len(rank)), np.uint8)
    fib = Fib.of(build.tables, build.wiring.cables())
    size = max(1, LAYER_CELLS_AT_ONCE // len(rank))
    for first in range(0, len(ends), size):
        block = ends[first : first + size]
        after, column = fib.next_switch(block), np.arange(len(block))
        # A missing switch sends nothing: its packets count as arrived.
        at = np.where(build.topology.present[:, None], np.arange(len(rank))[:, None], block)
        fell, rose = np.zeros(after.shape, bool), np.zeros(after.shape, bool)
        shape = np.full(after.shape, RISES_FIRST | FALLS_FIRST)
        for _ in range(MOST_HOPS):
            following = after[at, column]
            moving = following != at
            if not moving.any():
                break
            up = rank[following] > rank[at]
            shape[fell & up & moving] &= ~RISES_FIRST
            shape[rose & ~up & moving] &= ~FALLS_FIRST
            rose |= up & moving
            fell |= ~up & moving
            at = following
        if (at != block).any():
            raise ValueError("a packet does not arrive")
        shapes[:, block] = shape
    return shapes


def _links(
    build: Build, source: NDArray[np.int64], destination: NDArray[np.int64]
) -> NDArray[np.int64]:
    """int64[n, h]: the links of each path, from·S + to, -1 beyond the last."""
    order = build.tables.switches
    after = Fib.of(build.tables, build.wiring.cables()).next_switch(np.arange(order))
    at, links = source, []
    while (at != destination).any():
        following = after[at, destination].astype(np.int64)
        links.append(np.where(following == at, -1, at * order + following))
        at = following
    return np.stack(links, axis=1) if links else np.zeros((0, 1), np.int64)


def _without_cycles(links: NDArray[np.int64]) -> NDArray[np.bool_]:
    """bool[n]: the paths to keep, so that no cycle of waits is left."""
    crossed, link = np.unique(links, return_inverse=True)
    link, count = link.reshape(links.shape), len(crossed)
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
    """Waits to remove so that there is no cycle: of each cycle found, the one with fewest paths.

    One depth-first search. When it meets a link of its current path, it removes a wait of that
    cycle and goes back to the link before it; the links it leaves are searched again later.

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
            link = stack[-1]
            if tried[link] == len(ahead[link]):
                done[stack.pop()], depth[link] = 1, -1
                continue
            following = ahead[link][tried[link]]
            tried[link] += 1
            if done[following] or (link, following) in removed:
                continue
            if depth[following] < 0:
                depth[following] = len(stack)
                stack.append(following)
                continue
            cycle = [*stack[depth[following] :], following]
            rarest = min(pairwise(cycle), key=lambda wait: paths[wait[0] * count + wait[1]])
            removed.add(rarest)
            while stack[-1] != rarest[0]:
                left = stack.pop()
                depth[left], tried[left] = -1, 0
    return removed
