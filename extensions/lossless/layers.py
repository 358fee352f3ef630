"""Splits the pairs of switches into layers free of deadlock, for packets that keep their channel.

An InfiniBand packet has one service level for its whole path, and so one virtual lane: the lane of
its pair's layer. InfiniBand's target and the lossless plans of Ethernet switches
(`extensions.lossless.priorities`) call `layers`.

Within a layer a packet that came over a link depends on buffers at the next link of its path: a
*channel dependency*. A layer is free of deadlock if its dependencies form no cycle (Dally, Seitz,
IEEE Transactions on Computers 36, 1987; `compilers.proof.lossless.channels`):

- Rank the switches. Paths that rise and then fall in the ranks cause no cycle among themselves, and
  neither do paths that fall and then rise. These two layers hold every path of two links, so
  PolarFly needs no more.
- Paths of neither shape go to further layers. Each takes all the remaining paths; while it has a
  cycle, the dependency of that cycle that the fewest paths cause is removed, and these paths move
  on to the next layer (the last step of DFSSSP: Domke, Hoefler, Nagel, IPDPS 2011, section IV).
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from compilers.proof.lossless.channels import switch_ranks
from compilers.tables.build import Build
from compilers.tables.fib import MOST_HOPS, Fib

LAYER_CELLS_AT_ONCE = 1 << 22
"""The most pairs of switches whose paths are followed together."""
RISES_FIRST, FALLS_FIRST = np.uint8(1), np.uint8(2)
"""Bits of the shapes of a path: it never rises after it fell; it never falls after it rose."""
UNSET = 255
"""In the place of a layer's number: the pair is in no layer yet."""


class Dependency(NamedTuple):
    """A channel dependency: packets that came over a link go on over the next link."""

    link: int
    """The link that they came over."""
    next_link: int
    """The link that they go on over."""


@dataclass(frozen=True, slots=True, eq=False)
class Layers:
    """The layers of a build, each without a cycle of channel dependencies."""

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
    """The shapes of each path to an endpoint, bits of RISES_FIRST and FALLS_FIRST, uint8[S, S]."""
    rank = switch_ranks(build)
    shapes = np.zeros((len(rank), len(rank)), np.uint8)
    fib = Fib.of(build.tables, build.wiring.far_by_port())
    size = max(1, LAYER_CELLS_AT_ONCE // len(rank))
    for first in range(0, len(ends), size):
        block = ends[first : first + size]
        next_switch, column = fib.next_switch(block), np.arange(len(block))
        # A missing switch sends nothing: its packets count as arrived.
        at_switch = np.where(build.topology.present[:, None], np.arange(len(rank))[:, None], block)
        fell, rose = np.zeros(next_switch.shape, bool), np.zeros(next_switch.shape, bool)
        shape = np.full(next_switch.shape, RISES_FIRST | FALLS_FIRST)
        for _ in range(MOST_HOPS):
            following = next_switch[at_switch, column]
            moves = following != at_switch
            if not moves.any():
                break
            rises = rank[following] > rank[at_switch]
            shape[fell & rises & moves] &= ~RISES_FIRST
            shape[rose & ~rises & moves] &= ~FALLS_FIRST
            rose |= rises & moves
            fell |= ~rises & moves
            at_switch = following
        if (at_switch != block).any():
            raise ValueError("a packet does not arrive")
        shapes[:, block] = shape
    return shapes


def _links(
    build: Build, source: NDArray[np.int64], destination: NDArray[np.int64]
) -> NDArray[np.int64]:
    """The links of each path as numbers, from·S + to, int64[n, h]; -1 beyond the last."""
    switches = build.tables.switches
    next_switch = Fib.of(build.tables, build.wiring.far_by_port()).next_switch(np.arange(switches))
    at_switch, links = source, []
    while (at_switch != destination).any():
        following = next_switch[at_switch, destination].astype(np.int64)
        links.append(np.where(following == at_switch, -1, at_switch * switches + following))
        at_switch = following
    return np.stack(links, axis=1) if links else np.zeros((0, 1), np.int64)


def _without_cycles(links: NDArray[np.int64]) -> NDArray[np.bool_]:
    """The paths to keep so that no cycle of dependencies is left.

    Args:
        links: int64[n, h], the links of each of n paths; -1 beyond the last.

    Returns:
        bool[n].
    """
    used_links, link = np.unique(links, return_inverse=True)
    link, count = link.reshape(links.shape), len(used_links)
    dependency = np.where(links[:, 1:] < 0, -1, link[:, :-1] * count + link[:, 1:])
    numbers, path_counts = np.unique(dependency[dependency >= 0], return_counts=True)
    dependencies = [Dependency(*divmod(number, count)) for number in numbers.tolist()]
    counts = dict(zip(dependencies, path_counts.tolist(), strict=True))
    removed = [link * count + next_link for link, next_link in _cycle_breakers(count, counts)]
    is_free = np.isin(dependency, removed, invert=True)
    stays: NDArray[np.bool_] = np.logical_and.reduce(is_free, axis=1)
    return stays


def _cycle_breakers(links: int, path_counts: dict[Dependency, int]) -> set[Dependency]:
    """The dependencies to remove so that no cycle is left.

    This is one depth-first search. When it meets a link of its current path, it removes the
    dependency of that cycle with the fewest paths, and goes back to that dependency's first link.
    It searches the links that it goes back over again later.

    Args:
        links: the number of links.
        path_counts: how many paths cause each dependency, in ascending order of dependencies.
    """
    next_links: list[list[int]] = [[] for _ in range(links)]
    for dependency in path_counts:
        next_links[dependency.link].append(dependency.next_link)
    removed: set[Dependency] = set()
    is_done = bytearray(links)
    searched = [0] * links
    """How many of its next links the search has gone to, by link."""
    depth = [-1] * links
    """Where each link is on the stack; -1 for none."""
    for root in range(links):
        stack = [] if is_done[root] else [root]
        if stack:
            depth[root] = 0
        while stack:
            link = stack[-1]
            if searched[link] == len(next_links[link]):
                is_done[stack.pop()], depth[link] = 1, -1
                continue
            next_link = next_links[link][searched[link]]
            searched[link] += 1
            if is_done[next_link] or (link, next_link) in removed:
                continue
            if depth[next_link] < 0:
                depth[next_link] = len(stack)
                stack.append(next_link)
                continue
            cycle = pairwise([*stack[depth[next_link] :], next_link])
            rarest = min(
                (Dependency(*two_links) for two_links in cycle), key=path_counts.__getitem__
            )
            removed.add(rarest)
            while stack[-1] != rarest.link:
                abandoned = stack.pop()
                depth[abandoned], searched[abandoned] = -1, 0
    return removed
