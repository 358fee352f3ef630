"""Values of the `routing:` section of fabric.yaml, and the size up to which routes are searched.

`fabric_spec` and `policy_checks` check the section with these, and the compiler compares with them.
"""

from __future__ import annotations

from collections.abc import Mapping

from compilers.topology.family import Family

LARGEST_SEARCH = 8192
"""The most switches of a fabric whose alternates and repairs are searched for.

In larger fabrics the search takes too long: they have only what their family constructs.
"""
EVERY_HOP = "ecmp"
"""The value of `routing.transit` by which packets in transit are shared over all shortest paths."""
WORST_CASE = "worst-case"
"""The value of `routing.demand` for the traffic that is worst for each link."""

PROTECTED_FAILURES = {
    "none": (),
    "link": ("link",),
    "node": ("link", "node"),
    "module": ("link", "node", "module"),
}
"""The failures that each value of `routing.protect` covers.

After any one of them, no pair that still has a path loses packets.
"""
EQUAL_COST = "equal-cost"
"""The value of `routing.minimal_share` for the same share as each alternate."""


def classes_are_constructed(
    family: Family, parameters: Mapping[str, int | str], switch_count: int
) -> bool:
    """Whether the classes of a fabric are constructed because it is too large for a search.

    This is so for a large PolarStar. It is not so for PolarFly (`Family.constructed`), which
    constructs its classes at any size.

    Args:
        family: of the fabric.
        parameters: of the family.
        switch_count: how many switches the fabric has, if none is missing.
    """
    if switch_count <= LARGEST_SEARCH or family.constructed:
        return False
    return family.constructed_classes(parameters)
