"""The least load of the hottest link over all paths: what no routing of a demand passes.

Shortest paths by the prices of links are added to those that flows may take, until there is none
below what a flow pays (column generation for the maximum concurrent flow, Shahrokhi and Matula
1990). Any prices give a bound: each flow pays at least its shortest path.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from compilers.demand.traffic_matrix import Traffic
from compilers.demand.weight_fit import Fit, FlowPaths, Reals, fit
from compilers.topology.adjacency import Graph
from compilers.topology.distance import distances, neighbour_table

Numbers = NDArray[np.int64]
ROUNDS = 30
NEAR = 0.01
"""The relative gap between a routing and the bound at which no paths are added any more."""
ROUGH = 0.05
"""The gap of the fits at the start."""
CHEAPER = 1e-3
"""By how much of what a flow pays a path must be cheaper."""
MOST_HOPS = 64
DESTINATIONS_AT_ONCE = 128


class PathOptimum(NamedTuple):
    """What no routing passes: the least load of the hottest link, and that of a routing found.

    routed is infinite where none was looked for.
    """

    bound: float
    routed: float


def path_optimum(
    graph: Graph, traffic: Traffic, search: bool = True, enough: float = 0.0
) -> PathOptimum:
    """The least load of the hottest link of any routing, every direction of a link by itself.

    Args:
        graph: connected.
        traffic: flows between its vertices.
        search: for paths; else the bound is that of equal prices, the sum of distances.
        enough: the load of the hottest link below which no better routing is looked for.
    """
    bound = _crossed(graph, traffic) / (2 * graph.size)
    if not search:
        return PathOptimum(bound, np.inf)
    far = graph.padded()
    links = _Links(far, *np.unique(traffic.destination, return_inverse=True))
    prices = np.where(far >= 0, 1.0, np.inf) / (2 * graph.size)
    tree = links.shortest(prices)
    ways = links.detours(tree, traffic, np.full(len(traffic.source), np.inf), prices)
    ways = ways.joined(links.beside(ways.paths(traffic, far.size), traffic, prices))
    found, routed, best = None, np.inf, prices
    for _ in range(ROUNDS):
        paths = ways.paths(traffic, far.size)
        gap = float(np.clip((routed / bound - 1) / 5, NEAR / 2, ROUGH))
        found = fit(paths, before=found and ways.begin(found, paths), gap=gap)
        routed = min(routed, float(found.loads.max()))
        # Prices between those of the best bound and the newest: alone, these jump (Wentges 1997).
        prices = (best + np.where(far >= 0, found.prices.reshape(far.shape), np.inf)) / 2
        tree = links.shortest(prices)
        if (here := links.bound(tree, traffic)) > bound:
            bound, best = here, prices
        if routed <= max((1 + NEAR) * bound, enough):
            break
        pays = _pays(paths, traffic, prices)
        ways = ways.used(found, paths).joined(links.detours(tree, traffic, pays, prices))
    return PathOptimum(bound, routed)


def _crossed(graph: Graph, traffic: Traffic) -> float:
    """The links that all flows cross on shortest paths, each as often as it has traffic."""
    table, total = neighbour_table(graph), 0.0
    for first in range(0, graph.order, DESTINATIONS_AT_ONCE):
        part = traffic.between(first, first + DESTINATIONS_AT_ONCE)
        ends, row = np.unique(part.destination, return_inverse=True)
        if len(ends):
            total += float(part.amount @ distances(table, ends)[row.ravel(), part.source])
    return total


def _pays(paths: FlowPaths, traffic: Traffic, prices: Reals) -> Reals:
    """float64[flows]: the cost of each flow's cheapest way."""
    finite = np.where(np.isfinite(prices), prices, 0).ravel()
    cost = np.where(paths.ways, paths.costs(finite), np.inf).min(axis=1)
    return np.asarray(cost / traffic.amount, np.float64)


@dataclass(frozen=True, slots=True, eq=False)
class _Tree:
    """To D destinations: float64[N, D] what the way there costs, int64[N, D] its first link."""

    cost: Reals
    link: Numbers


