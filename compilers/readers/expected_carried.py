"""Expected rows for packets that carry their intermediate, from the tables and the addresses alone.

A row by an intermediate has to lead where the rows of its prefix lead, to the same class. Classes
have numbers that mean nothing outside a switch, so a class is known by the lowest of the networks
whose rows lead to it.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache
from ipaddress import IPv4Address

import numpy as np
from numpy.typing import NDArray

from compilers.readers.expected_facts import Facts, Value
from compilers.tables.build import Build
from compilers.tables.intermediate_form import no_route
from compilers.wiring.addressing import format_mac

FIRST = 0x800000
"""Turned in the gateway's MAC address, of which then the last two bytes say the intermediate."""


def _ends(build: Build) -> list[int]:
    """The intermediates: all switches with hosts."""
    if not build.forwarding.intermediates:
        return []
    ends: list[int] = np.flatnonzero(build.topology.endpoints).tolist()
    return ends


def _mac(build: Build, number: int) -> str:
    return format_mac(((build.addressing.gateway_mac ^ FIRST) & ~0xFFFF) + number)


def _families(build: Build) -> tuple[str, ...]:
    return ("ip", "ipv6") if build.addressing.ipv6 else ("ip",)


def _ports(build: Build, vertex: int) -> list[int]:
    """The ports of hosts."""
    return [port for port in build.wiring.host_port[vertex].tolist() if port]


def _drawn(build: Build, vertex: int) -> Iterator[Value]:
    gateway = format_mac(build.addressing.gateway_mac)
    if count := len(_ends(build)):
        for family in _families(build):
            for port in _ports(build, vertex):
                first = _mac(build, 0)
                yield family, port, gateway, first, str(vertex % 65536), str(count)


def _stays(build: Build, vertex: int) -> Iterator[Value]:
    a = build.addressing
    if _ends(build) and _ports(build, vertex):
        yield "ip", format_mac(a.gateway_mac), str(a.network(vertex))
        if a.ipv6:
            yield "ipv6", format_mac(a.gateway_mac), str(a.network6(vertex))


def _carried(build: Build, vertex: int) -> Iterator[Value]:  # noqa: ARG001
    if _ends(build):
        yield from ((family, _mac(build, 0)) for family in _families(build))


def _leads(build: Build, vertex: int) -> Iterator[Value]:
    ends, w = _ends(build), build.wiring
    if not ends:
        return
    rows, lowest = _lowest(build, vertex)
    cover = build.tables.routes.aggregate
    port_to = dict(zip(w.far[vertex].tolist(), w.port[vertex].tolist(), strict=True))
    for number, end in enumerate(ends):
        if end != vertex:
            egress = int(rows[end] if rows[end] >= 0 else rows[cover[end]])
            port = port_to.get(end, 0) if build.forwarding.repairs else 0
            yield _mac(build, number), str(IPv4Address(lowest[egress])), port


def _lowest(build: Build, vertex: int) -> tuple[NDArray[np.int64], dict[int, int]]:
    """By prefix number the class, -1 without; by class the lowest network that leads there."""
    routes = build.tables.routes
    number, egress = routes.prefixes(vertex), routes.egress[vertex].astype(np.int64)
    kept = egress < no_route(routes.egress)
    network = _networks(build.addressing)
    rows = np.full(len(network), -1, np.int64)
    rows[number[kept]] = egress[kept]
    lowest = {
        int(k): int(network[number[kept & (egress == k)]].min()) for k in np.unique(egress[kept])
    }
    return rows, lowest


@lru_cache(2)
def _networks(addressing: object) -> NDArray[np.int64]:
    """int64[P]: the first address of each prefix."""
    networks: NDArray[np.int64] = addressing.ipv4_prefixes()[0].astype(np.int64)  # type: ignore[attr-defined]
    return networks


def _taken_off(build: Build, vertex: int) -> Iterator[Value]:
    ends = _ends(build)
    if vertex in ends:
        yield _mac(build, ends.index(vertex)), format_mac(build.addressing.gateway_mac)


def _given_up(build: Build, vertex: int) -> Iterator[Value]:  # noqa: ARG001
    if _ends(build) and build.forwarding.repairs:
        yield (format_mac(build.addressing.gateway_mac),)


CARRIED: dict[str, Facts] = {
    "intermediate drawn": _drawn,
    "own block": _stays,
    "carried": _carried,
    "intermediate": _leads,
    "intermediate reached": _taken_off,
    "intermediate given up": _given_up,
}
"""By kind:

intermediate drawn: family, port of a host, gateway's MAC address, the first that carries an
intermediate, the basis of the hash, how many intermediates. own block: family, gateway's MAC
address, network to which none is drawn. carried: family, the first such address. intermediate: its
address, the class to it, the port that has to be up or 0. intermediate reached: the switch's own
address, the gateway's. intermediate given up: the gateway's address.
"""
