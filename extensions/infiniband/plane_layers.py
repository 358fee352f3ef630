"""LID layers of a PolarFly: L in-trees towards every switch, and a lane for each pair of switches.

Layer k enters destination d only from C_k(d), every L-th of its neighbours, from the k-th on. Two
switches of ER_q have one neighbour in common, s×d, so paths that enter by different neighbours
hardly meet. The path of layer k from s:

1. s in C_k(d): the link to d.
2. x0 = s×d in C_k(d): s, x0, d. So one of the L paths is minimal.
3. x0 elsewhere: s, s×x, x, d for an x in C_k(d) with s×x other than x0. Any such x serves, since
   s×x goes on by rule 2.
4. s adjacent to d, but not in C_k(d): s, r, then the path of r by rule 3.

For 2·L ≤ q + 1 such paths have at most 4 links, and no inner switch in common. Lanes narrow the
choice: within a lane the channel dependencies (`extensions.lossless.layers`) must form no cycle. A
ranking of the switches makes two such lanes: one of paths that never rise after a fall, and one of
paths that never fall after a rise. A pair has one lane for all its paths, as OpenSM gives all its
LIDs the same service level. That is the lane in which most layers have a path; each layer takes its
least loaded path there. Where rule 3 has no path, s goes over a neighbour whose path fits. If there
is none, s goes over x0, which then takes its own link to d in that layer, too.

Names in the code are those above: d, s, x0 and x, and y for s×x.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from itertools import pairwise
from math import ceil
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from compilers.topology.adjacency import Graph
from extensions.infiniband.layer_routes import LayerRoutes

SCATTER = 2654435761
"""⌊2³²/φ⌋, a multiplier that scatters numbers (Knuth, TAOCP 3, 6.4)."""
NEVER = np.iinfo(np.int64).max
"""The cost of a path that may not be taken."""
MEETING_COST = 1 << 32
"""The cost of a path that has a switch in common with another path of its pair: over any load."""
NO_SWITCH = -1
"""In place of a switch of a path: the path is not of that rule."""

Numbers = NDArray[np.int64]
Flags = NDArray[np.bool_]


def plane_layers(graph: Graph, minimal: Numbers, layers: int, lanes: int) -> LayerRoutes:
    """Find the layers of a PolarFly, and the lanes of its pairs.

    Args:
        graph: the graph of S switches.
        minimal: int64[S, S], the next switch of minimal routes.
        layers: L, how many layers to find.
        lanes: how many lanes there are, an even number.
    """
    search = _LayerSearch(graph, minimal, layers, lanes)
    for destination in range(graph.order):
        search.towards(destination)
    return LayerRoutes(search.next_switch, search.lane)


def rankings(graph: Graph, lanes: int) -> Numbers:
    """The ranks of S switches in each lane, int64[lanes, S].

    A path of a lane never rises after it fell in the lane's ranks. The first ranking has quadrics,
    their neighbours, and all others, each in order; further rankings are scattered. Each ranking is
    followed by its reverse.
    """
    switch, neighbours = np.arange(graph.order), graph.padded()
    is_quadric = graph.degrees < graph.degrees.max()
    is_next_to_quadric = (is_quadric[neighbours] & (neighbours >= 0)).any(axis=1)
    kind = np.where(is_quadric, 0, 2 - is_next_to_quadric)
    keys = [kind * graph.order + switch]
    keys += [(switch + 1) * SCATTER * (2 * j + 1) % 2**32 for j in range(1, lanes // 2)]
    ranks = [np.argsort(np.argsort(key, kind="stable")) for key in keys]
    return np.stack([rank for up in ranks for rank in (up, graph.order - 1 - up)])


class _Candidates(NamedTuple):
    """The candidates s, y, x, d of rule 3, for n switches s and one destination d.

    Layer k enters d by every L-th of its neighbours, from the k-th on: by `depth` of them. So place
    i of layer k is for the neighbour i·L + k.
    """

    y: Numbers
    """int64[n, depth, L], the second switch."""
    x: Numbers
    """int64[n, depth, L], the third switch, a neighbour of d; NO_SWITCH beyond the last one."""
    is_usable: Flags
    """bool[n, depth, L], whether the path may be taken, but for lanes."""


@dataclass(slots=True, eq=False)
class _LayerSearch:
    """The search for the layers of a PolarFly, one destination after the other."""

    graph: Graph
    """The graph of S switches."""
    minimal: Numbers
    """int64[S, S], the next switch on the minimal path."""
    layers: int
    """L, how many layers to find."""
    lanes: int
    """How many lanes there are."""
    neighbours: Numbers = field(init=False)
    """int64[S, K], the neighbours of each switch."""
    rank: Numbers = field(init=False)
    """int64[lanes, S], the rank of each switch in each lane."""
    next_switch: Numbers = field(init=False)
    """int64[L, S, S], the next switch in each layer."""
    lane: NDArray[np.uint8] = field(init=False)
    """uint8[S, S], the lane of the paths of each pair."""
    load: Numbers = field(init=False)
    """int64[S, S], how many paths use each link so far."""

    def __post_init__(self) -> None:
        switches = self.graph.order
        self.neighbours = self.graph.padded().astype(np.int64)
        self.rank = rankings(self.graph, self.lanes)
        self.next_switch = np.empty((self.layers, switches, switches), np.int64)
        self.lane = np.zeros((switches, switches), np.uint8)
        self.load = np.zeros((switches, switches), np.int64)

    def towards(self, d: int) -> None:
        """Add the paths to a destination."""
        paths = _LayerPaths.minimal(self.minimal[:, d], self.layers)
        entry = self.neighbours[d][self.neighbours[d] >= 0]
        self._add_distant_switches(d, entry, paths)
        self._add_neighbours(d, entry, paths)
        self.next_switch[:, :, d] = paths.next_switch.T
        for next_switch in paths.next_switch.T:
            self._add_load(d, next_switch)

    def _add_load(self, d: int, next_switch: Numbers) -> None:
        """Count the paths to a destination in one layer at the links that they use.

        Args:
            d: the destination.
            next_switch: int64[S], the next switch of each.
        """
        switch = np.flatnonzero(np.arange(len(next_switch)) != d)
        while len(switch):
            following = next_switch[switch]
            np.add.at(self.load, (switch, following), 1)
            switch = following[following != d]

    def _add_distant_switches(self, d: int, entry: Numbers, paths: _LayerPaths) -> None:
        """Add paths by rules 2 and 3: those of switches that are not adjacent to d.

        Args:
            d: the destination.
            entry: the neighbours of the destination, by which paths enter it.
            paths: the paths to the destination, written.
        """
        s = np.setdiff1d(np.arange(len(self.neighbours)), [*entry, d])
        x0 = self.minimal[s, d]
        # The layer in which x0 enters d, so that the minimal path is in it.
        minimal_layer = np.searchsorted(entry, x0) % self.layers
        candidates = self._candidates(s, x0, minimal_layer, entry)
        # bool[lanes, n, depth, L], by candidate; and bool[lanes, n, L], whether a layer has a path.
        fits = self._fits_in_each_lane(s[:, None, None], candidates.y, candidates.x, d)
        fits &= candidates.is_usable
        has_fitting: Flags = np.logical_or.reduce(fits, axis=2)
        # A lane is possible only if the minimal path fits in it.
        minimal_fits = self._fits_in_each_lane(s, x0, d)
        layer_counts = np.where(minimal_fits, has_fitting.sum(axis=2), -1)
        lane = self._fullest_lane(layer_counts, s + d)
        self.lane[s, d] = lane
        row = np.arange(len(s))
        has_path = has_fitting[lane, row]
        place = self._cheapest_places(d, s, candidates, fits[lane, row])[:, None]
        y = np.take_along_axis(candidates.y, place, axis=1)[:, 0]
        x = np.take_along_axis(candidates.x, place, axis=1)[:, 0]
        paths.next_switch[s] = np.where(has_path, y, paths.next_switch[s])
        paths.entry[s] = np.where(has_path, x, NO_SWITCH)
        for k in range(self.layers):
            has_none = ~has_path[:, k] & (minimal_layer != k)
            self._detour(d, k=k, s=s[has_none], x0=x0[has_none], lane=lane[has_none], paths=paths)

    def _candidates(
        self, s: Numbers, x0: Numbers, minimal_layer: Numbers, entry: Numbers
    ) -> _Candidates:
        """The candidates of rule 3 for switches that are not adjacent to the destination.

        Args:
            s: int64[n], the switches.
            x0: int64[n], the neighbour of each on its minimal path.
            minimal_layer: int64[n], the layer that this path is in.
            entry: the neighbours of the destination, by which paths enter it.
        """
        depth = ceil(len(entry) / self.layers)
        missing = depth * self.layers - len(entry)
        by_layer = np.pad(entry, (0, missing), constant_values=NO_SWITCH).reshape(depth, -1)
        x = np.broadcast_to(by_layer, (len(s), *by_layer.shape))
        y = self.minimal[s[:, None, None], x]
        is_other_layer = np.arange(self.layers) != minimal_layer[:, None, None]
        is_usable = (x != NO_SWITCH) & (y != x0[:, None, None]) & is_other_layer
        return _Candidates(y, x, is_usable)

    def _cheapest_places(
        self, d: int, s: Numbers, candidates: _Candidates, fits: Flags
    ) -> NDArray[np.intp]:
        """The place of the least loaded candidate of each layer, intp[n, L].

        Of equally loaded ones, switches choose by turns. Where none fits, the place may be any.

        Args:
            d: the destination.
            s: int64[n], the switches that are not adjacent to it.
            candidates: their candidates.
            fits: bool[n, depth, L], whether each candidate fits in the lane of its switch.
        """
        y, x = candidates.y, candidates.x
        depth = y.shape[1]
        start = s[:, None, None]
        turn = (np.arange(depth)[:, None] + start + d) % depth
        load = self.load[start, y] + self.load[y, x] + self.load[x, d]
        cheapest: NDArray[np.intp] = np.where(fits, load * depth + turn, NEVER).argmin(axis=1)
        return cheapest

    def _detour(
        self, d: int, k: int, s: Numbers, x0: Numbers, lane: NDArray[np.intp], paths: _LayerPaths
    ) -> None:
        """Add paths in layer k over a neighbour whose path by rule 3 fits, or else over x0.

        Args:
            d: the destination.
            k: the layer.
            s: int64[n], the switches.
            x0: int64[n], the neighbour of each that is next to d, which is made direct.
            lane: intp[n], the lane of each.
            paths: the paths to the destination, written.
        """
        # [n, K] each, by switch s and neighbour: the path s, neighbour, y, x, d.
        neighbour = self.neighbours[s]
        y, x = paths.next_switch[neighbour, k], paths.entry[neighbour, k]
        fits = (neighbour >= 0) & (x != NO_SWITCH) & (neighbour != x0[:, None])
        fits &= self._fits_in_lane(lane, s[:, None], neighbour, y, x, d)
        # [n, 1, 2L], the second and third switches of the paths of s in all layers.
        on_other_paths = np.concatenate((paths.next_switch[s], paths.inner[s]), axis=1)[:, None]
        meets = (neighbour[..., None] == on_other_paths) | (y[..., None] == on_other_paths)
        load = self.load[s[:, None], neighbour] + self.load[neighbour, y]
        cost = np.where(fits, load + MEETING_COST * meets.any(axis=2), NEVER)
        best = np.arange(len(s)), cost.argmin(axis=1)
        has_path = fits[best]
        paths.next_switch[s[has_path], k] = neighbour[best][has_path]
        paths.inner[s[has_path], k] = y[best][has_path]
        paths.direct[x0[~has_path], k] = True

    def _add_neighbours(self, d: int, s: Numbers, paths: _LayerPaths) -> None:
        """Add paths by rules 1 and 4: those of d's neighbours, each layer over another r.

        Args:
            d: the destination.
            s: the neighbours of the destination.
            paths: the paths to the destination, written.
        """
        row, r = np.arange(len(s)), self.neighbours[s]
        # [lanes, n, L, K], whether the path s, r, y, x, d of a layer fits in a lane.
        fits = np.empty((len(self.rank), len(s), self.layers, r.shape[1]), np.bool_)
        for k in range(self.layers):
            y, x = paths.next_switch[r, k], paths.entry[r, k]
            takes_link = (row % self.layers == k) | paths.direct[s, k]  # rule 1
            is_usable = (r >= 0) & (r != d) & (x != NO_SWITCH) & ~takes_link[:, None]
            fits[:, :, k] = self._fits_in_each_lane(s[:, None], r, y, x, d) & is_usable
        lane = self._fullest_lane(fits.any(axis=3).sum(axis=2), s + d)
        self.lane[s, d] = lane
        is_free = fits[lane, row]  # [n, L, K], in the lane of s, over an r that no layer has yet
        # The layer with the fewest neighbours to choose from chooses first.
        fewest_first = np.argsort(is_free.sum(axis=2), axis=1, kind="stable")
        for k in fewest_first.T:
            best = np.where(is_free[row, k], self.load[s[:, None], r], NEVER).argmin(axis=1)
            has_path = is_free[row, k, best]
            paths.next_switch[s[has_path], k[has_path]] = r[row, best][has_path]
            is_free[row[has_path], :, best[has_path]] = False

    def _fits_in_each_lane(self, *path: Numbers | int) -> Flags:
        """Whether paths never rise after a fall in the ranks of each lane, bool[lanes, n, …].

        Args:
            path: the first switches of n rows of paths, the second ones, and so on.
        """
        ranks = [self.rank[:, switch] for switch in np.broadcast_arrays(*path)]
        return _never_rise_after_fall(ranks)

    def _fits_in_lane(self, lane: NDArray[np.intp], *path: Numbers | int) -> Flags:
        """Whether paths never rise after a fall in the ranks of their own lanes, bool[n, …].

        Args:
            lane: intp[n], the lane of each row of paths.
            path: the first switches of n rows of paths, the second ones, and so on.
        """
        ranks = [self.rank[lane[:, None], switch] for switch in np.broadcast_arrays(*path)]
        return _never_rise_after_fall(ranks)

    def _fullest_lane(self, layer_counts: Numbers, turn: Numbers) -> NDArray[np.intp]:
        """The lane in which most layers have a path, intp[n]; of several such lanes one by turns.

        Args:
            layer_counts: int64[lanes, n], how many layers have a path in each lane.
            turn: int64[n], a number of each column, which decides among several lanes.
        """
        lanes = len(layer_counts)
        turns = (np.arange(lanes)[:, None] + turn) % lanes
        best: NDArray[np.intp] = (layer_counts * lanes + turns).argmax(axis=0)
        return best


def _never_rise_after_fall(ranks: list[Numbers]) -> Flags:
    """Whether paths never rise after a fall.

    Args:
        ranks: the ranks of the first switches of paths, of the second ones, and so on, all arrays
            of one shape.
    """
    rises = [after > before for before, after in pairwise(ranks)]
    fits: Flags = np.logical_and.reduce(
        [rose_before | ~rises_now for rose_before, rises_now in pairwise(rises)]
    )
    return fits


@dataclass(slots=True, eq=False)
class _LayerPaths:
    """The paths from S switches to one destination in L layers; int64[S, L] each."""

    next_switch: Numbers
    """The next switch."""
    entry: Numbers
    """The switch x of rule 3, for paths by that rule; NO_SWITCH for others."""
    inner: Numbers
    """The switch after the next one, for detours; NO_SWITCH for others."""
    direct: Flags
    """bool[S, L], which paths have to be the link to the destination."""

    @classmethod
    def minimal(cls, next_switch: Numbers, layers: int) -> _LayerPaths:
        """Minimal paths in all layers, from the next switch of each, int64[S]."""
        shape = len(next_switch), layers
        in_all_layers = np.repeat(next_switch[:, None], layers, axis=1)
        return cls(
            next_switch=in_all_layers,
            entry=np.full(shape, NO_SWITCH),
            inner=np.full(shape, NO_SWITCH),
            direct=np.zeros(shape, np.bool_),
        )
