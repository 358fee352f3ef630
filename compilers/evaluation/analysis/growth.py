"""The figures of a PolarFly that grows by copies of racks or of its nucleus (PolarFly paper, §VI).

It is the analysis `expansion`. `compilers/topology/replicated_clusters.py` adds the copies.
"""

from __future__ import annotations

from dataclasses import dataclass

from compilers.evaluation.analysis.distances import distribution
from compilers.evaluation.analysis.link_load import uniform
from compilers.evaluation.analysis.neighbour_sums import Report
from compilers.topology.labelled_graph import Topology
from compilers.topology.replicated_clusters import METHODS, expand, growth_problems
from inventory.problems import InputError


@dataclass(frozen=True, slots=True)
class GrowthStep:
    """The figures of the fabric after some additions by a method."""

    method: str | None
    """A method of `METHODS`; None for the fabric as it is."""
    racks: int
    """How many racks, or copies of the nucleus, were added; 0 for the fabric as it is."""
    nodes: int
    """The switches of the grown fabric."""
    added_links: int
    """The links that were added."""
    least_degree: int
    """The fewest links of a switch."""
    largest_degree: int
    """The most links of a switch."""
    diameter: int | None
    """The largest distance of switches with hosts; None if a pair has no path."""
    mean_distance: float | None
    """The mean distance of switches with hosts; None if a pair has no path."""
    pairs_at_3: int
    """The unordered pairs of switches that are three links apart."""
    full_throughput_hosts: float
    """The hosts of a node at which uniform traffic fills the fullest link."""


def growth_methods(topology: Topology) -> tuple[str, ...]:
    """The methods by which a topology can grow, none if it cannot."""
    return tuple(method for method in METHODS if not growth_problems(topology, method, 1))


def growth(topology: Topology, racks: int = 4, report: Report | None = None) -> list[GrowthStep]:
    """The fabric as it is, and with 1 to `racks` additions by every method that it allows.

    Args:
        topology: the fabric.
        racks: the most racks, or copies of the nucleus, to add.
        report: called with (additions done, all additions).

    Raises:
        InputError: it is no PolarFly.
    """
    methods = growth_methods(topology)
    if not methods:
        required = "a PolarFly to grow"
        raise InputError.of(key="expansion", required=required, given=topology.title())
    additions = [
        (method, count)
        for method in methods
        for count in range(1, racks + 1)
        if not growth_problems(topology, method, count)
    ]
    figures = [_measure(None, 0, topology, 0)]
    for number, (method, count) in enumerate(additions, 1):
        grown = expand(topology, method, count)
        figures.append(_measure(method, count, grown.topology, len(grown.added)))
        if report:
            report(number, len(additions))
    return figures


def _measure(method: str | None, racks: int, topology: Topology, added: int) -> GrowthStep:
    """Measure a grown fabric.

    Args:
        method: as in `GrowthStep`.
        racks: as in `GrowthStep`.
        topology: the grown fabric.
        added: the number of links that were added.
    """
    distances, degrees = distribution(topology), topology.graph.degrees
    return GrowthStep(
        method=method,
        racks=racks,
        nodes=topology.graph.order,
        added_links=added,
        least_degree=int(degrees.min()),
        largest_degree=int(degrees.max()),
        diameter=distances.diameter,
        mean_distance=distances.mean,
        pairs_at_3=distances.pairs[3] // 2 if len(distances.pairs) > 3 else 0,
        full_throughput_hosts=uniform(topology).full_throughput_hosts,
    )
