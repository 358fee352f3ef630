"""The network that is simulated: the tables of a build joined with its cables and hosts."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from compilers.demand.traffic_matrix import Traffic
from compilers.proof.lossless.channels import rising
from compilers.proof.walks.forwarding import HOME, NOWHERE, Forwarding, Towards
from compilers.routing.intermediates import intermediates
from compilers.routing.marked_spread import require_short_marks
from compilers.tables.build import Build
from compilers.topology.distance import distances, table_of

Numbers = NDArray[Any]
DESTINATIONS_AT_ONCE = 256


class SimulatedNetwork(NamedTuple):
    """S switches with K links and p hosts each, and what their tables do.

    Arc s·L + k, L = K + p, is switch s and its k-th port, hosts' behind links: a way out of the
    switch, and a packet that came in by it.

    end: int32[S·L], the arc at the other end of a link, -1 for none and for hosts.
    number: uint16[S, S], the class of each switch for each destination; C delivers, C + 1 drops.
    hops: uint8[S, S], the links from each switch to each destination over minimal ways.
    order: int32[S·(C + 2), 1 + P], ways out by class, the minimal one first; `HOME` delivers.
    bounce: int32[S·(C + 2), B], the same for a packet that came in by the minimal way.
    ways: int32[S·(C + 2), 1 + A], ways for packets from hosts; weight: int32, their weights.
    up: int32[S·L], whether an arc leads to a switch of higher rank.
    endpoints: bool[S], the switches with hosts. distance: uint8[S, S], links of a shortest path;
    empty where tables are followed. turning: int32[n], switches that a packet may be sent by.
    onward: bool[S·L, K], by the arc that a marked packet came in by, the links that it is spread
    over; empty where none is marked. carries: packets go by one of `turning`, drawn at random.
    every_hop: those in transit take the ways of hosts' packets, too.
    """

    switches: int
    links: int
    hosts: int
    end: NDArray[np.int32]
    number: NDArray[np.uint16]
    hops: NDArray[np.uint8]
    order: NDArray[np.int32]
    bounce: NDArray[np.int32]
    ways: NDArray[np.int32]
    weight: NDArray[np.int32]
    up: NDArray[np.int32]
    endpoints: NDArray[np.bool_]
    distance: NDArray[np.uint8]
    turning: NDArray[np.int32]
    onward: NDArray[np.bool_]
    carries: bool
    every_hop: bool

    @property
    def ports(self) -> int:
        """L, the ports of a switch."""
        return self.links + self.hosts

    @property
    def alternates(self) -> bool:
        """Whether some packet from a host may leave by another way than the minimal one."""
        return bool((self.weight[:, 1:] > 0).any())

    @classmethod
    def of(cls, build: Build, hosts: int) -> SimulatedNetwork:
        """Join the tables of a build with `hosts` hosts a switch.

        Raises:
            InputError: its packets can stay marked.
        """
        require_short_marks(build, "a simulation")
        forwarding = Forwarding.of(build)
        old, links = forwarding.slots, forwarding.slots - 1
        ports = links + hosts

        def renumbered(arcs: Numbers) -> NDArray[np.int32]:
            wide = arcs // old * ports + arcs % old
            return np.where(arcs >= 0, wide, arcs).astype(np.int32)

        def by_row(ways: Numbers) -> NDArray[np.int32]:
            return np.ascontiguousarray(renumbered(ways).T)

        order, width = build.tables.switches, forwarding.classes + 2
        end = np.full((order, ports), NOWHERE, np.int32)
        end[:, :links] = renumbered(forwarding.end.reshape(order, old)[:, :-1])
        up = np.zeros((order, ports), np.int32)
        up[:, :links] = rising(build)
        weight = np.zeros((order, width, len(forwarding.weighted)), np.int32)
        weight[:, :-2] = build.tables.classes.weight
        ways, carries = by_row(forwarding.weighted), build.carries
        return cls(
            switches=order,
            links=links,
            hosts=hosts,
            end=end.ravel(),
            number=_numbers(forwarding),
            hops=_hops(forwarding),
            order=by_row(forwarding.order),
            bounce=by_row(forwarding.bounce),
            ways=ways,
            weight=np.where(ways >= 0, weight.reshape(ways.shape), 0),
            up=up.ravel(),
            endpoints=np.array(build.topology.endpoints),
            distance=np.zeros((0, 0), np.uint8),
            turning=intermediates(build).astype(np.int32)[: None if carries else 0],
            onward=_onward(forwarding, hosts),
            carries=carries,
            every_hop=build.every_hop,
        )

    @property
    def far(self) -> NDArray[np.int32]:
        """int32[S, K]: the switch behind each link, -1 for none."""
        end = self.end.reshape(self.switches, self.ports)[:, : self.links]
        return np.where(end >= 0, end // self.ports, NOWHERE)

    def with_distances(self) -> SimulatedNetwork:
        """The same, where packets find shortest paths of their own."""
        found = distances(table_of(self.far), np.arange(self.switches))
        turning = np.flatnonzero(self.endpoints).astype(np.int32)
        return self._replace(distance=np.ascontiguousarray(found), turning=turning)


def _numbers(forwarding: Forwarding) -> NDArray[np.uint16]:
    """[S, S]: the class of each switch for each destination."""
    order, width = forwarding.switches, forwarding.classes + 2
    numbers = np.empty((order, order), np.uint16)
    first_row = (np.arange(order) * width)[:, None]
    for first in range(0, order, DESTINATIONS_AT_ONCE):
        some = np.arange(first, min(first + DESTINATIONS_AT_ONCE, order))
        rows = Towards.of(forwarding, some).rows.reshape(order, len(some))
        numbers[:, some] = rows - first_row
    return numbers


def _onward(forwarding: Forwarding, hosts: int) -> NDArray[np.bool_]:
    """bool[S·L, K]: `SimulatedNetwork.onward`."""
    if not forwarding.marks:
        return np.zeros((0, 0), np.bool_)
    order, slots = forwarding.switches, forwarding.slots
    to = np.unpackbits(forwarding.onward, axis=1, count=slots - 1, bitorder="little")
    onward = np.pad(to.reshape(order, slots, -1)[:, :-1] > 0, ((0, 0), (0, hosts), (0, 0)))
    return np.ascontiguousarray(onward.reshape(order * (slots - 1 + hosts), slots - 1))


def _hops(forwarding: Forwarding) -> NDArray[np.uint8]:
    """[S, S]: the links of minimal ways; 255 where there is none."""
    order = forwarding.switches
    hops = np.empty((order, order), np.uint8)
    for first in range(0, order, DESTINATIONS_AT_ONCE):
        some = np.arange(first, min(first + DESTINATIONS_AT_ONCE, order))
        found = forwarding.walker.hops(some)
        hops[:, some] = np.where(found >= 0, found.astype(np.uint8), np.uint8(255))
    return hops


class HostTraffic(NamedTuple):
    """Where the packets of each switch's hosts go.

    first: int64[S + 1], the flows of each switch; destination: int32[n], the switch of a flow;
    below: float64[n], the share of the switch's packets in this and earlier flows of it. volume:
    float64[S], what a switch's hosts send, as a share of the offered load.
    """

    first: NDArray[np.int64]
    destination: NDArray[np.int32]
    below: NDArray[np.float64]
    volume: NDArray[np.float64]

    @classmethod
    def of(cls, traffic: Traffic, switches: int) -> HostTraffic:
        """Flows by their sources. A host sends to its like, or at random to one of several."""
        order = np.argsort(traffic.source, kind="stable")
        source, amount = traffic.source[order], traffic.amount[order]
        first = np.searchsorted(source, np.arange(switches + 1))
        volume = np.bincount(source, amount, minlength=switches).astype(np.float64)
        total = np.cumsum(amount)
        before = np.concatenate(([0.0], total))[first[:-1]]
        below = (total - before[source]) / volume[source]
        return cls(first, traffic.destination[order].astype(np.int32), below, volume)


__all__ = ["HOME", "NOWHERE", "HostTraffic", "SimulatedNetwork"]
