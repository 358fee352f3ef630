"""The MAC addresses of hosts and of the gateway, and checks that no two of them are equal.

All switches answer as one *gateway* with one MAC address. On OpenFlow switches some packets go to
other addresses derived from it: packets with a mark, and packets that carry the number of their
*intermediate*, which is the switch that they visit first (Valiant's routing).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from compilers.spec.balances import balance_named
from compilers.topology.labelled_graph import Topology
from compilers.wiring.vertex_nodes import node_indexes
from compilers.wiring.wiring_checks import PlacedNodes
from inventory.problems import Finding

if TYPE_CHECKING:  # pydantic is slow to import, and a build is read without it
    from compilers.spec.fabric_spec import FabricSpec
    from inventory.model import Inventory


MARK_IN_MAC = 1 << 23
"""The bit that differs between the gateway's MAC address and the one of marked packets."""
CARRIED_BITS = 16
"""How many of the lowest bits of a MAC address hold a packet's intermediate switch."""


def macs_of_inventory(site: PlacedNodes, spec: FabricSpec) -> dict[tuple[int, int], int]:
    """Return the MAC addresses that the inventory gives, by vertex and host."""
    return {
        (v, h): parse_mac(host.mac)
        for v, node in enumerate(site.nodes)
        for h, host in enumerate(node.hosts[: spec.hosts_per_node])
        if host.mac
    }


def host_macs(
    site: PlacedNodes, hosts: int, plane: int, listed_macs: Mapping[tuple[int, int], int]
) -> NDArray[np.uint64]:
    """Return the MAC address of each host, uint64[S, P]: the listed one, else a default."""
    macs = default_host_macs(len(site.nodes), hosts, plane)
    for vertex_and_host, mac in listed_macs.items():
        macs[vertex_and_host] = mac
    return macs


def mac_clash_findings(
    spec: FabricSpec, inventory: Inventory, topology: Topology, plane: int = 0
) -> Iterator[Finding]:
    """Yield a finding for each MAC address that two hosts have, or a host and the gateway.

    The addresses of marked packets, and of packets that carry an intermediate, count as the
    gateway's where the balance uses them.
    """
    site = PlacedNodes.of(inventory, node_indexes(topology.graph.order, inventory))
    listed_macs, gateway = macs_of_inventory(site, spec), parse_mac(spec.addressing.gateway_mac)
    # All addresses to which packets for the gateway go.
    forwarding = balance_named(spec.routing.balance).forwarding
    gateways = [gateway, gateway ^ MARK_IN_MAC] if forwarding.marks else [gateway]
    host_mac = host_macs(site, spec.hosts_per_node, plane, listed_macs)
    if forwarding.intermediates:
        # All addresses that differ from `carried_mac` in the last bits only carry an intermediate.
        is_carrier = host_mac >> np.uint64(CARRIED_BITS) == carried_mac(gateway) >> CARRIED_BITS
        gateways += host_mac[is_carrier].tolist()
    macs, uses = np.unique(host_mac, return_counts=True)
    shared = set(macs[uses > 1].tolist())
    for (v, h), mac in listed_macs.items():
        if mac in shared or mac in gateways:
            yield site.finding(
                v,
                ("hosts", h, "mac"),
                "a MAC address that no other host has, nor the gateway",
                format_mac(mac),
                "choose another: addresses 02:VV:VV:VV:HH:HH of vertex V belong to hosts without "
                "one",
            )
    for mac in gateways:
        if mac not in macs or mac in listed_macs.values():
            continue
        marked = "" if mac == gateway else f", as marked packets go to {format_mac(mac)}"
        yield Finding(
            ("addressing", "gateway_mac"),
            "a MAC address that no host has",
            f"{format_mac(gateway)}{marked}",
            "hosts have 02:VV:VV:VV:HH:HH, V their vertex; choose one outside these",
        )


def carried_mac(gateway: int) -> int:
    """Return the MAC address of packets that go by intermediate 0; by intermediate n, it is n more.

    An *intermediate* is the switch that a packet visits first (Valiant's routing).
    """
    return (gateway ^ MARK_IN_MAC) >> CARRIED_BITS << CARRIED_BITS


def default_host_macs(switches: int, hosts: int, plane: int = 0) -> NDArray[np.uint64]:
    """Return default MAC addresses of hosts, uint64[S, P].

    The first byte is 02, in planes 2, 3, … 06, 0a, … (locally administered). Then come 24 bits of
    the vertex, and 16 of the host, from 1.

    >>> format_mac(int(default_host_macs(8, 2)[7, 1]))
    '02:00:00:07:00:02'
    """
    vertex = np.arange(switches, dtype=np.uint64)[:, None] << np.uint64(16)
    host = np.arange(1, hosts + 1, dtype=np.uint64)
    return (np.uint64(0x02 + 4 * max(plane - 1, 0) << 40) + vertex + host).astype(
        np.uint64, copy=False
    )


def format_mac(mac: int) -> str:
    """Return a number of 48 bits as text such as `02:50:46:00:00:01`."""
    return mac.to_bytes(6, "big").hex(":")


def parse_mac(text: str) -> int:
    """Return the number of 48 bits for a text such as `02:50:46:00:00:01`."""
    return int(text.replace(":", ""), 16)
