"""Traffic between switches."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray


@dataclass(frozen=True, slots=True, eq=False)
class Traffic:
    """Flows, by ascending destination.

    source, destination: int64[n], switches. amount: float64[n], the share of the source's traffic.
    """

    source: NDArray[np.int64]
    destination: NDArray[np.int64]
    amount: NDArray[np.float64]

    @classmethod
    def of(
        cls,
        source: NDArray[np.int64],
        destination: NDArray[np.int64],
        amount: float | NDArray[np.float64] = 1.0,
    ) -> Traffic:
        """Flows of one amount or of one each; flows between the same two switches add up."""
        width = int(max(source.max(initial=0), destination.max(initial=0))) + 1
        leaving = source != destination
        keys = destination[leaving] * width + source[leaving]
        each = np.broadcast_to(np.asarray(amount, np.float64), source.shape)[leaving]
        found, flow = np.unique(keys, return_inverse=True)
        to, start = np.divmod(found, width)
        total = np.bincount(flow.ravel(), each, minlength=len(found)).astype(np.float64)
        return cls(source=start, destination=to, amount=total)

    def between(self, first: int, last: int) -> Traffic:
        """The flows to destinations first ≤ d < last."""
        low, high = np.searchsorted(self.destination, (first, last))
        part = slice(low, high)
        return Traffic(self.source[part], self.destination[part], self.amount[part])
