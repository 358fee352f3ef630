"""Counters of ports for the metrics: bytes, errors and drops, asked of switches in turn. No I/O."""

from __future__ import annotations

from functools import partial

import numpy as np

from compilers.targets.openflow.protocol import PORT_STATS, Multipart
from controller.openflow.multipart import ports_wanted, records
from controller.switches.session import LiveFabric
from controller.switches.switch import AMISS

PERIOD, A_TICK = 15.0, 64
"""Seconds between two questions to a switch, and switches that are asked at a tick at most."""
COUNTED = {
    "received_bytes": ("received_bytes",),
    "sent_bytes": ("sent_bytes",),
    "errors": ("receive_errors", "send_errors"),
    "drops": ("received_dropped", "sent_dropped"),
}
"""What is counted, and of which members of `ofp_port_stats` it is the sum."""
UNKNOWN = (1 << 64) - 1
"""What a switch says of a counter that it does not have."""


class PortCounters:
    """The counters of all connected switches.

    Attributes:
        by_vertex: the numbers of a switch's ports and uint64[n] of each thing that is counted.
    """

    def __init__(self, fabric: LiveFabric) -> None:
        self.fabric = fabric
        self.by_vertex: dict[int, dict[str, np.ndarray]] = {}
        self._asked_at: dict[int, float] = {}
        """When each switch was asked last."""
        self._names: tuple[str, ...] = ()
        """The names of the build whose switches are counted."""

    def tick(self) -> None:
        """Time passes: ask the switches whose turn it is."""
        fabric, now = self.fabric, self.fabric.clock()
        names = tuple(fabric.names)
        if names != self._names:  # another build has other numbers
            self._names, self.by_vertex, self._asked_at = names, {}, {}
        connected = fabric.present
        for gone in self._asked_at.keys() - connected.keys():
            del self._asked_at[gone]
            self.by_vertex.pop(gone, None)
        # Those that are still programmed have other things to do.
        due = [
            vertex
            for vertex in connected
            if now - self._asked_at.get(vertex, -PERIOD) >= PERIOD
            and fabric.state(vertex) in ("in sync", *AMISS)
        ]
        for vertex in due[:A_TICK]:
            self._asked_at[vertex] = now
            answer = partial(self._counted, self.by_vertex, vertex)
            connected[vertex].talk.ask(Multipart.PORT_STATS, ports_wanted(), answer)

    def _counted(
        self, by_vertex: dict[int, dict[str, np.ndarray]], vertex: int, body: bytes | None
    ) -> None:
        """A switch has told its counters, or (None) does not; they are kept in `by_vertex`."""
        if body is None or vertex not in self._asked_at:
            return
        statistics = records(body, PORT_STATS)
        counters = {"port": statistics["port"].astype(np.int64)}
        for what, members in COUNTED.items():
            values = [statistics[name].astype(np.uint64) for name in members]
            known = [np.where(value == UNKNOWN, 0, value) for value in values]
            counters[what] = np.sum(known, axis=0)
        by_vertex[vertex] = counters
