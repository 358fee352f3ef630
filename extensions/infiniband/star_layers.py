"""LID layers of a PolarStar: two in-trees towards every switch, and lanes for pairs of paths.

A host port of InfiniBand can have several addresses (LIDs), and the fabric a tree of routes towards
each: a *layer*. `star_layers` takes a graph and its minimal routes. It returns the next switch in
each of two layers, chosen so that the two paths of a pair share no link, and a virtual lane for
each pair, so that no packets wait for each other in a cycle (deadlock).

In layer k all paths enter destination d by every second of d's neighbours, from the k-th on. So the
last link of a minimal path tells its layer. In the other layer a switch goes to a neighbour whose
path in this layer shares no link with the minimal path of the switch. If there are several such
neighbours, it takes one by this order of preference: the path over it is short; the path keeps to
the rule of lane 0 or 1 (`extensions.lossless.layers`); few paths use the link to it. No path has
more than 5 links.

A pair has one lane for both paths. The *shapes* of lanes 0 and 1 are paths that rise and then fall,
and paths that fall and then rise, by the numbers of switches. A pair whose two paths have one of
these shapes takes that lane. All other pairs are placed one by one, the longest paths first. Each
takes the first lane where its channel dependencies close no cycle. A link of a path depends on the
next link of the path. To find cycles, each lane has the transitive closure of its dependencies. A
pair that fits no lane gets another path, unless another pair's path leads over its switch.
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
"""The most switches. For more, the closure of the dependencies, bool[lanes, links, links], is too
large."""
UNSET = 255
"""In the place of a lane's number: the pair fits no lane."""
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
        graph: the graph of a PolarStar.
        minimal: int64[S, S], the next switch of minimal routes.
        lanes: the most that ports can run.
    """
    neighbours = graph.padded().astype(np.int64)
    trees = _TreeSearch(neighbours, minimal)
    for destination in range(graph.order):
        trees.add_paths_to(destination)
    lane = _LanePlacement(neighbours, trees.paths, trees.have_shape, lanes).place_all()
    next_switch = np.moveaxis(trees.paths[..., 1], 2, 0).copy()
    switches = np.arange(graph.order)
    next_switch[:, switches, switches] = switches
    return LayerRoutes(next_switch, lane)


def path_shapes(path: Numbers) -> Flags:
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


def _links(path: Numbers, switches: int) -> Numbers:
    """The links of paths as numbers, from·S + to, -1 after the last."""
    return np.where(path[..., 1:] >= 0, path[..., :-1] * switches + path[..., 1:], -1)


@dataclass(frozen=True, slots=True, eq=False)
class _MinimalPaths:
    """The minimal paths from all S switches to one destination."""

    path: Numbers
    """int64[S, 6], the switches of each path, -1 after the last."""
    layer: Numbers
    """int64[S], the layer by which each path enters the destination."""


@dataclass(slots=True, eq=False)
class _TreeSearch:
    """The search for the two in-trees of each destination, one destination after the other."""

    neighbours: Numbers
    """int64[S, K], the neighbours of each switch."""
    minimal: Numbers
    """int64[S, S], the next switch on the minimal path."""
    paths: Numbers = field(init=False)
    """int64[S, S, L, 6], the switches of each path from s to d, -1 after the last."""
    have_shape: Flags = field(init=False)
    """bool[2, S, S], whether both paths of a pair have each of the shapes."""
    load: Numbers = field(init=False)
    """int64[S, S], how many paths use each link so far."""

    def __post_init__(self) -> None:
        switches = len(self.neighbours)
        self.paths = np.full((switches, switches, LAYERS, MOST_LINKS + 1), -1, np.int64)
        self.have_shape = np.zeros((2, switches, switches), np.bool_)
        self.load = np.zeros((switches, switches), np.int64)

    def add_paths_to(self, d: int) -> None:
        """Add the paths of both layers to a destination.

        Shorter paths come first, as longer ones are made of them by one more link at the start.
        """
        minimal = self._minimal(d)
        path = np.full((LAYERS, *minimal.path.shape), -1)
        path[minimal.layer, np.arange(len(minimal.layer))] = minimal.path
        path[:, d] = minimal.path[d]
        have_shape = path_shapes(minimal.path)
        for keeps_shape, layer in product((True, False), range(LAYERS)):
            for length in range(2, MOST_LINKS + 1):
                self._extend(d, path[layer], length, minimal.path, have_shape, keeps_shape)
        self.paths[:, d] = np.moveaxis(path, 0, 1)
        self.have_shape[:, :, d] = path_shapes(path).all(axis=1)
        link = _links(path, len(minimal.layer))
        np.add.at(self.load.ravel(), link[link >= 0], 1)

    def _minimal(self, d: int) -> _MinimalPaths:
        """Follow the minimal path from every switch to a destination, all at the same time."""
        at_switch = np.arange(len(self.neighbours))
        path, entry = np.full((len(at_switch), MOST_LINKS + 1), -1), at_switch
        path[:, 0] = at_switch
        for step in range(1, MOST_LINKS + 1):
            moves = at_switch != d
            entry = np.where(moves, at_switch, entry)  # in the end the neighbour of d
            at_switch = np.where(moves, self.minimal[at_switch, d], at_switch)
            path[moves, step] = at_switch[moves]
        neighbour_number = np.zeros(len(at_switch), np.int64)
        neighbours_of_d = self.neighbours[d][self.neighbours[d] >= 0]
        neighbour_number[neighbours_of_d] = np.arange(len(neighbours_of_d))
        return _MinimalPaths(path, neighbour_number[entry] % LAYERS)

    def _extend(
        self,
        d: int,
        path: Numbers,
        length: int,
        shortest: Numbers,
        have_shape: Flags,
        keeps_shape: bool,
    ) -> None:
        """Give switches that have no path in a layer a path of this length, over a neighbour.

        Args:
            d: the destination.
            path: int64[S, 6], the paths of the layer, -1 for none; written.
            length: the links of the new paths.
            shortest: int64[S, 6], the minimal paths.
            have_shape: bool[2, S], whether all paths of each switch have each of the shapes;
                written.
            keeps_shape: whether a path is taken only if it has a shape that the minimal path has,
                too.
        """
        s = np.flatnonzero(path[:, 0] < 0)
        link_count, switches = (path[:, 1:] >= 0).sum(axis=1), len(path)
        neighbour = self.neighbours[s]
        # bool[n, K], for each of these switches the neighbours over which it may go.
        is_usable = (neighbour >= 0) & (neighbour != d)
        is_usable &= (link_count[neighbour] == length - 1) & (path[neighbour, 0] >= 0)
        path_of_neighbour = path[neighbour][..., :-1]
        start = np.broadcast_to(s[:, None, None], (*neighbour.shape, 1))
        new_paths = np.concatenate((start, path_of_neighbour), axis=2)  # [n, K, 6]
        minimal_link = _links(shortest[s], switches)[:, None, None]
        link = _links(new_paths, switches)[..., None]
        # The path shares no link with the minimal path, and does not come back to its switch.
        is_usable &= ~((link == minimal_link) & (link >= 0)).any(axis=(2, 3))
        is_usable &= ~(path_of_neighbour == s[:, None, None]).any(axis=2)
        new_have_shape = path_shapes(new_paths) & have_shape[:, s, None]
        if keeps_shape:
            is_usable &= new_have_shape.any(axis=0)
        degree = neighbour.shape[1]
        # Of equally loaded links, each switch prefers another one for each destination.
        preference = (np.arange(degree) + s[:, None] + d) % degree
        cost = np.where(is_usable, self.load[s[:, None], neighbour] * degree + preference, NEVER)
        row, best = np.arange(len(s)), cost.argmin(axis=1)
        has_path = is_usable[row, best]
        path[s[has_path]] = new_paths[row, best][has_path]
        have_shape[:, s[has_path]] = new_have_shape[:, row, best][:, has_path]


@dataclass(frozen=True, slots=True, eq=False)
class _Dependencies:
    """Channel dependencies: pairs of links, by their numbers."""

    link: Numbers
    """int64[n], the link over which packets come."""
    next_link: Numbers
    """int64[n], the link over which they go on."""


@dataclass(slots=True, eq=False)
class _LanePlacement:
    """The placement of pairs in lanes."""

    neighbours: Numbers
    """int64[S, K], the neighbours of each switch."""
    paths: Numbers
    """int64[S, S, L, 6], the switches of each path, -1 after the last."""
    have_shape: Flags
    """bool[2, S, S], whether both paths of a pair have each of the shapes."""
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
        lane_of_others = np.where(self.have_shape[1], 1, UNSET)
        lane = np.where(self.have_shape[0], 0, lane_of_others).astype(np.uint8)
        np.fill_diagonal(lane, 0)
        for shape in range(2):
            self._close(shape, lane)
        # The other pairs have neither shape. Those with the longest paths go first.
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
        lane[(self.paths[..., 0] < 0).any(axis=2)] = UNSET  # pairs that lack a path in some layer
        return lane

    def _close(self, shape: int, lane: Lanes) -> None:
        """Enter the closure of lane 0 or 1, whose paths all have the lane's shape.

        The lane's rule orders links: first rising links, by the number of the switch where they
        start; then falling links, by the same number in reverse. A link depends only on links that
        are later in this order. So the closure is computed from the last link to the first.
        """
        switches, count = len(lane), self.closure.shape[1]
        dependencies = self._dependencies(self.paths[lane == shape])
        numbers = np.unique(dependencies.link * count + dependencies.next_link)
        source, target = np.divmod(np.flatnonzero(self.link_number >= 0), switches)
        if shape == 1:  # the same rule, with the numbers of switches reversed
            source, target = switches - 1 - source, switches - 1 - target
        position = np.where(target > source, source, 2 * switches - source)
        first = np.searchsorted(numbers, np.arange(count + 1) * count)
        closure = self.closure[shape]
        for link in np.argsort(-position, kind="stable").tolist():
            next_links = numbers[first[link] : first[link + 1]] % count
            closure[link] |= closure[next_links].any(axis=0)

    def _dependencies(self, paths: Numbers) -> _Dependencies:
        """The channel dependencies of paths: each link with the next one of its path."""
        link = _links(paths, len(self.neighbours))
        before, after = link[..., :-1], link[..., 1:]
        continues = after >= 0
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
            # Whether one new dependency leads to another, over those that the lane has already.
            leads_to = closure[new.next_link[:, None], new.link]
            for _ in range(len(new.link).bit_length()):  # squaring gives the transitive closure
                leads_to = leads_to | (leads_to @ leads_to)
            if not leads_to.diagonal().any():
                pairs = zip(new.link.tolist(), new.next_link.tolist(), strict=True)
                # Whatever leads to the link now also leads to all that the next link leads to.
                for link, next_link in pairs:
                    if not closure[link, next_link]:
                        closure[closure[:, link]] |= closure[next_link]
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
                is_too_long = path_of_neighbour[-1] >= 0
                if neighbour == d or is_too_long or (path_of_neighbour == s).any():
                    continue
                paths = self.paths[s, d].copy()
                paths[k] = [s, *path_of_neighbour[:-1]]
                link = _links(paths, len(self.neighbours))
                if not np.isin(link[0][link[0] >= 0], link[1]).any():
                    path_pairs.append(paths)
        return path_pairs