@dataclass(frozen=True, slots=True, eq=False)
class _Ways:
    """Paths of flows: the flow of each, ascending; and pairs of a path and an arc it crosses.

    share: float64[n], of its flow before, 0 for new ones.
    """

    flow: Numbers
    share: Reals
    path: Numbers
    arc: Numbers

    def paths(self, traffic: Traffic, arcs: int) -> FlowPaths:
        """These for a fit, each flow a choice."""
        count = np.bincount(self.flow, minlength=len(traffic.source))
        return FlowPaths(
            arc=self.arc.astype(np.int32),
            share=self.path.astype(np.int32),
            flow=self.flow[self.path].astype(np.int32),
            amount=traffic.amount[self.flow[self.path]],
            ways=np.arange(count.max()) < count[:, None],
            row=np.arange(len(count)),
            arcs=arcs,
        )

    def begin(self, found: Fit, paths: FlowPaths) -> Fit:
        """The shares before, in the places of these."""
        shares = np.zeros(paths.ways.shape)
        shares[paths.ways] = self.share
        return found._replace(shares=shares)

    def used(self, found: Fit, paths: FlowPaths) -> _Ways:
        """Those that carry something."""
        share = found.shares[paths.ways]
        kept = share > 0
        number = np.cumsum(kept) - 1
        crossing = kept[self.path]
        path, arc = number[self.path[crossing]], self.arc[crossing]
        return _Ways(self.flow[kept], share[kept], path, arc)

    def joined(self, others: _Ways) -> _Ways:
        """Both, by flow."""
        flow = np.concatenate((self.flow, others.flow))
        order = np.argsort(flow, kind="stable")
        number = np.empty(len(order), np.int64)
        number[order] = np.arange(len(order))
        return _Ways(
            flow=flow[order],
            share=np.concatenate((self.share, others.share))[order],
            path=number[np.concatenate((self.path, others.path + len(self.flow)))],
            arc=np.concatenate((self.arc, others.arc)),
        )


@dataclass(frozen=True, slots=True, eq=False)
class _Links:
    """A graph towards D destinations: int32[N, K] neighbours, int64[D], and each flow's of these.

    Arc v·K + k is the k-th link of vertex v.
    """

    far: NDArray[np.int32]
    ends: Numbers
    column: Numbers

    def shortest(self, prices: Reals) -> _Tree:
        """The cheapest ways at these prices, float64[N, K] (Bellman and Ford)."""
        cost = np.full((len(self.far), len(self.ends)), np.inf)
        cost[self.ends, np.arange(len(self.ends))] = 0
        link = np.full(cost.shape, -1)
        for _ in range(MOST_HOPS):
            before = cost.copy()
            for k in range(self.far.shape[1]):
                over = cost[self.far[:, k]] + prices[:, k, None]
                better = over < cost
                np.copyto(cost, over, where=better)
                np.copyto(link, k, where=better)
            if (before == cost).all():
                break
        return _Tree(cost, link)

    def beside(self, paths: FlowPaths, traffic: Traffic, prices: Reals) -> _Ways:
        """Ways around the arcs that even shares of these load above the mean."""
        count = np.count_nonzero(paths.ways, axis=1)[:, None]
        loads = paths.loads(paths.ways / count).reshape(prices.shape)
        prices = prices * (1 + loads / loads[np.isfinite(prices)].mean())
        pays = _pays(paths, traffic, prices)
        return self.detours(self.shortest(prices), traffic, pays, prices)

    def bound(self, tree: _Tree, traffic: Traffic) -> float:
        """What all flows pay on their cheapest ways, where all prices add up to 1."""
        return float(traffic.amount @ tree.cost[traffic.source, self.column])

    def detours(self, tree: _Tree, traffic: Traffic, pays: Reals, prices: Reals) -> _Ways:
        """Of every flow the ways over each link, cheapest from there, for less than it pays.

        None passes the source again.
        """
        far = self.far[traffic.source]
        rest = np.where(far >= 0, tree.cost[far, self.column[:, None]], np.inf)
        cost = prices[traffic.source] + rest
        flow, link = np.nonzero(cost < (pays * (1 - CHEAPER))[:, None])
        arcs, good = self._followed(tree, traffic.source[flow], link, self.column[flow])
        number = np.cumsum(good) - 1
        path, place = np.nonzero((arcs >= 0) & good[:, None])
        flow = flow[good]
        return _Ways(flow, np.zeros(len(flow)), number[path], arcs[path, place])

    def _followed(
        self, tree: _Tree, source: Numbers, link: Numbers, column: Numbers
    ) -> tuple[Numbers, NDArray[np.bool_]]:
        """int64[n, H], the arcs of ways over these links; bool[n], whether none comes back."""
        at, good, found = source, np.ones(len(source), np.bool_), [np.full(len(source), -1)]
        for hop in range(MOST_HOPS):
            going = good & (at != self.ends[column])
            if not going.any():
                break
            out = tree.link[at, column] if hop else link
            found.append(np.where(going, at * self.far.shape[1] + out, -1))
            at = np.where(going, self.far[at, out], at).astype(np.int64)
            good = good & (at != source)
        return np.column_stack(found), good
