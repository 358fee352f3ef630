"""Weights of select groups with which Open vSwitch shares traffic as the tables say.

Open vSwitch hashes packets into values, and deals these values to buckets in proportion to their
weights. `shared_ports` chooses the ports of a class that get traffic. `in_finer_steps` changes
their weights where too few values would make the shares inexact.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from compilers.tables.intermediate_form import Classes
from compilers.targets.openflow.profiles import Profile

Numbers = NDArray[np.integer]
HASH_VALUES = 64
"""The fewest hash values of a select group; each that occurs is an entry in the switch's cache."""
MORE_VALUES = (256, 128, HASH_VALUES)
"""The numbers of hash values that Open vSwitch may be led to use, the most first."""
HIGHEST_RANDOM_WEIGHT = 60_000
"""Parts of a group for which Open vSwitch has too few values (`group_setup_dp_hash_table`, 256 from
2.17 on): it then takes the bucket with the highest random weight, which is fair to equal weights.
"""
UNEVEN = 0.1
"""The largest error of the traffic of a port, as a part of its share."""


@dataclass(frozen=True, slots=True, eq=False)
class WeightedPorts:
    """The ports that share the packets of n classes."""

    port: Numbers
    """int[n, B], 0 for none; the first one is the minimal port."""
    weight: Numbers
    """int[n, B], the weight of each port."""


def shared_ports(
    classes: Classes, switch: int | NDArray[np.int64], number: NDArray[np.int64], profile: Profile
) -> WeightedPorts:
    """The ports with a weight, as many as the groups of a profile can have.

    These are the minimal port and the alternates of most weight, the first of equal ones.
    """
    weight = classes.weight[switch, number]
    minimal, alternate = classes.port[switch, number][:, None], classes.alternate[switch, number]
    port = np.where(weight > 0, np.concatenate((minimal, alternate), axis=1), 0)
    if profile.buckets is None:
        return WeightedPorts(port, weight)
    weight = np.where(port > 0, weight, 0)
    if profile.buckets >= port.shape[1]:
        return WeightedPorts(port, weight)
    by_weight = np.argsort(-weight[:, 1:].astype(np.int64), axis=1, kind="stable")
    heaviest = 1 + np.sort(by_weight[:, : profile.buckets - 1], axis=1)
    kept = np.column_stack((np.zeros(len(port), np.int64), heaviest))
    return WeightedPorts(
        np.take_along_axis(port, kept, axis=1), np.take_along_axis(weight, kept, axis=1)
    )


def in_finer_steps(shared: WeightedPorts) -> WeightedPorts:
    """Ports and weights, with one column more, that share traffic alike but more exactly.

    Open vSwitch hashes packets into values, and deals these to buckets in proportion to their
    weights. There are as many values as the total weight is times the smallest one, rounded up to a
    power of two, and at least 16. So three equal buckets get 6, 5 and 5 of 16 values. Where the
    shares are not exact, the heaviest bucket is split into a small one and the rest: the small one
    makes Open vSwitch take as many values as `_hash_values` says.
    """
    port, weight = shared.port, np.where(shared.port > 0, shared.weight.astype(np.int64), 0)
    total = np.maximum(weight.sum(axis=1), 1)
    least = np.where(weight > 0, weight, total[:, None]).min(axis=1)
    usual_values = np.maximum(2 ** np.ceil(np.log2(np.ceil(total / least))), 16)
    divisor = np.maximum(np.gcd.reduce(weight, axis=1), 1)
    is_exact = usual_values % (total // divisor) == 0
    values = _hash_values(weight, usual_values)
    scale = values // total
    # The small bucket has to get about one value, or the two buckets get another share than one.
    scale = np.maximum(np.where(10 * total * scale < 9 * values, 16 * values // total, scale), 1)
    small = _rounded_up(total * scale, values)
    heaviest = np.arange(len(port)), weight.argmax(axis=1)
    is_divisible = weight[heaviest] * scale >= 2 * small
    splits = (usual_values < values) & ~is_exact & is_divisible
    small_weight = np.where(splits, small, 0)
    small_port = np.where(splits, port[heaviest], 0)
    weight = weight * np.where(splits, scale, 1)[:, None]
    weight[heaviest] -= small_weight
    return WeightedPorts(
        np.column_stack((port, small_port)), np.column_stack((weight, small_weight))
    )


def _hash_values(weight: NDArray[np.int64], least: Numbers) -> NDArray[np.int64]:
    """How many hash values each group needs, int64[n]: the fewest that share its traffic evenly.

    Shares are even if no port's is off by more than `UNEVEN`. If none of `MORE_VALUES` is enough,
    groups of equal weights get `HIGHEST_RANDOM_WEIGHT`, and others the most values.

    Args:
        weight: int64[n, B], of the buckets.
        least: int[n], the fewest values that Open vSwitch takes.
    """
    has_weight = weight > 0
    is_equal = (weight == has_weight * weight.max(axis=1, initial=0)[:, None]).all(axis=1)
    # One row stands for all groups of so many equal weights.
    kind = np.where(is_equal, -has_weight.sum(axis=1), 1 + np.arange(len(weight)))
    _, row, kind_of = np.unique(kind, return_index=True, return_inverse=True)
    weight, least = weight[row], least[row]
    needed = np.where(is_equal[row], HIGHEST_RANDOM_WEIGHT, MORE_VALUES[0])
    for values in MORE_VALUES:
        quota = values * weight / np.maximum(weight.sum(axis=1, keepdims=True), 1)
        is_even = (np.abs(_dealt(quota, values) - quota) <= UNEVEN * quota).all(axis=1)
        needed[is_even & (values >= least)] = values
    return np.asarray(needed[kind_of.ravel()])


def _dealt(quota: Numbers, values: int) -> Numbers:
    """Hash values dealt to buckets by Webster's method, as Open vSwitch does, int[n, B].

    Of buckets with equal claims the lighter one gets a value more or less, which is the worse case.

    Args:
        quota: float[n, B], the exact part of the values for each bucket.
        values: how many there are.
    """
    dealt = np.rint(quota)
    undealt = values - dealt.sum(axis=1, keepdims=True)
    lightness = 1 - quota / values / 100
    claim = _ranks(-lightness * quota / (2 * dealt + 1))
    surplus = np.where(dealt > 0, quota / np.maximum(2 * dealt - 1, 1) / lightness, np.inf)
    loss = _ranks(surplus)
    return np.asarray(dealt + (claim < undealt) - (loss < -undealt))


def _ranks(values: NDArray[np.floating]) -> NDArray[np.intp]:
    """The place of each value among those of its row, the smallest first, intp[n, B]."""
    return np.argsort(np.argsort(values, axis=1), axis=1)


def _rounded_up(amount: Numbers, divisor: Numbers) -> Numbers:
    """The quotients, rounded up."""
    return -(-amount // divisor)
