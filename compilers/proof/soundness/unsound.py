"""Values of a build that contradict others: how many, and the first of them in words."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from inventory.problems import Finding

FINDINGS = 10


@dataclass(frozen=True, slots=True)
class Unsound:
    """What checks found: the number of wrong values, and the first of each check."""

    count: int = 0
    findings: tuple[Finding, ...] = ()

    @classmethod
    def of(cls, parts: Iterable[Unsound]) -> Unsound:
        """All parts in one."""
        found = tuple(parts)
        findings = (finding for part in found for finding in part.findings)
        return cls(sum(part.count for part in found), tuple(findings)[:FINDINGS])

    @classmethod
    def one(cls, path: str, required: str, given: str) -> Unsound:
        """One wrong value."""
        return cls(1, (Finding((path,), required, given),))

    def texts(self) -> list[str]:
        """The findings as lines."""
        return [str(finding.problem()) for finding in self.findings]


SOUND = Unsound()


def where(
    wrong: NDArray[np.bool_], say: Callable[..., Finding], first: int = 0
) -> Iterator[Unsound]:
    """The places of an array at which something is wrong.

    Args:
        wrong: bool of any shape.
        say: gets the indices of one place.
        first: the number of the first row of `wrong`, where it is a part of an array.
    """
    if wrong.any():
        places = np.argwhere(wrong)
        some = places[:FINDINGS].tolist()
        yield Unsound(len(places), tuple(say(first + row, *rest) for row, *rest in some))


def repeated(values: Any) -> NDArray[np.bool_]:
    """bool[n]: the values that occur at an earlier place already."""
    first = np.unique(np.asarray(values), return_index=True)[1]
    result = np.ones(len(values), np.bool_)
    result[first] = False
    return result
