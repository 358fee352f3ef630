"""The common part of two builds of a fabric: switches, networks and hosts.

A switch is the same when its datapath id is; its vertex, name and links may be others. A network
is the same when its address and length are: vertices own the blocks of the pool in order, so a
node that changes its vertex changes its addresses.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from compilers.spec.address_blocks import FIRST_HOST
from compilers.tables.build import Build

NO_VERTEX = -1


@dataclass(frozen=True, slots=True, eq=False)
class Matching:
    """The M switches that either build has, in the order of their datapath ids."""

    datapath_id: NDArray[np.uint64]
    """uint64[M], the OpenFlow datapath id of each switch."""
    before: NDArray[np.int64]
    """int64[M], its vertex in the old build; NONE where that has no such switch."""
    after: NDArray[np.int64]
    """int64[M], its vertex in the new build; NONE where that has no such switch."""
    node_before: NDArray[np.int64]
    """int64[S], the place in this list of each vertex of the old build; NONE for a vertex without a
    program."""
    node_after: NDArray[np.int64]
    """int64[S'], the place in this list of each vertex of the new build; NONE for a vertex without
    a program."""
    prefix: NDArray[np.int64]
    """int64[P'], for each IPv4 prefix number of the new build the old build's number of the same
    network; NONE where it has none."""
    prefix6: NDArray[np.int64]
    """int64[P'], the same for IPv6 prefixes."""

    @classmethod
    def of(cls, old: Build, new: Build) -> Matching:
        """Match two builds."""
        ids = np.union1d(*(_programmed(build)[1] for build in (old, new)))
        sides = []
        for build in (old, new):
            vertex, vertex_ids = _programmed(build)
            place = np.searchsorted(ids, vertex_ids)
            vertices = np.full(len(ids), NO_VERTEX, np.int64)
            vertices[place] = vertex
            nodes = np.full(build.tables.switches, NO_VERTEX, np.int64)
            nodes[vertex] = place
            sides.append((vertices, nodes))
        return cls(
            datapath_id=ids,
            before=sides[0][0],
            after=sides[1][0],
            node_before=sides[0][1],
            node_after=sides[1][1],
            prefix=_same_networks(_networks4(old), _networks4(new)),
            prefix6=_same_networks(_networks6(old), _networks6(new)),
        )

    @property
    def both(self) -> NDArray[np.bool_]:
        """bool[M]: the switches that both builds have."""
        stays: NDArray[np.bool_] = (self.before >= 0) & (self.after >= 0)
        return stays

    def destinations(self, old: Build, new: Build) -> NDArray[np.int64]:
        """int64[D]: the new vertices whose block is the same network at the same switch in both."""
        vertex = np.flatnonzero(new.topology.endpoints & (self.node_after >= 0))
        earlier = self.prefix[vertex]
        kept = (earlier >= 0) & (earlier < old.tables.switches)
        vertex, earlier = vertex[kept], earlier[kept]
        has_hosts = old.topology.endpoints[earlier]
        same = self.node_before[earlier] == self.node_after[vertex]
        destinations: NDArray[np.int64] = vertex[has_hosts & same]
        return destinations


@dataclass(frozen=True, slots=True, eq=False)
class HostTable:
    """The n hosts of a build: where each is and who it is."""

    vertex: NDArray[np.int64]
    """int64[n], the switch of each host."""
    host: NDArray[np.int64]
    """int64[n], the number of each host at its switch."""
    address: NDArray[np.uint64]
    """uint64[n], the IPv4 address of each host."""
    facts: NDArray[np.uint64]
    """uint64[n, F], all that has to be the same for its traffic to go on: switch, port, MAC, the
    gateway's MAC, block length, IPv6."""

    @classmethod
    def of(cls, build: Build) -> HostTable:
        """All hosts that have a port."""
        a, w = build.addressing, build.wiring
        vertex, host = np.nonzero(w.host_port > 0)
        address = a.ipv4_blocks()[vertex].astype(np.uint64) + np.uint64(FIRST_HOST)
        ipv6 = a.ipv6_blocks()[vertex] if a.ipv6 else np.zeros(len(vertex), np.uint64)
        everywhere = [a.gateway_mac, a.ipv4_length, int(a.ipv6 is not None)]
        facts = (
            w.datapath_id[vertex],
            w.host_port[vertex, host].astype(np.uint64),
            a.host_mac[vertex, host],
            ipv6,
            *(np.full(len(vertex), value, np.uint64) for value in everywhere),
        )
        return cls(vertex, host, address + host.astype(np.uint64), np.column_stack(facts))


def kept_hosts(old: HostTable, new: HostTable) -> NDArray[np.int64]:
    """int64[n]: for each host of the old build its row in the new one; NONE where it is not kept.

    A host is kept when its address is still there with the same facts.
    """
    order = np.argsort(new.address)
    place = np.searchsorted(new.address, old.address, sorter=order)
    row = order[np.minimum(place, len(order) - 1)]
    same = (new.address[row] == old.address) & (new.facts[row] == old.facts).all(axis=1)
    return np.where(same, row, NO_VERTEX)


def _programmed(build: Build) -> tuple[NDArray[np.int64], NDArray[np.uint64]]:
    """The vertices that have a program, and their datapath ids."""
    vertex = np.flatnonzero(build.topology.present)
    return vertex, build.wiring.datapath_id[vertex].astype(np.uint64)


def _networks4(build: Build) -> NDArray[np.void]:
    network, length = build.addressing.ipv4_prefixes()
    return _pairs(network.astype(np.uint64), length)


def _networks6(build: Build) -> NDArray[np.void]:
    if build.addressing.ipv6 is None:
        return _pairs(np.zeros(0, np.uint64), np.zeros(0, np.uint8))
    return _pairs(*build.addressing.ipv6_prefixes())


def _pairs(network: NDArray[np.uint64], length: NDArray[np.uint8]) -> NDArray[np.void]:
    pairs = np.empty(len(network), [("network", "u8"), ("length", "u1")])
    pairs["network"], pairs["length"] = network, length
    return pairs


def _same_networks(old: NDArray[np.void], new: NDArray[np.void]) -> NDArray[np.int64]:
    """int64[P']: for each of the new networks the number of the same old one, or NONE."""
    _, which = np.unique(np.concatenate((old, new)), return_inverse=True)
    number = np.full(len(which), NO_VERTEX, np.int64)
    number[which[: len(old)]] = np.arange(len(old))
    return number[which[len(old) :]]
