"""Exhibits of small sizes, each computed once for all tests of a module."""

from collections.abc import Callable
from functools import cache

from extensions.papers.exhibit import Evidence


@cache
def quick(compute: Callable[[bool], Evidence]) -> Evidence:
    """What the function of an exhibit computes of small sizes; not for a test that changes it."""
    return compute(True)
