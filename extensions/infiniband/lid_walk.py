"""Follows packets to every LID through the tables and cables that files state.

`subnet_check` makes a `LidWalk` of the files. The walk answers two questions: between which
switches packets arrive, and whether a lane has a *credit loop*. For that it collects the channel
dependencies of each lane: a packet that came over a link depends on credits for the next link of
its path. A cycle of dependencies within a lane is a credit loop, which may deadlock (Dally, Seitz,
IEEE Transactions on Computers 36, 1987).

The service level of a packet depends on its source host and its destination host, and chooses its
virtual lane. `setting_check.maps_levels_to_lanes` makes sure that a level and its lane have the
same number. So here the number of a level is that of a lane.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from compilers.tables.fib import MOST_HOPS

LANES = 16
"""The virtual lanes that InfiniBand has."""
PACKETS_AT_ONCE = 1 << 22
"""The most pairs of a switch and a LID that are followed together."""
LOST = -1
"""In place of a switch: the packet has no port to take, or no cable is there."""
NO_LANE = -1
"""In place of a lane: no host sends."""
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
    def first_of_host(self) -> NDArray[np.int64]:
        """int64[H], the first LID of each host."""
        return np.flatnonzero((self.port > 0) & (self.layer == 0))


@dataclass(frozen=True, slots=True, eq=False)
class LidDelivery:
    """What became of packets from all S switches to all LIDs of hosts."""

    arrived: Flags
    """bool[S, S], whether packets from a switch reach all LIDs of another one's hosts. False where
    the other has no hosts."""
    dependencies: Flags
    """bool[LANES, S, ports + 1, ports + 1], the channel dependencies by lane, switch and port:
    whether a packet that the switch sent by the first port left the next switch by the second."""


@dataclass(frozen=True, slots=True)
class CreditLoop:
    """A lane with a cycle of channel dependencies."""

    lane: int
    """The lane."""
    vertex: int
    """A switch at a link of the cycle."""


@dataclass(frozen=True, slots=True, eq=False)
class LidWalk:
    """The cables, forwarding tables and service levels of S switches, as files state them."""

    ends: LidEnds
    """The n LIDs."""
    far: NDArray[np.int64]
    """int64[S, ports + 1], the switch at the other end of each port's cable; -1: none."""
    port: NDArray[np.int16]
    """int16[S, n], the port of each switch towards each LID; -1: none."""
    level: NDArray[np.uint8]
    """uint8[H, H], the service level from host to host, which is also the lane."""

    def delivery(self) -> LidDelivery:
        """Follow packets from every switch to every LID of hosts."""
        switches = len(self.far)
        columns = np.flatnonzero(self.ends.port > 0)
        lids_reached = np.zeros((switches, switches), np.int64)
        dependencies = np.zeros((LANES, *self.far.shape, self.far.shape[1]), np.bool_)
        width = max(1, PACKETS_AT_ONCE // switches)
        for first in range(0, len(columns), width):
            block = columns[first : first + width]
            arrives = self._follow(block, dependencies)
            np.add.at(lids_reached.T, self.ends.vertex[block], arrives.T.astype(np.int64))
        lids = np.bincount(self.ends.vertex[columns], minlength=switches)
        return LidDelivery((lids_reached == lids) & (lids > 0), dependencies)

    def _follow(self, block: NDArray[np.int64], dependencies: Flags) -> Flags:
        """Whether packets from each switch arrive at some LIDs, bool[S, n].

        Args:
            block: int64[n], the numbers of the LIDs.
            dependencies: as in `LidDelivery`. The dependencies of these packets are added.
        """
        port, next_switch = self._next_hops(block)
        destination, lane = self.ends.vertex[block], self._lanes(block)
        column = np.arange(len(block))
        # By source and LID, [S, n], a link in each round: where the packets are.
        at_switch = np.broadcast_to(np.arange(len(port))[:, None], port.shape)
        for _ in range(MOST_HOPS):
            following = np.where(at_switch != LOST, next_switch[at_switch, column], LOST)
            if (following == at_switch).all():
                break
            goes_on = (following != LOST) & (following != destination) & (lane != NO_LANE)
            source, packet = np.nonzero(goes_on)
            near, far = at_switch[source, packet], following[source, packet]
            near_port, far_port = port[near, packet], port[far, packet]
            dependencies[lane[source, packet], near, near_port, far_port] = True
            at_switch = following
        arrives: Flags = at_switch == destination
        return arrives

    def _next_hops(self, block: NDArray[np.int64]) -> tuple[NDArray[np.int16], NDArray[np.int64]]:
        """The ports of all switches towards some LIDs, and the switches behind them.

        At the switch of its host a packet arrives if it takes the port of the host. It then stays:
        the switch is its own next switch. Else it is lost.

        Args:
            block: int64[n], the numbers of the LIDs.

        Returns:
            int16[S, n], the port, 0 where there is none; and int64[S, n], the switch behind it, or
            LOST.
        """
        destination, port = self.ends.vertex[block], self.port[:, block]
        is_usable = (port > 0) & (port < self.far.shape[1])
        port = np.where(is_usable, port, np.int16(0))
        switch, column = np.arange(len(port))[:, None], np.arange(len(block))
        next_switch = np.where(is_usable, self.far[switch, port], LOST)
        delivers = port[destination, column] == self.ends.port[block]
        next_switch[destination, column] = np.where(delivers, destination, LOST)
        return port, next_switch

    def _lanes(self, block: NDArray[np.int64]) -> NDArray[np.int64]:
        """The lane of packets from each switch's hosts to some LIDs, int64[S, n].

        The first host of a switch stands for all of them, and NO_LANE for switches without hosts.
        `lane_check.check_levels` reports each host that differs from the others of its switch.
        """
        # By LID the number of its host, as in `level`; any number for the LID of a switch.
        host_of_lid = np.cumsum((self.ends.port > 0) & (self.ends.layer == 0)) - 1
        # int64[H], by host its switch. `unique` finds where each switch comes first.
        switch_of_host = self.ends.vertex[self.ends.first_of_host]
        switches, first_host = np.unique(switch_of_host, return_index=True)
        lane = np.full((len(self.far), len(block)), NO_LANE)
        lane[switches] = self.level[first_host[:, None], host_of_lid[block]]
        return lane

    def credit_loops(self, dependencies: Flags) -> list[CreditLoop]:
        """The lanes whose channel dependencies (`LidDelivery.dependencies`) have a cycle.

        Links that depend on none, or on which none depends, are removed until all that are left
        are on cycles, or between two cycles.
        """
        loops = []
        ports = dependencies.shape[-1]
        for lane in np.flatnonzero(dependencies.any(axis=(1, 2, 3))).tolist():
            switch, port, next_port = np.nonzero(dependencies[lane])
            link, next_link = switch * ports + port, self.far[switch, port] * ports + next_port
            remains = np.ones(len(link), np.bool_)
            while True:
                has_both = np.isin(next_link, link[remains]) & np.isin(link, next_link[remains])
                has_both &= remains
                if has_both.sum() == remains.sum():
                    break
                remains = has_both
            if remains.any():
                loops.append(CreditLoop(lane, int(switch[remains][0])))
        return loops
