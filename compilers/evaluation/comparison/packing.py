"""Electrical groups: the links inside a group, and the bundles between natural modules.

Projective Networks paper, §V-C: nodes stand in fully electrical groups of about 500 hosts, and
cables between groups are optical. A natural module is a cluster or group of the family; small
modules are merged into one electrical group.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from math import comb

from compilers.topology.families import family_of
from compilers.topology.family import Design, Modules


@dataclass(frozen=True, slots=True)
class Packing:
    """Groups of at most `size` nodes, the links inside them, and bundles between modules."""

    size: int
    groups: int
    electrical: int
    bundles: int | None


def packing(design: Design, hosts: float, wanted: float) -> Packing | None:
    """The groups nearest to `wanted` hosts, with `hosts` a node; None if all cables are optical."""
    candidates = list(family_of(design.family).modules(design.parameters))
    if not candidates:
        return None
    natural = candidates[0]
    options = [option for found in candidates for option in _options(found, hosts, wanted)]
    best = min(options, key=lambda option: abs(option.size * hosts - wanted))
    return Packing(best.size, best.groups, best.electrical, natural.bundles)


def _options(modules: Modules, hosts: float, wanted: float) -> Iterator[Packing]:
    most = 1 if modules.between is None else max(1, int(wanted / (modules.size * hosts)) + 1)
    for merged in range(1, min(most, modules.count) + 1):
        size, groups = modules.nodes(merged), modules.groups(merged)
        yield Packing(size, groups, modules.electrical(merged), modules.bundles)
    if modules.splits:
        for parts in range(2, int(modules.size * hosts / wanted) + 2):
            short, longer = divmod(modules.size, parts)
            inside = longer * comb(short + 1, 2) + (parts - longer) * comb(short, 2)
            size = short + (longer > 0)
            yield Packing(size, modules.count * parts, modules.count * inside, modules.bundles)
