"""Which fabrics a radix allows, from the formulas of the families."""

from __future__ import annotations

from compilers.topologies import FAMILIES
from compilers.topologies.topology import Design, Family


def fitting(radix: int, min_nodes: int = 1) -> list[Design]:
    """The designs of every family that use `radix` fabric ports a node, largest first.

    A family with none of exactly that radix gives those of the next radix below that it has.
    """
    found = [
        design for family in dict.fromkeys(FAMILIES.values()) for design in _nearest(family, radix)
    ]
    kept = [design for design in found if design.nodes >= min_nodes]
    return sorted(kept, key=lambda design: -design.nodes)


def _nearest(family: Family, radix: int) -> list[Design]:
    return next(
        (found for ports in range(radix, 1, -1) if (found := list(family.designs(ports)))), []
    )
