"""The packet walker: follows packets through the tables that are emitted, without any network.

It looks up routes by longest prefix, turns the class into a port and the port into the switch
cabled to it, and knows nothing else: not the graph, not the algebra.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from compilers.tables import Routes, Tables, local, no_route

TTL = 64
LOST, UNCABLED, LOOPED, MISDELIVERED = -1, -2, -3, -4
FAULTS = {
    LOST: "no route",
    UNCABLED: "sent to a port without a cable",
    LOOPED: f"looped, still forwarded after {TTL} switches",
    MISDELIVERED: "delivered at another switch",
}


@dataclass(frozen=True, slots=True)
class Walker:
    """Tables joined with the cables: one step of a packet is two look-ups.

    step: int32[S, V], the switch behind each egress value; the switch itself where the packet is
    delivered, LOST or UNCABLED where it is not forwarded. keys: int64[S·R], (switch, prefix) of
    every row, ascending, for look-ups where rows are not one a destination.
    """

    routes: Routes
    step: NDArray[np.int32]
    keys: NDArray[np.int64] | None

    @classmethod
    def of(cls, tables: Tables, cables: NDArray[np.int32]) -> Walker:
        """Join tables with `Wiring.cables()`, int32[S, ports + 1]: the switch at each port."""
        egress, port = tables.routes.egress, tables.classes.port
        step = np.full((len(port), np.iinfo(egress.dtype).max + 1), UNCABLED, np.int32)
        known = (port > 0) & (port < cables.shape[1])
        far = np.take_along_axis(cables, np.where(known, port, 0), axis=1)
        step[:, : port.shape[1]] = np.where(known & (far >= 0), far, UNCABLED)
        step[:, no_route(egress)] = LOST
        step[:, local(egress)] = np.arange(len(port))
        keys = None
        if not tables.routes.exact:
            width = len(port) * 2 + 1
            keys = (np.arange(len(port))[:, None] * width + tables.routes.prefix).ravel()
        return cls(routes=tables.routes, step=step, keys=keys)

    def egress(self, at: NDArray[np.int64], destination: NDArray[np.int64]) -> NDArray[np.integer]:
        """The egress value that each switch `at` has for each destination: longest prefix first."""
        table = self.routes.egress
        if self.keys is None:
            return table.ravel().take(at * table.shape[1] + destination)
        exact = self._row(at, destination)
        missed = exact == no_route(table)
        cover = self.routes.aggregate[destination[missed]].astype(np.int64)
        exact[missed] = np.where(cover < 0, no_route(table), self._row(at[missed], cover))
        return exact

    def _row(self, at: NDArray[np.int64], prefix: NDArray[np.int64]) -> NDArray[np.integer]:
        assert self.keys is not None  # noqa: S101
        wanted = at * (len(self.step) * 2 + 1) + prefix
        row = np.minimum(np.searchsorted(self.keys, wanted), len(self.keys) - 1)
        found: NDArray[np.integer] = self.routes.egress.ravel()[row]
        return np.where(self.keys[row] == wanted, found, no_route(self.routes.egress))

    def hops(
        self, sources: NDArray[np.int64], destinations: NDArray[np.int64]
    ) -> NDArray[np.int8]:
        """int8[B, D]: links that a packet from each source to each destination takes.

        LOST, UNCABLED, LOOPED or MISDELIVERED where it does not arrive; 0 from a switch to itself.
        """
        width = self.step.shape[1]
        at = np.repeat(sources, len(destinations))
        to = np.tile(destinations, len(sources))
        result = np.full(len(at), LOOPED, np.int8)
        moving = np.arange(len(at))
        for hop in range(TTL):
            here = at[moving]
            after = self.step.ravel().take(here * width + self.egress(here, to[moving]))
            stopped = after == here
            result[moving[stopped]] = np.where(
                here[stopped] == to[moving[stopped]], hop, MISDELIVERED
            )
            failed = after < 0
            result[moving[failed]] = after[failed]
            forward = ~(stopped | failed)
            moving = moving[forward]
            if not len(moving):
                break
            at[moving] = after[forward]
        return result.reshape(len(sources), len(destinations))

    def path(self, source: int, destination: int) -> tuple[list[int], int]:
        """The switches from source on, and the hops taken or what went wrong."""
        at, path, width = source, [source], self.step.shape[1]
        to = np.array([destination])
        for hop in range(TTL):
            value = int(self.egress(np.array([at]), to)[0])
            after = int(self.step.ravel()[at * width + value])
            if after == at:
                return path, hop if at == destination else MISDELIVERED
            if after < 0:
                return path, after
            path.append(after)
            at = after
        return path, LOOPED
