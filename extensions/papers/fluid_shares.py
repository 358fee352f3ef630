"""What minimal routes carry of a traffic, by the fluid of `polarfab throughput`, at any size.

Nothing is simulated: it is the rate at which the hottest link is full. At more than this only the
flows over that link are held back, and queues lower what a simulation accepts. So the mean load
that a simulation accepts may be more or less.
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
from extensions.papers.latency_curves import FARTHEST, PaperFabric

ALL_PATHS = {"balance": "ecmp", "transit": "ecmp"}
"""The `routing` of networks whose packets take any shortest path, evenly at every hop."""

FLUID = (
    "By the hottest link: what `polarfab throughput` estimates of minimal routes at the paper's"
    " size, without queues. Nothing is simulated for it. Packets of Dragonfly take its usual"
    " routes, over the link between both groups. Those of PolarStar go by §9.2's rule, and over all"
    " shortest paths within a supernode."
)

READ_FLUID = "Read as of the load at which the hottest link of minimal routes is full."


@cache
def minimal_share(fabric: str, pattern: str) -> float:
    """The share of their rate at which hosts fill the hottest link of minimal routes, at most 1.

    Packets of Dragonfly take its usual routes, as BookSim's do, and those of PolarStar go by the
    rule of its paper.

    Args:
        fabric: a `PaperFabric` as JSON, routed by `MIN` or over all shortest paths.
        pattern: the traffic; `adversarial` is between groups.
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
    """The share of their rate at which hosts fill a link.

    Args:
        peak: its load, in units of what the hosts of a switch send.
        network: the network with its hosts.
    """
    return 1 / max(1.0, network.hosts * peak)


def _traffic(network: PaperFabric, topology: Topology, pattern: str) -> Traffic:
    """The traffic of a pattern; `adversarial` is between groups."""
    if pattern == "adversarial":
        return between_groups(topology, network.group, FARTHEST, seed=0)
    return PATTERNS[pattern](topology, network.hosts, 0)


def _usual_peak(dragonfly: Topology, traffic: Traffic) -> float:
    """The load of the hottest link of a Dragonfly with one link between any two groups.

    A packet goes over that link, and over one link or none in each of both groups. Other shortest
    paths, over the links of two global ports, are left out.
    """
    order, group = dragonfly.graph.order, dragonfly.coordinates[:, 0]
    edges = dragonfly.graph.edges()
    arcs = np.concatenate((edges, edges[:, ::-1]))
    tails, heads = arcs[group[arcs[:, 0]] != group[arcs[:, 1]]].T
    groups = int(group.max()) + 1
    gate = np.full((groups, groups), -1)
    gate[group[tails], group[heads]] = tails
    source, goal = traffic.source, traffic.destination
    away = group[source] != group[goal]
    leave = np.where(away, gate[group[source], group[goal]], source)
    enter = np.where(away, gate[group[goal], group[source]], source)
    load = np.zeros(order * order)
    for one, other in ((source, leave), (leave, enter), (enter, goal)):
        crossed = one != other
        arc = one[crossed] * order + other[crossed]
        load += np.bincount(arc, traffic.amount[crossed], order * order)
    return float(load.max())


def _ruled_peak(star: Topology, traffic: Traffic) -> float:
    """The load of the hottest link of a PolarStar by the rule of its paper (§9.2).

    The rule has no paths within a supernode: there all shortest ones are taken, evenly.
    """
    order, size = star.graph.order, star.hierarchy
    is_far = traffic.source // size != traffic.destination // size
    rule = family_paths("polarstar", star.parameters)
    paths = rule.paths(
        traffic.source[is_far].astype(np.int32), traffic.destination[is_far].astype(np.int32)
    )
    load = np.zeros(order * order)
    for one, other in zip(paths.T[:-1], paths.T[1:], strict=True):
        crossed = other >= 0
        arc = one[crossed].astype(np.int64) * order + other[crossed]
        load += np.bincount(arc, traffic.amount[is_far][crossed], order * order)
    joined = np.zeros((order, order), np.bool_)
    joined[star.graph.tails(), star.graph.targets] = True
    near = [np.flatnonzero(row) for row in joined]
    within = zip(traffic.source[~is_far], traffic.destination[~is_far], strict=True)
    for (one, other), amount in zip(within, traffic.amount[~is_far], strict=True):
        shortest = list(_shortest(near, int(one), int(other)))
        for path in shortest:
            for tail, head in pairwise(path):
                load[tail * order + head] += amount / len(shortest)
    return float(load.max())


def _shortest(
    near: Sequence[NDArray[np.int64]], source: int, goal: int
) -> Iterator[tuple[int, ...]]:
    """Yield all shortest paths between two vertices that are a few links apart.

    Args:
        near: the neighbours of each vertex.
        source: the first vertex.
        goal: another one.
    """
    paths: list[tuple[int, ...]] = [(source,)]
    while not any(path[-1] == goal for path in paths):
        paths = [(*path, int(vertex)) for path in paths for vertex in near[path[-1]]]
    yield from (path for path in paths if path[-1] == goal)


PEAKS: dict[str, Callable[[Topology, Traffic], float]] = {
    "dragonfly": _usual_peak,
    "polarstar": _ruled_peak,
}
"""The load of the hottest link of networks that the papers route by rules of their own."""
