"""Designs with all their figures by formula: hosts, groups, cost and power.

`candidate` makes a `Candidate` of a design, for `designs` and for the tables of the papers. The
cost model is that of the Projective Networks paper, §V-C: nodes are packed in groups of about
`Prices.electrical_group` hosts; cables within a group are electrical, all others are optical.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from math import ceil, comb, floor
from typing import Any

from compilers.evaluation.comparison.formulas import CarriedShare, Formulas, formulas
from compilers.evaluation.comparison.prices import Prices
from compilers.topology.families import family_of
from compilers.topology.family import Design, Modules

HOSTS_SLACK = 0.005
"""The part by which hosts may exceed the number for full throughput, as in the paper."""


@dataclass(frozen=True, slots=True)
class Cost:
    """The cost of a fabric per host."""

    dollars: float
    """$ of routers and cables (Projective Networks paper, §V-C)."""
    watts: float
    """W of routers (Projective Networks paper, §V-C)."""
    optical_uniform: float
    """Co-packaged optical ports over the uniform load that the fabric sustains (PolarFly paper,
    §X)."""
    optical_permutation: float
    """Co-packaged optical ports over the load by permutations that the fabric sustains."""


@dataclass(frozen=True, slots=True)
class Candidate:
    """One design with all the figures by which it is compared."""

    design: Design
    """The design."""
    figures: Formulas
    """Its figures by formula."""
    full_throughput_hosts: float | None
    """Δ0, the hosts of a node with which uniform traffic just runs at full rate; None without a
    formula."""
    hosts: int
    """The hosts at each node with hosts: Δ0 rounded down (up to 0.5 % too many is accepted, as in
    the paper), or, if no formula gives Δ0, the radix over the diameter (PolarStar paper, Table 3).
    """
    packing: Packing | None
    """Its groups of nodes that are cabled electrically; None where it has no natural modules."""
    cost: Cost
    """$ and W for each host."""
    modules: int
    """The optical modules of a node."""
    nodes_with_one_more: int = 0
    """The number of nodes that have `hosts` + 1 hosts, where the hosts do not divide evenly."""
    ports: int | None = None
    """The ports of the routers on offer; None: each router has just the ports that it uses."""

    @property
    def name(self) -> str:
        """The family and its parameters as text."""
        return self.figures.family.title(self.design.parameters)

    @property
    def total_hosts(self) -> int:
        """T, the hosts of the whole fabric."""
        return self.hosts * self.design.endpoints + self.nodes_with_one_more

    @property
    def most_hosts(self) -> int:
        """The hosts of a node that has the most."""
        return self.hosts + (self.nodes_with_one_more > 0)

    @property
    def router_ports(self) -> int:
        """R, the ports of the one kind of router that serves everywhere."""
        return self.ports or router_ports(self.design, self.figures, self.most_hosts)

    @property
    def subscription(self) -> float | None:
        """Most hosts of a node over Δ0; above 1, uniform traffic cannot run at full rate."""
        if not self.full_throughput_hosts:
            return None
        return self.most_hosts / self.full_throughput_hosts

    @property
    def price(self) -> float:
        """$ of all routers and of the cables between them."""
        return self.cost.dollars * self.total_hosts

    @property
    def uniform(self) -> CarriedShare | None:
        """What uniform traffic gets."""
        return self.figures.uniform(self.most_hosts, even=not self.nodes_with_one_more)

    @property
    def guaranteed(self) -> CarriedShare | None:
        """What any traffic gets, by the balance for any traffic."""
        return self.figures.guaranteed(self.most_hosts, even=not self.nodes_with_one_more)

    @property
    def electrical(self) -> int:
        """Cables that stay inside a group; all others are optical."""
        return self.packing.electrical if self.packing else 0

    def row(self) -> dict[str, Any]:
        """Every figure by name."""
        design, figures = self.design, self.figures
        return {
            "family": design.family,
            "radix": design.radix,
            "nodes": design.nodes,
            "q": design.q,
            "supernode": design.supernode,
            "supernode_degree": design.supernode_degree,
            "supernode_order": design.supernode_order,
            "links": design.links,
            "diameter": design.diameter,
            "moore_efficiency": design.moore_efficiency,
            "parameters": dict(design.parameters),
            "endpoints": design.endpoints,
            "host_diameter": design.host_diameter,
            "mean_distance": figures.mean_distance,
            "utilisation": figures.utilisation,
            "utilisation_basis": figures.basis,
            "full_throughput_hosts": self.full_throughput_hosts,
            "hosts_per_node": self.hosts,
            "hosts": self.total_hosts,
            "subscription": self.subscription,
            "router_ports": self.router_ports,
            "bundles": self.packing.bundles if self.packing else None,
            "electrical_group": self.packing.size if self.packing else None,
            "electrical_groups": self.packing.groups if self.packing else None,
            "electrical_cables": self.electrical,
            "optical_cables": design.links - self.electrical,
            "optical_modules": self.modules,
            "cost_per_host": self.cost.dollars,
            "power_per_host": self.cost.watts,
            "optical_ports_per_host_uniform": self.cost.optical_uniform,
            "optical_ports_per_host_permutation": self.cost.optical_permutation,
            "one_host_more_at": self.nodes_with_one_more,
            "price": self.price,
            **_carried("uniform", self.uniform),
            **_carried("guaranteed", self.guaranteed),
        }


def _carried(key: str, carried: CarriedShare | None) -> dict[str, float | str | None]:
    """The three figures of a share that traffic gets, by their names in `Candidate.row`."""
    return {
        key: carried.share if carried else None,
        f"{key}_balance": carried.balance if carried else None,
        f"{key}_basis": carried.basis if carried else None,
    }


def candidate(
    design: Design,
    prices: Prices,
    hosts: int | None = None,
    electrical: int | None = None,
    priced_as_hosts: int | None = None,
    nodes_with_one_more: int = 0,
    ports: int | None = None,
) -> Candidate:
    """The design with all its figures.

    Args:
        design: of any family, the baselines included.
        prices: what things cost.
        hosts: the hosts of a node with hosts; None for the number at full throughput.
        electrical: the number of cables inside groups; None for that of `packing`.
        priced_as_hosts: the size of the fabric, in hosts, whose price of optical cables is taken;
            None for the size of the design.
        nodes_with_one_more: the number of nodes that have one host more.
        ports: the ports of the routers on offer; None for as many as are used.
    """
    figures = formulas(design)
    if hosts is None:
        hosts = max(1, floor(largest_hosts(design, figures)))
    total_hosts = hosts * design.endpoints + nodes_with_one_more
    best_packing = packing(design, total_hosts / design.endpoints, prices.electrical_group)
    if electrical is not None and best_packing is not None:
        best_packing = replace(best_packing, electrical=electrical)
    electrical_links = best_packing.electrical if best_packing else 0
    ports_bought = ports or router_ports(design, figures, hosts + (nodes_with_one_more > 0))
    return Candidate(
        design=design,
        figures=figures,
        full_throughput_hosts=figures.full_throughput_hosts,
        hosts=hosts,
        packing=best_packing,
        cost=_cost(
            design,
            hosts=total_hosts,
            ports=ports_bought,
            electrical_links=electrical_links,
            prices=prices,
            priced_as_hosts=priced_as_hosts,
        ),
        modules=ceil(design.radix / prices.links_per_module),
        nodes_with_one_more=nodes_with_one_more,
        ports=ports,
    )


def largest_hosts(design: Design, figures: Formulas) -> float:
    """The most hosts of a node: 1.005·Δ0; without a formula for Δ0, the radix over the diameter."""
    if figures.full_throughput_hosts is None:
        return float(figures.leaf_degree // design.host_diameter)
    return figures.full_throughput_hosts * (1 + HOSTS_SLACK)


def router_ports(design: Design, figures: Formulas, hosts: int) -> int:
    """R, the ports that any router needs, as one kind of router serves as leaf and as spine."""
    return max(figures.leaf_degree + hosts, design.radix)


def _cost(
    design: Design,
    hosts: int,
    ports: int,
    electrical_links: int,
    prices: Prices,
    priced_as_hosts: int | None,
) -> Cost:
    """The cost per host.

    Args:
        design: the switches and links.
        hosts: the hosts of the fabric.
        ports: of each router.
        electrical_links: the cables inside groups, which are electrical.
        prices: what things cost.
        priced_as_hosts: as in `candidate`.
    """
    routers = design.nodes * (prices.router_per_port * ports + prices.router_base)
    electrical = electrical_links * prices.electrical_per_gbps
    optical = (design.links - electrical_links) * prices.optical(priced_as_hosts or hosts)
    # Each link has an optical port at both ends. In an indirect network, the link between a host
    # and its switch has two more; in a direct one, hosts and switch are one package.
    is_indirect = design.endpoints < design.nodes
    optical_ports = 2 * design.links / hosts + 2 * is_indirect
    saturation = prices.saturation_permutation_direct
    if is_indirect:
        saturation = prices.saturation_permutation_indirect
    return Cost(
        dollars=(routers + prices.link_gbps * (electrical + optical)) / hosts,
        watts=design.nodes * ports * prices.watts_per_port / hosts,
        optical_uniform=optical_ports / prices.saturation_uniform,
        optical_permutation=optical_ports / saturation,
    )


@dataclass(frozen=True, slots=True)
class Packing:
    """Groups of nodes that are cabled electrically."""

    size: int
    """The most nodes of a group."""
    groups: int
    """The number of groups."""
    electrical: int
    """The links inside groups."""
    bundles: int | None
    """The bundles of cables between modules; None where modules have no bundles."""


def packing(design: Design, hosts: float, group_hosts: float) -> Packing | None:
    """The groups whose size is nearest to a number of hosts; None if all cables are optical.

    Args:
        design: the switches and their modules.
        hosts: the hosts of a node with hosts, on average.
        group_hosts: the hosts that a group should have.
    """
    ways_to_divide = list(family_of(design.family).modules(design.parameters))
    if not ways_to_divide:
        return None
    options = [
        option
        for modules in ways_to_divide
        for option in (
            *_packings_of_modules(modules, hosts, group_hosts),
            *_packings_of_parts(modules, hosts, group_hosts),
        )
    ]
    best = min(options, key=lambda option: abs(option.size * hosts - group_hosts))
    # Bundles run between the modules of the first way, which is the natural one.
    return replace(best, bundles=ways_to_divide[0].bundles)


def _packings_of_modules(modules: Modules, hosts: float, group_hosts: float) -> Iterator[Packing]:
    """Yield the packings whose groups are one module, or several if links join them."""
    most_merged = 1
    if modules.between is not None:
        most_merged = max(1, int(group_hosts / (modules.size * hosts)) + 1)
    for merged in range(1, min(most_merged, modules.count) + 1):
        size, groups = modules.nodes(merged), modules.groups(merged)
        yield Packing(size, groups, modules.electrical(merged), modules.bundles)


def _packings_of_parts(modules: Modules, hosts: float, group_hosts: float) -> Iterator[Packing]:
    """Yield the packings whose groups are parts of a module, in families that allow it.

    All nodes of such a module are joined to each other, so a part of n nodes has n·(n - 1)/2 links.
    """
    if not modules.splits:
        return
    for parts in range(2, int(modules.size * hosts / group_hosts) + 2):
        # Where the nodes do not divide evenly, the larger parts have one node more.
        nodes, larger_parts = divmod(modules.size, parts)
        links = larger_parts * comb(nodes + 1, 2) + (parts - larger_parts) * comb(nodes, 2)
        size = nodes + (larger_parts > 0)
        yield Packing(size, modules.count * parts, modules.count * links, modules.bundles)
