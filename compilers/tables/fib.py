"""The forwarding information base: tables joined with cables, for following packets.

The routes say which egress class a switch uses for a destination, the classes say which port, and
the cables say which switch is at that port. `Fib` joins the three, so that the next switch of any
packet is two look-ups. It reads neither the graph nor the algebra of the family, so what is proved
with it is proved about the tables themselves.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from compilers.tables.computed_array import ComputedArray, ComputedEgress
from compilers.tables.intermediate_form import Egress, Routes, Tables, no_route

MOST_HOPS = 64
"""The most switches that a packet visits before it counts as looping."""
NO_ROUTE_COLUMN, LOCAL_COLUMN, FIRST_CLASS_COLUMN = range(3)
"""The first columns of `Fib.step`."""
STEP_ROWS_AT_ONCE = 1 << 14
"""The most switches whose next switches are looked up together."""
LOST, UNCABLED, LOOPED, MISDELIVERED = -1, -2, -3, -4
"""Numbers in the place of a next switch, for packets that reach none."""
FAULTS = {
    LOST: "no route",
    UNCABLED: "sent to a port without a cable",
    LOOPED: f"looped, still forwarded after {MOST_HOPS} switches",
    MISDELIVERED: "delivered at another switch",
}


@dataclass(frozen=True, slots=True, eq=False)
class Fib:
    """The forwarding information base of all S switches."""

    routes: Routes
    """The rows of all switches, as the tables have them."""
    step: NDArray[np.int32]
    """int32[S, C + 3], the switch at the far end of the port of each egress value.

    It is the switch itself where it delivers, LOST or UNCABLED where nothing is forwarded. The
    columns are `no_route`, `local`, the C classes, and one for all other values. `no_route` and
    `local` are the two largest values of the type of the egress, so that an egress value plus 2,
    modulo the size of that type, is its column.
    """
    by_prefix: NDArray[np.int64]
    """int64[G·R], the entries of `Routes.prefix` in the order of their prefixes.

    Each of G groups of switches has R rows, and the switches of a group have the same prefixes.
    Empty where there is one row for each destination, or where rows are computed.
    """
    first_of_prefix: NDArray[np.int64]
    """int64[P + 1], for P prefixes: where the entries of each begin in `by_prefix`, and the end."""

    @classmethod
    def of(cls, tables: Tables, far_by_port: NDArray[np.int32]) -> Fib:
        """Join tables with cables.

        Args:
            tables: of S switches.
            far_by_port: int32[S, ports + 1], the switch at each port, as of `Wiring.far_by_port()`.
        """
        port = tables.classes.port
        step = np.full((len(port), port.shape[1] + 3), UNCABLED, np.int32)
        step[:, NO_ROUTE_COLUMN] = LOST
        step[:, LOCAL_COLUMN] = np.arange(len(port))
        for begin in range(0, len(port), STEP_ROWS_AT_ONCE):
            block = slice(begin, begin + STEP_ROWS_AT_ONCE)
            has_port = (port[block] > 0) & (port[block] < far_by_port.shape[1])
            next_switch = np.take_along_axis(
                far_by_port[block], np.where(has_port, port[block], 0), axis=1
            )
            step[block, FIRST_CLASS_COLUMN:-1] = np.where(
                has_port & (next_switch >= 0), next_switch, UNCABLED
            )
        routes = tables.routes
        by_prefix = first_of_prefix = np.zeros(0, np.int64)
        computed = isinstance(routes.prefix, ComputedArray) and isinstance(
            routes.egress, ComputedArray
        )
        if not routes.exact and not computed:
            prefix = routes.prefix.ravel()
            by_prefix = np.argsort(prefix, kind="stable")
            last = max(int(prefix.max()), len(routes.aggregate) - 1)
            first_of_prefix = np.searchsorted(prefix[by_prefix], np.arange(last + 2))
        return cls(routes=routes, step=step, by_prefix=by_prefix, first_of_prefix=first_of_prefix)

    def egress(self, destinations: NDArray[np.int64]) -> Egress:
        """Return the egress value of every switch for each destination, [S, D].

        A switch's own prefix goes before the aggregate that covers it (longest-prefix match).

        Args:
            destinations: int64[D], ascending.
        """
        egress = self.routes.egress
        if isinstance(egress, ComputedEgress):
            computed: Egress = egress.towards(destinations)
            return computed
        if not len(self.by_prefix):
            first, last = int(destinations[0]), int(destinations[-1]) + 1
            block = egress[:, first:last]
            return block if last - first == len(destinations) else block[:, destinations - first]
        return self._by_longest_prefix(egress, destinations)

    def _by_longest_prefix(self, egress: Egress, destinations: NDArray[np.int64]) -> Egress:
        """Return what `egress` does, from stored rows with aggregates."""
        none = no_route(egress)
        groups, rows = self.routes.prefix.shape
        # [G, S/G, R]: the switches of a group have the same prefixes.
        by_group = egress.reshape(groups, len(egress) // groups, rows)
        # [D, G, S/G], the egress value of each switch for each destination.
        values = np.full((len(destinations), *by_group.shape[:2]), none, egress.dtype)
        for value, destination in zip(values, destinations, strict=True):
            # The aggregate first, so that the longer prefix overwrites it where there is one.
            for prefix in (self.routes.aggregate[destination], destination):
                group, row = self.rows_of_prefix(int(prefix))
                matched = by_group[group, :, row]
                value[group] = np.where(matched == none, value[group], matched)
        return values.reshape(len(destinations), len(egress)).T

    def rows_of_prefix(self, prefix: int) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Return the groups of switches with a row for a prefix, and the row's index in each group.

        Both are int64[N], of stored rows with aggregates. N is 0 for a prefix that no group has,
        such as -1, which stands for no aggregate.

        Args:
            prefix: its number.
        """
        if not 0 <= prefix < len(self.first_of_prefix) - 1:
            return np.zeros(0, np.int64), np.zeros(0, np.int64)
        start, end = self.first_of_prefix[prefix : prefix + 2]
        # `by_prefix` counts the rows of all groups through: row r of group g has index g * R + r.
        return np.divmod(self.by_prefix[start:end], self.routes.prefix.shape[1])

    def next_switch(self, destinations: NDArray[np.int64]) -> NDArray[np.int32]:
        """Return the next switch from every switch towards each destination, int32[S, D].

        The switch itself where it delivers; LOST or UNCABLED where it does not forward.

        Args:
            destinations: int64[D], ascending.
        """
        width = self.step.shape[1]
        row_start = (np.arange(len(self.step)) * width)[:, None]
        egress = self.egress(destinations)
        last = min(width - 1, np.iinfo(egress.dtype).max)
        # The sum wraps around: `no_route` and `local` become 0 and 1, class c becomes c + 2.
        column = np.minimum(egress + egress.dtype.type(FIRST_CLASS_COLUMN), last)
        following: NDArray[np.int32] = self.step.ravel().take(row_start + column)
        return following
