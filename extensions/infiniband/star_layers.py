"""LID layers of a PolarStar: two in-trees towards every switch, and lanes for pairs of paths.

Layer k enters destination d only by every second of its neighbours, from the k-th on. A minimal
path belongs to the layer by which it enters. In the other layer a switch goes to a neighbour whose
path there shares no link with its minimal one: the shortest, of these one that keeps to a rule of
lane 0 or 1 (`extensions.lossless.layers`), of these the least loaded. No path has more than 5
links.

A pair has one lane for both paths. Lanes 0 and 1 take the pairs whose paths rise and then fall, or
fall and then rise, by the switches' numbers. All others are placed one by one, the longest first,
by destination, each in the first lane where its waits close no cycle; which links a link waits
for, over however many others, is kept for each lane. A pair that fits none gets another path, if no
other pair's path leads over its switch.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from itertools import product

import numpy as np
from numpy.typing import NDArray

from compilers.topology.adjacency import Graph

LAYERS = 2
MOST_LINKS = 5
MOST_SWITCHES = 256
"""Of more, the waits of all links, bool[lanes, links, links], take too long."""
UNSET = 255
NEVER = np.iinfo(np.int64).max

Numbers = NDArray[np.int64]
Flags = NDArray[np.bool_]
Lanes = NDArray[np.uint8]


def star_layers(graph: Graph, minimal: Numbers, lanes: int) -> tuple[Numbers, Lanes]:
    """int64[2, S, S], the next switch in each layer, and uint8[S, S], the lane of each pair.

    UNSET where a pair's paths fit no lane.

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
    step = np.moveaxis(trees.paths[..., 1], 2, 0).copy()
    here = np.arange(graph.order)
    step[:, here, here] = here
    return step, lane


def shapes(path: Numbers) -> Flags:
    """bool[2, ...]: whether paths never rise after a fall, and whether never fall after a rise.

    By the numbers of their switches, int64[..., h], -1 after the last.
    """
    rises, continues = path[..., 1:] > path[..., :-1], path[..., 2:] >= 0
    before, after = rises[..., :-1], rises[..., 1:]
    keeps: Flags = np.logical_and.reduce(
        np.stack((before | ~after | ~continues, ~before | after | ~continues)), axis=-1
    )
    return keeps


def _links(path: Numbers, order: int) -> Numbers:
    """The links of paths, from·S + to, -1 after the last."""
    return np.where(path[..., 1:] >= 0, path[..., :-1] * order + path[..., 1:], -1)


@dataclass(slots=True, eq=False)
class _TreeSearch:
    """The search for the trees, a destination after the other."""

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
        shortest, minimal_layer = self._minimal(d)
        path = np.full((LAYERS, *shortest.shape), -1)
        path[minimal_layer, np.arange(len(minimal_layer))] = shortest
        path[:, d] = shortest[d]
        fits = shapes(shortest)
        for keeps, layer in product((True, False), range(LAYERS)):
            for length in range(2, MOST_LINKS + 1):
                self._extend(d, layer, length, path, shortest, fits, keeps)
        self.paths[:, d] = np.moveaxis(path, 0, 1)
        self.fits[:, :, d] = shapes(path).all(axis=1)
        link = _links(path, len(minimal_layer))
        np.add.at(self.load.ravel(), link[link >= 0], 1)

    def _minimal(self, d: int) -> tuple[Numbers, Numbers]:
        """int64[S, 6], the minimal paths to d, and the layer by which each enters."""
        at = np.arange(len(self.near))
        path, last = np.full((len(at), MOST_LINKS + 1), -1), at
        path[:, 0] = at
        for step in range(1, MOST_LINKS + 1):
            moving = at != d
            last = np.where(moving, at, last)
            at = np.where(moving, self.minimal[at, d], at)
            path[moving, step] = at[moving]
        place = np.zeros(len(at), np.int64)
        entry = self.near[d][self.near[d] >= 0]
        place[entry] = np.arange(len(entry))
        return path, place[last] % LAYERS

    def _extend(
        self,
        d: int,
        k: int,
        length: int,
        path: Numbers,
        shortest: Numbers,
        fits: Flags,
        keeps: bool,
    ) -> None:
        """Give switches that have no path in layer k yet one of so many links over a neighbour.

        keeps: only such as have a shape in common with the minimal path.
        """
        s = np.flatnonzero(path[k, :, 0] < 0)
        links, order = (path[k, :, 1:] >= 0).sum(axis=1), len(path[k])
        n = self.near[s]
        usable = (n >= 0) & (n != d) & (links[n] == length - 1) & (path[k, n, 0] >= 0)
        rest = path[k, n][..., :-1]
        paths = np.concatenate((np.broadcast_to(s[:, None, None], (*n.shape, 1)), rest), axis=2)
        taken = _links(shortest[s], order)[:, None, None]
        link = _links(paths, order)[..., None]
        usable &= ~((link == taken) & (link >= 0)).any(axis=(2, 3))
        usable &= ~(rest == s[:, None, None]).any(axis=2)
        both = shapes(paths) & fits[:, s, None]
        if keeps:
            usable &= both.any(axis=0)
        turn = (np.arange(n.shape[1]) + s[:, None] + d) % n.shape[1]
        cost = np.where(usable, self.load[s[:, None], n] * n.shape[1] + turn, NEVER)
        best = np.arange(len(s)), cost.argmin(axis=1)
        chosen = usable[best]
        path[k, s[chosen]] = paths[best][chosen]
        fits[:, s[chosen]] = both[:, best[0], best[1]][:, chosen]


