"""Expected facts of a switch besides forwarding: its name, its ports, management, time and logs.

What the inventory does not say of a port no text may say.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from typing import NamedTuple

from compilers.tables.build import Build
from compilers.wiring.hardware import CageBlock
from inventory.asn_range import PRIVATE_AS

Value = tuple[str | int, ...]
Facts = Callable[[Build, int], Iterator[Value]]
LAST_NUMBER = re.compile(r"[^0-9]*[0-9]+$")
NRZ = 25
"""Gb/s of a lane up to which the Reed-Solomon code is RS(528)."""
MEGABITS = 1000
EOS_LANES = 50
"""Gb/s from which EOS is given the lanes of a speed."""
USUAL = {"Management1", "mgmt0", "re0:mgmt-0", "eth0"}
"""The ports that systems have for management by default."""


def port_text(name: str) -> str:
    """A port of management, "" for the one that its system has by default."""
    return "" if name in USUAL else name


class UsedPort(NamedTuple):
    """A port in use; lanes, cage, mode: by SONiC's platform file."""

    number: int
    name: str
    block: CageBlock
    lanes: str
    cage: str
    mode: str

    @property
    def split(self) -> bool:
        """Whether it is a part of a cage."""
        return self.block.breakout > 1

    @property
    def coded(self) -> str:
        """Its error correction by the name of the code."""
        lane = self.block.speed / max(self.block.lanes, 1)
        codes = {"rs": "rs-544" if lane > NRZ else "rs-528", "fc": "base-r", "off": "disabled"}
        return codes.get(self.block.fec, "")


def _ports(build: Build, vertex: int) -> Iterator[UsedPort]:
    w = build.wiring
    if build.hardware is None:
        return
    kind = int(w.node_type[vertex])
    facts = build.hardware.types[kind]
    blocks = [b for b in facts.blocks for _ in range(b.modules * b.count * b.breakout)]
    links = [port for port, _, _ in w.ends(vertex)]
    for port in (*links, *filter(None, w.host_port[vertex].tolist())):
        more = facts.platform[port - 1][1:4] if facts.platform else ("", "", "")
        yield UsedPort(port, w.port_names[kind][port - 1], blocks[port - 1], *more)


def _of_ports(fact: Callable[[UsedPort], Value]) -> Facts:
    """A fact of the ports of which it is known, that is, has no 0 and no ""."""

    def of_switch(build: Build, vertex: int) -> Iterator[Value]:
        yield from filter(all, map(fact, _ports(build, vertex)))

    return of_switch


def _cage(port: UsedPort) -> str:
    """The name of a part without its last number."""
    return LAST_NUMBER.sub("", port.name) * port.split


def _eos_speed(port: UsedPort) -> str:
    speed, lanes = port.block.speed, port.block.lanes
    return (f"{speed}g" + f"-{lanes}" * (speed >= EOS_LANES)) * bool(port.split and speed)


def _name(build: Build, vertex: int) -> str:
    """The host name of a router: letters, digits and -, two or more, a letter first."""
    text = re.sub("[^A-Za-z0-9-]", "-", build.wiring.names[vertex]).rstrip("-")
    known = text if len(text) > 1 and text[0].isalpha() else f"sw-{text}"
    return known[:63].rstrip("-")


def _hostname(build: Build, vertex: int) -> Iterator[Value]:
    yield (_name(build, vertex),)


def _descriptions(build: Build, vertex: int) -> Iterator[Value]:
    w = build.wiring
    columns = (column[vertex].tolist() for column in (w.port, w.far, w.far_port))
    for port, far, far_port in zip(*columns, strict=True):
        if far >= 0:
            yield port, f"{_name(build, far)} {w.port_name(far, far_port)}"
    first = vertex * w.host_port.shape[1]
    for number, port in enumerate(w.host_port[vertex].tolist(), first):
        if port:
            yield port, f"host {w.host_names[number]}"


