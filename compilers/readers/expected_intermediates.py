"""What OpenFlow rows have to say in Valiant routing, where packets go by an intermediate switch.

The switch of the sender draws an intermediate by a hash, and writes a MAC address into the packet
that names the intermediate. Switches on the way route by that address, and the intermediate removes
it. A *claim* is the values that one row has to state, as a named tuple. `ovs_reader` reads the same
values from each row that is emitted, and `claim_check` compares the two. `expected_claims` lists
the claims here among all others. They come from the tables and the addresses alone: no code is
shared with the emitter.

A row for an intermediate has to lead to the same egress class as the rows for its prefix. Numbers
of classes mean nothing outside a switch, so a claim names a class by the lowest network whose rows
lead to it.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache
from ipaddress import IPv4Address
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from compilers.readers.expected_facts import FactFunction, Value
from compilers.tables.build import Build
from compilers.tables.intermediate_form import no_route
from compilers.wiring.addressing import Addressing
from compilers.wiring.mac_addresses import format_mac

BIT_OF_INTERMEDIATES = 0x800000
"""The bit of the gateway's MAC address that is inverted in addresses that name an intermediate."""
NUMBER_BITS = 16
"""The last bits of such an address: the number of the intermediate."""
BASES = 1 << 16
"""How many bases of a hash there are. The basis is mixed into the hash, so that switches draw
different intermediates: that of vertex v is v modulo this number."""


class IntermediateDrawn(NamedTuple):
    """A row that draws an intermediate for the packets of a host."""

    family: str
    """The address family: ip or ipv6."""
    in_port: int
    """The port of the host."""
    gateway: str
    """The gateway's MAC address, which the host's packets have as their destination."""
    first_mac: str
    """The MAC address that names intermediate 0."""
    basis: str
    """The basis of the hash, as decimal digits: rows state it in a text."""
    intermediates: str
    """How many intermediates there are, as decimal digits."""
    source: str
    """The host's address; "": any."""


class OwnBlock(NamedTuple):
    """A row for packets between hosts of one switch, for which no intermediate is drawn."""

    family: str
    """The address family: ip or ipv6."""
    gateway: str
    """The gateway's MAC address."""
    network: str
    """The network of the switch's own hosts."""
    in_port: int
    """The port of the host that sends; 0: any."""
    source: str
    """The address of the host that sends; "": any."""


class CarriedIntermediate(NamedTuple):
    """A row that recognises packets whose destination address names an intermediate."""

    family: str
    """The address family: ip or ipv6."""
    first_mac: str
    """The MAC address that names intermediate 0."""


class ToIntermediate(NamedTuple):
    """A row that routes packets to their intermediate."""

    mac: str
    """The MAC address that names the intermediate."""
    lowest_network: str
    """The egress class, by its lowest network."""
    up_port: int
    """The port that has to be up; 0: none."""


class IntermediateReached(NamedTuple):
    """The row that removes the address of an intermediate, at the intermediate itself."""

    mac: str
    """The MAC address that names this switch."""
    gateway: str
    """The gateway's MAC address, which takes its place."""


class IntermediateGivenUp(NamedTuple):
    """The row that gives up an intermediate whose link is down."""

    gateway: str
    """The gateway's MAC address, which takes the place of the intermediate's."""


def _intermediates(build: Build) -> list[int]:
    """All switches with hosts; [] where packets carry no intermediate."""
    if not build.forwarding.intermediates:
        return []
    vertices: list[int] = np.flatnonzero(build.topology.endpoints).tolist()
    return vertices


def _intermediate_mac(build: Build, index: int) -> str:
    """The MAC address that names an intermediate, by its index among the intermediates."""
    first = (build.addressing.gateway_mac ^ BIT_OF_INTERMEDIATES) >> NUMBER_BITS << NUMBER_BITS
    return format_mac(first + index)


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
    addressing = build.addressing
    addresses = [str(addressing.host(vertex, number))]
    if addressing.ipv6:
        addresses.append(str(addressing.host6(vertex, number)))
    for family, address in zip(row_families(build), addresses, strict=True):
        yield family, address if addressing.source_checks else ""


def _intermediate_drawn(build: Build, vertex: int) -> Iterator[Value]:
    """Yield the claims of the rows that draw an intermediate for packets of a host."""
    gateway = format_mac(build.addressing.gateway_mac)
    if count := len(_intermediates(build)):
        first_mac = _intermediate_mac(build, 0)
        for number, port in enumerate(build.wiring.host_port[vertex].tolist()):
            if not port:
                continue
            for family, source in _sources(build, vertex, number):
                basis = str(vertex % BASES)
                yield IntermediateDrawn(
                    family,
                    in_port=port,
                    gateway=gateway,
                    first_mac=first_mac,
                    basis=basis,
                    intermediates=str(count),
                    source=source,
                )


