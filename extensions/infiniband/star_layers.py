"""LID layers of a PolarStar: two in-trees towards every switch, and lanes for pairs of paths.

Layer k enters destination d only by every second of its neighbours, from the k-th on. A minimal
path belongs to the layer by which it enters. In the other layer a switch goes to a neighbour whose
path there shares no link with its minimal one. Of these neighbours it takes one with the shortest
path; of these one whose path keeps to a rule of lane 0 or 1 (`extensions.lossless.layers`); of
these the one over the least loaded link. No path has more than 5 links.

A pair has one lane for both paths. Lanes 0 and 1 take the pairs whose paths rise and then fall, or
fall and then rise, by the switches' numbers. All other pairs are placed one by one, the longest
paths first, each in the first lane where its waits close no cycle. For that, each lane has which
links a link waits for, over however many others. A pair that fits no lane gets another path, unless
another pair's path leads over its switch.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from itertools import product

import numpy as np
from numpy.typing import NDArray

from compilers.topology.adjacency import Graph

LAYERS = 2
"""How many layers a PolarStar has."""
MOST_LINKS = 5
"""The most links of a path."""
MOST_SWITCHES = 256
"""The most switches. For more, the waits of all links, bool[lanes, links, links], take too long."""
UNSET = 255
"""In place of a lane: there is none for the pair."""
NEVER = np.iinfo(np.int64).max
"""The cost of a link that may not be taken."""

Numbers = NDArray[np.int64]
Flags = NDArray[np.bool_]
Lanes = NDArray[np.uint8]


@dataclass(frozen=True, slots=True, eq=False)
class LayerRoutes:
    """The routes of L layers, and the lane of each pair of S switches."""

    next_switch: Numbers
    """int64[L, S, S], the next switch from each switch to each other, in each layer."""
    lane: Lanes
    """uint8[S, S], the lane of the paths from each switch to each other; UNSET if they fit none."""


def star_layers(graph: Graph, minimal: Numbers, lanes: int) -> LayerRoutes:
    """Find two layers for a PolarStar, and the lanes of its pairs.

    Args:
        graph: of a PolarStar.
        minimal: int64[S, S], the next switch of minimal routes.
        lanes: the most that ports can run.
    """
    near = graph.padded().astype(np.int64)
    trees = _TreeSearch(near, minimal)
    for destination in range(graph.order):
        trees.towards(destination)
    lane = _LanePlacement(near, trees.paths, trees.fits, lanes).placed()
    next_switch = np.moveaxis(trees.paths[..., 1], 2, 0).copy()
    switches = np.arange(graph.order)
    next_switch[:, switches, switches] = switches
    return LayerRoutes(next_switch, lane)


def shapes(path: Numbers) -> Flags:
    """Whether paths never rise after a fall, and whether they never fall after a rise, bool[2, …].

    Args:
        path: int64[…, h], the numbers of a path's switches, -1 after the last.
    """
    rises, continues = path[..., 1:] > path[..., :-1], path[..., 2:] >= 0
    before, after = rises[..., :-1], rises[..., 1:]
    never_rises_again = before | ~after | ~continues
    never_falls_again = ~before | after | ~continues
    both: Flags = np.logical_and.reduce(np.stack((never_rises_again, never_falls_again)), axis=-1)
    return both


def _links(path: Numbers, order: int) -> Numbers:
    """The links of paths as numbers, from·S + to, -1 after the last."""
    return np.where(path[..., 1:] >= 0, path[..., :-1] * order + path[..., 1:], -1)


@dataclass(frozen=True, slots=True, eq=False)
class _MinimalPaths:
    """The minimal paths from all S switches to one destination."""

    path: Numbers
    """int64[S, 6], the switches of each path, -1 after the last."""
    layer: Numbers
    """int64[S], the layer by which each path enters the destination."""


@dataclass(slots=True, eq=False)
class _TreeSearch:
    """The search for the trees, destination by destination."""

    near: Numbers
    """int64[S, K], the neighbours of each switch."""
    minimal: Numbers
    """int64[S, S], the next switch on the minimal path."""
    paths: Numbers = field(init=False)
    """int64[S, S, L, 6], the switches of each path from s to d, -1 after the last."""
    fits: Flags = field(init=False)
    """bool[2, S, S], whether both paths of a pair have each of the shapes."""
    load: Numbers = field(init=False)
    """int64[S, S], how many paths use each link so far."""

    def __post_init__(self) -> None:
        order = len(self.near)
        self.paths = np.full((order, order, LAYERS, MOST_LINKS + 1), -1, np.int64)
        self.fits = np.zeros((2, order, order), np.bool_)
        self.load = np.zeros((order, order), np.int64)

    def towards(self, d: int) -> None:
        """Add the paths to a destination."""
        minimal = self._minimal(d)
        path = np.full((LAYERS, *minimal.path.shape), -1)
        path[minimal.layer, np.arange(len(minimal.layer))] = minimal.path
        path[:, d] = minimal.path[d]
        fits = shapes(minimal.path)
        for keeps_shape, layer in product((True, False), range(LAYERS)):
            for length in range(2, MOST_LINKS + 1):
                self._extend(d, path[layer], length, minimal.path, fits, keeps_shape)
        self.paths[:, d] = np.moveaxis(path, 0, 1)
        self.fits[:, :, d] = shapes(path).all(axis=1)
        link = _links(path, len(minimal.layer))
        np.add.at(self.load.ravel(), link[link >= 0], 1)

    def _minimal(self, d: int) -> _MinimalPaths:
        """The minimal paths to a destination."""
        reached = np.arange(len(self.near))
        path, last = np.full((len(reached), MOST_LINKS + 1), -1), reached
        path[:, 0] = reached
        for step in range(1, MOST_LINKS + 1):
            moves = reached != d
            last = np.where(moves, reached, last)
            reached = np.where(moves, self.minimal[reached, d], reached)
            path[moves, step] = reached[moves]
        place = np.zeros(len(reached), np.int64)
        neighbours = self.near[d][self.near[d] >= 0]
        place[neighbours] = np.arange(len(neighbours))
        return _MinimalPaths(path, place[last] % LAYERS)

    def _extend(
        self,
        d: int,
        path: Numbers,
        length: int,
        shortest: Numbers,
        fits: Flags,
        keeps_shape: bool,
    ) -> None:
        """Give switches without a path in a layer one of so many links, over a neighbour.

        Args:
            d: the destination.
            path: int64[S, 6], the paths of the layer, -1 for none; written.
            length: of the new paths.
            shortest: int64[S, 6], the minimal paths.
            fits: bool[2, S], whether all paths of each switch have each of the shapes; written.
            keeps_shape: whether only paths are taken that have a shape in common with the minimal
                one.
        """
        s = np.flatnonzero(path[:, 0] < 0)
        link_count, order = (path[:, 1:] >= 0).sum(axis=1), len(path)
        neighbour = self.near[s]
        is_usable = (neighbour >= 0) & (neighbour != d)
        is_usable &= (link_count[neighbour] == length - 1) & (path[neighbour, 0] >= 0)
        path_of_neighbour = path[neighbour][..., :-1]
        start = np.broadcast_to(s[:, None, None], (*neighbour.shape, 1))
        new_paths = np.concatenate((start, path_of_neighbour), axis=2)
        minimal_link = _links(shortest[s], order)[:, None, None]
        link = _links(new_paths, order)[..., None]
        is_usable &= ~((link == minimal_link) & (link >= 0)).any(axis=(2, 3))
        is_usable &= ~(path_of_neighbour == s[:, None, None]).any(axis=2)
        fit = shapes(new_paths) & fits[:, s, None]
        if keeps_shape:
            is_usable &= fit.any(axis=0)
        degree = neighbour.shape[1]
        turn = (np.arange(degree) + s[:, None] + d) % degree
        cost = np.where(is_usable, self.load[s[:, None], neighbour] * degree + turn, NEVER)
        row, best = np.arange(len(s)), cost.argmin(axis=1)
        has_path = is_usable[row, best]
        path[s[has_path]] = new_paths[row, best][has_path]
        fits[:, s[has_path]] = fit[:, row, best][:, has_path]


@dataclass(frozen=True, slots=True, eq=False)
class _Waits:
    """Links that wait for other links, by their numbers."""

    link: Numbers
    """int64[n], the links that wait."""
    next_link: Numbers
    """int64[n], the link that each of them waits for."""


@dataclass(slots=True, eq=False)
class _LanePlacement:
    """The placement of pairs in lanes."""

    near: Numbers
    """int64[S, K], the neighbours of each switch."""
    paths: Numbers
    """int64[S, S, L, 6], the switches of each path, -1 after the last."""
    fits: Flags
    """bool[2, S, S], whether both paths of a pair have each of the shapes."""
    lanes: int
    """How many lanes there are."""
    number: Numbers = field(init=False)
    """int64[S·S], the number of the link between two switches."""
    reached: Flags = field(init=False)
    """bool[lanes, links, links], which links each link waits for, directly or over others. A link
    reaches itself."""

    def __post_init__(self) -> None:
        order = len(self.near)
        source, column = np.nonzero(self.near >= 0)
        self.number = np.full(order * order, -1, np.int64)
        self.number[source * order + self.near[source, column]] = np.arange(len(source))
        self.reached = np.zeros((self.lanes, len(source), len(source)), np.bool_)
        self.reached[:] = np.eye(len(source), dtype=np.bool_)

    def placed(self) -> Lanes:
        """Place all pairs: their lanes, uint8[S, S], UNSET for those that fit none.

        Some pairs get other paths.
        """
        lane = np.where(self.fits[0], 0, np.where(self.fits[1], 1, UNSET)).astype(np.uint8)
        np.fill_diagonal(lane, 0)
        for shape in range(2):
            self._fill(shape, lane)
        source, destination = np.nonzero(lane == UNSET)
        links = (self.paths[source, destination] >= 0).sum(axis=(1, 2))
        unplaced = []
        for i in np.lexsort((source, destination, -links)).tolist():
            pair = int(source[i]), int(destination[i])
            lane[pair] = self._place(self.paths[pair])
            if lane[pair] == UNSET:
                unplaced.append(pair)
        for s, d in unplaced:
            for paths in self._other_paths(s, d):
                lane[s, d] = self._place(paths)
                if lane[s, d] != UNSET:
                    self.paths[s, d] = paths
                    break
        lane[(self.paths[..., 0] < 0).any(axis=2)] = UNSET
        return lane

    def _fill(self, shape: int, lane: Lanes) -> None:
        """Enter what links wait for in lane 0 or 1.

        In these lanes a link waits only for links that are later in the order of the lane's rule.
        So the last link comes first.
        """
        order, count = len(lane), self.reached.shape[1]
        waits = self._waits(self.paths[lane == shape])
        wait = np.unique(waits.link * count + waits.next_link)
        source, target = np.divmod(np.flatnonzero(self.number >= 0), order)
        source, target = (end if shape == 0 else order - 1 - end for end in (source, target))
        place = np.where(target > source, source, 2 * order - source)
        first = np.searchsorted(wait, np.arange(count + 1) * count)
        reached = self.reached[shape]
        for link in np.argsort(-place, kind="stable").tolist():
            ahead = wait[first[link] : first[link + 1]] % count
            reached[link] |= reached[ahead].any(axis=0)

    def _waits(self, paths: Numbers) -> _Waits:
        """What the links of paths wait for: the next link of the path."""
        link = _links(paths, len(self.near))
        before, after = link[..., :-1], link[..., 1:]
        continues = after >= 0
        return _Waits(self.number[before[continues]], self.number[after[continues]])

    def _place(self, paths: Numbers) -> int:
        """Place a pair's paths in the first lane where their waits close no cycle; else UNSET."""
        waits = self._waits(paths)
        for lane, reached in enumerate(self.reached):
            # Whether one new wait leads to another, over those that the lane has already.
            leads_to = reached[waits.next_link[:, None], waits.link]
            for _ in range(len(waits.link).bit_length()):
                leads_to = leads_to | (leads_to @ leads_to)
            if not leads_to.diagonal().any():
                pairs = zip(waits.link.tolist(), waits.next_link.tolist(), strict=True)
                for link, next_link in pairs:
                    if not reached[link, next_link]:
                        reached[reached[:, link]] |= reached[next_link]
                return lane
        return UNSET

    def _other_paths(self, s: int, d: int) -> list[Numbers]:
        """Other pairs of paths from s to d without a common link, int64[L, 6] each.

        Only paths are replaced on which no other switch depends.
        """
        pairs = []
        for k in range(LAYERS):
            if (self.paths[:, d, k, 1] == s).any():
                continue
            for neighbour in self.near[s][self.near[s] >= 0].tolist():
                rest = self.paths[neighbour, d, k]
                if neighbour == d or rest[-1] >= 0 or (rest == s).any():
                    continue
                paths = self.paths[s, d].copy()
                paths[k] = [s, *rest[:-1]]
                link = _links(paths, len(self.near))
                if not np.isin(link[0][link[0] >= 0], link[1]).any():
                    pairs.append(paths)
        return pairs
