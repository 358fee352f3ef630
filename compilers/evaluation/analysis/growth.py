"""Growth of a PolarFly by racks or a twin of its nucleus, measured (PolarFly paper, §VI)."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from compilers.evaluation.analysis.distances import distribution
from compilers.evaluation.analysis.link_load import uniform
from compilers.evaluation.analysis.neighbour_sums import Report
from compilers.topology.labelled_graph import Topology
from compilers.topology.replicated_clusters import METHODS, check, expand
from inventory.problems import InputError


@dataclass(frozen=True, slots=True)
class Growth:
    """The fabric after adding `racks` by a method, or as it is (method None)."""

    method: str | None
    racks: int
    nodes: int
    added_links: int
    least_degree: int
    largest_degree: int
    diameter: int | None
    mean_distance: float | None
    pairs_at_3: int
    full_throughput_hosts: float


def grows(topology: Topology) -> tuple[str, ...]:
    """The methods by which a topology can grow, none if it cannot."""
    return tuple(method for method in METHODS if not check(topology, method, 1))


def growth(topology: Topology, racks: int = 4, report: Report | None = None) -> list[Growth]:
    """The fabric as it is, and with 1 to `racks` additions by every method that it allows.

    Raises:
        InputError: it is no PolarFly.
    """
    methods = grows(topology)
    if not methods:
        required = "a PolarFly to grow"
        raise InputError.of(key="expansion", required=required, given=topology.title())
    cases = list(_cases(topology, methods, racks))
    found = [_measured(None, 0, topology, 0)]
    for done, (method, count) in enumerate(cases):
        larger = expand(topology, method, count)
        found.append(_measured(method, count, larger.topology, len(larger.added)))
        if report:
            report(done + 1, len(cases))
    return found


def _cases(topology: Topology, methods: tuple[str, ...], racks: int) -> Iterator[tuple[str, int]]:
    for method in methods:
        for count in range(1, racks + 1):
            if not check(topology, method, count):
                yield method, count


def _measured(method: str | None, racks: int, topology: Topology, added: int) -> Growth:
    found, degrees = distribution(topology), topology.graph.degrees
    return Growth(
        method=method,
        racks=racks,
        nodes=topology.graph.order,
        added_links=added,
        least_degree=int(degrees.min()),
        largest_degree=int(degrees.max()),
        diameter=found.diameter,
        mean_distance=found.mean,
        pairs_at_3=found.pairs[3] // 2 if len(found.pairs) > 3 else 0,
        full_throughput_hosts=uniform(topology).full_throughput_hosts,
    )
