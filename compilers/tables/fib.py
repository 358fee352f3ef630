"""Tables as packets use them: longest prefix, minimal port, the switch behind it."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from compilers.tables.computed_array import ComputedArray, ComputedEgress
from compilers.tables.intermediate_form import Egress, Routes, Tables, no_route

MOST_HOPS = 64
STEP_ROWS_AT_ONCE = 1 << 14
LOST, UNCABLED, LOOPED, MISDELIVERED = -1, -2, -3, -4
FAULTS = {
    LOST: "no route",
    UNCABLED: "sent to a port without a cable",
    LOOPED: f"looped, still forwarded after {MOST_HOPS} switches",
    MISDELIVERED: "delivered at another switch",
}


@dataclass(frozen=True, slots=True, eq=False)
class Fib:
    """The forwarding information base of all switches: tables joined with the cables.

    Neither with the graph nor with the algebra.

    step: int32[S, C + 3], the switch behind each egress value; the switch itself where it delivers,
    LOST or UNCABLED where nothing is forwarded. Its columns are `no_route`, `local`, the C classes,
    and one for all other values: an egress value plus 2, wrapping in its own type, is its column.
    by_prefix and first: the entries of `Routes.prefix` in the order of their prefixes, and where
    each prefix starts; empty where there is one row per destination, or rows are computed.
    """

    routes: Routes
    step: NDArray[np.int32]
    by_prefix: NDArray[np.int64]
    first: NDArray[np.int64]

    @classmethod
    def of(cls, tables: Tables, cables: NDArray[np.int32]) -> Fib:
        """Join tables with `Wiring.cables()`, int32[S, ports + 1]: the switch at each port."""
        port = tables.classes.port
        step = np.full((len(port), port.shape[1] + 3), UNCABLED, np.int32)
        step[:, 0] = LOST
        step[:, 1] = np.arange(len(port))
        for begin in range(0, len(port), STEP_ROWS_AT_ONCE):
            some = slice(begin, begin + STEP_ROWS_AT_ONCE)
            known = (port[some] > 0) & (port[some] < cables.shape[1])
            far = np.take_along_axis(cables[some], np.where(known, port[some], 0), axis=1)
            step[some, 2:-1] = np.where(known & (far >= 0), far, UNCABLED)
        by_prefix = first = np.zeros(0, np.int64)
        parts = tables.routes.prefix, tables.routes.egress
        computed = all(isinstance(part, ComputedArray) for part in parts)
        if not tables.routes.exact and not computed:
            prefix = tables.routes.prefix.ravel()
            by_prefix = np.argsort(prefix, kind="stable")
            last = max(int(prefix.max()), len(tables.routes.aggregate) - 1)
            first = np.searchsorted(prefix[by_prefix], np.arange(last + 2))
        return cls(routes=tables.routes, step=step, by_prefix=by_prefix, first=first)

    def egress(self, destinations: NDArray[np.int64]) -> Egress:
        """[S, D]: the egress value of every switch for each destination, longest prefix first."""
        table = self.routes.egress
        if isinstance(table, ComputedEgress):
            column: Egress = table.towards(destinations)
            return column
        if not len(self.by_prefix):
            first, last = int(destinations[0]), int(destinations[-1]) + 1
            block = table[:, first:last]
            return block if last - first == len(destinations) else block[:, destinations - first]
        sets, rows = self.routes.prefix.shape
        alike = table.reshape(sets, len(table) // sets, rows)
        found = np.full((len(destinations), *alike.shape[:2]), no_route(table), table.dtype)
        for values, destination in zip(found, destinations, strict=True):
            for prefix in (self.routes.aggregate[destination], destination):
                if 0 <= prefix < len(self.first) - 1:
                    entries = self.by_prefix[self.first[prefix] : self.first[prefix + 1]]
                    here, row = np.divmod(entries, rows)
                    given = alike[here, :, row]
                    values[here] = np.where(given == no_route(table), values[here], given)
        return found.reshape(len(destinations), len(table)).T

    def next_switch(self, destinations: NDArray[np.int64]) -> NDArray[np.int32]:
        """int32[S, D]: the next switch of a packet from every switch to each destination.

        The switch itself where it delivers; LOST or UNCABLED where it does not forward.
        """
        width = self.step.shape[1]
        here = (np.arange(len(self.step)) * width)[:, None]
        value = self.egress(destinations)
        last = min(width - 1, np.iinfo(value.dtype).max)
        column = np.minimum(value + value.dtype.type(2), last)
        after: NDArray[np.int32] = self.step.ravel().take(here + column)
        return after