def _own_block(build: Build, vertex: int) -> Iterator[Value]:
    """Yield the claims of the rows for packets between hosts of this switch."""
    addressing = build.addressing
    if not _intermediates(build):
        return
    gateway, network = format_mac(addressing.gateway_mac), {"ip": str(addressing.network(vertex))}
    if addressing.ipv6:
        network["ipv6"] = str(addressing.network6(vertex))
    for number, port in enumerate(build.wiring.host_port[vertex].tolist()):
        if not port:
            continue
        for family, source in _sources(build, vertex, number):
            # Without checks one row is for all hosts of the switch.
            in_port = port if source else 0
            yield OwnBlock(family, gateway, network[family], in_port, source)


def _carried(build: Build, vertex: int) -> Iterator[Value]:  # noqa: ARG001
    """Yield the claims of the rows that recognise packets which name an intermediate."""
    if _intermediates(build):
        for family in row_families(build):
            yield CarriedIntermediate(family, _intermediate_mac(build, 0))


def _to_intermediate(build: Build, vertex: int) -> Iterator[Value]:
    """Yield the claims of the rows that route packets to their intermediate, by its class."""
    intermediates, wiring = _intermediates(build), build.wiring
    if not intermediates:
        return
    egress_of, lowest_network = _lowest_networks(build, vertex)
    aggregate = build.tables.routes.aggregate
    port_to = dict(zip(wiring.far[vertex].tolist(), wiring.port[vertex].tolist(), strict=True))
    for index, intermediate in enumerate(intermediates):
        if intermediate != vertex:
            own_class = egress_of[intermediate]
            has_own_route = own_class >= 0
            egress = int(own_class if has_own_route else egress_of[aggregate[intermediate]])
            network = str(IPv4Address(lowest_network[egress]))
            # A neighbour is given up if its link is down, so the row needs the port.
            up_port = port_to.get(intermediate, 0) if build.forwarding.repairs else 0
            yield ToIntermediate(_intermediate_mac(build, index), network, up_port)


def _lowest_networks(build: Build, vertex: int) -> tuple[NDArray[np.int64], dict[int, int]]:
    """The egress class of each prefix (-1: none), and the lowest network of each class."""
    routes = build.tables.routes
    # For each row of the switch: the number of its prefix, and its egress class.
    prefix, egress = routes.prefixes(vertex), routes.egress[vertex].astype(np.int64)
    has_route = egress < no_route(routes.egress)
    network = _networks(build.addressing)
    egress_of_prefix = np.full(len(network), -1, np.int64)
    egress_of_prefix[prefix[has_route]] = egress[has_route]
    lowest_network = {
        int(egress_class): int(network[prefix[has_route & (egress == egress_class)]].min())
        for egress_class in np.unique(egress[has_route])
    }
    return egress_of_prefix, lowest_network


@lru_cache(2)
def _networks(addressing: Addressing) -> NDArray[np.int64]:
    """int64[P]: the first address of each prefix."""
    return addressing.ipv4_prefixes()[0].astype(np.int64)


def _intermediate_reached(build: Build, vertex: int) -> Iterator[Value]:
    """Yield the claim of the row that removes an intermediate's address at the intermediate."""
    intermediates = _intermediates(build)
    if vertex in intermediates:
        mac = _intermediate_mac(build, intermediates.index(vertex))
        yield IntermediateReached(mac, format_mac(build.addressing.gateway_mac))


def _intermediate_given_up(build: Build, vertex: int) -> Iterator[Value]:  # noqa: ARG001
    """Yield the claim of the row that gives up an intermediate, where switches repair."""
    if _intermediates(build) and build.forwarding.repairs:
        yield IntermediateGivenUp(format_mac(build.addressing.gateway_mac))


INTERMEDIATE_CLAIMS: dict[str, FactFunction] = {
    "intermediate drawn": _intermediate_drawn,
    "own block": _own_block,
    "carried": _carried,
    "intermediate": _to_intermediate,
    "intermediate reached": _intermediate_reached,
    "intermediate given up": _intermediate_given_up,
}
"""The claims of each kind that a switch has to make. The kinds have the names that the grammar of
the rendered files gives them. The function and the named tuple of a kind are called like it, but
for two: the values of `carried` are those of `CarriedIntermediate`, and the values of
`intermediate`, rows that route packets to one, are those of `ToIntermediate`."""
