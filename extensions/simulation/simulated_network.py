"""The network that is simulated: the tables of a build joined with its cables and hosts."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from compilers.demand.traffic_matrix import Traffic
from compilers.evaluation.traffic import HOST_PATTERNS, PATTERNS, host_pairs
from compilers.forwarding.program import egress_classes, program_of
from compilers.forwarding.rule import DROP, Program
from compilers.forwarding.walks import minimal_hops
from compilers.proof.lossless.channels import rising
from compilers.routing.intermediates import intermediates
from compilers.tables.build import Build
from compilers.tables.fib import Fib
from compilers.topology.distance import distances, table_of
from compilers.topology.labelled_graph import Topology

Numbers = NDArray[Any]
DESTINATIONS_AT_ONCE = 256
NOWHERE, HOME = -1, -2
"""In place of an arc: there is none; the packet is delivered."""


class SimulatedNetwork(NamedTuple):
    """S switches with K links and p hosts each, and what their tables do.

    Arc s·L + k, L = K + p, is switch s and its k-th port, hosts' behind links: an egress of the
    switch, and a packet that came in by it.
    """

    switches: int
    """S, how many switches there are."""
    links: int
    """K, how many links each switch has at most."""
    hosts: int
    """p, how many hosts each switch has at most."""
    end: NDArray[np.int32]
    """int32[S·L], the arc at the other end of a link, -1 for none and for hosts."""
    delay: NDArray[np.int32]
    """int32[S·L], cycles that a flit takes along it."""
    number: NDArray[np.uint16]
    """uint16[S, S], the class of each switch for each destination; C delivers, C + 1 drops."""
    hops: NDArray[np.uint8]
    """uint8[S, S], the links from each switch to each destination over minimal paths."""
    order: NDArray[np.int32]
    """int32[S·(C + 2), 1 + P], egress arcs by class, the minimal one first; `HOME` delivers."""
    ingress: NDArray[np.int32]
    """int32[S·(C + 2), 1 + A], arcs for packets from hosts."""
    weight: NDArray[np.int32]
    """int32[S·(C + 2), 1 + A], the weight of each of these arcs."""
    up: NDArray[np.int32]
    """int32[S·L], whether an arc leads to a switch of higher rank."""
    endpoints: NDArray[np.bool_]
    """bool[S], the switches with hosts."""
    distance: NDArray[np.uint8]
    """uint8[S, S], links of a shortest path; empty where tables are followed."""
    turning: NDArray[np.int32]
    """int32[n], switches that a packet may be sent by."""
    program: Program
    """What the switches hold, in the form of which the rule is asked."""
    carries: bool
    """Whether packets go by one of `turning`, drawn at random."""

    @property
    def ports(self) -> int:
        """L, the ports of a switch."""
        return self.links + self.hosts

    @property
    def alternates(self) -> bool:
        """Whether some packet from a host may leave by another port than the minimal one."""
        return bool((self.weight[:, 1:] > 0).any())

    @classmethod
    def of(cls, build: Build, hosts: int) -> SimulatedNetwork:
        """Join the tables of a build with `hosts` hosts a switch."""
        p, fib = program_of(build), Fib.of(build.tables, build.wiring.cables())
        order, links = p.far.shape
        classes, ports = p.order.shape[1], links + hosts

        def by_row(of_links: Numbers) -> NDArray[np.int32]:
            first = np.arange(0, order * ports, ports, dtype=np.int32)[:, None, None]
            arcs = np.where(of_links >= 0, first + of_links, NOWHERE)
            arcs = np.pad(arcs, ((0, 0), (0, 2), (0, 0)), constant_values=NOWHERE)
            rows = arcs.reshape(order * (classes + 2), arcs.shape[2])
            return np.ascontiguousarray(rows, np.int32)

        end = np.full((order, ports), NOWHERE, np.int32)
        end[:, :links] = np.where(p.far >= 0, p.far * ports + p.far_link, NOWHERE)
        up = np.zeros((order, ports), np.int32)
        up[:, :links] = rising(build)
        weight = np.pad(build.tables.classes.weight, ((0, 0), (0, 2), (0, 0))).astype(np.int32)
        ingress, ranked, carries = by_row(p.shares), by_row(p.order), build.forwarding.intermediates
        ranked[classes :: classes + 2, 0] = HOME
        number, hops = _towards(fib, build, classes)
        return cls(
            switches=order,
            links=links,
            hosts=hosts,
            end=end.ravel(),
            delay=np.ones(order * ports, np.int32),
            number=number,
            hops=hops,
            order=ranked,
            ingress=ingress,
            weight=np.where(ingress >= 0, weight.reshape(ingress.shape), 0),
            up=up.ravel(),
            endpoints=np.array(build.topology.endpoints),
            distance=np.zeros((0, 0), np.uint8),
            turning=intermediates(build).astype(np.int32)[: None if carries else 0],
            program=p,
            carries=carries,
        )

    @property
    def far(self) -> NDArray[np.int32]:
        """int32[S, K]: the switch behind each link, -1 for none."""
        end = self.end.reshape(self.switches, self.ports)[:, : self.links]
        return np.where(end >= 0, end // self.ports, NOWHERE)

    def with_distances(self) -> SimulatedNetwork:
        """The network with distances, by which packets find shortest paths of their own."""
        links = distances(table_of(self.far), np.arange(self.switches))
        return self._replace(distance=np.ascontiguousarray(links))


def _towards(fib: Fib, build: Build, classes: int) -> tuple[NDArray[np.uint16], NDArray[np.uint8]]:
    """`SimulatedNetwork.number` and `hops`, of which 255 is where there is no minimal path."""
    order = build.tables.switches
    numbers, hops = np.empty((order, order), np.uint16), np.empty((order, order), np.uint8)
    for first in range(0, order, DESTINATIONS_AT_ONCE):
        some = np.arange(first, min(first + DESTINATIONS_AT_ONCE, order))
        egress = egress_classes(build, some, fib).T
        numbers[:, some] = np.where(egress >= 0, egress, classes + (egress == DROP))
        minimal = minimal_hops(fib, some)
        hops[:, some] = np.where(minimal >= 0, minimal.astype(np.uint8), np.uint8(255))
    return numbers, hops


ANY_HOST, SAME_PLACE = -1, -2
"""In the place of a destination's host: any, at random; the one with the sender's own place."""


class HostTraffic(NamedTuple):
    """Where the packets of each host go; hosts are numbered switch by switch, p of each of S."""

    row: NDArray[np.int32]
    """int32[S·p], the row of a host, which those of a switch may share."""
    first: NDArray[np.int64]
    """int64[R + 1], the flows of each row."""
    destination: NDArray[np.int32]
    """int32[n], the switch of a flow."""
    place: NDArray[np.int32]
    """int32[n], which of its hosts, or `ANY_HOST`, or `SAME_PLACE`."""
    below: NDArray[np.float64]
    """float64[n], the share of the row's packets in this and its earlier flows."""
    volume: NDArray[np.float64]
    """float64[S·p], what a host sends, as a share of the offered load."""

    @classmethod
    def of(cls, traffic: Traffic, switches: int, hosts: int) -> HostTraffic:
        """Flows of switches. A host sends to its like, or at random to those of several."""
        flows = _rows(traffic.source, traffic.destination, traffic.amount, switches)
        first, destination, below, volume = flows
        alone = np.repeat(np.diff(first) == 1, np.diff(first))
        place = np.where(alone, SAME_PLACE, ANY_HOST).astype(np.int32)
        row = np.repeat(np.arange(switches, dtype=np.int32), hosts)
        return cls(row, first, destination, place, below, np.repeat(volume, hosts))

    @classmethod
    def of_pairs(cls, one: Numbers, other: Numbers, switches: int, hosts: int) -> HostTraffic:
        """Hosts that each send to one other; within a switch there is no traffic."""
        one, other = np.array((one, other))[:, one // hosts != other // hosts]
        count = switches * hosts
        first, goal, below, volume = _rows(one, other, np.ones(len(one)), count)
        row = np.arange(count, dtype=np.int32)
        return cls(row, first, goal // hosts, goal % hosts, below, volume)

    @classmethod
    def of_pattern(cls, pattern: str, topology: Topology, hosts: int, seed: int) -> HostTraffic:
        """A pattern of `PATTERNS`: between hosts where it is of their numbers, else switches."""
        switches = topology.graph.order
        if pattern in HOST_PATTERNS:
            return cls.of_pairs(*host_pairs(pattern, topology, hosts), switches, hosts)
        return cls.of(PATTERNS[pattern](topology, hosts, seed), switches, hosts)

    @classmethod
    def none(cls, sends: Numbers) -> HostTraffic:
        """No flows; bool[S·p], which hosts send something else."""
        empty = np.zeros(len(sends), np.int32)
        first = np.zeros(2, np.int64)
        return cls(empty, first, empty[:0], empty[:0], np.zeros(0), sends.astype(np.float64))


def _rows(source: Numbers, destination: Numbers, amount: Numbers, rows: int) -> tuple[Any, ...]:
    """Flows by their sources: `first`, `destination`, `below`, and what each row sends."""
    order = np.argsort(source, kind="stable")
    source, amount = source[order], amount[order]
    first = np.searchsorted(source, np.arange(rows + 1))
    volume = np.bincount(source, amount, minlength=rows).astype(np.float64)
    total = np.cumsum(amount)
    before = np.concatenate(([0.0], total))[first[:-1]]
    below = (total - before[source]) / volume[source]
    return first, destination[order].astype(np.int32), below, volume


__all__ = ["ANY_HOST", "HOME", "NOWHERE", "SAME_PLACE", "HostTraffic", "SimulatedNetwork"]
