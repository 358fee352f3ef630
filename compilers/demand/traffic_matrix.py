"""A traffic matrix: how much each switch sends to each other switch, as a list of flows.

`demand_file` and traffic patterns make a `Traffic`. `fluid` turns it into loads of links.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray


@dataclass(frozen=True, slots=True, eq=False)
class Traffic:
    """Flows between switches, by ascending destination, each pair of switches once."""

    source: NDArray[np.int64]
    """int64[n], the switch where each flow enters."""
    destination: NDArray[np.int64]
    """int64[n], the switch where each flow leaves."""
    amount: NDArray[np.float64]
    """float64[n], the rate of each flow, in units of what the hosts of a switch send."""

    @classmethod
    def of(
        cls,
        source: NDArray[np.int64],
        destination: NDArray[np.int64],
        amount: float | NDArray[np.float64] = 1.0,
    ) -> Traffic:
        """Return the flows between pairs of switches.

        Flows between the same two switches are added up, and flows within a switch are left out.

        Args:
            source: int64[n], where flows enter.
            destination: int64[n], where flows leave.
            amount: float64[n], their rates, or one rate for all.

        >>> Traffic.of(np.array([4, 4, 2]), np.array([1, 1, 2])).amount
        array([2.])
        """
        width = int(max(source.max(initial=0), destination.max(initial=0))) + 1
        is_between = source != destination
        rate = np.broadcast_to(np.asarray(amount, np.float64), source.shape)[is_between]
        # A number for each pair, so that sorted numbers are sorted by destination.
        pair_of_flow = destination[is_between] * width + source[is_between]
        pairs, pair = np.unique(pair_of_flow, return_inverse=True)
        total = np.bincount(pair.ravel(), rate, minlength=len(pairs)).astype(np.float64)
        ends, starts = np.divmod(pairs, width)
        return cls(source=starts, destination=ends, amount=total)

    def between(self, first: int, last: int) -> Traffic:
        """Return the flows to destinations d with first ≤ d < last."""
        low, high = np.searchsorted(self.destination, (first, last))
        part = slice(low, high)
        return Traffic(self.source[part], self.destination[part], self.amount[part])
