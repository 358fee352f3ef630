"""Virtual lanes for the pairs of a PolarStar's LID layers, so that no packets wait in a cycle.

A pair of switches has one lane for its paths in both layers. Lanes 0 and 1 are for pairs whose
paths have one *shape*: they rise and then fall, or fall and then rise (`star_paths`). All other
pairs are placed one by one, the longest paths first. Each takes the first lane where its *channel
dependencies* close no cycle: a link of a path depends on the next link of the path. To find cycles,
each lane has the transitive closure of its dependencies. A pair that fits no lane gets another
path, unless another pair's path leads over its switch.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from extensions.infiniband.layer_routes import UNSET, Lanes
from extensions.infiniband.star_paths import (
    FALLS_FIRST,
    LAYERS,
    NO_LINK,
    NO_SWITCH,
    RISES_FIRST,
    SHAPES,
    Flags,
    Numbers,
    path_links,
)


@dataclass(frozen=True, slots=True, eq=False)
class _Dependencies:
    """Channel dependencies: pairs of links, by their numbers."""

    link: Numbers
    """int64[n], the link over which packets come."""
    next_link: Numbers
    """int64[n], the link over which they go on."""


@dataclass(slots=True, eq=False)
class LanePlacement:
    """The placement of pairs in lanes."""

    neighbours: Numbers
    """int64[S, K], the neighbours of each switch."""
    paths: Numbers
    """int64[S, S, L, 6], the switches of each path, NO_SWITCH after the last."""
    have_shape: Flags
    """bool[SHAPES, S, S], whether both paths of a pair have each of the shapes."""
    lanes: int
    """How many lanes there are."""
    link_number: Numbers = field(init=False)
    """int64[S·S], the number of the link from switch s to switch t at s·S + t; -1: no link."""
    closure: Flags = field(init=False)
    """bool[lanes, links, links], the reflexive and transitive closure of each lane's dependencies:
    whether the first link depends on the second, directly or over other links."""

    def __post_init__(self) -> None:
        switches = len(self.neighbours)
        source, column = np.nonzero(self.neighbours >= 0)
        self.link_number = np.full(switches * switches, -1, np.int64)
        link = source * switches + self.neighbours[source, column]
        self.link_number[link] = np.arange(len(source))
        self.closure = np.zeros((self.lanes, len(source), len(source)), np.bool_)
        self.closure[:] = np.eye(len(source), dtype=np.bool_)

    def place_all(self) -> Lanes:
        """Place all pairs: their lanes, uint8[S, S], UNSET for those that fit none.

        Some pairs get other paths.
        """
        # A pair whose paths have both shapes is in the lane of the first one.
        lane_by_second = np.where(self.have_shape[FALLS_FIRST], FALLS_FIRST, UNSET)
        lane = np.where(self.have_shape[RISES_FIRST], RISES_FIRST, lane_by_second).astype(np.uint8)
        np.fill_diagonal(lane, 0)
        for shape in range(SHAPES):
            self._close(shape, lane)
        unplaced = []
        for pair in self._longest_first(np.argwhere(lane == UNSET)):
            lane[pair] = self._place(self.paths[pair])
            if lane[pair] == UNSET:
                unplaced.append(pair)
        for pair in unplaced:
            lane[pair] = self._place_with_other_paths(*pair)
        lacks_path = (self.paths[..., 0] == NO_SWITCH).any(axis=2)
        lane[lacks_path] = UNSET
        return lane

    def _longest_first(self, pairs: Numbers) -> list[tuple[int, int]]:
        """Pairs of switches, those with the most links in both paths first.

        Args:
            pairs: int64[n, 2], the source and the destination of each.
        """
        source, destination = pairs.T
        path_switches = (self.paths[source, destination] != NO_SWITCH).sum(axis=(1, 2))
        order = np.lexsort((source, destination, -path_switches))
        return list(zip(source[order].tolist(), destination[order].tolist(), strict=True))

    def _close(self, shape: int, lane: Lanes) -> None:
        """Enter the closure of lane 0 or 1, whose paths all have the lane's shape.

        The lane's rule orders links: first rising links, by the number of the switch where they
        start; then falling links, by the same number in reverse. A link depends only on links that
        are later in this order. So the closure is computed from the last link to the first.
        """
        switches, link_count = len(lane), self.closure.shape[1]
        # Each dependency once, as the number of its link times the number of links, plus the next
        # link. So those of a link follow each other.
        dependencies = self._dependencies(self.paths[lane == shape])
        numbers = np.unique(dependencies.link * link_count + dependencies.next_link)
        first_of_link = np.searchsorted(numbers, np.arange(link_count + 1) * link_count)
        # The place of each link in the order of the rule.
        source, target = np.divmod(np.flatnonzero(self.link_number >= 0), switches)
        if shape == FALLS_FIRST:  # the same rule, with the numbers of switches reversed
            source, target = switches - 1 - source, switches - 1 - target
        place = np.where(target > source, source, 2 * switches - source)
        closure = self.closure[shape]
        for link in np.argsort(-place, kind="stable").tolist():
            next_links = numbers[first_of_link[link] : first_of_link[link + 1]] % link_count
            closure[link] |= closure[next_links].any(axis=0)

    def _dependencies(self, paths: Numbers) -> _Dependencies:
        """The channel dependencies of paths: each link with the next one of its path."""
        link = path_links(paths, len(self.neighbours))
        before, after = link[..., :-1], link[..., 1:]
        continues = after != NO_LINK
        return _Dependencies(
            self.link_number[before[continues]], self.link_number[after[continues]]
        )

    def _place(self, paths: Numbers) -> int:
        """Place a pair's paths in the first lane where their dependencies close no cycle.

        Returns:
            The lane; UNSET if there is none.
        """
        new = self._dependencies(paths)
        for lane, closure in enumerate(self.closure):
            if not _close_a_cycle(new, closure):
                _add_to_closure(new, closure)
                return lane
        return UNSET

    def _place_with_other_paths(self, s: int, d: int) -> int:
        """Give the pair from s to d other paths that fit a lane; returns the lane, or UNSET."""
        for paths in self._other_paths(s, d):
            lane = self._place(paths)
            if lane != UNSET:
                self.paths[s, d] = paths
                return lane
        return UNSET

    def _other_paths(self, s: int, d: int) -> list[Numbers]:
        """Other pairs of paths from s to d without a common link, int64[L, 6] each.

        One path of the pair is replaced. A path that is part of another switch's path stays.
        """
        path_pairs = []
        for k in range(LAYERS):
            if (self.paths[:, d, k, 1] == s).any():
                continue
            for neighbour in self.neighbours[s][self.neighbours[s] >= 0].tolist():
                path_of_neighbour = self.paths[neighbour, d, k]
                is_too_long = path_of_neighbour[-1] != NO_SWITCH
                if neighbour == d or is_too_long or (path_of_neighbour == s).any():
                    continue
                paths = self.paths[s, d].copy()
                paths[k] = [s, *path_of_neighbour[:-1]]
                link = path_links(paths, len(self.neighbours))
                if not np.isin(link[0][link[0] != NO_LINK], link[1]).any():
                    path_pairs.append(paths)
        return path_pairs


def _close_a_cycle(new: _Dependencies, closure: Flags) -> bool:
    """Whether n new dependencies close a cycle, with those that a lane has already.

    Args:
        new: the new dependencies.
        closure: bool[links, links], the closure of the lane.
    """
    # bool[n, n], whether the next link of one new dependency leads to the link of another.
    leads_to = closure[new.next_link[:, None], new.link]
    for _ in range(len(new.link).bit_length()):  # squaring gives the transitive closure
        leads_to = leads_to | (leads_to @ leads_to)
    return bool(leads_to.diagonal().any())


def _add_to_closure(new: _Dependencies, closure: Flags) -> None:
    """Add new dependencies to the closure of a lane, bool[links, links].

    Whatever leads to the link of a dependency then also leads to all that its next link leads to.
    """
    for link, next_link in zip(new.link.tolist(), new.next_link.tolist(), strict=True):
        if not closure[link, next_link]:
            closure[closure[:, link]] |= closure[next_link]
