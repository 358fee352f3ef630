"""Whole weights of any shares: they add up, and stay within a part of what was fitted."""

from __future__ import annotations

from math import ceil

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from compilers.demand.weight_fit import AllowedShares, FlowPaths, ShareFit
from compilers.demand.whole_weights import GOOD_ENOUGH, TOTALS, as_integer_weights, round_shares

LARGEST = (1.0, 0.5, 1 / 3, 0.2, 0.11)


def game(seed: int, groups: int, most: int, largest: float) -> tuple[FlowPaths, ShareFit]:
    """Groups of up to so many next hops over a few arcs, and shares that are allowed."""
    draw = np.random.default_rng(seed)
    count = draw.integers(1, most + 1, groups)
    has_next_hop = np.arange(most) < count[:, None]
    next_hop = np.repeat(np.arange(count.sum()), 3).astype(np.int32)
    paths = FlowPaths(
        arc=draw.integers(0, 12, len(next_hop)).astype(np.int32),
        next_hop=next_hop,
        flow=next_hop,
        amount=draw.exponential(size=len(next_hop)),
        has_next_hop=has_next_hop,
        class_number=np.arange(groups),
        arc_count=12,
    )
    shares = AllowedShares.of(paths, largest).nearest_shares(draw.normal(size=has_next_hop.shape))
    loads = paths.loads(shares)
    return paths, ShareFit(shares, loads, np.full(12, 1 / 12), float(loads.max()))


@settings(max_examples=40)
@example(seed=98, groups=3, most=3, largest=1 / 3)  # the smallest total is good enough
@given(
    seed=st.integers(0, 10**6),
    groups=st.integers(1, 9),
    most=st.integers(1, 70),
    largest=st.sampled_from(LARGEST),
)
def test_weights_keep_to_the_largest_share_and_load_as_they_say(
    seed: int, groups: int, most: int, largest: float
) -> None:
    paths, found = game(seed, groups, most, largest)
    whole = round_shares(paths, found, largest)
    total = whole.weights.sum(axis=1)
    parts = [p for p in TOTALS if not (p % total).any()]
    assert parts
    assert not whole.weights[~paths.has_next_hop].any()
    assert whole.weights.min() >= 0
    assert (np.gcd.reduce(whole.weights, axis=1) == 1).all()
    # What one way may have, up to the next part of one of the totals that were tried.
    count = np.count_nonzero(paths.has_next_hop, axis=1)
    most_parts = [[ceil(max(largest, 1 / n) * p - 1e-9) / p for n in count] for p in parts]
    shares = whole.weights / total[:, None]
    assert (shares.max(axis=1) <= np.max(most_parts, axis=0) + 1e-12).all()
    np.testing.assert_allclose(paths.loads(shares), whole.loads)
    # No link carries more than its shares did and the units of the next hops that cross it.
    crossing = np.bincount(paths.arc, paths.amount, minlength=paths.arc_count)
    with_largest_total = found.loads.max() + crossing.max() / TOTALS[-1]
    assert whole.loads.max() <= max(with_largest_total, GOOD_ENOUGH * found.loads.max()) + 1e-9


@given(
    seed=st.integers(0, 10**6),
    width=st.integers(1, 300),
    parts=st.sampled_from((*TOTALS, 7)),
)
def test_each_share_is_within_a_part(seed: int, width: int, parts: int) -> None:
    shares = np.random.default_rng(seed).dirichlet(np.full(width, 0.3), size=4)
    weights = as_integer_weights(shares, parts)
    total = weights.sum(axis=1, keepdims=True)
    assert not (parts % total).any()
    assert np.abs(weights / total - shares).max() < 1 / parts


@pytest.mark.parametrize("parts", TOTALS)
def test_shares_that_are_whole_parts_stay(parts: int) -> None:
    held = np.random.default_rng(1).multinomial(parts, np.full(9, 1 / 9), size=50)
    found = as_integer_weights(held / parts, parts)
    np.testing.assert_array_equal(found * (parts // found.sum(axis=1, keepdims=True)), held)