@dataclass(slots=True, eq=False)
class _LanePlacement:
    """Pairs placed in lanes."""

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
    """bool[lanes, links, links], which links each link waits for, directly or over others; a link
    reaches itself."""

    def __post_init__(self) -> None:
        order = len(self.near)
        source, column = np.nonzero(self.near >= 0)
        self.number = np.full(order * order, -1, np.int64)
        self.number[source * order + self.near[source, column]] = np.arange(len(source))
        self.reached = np.zeros((self.lanes, len(source), len(source)), np.bool_)
        self.reached[:] = np.eye(len(source), dtype=np.bool_)

    def placed(self) -> Lanes:
        """uint8[S, S], the lanes, UNSET for pairs that fit none; paths change with them."""
        lane = np.where(self.fits[0], 0, np.where(self.fits[1], 1, UNSET)).astype(np.uint8)
        np.fill_diagonal(lane, 0)
        for shape in range(2):
            self._fill(shape, lane)
        source, destination = np.nonzero(lane == UNSET)
        links = (self.paths[source, destination] >= 0).sum(axis=(1, 2))
        late = []
        for i in np.lexsort((source, destination, -links)).tolist():
            pair = int(source[i]), int(destination[i])
            lane[pair] = self._place(self.paths[pair])
            if lane[pair] == UNSET:
                late.append(pair)
        for pair in late:
            for paths in self._others(*pair):
                lane[pair] = self._place(paths)
                if lane[pair] != UNSET:
                    self.paths[pair] = paths
                    break
        lane[(self.paths[..., 0] < 0).any(axis=2)] = UNSET
        return lane

    def _fill(self, shape: int, lane: Lanes) -> None:
        """What links wait for in lane 0 or 1, the last of its order first."""
        order, count = len(lane), self.reached.shape[1]
        before, after = self._waits(self.paths[lane == shape])
        wait = np.unique(before * count + after)
        source, target = np.divmod(np.flatnonzero(self.number >= 0), order)
        source, target = (end if shape == 0 else order - 1 - end for end in (source, target))
        place = np.where(target > source, source, 2 * order - source)
        first = np.searchsorted(wait, np.arange(count + 1) * count)
        reached = self.reached[shape]
        for link in np.argsort(-place, kind="stable").tolist():
            ahead = wait[first[link] : first[link + 1]] % count
            reached[link] |= reached[ahead].any(axis=0)

    def _waits(self, paths: Numbers) -> tuple[Numbers, Numbers]:
        """The links of paths that wait, and those that they wait for."""
        link = _links(paths, len(self.near))
        before, after = link[..., :-1], link[..., 1:]
        continues = after >= 0
        return self.number[before[continues]], self.number[after[continues]]

    def _place(self, paths: Numbers) -> int:
        """The first lane where the waits of a pair's paths close no cycle; they are in it then."""
        before, after = self._waits(paths)
        for lane, reached in enumerate(self.reached):
            path = reached[after[:, None], before]
            for _ in range(len(before).bit_length()):
                path = path | (path @ path)
            if not path.diagonal().any():
                for a, b in zip(before.tolist(), after.tolist(), strict=True):
                    if not reached[a, b]:
                        reached[reached[:, a]] |= reached[b]
                return lane
        return UNSET

    def _others(self, s: int, d: int) -> list[Numbers]:
        """Other pairs of paths without a common link, where no path but that of s leads over s."""
        pairs = []
        for k in range(LAYERS):
            if (self.paths[:, d, k, 1] == s).any():
                continue
            for n in self.near[s][self.near[s] >= 0].tolist():
                rest = self.paths[n, d, k]
                if n == d or rest[-1] >= 0 or (rest == s).any():
                    continue
                paths = self.paths[s, d].copy()
                paths[k] = [s, *rest[:-1]]
                link = _links(paths, len(self.near))
                if not np.isin(link[0][link[0] >= 0], link[1]).any():
                    pairs.append(paths)
        return pairs
