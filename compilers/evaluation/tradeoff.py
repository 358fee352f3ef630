"""The throughput of uniform traffic and of any traffic, as a function of `minimal_share`.

Minimal paths are best for uniform traffic, and alternates (detours) for the worst traffic. Where a
balance uses both, `routing.minimal_share` is the part of the traffic on minimal paths: a larger
part raises the throughput of uniform traffic, and mostly lowers the guarantee. `polarfab throughput
--tradeoff` prints the curve.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction

import numpy as np

from compilers.evaluation.guarantee import guarantee, require_scipy
from compilers.evaluation.saturation import share_by_tables
from compilers.routing.alternate_weights import weight_pairs
from compilers.spec.balances import own_balances_with
from compilers.tables.build import Build
from inventory.problems import InputError

TENTHS = tuple(Fraction(tenth, 10) for tenth in range(11))
"""The minimal shares that a curve has."""


@dataclass(frozen=True, slots=True)
class TradeoffPoint:
    """The throughput of hosts with one value of `minimal_share`."""

    minimal_share: float | None
    """The part of the traffic on minimal paths; None where all paths of a pair have equal parts
    (`equal-cost`)."""
    uniform: float
    """The share of its rate that every host can send in uniform traffic."""
    guaranteed: float
    """The share that it can send in any traffic."""


def tradeoff(
    build: Build,
    minimal_shares: Sequence[Fraction] = TENTHS,
    hosts_per_node: int = 0,
    progress: Callable[[int, int], None] | None = None,
) -> tuple[TradeoffPoint, ...]:
    """The throughput for each value of `minimal_share`, `equal-cost` first.

    Args:
        build: the build, whose classes have alternates.
        minimal_shares: the values, from 0 to 1.
        hosts_per_node: as in `compilers.evaluation.guarantee`.
        progress: called with (points done, all points).

    Raises:
        InputError: scipy is not installed, or the build has no alternates that can have a share
            different from that of the minimal path.
    """
    require_scipy()
    _require_alternates(build)
    points = list[TradeoffPoint]()
    for minimal_share in (None, *minimal_shares):
        weighted_build = with_minimal_share(build, minimal_share)
        share_as_number = None if minimal_share is None else float(minimal_share)
        uniform = share_by_tables(weighted_build, "uniform", hosts_per_node)
        guaranteed = guarantee(weighted_build, hosts_per_node).share
        points.append(TradeoffPoint(share_as_number, uniform, guaranteed))
        if progress:
            progress(len(points), len(minimal_shares) + 1)
    return tuple(points)


def with_minimal_share(build: Build, minimal_share: Fraction | None) -> Build:
    """The build with other weights, as it is compiled with this `minimal_share`.

    Args:
        build: the build, whose classes have alternates.
        minimal_share: the part of the minimal path; None for equal parts of all paths.
    """
    classes = build.tables.classes
    # [S, C, A], and [S, C, 2]: the weight of the minimal path, and that of each alternate.
    has_alternate = np.asarray(classes.alternate) > 0
    weights = weight_pairs(np.count_nonzero(has_alternate, axis=2), minimal_share)
    alternate_weight = np.where(has_alternate, weights[..., 1:], 0)
    weight = np.concatenate((weights[..., :1], alternate_weight), axis=2).astype(np.uint16)
    forwarding = replace(
        build.forwarding,
        weights="equal-cost" if minimal_share is None else "minimal-share",
        minimal_share=minimal_share,
    )
    tables = replace(build.tables, classes=replace(classes, weight=weight))
    return replace(build, tables=tables, forwarding=forwarding)


def _require_alternates(build: Build) -> None:
    """Pass where `minimal_share` can be chosen: where alternates are detours.

    Raises:
        InputError: all paths are shortest paths, or there are no alternates at all.
    """
    if build.forwarding.alternates not in ("some", "all"):
        balances = own_balances_with(lambda forwarding: forwarding.alternates == "all")
        required = (
            f"{' or '.join(balances)}, whose minimal paths can have another part of the traffic"
        )
        raise InputError.of(required, build.balance, key="routing.balance")
