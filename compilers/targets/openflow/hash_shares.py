"""Weights of the buckets of select groups, with which Open vSwitch shares traffic as compiled.

Open vSwitch hashes packets into values, and deals these values to buckets in proportion to their
weights. So the share of a bucket is a whole number of values, and may differ from the compiled
share. The smallest weight decides how many values there are. `class_groups` asks for the ports of
an egress class that get traffic (`shared_ports`). It also asks for weights that make Open vSwitch
take more hash values (`in_finer_steps`), where few values would make a share wrong by more than
`LARGEST_ERROR`.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from compilers.tables.intermediate_form import Classes
from compilers.targets.openflow.profiles import Profile

Numbers = NDArray[np.integer]
OVS_LEAST_VALUES = 16
"""The fewest hash values of a select group in Open vSwitch (`group_setup_dp_hash_table`)."""
HASH_VALUES = 64
"""The fewest hash values that weights here make Open vSwitch take. It caches one entry for each
value that occurs, so more values cost memory."""
MORE_VALUES = (256, 128, HASH_VALUES)
"""The numbers of hash values that weights here can make Open vSwitch take, the greatest first."""
VALUES_FOR_RANDOM_WEIGHT = 60_000
"""The number of hash values to ask for so that Open vSwitch takes none. It has at most 256 (from
2.17 on). Where weights ask for more, it takes the bucket with the highest random weight for each
packet, which is fair to equal weights."""
LARGEST_ERROR = 0.1
"""The largest error of the traffic of a port, as a part of its share."""
LEAST_TENTHS = 9
"""The least total of the scaled weights, in tenths of the number of hash values. Then a bucket of
weight 1 has a right to 10/9 of a value at most, and dealing it one value is nearly exact."""
FINE_SCALE = 16
"""How many times the number of hash values the scaled weights have in total, where a total of about
that number misses `LEAST_TENTHS`. The small bucket then has a weight of about 16, so that its right
to a value is exact to a sixteenth."""
TIE_DIVISOR = 100
"""Divides what a bucket's share adds to its quotient in `_dealt_values`. So the share decides only
between equal quotients."""


@dataclass(frozen=True, slots=True, eq=False)
class WeightedPorts:
    """The ports that share the packets of n classes."""

    port: Numbers
    """int[n, B], the port of each bucket, the minimal port first; 0 for no bucket."""
    weight: Numbers
    """int[n, B], the weight of each port."""


def shared_ports(
    classes: Classes, switch: int | NDArray[np.int64], egress: NDArray[np.int64], profile: Profile
) -> WeightedPorts:
    """The ports of n egress classes that have a weight, at most one for each bucket of a group.

    These are the minimal port and the alternates of greatest weight, the first among equals.

    Args:
        classes: the egress classes of the fabric.
        switch: int64[n], the switch of each class, or one switch for all.
        egress: int64[n], the numbers of the classes at their switches.
        profile: says how many buckets a group can have.
    """
    weight = classes.weight[switch, egress]
    minimal, alternate = classes.port[switch, egress][:, None], classes.alternate[switch, egress]
    port = np.where(weight > 0, np.concatenate((minimal, alternate), axis=1), 0)
    if profile.buckets is None:
        return WeightedPorts(port, weight)
    weight = np.where(port > 0, weight, 0)
    if profile.buckets >= port.shape[1]:
        return WeightedPorts(port, weight)
    # Column 0 is the minimal port. The heaviest alternates keep the order of their columns.
    by_weight = np.argsort(-weight[:, 1:].astype(np.int64), axis=1, kind="stable")
    heaviest = 1 + np.sort(by_weight[:, : profile.buckets - 1], axis=1)
    minimal_column = np.zeros(len(port), np.int64)
    columns = np.column_stack((minimal_column, heaviest))
    return WeightedPorts(
        np.take_along_axis(port, columns, axis=1), np.take_along_axis(weight, columns, axis=1)
    )


def in_finer_steps(shared: WeightedPorts) -> WeightedPorts:
    """The same shares of traffic by more hash values: weights are scaled, one bucket is added.

    The number of hash values that Open vSwitch takes is the total weight divided by the smallest
    weight, rounded up to a power of two, and at least `OVS_LEAST_VALUES`. Where the shares by these
    values are not exact, the heaviest bucket is divided into two buckets for the same port: a small
    one, whose weight makes Open vSwitch take as many values as `_values_needed` says, and the rest.
    The result has one column more, for the small bucket.

    Example: with weights 1, 1, 1 Open vSwitch takes 16 values, and deals 6, 5 and 5 of them. The
    first share is wrong by an eighth. Of 64 values it would deal 22, 21 and 21, which is exact
    enough. The weights times 21 have the total 63, and a bucket of weight 1 makes Open vSwitch take
    63 / 1, rounded up to 64 values. So the result is 20, 21, 21 and 1, the last for the first port.
    """
    port, weight = shared.port, np.where(shared.port > 0, shared.weight.astype(np.int64), 0)
    total = np.maximum(weight.sum(axis=1), 1)
    ovs_values = _ovs_values(weight, total)
    values = _values_needed(weight, ovs_values)
    scale = _scale(total, values)
    # int64[n]: the weight of the small bucket: the least with which Open vSwitch takes as many
    # values, and no more (total / weight <= values).
    small_weight = _rounded_up(total * scale, values)
    # The heaviest bucket is divided where that helps, and leaves no smaller rest.
    heaviest = np.arange(len(port)), weight.argmax(axis=1)
    is_divisible = weight[heaviest] * scale >= 2 * small_weight
    is_divided = (ovs_values < values) & ~_is_exact(weight, total, ovs_values) & is_divisible
    small_weight = np.where(is_divided, small_weight, 0)
    small_port = np.where(is_divided, port[heaviest], 0)
    weight = weight * np.where(is_divided, scale, 1)[:, None]
    weight[heaviest] -= small_weight
    return WeightedPorts(
        np.column_stack((port, small_port)), np.column_stack((weight, small_weight))
    )


def _ovs_values(weight: NDArray[np.int64], total: NDArray[np.int64]) -> Numbers:
    """How many hash values Open vSwitch takes for each group, by its weights.

    Args:
        weight: int64[n, B], of the buckets.
        total: int64[n], the total weight of each group.
    """
    smallest = np.where(weight > 0, weight, total[:, None]).min(axis=1)
    powers_of_two = 2 ** np.ceil(np.log2(np.ceil(total / smallest)))
    return np.asarray(np.maximum(powers_of_two, OVS_LEAST_VALUES))


def _is_exact(
    weight: NDArray[np.int64], total: NDArray[np.int64], values: Numbers
) -> NDArray[np.bool_]:
    """bool[n]: whether each bucket of a group has a right to a whole number of values.

    That is so if the number of values is a multiple of the total of the weights in their lowest
    terms: weights 2, 2, 4 are 1, 1, 2 in lowest terms, and 16 values are a multiple of 4.

    Args:
        weight: int64[n, B], of the buckets.
        total: int64[n], the total weight of each group.
        values: [n], how many hash values each group has.
    """
    divisor = np.maximum(np.gcd.reduce(weight, axis=1), 1)
    is_multiple: NDArray[np.bool_] = values % (total // divisor) == 0
    return is_multiple


def _scale(total: NDArray[np.int64], values: NDArray[np.int64]) -> NDArray[np.int64]:
    """int64[n]: what the weights of each group are multiplied by, 1 or more.

    Their total becomes about the number of values, so that a bucket of weight 1 has a right to one
    value. Where no whole factor comes near that number, it becomes `FINE_SCALE` times as large.

    Args:
        total: int64[n], the total weight of each group.
        values: int64[n], how many hash values each group needs.

    For 64 values a total of 3 becomes 63, and a total of 40 becomes 1000, as 40 is too few:

    >>> _scale(np.array([3, 40]), np.array([64, 64])).tolist()
    [21, 25]
    """
    scale = values // total
    is_coarse = 10 * total * scale < LEAST_TENTHS * values
    return np.maximum(np.where(is_coarse, FINE_SCALE * values // total, scale), 1)


def _values_needed(weight: NDArray[np.int64], ovs_values: Numbers) -> NDArray[np.int64]:
    """int64[n]: the fewest hash values of each group with which its shares are exact enough.

    Shares are exact enough if no bucket's traffic is off by more than `LARGEST_ERROR` of its share.
    If none of `MORE_VALUES` is enough, groups of equal weights get `VALUES_FOR_RANDOM_WEIGHT`, and
    others the greatest of `MORE_VALUES`.

    Args:
        weight: int64[n, B], of the buckets.
        ovs_values: int[n], how many values Open vSwitch takes by these weights.
    """
    has_weight = weight > 0
    is_equal = ((weight == weight.max(axis=1, initial=0)[:, None]) | ~has_weight).all(axis=1)
    # Groups with equal weights differ only in the number of their buckets, b, so one row stands for
    # all of them: the key is -b. Any other group has a key of its own, above 0.
    key = np.where(is_equal, -has_weight.sum(axis=1), 1 + np.arange(len(weight)))
    _, row, row_of_group = np.unique(key, return_index=True, return_inverse=True)
    weight, ovs_values = weight[row], ovs_values[row]
    needed = np.where(is_equal[row], VALUES_FOR_RANDOM_WEIGHT, MORE_VALUES[0])
    for values in MORE_VALUES:  # the greatest first, so that the fewest that are enough stay
        quota = values * weight / np.maximum(weight.sum(axis=1, keepdims=True), 1)
        error = np.abs(_dealt_values(quota, values) - quota)
        is_exact_enough = (error <= LARGEST_ERROR * quota).all(axis=1)
        needed[is_exact_enough & (values >= ovs_values)] = values
    return np.asarray(needed[row_of_group.ravel()])


def _dealt_values(quota: Numbers, values: int) -> Numbers:
    """int[n, B]: the hash values of each bucket, dealt by Webster's method, as Open vSwitch does.

    Quotas are rounded first. Values that are left over go to the buckets with the greatest quotient
    of quota and 2 * dealt + 1; values that are missing are taken from those with the smallest
    quotient of quota and 2 * dealt - 1. Of buckets with equal quotients the lighter one gains or
    loses a value, which is the worse case for its share.

    Args:
        quota: float[n, B], the exact part of the values for each bucket.
        values: how many values there are.
    """
    dealt = np.rint(quota)
    undealt = values - dealt.sum(axis=1, keepdims=True)
    lightness = 1 - quota / values / TIE_DIVISOR  # decides between equal quotients
    gain_rank = _ranks(-lightness * quota / (2 * dealt + 1))
    loss_quotient = np.where(dealt > 0, quota / np.maximum(2 * dealt - 1, 1) / lightness, np.inf)
    loss_rank = _ranks(loss_quotient)
    gains, loses = gain_rank < undealt, loss_rank < -undealt
    return np.asarray(dealt + gains.astype(np.int64) - loses.astype(np.int64))


def _ranks(values: NDArray[np.floating]) -> NDArray[np.intp]:
    """The place of each value among those of its row, the smallest first, intp[n, B]."""
    return np.argsort(np.argsort(values, axis=1), axis=1)


def _rounded_up(amount: Numbers, divisor: Numbers) -> Numbers:
    """The quotients, rounded up."""
    return -(-amount // divisor)
