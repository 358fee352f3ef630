"""Copies that share pages: the values of the array, and no change of one in another."""

import os
import resource
from contextlib import contextmanager

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


@contextmanager
def without_files():
    """This process can open no more files."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    free = os.open(os.devnull, os.O_RDONLY)
    os.close(free)
    resource.setrlimit(resource.RLIMIT_NOFILE, (free, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


def test_where_no_file_can_be_opened_copies_are_made_all_the_same():
    """A controller that idle connections had taken all files from could repair no link."""
    array = ARRAYS["several pages"]
    source = CopyOnWrite(array)
    with without_files():
        copy, other = source.copy(), CopyOnWrite(array).copy()
    for one in (copy, other):
        np.testing.assert_array_equal(one, array)
        one[:] = 0
    np.testing.assert_array_equal(source.copy(), array)
