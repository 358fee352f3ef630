"""Splits the pairs of switches into layers free of deadlock, for packets that keep their channel.

An InfiniBand packet has one service level for its whole path, and so one virtual lane: the lane of
its pair's layer. InfiniBand's target and the lossless plans of Ethernet switches
(`extensions.lossless.priorities`) call `deadlock_free_layers`.

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
"""Bits of the shapes of a path: first all rising links, then all falling ones; or the other way
round. A path that only rises, or only falls, has both shapes."""
UNSET = 255
"""In the place of a layer's number: the pair is in no layer yet."""
NO_LINK = -1
"""In the place of a link: the path has ended."""
NOT_ON_PATH = -1
"""In the place of the position of a link: it is not on the path of the search."""


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


def deadlock_free_layers(build: Build) -> Layers:
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
    # Paths of neither shape: each layer takes those that cause no cycle.
    links = _path_links(build, source, destination)
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
        destination = ends[first : first + size]
        # A missing switch sends nothing: its packets count as arrived.
        source = np.where(
            build.topology.present[:, None], np.arange(len(rank))[:, None], destination
        )
        shapes[:, destination] = _shapes_towards(
            destination, source, fib.next_switch(destination), rank
        )
    return shapes


def _shapes_towards(
    destination: NDArray[np.int64],
    source: NDArray[np.int64],
    next_switch: NDArray[np.integer],
    rank: NDArray[np.integer],
) -> NDArray[np.uint8]:
    """The shapes of the paths from all switches to n destinations, uint8[S, n].

    All paths are followed at the same time, a link in each round.

    Args:
        destination: int64[n], the destinations.
        source: int64[S, n], where each path begins.
        next_switch: int[S, n], the next switch from each switch to each destination.
        rank: int[S], the ranks of the switches.
    """
    column, at_switch = np.arange(len(destination)), source.astype(next_switch.dtype)
    # Whether a path has fallen, and has risen, before the link of this round.
    has_fallen, has_risen = np.zeros(source.shape, bool), np.zeros(source.shape, bool)
    shape = np.full(source.shape, RISES_FIRST | FALLS_FIRST)
    for _ in range(MOST_HOPS):
        following = next_switch[at_switch, column]
        moves = following != at_switch
        if not moves.any():
            break
        rises = rank[following] > rank[at_switch]
        shape[has_fallen & rises & moves] &= ~RISES_FIRST
        shape[has_risen & ~rises & moves] &= ~FALLS_FIRST
        has_risen |= rises & moves
        has_fallen |= ~rises & moves
        at_switch = following
    if (at_switch != destination).any():
        raise ValueError("a packet does not arrive")
    return shape


def _path_links(
    build: Build, source: NDArray[np.int64], destination: NDArray[np.int64]
) -> NDArray[np.int64]:
    """The links of n paths, int64[n, h]; NO_LINK beyond the last.

    The number of the link from switch s to switch t is s·S + t.

    Args:
        build: the build of S switches, whose minimal paths are followed.
        source: int64[n], the first switch of each path.
        destination: int64[n], the last one.
    """
    switches = build.tables.switches
    next_switch = Fib.of(build.tables, build.wiring.far_by_port()).next_switch(np.arange(switches))
    at_switch, links = source, []
    while (at_switch != destination).any():
        following = next_switch[at_switch, destination].astype(np.int64)
        has_arrived = following == at_switch
        links.append(np.where(has_arrived, NO_LINK, at_switch * switches + following))
        at_switch = following
    return np.stack(links, axis=1) if links else np.zeros((0, 1), np.int64)


def _without_cycles(links: NDArray[np.int64]) -> NDArray[np.bool_]:
    """The paths to keep so that no cycle of dependencies is left, bool[n].

    Args:
        links: int64[n, h], the links of each of n paths; NO_LINK beyond the last.
    """
    # The links that are used are numbered from 0 to count - 1. NO_LINK may be one of them, but it
    # is in no dependency. A dependency is the number of its link times count, plus the next link.
    used_links, number = np.unique(links, return_inverse=True)
    number, count = number.reshape(links.shape), len(used_links)
    continues = links[:, 1:] != NO_LINK
    dependency = np.where(continues, number[:, :-1] * count + number[:, 1:], -1)
    dependencies, path_counts = np.unique(dependency[continues], return_counts=True)
    counts = {
        Dependency(*divmod(packed, count)): paths
        for packed, paths in zip(dependencies.tolist(), path_counts.tolist(), strict=True)
    }
    removed = [link * count + next_link for link, next_link in _cycle_breakers(count, counts)]
    is_kept = np.isin(dependency, removed, invert=True)
    stays: NDArray[np.bool_] = np.logical_and.reduce(is_kept, axis=1)
    return stays


def _cycle_breakers(links: int, path_counts: dict[Dependency, int]) -> set[Dependency]:
    """The dependencies to remove so that no cycle is left.

    This is one depth-first search. When it meets a link of its current path, it removes the
    dependency of that cycle with the fewest paths, and goes back to that dependency's first link.
    It searches the links that it goes back over again later.

    A link is in one of three states:

    | state | position | is_done | searched |
    |---|---|---|---|
    | new, or gone back over | NOT_ON_PATH | 0 | 0 |
    | on the current path | its place on the path | 0 | how many of its next links were tried |
    | done: no cycle leads over it | NOT_ON_PATH | 1 | all |

    Args:
        links: the number of links.
        path_counts: how many paths cause each dependency, in ascending order of dependencies.
    """
    next_links: list[list[int]] = [[] for _ in range(links)]
    for dependency in path_counts:
        next_links[dependency.link].append(dependency.next_link)
    removed: set[Dependency] = set()
    is_done, searched, position = bytearray(links), [0] * links, [NOT_ON_PATH] * links
    for root in range(links):
        if is_done[root]:
            continue
        path, position[root] = [root], 0
        while path:
            link = path[-1]
            if searched[link] == len(next_links[link]):
                is_done[path.pop()], position[link] = 1, NOT_ON_PATH
                continue
            next_link = next_links[link][searched[link]]
            searched[link] += 1
            if is_done[next_link] or (link, next_link) in removed:
                continue
            if position[next_link] == NOT_ON_PATH:
                position[next_link] = len(path)
                path.append(next_link)
                continue
            cycle = pairwise([*path[position[next_link] :], next_link])
            rarest = min(
                (Dependency(*two_links) for two_links in cycle), key=path_counts.__getitem__
            )
            removed.add(rarest)
            while path[-1] != rarest.link:
                gone_back_over = path.pop()
                position[gone_back_over], searched[gone_back_over] = NOT_ON_PATH, 0
    return removed
