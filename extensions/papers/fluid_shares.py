"""The load at which minimal routes saturate, computed as `polarfab throughput` does, at any size.

Traffic is a fluid that splits over routes, and nothing is simulated. The network saturates at the
load of the hosts at which its hottest link is full. The mean load that a simulation accepts may be
more, as above that load only the flows over the full link are held back. It may be less, as below
that load packets already wait in queues.

The exhibits that compare minimal routes call `minimal_share`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import cache
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from compilers.demand.fluid import Fluid
from compilers.demand.traffic_matrix import Traffic
from compilers.evaluation.saturation import loads_by_tables
from compilers.evaluation.traffic import PATTERNS, between_groups
from compilers.forwarding.family_paths import family_paths
from compilers.pipeline import compile_fabric
from compilers.spec.fabric_file import load_fabric
from compilers.topology.families import build_topology
from compilers.topology.labelled_graph import Topology
from extensions.papers.graphs import matrix_of
from extensions.papers.paper_fabric import FARTHEST, PaperFabric

ALL_PATHS = {"balance": "ecmp", "transit": "ecmp"}
"""The `routing` of networks whose packets take any shortest path, evenly at every hop."""

FLUID = (
    "By the hottest link: what `polarfab throughput` estimates of minimal routes at the paper's"
    " size, without queues. Nothing is simulated for it. Packets of Dragonfly take its usual"
    " routes, over the link between both groups. Those of PolarStar go by §9.2's rule, and over all"
    " shortest paths within a supernode."
)
"""The remark beside figures with values of `minimal_share`."""
READ_FLUID = "Read as of the load at which the hottest link of minimal routes is full."
"""How a claim is read whose value is a `minimal_share`."""


@cache
def minimal_share(fabric: str, pattern: str) -> float:
    """The saturation load by minimal routes: the share of the hosts' rate that fills a first link.

    It is 1 if no link is full at the hosts' whole rate. Packets of Dragonfly take its usual routes,
    as BookSim's do, and those of PolarStar go by the rule of its paper.

    Args:
        fabric: a `PaperFabric` as JSON, routed by `MIN` or over all shortest paths.
        pattern: the traffic, as for `_traffic`.
    """
    network = PaperFabric.of_text(fabric)
    parameters = dict(network.topology)
    family = str(parameters.pop("family"))
    if peak_of := PEAKS.get(family):
        topology = build_topology(family, parameters)
        return _share_of(peak_of(topology, _traffic(network, topology, pattern)), network)
    build = network.build()
    if network.routes != "MIN":
        spec = {"name": "fluid", "topology": dict(network.topology), "routing": ALL_PATHS}
        build = compile_fabric(load_fabric(spec))
    load = loads_by_tables(build, Fluid.of(build), _traffic(network, build.topology, pattern))
    return _share_of(float(load.max()), network)


def _share_of(peak: float, network: PaperFabric) -> float:
    """The share of their rate at which hosts fill the hottest link; 1 if they cannot fill it.

    Args:
        peak: the load of the hottest link if each switch had one host, which sends 1.
        network: the network with its hosts.
    """
    return 1 / max(1.0, network.hosts * peak)


def _traffic(network: PaperFabric, topology: Topology, pattern: str) -> Traffic:
    """The traffic of a pattern; `adversarial` is between groups."""
    if pattern == "adversarial":
        return between_groups(topology, network.group, FARTHEST, seed=0)
    return PATTERNS[pattern](topology, network.hosts, 0)


def _dragonfly_peak(dragonfly: Topology, traffic: Traffic) -> float:
    """The load of the hottest link of a Dragonfly by its usual routes.

    One link, between two switches that are called gates here, joins any two groups. A packet goes
    over this link, and over at most one link in each of both groups. Other shortest paths, over
    two links between groups, are left out.
    """
    switches, group = dragonfly.graph.order, dragonfly.coordinates[:, 0]
    edges = dragonfly.graph.edges()
    arcs = np.concatenate((edges, edges[:, ::-1]))
    tails, heads = arcs[group[arcs[:, 0]] != group[arcs[:, 1]]].T
    groups = int(group.max()) + 1
    # int[groups, groups]: the switch in one group that has the link to another group.
    gate = np.full((groups, groups), -1)
    gate[group[tails], group[heads]] = tails
    source, destination = traffic.source, traffic.destination
    is_far = group[source] != group[destination]
    # Switches of one group need no gates. With the source in place of both gates, the first two
    # hops below lead nowhere, and the third is the link from the source to the destination.
    exit_gate = np.where(is_far, gate[group[source], group[destination]], source)
    entry_gate = np.where(is_far, gate[group[destination], group[source]], source)
    load = np.zeros(switches * switches)
    hops = ((source, exit_gate), (exit_gate, entry_gate), (entry_gate, destination))
    for tail, head in hops:
        is_hop = tail != head
        arc = tail[is_hop] * switches + head[is_hop]
        load += np.bincount(arc, traffic.amount[is_hop], switches * switches)
    return float(load.max())


def _polarstar_peak(star: Topology, traffic: Traffic) -> float:
    """The load of the hottest link of a PolarStar by the rule of its paper (§9.2).

    The rule has no paths within a supernode: there all shortest ones are taken, evenly.
    """
    switches, size = star.graph.order, star.hierarchy
    is_far = traffic.source // size != traffic.destination // size
    rule = family_paths("polarstar", star.parameters)
    paths = rule.paths(
        traffic.source[is_far].astype(np.int32), traffic.destination[is_far].astype(np.int32)
    )
    load = np.zeros(switches * switches)
    for tails, heads in zip(paths.T[:-1], paths.T[1:], strict=True):
        is_hop = heads >= 0
        arc = tails[is_hop].astype(np.int64) * switches + heads[is_hop]
        load += np.bincount(arc, traffic.amount[is_far][is_hop], switches * switches)
    neighbours = [np.flatnonzero(row) for row in matrix_of(star.graph)]
    pairs = zip(traffic.source[~is_far], traffic.destination[~is_far], strict=True)
    for (source, destination), amount in zip(pairs, traffic.amount[~is_far], strict=True):
        shortest = list(_shortest_paths(neighbours, int(source), int(destination)))
        for path in shortest:
            for tail, head in pairwise(path):
                load[tail * switches + head] += amount / len(shortest)
    return float(load.max())


def _shortest_paths(
    neighbours: Sequence[NDArray[np.int64]], source: int, destination: int
) -> Iterator[tuple[int, ...]]:
    """Yield all shortest paths between two vertices that are a few links apart.

    All walks of growing length are listed until one ends at the destination, which is quick within
    a supernode.

    Args:
        neighbours: the neighbours of each vertex.
        source: the first vertex.
        destination: the last vertex.
    """
    paths: list[tuple[int, ...]] = [(source,)]
    while not any(path[-1] == destination for path in paths):
        paths = [(*path, int(vertex)) for path in paths for vertex in neighbours[path[-1]]]
    yield from (path for path in paths if path[-1] == destination)


PEAKS: dict[str, Callable[[Topology, Traffic], float]] = {
    "dragonfly": _dragonfly_peak,
    "polarstar": _polarstar_peak,
}
"""The functions that compute the load of the hottest link, of families that the papers route by
rules of their own. Other families are routed by our tables."""
