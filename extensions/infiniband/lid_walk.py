"""Packets followed to every LID through the forwarding tables and cables that files state.

On the way the walk notes which links packets wait for on each lane, and finds circles of waits,
which may deadlock.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from compilers.tables.fib import MOST_HOPS

LANES = 16
"""The lanes that InfiniBand has."""
PACKETS_AT_ONCE = 1 << 22
"""The most pairs of a switch and a LID that are followed together."""
Flags = NDArray[np.bool_]


@dataclass(frozen=True, slots=True)
class LidEnd:
    """A port that packets can be for."""

    guid: int
    """Its GUID."""
    vertex: int
    """The vertex of the switch, or of the host's switch."""
    port: int
    """The port of that switch; 0 is the switch itself."""


@dataclass(frozen=True, slots=True, eq=False)
class LidEnds:
    """The n LIDs of a fabric, ordered by GUID."""

    guid: NDArray[np.uint64]
    """uint64[n], the GUID of the LID's port."""
    vertex: NDArray[np.int64]
    """int64[n], the vertex of the switch, or of the host's switch."""
    port: NDArray[np.int64]
    """int64[n], the port of that switch; 0 is the switch itself."""
    layer: NDArray[np.int64]
    """int64[n], the number of the LID among those of its port."""

    @classmethod
    def of(cls, ends: list[LidEnd], lids: int) -> LidEnds:
        """The LIDs of ports; each host's port has `lids` of them, each switch has one."""
        in_order = sorted(ends, key=lambda end: (end.guid, end.vertex, end.port))
        port = np.array([end.port for end in in_order], int)
        count = np.where(port > 0, lids, 1)
        first = np.repeat(np.cumsum(count) - count, count)
        return cls(
            guid=np.repeat(np.array([end.guid for end in in_order], np.uint64), count),
            vertex=np.repeat(np.array([end.vertex for end in in_order], int), count),
            port=np.repeat(port, count),
            layer=np.arange(count.sum()) - first,
        )

    @property
    def of_host(self) -> NDArray[np.int64]:
        """int64[H], the first LID of each host."""
        return np.flatnonzero((self.port > 0) & (self.layer == 0))


@dataclass(frozen=True, slots=True, eq=False)
class LidDelivery:
    """What became of packets from all S switches to all LIDs of hosts."""

    arrived: Flags
    """bool[S, S], whether packets from a switch reach all LIDs of another one's hosts. False where
    the other has no hosts."""
    waits: Flags
    """bool[LANES, S, ports + 1, ports + 1], by lane and switch: whether a packet that the switch
    sent by one port was sent by another port of the next switch."""


@dataclass(frozen=True, slots=True, eq=False)
class LidWalk:
    """What files say of S switches: where their ports lead, their tables, and service levels."""

    ends: LidEnds
    """The n LIDs."""
    far: NDArray[np.int64]
    """int64[S, ports + 1], the switch behind each port; -1: none."""
    port: NDArray[np.int16]
    """int16[S, n], the port of each switch towards each LID; -1: none."""
    level: NDArray[np.uint8]
    """uint8[H, H], the service level from host to host."""

    def followed(self) -> LidDelivery:
        """Follow packets from every switch to every LID of hosts."""
        switches = len(self.far)
        columns = np.flatnonzero(self.ends.port > 0)
        reached = np.zeros((switches, switches), np.int64)
        waits = np.zeros((LANES, *self.far.shape, self.far.shape[1]), np.bool_)
        width = max(1, PACKETS_AT_ONCE // switches)
        for first in range(0, len(columns), width):
            block = columns[first : first + width]
            arrives = self._follow(block, waits)
            np.add.at(reached.T, self.ends.vertex[block], arrives.T.astype(np.int64))
        lids = np.bincount(self.ends.vertex[columns], minlength=switches)
        return LidDelivery((reached == lids) & (lids > 0), waits)

    def _follow(self, block: NDArray[np.int64], waits: Flags) -> Flags:
        """Whether packets from each switch to some LIDs arrive, bool[S, n]; notes their waits."""
        destination, port = self.ends.vertex[block], self.port[:, block]
        is_usable = (port > 0) & (port < self.far.shape[1])
        port = np.where(is_usable, port, 0)
        switch, column = np.arange(len(port))[:, None], np.arange(len(block))
        next_switch = np.where(is_usable, self.far[switch, port], -1)
        delivers = port[destination, column] == self.ends.port[block]
        next_switch[destination, column] = np.where(delivers, destination, -1)
        lane = self._lane(block)
        reached = np.broadcast_to(switch, next_switch.shape)
        for _ in range(MOST_HOPS):
            following = np.where(reached >= 0, next_switch[reached, column], -1)
            if (following == reached).all():
                break
            source, packet = np.nonzero((following >= 0) & (following != destination) & (lane >= 0))
            before, after = reached[source, packet], following[source, packet]
            out, onward = port[before, packet], port[after, packet]
            waits[lane[source, packet], before, out, onward] = True
            reached = following
        arrives: Flags = reached == destination
        return arrives

    def _lane(self, block: NDArray[np.int64]) -> NDArray[np.int64]:
        """The service level of packets from each switch's first host to some LIDs, int64[S, n].

        -1 for switches without hosts.
        """
        of_host = self.ends.of_host
        host_number = np.cumsum((self.ends.port > 0) & (self.ends.layer == 0)) - 1
        vertices, first_host = np.unique(self.ends.vertex[of_host], return_index=True)
        lane = np.full((len(self.far), len(block)), -1)
        lane[vertices] = self.level[first_host[:, None], host_number[block]]
        return lane

    def circles(self, waits: Flags) -> list[WaitCircle]:
        """The lanes of which some waits (`LidDelivery.waits`) close a circle."""
        circles = []
        ports = waits.shape[-1]
        for lane in np.flatnonzero(waits.any(axis=(1, 2, 3))).tolist():
            switch, out, onward = np.nonzero(waits[lane])
            link, waits_for = switch * ports + out, self.far[switch, out] * ports + onward
            remains = np.ones(len(link), np.bool_)
            while True:
                # A link that waits for none, or that none waits for, is in no circle.
                has_both = np.isin(waits_for, link[remains]) & np.isin(link, waits_for[remains])
                has_both &= remains
                if has_both.sum() == remains.sum():
                    break
                remains = has_both
            if remains.any():
                circles.append(WaitCircle(lane, int(switch[remains][0])))
        return circles


@dataclass(frozen=True, slots=True)
class WaitCircle:
    """Links on a lane that wait for each other in a circle."""

    lane: int
    """The lane."""
    vertex: int
    """A switch at one of the links."""
