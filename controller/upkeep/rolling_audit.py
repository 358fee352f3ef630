"""The rolling audit: reads switches in sync in turn, and corrects those that have drifted.

A switch has *drifted* if it does not hold its program any more. A switch that has confirmed changes
comes first: after them only its counts of rows were read. Of the others the one that was read the
longest time ago comes next, so that all are read once in a period. The controller calls `tick`. The
audit pauses while tables change. No I/O.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from heapq import nsmallest

from controller.switches.reconcile import Difference
from controller.switches.session import LiveFabric

READINGS_AT_ONCE = 8
"""Switches that the audit reads at the same time; slow ones hold up the audit, not the fabric."""
REREAD_AFTER = 5.0
"""Seconds after which a switch that had drifted is read again."""


class RollingAudit:
    """The audit of a fabric; create it before switches connect.

    Args:
        fabric: the fabric that is audited.
        period: seconds in which every switch is compared once; 0 for only those that have
            confirmed changes.
        change: returns the number of the last change of tables; None while one is under way.
    """

    def __init__(self, fabric: LiveFabric, period: float, change: Callable[[], int | None]) -> None:
        self._fabric, self._period, self._change = fabric, period, change
        self._reading: set[int] = set()
        """The switches that are being read."""
        self._reading_start: dict[int, float] = {}
        """When the last reading of each switch began."""
        self._allowed = 0.0
        """How many readings the period still allowed at the last tick."""
        self._last_tick = fabric.clock()
        """When `tick` was called last."""

    def tick(self) -> None:
        """Begin to read the switches that are next; called at intervals."""
        fabric, now = self._fabric, self._fabric.clock()
        rate = fabric.expected / self._period if self._period else 0.0
        # A token bucket: at most the readings of a second are saved up, so that no burst follows a
        # pause.
        self._allowed = min(self._allowed + (now - self._last_tick) * rate, max(rate, 1.0))
        self._last_tick = now
        most_new = READINGS_AT_ONCE - len(self._reading)
        if most_new < 1 or self._change() is None:
            return
        in_sync = fabric.in_sync - self._reading
        due = [vertex for vertex in in_sync if fabric.present[vertex].due(now - REREAD_AFTER)]
        urgent = sorted(due)[:most_new]
        count = min(int(self._allowed), most_new - len(urgent))
        self._allowed -= count
        oldest = nsmallest(count, in_sync.difference(urgent), key=self._last_reading)
        for vertex in urgent + oldest:
            self._reading.add(vertex)
            self._reading_start[vertex] = now
            fabric.present[vertex].compare(partial(self._compared, vertex, self._change()))

    def _last_reading(self, vertex: int) -> tuple[float, int]:
        """When a switch was read last, or its last reading began; for equal times, its vertex."""
        read_at = self._fabric.present[vertex].last_read_at or 0
        return max(read_at, self._reading_start.get(vertex, 0)), vertex

    def _compared(self, vertex: int, change: int | None, difference: Difference | None) -> None:
        """Take the result of reading a switch: report drift, unless the tables changed meanwhile.

        Args:
            vertex: the switch.
            change: the number of the last change of tables when the reading began.
            difference: the difference from its program; None if it could not be read.
        """
        self._reading.discard(vertex)
        if difference is None or not difference.parts or self._change() != change:
            return
        self._fabric.drifted(vertex, difference)
