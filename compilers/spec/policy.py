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


def constructed_instead_of_searched(
    family: Family, parameters: Mapping[str, int | str], switch_count: int
) -> bool:
    """Whether a family constructs the classes of a fabric that is too large for a search.

    This is so for a large PolarStar. It is not so for PolarFly: that constructs its classes at any
    size (`Family.constructed`), so that nothing is ever searched for.

    Args:
        family: of the fabric.
        parameters: of the family.
        switch_count: how many switches the fabric has, if none is missing.
    """
    is_too_large = switch_count > LARGEST_SEARCH
    return is_too_large and not family.constructed and family.constructed_classes(parameters)
