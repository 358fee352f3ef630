"""The rolling audit: switches in sync are read in turn, and corrected where they have drifted.

A switch that has confirmed changes comes first: what it was counted to hold is read in full soon.
Of the others the one that was compared with its program the longest time ago comes next, so that
all are seen once in a period. The audit pauses while tables change. No I/O.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from heapq import nsmallest

from controller.switches.reconcile import Difference
from controller.switches.session import LiveFabric

READINGS_AT_ONCE = 8
"""Switches that the audit reads at the same time; slow ones hold up the audit, not the fabric."""
REST = 5.0
"""Seconds after which one that had drifted is read again."""


class RollingAudit:
    """The audit of a fabric; create it before switches connect.

    Args:
        fabric: the fabric that is audited.
        period: seconds in which every switch is compared once; 0 for only those that have
            confirmed changes.
        change: the number of the last change of tables; None while one is under way.
    """

    def __init__(self, fabric: LiveFabric, period: float, change: Callable[[], int | None]) -> None:
        self._fabric, self._period, self._change = fabric, period, change
        self._reading: set[int] = set()
        """The switches that are being read."""
        self._begun: dict[int, float] = {}
        """When the last reading of each began."""
        self._allowed, self._since = 0.0, fabric.clock()
        """How many readings the period allowed at the last tick, and when that was."""

    def tick(self) -> None:
        """Time passes: read the switches whose turn it is."""
        fabric, now = self._fabric, self._fabric.clock()
        rate = fabric.expected / self._period if self._period else 0.0
        # What was not used in a second is lost: no burst follows a pause.
        self._allowed = min(self._allowed + (now - self._since) * rate, max(rate, 1.0))
        self._since = now
        room = READINGS_AT_ONCE - len(self._reading)
        if room < 1 or self._change() is None:
            return
        in_sync = fabric.in_sync - self._reading
        due = [vertex for vertex in in_sync if fabric.present[vertex].due(now - REST)]
        urgent = sorted(due)[:room]

        def last(vertex: int) -> tuple[float, int]:
            """When it was read last, or a reading began."""
            return max(fabric.present[vertex].last_read_at or 0, self._begun.get(vertex, 0)), vertex

        count = min(int(self._allowed), room - len(urgent))
        self._allowed -= count
        for vertex in urgent + nsmallest(count, in_sync.difference(urgent), key=last):
            self._reading.add(vertex)
            self._begun[vertex] = now
            fabric.present[vertex].compare(partial(self._compared, vertex, self._change()))

    def _compared(self, vertex: int, change: int | None, difference: Difference | None) -> None:
        """Correct a switch that differs, if it is not the tables that have changed meanwhile."""
        self._reading.discard(vertex)
        if difference is None or not difference.parts or self._change() != change:
            return
        self._fabric.drifted(vertex, difference)
