"""What uniform traffic and any traffic get, by the part that takes minimal paths.

Minimal paths are best for uniform traffic, and detours for the traffic that is worst. Where a
balance has both, `minimal_share` says how much goes minimally: a larger part raises the share of
uniform traffic, and mostly lowers the guarantee.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction

import numpy as np

from compilers.evaluation.guarantee import guarantee, require_scipy
from compilers.evaluation.saturation import emitted_share
from compilers.routing.alternate_weights import weight_pairs
from compilers.spec.balances import own_balances_with
from compilers.tables.build import Build
from inventory.problems import InputError

TENTHS = tuple(Fraction(tenth, 10) for tenth in range(11))
"""The minimal shares that a curve has."""


@dataclass(frozen=True, slots=True)
class TradeoffPoint:
    """What hosts get with one part of the traffic on minimal paths."""

    minimal_share: float | None
    """The part; None where all paths of a pair have equal parts (`equal-cost`)."""
    uniform: float
    """The share of its rate that every host can send in uniform traffic."""
    guaranteed: float
    """The share that it can send in any traffic."""


def tradeoff(
    build: Build,
    parts: Sequence[Fraction] = TENTHS,
    hosts_per_node: int = 0,
    progress: Callable[[int, int], None] | None = None,
) -> tuple[TradeoffPoint, ...]:
    """What hosts get by the part of the traffic on minimal paths, equal parts of all paths first.

    Args:
        build: whose classes have alternates.
        parts: from 0 to 1.
        hosts_per_node: as in `compilers.evaluation.guarantee`.
        progress: called with (parts done, all parts).

    Raises:
        InputError: scipy is not installed, or the balance has no alternates of its own share.
    """
    require_scipy()
    _require_alternates(build)
    points = list[TradeoffPoint]()
    for part in (None, *parts):
        weighted = with_minimal_share(build, part)
        share = None if part is None else float(part)
        uniform = emitted_share(weighted, "uniform", hosts_per_node)
        guaranteed = guarantee(weighted, hosts_per_node).share
        points.append(TradeoffPoint(share, uniform, guaranteed))
        if progress:
            progress(len(points), len(parts) + 1)
    return tuple(points)


def with_minimal_share(build: Build, part: Fraction | None) -> Build:
    """The build with other weights, as it is compiled with this `minimal_share`.

    Args:
        build: whose classes have alternates.
        part: of the minimal path; None for equal parts of all paths.
    """
    classes = build.tables.classes
    has_alternate = np.asarray(classes.alternate) > 0
    pairs = weight_pairs(np.count_nonzero(has_alternate, axis=2), part)
    alternates = np.where(has_alternate, pairs[..., 1:], 0)
    weight = np.concatenate((pairs[..., :1], alternates), axis=2).astype(np.uint16)
    forwarding = replace(
        build.forwarding,
        weights="equal-cost" if part is None else "minimal-share",
        minimal_share=part,
    )
    tables = replace(build.tables, classes=replace(classes, weight=weight))
    return replace(build, tables=tables, forwarding=forwarding)


def _require_alternates(build: Build) -> None:
    """Pass where `minimal_share` can be chosen.

    Raises:
        InputError: the build has no longer paths, or no alternates at all.
    """
    if build.forwarding.alternates not in ("some", "all"):
        able = own_balances_with(lambda forwarding: forwarding.alternates == "all")
        required = f"{' or '.join(able)}, whose minimal paths can have another part of the traffic"
        raise InputError.of(required, build.balance, key="routing.balance")
