"""The claims of OpenFlow rows in Valiant routing, where packets carry an intermediate switch.

The switch of the sender draws an intermediate by a hash, and writes a MAC address into the packet
that names the intermediate. Switches on the way route by that address, and the intermediate removes
it. `expected_claims` lists the claims here among all others. They come from the tables and the
addresses alone: no code is shared with the emitter.

A row for an intermediate has to lead to the same egress class as the rows for its prefix. Numbers
of classes mean nothing outside a switch, so a claim names a class by the lowest network whose rows
lead to it.
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

BIT_OF_INTERMEDIATES = 0x800000
"""The bit of the gateway's MAC address that is inverted in addresses that name an intermediate."""
NUMBER_BITS = 16
"""The last bits of such an address: the number of the intermediate."""
BASES = 1 << 16
"""How many bases of a hash there are. The basis is mixed into the hash, so that switches draw
different intermediates: that of vertex v is v modulo this number."""


def _intermediates(build: Build) -> list[int]:
    """All switches with hosts; [] where packets carry no intermediate."""
    if not build.forwarding.intermediates:
        return []
    vertices: list[int] = np.flatnonzero(build.topology.endpoints).tolist()
    return vertices


def _mac(build: Build, number: int) -> str:
    """The MAC address that names an intermediate, by its place among the intermediates."""
    first = (build.addressing.gateway_mac ^ BIT_OF_INTERMEDIATES) >> NUMBER_BITS << NUMBER_BITS
    return format_mac(first + number)


def row_families(build: Build) -> tuple[str, ...]:
    """The address families of a fabric, as OpenFlow rows name them."""
    return ("ip", "ipv6") if build.addressing.ipv6 else ("ip",)


def _sources(build: Build, vertex: int, number: int) -> Iterator[tuple[str, str]]:
    """Yield each address family, and a host's source address in it; "" where it is not checked.

    Args:
        build: the fabric.
        vertex: the switch of the host.
        number: the number of the host at the switch.
    """
    a = build.addressing
    addresses = [str(a.host(vertex, number))]
    if a.ipv6:
        addresses.append(str(a.host6(vertex, number)))
    for family, address in zip(row_families(build), addresses, strict=True):
        yield family, address if a.source_checks else ""


def _draw_rows(build: Build, vertex: int) -> Iterator[Value]:
    """Yield the rows that draw an intermediate for packets of a host."""
    gateway = format_mac(build.addressing.gateway_mac)
    if count := len(_intermediates(build)):
        for number, port in enumerate(build.wiring.host_port[vertex].tolist()):
            for family, source in _sources(build, vertex, number) if port else ():
                first = _mac(build, 0)
                yield family, port, gateway, first, str(vertex % BASES), str(count), source


def _own_block_rows(build: Build, vertex: int) -> Iterator[Value]:
    """Yield the rows for packets to hosts of the same switch, which need no intermediate."""
    a = build.addressing
    if not _intermediates(build):
        return
    gateway, network = format_mac(a.gateway_mac), {"ip": str(a.network(vertex))}
    if a.ipv6:
        network["ipv6"] = str(a.network6(vertex))
    for number, port in enumerate(build.wiring.host_port[vertex].tolist()):
        for family, source in _sources(build, vertex, number) if port else ():
            # Without checks one row is for all hosts of the switch.
            yield family, gateway, network[family], port if source else 0, source


def _recognise_rows(build: Build, vertex: int) -> Iterator[Value]:  # noqa: ARG001
    """Yield the rows that recognise packets which carry an intermediate."""
    if _intermediates(build):
        yield from ((family, _mac(build, 0)) for family in row_families(build))


def _route_rows(build: Build, vertex: int) -> Iterator[Value]:
    """Yield the rows that route packets to their intermediate, by its class."""
    intermediates, w = _intermediates(build), build.wiring
    if not intermediates:
        return
    egress_of, lowest_network = _lowest_networks(build, vertex)
    aggregate = build.tables.routes.aggregate
    port_to = dict(zip(w.far[vertex].tolist(), w.port[vertex].tolist(), strict=True))
    for number, intermediate in enumerate(intermediates):
        if intermediate != vertex:
            exact = egress_of[intermediate]
            egress = int(exact if exact >= 0 else egress_of[aggregate[intermediate]])
            port = port_to.get(intermediate, 0) if build.forwarding.repairs else 0
            yield _mac(build, number), str(IPv4Address(lowest_network[egress])), port


def _lowest_networks(build: Build, vertex: int) -> tuple[NDArray[np.int64], dict[int, int]]:
    """The egress class of each prefix (-1: none), and the lowest network of each class."""
    routes = build.tables.routes
    number, egress = routes.prefixes(vertex), routes.egress[vertex].astype(np.int64)
    routed = egress < no_route(routes.egress)
    network = _networks(build.addressing)
    egress_of = np.full(len(network), -1, np.int64)
    egress_of[number[routed]] = egress[routed]
    lowest_network = {
        int(egress_class): int(network[number[routed & (egress == egress_class)]].min())
        for egress_class in np.unique(egress[routed])
    }
    return egress_of, lowest_network


@lru_cache(2)
def _networks(addressing: object) -> NDArray[np.int64]:
    """int64[P]: the first address of each prefix."""
    networks: NDArray[np.int64] = addressing.ipv4_prefixes()[0].astype(np.int64)  # type: ignore[attr-defined]
    return networks


def _remove_rows(build: Build, vertex: int) -> Iterator[Value]:
    """Yield the row that removes the address of an intermediate, at the intermediate itself."""
    intermediates = _intermediates(build)
    if vertex in intermediates:
        yield _mac(build, intermediates.index(vertex)), format_mac(build.addressing.gateway_mac)


def _give_up_rows(build: Build, vertex: int) -> Iterator[Value]:  # noqa: ARG001
    """Yield the row that gives up an intermediate whose link is down, where switches repair."""
    if _intermediates(build) and build.forwarding.repairs:
        yield (format_mac(build.addressing.gateway_mac),)


INTERMEDIATE_CLAIMS: dict[str, Facts] = {
    "intermediate drawn": _draw_rows,
    "own block": _own_block_rows,
    "carried": _recognise_rows,
    "intermediate": _route_rows,
    "intermediate reached": _remove_rows,
    "intermediate given up": _give_up_rows,
}
"""The claims of each kind that a switch has to make. Their values are:

- intermediate drawn: address family, port of a host, the gateway's MAC address, the MAC address of
  intermediate 0, basis of the hash, number of intermediates, the host's address ("": any source)
- own block: address family, the gateway's MAC address, the network of the switch's own hosts, for
  which no intermediate is drawn; the port and the address of the host that sends (0 and "": any)
- carried: address family, the MAC address of intermediate 0
- intermediate: its MAC address, the class to it (by its lowest network), the port that has to be up
  or 0
- intermediate reached: the MAC address of this switch, the gateway's
- intermediate given up: the gateway's MAC address
"""