def _used(build: Build, vertex: int) -> Iterator[Value]:
    w = build.wiring
    yield from ((port,) for port, _, _ in w.ends(vertex))
    yield from ((port,) for port in w.host_port[vertex].tolist() if port)


def _shared_mtu(build: Build, vertex: int) -> Iterator[Value]:
    """That of the interface of several hosts."""
    hosts = {port for port in build.wiring.host_port[vertex].tolist() if port}
    sizes = [port.block.mtu for port in _ports(build, vertex) if port.number in hosts]
    if len(sizes) > 1 and min(sizes):
        yield (min(sizes),)


def _management(build: Build, vertex: int) -> Iterator[Value]:
    said, own = build.base.get("management"), build.wiring.management[vertex]
    if said and own:
        yield port_text(said.get("interface", "")), f"{own}/{said['length']}"


def _gateway(build: Build, vertex: int) -> Iterator[Value]:
    said = build.base.get("management", {})
    if build.wiring.management[vertex] and said.get("gateway"):
        yield (said["gateway"],)


def _number(build: Build, vertex: int) -> int:
    """The AS number: the node's own, or that of vertex 0 and as many more."""
    own: int | None = build.base.get("node_asn", {}).get(build.wiring.names[vertex])
    return own or build.base.get("asn", PRIVATE_AS) + vertex


def _sessions(build: Build, vertex: int) -> Iterator[Value]:
    families = ("ipv4", "ipv6") if build.addressing.ipv6 else ("ipv4",)
    for port, far, _ in build.wiring.ends(vertex):
        yield from ((port, family, f"AS {_number(build, far)}") for family in families)


def _servers(service: str) -> Facts:
    return lambda build, _: ((server,) for server in build.base.get(service, ()))


FACTS: dict[str, Facts] = {
    "hostname": _hostname,
    "node": lambda build, vertex: iter([(build.wiring.names[vertex],)]),
    "description": _descriptions,
    "port": _used,
    "mtu": _of_ports(lambda port: (port.number, port.block.mtu)),
    "mtu of the hosts": _shared_mtu,
    "fec": _of_ports(lambda port: (port.number, port.block.fec)),
    "code": _of_ports(lambda port: (port.number, port.coded)),
    "speed": _of_ports(lambda port: (port.number, port.block.speed * MEGABITS)),
    "speed of a part": _of_ports(lambda port: (port.number, port.block.speed * port.split)),
    "speed and lanes": _of_ports(lambda port: (port.number, _eos_speed(port))),
    "lanes": _of_ports(lambda port: (port.number, port.lanes)),
    "mode": _of_ports(lambda port: (port.cage, port.mode * bool(port.block.speed))),
    "cage": _of_ports(lambda port: (_cage(port), port.block.breakout, port.block.speed)),
    "parts": _of_ports(lambda port: (_cage(port) * bool(port.block.speed), port.block.breakout)),
    "management": _management,
    "gateway of management": _gateway,
    "ntp server": _servers("ntp"),
    "syslog server": _servers("syslog"),
    "syslog by management": _servers("syslog"),
    "universal id": lambda _, vertex: iter([(vertex + 1,)]),
    "AS number": lambda build, vertex: iter([(_number(build, vertex),)]),
    "session": _sessions,
}
"""By kind:

hostname: of a router; node: the name itself. description: port, what is behind it. port: one in
use. mtu: port, bytes of an IP packet. fec: port, rs, fc or off; code: port, the same by the name of
the code. speed: port, Mb/s; speed of a part: Gb/s, only of parts of cages; speed and lanes: the
same as EOS says it. lanes: port, their numbers. mode: a cage of SONiC, how it is broken out. cage:
its name, parts, Gb/s of each; parts: without these. management: port, address with its length.
session: of BGP: port, address family, the system at the other end. universal id: what a switch
hashes by whose VRFs share marked packets again.
"""
