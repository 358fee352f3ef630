"""Facts that a switch's files have to state besides forwarding, from the build alone.

They are names, ports, management, time servers and logs, each by its kind (`FACTS`);
`expected_claims` lists them among all claims. A fact whose value is 0 or "" is not expected: the
inventory does not say it, so the files do not state it either.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from typing import NamedTuple

from compilers.spec.allocations import ASN
from compilers.tables.build import Build
from compilers.wiring.node_type_facts import CageBlock
from inventory.asn_range import PRIVATE_AS

Value = tuple[str | int, ...]
"""The values of a claim, such as a port and its MTU."""
FactFunction = Callable[[Build, int], Iterator[Value]]
"""A function that yields the facts of one kind that the switch at a vertex has to state."""
LAST_NUMBER = re.compile(r"[^0-9]*[0-9]+$")
"""The last number of a port's name with its separator, such as `/2` of `Ethernet1/2`."""
NRZ_SPEED = 25
"""The fastest lane in Gb/s with NRZ signals, whose Reed-Solomon code is RS(528); faster ones are
PAM4, with RS(544) (IEEE 802.3 clauses 91 and 134)."""
MEGABITS = 1000
"""Mb/s in a Gb/s."""
EOS_LANES = 50
"""The speed in Gb/s from which EOS states the number of lanes."""
DEFAULT_JUMBO_MTU = 9216
"""The default of `system jumbomtu` on NX-OS, which its configuration does not show."""
DEFAULT_MANAGEMENT_PORTS = {"Management1", "mgmt0", "re0:mgmt-0", "eth0"}
"""The ports for management that EOS, NX-OS, Junos and other systems have by default."""
LONGEST_NAME = 63
"""The most characters of a host name (RFC 1123)."""


def port_text(name: str) -> str:
    """The name of a port of management, "" for the one that its system has by default."""
    return "" if name in DEFAULT_MANAGEMENT_PORTS else name


class UsedPort(NamedTuple):
    """A port in use."""

    number: int
    """The number of the port, from 1."""
    name: str
    """The name of the port on its system."""
    block: CageBlock
    """The block of cages that the port is in: speed, breakout, MTU, error correction."""
    lanes: str
    """The lanes of the port by SONiC's platform file; "" on other systems."""
    cage: str
    """The cage of the port by SONiC's platform file; "" on other systems."""
    mode: str
    """The breakout mode of the cage by SONiC's platform file; "" on other systems."""

    @property
    def is_breakout(self) -> bool:
        """Whether it is one of several ports of a cage."""
        return self.block.breakout > 1

    @property
    def fec_code(self) -> str:
        """Its forward error correction by the name of the code; "" where none is stated."""
        lane_speed = self.block.speed / max(self.block.lanes, 1)
        codes = {
            "rs": "rs-544" if lane_speed > NRZ_SPEED else "rs-528",
            "fc": "base-r",
            "off": "disabled",
        }
        return codes.get(self.block.fec, "")


def _ports(build: Build, vertex: int) -> Iterator[UsedPort]:
    """Yield the ports of a switch that have a link or a host."""
    wiring = build.wiring
    if build.hardware is None:
        return
    node_type = int(wiring.node_type[vertex])
    hardware = build.hardware.types[node_type]
    block_of_port = [
        block
        for block in hardware.blocks
        for _ in range(block.modules * block.count * block.breakout)
    ]
    links = [port for port, _, _ in wiring.links_of(vertex)]
    for port in (*links, *filter(None, wiring.host_port[vertex].tolist())):
        lanes = cage = mode = ""
        if hardware.platform:
            _, lanes, cage, mode, _ = hardware.platform[port - 1]
        name = wiring.port_names[node_type][port - 1]
        yield UsedPort(
            port, name=name, block=block_of_port[port - 1], lanes=lanes, cage=cage, mode=mode
        )


