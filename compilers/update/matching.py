"""Match the switches, networks and hosts of two builds of a fabric, for moves and comparisons.

A comparison (`compare`), a move (`difference`) and a report on losses (`loss`) begin with it.

Two builds may number their vertices differently. A switch is the same if it has the same datapath
id; its vertex, name and links may differ. A network is the same if it has the same address and
length: vertices own the blocks of the address pool in order, so a switch that changes its vertex
changes its addresses. A host is the same if nothing about it has changed.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from compilers.spec.address_blocks import FIRST_HOST
from compilers.tables.build import Build

NO_NUMBER = -1
"""In place of a vertex, a node, a prefix number or a row: there is none."""


def find_numbers(
    ascending: NDArray[np.integer], numbers: NDArray[np.integer]
) -> tuple[NDArray[np.int64], NDArray[np.bool_]]:
    """Look up numbers in a list.

    >>> find_numbers(np.array([3, 5]), np.array([5, 4]))
    (array([1, 1]), array([ True, False]))

    Args:
        ascending: int[n], the list.
        numbers: int[m], the numbers to look up.

    Returns:
        int64[m], the index of each number in the list, and bool[m], whether it is in the list. The
        index of a number that is not in it means nothing.
    """
    if not len(ascending):
        return np.zeros(len(numbers), np.int64), np.zeros(len(numbers), np.bool_)
    index = np.minimum(np.searchsorted(ascending, numbers), len(ascending) - 1)
    return index, ascending[index] == numbers


@dataclass(frozen=True, slots=True, eq=False)
class SwitchMatching:
    """The M switches that either build has, in the order of their datapath ids.

    A *node* is the number of a switch in this order, from 0 to M - 1.
    """

    datapath_id: NDArray[np.uint64]
    """uint64[M], the OpenFlow datapath id of each switch."""
    old_vertex: NDArray[np.int64]
    """int64[M], its vertex in the old build; NO_NUMBER if that has no such switch."""
    new_vertex: NDArray[np.int64]
    """int64[M], its vertex in the new build; NO_NUMBER if that has no such switch."""
    node_of_old: NDArray[np.int64]
    """int64[S], by vertex of the old build the node; NO_NUMBER for a vertex that is not
    installed."""
    node_of_new: NDArray[np.int64]
    """int64[S'], by vertex of the new build the node; NO_NUMBER for a vertex that is not
    installed."""
    old_prefix: NDArray[np.int64]
    """int64[P'], by IPv4 prefix number of the new build the number of the same network in the old
    build; NO_NUMBER if that has no such network."""
    old_prefix6: NDArray[np.int64]
    """int64[P'], the same for IPv6: by prefix number of the new build the number in the old one."""

    @classmethod
    def of(cls, old: Build, new: Build) -> SwitchMatching:
        """Match two builds."""
        ids = np.union1d(*(_installed_vertices(build)[1] for build in (old, new)))
        old_vertex, node_of_old = _vertices_and_nodes(old, ids)
        new_vertex, node_of_new = _vertices_and_nodes(new, ids)
        return cls(
            datapath_id=ids,
            old_vertex=old_vertex,
            new_vertex=new_vertex,
            node_of_old=node_of_old,
            node_of_new=node_of_new,
            old_prefix=_same_networks(_networks4(old), _networks4(new)),
            old_prefix6=_same_networks(_networks6(old), _networks6(new)),
        )

    @property
    def is_in_both(self) -> NDArray[np.bool_]:
        """bool[M]: the switches that both builds have."""
        stays: NDArray[np.bool_] = (self.old_vertex >= 0) & (self.new_vertex >= 0)
        return stays

    @property
    def kept_nodes(self) -> list[int]:
        """The nodes that both builds have, ascending."""
        kept: list[int] = np.flatnonzero(self.is_in_both).tolist()
        return kept

    @property
    def vertex_pairs(self) -> list[tuple[int, int]]:
        """The old and the new vertex of each of the nodes `kept_nodes`."""
        return [(int(self.old_vertex[n]), int(self.new_vertex[n])) for n in self.kept_nodes]

    def as_other_switches(self, nodes: Sequence[int]) -> SwitchMatching:
        """A matching in which some nodes are two switches: one that goes, and one that comes.

        A switch may have got the datapath id of another one that it replaces. The switches that
        come get further nodes, from M on.

        Args:
            nodes: some of those that both builds have.
        """
        if not nodes:
            return self
        moved_vertices = self.new_vertex[nodes]
        new_vertex, node_of_new = self.new_vertex.copy(), self.node_of_new.copy()
        new_vertex[nodes] = NO_NUMBER
        node_of_new[moved_vertices] = len(new_vertex) + np.arange(len(nodes))
        return replace(
            self,
            datapath_id=np.append(self.datapath_id, self.datapath_id[nodes]),
            old_vertex=np.append(self.old_vertex, np.full(len(nodes), NO_NUMBER)),
            new_vertex=np.append(new_vertex, moved_vertices),
            node_of_new=node_of_new,
        )

    def destinations(self, old: Build, new: Build) -> NDArray[np.int64]:
        """The switches with hosts that have the same network in both builds.

        Returns:
            int64[D], their vertices in the new build.
        """
        vertex = np.flatnonzero(new.topology.endpoints & (self.node_of_new >= 0))
        # The first prefix numbers of a build are those of its vertices.
        old_vertex = self.old_prefix[vertex]
        is_in_old = (old_vertex >= 0) & (old_vertex < old.tables.switches)
        vertex, old_vertex = vertex[is_in_old], old_vertex[is_in_old]
        has_hosts = old.topology.endpoints[old_vertex]
        is_same_switch = self.node_of_old[old_vertex] == self.node_of_new[vertex]
        destinations: NDArray[np.int64] = vertex[has_hosts & is_same_switch]
        return destinations


@dataclass(frozen=True, slots=True, eq=False)
class HostTable:
    """The n hosts of a build that have a port, in one row each."""

    vertex: NDArray[np.int64]
    """int64[n], the switch of each host."""
    host: NDArray[np.int64]
    """int64[n], the number of each host at its switch."""
    address: NDArray[np.uint64]
    """uint64[n], the IPv4 address of each host."""
    facts: NDArray[np.uint64]
    """uint64[n, 7], what has to stay the same for the traffic of a host to go on: the datapath id
    of its switch, its port and its MAC address; the IPv6 block of its switch; and the MAC address
    of the gateway, the length of IPv4 blocks, and whether there is IPv6."""

    @classmethod
    def of(cls, build: Build) -> HostTable:
        """The hosts of a build."""
        plan, wiring = build.addressing, build.wiring
        vertex, host = np.nonzero(wiring.host_port > 0)
        address = plan.ipv4_blocks()[vertex].astype(np.uint64) + np.uint64(FIRST_HOST)
        ipv6 = plan.ipv6_blocks()[vertex] if plan.ipv6 else np.zeros(len(vertex), np.uint64)
        same_for_all = [plan.gateway_mac, plan.ipv4_length, int(plan.ipv6 is not None)]
        facts = (
            wiring.datapath_id[vertex],
            wiring.host_port[vertex, host].astype(np.uint64),
            plan.host_mac[vertex, host],
            ipv6,
            *(np.full(len(vertex), value, np.uint64) for value in same_for_all),
        )
        return cls(vertex, host, address + host.astype(np.uint64), np.column_stack(facts))

    @property
    def identity(self) -> NDArray[np.uint64]:
        """uint64[n, 3], what is the host's own: datapath id, port and MAC address."""
        return self.facts[:, :3]


def kept_hosts(old: HostTable, new: HostTable) -> NDArray[np.int64]:
    """For each host of the old build its row in the new table; NO_NUMBER if it is not kept.

    A host is kept if the new build has its address with the same facts.

    Returns:
        int64[n].
    """
    if not len(new.address):
        return np.full(len(old.address), NO_NUMBER)
    # The row of the same address in the new table; any row if there is no such address.
    order = np.argsort(new.address)
    position = np.searchsorted(new.address, old.address, sorter=order)
    row = order[np.minimum(position, len(order) - 1)]
    same = (new.address[row] == old.address) & (new.facts[row] == old.facts).all(axis=1)
    return np.where(same, row, NO_NUMBER)


def _vertices_and_nodes(
    build: Build, ids: NDArray[np.uint64]
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """The vertex of each of the M nodes in a build, and the node of each of its S vertices.

    Args:
        build: the build.
        ids: uint64[M], the datapath ids of the nodes, ascending.

    Returns:
        int64[M] and int64[S]; NO_NUMBER for none.
    """
    installed, installed_ids = _installed_vertices(build)
    node = np.searchsorted(ids, installed_ids)
    vertex_of_node = np.full(len(ids), NO_NUMBER, np.int64)
    vertex_of_node[node] = installed
    node_of_vertex = np.full(build.tables.switches, NO_NUMBER, np.int64)
    node_of_vertex[installed] = node
    return vertex_of_node, node_of_vertex


def _installed_vertices(build: Build) -> tuple[NDArray[np.int64], NDArray[np.uint64]]:
    """The vertices that are installed, and their datapath ids."""
    vertex = np.flatnonzero(build.topology.present)
    return vertex, build.wiring.datapath_id[vertex].astype(np.uint64)


def _networks4(build: Build) -> NDArray[np.void]:
    """The IPv4 networks of a build, by prefix number."""
    network, length = build.addressing.ipv4_prefixes()
    return _network_records(network.astype(np.uint64), length)


def _networks6(build: Build) -> NDArray[np.void]:
    """The IPv6 networks of a build, by prefix number."""
    if build.addressing.ipv6 is None:
        return _network_records(np.zeros(0, np.uint64), np.zeros(0, np.uint8))
    return _network_records(*build.addressing.ipv6_prefixes())


def _network_records(network: NDArray[np.uint64], length: NDArray[np.uint8]) -> NDArray[np.void]:
    """Networks as records that compare by address and length."""
    records = np.empty(len(network), [("network", "u8"), ("length", "u1")])
    records["network"], records["length"] = network, length
    return records


def _same_networks(old: NDArray[np.void], new: NDArray[np.void]) -> NDArray[np.int64]:
    """int64[P'], for each new network the number of the same old network, or NO_NUMBER."""
    # Equal networks get the same code, whichever build they are of.
    _, code = np.unique(np.concatenate((old, new)), return_inverse=True)
    old_number_of_code = np.full(len(code), NO_NUMBER, np.int64)
    old_number_of_code[code[: len(old)]] = np.arange(len(old))
    return old_number_of_code[code[len(old) :]]
