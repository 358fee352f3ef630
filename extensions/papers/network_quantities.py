"""Quantities of the networks in the papers' tables, such as routers, cables and cost per host.

`configuration` makes the network of an entry of `papers.yaml`, with hosts, cables and prices, and
`QUANTITIES` computes the columns of the tables from it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cache
from typing import NamedTuple, TypedDict

from compilers.evaluation.comparison.candidates import Candidate, candidate
from compilers.evaluation.comparison.prices import prices
from compilers.topology.families import BASELINES, FAMILIES, build_topology
from compilers.topology.family import Design


class NetworkEntry(TypedDict, total=False):
    """A network of a table, as `papers.yaml` has it."""

    family: str
    """The family of the topology."""
    radix: int
    """The radix of the network, without hosts."""
    parameters: dict[str, int | str]
    """The parameters of the topology, or those that the paper's text has not lost."""
    largest: bool
    """Whether some parameters are lost: the network is the largest that has the others."""
    hosts: int
    """The hosts of a router; without this key as many as formula (1) allows."""
    electrical: int
    """The number of electrical cables, taken from the paper; without this key that of our racks."""
    utilisation: float
    """The u with which the paper's subscription is computed; without this key ours."""
    printed: dict[str, int | str]
    """The printed values, by quantity."""


class NetworkCounts(NamedTuple):
    """Sizes of a network, counted in its graph."""

    order: int
    """The routers."""
    degree: int
    """The largest degree of a router."""
    leaves: int
    """The routers with compute nodes."""
    leaf_degree: int
    """The largest degree of these."""
    links: int
    """The links between routers."""


def counts_of_network(network: Candidate) -> NetworkCounts:
    """The sizes of a network, counted in the graph that is built, not by formulas of its family."""
    return counts_of_design(network.design.family, tuple(network.design.parameters.items()))


@cache
def counts_of_design(
    family: str, parameters: tuple[tuple[str, int | str | None], ...]
) -> NetworkCounts:
    """Sizes counted in the graph of a family with these parameters."""
    topology = build_topology(family, dict(parameters))
    graph, leaves = topology.graph, topology.endpoints
    return NetworkCounts(
        order=graph.order,
        degree=int(graph.degrees.max()),
        leaves=int(leaves.sum()),
        leaf_degree=int(graph.degrees[leaves].max()),
        links=graph.size,
    )


def _all_hosts(network: Candidate) -> int:
    """T, the compute nodes of a network."""
    return network.hosts * counts_of_network(network).leaves


def _ports(network: Candidate) -> int:
    """R, the ports of a router, of which there is one kind."""
    counts = counts_of_network(network)
    return max(counts.leaf_degree + network.hosts, counts.degree)


def _hosts_of_electrical_group(network: Candidate) -> int | None:
    """The hosts of the routers that are packed together, joined by electrical cables."""
    return network.packing.size * network.hosts if network.packing else None


def subscription(network: Candidate, utilisation: float | None = None) -> float | None:
    """The compute nodes of a router over those of formula (1), Δ·u/k̄ with the largest degree Δ.

    Args:
        network: with all its figures.
        utilisation: u, instead of the network's own.
    """
    mean, u = network.figures.mean_distance, utilisation or network.figures.utilisation
    if not mean or not u:
        return None
    return network.hosts * mean / (network.design.radix * u)


QUANTITIES: dict[str, Callable[[Candidate], float | None]] = {
    "routers": lambda network: counts_of_network(network).order,
    "radix": lambda network: counts_of_network(network).degree,
    "endpoints": _all_hosts,
    "T": _all_hosts,
    "R": _ports,
    "N": lambda network: counts_of_network(network).order,
    "hosts per router": lambda network: network.hosts,
    "subscription": subscription,
    "electrical group": _hosts_of_electrical_group,
    "electrical groups": lambda network: network.packing.groups if network.packing else None,
    "electrical cables": lambda network: network.electrical,
    "optical cables": lambda network: counts_of_network(network).links - network.electrical,
    "cables": lambda network: counts_of_network(network).links,
    "cost per host ($)": lambda network: network.cost.dollars,
    "power per host (W)": lambda network: network.cost.watts,
}
"""How the value of each column is computed: sizes are counted in built graphs, and the rest follows
by formulas."""


def configuration(entry: NetworkEntry, priced_as_hosts: int | None) -> Candidate:
    """A network of `papers.yaml` with hosts, cables and prices.

    Args:
        entry: the network as the file has it.
        priced_as_hosts: the number of hosts that sets the price of optical cables; None for the
            design's own.
    """
    largest = entry.get("largest", False)
    design = _design(entry["family"], entry["radix"], entry["parameters"], largest)
    return candidate(
        design,
        prices(),
        hosts=entry.get("hosts"),
        electrical=entry.get("electrical"),
        priced_as_hosts=priced_as_hosts,
    )


def _design(
    family: str, radix: int, parameters: Mapping[str, int | str], largest: bool = False
) -> Design:
    """The design of a family that has a radix and all these parameters.

    Args:
        family: the name of the family.
        radix: the radix of the network.
        parameters: some parameters of the design, or all.
        largest: whether it is the largest of diameter 3 that has them, and not the first.
    """
    if family == "jellyfish":  # any order will do, so the family offers no designs
        nodes = int(parameters["nodes"])
        return BASELINES[family].design(radix, nodes, 3, {"nodes": nodes, "degree": radix})
    designs_of_radix = (FAMILIES.get(family) or BASELINES[family]).designs(radix)
    designs = (
        design for design in designs_of_radix if parameters.items() <= design.parameters.items()
    )
    if largest:
        return max(
            (design for design in designs if design.diameter == 3), key=lambda design: design.nodes
        )
    return next(designs)
