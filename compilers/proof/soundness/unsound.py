"""The result of soundness checks: how many values of a build are wrong, and the first in words.

An `UnsoundValues` with count 0 means that the build is sound. Each check looks at an array of
values; `unsound_where` makes an `UnsoundValues` of the indices with wrong values, and
`UnsoundValues.of` adds up those of several checks.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from inventory.problems import Finding

MOST_FINDINGS = 10
"""The most wrong values that are put into words."""


@dataclass(frozen=True, slots=True)
class UnsoundValues:
    """The wrong values that checks have found in a build."""

    count: int = 0
    """How many values are wrong; 0 if the build is sound."""
    findings: tuple[Finding, ...] = ()
    """The first of them, `MOST_FINDINGS` at most, with what is required and what the build has."""

    @classmethod
    def of(cls, checks: Iterable[UnsoundValues]) -> UnsoundValues:
        """The wrong values of several checks together."""
        results = tuple(checks)
        findings = (finding for result in results for finding in result.findings)
        return cls(sum(result.count for result in results), tuple(findings)[:MOST_FINDINGS])

    @classmethod
    def one(cls, path: str, required: str, given: str) -> UnsoundValues:
        """One wrong value: what it is, what is required of it, and what the build has."""
        return cls(1, (Finding((path,), required, given),))

    def texts(self) -> list[str]:
        """The findings, a line each."""
        return [str(finding.problem()) for finding in self.findings]


NONE_UNSOUND = UnsoundValues()
"""The result of checks that have found no wrong value: the build is sound."""


def unsound_where(
    wrong: NDArray[np.bool_], finding_at: Callable[..., Finding], first: int = 0
) -> Iterator[UnsoundValues]:
    """Yield the wrong values of an array as one `UnsoundValues`, or nothing if none is wrong.

    Checks are generators, so they pass this on by `yield from`.

    Args:
        wrong: bool of any shape, whether each value is wrong.
        finding_at: makes a finding from the indices of one value.
        first: the index that the first row of `wrong` has, if it is a block of a larger array.

    >>> wrong = np.array([False, True])
    >>> (faults,) = unsound_where(wrong, lambda i: Finding(("port", i), "a", "none"))
    >>> faults.count, faults.findings[0].path
    (1, ('port', 1))
    """
    if wrong.any():
        wrong_indices = np.argwhere(wrong)
        in_words = wrong_indices[:MOST_FINDINGS].tolist()
        findings = (finding_at(first + row, *columns) for row, *columns in in_words)
        yield UnsoundValues(len(wrong_indices), tuple(findings))


def repeated(values: Any) -> NDArray[np.bool_]:
    """bool[n], whether each of n values has occurred before.

    >>> repeated([7, 8, 7]).tolist()
    [False, False, True]
    """
    first = np.unique(np.asarray(values), return_index=True)[1]
    occurs_before = np.ones(len(values), np.bool_)
    occurs_before[first] = False
    return occurs_before
