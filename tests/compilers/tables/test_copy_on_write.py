"""Copies that share pages: the values of the array, and no change of one in another."""

import numpy as np
import pytest

from compilers.tables.copy_on_write import CopyOnWrite

ARRAYS = {
    "several pages": np.arange(30_000, dtype=np.uint16).reshape(100, 50, 6),
    "not in one piece": np.arange(40).reshape(5, 8)[::2, 1:7:3],
    "empty": np.zeros((13, 4, 0), np.uint16),
}


@pytest.mark.parametrize("array", ARRAYS.values(), ids=ARRAYS)
def test_a_copy_has_the_values_and_the_type(array):
    copy = CopyOnWrite(array).copy()
    assert copy.dtype == array.dtype
    np.testing.assert_array_equal(copy, array)


def test_changes_stay_in_one_copy():
    array = ARRAYS["several pages"]
    source, before = CopyOnWrite(array), array.copy()
    one, other = source.copy(), source.copy()
    one[:] = 0
    other[99, 49] = 7
    np.testing.assert_array_equal(array, before)
    np.testing.assert_array_equal(source.copy(), before)
    np.testing.assert_array_equal(other[:99], before[:99])
    assert not one.any()


def test_a_copy_outlives_its_source():
    copy = CopyOnWrite(np.arange(5000)).copy()
    copy[0] = 1
    assert copy.sum() == 1 + sum(range(5000))
