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
"""An upper bound of the number of switches divided by that of switches with hosts, in any family.

Designs with too many switches are left out before their figures are computed, which takes longer.
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
    """The largest allowed ratio of a switch's hosts to Δ0, with which uniform traffic just runs at
    full rate."""
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
        hosts, with_one_more = divmod(self.hosts, design.endpoints)
        hosts_allowed = largest_hosts(design, figures) * self.oversubscription * design.endpoints
        if not hosts or self.hosts > hosts_allowed:
            return None
        most_hosts = hosts + (with_one_more > 0)
        if self.ports and router_ports(design, figures, most_hosts) > self.ports:
            return None
        return candidate(design, prices, hosts, nodes_with_one_more=with_one_more, ports=self.ports)


def families(names: Iterable[str] = (), baselines: bool = False) -> list[Family]:
    """The families of these names.

    Args:
        names: the names of families or baselines; none for all families that can be compiled.
        baselines: whether baselines belong to these, if no names are given.

    Raises:
        InputError: an unknown family.
    """
    names = list(names)
    # Baselines are imported only if they are asked for.
    needs_baselines = baselines or any(name not in FAMILIES for name in names)
    by_name = {**FAMILIES, **(BASELINES if needs_baselines else {})}
    if unknown := [name for name in names if name not in by_name]:
        raise InputError(not_among(name, by_name, "family") for name in unknown)
    return list(dict.fromkeys(by_name[name] for name in names or by_name))


def select_designs(
    radix: int | Iterable[int] | None,
    min_nodes: int = 1,
    names: Iterable[str] = (),
    baselines: bool = False,
) -> list[Design]:
    """The designs that a user asks for by radix and size.

    Args:
        radix: one radix, near which designs are searched; or several, of which a design has exactly
            one; None for the smallest radix that has a design.
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
                fabric = sizing.candidate_of(design, prices)
                if fabric is not None:
                    yield fabric


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
    nearest_below: dict[tuple[str, str], Candidate] = {}
    nearest_above: dict[tuple[str, str], Candidate] = {}
    designs = (
        design
        for radix in range(2, ports + 1)
        for family in among
        for design in family.sized_designs(radix)
        if diameter is None or design.host_diameter <= diameter
    )
    for design in designs:
        key = design_key(design)
        nearest = nearest_below if design.nodes <= switches else nearest_above
        best = nearest.get(key)
        if best and abs(best.design.nodes - switches) < abs(design.nodes - switches):
            continue  # before its figures are computed, which takes longer
        compared = _candidate_with_most_hosts(design, ports, prices)
        if compared is None:
            continue
        is_same_size = best is not None and best.design.nodes == design.nodes
        if not (best and is_same_size and best.total_hosts >= compared.total_hosts):
            nearest[key] = compared
    # A larger fabric is of no use to a family that has one of exactly this size.
    exact = {key for key, fabric in nearest_below.items() if fabric.design.nodes == switches}
    larger = [fabric for key, fabric in nearest_above.items() if key not in exact]
    return [*nearest_below.values(), *larger]


def _candidate_with_most_hosts(design: Design, ports: int, prices: Prices) -> Candidate | None:
    """The design with as many hosts as its ports and uniform traffic allow; None without room."""
    figures = formulas(design)
    hosts = min(ports - figures.leaf_degree, int(largest_hosts(design, figures)))
    return candidate(design, prices, hosts, ports=ports) if hosts >= 1 else None


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

    def sort_key(fabric: Candidate) -> tuple[bool, float]:
        """Sort by the figure; True sorts candidates without it to the end."""
        value = fabric.row()[key]
        return (True, 0) if value is None else (False, sign * value)

    return sorted(candidates, key=sort_key)


def design_key(design: Design) -> tuple[str, str]:
    """The kind of a design: its family and supernode. PolarStar is compared by supernodes."""
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
    """The designs of the smallest radix of each kind (`design_key`) that have enough nodes.

    A kind that has a design at some radix may have its first large one much later. The search stops
    one radix after every kind seen so far has a large design, so that kinds which begin at that
    radix are found, too.
    """
    smallest_radix: dict[tuple[str, str], int] = {}
    """The smallest radix of a large design of each kind."""
    kinds_seen = set()
    for radix in range(2, LARGEST_RADIX + 1):
        for design in family.designs(radix):
            kind = design_key(design)
            kinds_seen.add(kind)
            if design.nodes >= min_nodes and smallest_radix.setdefault(kind, radix) == radix:
                yield design
        all_have_one = kinds_seen and len(smallest_radix) == len(kinds_seen)
        if all_have_one and radix > max(smallest_radix.values()):
            return
