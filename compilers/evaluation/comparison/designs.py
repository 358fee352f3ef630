"""The designs of every family that a radix or a size allows, selected and ranked.

A *design* is the size of a possible fabric by formulas (`compilers.topology.family.Design`); a
*candidate* is a design with hosts, cost and power (`candidates`). `polarfab design` and
`polarfab init` call this module.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import groupby

from compilers.evaluation.comparison.candidates import (
    Candidate,
    candidate,
    largest_hosts,
    router_ports,
)
from compilers.evaluation.comparison.formulas import formulas
from compilers.evaluation.comparison.prices import Prices
from compilers.topology.families import BASELINES, FAMILIES
from compilers.topology.family import Design, Family
from inventory.problems import InputError, not_among

LARGEST_RADIX = 1025
"""The largest radix at which designs are searched."""
SWITCHES_PER_LEAF = 4
"""An upper bound of the switches for each switch with hosts, in any family.

Designs with more switches are left out before their figures are computed.
"""
LESS_IS_BETTER = (
    "radix",
    "links",
    "diameter",
    "host_diameter",
    "mean_distance",
    "subscription",
    "router_ports",
    "optical_cables",
    "optical_modules",
    "cost_per_host",
    "power_per_host",
    "optical_ports_per_host_uniform",
    "optical_ports_per_host_permutation",
    "one_host_more_at",
    "price",
)
"""The figures of `Candidate.row` of which the least is best."""
MORE_IS_BETTER = (
    "nodes",
    "moore_efficiency",
    "hosts",
    "utilisation",
    "full_throughput_hosts",
    "hosts_per_node",
    "uniform",
    "guaranteed",
)
"""The figures of which the largest is best."""
KEYS = MORE_IS_BETTER + LESS_IS_BETTER
"""The figures that candidates can be ranked by."""


@dataclass(frozen=True, slots=True)
class Sizing:
    """The size that is required of a fabric."""

    hosts: int
    """Hosts of the whole fabric."""
    ports: int | None = None
    """Ports of a switch, for hosts and links; None for as many as it needs."""
    oversubscription: float = 1.0
    """The largest allowed ratio of hosts to Δ0, the hosts that uniform traffic runs at full rate
    for."""
    min_nodes: int = 1
    """The fewest switches."""
    diameter: int | None = None
    """The most links between two switches with hosts; None for any."""

    def candidate_of(self, design: Design, prices: Prices) -> Candidate | None:
        """The design as a candidate with these hosts; None if it does not meet the requirements."""
        if not self.min_nodes <= design.nodes <= SWITCHES_PER_LEAF * self.hosts:
            return None
        if self.diameter is not None and design.host_diameter > self.diameter:
            return None
        figures = formulas(design)
        hosts, more = divmod(self.hosts, design.endpoints)
        most_hosts = largest_hosts(design, figures) * self.oversubscription
        if not hosts or self.hosts > most_hosts * design.endpoints:
            return None
        if self.ports and router_ports(design, figures, hosts + (more > 0)) > self.ports:
            return None
        return candidate(design, prices, hosts, nodes_with_one_more=more, ports=self.ports)


def families(names: Iterable[str] = (), baselines: bool = False) -> list[Family]:
    """The families of these names; without names all that can be compiled, and maybe baselines.

    Raises:
        InputError: an unknown family.
    """
    names = list(names)
    compiled_only = not baselines and all(name in FAMILIES for name in names)
    by_name = {**FAMILIES, **({} if compiled_only else BASELINES)}
    if unknown := [name for name in names if name not in by_name]:
        raise InputError(not_among(name, by_name, "family") for name in unknown)
    return list(dict.fromkeys(by_name[name] for name in names or by_name))


def select_designs(
    radix: int | Iterable[int] | None,
    min_nodes: int = 1,
    names: Iterable[str] = (),
    baselines: bool = False,
) -> list[Design]:
    """The designs near one radix, of exactly several radixes, or of the smallest possible radix.

    Args:
        radix: one radix, or several; None for the smallest that has a design.
        min_nodes: the fewest switches.
        names: the families; none for all that can be compiled.
        baselines: whether baselines are compared, too, if no names are given.

    Raises:
        InputError: a name that there is no family of.
    """
    among = families(names, baselines)
    if radix is None:
        return designs_of_smallest_radix(min_nodes, among)
    if isinstance(radix, int):
        return designs_near_radix(radix, min_nodes, among)
    return designs_of_radixes(radix, min_nodes, among)


def designs_near_radix(
    radix: int, min_nodes: int = 1, among: Iterable[Family] | None = None
) -> list[Design]:
    """The designs that use `radix` fabric ports per node, largest first.

    A family without a design of exactly this radix gives those of its next lower radix.
    """
    family_list = families() if among is None else among
    designs = [design for family in family_list for design in _designs_at_or_below(family, radix)]
    return _largest_first(design for design in designs if design.nodes >= min_nodes)


def designs_of_radixes(
    radixes: Iterable[int], min_nodes: int = 1, among: Iterable[Family] | None = None
) -> list[Design]:
    """The designs that use exactly one of these radixes, largest first."""
    family_list = families() if among is None else list(among)
    designs = (
        design for radix in radixes for family in family_list for design in family.designs(radix)
    )
    return _largest_first(design for design in designs if design.nodes >= min_nodes)


def designs_of_smallest_radix(
    min_nodes: int, among: Iterable[Family] | None = None
) -> list[Design]:
    """The designs of at least `min_nodes` nodes at the smallest radix that has any.

    Each family, and each supernode of PolarStar, has its own smallest radix.
    """
    family_list = families() if among is None else among
    designs = (
        design for family in family_list for design in _designs_of_smallest_radix(family, min_nodes)
    )
    return _largest_first(designs)


def candidates_for_hosts(
    sizing: Sizing, radix: Iterable[int] | None, among: Iterable[Family], prices: Prices
) -> Iterator[Candidate]:
    """Yield the designs with these hosts, spread over the switches as evenly as possible.

    Every switch for hosts has at least one. The mean number of hosts of a switch is at most
    `oversubscription` times Δ0, half a per cent more accepted. Prices do not exclude a design.

    Args:
        sizing: the required size.
        radix: fabric ports of a node, exactly one of these; None for any.
        among: the families.
        prices: what things cost.
    """
    most = min(LARGEST_RADIX, sizing.hosts, sizing.ports or LARGEST_RADIX)
    for ports in range(2, most + 1) if radix is None else radix:
        for family in among:
            for design in family.sized_designs(ports, SWITCHES_PER_LEAF * sizing.hosts):
                candidate = sizing.candidate_of(design, prices)
                if candidate is not None:
                    yield candidate


def candidates_near_size(
    switches: int, ports: int, diameter: int | None, among: Iterable[Family], prices: Prices
) -> list[Candidate]:
    """Of each family the largest fabric of at most so many switches, and the smallest of more.

    A switch with hosts has as many hosts as its ports allow, but no more than uniform traffic runs
    at full rate for. Of designs of one size, the one with most hosts is taken.

    Args:
        switches: about how many.
        ports: of a switch, for hosts and links.
        diameter: the most links between two switches with hosts; None for any.
        among: the families.
        prices: what things cost.
    """
    below: dict[tuple[str, str], Candidate] = {}
    above: dict[tuple[str, str], Candidate] = {}
    for radix in range(2, ports + 1):
        for family in among:
            for design in family.sized_designs(radix):
                if diameter is not None and design.host_diameter > diameter:
                    continue
                nearest_of_kind = below if design.nodes <= switches else above
                best = nearest_of_kind.get(design_key(design))
                if best and abs(best.design.nodes - switches) < abs(design.nodes - switches):
                    continue
                figures = formulas(design)
                hosts = min(ports - figures.leaf_degree, int(largest_hosts(design, figures)))
                if hosts < 1:
                    continue
                compared = candidate(design, prices, hosts, ports=ports)
                same_size = best is not None and best.design.nodes == design.nodes
                if not (best and same_size and best.total_hosts >= compared.total_hosts):
                    nearest_of_kind[design_key(design)] = compared
    exact = {key for key, fabric in below.items() if fabric.design.nodes == switches}
    return [*below.values(), *(fabric for key, fabric in above.items() if key not in exact)]


def largest_designs(designs: Iterable[Design]) -> list[Design]:
    """The largest design of each family, and of each supernode of PolarStar, at each radix."""
    ordered = sorted(designs, key=lambda design: (design.radix, *design_key(design), -design.nodes))
    groups = groupby(ordered, key=lambda design: (design.radix, *design_key(design)))
    return _largest_first(next(group) for _, group in groups)


def within_budget(candidates: Iterable[Candidate], budget: float | None) -> list[Candidate]:
    """The candidates of at most this price; all of them if there is no budget.

    Raises:
        InputError: all of them cost more.
    """
    candidates = list(candidates)
    affordable = [fabric for fabric in candidates if budget is None or fabric.price <= budget]
    if candidates and not affordable:
        least = min(candidates, key=lambda fabric: fabric.price)
        todo = "raise it, or allow more `oversubscription`"
        required = f"${least.price:,.0f} or more, the price of {least.name}"
        raise InputError.of(required, f"{budget:,.0f}", todo, key="budget")
    return affordable


def cheapest(candidates: Iterable[Candidate]) -> list[Candidate]:
    """The cheapest candidate of each family, and of each supernode of PolarStar."""
    best: dict[tuple[str, str], Candidate] = {}
    for fabric in candidates:
        least = best.setdefault(design_key(fabric.design), fabric)
        if fabric.price < least.price:
            best[design_key(fabric.design)] = fabric
    return [*best.values()]


def rank_candidates(candidates: Iterable[Candidate], key: str) -> list[Candidate]:
    """The candidates, best first by one of `KEYS`; those without the figure come last.

    Raises:
        InputError: there is no such figure.
    """
    if key not in KEYS:
        raise InputError(not_among(key, KEYS, "sort"))
    sign = 1 if key in LESS_IS_BETTER else -1

    def sort_key(candidate: Candidate) -> tuple[bool, float]:
        value = candidate.row()[key]
        return (True, 0) if value is None else (False, sign * value)

    return sorted(candidates, key=sort_key)


def design_key(design: Design) -> tuple[str, str]:
    """The key of one family in a comparison; PolarStar counts once a supernode."""
    return design.family, design.supernode or ""


def _largest_first(designs: Iterable[Design]) -> list[Design]:
    """The designs by their number of switches, in descending order."""
    return sorted(designs, key=lambda design: -design.nodes)


def _designs_at_or_below(family: Family, radix: int) -> list[Design]:
    """The designs of the largest radix up to this one that a family has designs of."""
    for ports in range(radix, 1, -1):
        designs = list(family.designs(ports))
        if designs:
            return designs
    return []


def _designs_of_smallest_radix(family: Family, min_nodes: int) -> Iterator[Design]:
    """The designs of the smallest radix of each kind; stops once every kind has its radix."""
    smallest: dict[tuple[str, str], int] = {}
    """The smallest radix of each kind, by `design_key`."""
    kinds = set()
    for radix in range(2, LARGEST_RADIX + 1):
        for design in family.designs(radix):
            kinds.add(design_key(design))
            if (
                design.nodes >= min_nodes
                and smallest.setdefault(design_key(design), radix) == radix
            ):
                yield design
        if kinds and len(smallest) == len(kinds) and radix > max(smallest.values()):
            return
