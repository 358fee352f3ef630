"""Counters of ports for the metrics: bytes, errors and drops, requested from switches in turn.

The controller calls `tick`; `controller.management.metrics` reads `by_vertex`. No I/O.
"""

from __future__ import annotations

from functools import partial

import numpy as np

from compilers.targets.openflow.protocol import PORT_STATS, Multipart
from controller.openflow.multipart import ports_body, records
from controller.switches.session import LiveFabric
from controller.switches.switch import AMISS

PERIOD = 15.0
"""Seconds between two requests to a switch."""
SWITCHES_A_TICK = 64
"""Most switches that get a request at a tick."""
COUNTERS = {
    "received_bytes": ("received_bytes",),
    "sent_bytes": ("sent_bytes",),
    "errors": ("receive_errors", "send_errors"),
    "drops": ("received_dropped", "sent_dropped"),
}
"""The counters by name, each the sum of these members of `ofp_port_stats`."""
UNKNOWN = (1 << 64) - 1
"""The value of a counter that a switch does not have."""


class PortCounters:
    """The counters of all connected switches.

    Attributes:
        by_vertex: by vertex and by name, the columns of a switch with n ports: "port", the numbers
            of the ports, int64[n], and each counter of `COUNTERS`, uint64[n].
    """

    def __init__(self, fabric: LiveFabric) -> None:
        self.fabric = fabric
        self.by_vertex: dict[int, dict[str, np.ndarray]] = {}
        self._last_requests: dict[int, float] = {}
        """When each switch got a request last."""
        self._names: tuple[str, ...] = ()
        """The names of the build whose switches are counted."""

    def tick(self) -> None:
        """Send a request to each switch whose last one is `PERIOD` ago; called at intervals."""
        fabric, now = self.fabric, self.fabric.clock()
        names = tuple(fabric.names)
        if names != self._names:  # a vertex of another build is another switch
            self._names, self.by_vertex, self._last_requests = names, {}, {}
        connected = fabric.present
        for vertex in self._last_requests.keys() - connected.keys():
            del self._last_requests[vertex]
            self.by_vertex.pop(vertex, None)
        # Not of switches that are being programmed: these have enough to do.
        due = [
            vertex
            for vertex in connected
            if now - self._last_requests.get(vertex, -PERIOD) >= PERIOD
            and fabric.state(vertex) in ("in sync", *AMISS)
        ]
        for vertex in due[:SWITCHES_A_TICK]:
            self._last_requests[vertex] = now
            # A reply that comes only under another build must not be entered there: `by_vertex` is
            # another dict then, and the reply goes into the one of now.
            take_reply = partial(self._take_reply, self.by_vertex, vertex)
            connected[vertex].talk.ask(Multipart.PORT_STATS, ports_body(), take_reply)

    def _take_reply(
        self, by_vertex: dict[int, dict[str, np.ndarray]], vertex: int, body: bytes | None
    ) -> None:
        """Enter a switch's reply into `by_vertex`; the body is None if it has not answered."""
        if body is None or vertex not in self._last_requests:
            return
        statistics = records(body, PORT_STATS)
        counters = {"port": statistics["port"].astype(np.int64)}
        for counter, members in COUNTERS.items():
            values = np.array([statistics[member] for member in members], np.uint64)
            values[values == UNKNOWN] = 0
            counters[counter] = values.sum(axis=0)
        by_vertex[vertex] = counters
