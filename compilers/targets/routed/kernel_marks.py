"""Marked packets on Linux kernels: a macvlan device on each port, with a routing table of its own.

Some balances *mark* a packet from a host that leaves by an alternate, so that the next switch
spreads it over its other links (`compilers.routing.marked_spread`). On a kernel, a switch marks a
packet by sending it to a second address of the neighbour, on a macvlan device over the neighbour's
port. The device has a MAC address of its own, so the packet comes in there, with nothing changed
but the MAC address that every router changes. The policy rule of the device leads to a table that
spreads packets to the fabric's addresses over the other links (*onward*). For prefixes of the
switch's own hosts and of its neighbours the table has `throw` routes: these packets are looked up
as all others in transit. Targets linux and frr render these devices and tables.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from ipaddress import IPv4Address, IPv6Address
from itertools import chain

import numpy as np

from compilers.routing.marked_spread import onward_ports
from compilers.tables.build import Build
from compilers.targets.routed.static_routes import LINK_LOCAL, BuildRouters
from compilers.wiring.mac_addresses import MARK_IN_MAC, format_mac
from inventory.problems import InputError

IPV4, IPV6 = 4, 6
"""The IP versions."""
DEVICE_PREFIX = "marked"
"""The device over port 7 is called `marked7`."""
SPREADING_TABLES = 100_000
"""SPREADING_TABLES + p is the number of the table for marked packets that come in on port p."""
MARK_IN_IPV6 = 1 << 32
"""The bit that is set in link-local addresses for marked packets, above those of the vertex."""
IPV4_MARKS = 0xA9FE0000
"""169.254.0.0: addresses for marked packets where FRR takes no IPv6 next hop for IPv4 routes."""
FIRST_MAC = 0x025046000001 | MARK_IN_MAC
"""The MAC address of the devices of vertex 0: a local one, with "PF" and a number from 1."""
FIRST_SEED = 0x50460001
"""The seed of the hash of vertex 0: "PF" and a number from 1, as 0 stands for any seed."""


@dataclass(frozen=True, slots=True)
class MarkedPort:
    """A port on which marked packets come in."""

    port: int
    """The number of the port."""
    interface: str
    """The name of the port."""
    device: str
    """The macvlan device over the port."""
    table: int
    """The routing table for packets that come in on the device."""
    onward: tuple[int, ...]
    """The ports over which the table spreads these packets."""


@dataclass(frozen=True, slots=True)
class KernelMarks:
    """The configuration of a switch for marked packets."""

    mac: str
    """The MAC address of its devices, the same on all."""
    ipv4: str
    """The IPv4 address of its devices; "" where IPv4 routes have IPv6 next hops."""
    ipv6: str
    """The link-local address of its devices."""
    ports: tuple[MarkedPort, ...]
    """The ports on which marked packets come in."""
    kept: tuple[str, ...]
    """The prefixes of `throw` routes in their tables."""


def marked_address(vertex: int, ip_version: int) -> str:
    """The address of a switch for marked packets, as a next hop of an IP version (IPV4 or IPV6)."""
    if ip_version == IPV4:
        return str(IPv4Address(IPV4_MARKS + vertex + 1))
    return str(IPv6Address(LINK_LOCAL + MARK_IN_IPV6 + vertex + 1))


def kernel_marks(
    routers: BuildRouters, vertex: int, has_ipv4_hops: bool = False
) -> KernelMarks | None:
    """The configuration of a switch for marked packets; None where the balance marks none.

    Args:
        routers: the routers of the build.
        vertex: the vertex of the switch.
        has_ipv4_hops: whether next hops of IPv4 routes are IPv4 addresses.
    """
    build = routers.build
    if not build.forwarding.marks:
        return None
    # The switch and its neighbours, as far as they have hosts. The number of a switch's prefix is
    # the switch's vertex.
    far = build.wiring.far[vertex]
    vertices = np.unique(np.append(far[far >= 0], vertex))
    with_hosts = vertices[build.topology.endpoints[vertices] > 0].tolist()
    return KernelMarks(
        mac=format_mac(FIRST_MAC + vertex),
        ipv4=marked_address(vertex, IPV4) if has_ipv4_hops else "",
        ipv6=marked_address(vertex, IPV6),
        ports=tuple(_ports(build, vertex)),
        kept=tuple(prefixes[number] for prefixes in routers.prefixes for number in with_hosts),
    )


def hash_seed(build: Build, vertex: int) -> int:
    """The seed of a switch's hash; 0, for any seed, where no packet is hashed by two switches.

    If two switches had the same seed, all flows that the first sends over one link would leave the
    second by one port.
    """
    return FIRST_SEED + vertex if build.forwarding.marks or build.forwarding.every_hop else 0


def _ports(build: Build, vertex: int) -> Iterator[MarkedPort]:
    """The ports of a switch on which marked packets come in."""
    wiring = build.wiring
    onward = onward_ports(wiring, vertex).tolist()  # a row for each link; 0 for no port
    ports = wiring.port[vertex].tolist()
    for port, far, onward_of_port in zip(ports, wiring.far[vertex], onward, strict=True):
        if far >= 0:
            yield MarkedPort(
                port=port,
                interface=wiring.port_name(vertex, port),
                device=f"{DEVICE_PREFIX}{port}",
                table=SPREADING_TABLES + port,
                onward=tuple(number for number in onward_of_port if number),
            )


def require_devices(build: Build, target: str) -> None:
    """Check that no port has the name of a device for marked packets.

    Raises:
        InputError: a port has such a name.
    """
    if not build.forwarding.marks:
        return
    last_port = int(build.wiring.port.max(initial=0))
    devices = {f"{DEVICE_PREFIX}{port}" for port in range(last_port + 1)}
    names = sorted(devices.intersection(chain.from_iterable(build.wiring.port_names)))
    if names:
        raise InputError.of(
            key="node_types.ports.name",
            required=f"no port with the name of a device that target {target} makes for marked "
            f"packets: {DEVICE_PREFIX}1, {DEVICE_PREFIX}2, …",
            given=", ".join(names),
            todo="rename it",
        )
