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
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from compilers.proof.lossless.channels import ranking
from compilers.tables.build import Build
from compilers.tables.fib import MOST_HOPS, Fib

LAYER_CELLS_AT_ONCE = 1 << 22
"""The most pairs of switches whose paths are followed together."""
RISES_FIRST, FALLS_FIRST = np.uint8(1), np.uint8(2)
"""Bits of the shapes of a path: it never rises after it fell; it never falls after it rose."""
UNSET = 255
"""In place of a layer: the pair is in none yet."""


class Wait(NamedTuple):
    """Packets that came over a link wait for the next link of their path."""

    link: int
    """The link that they came over."""
    next_link: int
    """The link that they wait for."""


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
    sends = ends[:, None] & ends & ~np.eye(len(ends), dtype=bool)
    layer = np.where(sends, UNSET, 0).astype(np.uint8)
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
    """The bits of the shapes that each path to an endpoint has, uint8[S, S]."""
    rank = ranking(build)
    shapes = np.zeros((len(rank), len(rank)), np.uint8)
    fib = Fib.of(build.tables, build.wiring.cables())
    size = max(1, LAYER_CELLS_AT_ONCE // len(rank))
    for first in range(0, len(ends), size):
        block = ends[first : first + size]
        next_switch, column = fib.next_switch(block), np.arange(len(block))
        # A missing switch sends nothing: its packets count as arrived.
        reached = np.where(build.topology.present[:, None], np.arange(len(rank))[:, None], block)
        fell, rose = np.zeros(next_switch.shape, bool), np.zeros(next_switch.shape, bool)
        shape = np.full(next_switch.shape, RISES_FIRST | FALLS_FIRST)
        for _ in range(MOST_HOPS):
            following = next_switch[reached, column]
            moves = following != reached
            if not moves.any():
                break
            rises = rank[following] > rank[reached]
            shape[fell & rises & moves] &= ~RISES_FIRST
            shape[rose & ~rises & moves] &= ~FALLS_FIRST
            rose |= rises & moves
            fell |= ~rises & moves
            reached = following
        if (reached != block).any():
            raise ValueError("a packet does not arrive")
        shapes[:, block] = shape
    return shapes


def _links(
    build: Build, source: NDArray[np.int64], destination: NDArray[np.int64]
) -> NDArray[np.int64]:
    """The links of each path as numbers, from·S + to, int64[n, h]; -1 beyond the last."""
    order = build.tables.switches
    next_switch = Fib.of(build.tables, build.wiring.cables()).next_switch(np.arange(order))
    reached, links = source, []
    while (reached != destination).any():
        following = next_switch[reached, destination].astype(np.int64)
        links.append(np.where(following == reached, -1, reached * order + following))
        reached = following
    return np.stack(links, axis=1) if links else np.zeros((0, 1), np.int64)


def _without_cycles(links: NDArray[np.int64]) -> NDArray[np.bool_]:
    """The paths to keep so that no cycle of waits is left, bool[n], from links int64[n, h]."""
    crossed, link = np.unique(links, return_inverse=True)
    link, count = link.reshape(links.shape), len(crossed)
    wait = np.where(links[:, 1:] < 0, -1, link[:, :-1] * count + link[:, 1:])
    caused, path_counts = np.unique(wait[wait >= 0], return_counts=True)
    waits = [Wait(*divmod(number, count)) for number in caused.tolist()]
    removed = _removed(count, dict(zip(waits, path_counts.tolist(), strict=True)))
    numbers = [removed_wait.link * count + removed_wait.next_link for removed_wait in removed]
    stays: NDArray[np.bool_] = np.logical_and.reduce(np.isin(wait, numbers, invert=True), axis=1)
    return stays


def _removed(links: int, path_counts: dict[Wait, int]) -> set[Wait]:
    """Waits to remove so that there is no cycle: of each cycle met, the one with fewest paths.

    This is one depth-first search. When it meets a link of its current path, it removes a wait of
    that cycle, and goes back to the link that waits. It searches the links that it leaves again
    later.

    Args:
        links: how many there are.
        path_counts: by wait, ascending, how many paths cause it.
    """
    waits_for: list[list[int]] = [[] for _ in range(links)]
    for wait in path_counts:
        waits_for[wait.link].append(wait.next_link)
    removed: set[Wait] = set()
    is_done, tried, depth = bytearray(links), [0] * links, [-1] * links
    for root in range(links):
        stack = [] if is_done[root] else [root]
        if stack:
            depth[root] = 0
        while stack:
            link = stack[-1]
            if tried[link] == len(waits_for[link]):
                is_done[stack.pop()], depth[link] = 1, -1
                continue
            next_link = waits_for[link][tried[link]]
            tried[link] += 1
            if is_done[next_link] or (link, next_link) in removed:
                continue
            if depth[next_link] < 0:
                depth[next_link] = len(stack)
                stack.append(next_link)
                continue
            cycle = pairwise([*stack[depth[next_link] :], next_link])
            rarest = min((Wait(*links_of) for links_of in cycle), key=path_counts.__getitem__)
            removed.add(rarest)
            while stack[-1] != rarest.link:
                abandoned = stack.pop()
                depth[abandoned], tried[abandoned] = -1, 0
    return removed
