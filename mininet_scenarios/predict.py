"""What the tables say that packets will do: hops of every pair, and the load of every link."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from compilers.build import Build
from compilers.tables import Tables
from compilers.walk import TTL, Walker


@dataclass(frozen=True, slots=True)
class Prediction:
    """Where the tables lead packets in a fabric of S switches.

    hops: int8[S, S], links from each switch to each other, negative where packets don't arrive
    (`compilers.walk.FAULTS`). after: int32[S, S], the switch to which s forwards packets for d, s
    itself where it delivers, negative where it drops. port: int32[S, S], the port it uses, 0 where
    it does not forward. ports: the largest port number.
    """

    hops: NDArray[np.int8]
    after: NDArray[np.int32]
    port: NDArray[np.int32]
    ports: int

    @classmethod
    def of(cls, build: Build, tables: Tables | None = None) -> Prediction:
        """Ask the packet walker, for the build's own tables or for others on its wiring."""
        tables = tables or build.tables
        cables = build.wiring.cables()
        walker = Walker.of(tables, cables)
        everywhere = np.arange(tables.switches)
        egress = walker.egress(everywhere)
        known = egress < tables.classes.port.shape[1]
        port = np.take_along_axis(tables.classes.port, np.where(known, egress, 0), axis=1)
        return cls(
            hops=walker.hops(everywhere),
            after=walker.next_switch(everywhere),
            port=np.where(known, port, 0).astype(np.int32),
            ports=cables.shape[1] - 1,
        )

    def loads(self, packets: NDArray[np.int64]) -> NDArray[np.int64]:
        """int64[S, ports + 1]: packets out of each port when packets[s, d] go from s to d.

        All flows step together, hop by hop, and each adds its packets to the port it leaves by.
        """
        source, destination = np.nonzero(packets)
        amount = packets[source, destination]
        at, load = source, np.zeros((len(packets), self.ports + 1), np.int64)
        for _ in range(TTL):
            after = self.after[at, destination]
            moving = (after >= 0) & (after != at)
            at, destination, amount, after = (x[moving] for x in (at, destination, amount, after))
            if not len(at):
                break
            np.add.at(load, (at, self.port[at, destination]), amount)
            at = after
        return load
