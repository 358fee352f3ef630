"""The designs of every family that a radix or a size allows, selected and ranked."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import groupby

from compilers.evaluation.comparison.candidates import Candidate
from compilers.topology.families import FAMILIES
from compilers.topology.labelled_graph import Design, Family
from inventory.problems import InputError, Problem, did_you_mean

LARGEST_RADIX = 1025
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
)
MORE_IS_BETTER = (
    "nodes",
    "moore_efficiency",
    "hosts",
    "utilisation",
    "full_throughput_hosts",
    "hosts_per_node",
)
KEYS = MORE_IS_BETTER + LESS_IS_BETTER


def families(names: Iterable[str] = (), baselines: bool = False) -> list[Family]:
    """The families of these names; without names all that can be compiled, and maybe baselines.

    Raises:
        InputError: an unknown family.
    """
    names = list(names)
    if not baselines and all(name in FAMILIES for name in names):
        known: dict[str, Family] = FAMILIES
    else:
        from compilers.topology.baselines import BASELINES

        known = {**FAMILIES, **BASELINES}
    unknown = [name for name in names if name not in known]
    if unknown:
        required = f"one of {', '.join(known)}"
        raise InputError(
            Problem(
                key="family",
                required=required,
                given=name,
                todo=did_you_mean(name, known),
            )
            for name in unknown
        )
    return list(dict.fromkeys(known[name] for name in names or known))


def chosen(
    radix: int | Iterable[int] | None,
    min_nodes: int = 1,
    names: Iterable[str] = (),
    baselines: bool = False,
) -> list[Design]:
    """The designs of `fitting` one radix, `within` several, or `reaching` a size at any.

    Raises:
        InputError: a name that there is no family of.
    """
    among = families(names, baselines)
    if radix is None:
        return reaching(min_nodes, among)
    if isinstance(radix, int):
        return fitting(radix, min_nodes, among)
    return within(radix, min_nodes, among)


def fitting(radix: int, min_nodes: int = 1, among: Iterable[Family] | None = None) -> list[Design]:
    """The designs that use `radix` fabric ports per node, largest first.

    A family without a design of exactly this radix gives those of its next lower radix.
    """
    chosen = families() if among is None else among
    found = [design for family in chosen for design in _nearest(family, radix)]
    return _largest_first(design for design in found if design.nodes >= min_nodes)


def within(
    radixes: Iterable[int], min_nodes: int = 1, among: Iterable[Family] | None = None
) -> list[Design]:
    """The designs that use exactly one of these radixes, largest first."""
    chosen = families() if among is None else list(among)
    found = (design for radix in radixes for family in chosen for design in family.designs(radix))
    return _largest_first(design for design in found if design.nodes >= min_nodes)


def reaching(min_nodes: int, among: Iterable[Family] | None = None) -> list[Design]:
    """The designs of at least `min_nodes` nodes at the smallest radix that has any.

    Each family, and each supernode of PolarStar, has its own smallest radix.
    """
    chosen = families() if among is None else among
    found = (design for family in chosen for design in _smallest_radix(family, min_nodes))
    return _largest_first(found)


def largest(designs: Iterable[Design]) -> list[Design]:
    """The largest design of each family, and of each supernode of PolarStar, at each radix."""
    ordered = sorted(designs, key=lambda design: (design.radix, *kind(design), -design.nodes))
    groups = groupby(ordered, key=lambda design: (design.radix, *kind(design)))
    return _largest_first(next(group) for _, group in groups)


def ranked(candidates: Iterable[Candidate], key: str) -> list[Candidate]:
    """The candidates, best first by one of `KEYS`; those without the figure come last.

    Raises:
        InputError: there is no such figure.
    """
    if key not in KEYS:
        todo = did_you_mean(key, KEYS)
        raise InputError.of(f"one of {', '.join(KEYS)}", key, todo, key="sort")
    sign = 1 if key in LESS_IS_BETTER else -1

    def place(candidate: Candidate) -> tuple[bool, float]:
        value = candidate.row()[key]
        return value is None, sign * (value or 0)

    return sorted(candidates, key=place)


def kind(design: Design) -> tuple[str, str]:
    """The key of one family in a comparison; PolarStar counts once a supernode."""
    return design.family, design.supernode or ""


def _largest_first(designs: Iterable[Design]) -> list[Design]:
    return sorted(designs, key=lambda design: -design.nodes)


def _nearest(family: Family, radix: int) -> list[Design]:
    return next(
        (found for ports in range(radix, 1, -1) if (found := list(family.designs(ports)))), []
    )


def _smallest_radix(family: Family, min_nodes: int) -> Iterator[Design]:
    """The designs of the smallest radix of each kind; stops once every kind has been found."""
    found: dict[tuple[str, str], int] = {}
    seen = set()
    for radix in range(2, LARGEST_RADIX + 1):
        for design in family.designs(radix):
            seen.add(kind(design))
            if design.nodes >= min_nodes and found.setdefault(kind(design), radix) == radix:
                yield design
        if seen and len(found) == len(seen) and radix > max(found.values()):
            return
