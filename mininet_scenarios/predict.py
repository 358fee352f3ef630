"""What the tables say that packets will do: hops of every pair, and the load of every link.

With alternates a switch chooses among several ways by a hash that nobody predicts, so hops and
loads are known between bounds; without, the bounds meet.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from compilers.build import Build
from compilers.tables import Tables
from compilers.walk import LOST, TTL, Walker

Loads = NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class Prediction:
    """Where the tables lead packets in a fabric of S switches.

    hops: int8[S, S], links from each switch to each other, negative where packets don't arrive
    (`compilers.walk.FAULTS`). after: int32[S, S], the switch to which s forwards packets for d, s
    itself where it delivers, negative where it drops. port: int32[S, S], the port it uses, 0 where
    it does not forward. egress: [S, S], the class. ports: the largest port number. first: int32[S,
    C, W], the ports by which packets from hosts may enter a class, 0: no more; W is 0 where they
    always take `port`. cables: int32[S, ports + 1], the switch behind each port.
    """

    hops: NDArray[np.int8]
    after: NDArray[np.int32]
    port: NDArray[np.int32]
    egress: NDArray[np.integer]
    first: NDArray[np.int32]
    cables: NDArray[np.int32]
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
            egress=egress,
            first=_first_ports(tables),
            cables=cables,
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

    @property
    def varies(self) -> bool:
        """Whether there are alternates, so that bounds are all there is."""
        return bool(self.first.shape[2])

    def hop_bounds(self) -> tuple[NDArray[np.int8], NDArray[np.int8]]:
        """int8[S, S] twice: the fewest and the most links; a fault where one way has it."""
        if not self.varies:
            return self.hops, self.hops
        fewest, most = self.hops.copy(), self.hops.copy()
        for destination in range(len(self.hops)):
            ways = self._ways(destination)
            behind = np.take_along_axis(self.cables, ways, axis=1)
            links = np.where(ways > 0, 1 + self.hops[behind, destination], 0)
            faulty = ((ways > 0) & (self.hops[behind, destination] < 0)).any(axis=1)
            chosen = (ways > 0).any(axis=1) & ~faulty
            most[chosen, destination] = links.max(axis=1)[chosen]
            fewest[chosen, destination] = np.where(ways > 0, links, TTL).min(axis=1)[chosen]
            fewest[faulty, destination] = most[faulty, destination] = LOST
        return fewest, most

    def load_bounds(self, packets: NDArray[np.int64]) -> tuple[Loads, Loads]:
        """int64[S, ports + 1] twice: the fewest and the most packets out of each port."""
        if not self.varies:
            loads = self.loads(packets)
            return loads, loads
        bounds = np.zeros((2, *self.cables.shape), np.int64)
        for destination in np.flatnonzero(packets.any(axis=0)).tolist():
            self._add_bounds(destination, packets[:, destination], bounds)
        return bounds[0], bounds[1]

    def _ways(self, destination: int) -> NDArray[np.int32]:
        """int32[S, W]: the ports by which packets for a destination may enter at each switch."""
        egress = self.egress[:, destination].astype(np.int64)
        known = egress < self.first.shape[1]
        ways = self.first[np.arange(len(egress)), np.where(known, egress, 0)]
        ways = np.where(known[:, None], ways, 0)
        alone = ~ways.any(axis=1)
        ways[alone, 0] = self.port[alone, destination]
        return ways

    def _add_bounds(self, destination: int, packets: Loads, bounds: Loads) -> None:
        """Add what goes to one destination: each link of a way may get all of it, or none."""
        ways = self._ways(destination)
        source, way = np.nonzero((ways > 0) & (packets > 0)[:, None])
        port = ways[source, way]
        at, pair = source, source
        crossed: list[Loads] = []
        while len(at):
            crossed.append(pair * self.cables.size + at * self.cables.shape[1] + port)
            at = self.cables[at, port].astype(np.int64)
            moving = (at >= 0) & (self.port[at, destination] > 0) & (len(crossed) < TTL)
            at, pair = at[moving], pair[moving]
            port = self.port[at, destination]
        keys, times = np.unique(np.concatenate(crossed or [source]), return_counts=True)
        pair, link = np.divmod(keys, self.cables.size)
        always = times == np.count_nonzero(ways > 0, axis=1)[pair]
        np.add.at(bounds[1].reshape(-1), link, packets[pair])
        np.add.at(bounds[0].reshape(-1), link[always], packets[pair[always]])


def _first_ports(tables: Tables) -> NDArray[np.int32]:
    """int32[S, C, W]: the weighted ports of every class; W is 0 where none has alternates."""
    classes = tables.classes
    if not classes.alternate.shape[2]:
        return np.zeros((*classes.port.shape, 0), np.int32)
    ports = np.concatenate((classes.port[..., None], classes.alternate), axis=2)
    return (ports * (classes.weight > 0)).astype(np.int32)