def _for_each_port(fact: Callable[[UsedPort], Value]) -> FactFunction:
    """The facts of one kind about ports: for each port in use, unless its value has a 0 or a "".

    Args:
        fact: gives the value for a port.
    """

    def facts_of_switch(build: Build, vertex: int) -> Iterator[Value]:
        """Yield the facts about the ports of one switch."""
        yield from filter(all, map(fact, _ports(build, vertex)))

    return facts_of_switch


def _cage(port: UsedPort) -> str:
    """The name of the cage that a port is a part of; "" for a port with a cage of its own."""
    return LAST_NUMBER.sub("", port.name) if port.is_breakout else ""


def _sonic_mode(port: UsedPort) -> str:
    """The breakout mode of SONiC, where the inventory says the speed."""
    return port.mode if port.block.speed else ""


def _cage_with_speed(port: UsedPort) -> str:
    """The cage, where the inventory says the speed of its parts."""
    return _cage(port) if port.block.speed else ""


def _speed_of_part(port: UsedPort) -> int:
    """The speed of a port that is a part of a cage; 0 for other ports."""
    return port.block.speed if port.is_breakout else 0


def _eos_speed(port: UsedPort) -> str:
    """The speed of a part of a cage as EOS writes it, such as `100g-2`; "" for other ports."""
    speed, lanes = port.block.speed, port.block.lanes
    if not (port.is_breakout and speed):
        return ""
    return f"{speed}g-{lanes}" if speed >= EOS_LANES else f"{speed}g"


def _name(build: Build, vertex: int) -> str:
    """The host name of a router: two or more letters, digits and hyphens, a letter first."""
    text = re.sub("[^A-Za-z0-9-]", "-", build.wiring.names[vertex]).rstrip("-")
    name = text if len(text) > 1 and text[0].isalpha() else f"sw-{text}"
    return name[:LONGEST_NAME].rstrip("-")


def _hostname(build: Build, vertex: int) -> Iterator[Value]:
    """Yield the host name of a switch."""
    yield (_name(build, vertex),)


def _descriptions(build: Build, vertex: int) -> Iterator[Value]:
    """Yield each port in use with the description of its far end."""
    wiring = build.wiring
    for port, far, far_port in wiring.links_of(vertex):
        yield port, f"{_name(build, far)} {wiring.port_name(far, far_port)}"
    first = vertex * wiring.host_port.shape[1]
    for number, port in enumerate(wiring.host_port[vertex].tolist(), first):
        if port:
            yield port, f"host {wiring.host_names[number]}"


def _ports_in_use(build: Build, vertex: int) -> Iterator[Value]:
    """Yield the numbers of the ports in use, as values of a fact."""
    wiring = build.wiring
    yield from ((port,) for port, _, _ in wiring.links_of(vertex))
    yield from ((port,) for port in wiring.host_port[vertex].tolist() if port)


def _shared_mtu(build: Build, vertex: int) -> Iterator[Value]:
    """The MTU of the interface that several hosts share, the smallest of their ports'."""
    if size := min(_shared_sizes(build, vertex), default=0):
        yield (size,)


def _jumbo_mtu(build: Build, vertex: int) -> Iterator[Value]:
    """The MTU that switchports of NX-OS may have besides 1500, unless it is the default."""
    size = max(_shared_sizes(build, vertex), default=0)
    if size not in (0, DEFAULT_JUMBO_MTU):
        yield (size,)


def _shared_sizes(build: Build, vertex: int) -> list[int]:
    """The MTU of each port of several hosts; [] with one host or none."""
    hosts = {port for port in build.wiring.host_port[vertex].tolist() if port}
    sizes = [port.block.mtu for port in _ports(build, vertex) if port.number in hosts]
    return sizes if len(sizes) > 1 else []


def _management(build: Build, vertex: int) -> Iterator[Value]:
    """Yield the port and the address of management."""
    network, address = build.base.get("management"), build.wiring.management[vertex]
    if network and address:
        yield port_text(network.get("interface", "")), f"{address}/{network['length']}"


