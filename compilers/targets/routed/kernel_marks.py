"""Marked spread on Linux kernels: a second address of each switch on its links, and tables by port.

A marked packet is sent to another address of the neighbour, on a macvlan device over its port. That
device has a MAC address of its own, so the packet comes in there, and nothing of it has changed but
the MAC address that every router changes. The rule of the device leads to a table that spreads the
fabric's addresses over the links onward (`compilers.routing.marked_spread`), and throws those of
the switch and of its neighbours on to the tables that all packets in transit meet.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from ipaddress import IPv4Address, IPv6Address

import numpy as np

from compilers.routing.marked_spread import onward_ports
from compilers.tables.build import Build
from compilers.targets.routed.static_routes import LINK_LOCAL, RoutedFabric
from compilers.wiring.addressing import MARK_IN_MAC, format_mac
from inventory.problems import InputError

DEVICE = "marked"
"""The device for what comes in marked on port p is called so, with p behind."""
SPREAD = 100_000
"""SPREAD + p: the table for what comes in marked on port p."""
MARK_IN_IPV6 = 1 << 32
IPV4_MARKS = 0xA9FE0000
"""169.254.0.0, the addresses for marked packets of FRR that takes no IPv6 next hop for IPv4."""
FIRST_MAC = 0x025046000001 | MARK_IN_MAC
SEED = 0x50460001


@dataclass(frozen=True, slots=True)
class MarkedPort:
    """A port where packets come in marked: its interface, the device over it, and its table.

    onward: the ports over which the table spreads them.
    """

    port: int
    interface: str
    device: str
    table: int
    onward: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class KernelMarks:
    """What a switch needs for marked packets.

    mac, ipv4, ipv6: of its devices, the same on all; ipv4 is "" where IPv6 next hops serve. kept:
    the prefixes that its tables throw on.
    """

    mac: str
    ipv4: str
    ipv6: str
    ports: tuple[MarkedPort, ...]
    kept: tuple[str, ...]


def marked_address(vertex: int, family: int) -> str:
    """The address of a switch for marked packets, as a next hop of family 4 or 6."""
    if family == 4:
        return str(IPv4Address(IPV4_MARKS + vertex + 1))
    return str(IPv6Address(LINK_LOCAL + MARK_IN_IPV6 + vertex + 1))


def kernel_marks(routed: RoutedFabric, vertex: int, ipv4: bool = False) -> KernelMarks | None:
    """What a switch needs for marked packets; None where none is marked.

    Args:
        routed: the routers of the build.
        vertex: of the switch.
        ipv4: next hops of IPv4 routes are IPv4 addresses.
    """
    build = routed.build
    if not build.forwarding.marks:
        return None
    w = build.wiring
    near = np.unique(np.append(w.far[vertex][w.far[vertex] >= 0], vertex))
    near = near[build.topology.endpoints[near] > 0]
    return KernelMarks(
        mac=format_mac(FIRST_MAC + vertex),
        ipv4=marked_address(vertex, 4) if ipv4 else "",
        ipv6=marked_address(vertex, 6),
        ports=tuple(_ports(build, vertex)),
        kept=tuple(texts[prefix] for texts in routed.prefixes for prefix in near.tolist()),
    )


def hash_seed(build: Build, vertex: int) -> int:
    """The seed of a switch's hash where it shares packets that another has shared; 0: any.

    Were it that of the switch before, all flows that come in over a link would leave by the same.
    """
    return SEED + vertex if build.forwarding.marks or build.forwarding.every_hop else 0


def _ports(build: Build, vertex: int) -> Iterator[MarkedPort]:
    w = build.wiring
    onward = onward_ports(w, vertex).tolist()
    for port, far, ports in zip(w.port[vertex].tolist(), w.far[vertex], onward, strict=True):
        if far >= 0:
            name, members = w.port_name(vertex, port), tuple(p for p in ports if p)
            yield MarkedPort(port, name, f"{DEVICE}{port}", SPREAD + port, members)


def require_devices(build: Build, target: str) -> None:
    """Pass when no port has the name of a device for marked packets.

    Raises:
        InputError: one has.
    """
    ports = range(int(build.wiring.port.max(initial=0)) + 1) if build.forwarding.marks else ()
    taken = {name for of_type in build.wiring.port_names for name in of_type}
    if names := sorted(taken & {f"{DEVICE}{port}" for port in ports}):
        raise InputError.of(
            key="node_types.ports.name",
            required=f"no port with the name of a device that target {target} makes for marked "
            f"packets: {DEVICE}1, {DEVICE}2, …",
            given=", ".join(names),
            todo="rename it",
        )
