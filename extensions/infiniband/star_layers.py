"""LID layers of a PolarStar: two in-trees towards every switch, and lanes for pairs of paths.

A host port of InfiniBand can have several addresses (LIDs), and the fabric a tree of routes towards
each: a *layer*. `star_layers` takes a graph and its minimal routes. It returns the next switch in
each of two layers, chosen so that the two paths of a pair share no link, and a virtual lane for
each pair, so that no packets wait for each other in a cycle (deadlock).

In layer k all paths enter destination d by every second of d's neighbours, from the k-th on. So the
last link of a minimal path tells its layer. In the other layer a switch goes to a neighbour whose
path in this layer shares no link with the minimal path of the switch. If there are several such
neighbours, it takes one by this order of preference: the path over it is short; the path has the
shape of lane 0 or 1 (`star_paths`); few paths use the link to it. No path has more than 5 links.

A pair has one lane for both paths, which `star_lanes` finds.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from itertools import product

import numpy as np

from compilers.topology.adjacency import Graph
from extensions.infiniband.layer_routes import LayerRoutes
from extensions.infiniband.star_lanes import LanePlacement
from extensions.infiniband.star_paths import (
    LAYERS,
    MOST_LINKS,
    NEVER,
    NO_LINK,
    NO_SWITCH,
    SHAPES,
    Flags,
    Numbers,
    path_links,
    path_shapes,
)

MOST_SWITCHES = 256
"""The most switches. For more, the closure of the dependencies, bool[lanes, links, links], is too
large."""


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
    lane = LanePlacement(neighbours, trees.paths, trees.have_shape, lanes).place_all()
    next_switch = np.moveaxis(trees.paths[..., 1], 2, 0).copy()
    switches = np.arange(graph.order)
    next_switch[:, switches, switches] = switches
    return LayerRoutes(next_switch, lane)


@dataclass(frozen=True, slots=True, eq=False)
class _MinimalPaths:
    """The minimal paths from all S switches to one destination."""

    path: Numbers
    """int64[S, 6], the switches of each path, NO_SWITCH after the last."""
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
    """int64[S, S, L, 6], the switches of each path from s to d, NO_SWITCH after the last."""
    have_shape: Flags = field(init=False)
    """bool[SHAPES, S, S], whether both paths of a pair have each of the shapes."""
    load: Numbers = field(init=False)
    """int64[S, S], how many paths use each link so far."""

    def __post_init__(self) -> None:
        switches = len(self.neighbours)
        self.paths = np.full((switches, switches, LAYERS, MOST_LINKS + 1), NO_SWITCH, np.int64)
        self.have_shape = np.zeros((SHAPES, switches, switches), np.bool_)
        self.load = np.zeros((switches, switches), np.int64)

    def add_paths_to(self, d: int) -> None:
        """Add the paths of both layers to a destination.

        Shorter paths come first, as longer ones are made of them by one more link at the start.
        """
        minimal = self._minimal(d)
        path = np.full((LAYERS, *minimal.path.shape), NO_SWITCH)
        path[minimal.layer, np.arange(len(minimal.layer))] = minimal.path
        path[:, d] = minimal.path[d]
        have_shape = path_shapes(minimal.path)
        for keeps_shape, layer in product((True, False), range(LAYERS)):
            for length in range(2, MOST_LINKS + 1):
                self._extend(
                    d,
                    path=path[layer],
                    length=length,
                    minimal_path=minimal.path,
                    have_shape=have_shape,
                    keeps_shape=keeps_shape,
                )
        self.paths[:, d] = np.moveaxis(path, 0, 1)
        self.have_shape[:, :, d] = path_shapes(path).all(axis=1)
        link = path_links(path, len(minimal.layer))
        np.add.at(self.load.ravel(), link[link != NO_LINK], 1)

    def _minimal(self, d: int) -> _MinimalPaths:
        """Follow the minimal path from every switch to a destination, all at the same time."""
        at_switch = np.arange(len(self.neighbours))
        path, entry = np.full((len(at_switch), MOST_LINKS + 1), NO_SWITCH), at_switch
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
        minimal_path: Numbers,
        have_shape: Flags,
        keeps_shape: bool,
    ) -> None:
        """Give switches that have no path in a layer a path of this length, over a neighbour.

        Args:
            d: the destination.
            path: int64[S, 6], the paths of the layer, NO_SWITCH for none; written.
            length: the links of the new paths.
            minimal_path: int64[S, 6], the minimal paths.
            have_shape: bool[SHAPES, S], whether all paths of each switch have each of the shapes;
                written.
            keeps_shape: whether a path is taken only if it has a shape that the minimal path has,
                too.
        """
        s = np.flatnonzero(path[:, 0] == NO_SWITCH)
        neighbour = self.neighbours[s]
        path_of_neighbour = path[neighbour][..., :-1]
        start = np.broadcast_to(s[:, None, None], (*neighbour.shape, 1))
        new_paths = np.concatenate((start, path_of_neighbour), axis=2)  # [n, K, 6]
        new_have_shape = path_shapes(new_paths) & have_shape[:, s, None]

        # bool[n, K], over which neighbours each of these switches may go: their paths are one link
        # shorter, do not come back to the switch, and share no link with its minimal path.
        link_count = (path[:, 1:] != NO_SWITCH).sum(axis=1)
        is_shorter = (path[neighbour, 0] != NO_SWITCH) & (link_count[neighbour] == length - 1)
        comes_back = (path_of_neighbour == s[:, None, None]).any(axis=2)
        shares_link = _share_a_link(new_paths, minimal_path[s][:, None], switches=len(path))
        is_usable = (neighbour >= 0) & (neighbour != d) & is_shorter & ~comes_back & ~shares_link
        if keeps_shape:
            is_usable &= new_have_shape.any(axis=0)

        # Of equally loaded links, each switch prefers another one for each destination.
        degree = neighbour.shape[1]
        preference = (np.arange(degree) + s[:, None] + d) % degree
        cost = np.where(is_usable, self.load[s[:, None], neighbour] * degree + preference, NEVER)
        row, best = np.arange(len(s)), cost.argmin(axis=1)
        has_path = is_usable[row, best]
        path[s[has_path]] = new_paths[row, best][has_path]
        have_shape[:, s[has_path]] = new_have_shape[:, row, best][:, has_path]


def _share_a_link(first: Numbers, second: Numbers, switches: int) -> Flags:
    """bool[…], whether two paths have a link in common.

    Args:
        first: int64[…, 6], paths.
        second: int64[…, 6], another path for each of them.
        switches: S.
    """
    first_links = path_links(first, switches)[..., :, None]
    second_links = path_links(second, switches)[..., None, :]
    shares: Flags = ((first_links == second_links) & (first_links != NO_LINK)).any(axis=(-2, -1))
    return shares