def _gateway(build: Build, vertex: int) -> Iterator[Value]:
    """Yield the gateway of the management network."""
    network = build.base.get("management", {})
    if build.wiring.management[vertex] and network.get("gateway"):
        yield (network["gateway"],)


def _as_number(build: Build, vertex: int) -> int:
    """The AS number of a switch.

    It is that of its row in the allocations, else the inventory's, else the first one plus the
    vertex.
    """
    in_inventory: int | None = build.base.get("node_asn", {}).get(build.wiring.names[vertex])
    allocated = build.allocations.of(ASN).used.get(str(vertex))
    return allocated or in_inventory or build.base.get("asn", PRIVATE_AS) + vertex


def _sessions(build: Build, vertex: int) -> Iterator[Value]:
    """Yield the port, the address family and the neighbour's AS of each BGP session."""
    families = ("ipv4", "ipv6") if build.addressing.ipv6 else ("ipv4",)
    for port, far, _ in build.wiring.links_of(vertex):
        yield from ((port, family, f"AS {_as_number(build, far)}") for family in families)


def _servers(service: str) -> FactFunction:
    """The servers of a service, a key of `Build.base`."""
    return lambda build, _: ((server,) for server in build.base.get(service, ()))


FACTS: dict[str, FactFunction] = {
    "hostname": _hostname,
    "node": lambda build, vertex: iter([(build.wiring.names[vertex],)]),
    "description": _descriptions,
    "port": _ports_in_use,
    "mtu": _for_each_port(lambda port: (port.number, port.block.mtu)),
    "mtu of the hosts": _shared_mtu,
    "jumbo mtu": _jumbo_mtu,
    "fec": _for_each_port(lambda port: (port.number, port.block.fec)),
    "code": _for_each_port(lambda port: (port.number, port.fec_code)),
    "speed": _for_each_port(lambda port: (port.number, port.block.speed * MEGABITS)),
    "speed of a part": _for_each_port(lambda port: (port.number, _speed_of_part(port))),
    "speed and lanes": _for_each_port(lambda port: (port.number, _eos_speed(port))),
    "lanes": _for_each_port(lambda port: (port.number, port.lanes)),
    "mode": _for_each_port(lambda port: (port.cage, _sonic_mode(port))),
    "cage": _for_each_port(lambda port: (_cage(port), port.block.breakout, port.block.speed)),
    "parts": _for_each_port(lambda port: (_cage_with_speed(port), port.block.breakout)),
    "management": _management,
    "gateway of management": _gateway,
    "ntp server": _servers("ntp"),
    "syslog server": _servers("syslog"),
    "syslog by management": _servers("syslog"),
    "universal id": lambda _, vertex: iter([(vertex + 1,)]),
    "AS number": lambda build, vertex: iter([(_as_number(build, vertex),)]),
    "session": _sessions,
}
"""The facts of each kind. Their values are:

- hostname: the node's name in the letters that routers take; node: the name itself
- description: port, the node or host at the other end
- port: a port in use
- mtu: port, bytes of an IP packet; mtu of the hosts: that of the interface that they share; jumbo
  mtu: that of their ports on NX-OS
- fec: port, `rs`, `fc` or `off`; code: port, the same by the name of the code
- speed: port, Mb/s; speed of a part: port, Gb/s, for parts of cages; speed and lanes: port, the
  speed as EOS writes it, for parts of cages
- lanes: port, the numbers of its lanes
- mode: a cage of SONiC, how it is broken out
- cage: cage, number of parts, Gb/s of each; parts: cage, number of parts
- management: port, address with its length; gateway of management: address
- ntp server, syslog server, syslog by management: address
- universal id: a number of the switch in the hash of its VRFs for marked packets
- AS number: of the switch
- session: port, address family, the neighbour's AS
"""
